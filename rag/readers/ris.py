"""RIS, as reference managers and publishers export it, parsed by rispy."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rispy import RisParser  # type: ignore[import-untyped]  # it ships no types

from rag.readers.entries import Entry, entries
from rag.readers.named_fields import Record, papers_of
from rag.readers.source import Source
from rag.types import RawPaper, Rejected

FIRST = re.compile(r"TY  ?- ?\w")


def read_ris(source: Source) -> Iterator[RawPaper | Rejected]:
    """A paper from each `TY  -` to the next."""
    return papers_of(source, (_record(source, entry) for entry in entries(source, starts=FIRST.match)))


def looks_like_ris(text: str) -> bool:
    """The first line that says anything says the type of a reference."""
    return bool(FIRST.match(text.lstrip()))


def _record(source: Source, entry: Entry | Rejected) -> Record | Rejected:
    if isinstance(entry, Rejected):
        return entry
    lines = [re.sub(r"^([A-Z][A-Z0-9]) - ?", r"\1  - ", line) for line in entry.lines if line.strip()]
    found = RisParser(skip_unknown_tags=True).parse_lines(iter([*lines, "ER  - "]))
    where = f"line {entry.line}"
    return (where, found[0]) if found else source.rejected(where, "is no RIS entry")
