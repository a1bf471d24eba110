"""Rows of the catalogue's tables as the values they stand for, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, Select, and_, select

from rag.database import papers, sentence_vectors, whole_vectors
from rag.identity import Record, area_key, author_key, match_key, surname_key
from rag.types import IndexedPaper, Paper, Sentence, Vectors

AT_ONCE = 1000
"""How many values one statement is given in an IN list."""

PAPER = (
    papers.c.paper_id,
    papers.c.abstract,
    papers.c.title,
    papers.c.authors,
    papers.c.authors_truncated,
    papers.c.category,
    papers.c.venue,
    papers.c.year,
    papers.c.url,
    papers.c.doi,
    papers.c.keywords,
)
LIVE = papers.c.deleted.is_(False)


def with_vectors(model: str) -> Select[Any]:  # Any: see PAPER for the columns
    whole, parts = whole_vectors, sentence_vectors
    return (
        select(*PAPER, papers.c.text, papers.c.sentences, papers.c.text_hash, whole.c.vector, parts.c.vectors)
        .outerjoin(whole, and_(whole.c.text_hash == papers.c.text_hash, whole.c.model == model))
        .outerjoin(parts, and_(parts.c.text_hash == papers.c.text_hash, parts.c.model == model))
    )


def paper_row(record: Record, revision: int, arrival: int) -> dict[str, object]:
    paper = record.paper
    return {
        "arrival": arrival,
        "paper_id": paper.paper_id,
        "revision": revision,
        "changed": revision,
        "deleted": False,
        "version": record.version,
        "text_hash": record.text_hash,
        "year": paper.year,
        "authors_truncated": paper.authors_truncated,
        "venue": paper.venue,
        "category": paper.category,
        "title": paper.title,
        "authors": json.dumps(paper.authors, ensure_ascii=False),
        "url": paper.url,
        "doi": paper.doi,
        "keywords": json.dumps(paper.keywords, ensure_ascii=False),
        "abstract": paper.abstract,
        "text": record.text,
        "sentences": json.dumps([(s.start, s.end, s.text) for s in record.sentences], ensure_ascii=False),
    }


def facets_of(paper: Paper) -> set[tuple[str, str]]:
    found = {("author", author_key(author)) for author in paper.authors}
    found |= {("surname", surname_key(author)) for author in paper.authors}
    if paper.venue:
        found.add(("venue", match_key(paper.venue)))
    if paper.category:
        found |= {("category", match_key(paper.category)), ("area", area_key(paper.category))}
    return found


def read_paper(row: Row[Any]) -> Paper:  # Any: see PAPER for the columns
    return Paper(
        paper_id=row.paper_id,
        abstract=row.abstract,
        title=row.title,
        authors=tuple(json.loads(row.authors)),
        authors_truncated=row.authors_truncated,
        category=row.category,
        venue=row.venue,
        year=row.year,
        url=row.url,
        doi=row.doi,
        keywords=tuple(json.loads(row.keywords)),
    )


def read_sentences(stored: str) -> tuple[Sentence, ...]:
    return tuple(Sentence(start, end, text) for start, end, text in json.loads(stored))


def read_indexed(row: Row[Any]) -> IndexedPaper:  # Any: see with_vectors for the columns
    sentences = read_sentences(row.sentences)
    blob = row.vector and row.vector + (row.vectors or b"")
    vectors = read_vectors(blob, len(blob) // len(row.vector)) if blob else None
    return IndexedPaper(read_paper(row), row.text, sentences, vectors)


def read_vectors(blob: bytes, rows: int) -> Vectors:
    """Shape (rows, dimension), unit length again after the rounding to float16."""
    halves: NDArray[np.float16] = np.frombuffer(blob, np.float16).reshape(rows, -1)
    vectors = halves.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    vectors /= np.maximum(lengths, np.float32(1e-12))[:, None]
    return vectors


def rows_of(connection: Connection, query: Select[Any], column: Any, values: Sequence[str]) -> list[Row[Any]]:
    """All rows of `query` whose `column` has one of `values`, however many those are. (Any: SQLAlchemy's types of columns.)"""
    return [row for batch in batches(values) for row in connection.execute(query.where(column.in_(batch)))]


def batches(values: Sequence[str]) -> Iterator[Sequence[str]]:
    distinct = list(dict.fromkeys(values))
    return (distinct[start : start + AT_ONCE] for start in range(0, len(distinct), AT_ONCE))
