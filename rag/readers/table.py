"""Tables with a header line: CSV, TSV, and their cousins with `;` or `|`."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from rag.readers.named_fields import Record, has_abstract, papers_of
from rag.readers.source import Source
from rag.types import RawPaper, Rejected

DELIMITERS = ",\t;|"


def read_table(source: Source) -> Iterator[RawPaper | Rejected]:
    """A paper a row, its fields named by the header line."""
    return papers_of(source, _rows(source))


def looks_like_table(text: str) -> bool:
    """A header of at least two columns, one of them for an abstract."""
    columns = _cells(text.lstrip("\n").partition("\n")[0])
    return len(columns) > 1 and has_abstract(dict.fromkeys(columns, ""))


def _cells(header: str) -> list[str]:
    try:
        return next(csv.reader([header], delimiter=_delimiter(header)), [])
    except csv.Error:
        return []


def _delimiter(header: str) -> str:
    return max(DELIMITERS, key=header.count)


def _rows(source: Source) -> Iterator[Record | Rejected]:
    lines = (line + "\n" for line in source.lines())
    header = next((line for line in lines if line.strip()), "")
    columns = _cells(header)
    rows = csv.reader(lines, delimiter=_delimiter(header))
    while True:
        where = f"line {rows.line_num + 2}"
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield source.rejected(where, f"is no row of the table ({error})")
            continue
        if row is None:
            return
        if len(row) > len(columns):
            yield source.rejected(
                where, f"has {len(row)} cells where the header has {len(columns)}; put cells with a comma into quotes"
            )
        elif row:
            yield where, dict(zip(columns, row, strict=False))
