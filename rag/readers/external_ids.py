"""Ids that name a work outside the file it was read from, found in id fields and in links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rag.types import unique

ARXIV = r"(?P<arxiv>\d{2}(?:0[1-9]|1[0-2])\.\d{4,5}|[a-z][a-z-]+(?:\.[a-z]{2})?/\d{7})(?:v(?P<version>\d{1,3}))?"
"""arXiv's ids since 2007 (`2401.00001`) and before (`hep-th/9901001`), https://info.arxiv.org/help/arxiv_identifier.html"""

ARXIV_ID = re.compile(rf"(?:arxiv:\s*|.*arxiv\.org/(?:abs|pdf|html)/)?{ARXIV}(?:\.pdf)?", re.IGNORECASE)
DOI = re.compile(r"10\.\d{4,9}/\S+")
LINKS = (
    ("arxiv", re.compile(rf"arxiv\.org/(?:abs|pdf|html)/{ARXIV}", re.IGNORECASE)),
    ("arxiv", re.compile(rf"10\.48550/arxiv\.{ARXIV}", re.IGNORECASE)),
    ("doi", re.compile(r"doi\.org/(?P<doi>10\.\d{4,9}/[^\s?#]+)", re.IGNORECASE)),
    ("pmid", re.compile(r"(?:pubmed\.ncbi\.nlm\.nih\.gov|ncbi\.nlm\.nih\.gov/pubmed)/(?P<pmid>\d{1,9})\b", re.IGNORECASE)),
    ("openreview", re.compile(r"openreview\.net/(?:forum|pdf|attachment|references/pdf)\?(?:.*&)?id=(?P<openreview>[\w-]{6,})")),
)
ADDRESSES = {
    "doi": "https://doi.org/",
    "arxiv": "https://arxiv.org/abs/",
    "pmid": "https://pubmed.ncbi.nlm.nih.gov/",
    "openreview": "https://openreview.net/forum?id=",
}


def doi_of(text: str | None) -> str | None:
    """`10.1000/x` of `https://doi.org/10.1000/X`, `doi:10.1000/X` or the like; None if there is no DOI in it."""
    match = DOI.search(text or "")
    return match[0].rstrip(".,;").lower() if match else None


def ids_in(link: str) -> Iterator[str]:
    """The ids that a link gives away: `arxiv:…`, `doi:…`, `pmid:…`, `openreview:…`."""
    for kind, pattern in LINKS:
        if match := pattern.search(link):
            name = match[kind]
            yield f"{kind}:{name if kind == 'openreview' else name.lower().rstrip('.,;')}"


def arxiv_id(text: str | None) -> str | None:
    """`arxiv:2401.00001` of `2401.00001v2`, `arXiv:2401.00001` or a link to it; None if it is no arXiv id."""
    match = ARXIV_ID.fullmatch((text or "").strip())
    return f"arxiv:{match['arxiv'].lower()}" if match else None


def arxiv_version(texts: Iterable[str]) -> int | None:
    """The highest version that an arXiv id or link among `texts` names."""
    matches = [re.search(ARXIV, text, re.IGNORECASE) for text in texts]
    return max((int(match["version"]) for match in matches if match and match["version"]), default=None)


def pmid_of(text: str | None) -> str | None:
    """`pmid:123` of `123`, `PMID: 123` or a link to PubMed."""
    match = re.search(r"(?:^|[/:\s])(\d{1,9})(?:\.0|/)?$", (text or "").strip())
    return f"pmid:{match[1]}" if match else None


def openreview_id(text: str | None) -> str | None:
    """`openreview:aB3…` of a forum's id."""
    return f"openreview:{text}" if text and re.fullmatch(r"[\w-]{6,}", text) else None


def address_of(external_ids: Iterable[str]) -> str | None:
    """Where the work can be read, from the first of its ids that says so."""
    for name in external_ids:
        kind, _, value = name.partition(":")
        if kind in ADDRESSES:
            return ADDRESSES[kind] + value
    return None


def all_ids(doi: str | None, links: Iterable[str], given: Iterable[str | None], own: str | None) -> tuple[str, ...]:
    """Every id, each once: the DOI (one of arXiv's is an arXiv id), ids given as such, those in links, the file's own."""
    of_doi = list(ids_in(f"doi.org/{doi}"))[:1] if doi else []
    of_links = [name for link in links for name in ids_in(link)]
    return unique([name for name in (*of_doi, *given, *of_links, f"id:{own}" if own else None) if name])
