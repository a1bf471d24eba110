"""Cuts a text of entries (RIS, NBIB, BibTeX) into single ones, so that no parser has to hold the whole file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rag.readers.source import Source

LONGEST_ENTRY = 1 << 20
"""Characters kept of one entry: ten times the longest abstract taken."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The lines of one entry; `line` is the number of the first."""

    line: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def entries(source: Source, starts: Callable[[str], object]) -> Iterator[Entry]:
    """From each line that `starts` says begins an entry up to the next such line. What comes before the first is left out."""
    first, size = 0, 0
    held: list[str] = []
    for number, line in enumerate(source.lines(), start=1):
        if starts(line):
            if held:
                yield Entry(first, tuple(held))
            first, size, held = number, 0, []
        if first and size < LONGEST_ENTRY:
            held.append(line)
            size += len(line) + 1
    if held:
        yield Entry(first, tuple(held))
