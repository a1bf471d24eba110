"""Step 1: what is asked. A follow-up is made standalone, filters are read from the words, and the kind of answer is told.

These rules need no LLM; `rag/understand_llm.py` does the same with one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rag.filters import Names, merge_filters, no_years_notice, read_filters
from rag.scripts import is_latin
from rag.types import Filters, Turn, Usage, cut, unique

Intent = Literal["explain", "list", "authors", "year", "venue", "link", "count"]
"""What the answer should be: an explanation, a list of papers, or a field of the catalogue."""

CONTEXT_LENGTH = 400
"""Characters of the last answer that a follow-up carries along: its first sentences name the subject."""


@dataclass(frozen=True, slots=True)
class Understood:
    """A question, read. `search_text` is what is looked for (the standalone question without the words that set filters);
    papers in `exclude` were spoken of already and are not asked for again."""

    question: str
    standalone: str
    search_text: str
    filters: Filters
    intent: Intent
    exclude: tuple[str, ...] = ()
    usage: Usage = Usage()
    notice: str | None = None


OTHER_SCRIPT = (
    "The papers are searched in English, and this question is in another script: install footnote[multilingual], or set "
    "FOOTNOTE_LLM_MODEL, to have it understood."
)


class RuleUnderstanding:
    """Reads questions by the rules below: no LLM, no waiting. `multilingual` tells whether retrieval reads other scripts."""

    def __init__(self, *, multilingual: bool) -> None:
        self._multilingual = multilingual

    async def understand(self, question: str, history: Sequence[Turn], filters: Filters, names: Names) -> Understood:
        """`filters` were given beside the question and win over those in its words."""
        read = understand(question, history, filters, names)
        if self._multilingual or is_latin(question):
            return read
        return replace(read, notice=" ".join(filter(None, [read.notice, OTHER_SCRIPT])))


def understand(question: str, history: Sequence[Turn], filters: Filters, names: Names) -> Understood:
    """Reads a question by rules. Filters given beside it win over those its words set, field by field."""
    said, asked = read_filters(question, names)
    notice = no_years_notice(said, names)
    if notice:
        said = replace(said, year_min=None, year_max=None)
    depends = bool(history) and is_follow_up(question)
    context = what_was_said(history) if depends else ""
    return Understood(
        question=question,
        standalone=f"{question} ({context})" if context else question,
        search_text=f"{context} {asked}".strip(),
        filters=merge_filters(said, filters),
        intent=intent_of(question),
        exclude=papers_named(history) if depends and ASKS_FOR_OTHERS.search(question) else (),
        notice=notice,
    )


def what_was_said(history: Sequence[Turn]) -> str:
    """The last question with the start of its answer: what `it` and `that` in a follow-up stand for."""
    asked = next((turn.content for turn in reversed(history) if turn.role == "user"), "")
    answered = next((turn.content for turn in reversed(history) if turn.role == "assistant"), "")
    return f"{asked} {cut(MARKER.sub('', answered), CONTEXT_LENGTH)}".strip()


MARKER = re.compile(r"\s*\[\d+\]")

ASKS_FOR_OTHERS = re.compile(
    r"\b(?:other|others|another|else|besides|apart from|different one|more like)\b|其他|其它|另外|别的|还有", re.IGNORECASE
)

POINTED_AT = r"(?:one|paper|papers|work|works|method|result|results|approach|idea|claim|number|authors?|algorithm|abstract|study)"
REFERS_BACK = re.compile(
    rf"""^(?:and|but|so|then|also|what\sabout|how\sabout|why|who|when|where|really|more)\b(?=.{{0,60}}$)
      | \b(?:it|its|they|them|their|theirs|these|those|he|she|his|her|him|this)\b
      | \bthat(?=\s*(?:[?.!,;]|$|in\b|for\b|with\b|on\b|\d|{POINTED_AT}\b))
      | \bthe\s(?:same|former|latter|other|two|first|second|{POINTED_AT})\b
      | \b(?:which\sof|either|both|besides|instead|else|then(?=\?))\b
      | 它|他们|她们|这|那|该|其|上述|呢""",
    re.IGNORECASE | re.VERBOSE,
)

FEW_WORDS = 4


def is_follow_up(question: str) -> bool:
    """Whether a question needs the turns before it: it points back (`it`, `the same`), or is too short to stand alone."""
    return bool(REFERS_BACK.search(question)) or len(question.split()) <= FEW_WORDS


def papers_named(history: Sequence[Turn]) -> tuple[str, ...]:
    """The papers that earlier answers cited."""
    return unique([paper_id for turn in history for paper_id in turn.paper_ids])


PATTERNS: tuple[tuple[Intent, str], ...] = (
    ("count", r"^\W*how many (?:papers|abstracts|articles|works|publications)\b|(?:多少|几)篇"),
    ("authors", r"\bwho (?:wrote|authored|published|came up with|is behind|are behind|did (?:it|this|that))\b"),
    ("authors", r"\bwho(?:'s| is| are| were| was)? the (?:first |last |senior )?authors?\b|\bnames? of the authors?\b"),
    ("authors", r"\b(?:list|name) the authors\b|\bauthors? of\b|\bwritten by (?:whom|who)\b|\bby whom\b"),
    ("authors", r"作者(?:是谁|有谁|有哪些)|谁写"),
    ("year", r"\b(?:which|what) year\b|\bwhen (?:was|were) .*(?:published|written|released)\b|哪(?:一)?年发表"),
    (
        "venue",
        r"\bwhere (?:was|were) .*(?:published|presented)\b|\b(?:which|what) (?:venue|conference|journal)\b|发表在(?:哪|什么)",
    ),
    ("link", r"\b(?:link|url|doi) (?:to|of|for)\b|\bwhat(?:'s| is) the (?:link|url|doi)\b|链接"),
    ("list", r"\b(?:which|what|any|other|all|the|show|list|find)(?: \w+){0,3} (?:papers|works|articles|studies|publications)\b"),
    ("list", r"^\W*(?:list|show|find|collect)\b|\bdo we have\b|\banything (?:on|about|from|by)\b|\bI(?:'m| am) collecting\b"),
    ("list", r"\bpapers (?:on|about|by|from|that|which|is|are|has|have)\b|\bappears? (?:in )?(?:twice|several)\b"),
    ("list", r"\bwhat has .* (?:got|done|written|published)\b|\b(?:which|need) (?:results|methods|approaches|works)\b"),
    ("list", r"哪些(?:论文|文章|工作)|列出"),
)
INTENTS = tuple((intent, re.compile(pattern, re.IGNORECASE)) for intent, pattern in PATTERNS)


def intent_of(question: str) -> Intent:
    """The kind of answer a question asks for; `explain` unless its words say otherwise."""
    return next((intent for intent, pattern in INTENTS if pattern.search(question)), "explain")
