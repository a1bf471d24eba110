"""Papers from records whose fields have the usual names: JSON objects, rows of a table, entries of BibTeX and RIS."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, islice

from rag.errors import UnreadableFile
from rag.readers.external_ids import address_of, all_ids, arxiv_id, arxiv_version, doi_of, openreview_id, pmid_of
from rag.readers.field_names import (
    ABSTRACT,
    ARXIV,
    AUTHORS,
    BESIDE_TEXT,
    CARRIES_TEXT,
    CATEGORY,
    DOI,
    KEYWORDS,
    LINK,
    NESTED,
    OPENREVIEW,
    OWN_ID,
    PMID,
    TEXT,
    TITLE,
    VENUE,
    YEAR,
    plain_name,
)
from rag.readers.people import QUOTED, people
from rag.readers.source import DAMAGE, Source
from rag.types import RawPaper, Rejected, cut

ALONE = 250
"""Characters; shorter texts that stand alone are questions or claims rather than abstracts."""

ID_FIELDS = ((arxiv_id, ARXIV), (pmid_of, PMID), (openreview_id, OPENREVIEW))
LOOKED_AT = 20
YEAR_DIGITS = re.compile(r"(?<!\d)(1[5-9]\d\d|20\d\d)(?:(?!\d)|(?=(?:0\d|1[0-2])[0-3]\d(?!\d)))")
ARXIV_CODES = re.compile(r"[a-z-]+(\.[A-Za-z-]+)?( [a-z-]+(\.[A-Za-z-]+)?)*")

Record = tuple[str, Mapping[str, object]]
"""`line N` or `record N`, and the fields there."""


def papers_of(source: Source, records: Iterable[Record | Rejected]) -> Iterator[RawPaper | Rejected]:
    """A paper a record. Raises UnreadableFile, before the first, when none of the first records has a field with an abstract."""
    rest = iter(records)
    first, damage = _looked_at(rest)
    found = [fields for item in first if not isinstance(item, Rejected) for fields in item[1:]]
    if found and not any(map(has_abstract, found)) and not _mostly_texts(found):
        names = cut(" ".join(", ".join(map(str, found[0])).split()), 100)
        raise UnreadableFile(
            f"{source.name}: has no field called abstract, summary or text beside a title or authors (it has {names})"
        )
    for item in chain(first, rest):
        yield item if isinstance(item, Rejected) else paper_of(item[1], item[0])
    if damage:
        raise damage


def _looked_at(records: Iterator[Record | Rejected]) -> tuple[list[Record | Rejected], Exception | None]:
    """The first records, and the damage of the file that ended them."""
    first: list[Record | Rejected] = []
    try:
        first.extend(islice(records, LOOKED_AT))
    except DAMAGE as damage:
        return first, damage
    return first, None


def has_abstract(record: Mapping[str, object]) -> bool:
    """Whether the record has a field for an abstract, be it empty. `text` and `summary` count beside a title or the like."""
    fields = flattened(record)
    if any(name in fields for name in ABSTRACT):
        return True
    text = next((fields[name] for name in TEXT if name in fields), None)
    return text is not None and not BESIDE_TEXT.isdisjoint(fields)


def _mostly_texts(records: list[Mapping[str, object]]) -> bool:
    """Whether records with nothing but an id and a text are papers: questions and claims come in this form too, but shorter."""
    texts = [text for record in records for name in TEXT if isinstance(text := record.get(name), str)]
    return sum(len(text) >= ALONE for text in texts) * 2 > len(records)


def paper_of(record: Mapping[str, object], where: str) -> RawPaper:
    """The paper a record tells of; its abstract is "" where there is none."""
    fields = flattened(record)
    authors, truncated = people(_first(fields, AUTHORS) or ())
    doi = doi_of(_text(_first(fields, DOI)))
    links = [link for name in LINK for link in _texts(fields.get(name))]
    own = _text(_first(fields, OWN_ID))
    given = [kind(_text(fields.get(name))) for kind, names in ID_FIELDS for name in names]
    ids = all_ids(doi, links, [*given, arxiv_id(own)], _last_part(own))
    category, categories = _category(_first(fields, CATEGORY))
    return RawPaper(
        abstract=_abstract(fields),
        where=where,
        title=_one_line(_first(fields, TITLE)),
        authors=authors,
        authors_truncated=truncated or fields.get("isauthorstruncated") is True,
        category=category,
        venue=_one_line(_first(fields, VENUE)),
        year=year_in(_first(fields, (name,)) for name in YEAR) or _year_of_bibtex(fields),
        url=next((link for link in links if re.match(r"https?://\S+$", link)), None) or address_of(ids),
        doi=doi,
        keywords=(*keywords(_first(fields, KEYWORDS)), *categories),
        external_ids=ids,
        version=_version(fields, [*links, own or ""]) if any(name.startswith("arxiv:") for name in ids) else None,
    )


def flattened(record: Mapping[str, object]) -> dict[str, object]:
    """Fields by their plain names, `{"value": …}` unwrapped; those of nested objects fill what the record itself leaves open."""
    fields: dict[str, object] = {}
    inside: list[Mapping[str, object]] = []
    for name, value in record.items():
        plain = plain_name(name)
        if isinstance(value, Mapping) and "value" in value:
            value = value["value"]
        if plain in NESTED and isinstance(value, Mapping):
            inside.append(value)
        elif value not in (None, "") or plain not in fields:
            fields[plain] = value
    for nested in inside:
        for name, value in nested.items():
            plain = plain_name(name)
            if fields.get(plain) in (None, ""):
                fields[plain] = value["value"] if isinstance(value, Mapping) and "value" in value else value
    return fields


def year_in(values: Iterable[object]) -> int | None:
    """The first year named by a number, a date, a time in milliseconds (OpenReview) or `date-parts` (Crossref) among `values`."""
    return next((year for value in values if (year := _year(value)) is not None), None)


def keywords(value: object) -> tuple[str, ...]:
    """Keywords of a list, or of a text that parts them by `;`, `|` or `,`."""
    if isinstance(value, str):
        bracketed = value.startswith("[") and value.endswith("]")
        mark = next((mark for mark in (";", "；", "|", "\n", ",") if mark in value), ";")
        parts = [a or b for a, b in QUOTED.findall(value)] if bracketed else value.split(mark)
        return tuple(part.strip() for part in parts if part.strip())
    return tuple(_texts(value))


def _abstract(fields: Mapping[str, object]) -> str:
    given = _first(fields, ABSTRACT)
    if given is None and not any(name in fields for name in ABSTRACT):
        given = _first(fields, TEXT)
    if isinstance(given, Mapping):
        return _uninverted(given)
    if isinstance(given, Sequence) and not isinstance(given, str):
        return "\n".join(_texts(given))
    return given if isinstance(given, str) else ""


def _uninverted(index: Mapping[str, object]) -> str:
    """The text of OpenAlex's inverted index: each word with the places where it stands."""
    places = [(at, word) for word, ats in index.items() if isinstance(ats, Sequence) for at in ats if isinstance(at, int)]
    return " ".join(word for _, word in sorted(places))


