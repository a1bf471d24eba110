"""PubMed's MEDLINE format (`.nbib`), https://pubmed.ncbi.nlm.nih.gov/help/#pubmed-format"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from rag.readers.entries import Entry, entries
from rag.readers.external_ids import address_of, all_ids, doi_of, pmid_of
from rag.readers.named_fields import year_in
from rag.readers.source import Source
from rag.types import RawPaper, Rejected, unique

TAGGED = re.compile(r"([A-Z]{2,4}) *- ?(.*)")
FIRST = re.compile(r"PMID *- ?\d")


def read_nbib(source: Source) -> Iterator[RawPaper | Rejected]:
    """A paper from each `PMID-` to the next."""
    return (entry if isinstance(entry, Rejected) else _paper(entry) for entry in entries(source, starts=FIRST.match))


def looks_like_nbib(text: str) -> bool:
    """Tagged lines, the first of them the PMID."""
    return bool(FIRST.match(text.lstrip()))


def _paper(entry: Entry) -> RawPaper:
    fields = _fields(entry.lines)
    doi = next((doi_of(value) for tag in ("LID", "AID") for value in fields[tag] if value.endswith("[doi]")), None)
    ids = all_ids(doi, [], [pmid_of(_first(fields["PMID"]))], None)
    return RawPaper(
        abstract=_first(fields["AB"]) or _first(fields["OAB"]) or "",
        where=f"line {entry.line}",
        title=_first(fields["TI"]) or _first(fields["BTI"]),
        authors=tuple(fields["FAU"] or fields["AU"] or fields["CN"]),
        venue=_first(fields["JT"]) or _first(fields["TA"]),
        year=year_in([_first(fields["DP"]), _first(fields["DEP"])]),
        url=address_of(reversed(ids)),
        doi=doi,
        keywords=unique([word.strip("* ") for word in fields["OT"] + fields["MH"]]),
        external_ids=ids,
    )


def _fields(lines: Sequence[str]) -> defaultdict[str, list[str]]:
    """Values by tag; a line that begins with white space goes on with the value above it."""
    fields: defaultdict[str, list[str]] = defaultdict(list)
    values: list[str] = []
    for line in lines:
        if match := TAGGED.match(line):
            values = fields[match[1]]
            values.append(match[2].strip())
        elif values and line.strip():
            values[-1] = f"{values[-1]} {line.strip()}"
    return fields


def _first(values: Sequence[str]) -> str | None:
    return next(filter(None, values), None)
