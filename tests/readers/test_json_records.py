"""JSON and JSON Lines: every shape papers come in, what stands around them, faults."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.errors import UnreadableFile
from rag.readers import read, read_stream
from rag.readers.source import HEAD
from rag.types import RawPaper, Rejected
from tests.readers.reading import Pieces, items, paper, papers

COLLECTIONS = Path(__file__).parents[3] / "shared" / "data" / "collections"

BEIR = {"_id": "k1", "title": "Kites", "text": "Kites fly.", "metadata": {"year": 1999}}
PAPER_COPILOT = {
    "id": "a1B2c3D4e5",
    "title": "Kites",
    "track": "main",
    "status": "Poster",
    "keywords": "kites;wind",
    "primary_area": "aerodynamics",
    "abstract": "Kites fly.",
    "author": "Ada Byron;Bo Li",
    "site": "https://openreview.net/forum?id=a1B2c3D4e5",
    "bibtex": "@inproceedings{ byron2024kites, year={2024}, url={https://example.org} }",
}
ARXIV_SNAPSHOT = {
    "id": "2401.00001",
    "authors": "Ada B\\'yron and Bo Li",
    "title": "Kites\n  in the wind",
    "journal-ref": "Kite Lett. 7",
    "doi": "10.1000/KITE",
    "categories": "cs.LG stat.ML",
    "abstract": "  Kites fly\nin wind.\n",
    "versions": [
        {"version": "v1", "created": "Mon, 1 Jan 2024 18:00:00 GMT"},
        {"version": "v2", "created": "Sun, 2 Mar 2025 18:00:00 GMT"},
    ],
    "update_date": "2025-03-04",
    "authors_parsed": [["Býron", "Ada", ""], ["Li", "Bo", "Jr"]],
}
SEMANTIC_SCHOLAR = {
    "paperId": "f00d",
    "corpusId": 77,
    "externalIds": {"DOI": "10.1000/Kite", "ArXiv": "2401.00001", "PubMed": "123", "CorpusId": 77},
    "url": "https://www.semanticscholar.org/paper/f00d",
    "title": "Kites",
    "abstract": "Kites fly.",
    "venue": "",
    "publicationVenue": {"id": "v", "name": "Kite Letters", "type": "journal"},
    "year": 2024,
    "authors": [{"authorId": "1", "name": "Ada Byron"}, {"authorId": None, "name": "Bo Li"}],
    "s2FieldsOfStudy": [{"category": "Physics", "source": "external"}, {"category": "Art", "source": "model"}],
    "tldr": {"model": "m", "text": "Short."},
}
OPENALEX = {
    "id": "https://openalex.org/W42",
    "doi": "https://doi.org/10.1000/kite",
    "display_name": "Kites",
    "publication_year": 2024,
    "ids": {"openalex": "https://openalex.org/W42", "pmid": "https://pubmed.ncbi.nlm.nih.gov/123"},
    "authorships": [{"author": {"display_name": "Ada Byron"}}, {"author": {"display_name": "Bo Li"}}],
    "primary_location": {"source": {"display_name": "Kite Letters"}},
    "abstract_inverted_index": {"fly": [1, 3], "Kites": [0], "and": [2], "abstract.": [4]},
    "is_authors_truncated": True,
    "keywords": [{"display_name": "Wind"}],
    "primary_topic": {"display_name": "Aerodynamics"},
}
OPENREVIEW = {
    "id": "a1B2c3D4e5",
    "forum": "a1B2c3D4e5",
    "cdate": 1_700_000_000_000,
    "content": {
        "title": {"value": "Kites"},
        "abstract": {"value": "Kites fly."},
        "authors": {"value": ["Ada Byron", "Bo Li"]},
        "keywords": {"value": ["kites", "wind"]},
        "venue": {"value": "KITE 2024 poster"},
    },
}
OPENREVIEW_OLD = {**OPENREVIEW, "content": {"title": "Kites", "abstract": "Kites fly.", "authors": ["Ada Byron", "Bo Li"]}}
CROSSREF = {
    "DOI": "10.1000/KITE",
    "title": ["Kites"],
    "abstract": "<jats:p>Kites fly.</jats:p>",
    "author": [{"given": "Ada", "family": "Byron"}, {"given": "Bo", "family": "Li"}],
    "container-title": ["Kite Letters"],
    "issued": {"date-parts": [[2024, 5]]},
}
LIST_OF_50K = {
    "id": "kite2024-1",
    "title": "Kites",
    "abstract": "Kites fly.",
    "tldr": "",
    "keywords": [],
    "authors": ["Ada Byron", "Bo Li"],
    "venue": "KITE",
    "year": 2024,
    "url": "https://example.org/kites",
}

BOTH = ("Ada Byron", "Bo Li")
CASES = [
    (BEIR, RawPaper("Kites fly.", "line 1", title="Kites", year=1999, external_ids=("id:k1",))),
    (
        PAPER_COPILOT,
        RawPaper(
            "Kites fly.",
            "line 1",
            title="Kites",
            authors=BOTH,
            category="aerodynamics",
            year=2024,
            url="https://openreview.net/forum?id=a1B2c3D4e5",
            keywords=("kites", "wind"),
            external_ids=("openreview:a1B2c3D4e5", "id:a1B2c3D4e5"),
        ),
    ),
    (
        ARXIV_SNAPSHOT,
        RawPaper(
            "Kites fly\nin wind.",
            "line 1",
            title="Kites in the wind",
            authors=("Ada Býron", "Bo Li Jr"),
            category="cs.LG",
            venue="Kite Lett. 7",
            year=2024,
            url="https://doi.org/10.1000/kite",
            doi="10.1000/kite",
            keywords=("cs.LG", "stat.ML"),
            external_ids=("doi:10.1000/kite", "arxiv:2401.00001", "id:2401.00001"),
            version=2,
        ),
    ),
    (
        SEMANTIC_SCHOLAR,
        RawPaper(
            "Kites fly.",
            "line 1",
            title="Kites",
            authors=BOTH,
            category="Physics",
            venue="Kite Letters",
            year=2024,
            url="https://www.semanticscholar.org/paper/f00d",
            doi="10.1000/kite",
            keywords=("Physics", "Art"),
            external_ids=("doi:10.1000/kite", "arxiv:2401.00001", "pmid:123", "id:f00d"),
        ),
    ),
    (
        OPENALEX,
        RawPaper(
            "Kites fly and fly abstract.",
            "line 1",
            title="Kites",
            authors=BOTH,
            authors_truncated=True,
            category="Aerodynamics",
            venue="Kite Letters",
            year=2024,
            url="https://doi.org/10.1000/kite",
            doi="10.1000/kite",
            keywords=("Wind",),
            external_ids=("doi:10.1000/kite", "pmid:123", "id:W42"),
        ),
    ),
    (
        OPENREVIEW,
        RawPaper(
            "Kites fly.",
            "line 1",
            title="Kites",
            authors=BOTH,
            venue="KITE 2024 poster",
            year=2024,
            url="https://openreview.net/forum?id=a1B2c3D4e5",
            keywords=("kites", "wind"),
            external_ids=("openreview:a1B2c3D4e5", "id:a1B2c3D4e5"),
        ),
    ),
    (
        OPENREVIEW_OLD,
        RawPaper(
            "Kites fly.",
            "line 1",
            title="Kites",
            authors=BOTH,
            year=2023,
            url="https://openreview.net/forum?id=a1B2c3D4e5",
            external_ids=("openreview:a1B2c3D4e5", "id:a1B2c3D4e5"),
        ),
    ),
    (
        CROSSREF,
        RawPaper(
            "<jats:p>Kites fly.</jats:p>",
            "line 1",
            title="Kites",
            authors=BOTH,
            venue="Kite Letters",
            year=2024,
            url="https://doi.org/10.1000/kite",
            doi="10.1000/kite",
            external_ids=("doi:10.1000/kite",),
        ),
    ),
    (
        LIST_OF_50K,
        RawPaper(
            "Kites fly.",
            "line 1",
            title="Kites",
            authors=BOTH,
            venue="KITE",
            year=2024,
            url="https://example.org/kites",
            external_ids=("id:kite2024-1",),
        ),
    ),
]


@pytest.mark.parametrize(("record", "expected"), CASES)
def test_records_of_known_sources_are_read_field_by_field(record: dict[str, object], expected: RawPaper) -> None:
    assert paper(json.dumps(record)) == expected


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "around",
    [
        lambda records: records,
        lambda records: {"papers": records},
        lambda records: {"count": 2, "results": records, "next": None},
        lambda records: {"meta": {"count": 2}, "data": records},
        lambda records: {"notes": records},
        lambda records: {"status": "ok", "message": {"total": 2, "items": records}},
        lambda records: {"kite2024": records},
        lambda records: {"first": records[0], "second": records[1]},
    ],
)
def test_papers_are_found_wherever_they_are_in_the_file(around: object, indent: int | None) -> None:
    records = [{"title": "A", "abstract": "Kites fly.", "journal": {"name": "K"}}, {"title": "B", "abstract": "Tides fall."}]
    found = papers(json.dumps(around(records), indent=indent))  # type: ignore[operator]  # a table of lambdas
    assert [(p.title, p.abstract, p.where) for p in found] == [("A", "Kites fly.", "record 1"), ("B", "Tides fall.", "record 2")]


def test_papers_filed_under_their_ids_keep_them() -> None:
    found = papers(json.dumps({"k1": {"title": "A", "abstract": "Kites fly."}, "k2": {"id": "own", "abstract": "Tides fall."}}))
    assert [p.external_ids for p in found] == [("id:k1",), ("id:own",)]


@pytest.mark.parametrize(("record", "expected"), CASES)
def test_a_single_paper_printed_over_lines_is_one_paper(record: dict[str, object], expected: RawPaper) -> None:
    assert paper(json.dumps(record, indent=2)) == replace(expected, where="record 1")


def test_a_paper_comes_with_the_papers_it_lists() -> None:
    record = {"title": "A", "abstract": "Kites fly.", "references": [{"title": "B", "abstract": "Tides fall."}]}
    assert {p.title for p in papers(json.dumps(record, indent=2))} == {"A", "B"}


def test_papers_printed_one_after_the_other_are_all_read() -> None:
    assert len(papers(json.dumps(BEIR, indent=2) + json.dumps(BEIR, indent=2))) == 2


def test_a_list_whose_first_papers_lack_an_abstract_is_read() -> None:
    lost, found = items(json.dumps({"items": [{"title": "A"}, {"title": "B", "abstract": "Kites fly."}]}))
    assert lost == Rejected("file", "record 1", "no abstract")
    assert isinstance(found, RawPaper)


def test_bad_lines_are_rejected_and_the_next_ones_read() -> None:
    lines = [json.dumps(BEIR), '{"title": "cut', "[1]", '"text"', "", json.dumps({**BEIR, "text": None}), json.dumps(BEIR)]
    found = items("\n".join(lines))
    assert [item.where for item in found] == ["line 1", "line 2", "line 3", "line 4", "line 6", "line 7"]
    assert [isinstance(item, Rejected) for item in found] == [False, True, True, True, True, False]


def test_a_cut_list_gives_the_papers_before_the_cut_and_one_reject() -> None:
    text = json.dumps([BEIR] * 3)
    *found, last = items(text[:-30])
    assert len(found) == 2
    assert isinstance(last, Rejected)
    assert last.where == "record 3"
    assert "cut or malformed" in last.reason


def test_things_in_a_list_that_are_no_objects_are_rejected() -> None:
    found = items(json.dumps([BEIR, 7, "text", None, [BEIR]]))
    assert [isinstance(item, Rejected) for item in found] == [False, True, True, True, True]


@pytest.mark.parametrize("format", ["json", "jsonl"])
@pytest.mark.parametrize(
    ("escaped", "read_as"),
    [
        ("a\\ud800b", "a\ufffdb"),
        ("a\\udc00b", "a\ufffdb"),
        ("a\\ud800\\ud800b", "a\ufffd\ufffdb"),
        ("a\\ud83d\\ude00b", "a😀b"),
        ("a\\\\ud800b", "a\\ud800b"),
        ("a\\u0000b", "a\ufffdb"),
    ],
)
def test_lone_surrogates_and_nul_become_replacement_characters(escaped: str, read_as: str, format: str) -> None:
    assert paper(f'{{"title": "T", "abstract": "{escaped}"}}', format).abstract == read_as


@pytest.mark.parametrize(("escaped", "read_as"), [("\\ud83d\\ude00", "😀"), ("\\ud800", "\ufffd"), ("\\\\ud800", "\\ud800")])
@pytest.mark.parametrize("before", range(16))
def test_escapes_are_read_whole_where_one_read_ends_and_the_next_begins(before: int, escaped: str, read_as: str) -> None:
    opening = '[{"title": "T", "abstract": "'
    text = f'{opening}{"x" * (HEAD - len(opening) - before)}{escaped}yyyyyyyyyyyyyyyyyyyy"}}]'
    assert paper(text).abstract.strip("xy") == read_as


@settings(deadline=None)
@given(texts=st.lists(st.text(max_size=30), min_size=1), indent=st.sampled_from([None, 1]), size=st.integers(1, 40))
def test_abstracts_come_back_verbatim_however_the_bytes_arrive(texts: list[str], indent: int | None, size: int) -> None:
    data = json.dumps([{"title": "T", "abstract": text} for text in texts], indent=indent).encode()
    stream = Pieces(data[i : i + size] for i in range(0, len(data), size))
    found = list(read_stream(stream, "upload"))  # type: ignore[arg-type]  # a raw stream serves as a BinaryIO
    stored = [text.replace("\0", "\ufffd").strip() for text in texts]
    assert [item.abstract if isinstance(item, RawPaper) else "" for item in found] == stored


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({"name": "kites", "version": "1.0", "dependencies": {"string": "^2"}}),
        json.dumps([{"name": "kites"}]),
        json.dumps({"_id": "q1", "text": "Do kites fly?"}) + "\n" + json.dumps({"_id": "q2", "text": "Do tides?"}),
        json.dumps({"query_id": "q1", "doc_id": "d1", "score": 1}),
        "[]",
        "{}",
        "[1, 2]\n",
        '"text"',
    ],
)
def test_json_without_papers_is_none_of_the_formats(content: str) -> None:
    with pytest.raises(UnreadableFile):
        items(content)


def test_long_texts_with_nothing_but_an_id_are_abstracts() -> None:
    assert paper(json.dumps({"_id": "d1", "text": "Kites fly in any wind. " * 20})).external_ids == ("id:d1",)


@pytest.mark.parametrize(
    ("record", "year"), [({"date": "2021-05-03"}, 2021), ({"published": "20210503"}, 2021), ({"year": 2021.0}, 2021)]
)
def test_the_year_is_read_from_any_kind_of_date(record: dict[str, object], year: int) -> None:
    assert paper(json.dumps({"title": "T", "abstract": "Kites fly.", **record})).year == year


@pytest.mark.parametrize(
    ("record", "ids", "version"),
    [
        ({"url": "http://arxiv.org/abs/2401.00001v3"}, ("arxiv:2401.00001",), 3),
        ({"pdf": "https://arxiv.org/pdf/hep-th/9901001v2.pdf"}, ("arxiv:hep-th/9901001",), 2),
        ({"arxiv_id": "arXiv:2401.00001"}, ("arxiv:2401.00001",), None),
        ({"doi": "10.48550/arXiv.2401.00001"}, ("arxiv:2401.00001",), None),
        ({"doi": "https://doi.org/10.1000/Kite."}, ("doi:10.1000/kite",), None),
        ({"url": "https://dx.doi.org/10.1000/Kite"}, ("doi:10.1000/kite",), None),
        ({"url": "https://www.ncbi.nlm.nih.gov/pubmed/123"}, ("pmid:123",), None),
        ({"pubmed_id": 123}, ("pmid:123",), None),
        ({"paper_id": 7}, ("id:7",), None),
    ],
)
def test_ids_are_normalised_wherever_they_stand(record: dict[str, object], ids: tuple[str, ...], version: int | None) -> None:
    found = paper(json.dumps({"title": "T", "abstract": "Kites fly.", **record}))
    assert (found.external_ids, found.version) == (ids, version)


def lines_of_papers(size: int) -> Iterator[bytes]:
    """About `size` bytes of JSON Lines, a paper each, made as they are read."""
    line = json.dumps({"title": "T", "abstract": "Kites fly in wind. " * 1_000}).encode() + b"\n"
    return (line for _ in range(size // len(line)))


def pieces_of_list(size: int) -> Iterator[bytes]:
    yield b'{"papers": ['
    yield from (line.rstrip() + b"," for line in lines_of_papers(size))
    yield b'{"title": "T", "abstract": "Last."}]}'


@pytest.mark.parametrize(("pieces", "format"), [(lines_of_papers, "jsonl"), (pieces_of_list, "json")])
def test_memory_does_not_grow_with_the_file(pieces: object, format: str) -> None:
    stream = Pieces(pieces(20_000_000))  # type: ignore[operator]  # a table of functions
    tracemalloc.start()
    try:
        count = sum(isinstance(item, RawPaper) for item in read_stream(stream, "upload", format))  # type: ignore[arg-type]  # as above
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count > 1_000
    assert peak < 4_000_000


def test_a_text_without_end_is_given_up_rather_than_collected() -> None:
    pieces = chain([b'[{"title": "A", "abstract": "Kites fly."}, {"title": "B", "abstract": "'], repeat(b"x" * 60_000, 200))
    stream = Pieces(pieces)
    found, lost = read_stream(stream, "upload")  # type: ignore[arg-type]  # a raw stream serves as a BinaryIO
    assert isinstance(found, RawPaper)
    assert isinstance(lost, Rejected)
    assert "4,194,304" in lost.reason


@pytest.mark.skipif(not COLLECTIONS.is_dir(), reason="the test collections are not at ../shared/data/collections")
@pytest.mark.parametrize(
    ("name", "with_abstract", "without"),
    [("cacm", 1587, 1617), ("cranfield", 1398, 2), ("ml-tldr", 1872, 0), ("pubmedqa", 1000, 0), ("scifact208", 1182, 0)],
)
def test_beir_collections_are_read_whole(name: str, with_abstract: int, without: int) -> None:
    found = list(read(COLLECTIONS / name / "corpus.jsonl.gz"))
    assert sum(isinstance(item, RawPaper) for item in found) == with_abstract
    assert [item.reason for item in found if isinstance(item, Rejected)] == ["no abstract"] * without
    for other in ("queries.jsonl", "qrels.jsonl"):
        with pytest.raises(UnreadableFile):
            next(read(COLLECTIONS / name / other))
