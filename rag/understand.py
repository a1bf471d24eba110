"""Step 1: what is asked. A follow-up is made standalone, filters are read from the words, and the kind of answer is told.

These rules need no LLM; `rag/understand_llm.py` does the same with one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rag.types import Filters, Turn, Usage, cut, unique

Intent = Literal["explain", "list", "authors", "year", "venue", "link", "count"]
"""What the answer should be: an explanation, a list of papers, or a field of the catalogue."""

CONTEXT_LENGTH = 400
"""Characters of the last answer that a follow-up carries along: its first sentences name the subject."""


@dataclass(frozen=True, slots=True)
class Names:
    """What a filter's words may mean: the venues and categories there are, and whether papers have years at all."""

    venues: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    has_years: bool = True


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

REFERS_BACK = re.compile(
    r"""^(?:and|but|so|then|also|what\sabout|how\sabout|why|who|when|where|how\sso|really|more)\b(?=.{0,60}$)
      | \b(?:it|its|they|them|their|theirs|these|those|he|she|his|her|him|this)\b
      | \bthat(?=\s*(?:[?.!,;]|$|in\b|for\b|with\b|on\b|one\b|paper\b|work\b|method\b|result\b|approach\b|idea\b|claim\b|number\b|\d))
      | \b(?:the\s(?:same|former|latter|other|paper|papers|authors|method|approach|algorithm|abstract|two|work|study|first|second)
          | which\sof\b | either\b | both\b | besides\b | instead\b | else\b | then\?)
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


INTENTS: tuple[tuple[Intent, re.Pattern[str]], ...] = tuple(
    (intent, re.compile(pattern, re.IGNORECASE))
    for intent, pattern in (
        ("count", r"^\W*how many (?:papers|abstracts|articles|works|publications)\b|(?:多少|几)篇"),
        (
            "authors",
            r"\bwho (?:wrote|authored|published|came up with|is behind|are behind|did (?:it|this|that))\b"
            r"|\bwho(?:'s| is| are| were| was)? the (?:first |last |senior )?authors?\b|\bnames? of the authors?\b"
            r"|\b(?:list|name) the authors\b|\bauthors? of\b|\bwritten by (?:whom|who)\b|\bby whom\b|作者(?:是谁|有谁|有哪些)|谁写",
        ),
        (
            "year",
            r"\b(?:which|what) year\b|\bwhen (?:was|were) .*(?:published|written|released)\b|\bhow old is\b|哪(?:一)?年发表",
        ),
        (
            "venue",
            r"\bwhere (?:was|were) .*(?:published|presented)\b|\b(?:which|what) (?:venue|conference|journal)\b|发表在(?:哪|什么)",
        ),
        ("link", r"\b(?:link|url|doi) (?:to|of|for)\b|\bwhat(?:'s| is) the (?:link|url|doi)\b|链接"),
        (
            "list",
            r"\b(?:which|what|any|other|all|the|show|list|find)(?: \w+){0,3} (?:papers|works|articles|studies|publications|abstracts)\b"
            r"|^\W*(?:list|show|find|collect)\b|\bdo we have\b|\bwhat do we have\b|\banything (?:on|about|from|by)\b"
            r"|\bpapers (?:on|about|by|from|that|which|is|are|has|have)\b|\bappears? (?:in )?(?:twice|several)\b"
            r"|\bwhat has .* (?:got|done|written|published)\b|\bwhich (?:results|methods|approaches) here\b"
            r"|\bI(?:'m| am) collecting\b|\bi need (?:methods|papers|works)\b|哪些(?:论文|文章|工作)|列出",
        ),
    )
)


def intent_of(question: str) -> Intent:
    """The kind of answer a question asks for; `explain` unless its words say otherwise."""
    return next((intent for intent, pattern in INTENTS if pattern.search(question)), "explain")


YEAR = r"((?:19|20)\d\d)"

Reading = Callable[[re.Match[str]], Filters]

YEAR_RULES: tuple[tuple[re.Pattern[str], Reading], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), reading)
    for pattern, reading in (
        (
            rf"\b(?:published |written )?(?:between|from) {YEAR} (?:and|to|until|through) {YEAR}\b|(?<!\d){YEAR}\s*[-–—到至]\s*{YEAR}年?",
            lambda m: Filters(year_min=int(m[1] or m[3]), year_max=int(m[2] or m[4])),
        ),
        (
            rf"\b(?:published |written )?since {YEAR}\b|\bfrom {YEAR} on(?:wards?)?\b|{YEAR} ?年?(?:以来|起|及以后)|\b{YEAR} or (?:later|newer)\b",
            lambda m: Filters(year_min=first_year(m)),
        ),
        (rf"\b(?:published |written )?after {YEAR}\b|{YEAR} ?年?(?:以后|之后)", lambda m: Filters(year_min=first_year(m) + 1)),
        (rf"\b(?:published |written )?before {YEAR}\b|{YEAR} ?年?(?:以前|之前)", lambda m: Filters(year_max=first_year(m) - 1)),
        (
            rf"\b(?:published |written )?(?:until|till|up to|through) {YEAR}\b|\b{YEAR} or (?:earlier|older)\b",
            lambda m: Filters(year_max=first_year(m)),
        ),
        (
            rf"\b(?:published|written|appeared) in {YEAR}\b|\b(?:papers|works|articles) (?:from|of|in) {YEAR}\b|\bonly {YEAR}\b"
            rf"|\b{YEAR} papers\b|{YEAR} ?年(?:的|发表)",
            lambda m: Filters(year_min=first_year(m), year_max=first_year(m)),
        ),
    )
)


def first_year(match: re.Match[str]) -> int:
    return int(next(group for group in match.groups() if group))


def read_filters(question: str, names: Names) -> tuple[Filters, str]:
    """The filters that a question's words set (`since 2024, only ICML: …`), and the question without those words."""
    said, rest = Filters(), question
    for pattern, reading in YEAR_RULES:
        if match := pattern.search(rest):
            said = merge_filters(said, reading(match))
            rest = rest[: match.start()] + " " + rest[match.end() :]
    venues, rest = read_names(
        rest, names.venues, r"\b(?:only(?: from| at| in)?|published (?:at|in)|papers (?:at|from|in)|at)\s+", r"(?:\s+papers)?"
    )
    categories, rest = read_names(
        rest, names.categories, r"\b(?:only|in(?: the)?|from(?: the)?)\s+", r"\s+(?:category|area|track|section|papers)\b"
    )
    said = replace(said, venues=venues, categories=categories)
    return (said, tidy(rest) or question) if said else (said, question)


def read_names(text: str, known: Sequence[str], before: str, after: str) -> tuple[tuple[str, ...], str]:
    """Known names that stand in `text` between the words `before` and `after`, longest first, and the text without them."""
    found = []
    for name in sorted(known, key=len, reverse=True):
        pattern = re.compile(f"{before}{re.escape(name)}(?!\\w){after}", re.IGNORECASE)
        if name and (match := pattern.search(text)):
            found.append(name)
            text = text[: match.start()] + " " + text[match.end() :]
    return tuple(found), text


def tidy(text: str) -> str:
    """What is left of a question when words were taken out: no double spaces, no stray punctuation at its start."""
    return re.sub(r"\s+([,.;:?!])", r"\1", re.sub(r"\s{2,}", " ", text)).lstrip(" ,;:：，").strip()


def merge_filters(said: Filters, given: Filters) -> Filters:
    """Field by field: what was given beside the question, else what its words say."""
    return Filters(
        year_min=given.year_min if given.year_min is not None else said.year_min,
        year_max=given.year_max if given.year_max is not None else said.year_max,
        venues=given.venues or said.venues,
        categories=given.categories or said.categories,
        authors=given.authors or said.authors,
        paper_ids=given.paper_ids or said.paper_ids,
    )


def no_years_notice(said: Filters, names: Names) -> str | None:
    """Tells that a year was asked for where no paper has one."""
    if names.has_years or (said.year_min is None and said.year_max is None):
        return None
    return "None of these papers has a year, so the years in your question were not used."
