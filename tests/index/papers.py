"""Papers for the index tests."""

from __future__ import annotations

from typing import Any

from rag.types import IndexedPaper, Paper


def indexed(paper_id: str, abstract: str, **fields: Any) -> IndexedPaper:  # Any: the fields of Paper
    """A paper as the catalogue gives it, without sentences or vectors."""
    return IndexedPaper(Paper(paper_id, abstract, **fields), abstract, ())
