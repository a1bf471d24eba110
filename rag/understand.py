"""Step 1: what is asked. A follow-up is made standalone, filters are read from the words, and the kind of answer is told.

These rules need no LLM; `rag/understand_llm.py` does the same with one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag.counting import NOT_BY_TOPIC, read_count, read_list
from rag.filters import Names, merge_filters, no_years_notice, read_filters
from rag.follow_up import ASKS_FOR_OTHERS, completed, is_follow_up, name_alone, papers_named
from rag.intent import Understood, intent_of
from rag.pointing import has_subject, places_in, pointed_at, what_was_said
from rag.scripts import is_latin
from rag.small_talk import small_talk
from rag.types import Filters, Turn

OTHER_SCRIPT = (
    "The papers are searched in English, and this question is in another script: install footnote[multilingual], or set "
    "FOOTNOTE_LLM_MODEL, to have it understood."
)

NOT_LISTED = "No answer before this question lists so many papers, so it is not known which is meant."


class RuleUnderstanding:
    """Reads questions by the rules below: no LLM, no waiting. `multilingual` tells whether retrieval reads other scripts."""

    def __init__(self, *, multilingual: bool) -> None:
        self._multilingual = multilingual

    async def understand(self, question: str, history: Sequence[Turn], filters: Filters, names: Names) -> Understood:
        """`filters` were given beside the question and win over those in its words."""
        read = understand(question, history, filters, names)
        if self._multilingual or is_latin(question) or read.counts or not read.search_text:
            return read
        return replace(read, notice=" ".join(filter(None, [read.notice, OTHER_SCRIPT])))


def understand(question: str, history: Sequence[Turn], filters: Filters, names: Names) -> Understood:
    """Reads a question by rules. Filters given beside it win over those its words set, field by field."""
    if small_talk(question):
        return Understood(question, standalone=question, search_text="", filters=filters, intent="explain")
    asked = completed(question, history)
    said, topic = read_filters(asked, names)
    intent = intent_of(asked)
    exact = read_count(topic, said, names) if intent == "count" else read_list(topic, said) if intent == "list" else None
    if exact is not None:
        every = merge_filters(exact, filters)
        return Understood(asked, standalone=asked, search_text=topic, filters=every, intent=intent, counts=True)
    pointed = pointed_at(question, history)
    notices = [no_years_notice(said, names), NOT_BY_TOPIC if intent == "count" and not pointed else None]
    if notices[0]:
        said = replace(said, year_min=None, year_max=None)
    if pointed is None and places_in(question) and not has_subject(question):
        notices.append(NOT_LISTED)
    depends = bool(history) and is_follow_up(asked) and not name_alone(question)
    context = pointed.said if pointed else what_was_said(history) if depends else ""
    leans = is_follow_up(question) or asked != question
    others = history and not pointed and leans and ASKS_FOR_OTHERS.search(question)
    return Understood(
        question=asked,
        standalone=f"{asked} ({context})" if context else asked,
        search_text=f"{context} {topic}".strip(),
        filters=merge_filters(replace(said, paper_ids=pointed.paper_ids) if pointed else said, filters),
        intent=intent,
        exclude=papers_named(history) if others else (),
        notice=" ".join(filter(None, notices)) or None,
    )
