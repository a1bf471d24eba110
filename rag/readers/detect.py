"""Which format a file is in, told by its content."""

from __future__ import annotations

from rag.readers.arxiv_atom import looks_like_arxiv_atom
from rag.readers.bibtex import looks_like_bibtex
from rag.readers.json_records import looks_like_json, looks_like_jsonl
from rag.readers.nbib import looks_like_nbib
from rag.readers.pubmed_xml import looks_like_pubmed_xml
from rag.readers.ris import looks_like_ris
from rag.readers.search_page import looks_like_search_page
from rag.readers.table import looks_like_table

SIGNS = (
    ("arxiv-atom", looks_like_arxiv_atom),
    ("pubmed-xml", looks_like_pubmed_xml),
    ("nbib", looks_like_nbib),
    ("ris", looks_like_ris),
    ("jsonl", looks_like_jsonl),
    ("json", looks_like_json),
    ("bibtex", looks_like_bibtex),
    ("csv", looks_like_table),
    ("search-page", looks_like_search_page),
)


def detect(text: str) -> str | None:
    """The name of the format of a file that begins with `text`, None if it is none we read."""
    return next((name for name, looks_like_it in SIGNS if looks_like_it(text)), None)
