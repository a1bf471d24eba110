"""What to say when a filter matches no paper: which of its parts to drop for the nearest papers that there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

from rag.types import Filters

WORDS = {
    "year_min": "the earliest year",
    "year_max": "the latest year",
    "venues": "the venue",
    "categories": "the category",
    "authors": "the author",
    "paper_ids": "the choice of papers",
}


def relaxation(filters: Filters, matching: Callable[[Filters], Sequence[str]]) -> str:
    """One sentence: the filter matches nothing, and the single part whose removal leaves the fewest papers above none."""
    tried = {part.name: len(matching(without(filters, part.name))) for part in fields(filters) if getattr(filters, part.name)}
    open_ways = {name: count for name, count in tried.items() if count}
    if len(tried) < 2 or not open_ways:
        return "No paper passes the filters; ask again without them."
    nearest = min(open_ways, key=lambda name: open_ways[name])
    return f"No paper passes the filters; without {WORDS[nearest]}, {open_ways[nearest]} would."


def without(filters: Filters, part: str) -> Filters:
    """`filters` with one part unset."""
    return replace(filters, **{part: getattr(Filters(), part)})
