"""Papers from files, one module a format, chosen by content. Everything streams: memory does not grow with the file.

`read` is for files, `read_stream` for uploads, `walk` turns the paths a person gave into files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import BinaryIO

from rag.errors import UnreadableFile
from rag.readers.arxiv_atom import read_arxiv_atom
from rag.readers.bibtex import read_bibtex
from rag.readers.detect import detect
from rag.readers.json_records import read_json, read_jsonl
from rag.readers.nbib import read_nbib
from rag.readers.pubmed_xml import read_pubmed_xml
from rag.readers.ris import read_ris
from rag.readers.search_page import read_search_page
from rag.readers.source import DAMAGE, Source
from rag.readers.table import read_table
from rag.types import RawPaper, Rejected

Reader = Callable[[Source], Iterator[RawPaper | Rejected]]

READERS: dict[str, Reader] = {
    "search-page": read_search_page,
    "json": read_json,
    "jsonl": read_jsonl,
    "csv": read_table,
    "tsv": read_table,
    "arxiv-atom": read_arxiv_atom,
    "pubmed-xml": read_pubmed_xml,
    "nbib": read_nbib,
    "bibtex": read_bibtex,
    "ris": read_ris,
}
FORMATS: tuple[str, ...] = ("auto", *READERS)
"""Names for `--format`."""

ACCEPTED = "the text of a paper-search page, JSON, JSON Lines, CSV, TSV, arXiv Atom, PubMed XML, NBIB, BibTeX, RIS"
LONGEST_ABSTRACT = 100_000
"""Characters; a longer abstract is rejected, never cut (DESIGN §2)."""

UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""NUL and lone surrogates, which neither databases nor indexes hold (DESIGN §2)."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read. `named`: given by its own name, rather than met on a walk through a folder."""

    path: Path
    named: bool


def walk(paths: Sequence[Path]) -> Iterator[SourceFile]:
    """The files at `paths`, folders in sorted order without hidden files and devices; each is entered once, links or not. Folders
    that cannot be entered stand among the files: to open one tells why."""
    for path in paths:
        if os.path.isdir(path):  # noqa: PTH112  # also where nobody may look
            yield from (SourceFile(found, named=False) for found in _files_below(path))
        else:
            yield SourceFile(path, named=True)


def read(
    path: Path, format: str = "auto", watch: Callable[[BinaryIO], BinaryIO] = lambda stream: stream
) -> Iterator[RawPaper | Rejected]:
    """The papers of a file as they stand in it, one after the other; gz is unpacked.

    `format` is one of FORMATS; `watch` may put a stream of its own, that tells how far the file was read, in front of it. Raises
    UnreadableFile, before the first item, when the file is missing, empty, damaged from the start, or in none of the formats.
    """
    try:
        stream = path.open("rb")
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror or error}") from error
    with stream:
        yield from read_stream(watch(stream), str(path), format)


def read_stream(stream: BinaryIO, name: str, format: str = "auto") -> Iterator[RawPaper | Rejected]:
    """As `read`, from a stream that need not seek; `name` is how Rejected and errors call it. Does not close the stream."""
    if format not in FORMATS:
        raise UnreadableFile(f"{format!r} is no format; choose one of: {', '.join(FORMATS)}")
    try:
        source = Source(stream, name)
    except DAMAGE as error:
        raise UnreadableFile(f"{name}: cannot be read ({error})") from error
    chosen = detect(source.beginning()) if format == "auto" else format
    if chosen is None:
        raise UnreadableFile(f"{name}: {source.damage or f'is none of the formats read here: {ACCEPTED}; each may be gz'}")
    count = 0
    for item in _until_damage(source, READERS[chosen]):
        count += 1
        yield item
    if not count:
        raise UnreadableFile(f"{name}: holds no paper that can be read as {chosen}; accepted are {ACCEPTED}; each may be gz")


def _until_damage(source: Source, reader: Reader) -> Iterator[RawPaper | Rejected]:
    """Checked papers up to where the file is cut or damaged, then one Rejected for the rest."""
    count = 0
    try:
        for item in reader(source):
            count += 1
            yield checked(source, item) if isinstance(item, RawPaper) else item
    except DAMAGE as error:
        yield source.rejected(f"record {count + 1}", f"the file is cut or damaged from here on ({error})")


def checked(source: Source, paper: RawPaper) -> RawPaper | Rejected:
    """The paper with text that can be stored, or why it cannot be taken."""
    paper = _storable(paper)
    if not paper.abstract:
        return source.rejected(paper.where, "no abstract")
    if len(paper.abstract) > LONGEST_ABSTRACT:
        return source.rejected(paper.where, f"the abstract is over {LONGEST_ABSTRACT:,} characters")
    return paper


def _storable(paper: RawPaper) -> RawPaper:
    """NUL and lone surrogates become U+FFFD in every text; the abstract loses the white space around it."""
    texts = {name: UNSTORABLE.sub("\ufffd", value) for name, value in _values(paper) if isinstance(value, str)}
    lists = {
        name: tuple(UNSTORABLE.sub("\ufffd", text) for text in value)
        for name, value in _values(paper)
        if isinstance(value, tuple)
    }
    return replace(paper, **{**texts, **lists, "abstract": texts["abstract"].strip()})  # type: ignore[arg-type]  # by field name


def _values(paper: RawPaper) -> Iterator[tuple[str, object]]:
    return ((field.name, getattr(paper, field.name)) for field in fields(paper))


def _files_below(folder: Path) -> Iterator[Path]:
    entered: set[str] = set()
    closed: list[Path] = []
    for at, folders, files in os.walk(folder, followlinks=True, onerror=lambda error: closed.append(Path(error.filename))):
        entered.add(os.path.realpath(at))
        folders[:] = sorted(name for name in folders if _fresh(Path(at, name), entered))
        found = (Path(at, name) for name in sorted(files) if not name.startswith("."))
        yield from (path for path in found if _is_file(path))
    yield from closed


def _is_file(path: Path) -> bool:
    """Also where that cannot be told, so that opening it tells why."""
    try:
        return path.is_file()
    except PermissionError:
        return True


def _fresh(folder: Path, entered: set[str]) -> bool:
    return not folder.name.startswith(".") and os.path.realpath(folder) not in entered
