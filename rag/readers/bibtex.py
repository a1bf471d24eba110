"""BibTeX and BibLaTeX, parsed by bibtexparser an entry at a time."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping

from bibtexparser.bibdatabase import UndefinedString  # type: ignore[import-untyped]  # it ships no types
from bibtexparser.bparser import BibTexParser  # type: ignore[import-untyped]  # it ships no types
from pyparsing import ParseException

from rag.readers.entries import Entry, entries
from rag.readers.named_fields import Record, papers_of
from rag.readers.source import Source
from rag.text import clean
from rag.types import RawPaper, Rejected

FIRST = re.compile(r"\s*@\w+\s*[{(]")
NO_PAPER = re.compile(r"\s*@(comment|preamble|string)\b", re.IGNORECASE)
ENTRY = re.compile(r"^[ \t]*@\w+\s*\{\s*[^\s,={}()\"']+\s*,", re.MULTILINE)
PROSE_BEFORE = 2_000
"""Characters; reference managers say less than this before the first entry, a README that quotes one more, or fences it."""


def read_bibtex(source: Source) -> Iterator[RawPaper | Rejected]:
    """A paper an entry. TeX is read in all fields but the abstract, which stays as it is."""
    parser = _parser()
    return papers_of(
        source, (record for entry in entries(source, starts=FIRST.match) for record in _records(source, parser, entry))
    )


def looks_like_bibtex(text: str) -> bool:
    """An entry near the beginning, and no README around it."""
    match = ENTRY.search(text)
    return (
        match is not None and match.start() < PROSE_BEFORE and not re.search(r"```|^#{1,6} ", text[: match.start()], re.MULTILINE)
    )


def _parser() -> BibTexParser:
    logging.getLogger("bibtexparser.bparser").setLevel(logging.CRITICAL)  # it logs what we reject with a reason
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyparsing's diagnostics of bibtexparser's grammar, on under -W error
        parser = BibTexParser(ignore_nonstandard_types=False)
    parser.expect_multiple_parse = True
    return parser


def _records(source: Source, parser: BibTexParser, entry: Entry | Rejected) -> Iterator[Record | Rejected]:
    if isinstance(entry, Rejected):
        yield entry
        return
    where = f"line {entry.line}"
    parser.bib_database.entries.clear()
    parser.bib_database.comments.clear()
    try:
        _parse(parser, entry.text)
    except (ParseException, RecursionError) as error:
        yield source.rejected(where, f"is no BibTeX entry ({type(error).__name__})")
        return
    if not parser.bib_database.entries and not NO_PAPER.match(entry.lines[0]):
        yield source.rejected(where, "is no BibTeX entry; are its braces and quotes closed?")
    for fields in parser.bib_database.entries:
        yield where, _read(fields)


def _parse(parser: BibTexParser, text: str) -> None:
    """Macros that no `@string` defines stand for their own names."""
    while True:
        try:
            parser.parse(text)
        except UndefinedString as error:
            parser.bib_database.strings[error.args[0]] = str(error.args[0])
        else:
            return


def _read(fields: Mapping[str, str]) -> dict[str, object]:
    return {name: READ_AS.get(name, _plain)(value) for name, value in fields.items()}


def _split_outside_braces(authors: str) -> list[str]:
    """`{Kite and Sons} and Li, Bo` is two authors."""
    names, depth = [""], 0
    for word in authors.split():
        if word.lower() == "and" and not depth:
            names.append("")
        else:
            names[-1] += f" {word}"
        depth += word.count("{") - word.count("}")
    return [name.strip() for name in names]


def _plain(text: str) -> str:
    return clean(_without_outer_braces(text)).text


def _authors(text: str) -> list[str]:
    return [_plain(name) for name in _split_outside_braces(text)]


def _address(text: str) -> str:
    return text.replace("\\", "")


def _without_outer_braces(text: str) -> str:
    """`{{…}}` gives the value in braces of its own."""
    inner = re.fullmatch(r"\s*\{([^{}]*)\}\s*", text)
    return inner[1] if inner else text


READ_AS: Mapping[str, Callable[[str], object]] = {
    "abstract": _without_outer_braces,
    "author": _authors,
    "doi": _address,
    "url": _address,
}
"""How fields are read that are not plain TeX."""
