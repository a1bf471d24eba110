"""Which format a file is in, told by its content."""

from __future__ import annotations

from rag.readers.search_page import looks_like_search_page


def detect(text: str) -> str | None:
    """The name of the format of a file that begins with `text`, None if it is none we read."""
    return "search-page" if looks_like_search_page(text) else None
