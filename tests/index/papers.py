"""Papers for the index tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag.catalogue import Catalogue
from rag.database import open_database, sqlite_url
from rag.index.indexes import Indexes, open_indexes
from rag.ingest import Models, Source, ingest
from rag.types import IndexedPaper, Paper, RawPaper, Rejected
from tests.shelf_of_papers import HashEmbedder

EMBEDDER = HashEmbedder()


def indexed(paper_id: str, abstract: str, **fields: Any) -> IndexedPaper:  # Any: the fields of Paper
    """A paper as the catalogue gives it, without sentences or vectors."""
    return IndexedPaper(Paper(paper_id, abstract, **fields), abstract, ())


def about(n: int) -> RawPaper:
    """The n-th of a row of papers, each with a word of its own."""
    return RawPaper(
        abstract=f"We measure how word{n} behaves in cold water. The result number {n} holds for all depths we tried.",
        where=f"line {n}",
        external_ids=(f"doi:10.5555/paper.{n}",),
    )


def first_sentence(n: int) -> str:
    """Of the n-th paper, as no other has it."""
    return f"We measure how word{n} behaves in cold water."


def take(catalogue: Catalogue, first: int, last: int) -> list[str]:
    """Adds papers `first` to `last` - 1 with their vectors; their ids."""
    papers: list[RawPaper | Rejected] = [about(n) for n in range(first, last)]

    def read() -> Iterator[RawPaper | Rejected]:
        return iter(papers)

    ingest(catalogue, Models(EMBEDDER), [Source("test", read)])
    return [catalogue.resolve(f"10.5555/paper.{n}") for n in range(first, last)]


def open_catalogue(data: Path) -> Catalogue:
    """The catalogue in a data folder."""
    return Catalogue(open_database(sqlite_url(data / "catalogue.db")))


def indexes_of(catalogue: Catalogue, data: Path, chroma_url: str = "") -> Indexes:
    """The indexes in a data folder."""
    return open_indexes(catalogue, data / "index", chroma_url, EMBEDDER.model)


def found_densely(indexes: Indexes, catalogue: Catalogue, paper_id: str, k: int = 3) -> list[str]:
    """Ids found by a paper's own vector."""
    (paper,) = catalogue.indexed([paper_id], EMBEDDER.model)
    assert paper.vectors is not None
    return [found for found, _ in indexes.dense.search(paper.vectors[0], k)]
