"""Rows of the catalogue's tables as the values they stand for, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
from sqlalchemy import BindParameter, Column, Connection, Row, Select, and_, bindparam, select

from rag.database import papers, sentence_vectors, whole_vectors
from rag.identity import Record, area_key, author_key, match_key, surname_key
from rag.types import IndexedPaper, Paper, Sentence, VectorBlock, Vectors

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
AMONG: BindParameter[Sequence[str]] = bindparam("among", expanding=True)
HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
"""Every float16 by its bits as float32: looking numbers up takes half as long as converting them."""
LIVE = papers.c.deleted.is_(False)


def with_vectors(model: str) -> Select[Any]:  # Any: see PAPER for the columns
    return _joined(model, *PAPER, papers.c.text, papers.c.sentences, papers.c.text_hash)


@cache
def papers_with_vectors(model: str) -> Select[Any]:  # Any: see with_vectors for the columns
    """Of the papers whose ids are AMONG those asked for."""
    return with_vectors(model).where(LIVE, papers.c.paper_id.in_(AMONG))


@cache
def vectors_alone(model: str) -> Select[Any]:  # Any: their ids and vectors
    """Of the papers, AMONG those asked for, that have some."""
    return _joined(model, papers.c.paper_id).where(LIVE, papers.c.paper_id.in_(AMONG), whole_vectors.c.vector.is_not(None))


def _joined(model: str, *columns: Column[Any]) -> Select[Any]:  # Any: as the columns are
    """These columns, and the vectors. Outer joins, since SQLite begins an inner one at the vectors (500 times as slow)."""
    whole, parts = whole_vectors, sentence_vectors
    return (
        select(*columns, whole.c.vector, parts.c.vectors)
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


def read_block(rows: Sequence[Row[Any]]) -> VectorBlock:  # Any: see vectors_alone for the columns
    if not rows:
        return VectorBlock((), (), np.zeros((0, 0), np.float32))
    paper_ids, wholes, parts = zip(*rows, strict=True)
    blobs = [whole + (rest or b"") for whole, rest in zip(wholes, parts, strict=True)]
    ends = list(accumulate(len(blob) // len(wholes[0]) for blob in blobs))
    return VectorBlock(paper_ids, (0, *ends[:-1]), read_vectors(b"".join(blobs), ends[-1]))


def read_vectors(blob: bytes, rows: int) -> Vectors:
    """Shape (rows, dimension), unit length again after the rounding to float16."""
    vectors = np.take(HALVES, np.frombuffer(blob, np.uint16).reshape(rows, -1))
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    vectors /= np.maximum(lengths, np.float32(1e-12))[:, None]
    return vectors


def rows_of(connection: Connection, query: Select[Any], column: Any, values: Sequence[str]) -> list[Row[Any]]:
    """All rows of `query` whose `column` has one of `values`, however many those are. (Any: SQLAlchemy's types of columns.)"""
    return rows_among(connection, query.where(column.in_(AMONG)), values)


def rows_among(connection: Connection, query: Select[Any], values: Sequence[str]) -> list[Row[Any]]:
    """All rows of `query`, in which AMONG stands for `values`, however many those are. A query that is built once and used again
    spares SQLAlchemy a millisecond."""
    return [row for batch in batches(values) for row in connection.execute(query, {"among": batch})]


def batches(values: Sequence[str]) -> Iterator[Sequence[str]]:
    distinct = list(dict.fromkeys(values))
    return (distinct[start : start + AT_ONCE] for start in range(0, len(distinct), AT_ONCE))
