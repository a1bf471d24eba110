"""Retrieval sets as BEIR folders: `corpus.jsonl[.gz]`, `queries.jsonl`, `qrels.jsonl`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag.errors import InputError
from rag.types import RawPaper, Rejected


@dataclass(frozen=True, slots=True)
class Query:
    """A TREC query."""

    query_id: str
    text: str


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """Queries with their qrels: query_id → doc_id → grade. `corpus` is the file of its documents."""

    corpus: Path
    queries: tuple[Query, ...]
    qrels: dict[str, dict[str, int]]


def read_retrieval_set(folder: Path) -> RetrievalSet:
    """Reads a BEIR folder; its corpus stays on disk. Raises InputError naming the file and line that is wrong."""
    corpus = next((file for name in ("corpus.jsonl", "corpus.jsonl.gz") if (file := folder / name).exists()), None)
    if corpus is None:
        raise InputError(f"{folder} holds no corpus.jsonl or corpus.jsonl.gz: give a BEIR folder.")
    queries = tuple(Query(str(row["_id"]), str(row["text"])) for row in rows(folder / "queries.jsonl", "_id", "text"))
    qrels: dict[str, dict[str, int]] = {}
    for row in rows(folder / "qrels.jsonl", "query_id", "doc_id", "score"):
        qrels.setdefault(str(row["query_id"]), {})[str(row["doc_id"])] = int(row["score"])
    if not queries or not qrels:
        raise InputError(f"{folder} holds no queries or no qrels.")
    return RetrievalSet(corpus, queries, qrels)


def documents(corpus: Path) -> Iterator[RawPaper | Rejected]:
    """The corpus as papers, their ids as aliases `id:…`. A document with a title only (half of CACM) has it for its text."""
    for number, row in enumerate(rows(corpus, "_id"), start=1):
        title, text = str(row.get("title") or ""), str(row.get("text") or "")
        if not (title or text).strip():
            yield Rejected(str(corpus), f"record {number}", "neither title nor text")
            continue
        yield RawPaper(
            abstract=text.strip() or title.strip(),
            title=title.strip() or None if text.strip() else None,
            where=f"record {number}",
            authors=tuple(filter(None, [str(row.get("authors") or "").strip()])),
            keywords=tuple(filter(None, [str(row.get("keywords") or "").strip()])),
            external_ids=(f"id:{row['_id']}",),
        )


def rows(path: Path, *keys: str) -> Iterator[dict[str, Any]]:  # Any: JSON values, checked by the callers
    """The objects of a JSON Lines file, plain or gzipped, each with `keys`. Raises InputError."""
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield checked(json.loads(line), keys, f"{path}, line {number}")
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON Lines: {error}") from error


def checked(row: Any, keys: tuple[str, ...], where: str) -> dict[str, Any]:  # Any: as above
    """`row`, an object that has `keys`. Raises InputError."""
    if not isinstance(row, dict) or any(key not in row for key in keys):
        raise InputError(f"{where}: an object with {', '.join(keys)} is wanted.")
    return row