def _first(fields: Mapping[str, object], names: Iterable[str]) -> object:
    """The first of these fields that holds anything, else None."""
    return next((value for name in names if (value := fields.get(name)) not in (None, "", [], {}, ())), None)


def _text(value: object) -> str | None:
    """The text of a value: itself, a number, what its object calls name or value, the first of a list."""
    for _ in range(4):
        if isinstance(value, Mapping):
            fields = {plain_name(name): part for name, part in value.items()}
            value = _first(fields, CARRIES_TEXT)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            value = next((part for part in value if part), None)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value).strip() or None


def _texts(value: object) -> list[str]:
    """The texts of a list, or of one value."""
    parts = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    return [text for part in parts if (text := _text(part))]


def _one_line(value: object) -> str | None:
    text = _text(value)
    return " ".join(text.split()) if text else None


def _category(value: object) -> tuple[str | None, list[str]]:
    """The category, and all of them where there are several (arXiv's come in one text, the first is the primary one)."""
    names = _texts(value)
    if len(names) == 1 and ARXIV_CODES.fullmatch(names[0]):
        names = names[0].split()
    return (names[0] if names else None), (names if len(names) > 1 else [])


def _year(value: object) -> int | None:
    for _ in range(4):
        if isinstance(value, Mapping):
            value = value.get("date-parts") or value.get("created") or value.get("value") or value.get("year")
        elif isinstance(value, Sequence) and not isinstance(value, str):
            value = next(iter(value), None)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, int | float) and 1e11 < value < 1e13:
        return datetime.fromtimestamp(value / 1000, UTC).year
    match = YEAR_DIGITS.search(str(value))
    return int(match[1]) if match else None


def _year_of_bibtex(fields: Mapping[str, object]) -> int | None:
    """Paper Copilot and OpenReview carry the year in a BibTeX entry only."""
    entry = fields.get("bibtex") or fields.get("_bibtex")
    match = re.search(r"\byear\s*=\s*[{\"]?(\d{4})\b", entry) if isinstance(entry, str) else None
    return int(match[1]) if match else None


def _version(fields: Mapping[str, object], texts: list[str]) -> int | None:
    """arXiv's version: of the id or link, or the last in the snapshot's list."""
    versions = fields.get("versions")
    if isinstance(versions, Sequence) and not isinstance(versions, str) and versions:
        last = versions[-1]
        name = str(last.get("version", "")) if isinstance(last, Mapping) else str(last)
        return int(name[1:]) if re.fullmatch(r"v\d{1,3}", name) else len(versions)
    return arxiv_version(texts)


def _last_part(own: str | None) -> str | None:
    """A file's own id; of one that is a link (OpenAlex), its last part."""
    return own.rstrip("/").rpartition("/")[2] if own and re.match(r"https?://", own) else own
