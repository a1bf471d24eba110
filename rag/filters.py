"""Filters that a question sets in plain words: `since 2024, only ICML: …`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rag.types import Filters, unique


@dataclass(frozen=True, slots=True)
class Names:
    """What a filter's words may mean: the venues and categories there are, and whether papers have years at all."""

    venues: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    has_years: bool = True


YEAR = r"((?:19|20)\d\d)"

Reading = Callable[[re.Match[str]], Filters]

RULES: tuple[tuple[str, Reading], ...] = (
    (
        rf"\b(?:published |written )?(?:between|from) {YEAR} (?:and|to|until|through) {YEAR}\b",
        lambda m: years(*sorted(m.groups())),
    ),
    (rf"(?<!\d){YEAR}\s*[-–—到至]\s*{YEAR} ?年?", lambda m: years(*sorted(m.groups()))),
    (
        rf"\b(?:published |written )?since {YEAR}\b|\bfrom {YEAR} on(?:wards?\b|(?=\W*$|[,;:]))",
        lambda m: years(m[1] or m[2], None),
    ),
    (rf"{YEAR} ?年?(?:以来|起|及以后)|\b(?:from )?{YEAR} or (?:later|newer)\b", lambda m: years(m[1] or m[2], None)),
    (rf"\b(?:published |written )?after {YEAR}\b|{YEAR} ?年?(?:以后|之后)", lambda m: years(int(m[1] or m[2]) + 1, None)),
    (rf"\b(?:published |written )?before {YEAR}\b|{YEAR} ?年?(?:以前|之前)", lambda m: years(None, int(m[1] or m[2]) - 1)),
    (rf"\b(?:until|till|up to|through) {YEAR}\b|\b{YEAR} or (?:earlier|older)\b", lambda m: years(None, m[1] or m[2])),
    (rf"\b(?:published|written|appeared) in {YEAR}\b", lambda m: only(m)),
    (rf"(?<=\bpapers )(?:from|of|in) {YEAR}\b|(?<=\bworks )(?:from|of|in) {YEAR}\b", lambda m: only(m)),
    (rf"(?<=\bthere )(?:from|in) {YEAR}\b|(?<=\bhave )(?:from|in) {YEAR}\b|(?<=\bare )from {YEAR}\b", lambda m: only(m)),
    (rf"\bonly {YEAR}\b|\b{YEAR} papers\b|{YEAR} ?年(?:的|发表)", lambda m: only(m)),
)
YEAR_RULES = tuple((re.compile(pattern, re.IGNORECASE), reading) for pattern, reading in RULES)

AT_VENUE = (
    r"\b(?:only(?: from| at| in)?|(?:published|appeared|presented) (?:at|in)|(?:papers|are|were) (?:at|from|in)|at)\s+",
    r"(?:\s+papers)?",
)
VENUE_FIRST = (r"(?<=\bmany )|(?<=\bwhich )|(?<=\ball )|(?<=\bthe )|(?<=\blist )|(?<=\bshow )", r"(?=\s+papers\b)")
IN_CATEGORY = (r"\b(?:only|in(?: the)?|from(?: the)?)\s+", r"\s+(?:category|area|track|section|papers)\b")
PAPERS_IN = (r"(?:(?<=\bpapers )|(?<=\bpapers are )|(?<=\bpapers there ))(?:in|under) (?:the )?(?:category |area )?", r"(?=\W*$)")
"""What stands before and behind a name that is meant as a filter."""
NEGATED = re.compile(
    r"(?:\b(?:not|except(?: for)?|excluding|without|(?:other|rather) than)|n['’]t|不是|不在|除了|除|非)\s*$", re.IGNORECASE
)
"""Before the words of a filter: what they name is not wanted, which no filter says."""


def years(first: str | int | None, last: str | int | None) -> Filters:
    return Filters(year_min=int(first) if first else None, year_max=int(last) if last else None)


def only(match: re.Match[str]) -> Filters:
    year = next(group for group in match.groups() if group)
    return years(year, year)


def read_filters(question: str, names: Names) -> tuple[Filters, str]:
    """The filters that a question's words set (`since 2024, only ICML: …`), and the question without those words."""
    said, rest = Filters(), question
    for pattern, reading in YEAR_RULES:
        if (match := pattern.search(rest)) and not NEGATED.search(rest, 0, match.start()):
            said = merge_filters(said, reading(match))
            rest = rest[: match.start()] + " " + rest[match.end() :]
    venues, rest = read_names(rest, names.venues, *AT_VENUE)
    if not venues:
        venues, rest = read_names(rest, names.venues, *VENUE_FIRST)
    categories, rest = read_categories(rest, names, IN_CATEGORY, PAPERS_IN)
    said = replace(said, venues=venues, categories=categories)
    return (said, tidy(rest) or question) if said else (said, question)


def read_names(text: str, known: Sequence[str], before: str, after: str) -> tuple[tuple[str, ...], str]:
    """Known names that stand in `text` between the words `before` and `after`, longest first, and the text without them."""
    found, lowered = [], text.lower()
    there = [name for name in known if name and name.lower() in lowered]  # of thousands, before a pattern is made of each
    for name in sorted(there, key=len, reverse=True):
        pattern = re.compile(f"(?:{before}){re.escape(name)}(?!\\w){after}", re.IGNORECASE)
        if (match := pattern.search(text)) and not NEGATED.search(text, 0, match.start()):
            found.append(name)
            text = text[: match.start()] + " " + text[match.end() :]
    return tuple(found), text


def read_categories(text: str, names: Names, *places: tuple[str, str]) -> tuple[tuple[str, ...], str]:
    """Categories that stand in `text` at one of `places` (what is before and behind them), called by their whole names, by their
    area or else by their topic (`Theory · Game Theory`), and the text without them."""
    split = [category.partition(" · ") for category in names.categories]
    topics = {topic: tuple("".join(one) for one in split if one[2] == topic) for _, _, topic in split if topic}
    meant = topics | {area: (area,) for area, _, _ in split} | {category: (category,) for category in names.categories}
    for before, after in places:
        found, rest = read_names(text, list(meant), before, after)
        if found:
            return unique([category for name in found for category in meant[name]]), rest
    return (), text


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
    return "No paper here has a year, so the years in your question were not used."
