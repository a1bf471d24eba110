"""Step 1: what is asked. A follow-up is made standalone, filters are read from the words, and the kind of answer is told.

These rules need no LLM; `rag/understand_llm.py` does the same with one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag.counting import NOT_BY_TOPIC, read_count
from rag.filters import Names, merge_filters, no_years_notice, read_filters
from rag.follow_up import (
    ASKS_FOR_OTHERS,
    completed,
    has_subject,
    is_follow_up,
    name_alone,
    papers_named,
    places_in,
    pointed_at,
    what_was_said,
)
from rag.intent import Understood, intent_of
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
    if intent_of(asked) == "count":
        return understood_count(asked, topic, said, filters, names)
    notice = no_years_notice(said, names)
    if notice:
        said = replace(said, year_min=None, year_max=None)
    pointed = pointed_at(question, history)
    if pointed is None and places_in(question) and not has_subject(question):
        notice = " ".join(filter(None, [notice, NOT_LISTED]))
    depends = bool(history) and is_follow_up(asked) and not name_alone(question)
    context = pointed.said if pointed else what_was_said(history) if depends else ""
    others = history and not pointed and is_follow_up(question) and ASKS_FOR_OTHERS.search(question)
    return Understood(
        question=asked,
        standalone=f"{asked} ({context})" if context else asked,
        search_text=f"{context} {topic}".strip(),
        filters=merge_filters(replace(said, paper_ids=pointed.paper_ids) if pointed else said, filters),
        intent=intent_of(asked),
        exclude=papers_named(history) if others else (),
        notice=notice,
    )


def understood_count(asked: str, topic: str, said: Filters, filters: Filters, names: Names) -> Understood:
    """A question after a number of papers. Its years are kept where no paper has one: none is then the right number."""
    exact = read_count(topic, said, names)
    return Understood(
        question=asked,
        standalone=asked,
        search_text=topic,
        filters=merge_filters(exact or said, filters),
        intent="count",
        counts=exact is not None,
        notice=None if exact is not None else NOT_BY_TOPIC,
    )
