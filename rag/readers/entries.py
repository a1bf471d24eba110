"""Cuts a text of entries (RIS, NBIB, BibTeX) into single ones, so that no parser has to hold the whole file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rag.readers.source import Source
from rag.types import Rejected

LONGEST_ENTRY = 250_000
"""Characters: an abstract as long as any taken, and room for thousands of authors."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The lines of one entry; `line` is the number of the first."""

    line: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def entries(source: Source, starts: Callable[[str], object]) -> Iterator[Entry | Rejected]:
    """From each line that `starts` says begins an entry up to the next such line; what comes before the first is left out.

    An entry of more than LONGEST_ENTRY characters is Rejected (bibtexparser would work on one of a million for minutes).
    """
    first, size = 0, 0
    held: list[str] = []
    for number, line in enumerate(source.lines(), start=1):
        if starts(line):
            if first:
                yield _entry(source, first, size, held)
            first, size, held = number, 0, []
        if first:
            size += len(line) + 1
            if size <= LONGEST_ENTRY:
                held.append(line)
    if first:
        yield _entry(source, first, size, held)


def _entry(source: Source, first: int, size: int, lines: list[str]) -> Entry | Rejected:
    if size > LONGEST_ENTRY:
        return source.rejected(f"line {first}", f"the entry is over {LONGEST_ENTRY:,} characters")
    return Entry(first, tuple(lines))
