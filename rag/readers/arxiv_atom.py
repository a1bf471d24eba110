"""Atom feeds of arXiv's API, https://info.arxiv.org/help/api/user-manual.html#_details_of_atom_results_returned"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from rag.readers.external_ids import address_of, all_ids, arxiv_id, arxiv_version, doi_of
from rag.readers.named_fields import year_in
from rag.readers.source import Source
from rag.readers.xml_records import records, text_at, texts_at
from rag.types import RawPaper, Rejected


def read_arxiv_atom(source: Source) -> Iterator[RawPaper | Rejected]:
    """A paper an `entry`; an entry without an arXiv id (the API's error messages have none) is Rejected."""
    return records(source, frozenset(["entry"]), _paper)


def looks_like_arxiv_atom(text: str) -> bool:
    """XML that begins with a feed or an entry and speaks of arXiv."""
    return text.lstrip().startswith("<") and bool(re.search(r"<(\w+:)?(feed|entry)\b", text)) and "arxiv.org" in text


def _paper(entry: Element, where: str) -> RawPaper | str:
    address = text_at(entry, "{*}id")
    name = arxiv_id(address)
    if name is None:
        return "has no arXiv id"
    categories = [
        category.get("term", "") for tag in ("primary_category", "category") for category in entry.iterfind(f"{{*}}{tag}")
    ]
    categories = list(dict.fromkeys(filter(None, categories)))
    doi = doi_of(text_at(entry, "{*}doi"))
    ids = all_ids(doi, [], [name], None)
    summary = entry.find("{*}summary")
    return RawPaper(
        abstract="".join(summary.itertext()) if summary is not None else "",
        where=where,
        title=text_at(entry, "{*}title"),
        authors=tuple(texts_at(entry, "{*}author/{*}name")),
        category=categories[0] if categories else None,
        venue=text_at(entry, "{*}journal_ref"),
        year=year_in([text_at(entry, "{*}published"), text_at(entry, "{*}updated")]),
        url=address_of([name]),
        doi=doi,
        keywords=tuple(categories) if len(categories) > 1 else (),
        external_ids=ids,
        version=arxiv_version([address or ""]),
    )
