"""Which records are the same work, and what is kept of each when they are. Pure: no database, no clock.

Order matters only where two sources contradict each other; taking the same records again changes nothing.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from rag.passages import prepare, text_hash
from rag.types import IndexedPaper, Paper, RawPaper, Sentence, surname, unique

STRONG = ("doi", "arxiv", "pmid", "openreview")
"""Kinds of id that identify a work across sources, the best first. `id:…`, a file's own number, never does."""

SHORT = 40
"""An abstract of fewer normalised characters (`No abstract available.`) names no work without its title and authors."""

LONGEST_KEY = 500
"""Characters of a name that are compared: Postgres indexes no more than 2,704 bytes."""

ARXIV = r"(\d{4}\.\d{4,5}|[a-z][a-z-]*(?:\.[a-z]{2})?/\d{7})(?:v\d+)?(?:\.pdf)?"
ARXIV_DOI = re.compile(rf"10\.48550/arxiv\.{ARXIV}", re.IGNORECASE)
DOI = re.compile(r"(?:doi:\s*|(?:https?://)?(?:dx\.)?doi\.org/)?(10\.\d{4,9}/\S+)", re.IGNORECASE)
ID_FORMS = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("arxiv", rf"(?:arxiv:\s*|(?:https?://)?(?:www\.|export\.)?arxiv\.org/(?:abs|pdf|html)/){ARXIV}[/?#]?"),
        ("arxiv", ARXIV),
        ("doi", DOI.pattern),
        ("pmid", r"(?:pmid:\s*|(?:https?://)?pubmed\.ncbi\.nlm\.nih\.gov/)(\d{1,9})/?"),
        ("openreview", r"(?:openreview:\s*|(?:https?://)?openreview\.net/(?:forum|pdf)\?id=)([\w-]{6,})"),
    )
)
PART = re.compile(r"\b(?:part\s+)?([IVX]{1,4}|(?<=part )\d{1,2})\s*(?:[:.—–-]|\Z)", re.IGNORECASE)
"""`II` of `On Sums II` and `On Sums, Part II: Bounds`; `2` only after `Part`."""

hash_once = lru_cache(maxsize=1024)(text_hash)


@dataclass(frozen=True, slots=True)
class Record:
    """A paper with all that identity needs of it: `text` and `sentences` are the cleaned reading of `paper.abstract`, `names` its
    aliases (`doi:…`, `id:…`), `fingerprints` hashes of every abstract it has had, verbatim (these outlive a change of the
    cleaning) and cleaned (these see through markup)."""

    paper: Paper
    text: str
    sentences: tuple[Sentence, ...]
    names: frozenset[str]
    fingerprints: frozenset[str]
    version: int | None = None

    @property
    def indexed(self) -> IndexedPaper:
        """What the indexes need of it, without vectors."""
        return IndexedPaper(self.paper, self.text, self.sentences)

    @property
    def text_hash(self) -> str:
        """The key of its vectors: a hash of what is embedded."""
        return hash_once(self.indexed)

    def ids(self, kind: str) -> set[str]:
        """Its ids of one strong kind."""
        return {name for name in self.names if name.startswith(kind + ":")}


def read_record(raw: RawPaper) -> Record:
    """The record of a paper as a reader found it; `paper.paper_id` is the id it gets if the catalogue does not know it yet."""
    paper = read_paper(raw)
    reading = prepare(paper)
    names = frozenset(name for given in (*raw.external_ids, raw.doi or "") if (name := canonical(given)))
    verbatim = fingerprint(raw, raw.abstract)
    best = min(filter(is_strong, names), key=rank, default=verbatim)
    doi = paper.doi or next((name.removeprefix("doi:") for name in sorted(names) if name.startswith("doi:")), None)
    return Record(
        paper=replace(paper, paper_id=digest(best)[:16], doi=doi),
        text=reading.text,
        sentences=reading.sentences,
        names=names,
        fingerprints=frozenset([verbatim, fingerprint(raw, reading.text)]),
        version=raw.version if raw.version is not None and 0 <= raw.version < 2**31 else None,
    )


def read_paper(raw: RawPaper) -> Paper:
    """A paper without an id yet, its fields such that every database takes them."""
    return Paper(
        paper_id="",
        abstract=storable(raw.abstract),
        title=given(raw.title),
        authors=tuple(storable(author) for author in raw.authors),
        authors_truncated=raw.authors_truncated,
        category=given(raw.category),
        venue=given(raw.venue),
        year=raw.year if raw.year is not None and 1000 <= raw.year <= 2999 else None,
        url=given(raw.url),
        doi=bare_doi(raw.doi or ""),
        keywords=unique([storable(word) for word in raw.keywords]),
    )


def conflict(a: Record, b: Record) -> bool:
    """Both have ids of one kind, and none in common."""
    return any(a.ids(kind) and b.ids(kind) and not a.ids(kind) & b.ids(kind) for kind in STRONG)


