"""Papers as reference managers read them: BibTeX, RIS, CSL-JSON; and JSON Lines for programs.

A venue's kind (journal, conference, preprint server) is not known here, so no format claims one: `@misc`, `GEN`, `article`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

from rag.errors import InputError
from rag.field_answers import OPENING_LENGTH, opening_words
from rag.text import clean
from rag.types import Paper, surname
from rag.wire import JsonObject, paper_to_json, to_line

BIBTEX_SPECIALS = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\textbraceleft{}",
        "}": r"\textbraceright{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{sign: f"\\{sign}" for sign in "&%$#_"},
    }
)
"""A brace is spelt out: BibTeX counts braces for balance even behind a backslash."""

MATHS = re.compile(r"(?<!\\)(\$[^$\n]+\$)")
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
DULL = frozenset("a an the on in of for to and with from by at is are how what towards toward".split())


def export(papers: Iterable[Paper], form: str) -> Iterator[str]:
    """The text of an export file, piece by piece, so that a library of any size can be written.

    `form` is one of `FORMS`; raises InputError for any other. No papers give a valid, empty file.
    """
    if form not in FORMS:
        raise InputError(f"no export format {form!r}: choose one of {', '.join(FORMS)}")
    return FORMS[form](papers)


def title_of(paper: Paper) -> str:
    """The title; without one how the abstract begins, in square brackets, by which libraries mark a title they supplied: a
    reference of authors alone is found neither by its reader nor in a reference manager's list."""
    return paper.title or f"[{opening_words(clean(paper.abstract[: 4 * OPENING_LENGTH]).text)}]"


def to_bibtex(papers: Iterable[Paper]) -> Iterator[str]:
    """BibTeX in UTF-8, TeX's special characters escaped, `$…$` kept, each key used once."""
    used: set[str] = set()
    for paper in papers:
        key = unused(bibtex_key(paper), used)
        used.add(key)
        fields = "".join(f"  {name} = {{{value}}},\n" for name, value in bibtex_fields(paper) if value)
        yield f"@misc{{{key},\n{fields}}}\n\n"


def bibtex_fields(paper: Paper) -> Iterator[tuple[str, str]]:
    """Names and escaped values, empty ones included."""
    yield "author", " and ".join([*map(bibtex_name, paper.authors), *(["others"] if paper.authors_truncated else [])])
    yield "title", f"{{{bibtex_text(title_of(paper))}}}"
    yield "year", str(paper.year or "")
    yield "howpublished", bibtex_text(paper.venue or "")
    yield "doi", plain_braces(paper.doi or "")
    yield "url", plain_braces(paper.url or "")
    yield "keywords", bibtex_text(", ".join(paper.keywords))
    yield "abstract", bibtex_text(paper.abstract)


def bibtex_name(author: str) -> str:
    """An author, in braces where BibTeX would read two people (`A and B`) or turn a name around (`周 欣`)."""
    name = bibtex_text(author)
    return f"{{{name}}}" if re.search(r"\band\b", author, re.IGNORECASE) or CJK.search(author) else name


def bibtex_text(text: str) -> str:
    """One line of BibTeX, braces balanced; maths between dollars stays maths."""
    pieces = MATHS.split(" ".join(text.split()))
    return "".join(piece if is_maths(piece) else piece.translate(BIBTEX_SPECIALS) for piece in pieces)


def is_maths(piece: str) -> bool:
    """`$…$` whose braces BibTeX can balance."""
    return bool(MATHS.fullmatch(piece)) and is_balanced(piece)


def is_balanced(text: str) -> bool:
    """Every brace has its partner, in the right order."""
    depth = 0
    for sign in text:
        depth += (sign == "{") - (sign == "}")
        if depth < 0:
            return False
    return depth == 0


def plain_braces(address: str) -> str:
    """A DOI or an address: not escaped (programs read these fields raw) but for braces and white space."""
    return re.sub(r"[{}\s]", lambda sign: f"%{ord(sign[0]):02X}", address)


def bibtex_key(paper: Paper) -> str:
    """`cao2025search`: surname, year and the title's first telling word; the paper's id where there is no Latin surname."""
    name = ascii_word(surname(paper.authors[0])) if paper.authors else ""
    words = (ascii_word(word) for word in (paper.title or "").split())
    telling = next((word for word in words if word and word not in DULL), "")
    return f"{name}{paper.year or ''}{telling}" if name else paper.paper_id


def ascii_word(text: str) -> str:
    """Small Latin letters and digits only: `Łojasiewicz-Müller` gives `ojasiewiczmuller`."""
    return re.sub(r"[^a-z0-9]", "", unicodedata.normalize("NFKD", text).lower())


def unused(key: str, used: set[str]) -> str:
    """`key`, or the first of `key-2`, `key-3`, … not in `used`."""
    number, candidate = 1, key
    while candidate in used:
        number += 1
        candidate = f"{key}-{number}"
    return candidate


def to_ris(papers: Iterable[Paper]) -> Iterator[str]:
    """RIS, one tag a line."""
    for paper in papers:
        lines = [f"{tag}  - {' '.join(value.split())}\n" for tag, value in ris_fields(paper) if value]
        yield f"TY  - GEN\n{''.join(lines)}ER  - \n\n"


def ris_fields(paper: Paper) -> Iterator[tuple[str, str]]:
    """Tags and values, empty ones included."""
    yield "ID", paper.paper_id
    yield from (("AU", author) for author in paper.authors)
    yield "AU", "et al." if paper.authors_truncated else ""
    yield "TI", title_of(paper)
    yield "PY", str(paper.year or "")
    yield "T2", paper.venue or ""
    yield "DO", paper.doi or ""
    yield "UR", paper.url or ""
    yield from (("KW", keyword) for keyword in paper.keywords)
    yield "AB", paper.abstract


def to_csl_json(papers: Iterable[Paper]) -> Iterator[str]:
    """CSL-JSON: one array of items."""
    separator = "[\n"
    for paper in papers:
        yield separator + json.dumps(csl_item(paper), ensure_ascii=False)
        separator = ",\n"
    yield "\n]\n" if separator == ",\n" else "[]\n"


def csl_item(paper: Paper) -> JsonObject:
    """One item of CSL-JSON 1.0; what is not known is left out."""
    authors = [csl_name(author) for author in paper.authors]
    if paper.authors_truncated:
        authors.append({"literal": "et al."})
    item: JsonObject = {
        "id": paper.paper_id,
        "type": "article",
        "title": title_of(paper),
        "author": authors,
        "issued": {"date-parts": [[paper.year]]} if paper.year else None,
        "container-title": paper.venue,
        "DOI": paper.doi,
        "URL": paper.url,
        "keyword": ", ".join(paper.keywords),
        "abstract": paper.abstract,
    }
    return {name: value for name, value in item.items() if value}


def csl_name(author: str) -> dict[str, str]:
    """Family and given name where the name shows them, else the name as it is."""
    family = surname(author)
    given = author.partition(",")[2].strip() if "," in author else author.removesuffix(family).strip()
    return {"family": family, "given": given} if given and not CJK.search(author) else {"literal": author}


def to_jsonl(papers: Iterable[Paper]) -> Iterator[str]:
    """One paper a line, as `papers list --json` prints them; Footnote reads such a file again."""
    for paper in papers:
        yield to_line({**paper_to_json(paper), "keywords": list(paper.keywords)}) + "\n"


FORMS: dict[str, Callable[[Iterable[Paper]], Iterator[str]]] = {
    "bib": to_bibtex,
    "ris": to_ris,
    "csl-json": to_csl_json,
    "jsonl": to_jsonl,
}
"""The formats by name."""
