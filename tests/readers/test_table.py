"""CSV, TSV and their cousins."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.errors import UnreadableFile
from rag.types import RawPaper, Rejected
from tests.readers.reading import items, paper, papers

EXPECTED = RawPaper(
    'Kites, "all" of them,\nfly.',
    "line 2",
    title="Kites",
    authors=("Ada Byron", "Bo Li"),
    venue="Kite Letters",
    year=2024,
    url="https://doi.org/10.1000/kite",
    doi="10.1000/kite",
    keywords=("wind", "string"),
    external_ids=("doi:10.1000/kite", "id:7"),
)


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
@pytest.mark.parametrize(
    "names",
    [
        ("id", "title", "abstract", "authors", "venue", "year", "doi", "keywords"),
        ("Key", "Title", "Abstract Note", "Author", "Publication Title", "Publication Year", "DOI", "Manual Tags"),
        ("paper_id", "Document Title", "Abstract", "Authors", "Source title", "Date", "doi", "Author Keywords"),
    ],
)
def test_columns_are_known_by_their_usual_names(names: tuple[str, ...], delimiter: str, line_end: str) -> None:
    text = io.StringIO()
    cells = ["7", "Kites", EXPECTED.abstract, "Ada Byron; Bo Li", "Kite Letters", "2024-05-01", "10.1000/KITE", "wind; string"]
    csv.writer(text, delimiter=delimiter, lineterminator=line_end).writerows([names, cells])
    assert paper("\ufeff" + text.getvalue()) == EXPECTED


def test_a_row_is_named_by_its_first_line() -> None:
    found = items('title,abstract\nA,"Two\nlines"\nB,Kites fly.\nC,\n\nD,Tides, fall.\nE,Moons turn.\n')
    assert [item.where for item in found] == ["line 2", "line 4", "line 5", "line 7", "line 8"]
    assert [item.reason for item in found if isinstance(item, Rejected)] == [
        "no abstract",
        "has 3 cells where the header has 2; put cells with a comma into quotes",
    ]


def test_a_row_that_stops_early_has_empty_cells() -> None:
    assert paper("title,abstract,year\nA,Kites fly.\n").year is None


def test_a_cell_beyond_all_limits_is_rejected_and_the_next_row_read() -> None:
    lost, found = items(f"title,abstract\nA,{'x' * 200_000}\nB,Kites fly.\n")
    assert isinstance(lost, Rejected)
    assert lost.where == "line 2"
    assert isinstance(found, RawPaper)


@pytest.mark.parametrize(
    "text", ["a,b\n1,2\n", "abstract\nKites fly.\n", "query-id\tcorpus-id\tscore\n1\t2\t1\n", "id,text\n1,Do kites fly?\n"]
)
def test_a_table_without_a_column_for_abstracts_is_none_of_the_formats(text: str) -> None:
    with pytest.raises(UnreadableFile):
        items(text)


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=20)


@settings(deadline=None)
@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
def test_cells_come_back_verbatim(rows: list[tuple[str, str]]) -> None:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([("title", "abstract"), *rows])
    found = items(text.getvalue())
    assert [item.abstract for item in found if isinstance(item, RawPaper)] == [a.strip() for _, a in rows if a.strip()]


def test_every_row_is_a_paper() -> None:
    assert len(papers("title,abstract\n" + "A,Kites fly.\n" * 1_000)) == 1_000