def fingerprint(raw: RawPaper, text: str) -> str:
    """A hash of what records of one work share without ids: abstract, part of a series; of a stock phrase title and authors."""
    normal, title = normalised(text), raw.title or ""
    part = PART.search(title)
    told = [normal, part[1].lower() if part else ""]
    if len(normal) < SHORT:
        told += [normalised(title), *map(author_key, raw.authors)]
    return digest("\n".join(told))


def merge(kept: Record, other: Record) -> Record:
    """`kept` with what `other` adds. Its id stays, no field is lost; where both have a field, the newer version's stands."""
    first, second = (other, kept) if newer(other, kept) else (kept, other)
    a, b = first.paper, second.paper
    authors = b if author_rank(b) > author_rank(a) else a
    paper = Paper(
        paper_id=kept.paper.paper_id,
        abstract=a.abstract,
        title=a.title or b.title,
        authors=authors.authors,
        authors_truncated=authors.authors_truncated,
        category=a.category or b.category,
        venue=a.venue or b.venue,
        year=a.year or b.year,
        url=a.url or b.url,
        doi=kept.paper.doi or other.paper.doi,
        keywords=unique(kept.paper.keywords + other.paper.keywords),
    )
    reading = other if other.paper.abstract == a.abstract else first  # the later reading of the same text
    versions = [version for version in (kept.version, other.version) if version is not None]
    return Record(
        paper=paper,
        text=reading.text,
        sentences=reading.sentences,
        names=kept.names | other.names,
        fingerprints=kept.fingerprints | other.fingerprints,
        version=max(versions, default=None),
    )


def newer(other: Record, kept: Record) -> bool:
    """Whether `other`'s abstract replaces that of `kept`: a higher version, else an abstract never seen and not cut short."""
    if (other.version or 0) != (kept.version or 0):
        return (other.version or 0) > (kept.version or 0)
    if other.fingerprints & kept.fingerprints:
        return False
    return not normalised(kept.text).startswith(normalised(other.text))


def author_rank(paper: Paper) -> tuple[bool, bool, int]:
    """A whole list is better than a cut one, of two cut ones the longer."""
    whole = bool(paper.authors) and not paper.authors_truncated
    return bool(paper.authors), whole, 0 if whole else len(paper.authors)


def canonical(name: str) -> str | None:
    """An external id in the one form we keep: DOIs and arXiv ids lower-case, arXiv without version, arXiv's DOIs as arXiv ids.
    A prefixed id of an unknown kind (`id:7`) is kept as given; None when there is nothing in it, or far too much."""
    kind, _, value = name.partition(":")
    if len(name) > LONGEST_KEY or (kind in (*STRONG, "id") and not value.strip()):
        return None
    if kind == "id":
        return storable(name.strip())
    found = next(iter(readings(name)), None)
    return found or storable(name.strip()) or None


def readings(name: str) -> Iterable[str]:
    """The strong ids that `name` may be (a DOI, an arXiv id, a link to either, …), in canonical form, likeliest first."""
    name = name.strip().rstrip(".,;")
    if match := ARXIV_DOI.search(name):
        yield f"arxiv:{match[1].lower()}"
        return
    for kind, form in ID_FORMS:
        if match := form.fullmatch(name):
            yield f"{kind}:{match[1] if kind == 'openreview' else match[1].lower()}"


def bare_doi(doi: str) -> str | None:
    """`10.1000/x` of `https://doi.org/10.1000/X`."""
    match = DOI.fullmatch(doi.strip())
    return storable(match[1].lower()) if match else None


def is_strong(name: str) -> bool:
    return name.startswith(tuple(f"{kind}:" for kind in STRONG))


def rank(name: str) -> tuple[int, str]:
    return STRONG.index(name.partition(":")[0]), name


def normalised(text: str, separator: str = "") -> str:
    """Letters and digits alone, without case, compatibility forms folded (NFKC)."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return separator.join(re.findall(r"[^\W_]+", folded))


def match_key(text: str) -> str:
    """How names are compared in filters: without case, accents, and differences of white space."""
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return " ".join("".join(letter for letter in letters if not unicodedata.combining(letter)).split())[:LONGEST_KEY]


def author_key(author: str) -> str:
    """`match_key` of a name read in one order: `Zhang, Wei` is `wei zhang`."""
    family, comma, rest = author.partition(",")
    return match_key(f"{rest} {family}" if comma else author)


def surname_key(author: str) -> str:
    """`match_key` of the family name."""
    return match_key(surname(author))


def area_key(category: str) -> str:
    """`match_key` of the part before the first `·`: `theory` of `Theory · Optimization`."""
    return match_key(category.partition("·")[0])


def given(text: str | None) -> str | None:
    return storable(text.strip()) or None if text else None


def storable(text: str) -> str:
    """`text` with NUL and lone surrogates, which no database takes, as U+FFFD: as many characters as before."""
    return re.sub("[\x00\ud800-\udfff]", "\ufffd", text)


def digest(text: str) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()
