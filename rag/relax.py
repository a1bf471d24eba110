"""What to say when a filter matches no paper: which of its parts to drop for the nearest papers that there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rag.filters import Names
from rag.types import Filters

YEARS = ("year_min", "year_max")

WORDS = {
    ("year_min",): "the earliest year",
    ("year_max",): "the latest year",
    YEARS: "the years",
    ("venues",): "the venue",
    ("categories",): "the category",
    ("authors",): "the author",
    ("paper_ids",): "the choice of papers",
}
"""The parts of a filter that can be dropped."""

FIELDS = {YEARS: "a year", ("venues",): "a venue", ("categories",): "a category"}
"""Those that are about a field which no paper may have, and that field."""


def relaxation(filters: Filters, matching: Callable[[Filters], Sequence[str]], names: Names) -> str:
    """One sentence: the filter matches nothing, and what to drop so that the fewest papers above none pass. `names` tells which
    fields no paper has at all; those are dropped first, since nothing else helps."""
    lacking = [parts for parts in FIELDS if is_set(filters, parts) and not held(parts, names)]
    if lacking:
        return without_fields(filters, lacking, matching)
    tried = {parts: matching(without(filters, parts)) for parts in WORDS if is_set(filters, parts)}
    ways = {parts: len(passing) for parts, passing in tried.items() if passing and without(filters, parts)}
    if not ways:
        return "No paper passes the filters; ask again without them."
    nearest = min(ways, key=lambda parts: ways[parts])
    return f"No paper passes the filters; without {WORDS[nearest]}, {ways[nearest]:,} would."


def without_fields(filters: Filters, lacking: Sequence[tuple[str, ...]], matching: Callable[[Filters], Sequence[str]]) -> str:
    """The same where no paper has the fields `lacking`."""
    fields, dropped = (" or ".join(FIELDS[parts] for parts in lacking), " and ".join(WORDS[parts] for parts in lacking))
    passing = len(matching(without(filters, *lacking)))
    rest = f"without {dropped}, {passing:,} would" if passing else "the other filters let none pass either"
    return f"No paper here has {fields}, so none passes the filters; {rest}."


def is_set(filters: Filters, parts: Sequence[str]) -> bool:
    """Whether one of these parts narrows anything."""
    return any(getattr(filters, part) not in (None, ()) for part in parts)


def held(parts: Sequence[str], names: Names) -> bool:
    """Whether any paper has the field that these parts are about."""
    return bool({YEARS: names.has_years, ("venues",): names.venues, ("categories",): names.categories}[tuple(parts)])


def without(filters: Filters, *dropped: Sequence[str]) -> Filters:
    """`filters` with these parts unset."""
    return replace(filters, **{part: getattr(Filters(), part) for parts in dropped for part in parts})
