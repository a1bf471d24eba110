"""How many papers there are, or all of them: exact where the catalogue's fields tell, never by topic."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.evidence import opening
from rag.filters import Names, merge_filters, read_categories
from rag.scripts import language_of
from rag.types import Drafted, Filters, Retrieved, Verdict

SHOWN = 3
"""Papers cited for a count that is larger than what was retrieved."""

NOT_BY_TOPIC = "Papers are not counted by topic: those shown are the nearest, and there may be more."

COUNTED_CATEGORY = (
    r"\s(?:in|under|from)\s+(?:the )?(?:category |area )?",
    r"(?:\s+(?:category|area|track|section))?(?=\W*$|\s+(?:are|do|is)\b)",
)
_THERE = (
    r"(?:\s+(?:(?:are|were|is) (?:there|here|in (?:the|this|your|my) \w+)|(?:are|were|have been) (?:published|written|indexed)"
    r"|there|here|do (?:we|you|i|they) (?:have|hold|know)|have (?:we|you)(?: got)?|have|exist|in total|in all|altogether"
    r"|(?:does )?(?:it|the library) (?:has|have|holds?)|in (?:the|this|your|my) (?:library|collection|corpus|catalogue|shelf)"
    r"|did|are|were|publish|published|write|written)\b)*+"
)
_KIND = r"(?:papers|abstracts|articles|works|publications)"
ONLY_A_COUNT = re.compile(
    rf"(?:and |but |so )?(?:how many(?: {_KIND})?|what is the number of {_KIND}){_THERE}"
    rf"(?:\s+by\s+(?P<by>[^\d,;?]+?))?{_THERE}\W*"
    rf"|how many {_KIND} (?:has|have|did) (?P<who>[^\d,;?]+?) (?:write|written|publish|published|got)\W*"
    r"|(?:请问|那么?)?(?:这里|库里|库中)?(?:论文|文章)?(?:一共|总共|共)?有?(?:多少|几)篇(?:论文|文章)?(?:吗|呢)?\W*",
    re.IGNORECASE,
)

NO_NAME = re.compile(
    r"(?:he|she|they|we|you|it|him|her|them|us|me|whom?|others?|any(?:one|body)?|some(?:one|body)?|every(?:one|body)|each|all|topics?"
    r"|subjects?|categor(?:y|ies)|areas?|fields?|years?|months?|venues?|conferences?|journals?|types?|kinds?|women|men|people|students)$"
    r"|(?:this|that|these|those|the|his|their|its|my|our|your|another|each|every|more)\s"
    r"|.*\b(?:and|than|authors?|researchers|from)\b|.*&",
    re.IGNORECASE,
)
"""What names nobody of itself (`they`, `topic`), or names two who wrote together, which no filter tells."""

ALL_THAT_PASS = re.compile(
    rf"\W*(?:(?:which|what|list|show|find|give|me|are|all|the|of) )*+{_KIND}{_THERE}(?: are)?\W*|有?哪些(?:论文|文章)\W*",
    re.IGNORECASE,
)
"""A list of papers that is only told apart by filters."""


def read_list(topic: str, said: Filters) -> Filters | None:
    """The filters of a question for all papers that pass them; None where it has a topic as well, or sets none."""
    return said if said and ALL_THAT_PASS.fullmatch(" ".join(topic.split())) else None


def read_count(topic: str, said: Filters, names: Names) -> Filters | None:
    """The filters of a question that asks for no more than how many papers pass them; None where it has a topic as well. `topic`
    is the question without the words that set the filters `said`."""
    categories, rest = read_categories(topic, names, COUNTED_CATEGORY)
    found = ONLY_A_COUNT.fullmatch(" ".join(rest.split()))
    if found is None:
        return None
    by = found["by"] or found["who"]
    if by and NO_NAME.match(by):
        return None
    authors = tuple(re.split(r"\s+or\s+", by)) if by else ()
    return merge_filters(said, Filters(categories=categories, authors=authors))


def counted(question: str, count: int, filters: Filters, papers: Sequence[Retrieved]) -> tuple[Drafted, Verdict]:
    """The sentence that tells how many papers pass, and cites them, or some. `papers` are those retrieved, one at least."""
    shown = papers if count <= len(papers) else papers[:SHOWN]
    places = range(1, len(shown) + 1)
    marks = "".join(f"[{place}]" for place in places)
    if language_of(question) == "zh":
        text = f"{'符合条件的论文' if filters else '库中的论文'}共有 {count} 篇 {marks}。"
    else:
        among = ", these among them" if len(shown) < count else ""
        text = f"The library holds {count:,} {'paper' if count == 1 else 'papers'}{described(filters)}{among} {marks}."
    evidence = tuple(opening(place, found.found) for place, found in zip(places, shown, strict=True))
    return Drafted(text, tuple(places), "metadata"), Verdict("ok", evidence, "counted in the catalogue", 1.0)


def described(filters: Filters) -> str:
    """The filters in words, with a space before them: ` from 2024 at ICML by Kim`."""
    first, last = filters.year_min, filters.year_max
    years = {
        (False, False): "",
        (True, False): f"since {first}",
        (False, True): f"until {last}",
        (True, True): f"from {first}" if first == last else f"from {first} to {last}",
    }[first is not None, last is not None]
    lists = (("at", filters.venues), ("in", filters.categories), ("by", filters.authors))
    said = [years, *(f"{word} {' or '.join(values)}" for word, values in lists if values)]
    return "".join(f" {part}" for part in [*said, "of those chosen" if filters.paper_ids else ""] if part)
