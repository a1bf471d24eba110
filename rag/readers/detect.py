"""Which format a file is in, told by its content."""

from __future__ import annotations

from rag.readers.json_records import looks_like_json, looks_like_jsonl
from rag.readers.search_page import looks_like_search_page
from rag.readers.table import looks_like_table

SIGNS = (
    ("jsonl", looks_like_jsonl),
    ("json", looks_like_json),
    ("csv", looks_like_table),
    ("search-page", looks_like_search_page),
)


def detect(text: str) -> str | None:
    """The name of the format of a file that begins with `text`, None if it is none we read."""
    return next((name for name, looks_like_it in SIGNS if looks_like_it(text)), None)
