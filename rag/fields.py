"""Sentences made from catalogue fields (authors, year, venue, counts), held against those fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from rag.evidence import opening
from rag.match import names_in
from rag.numbers import held_values, missing_numbers
from rag.types import IndexedPaper, Paper, Verdict, surname

_LINK = re.compile(r"https?://\S+[^\s.,;:)\]}>]")
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_PLAIN = re.compile(
    r"an?|and|are|as|at|authors?|authored|appear(?:s|ed)|both|by|conference|co-?authors?|first|from|had|has|have|in|is|it|its|last"
    r"|journal|of|on|others|paper|papers|presented|published|that|the|their|these|they|this|title|titled|was|were|which|who|with"
    r"|work|wrote|written|year|et|al|[由撰写作者是和发表于的这篇论文年等人在上为与及共位题目第一]+",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"“([^”]+)”")
_LETTER = re.compile(r"[^\W\d_]")


def check_fields(text: str, cited: Sequence[tuple[int, IndexedPaper]]) -> Verdict:
    """`text` is cleaned and holds no markers. Numbers, names and links in it must stand in the fields of the papers cited; a name
    may also stand in their abstracts, since papers go by their methods' names.

    The evidence is the first sentence of each abstract: the fields are no part of it.
    """
    if not cited:
        return Verdict("uncited", (), "no paper is cited", 0.0)
    papers = [found.paper for _, found in cited]
    text = without_names_of(text, [found for _, found in cited])
    evidence = tuple(opening(place, found) for place, found in cited if found.sentences)
    fields = " ".join(field_text(paper) for paper in papers)
    numbers = missing_numbers(_LINK.sub(" ", text), held_values(fields) | counts(papers))
    if numbers:
        return Verdict("number_mismatch", evidence, f"{', '.join(numbers)} does not stand in the catalogue", 0.0)
    known = " ".join([fields, *(found.text for _, found in cited)])
    unknown = [name for name in names_in(_LINK.sub(" ", text)) if not _stands_in(name, known)]
    unknown += [link for link in _LINK.findall(text) if not _stands_in(link, fields)]
    if unknown:
        return Verdict("mismatch", evidence, f"{', '.join(unknown)} does not stand in the catalogue", 0.0)
    return Verdict("ok", evidence, "stands in the catalogue", 1.0)


def without_names_of(text: str, cited: Sequence[IndexedPaper]) -> str:
    """`text` without what stands in quotation marks and begins one of these papers, or its title: the name it goes by."""
    begins = [plain_words(words) for found in cited for words in (found.text, found.paper.title or "")]
    return _QUOTED.sub(lambda quoted: " " if any(one.startswith(plain_words(quoted[1])) for one in begins) else quoted[0], text)


def plain_words(text: str) -> str:
    """Letters and digits alone."""
    return "".join(_WORD.findall(text.casefold()))


def field_text(paper: Paper) -> str:
    """All that the catalogue knows of a paper but its abstract's later sentences."""
    fields = (paper.title, *paper.authors, paper.category, paper.venue, paper.year, paper.url, paper.doi, *paper.keywords)
    return " ".join(str(field) for field in (*fields, paper.cite_as, paper.doi_url) if field)


def says_fields_only(text: str, cited: Sequence[IndexedPaper]) -> bool:
    """Whether a sentence, without its markers, tells who wrote these papers, where or when, and nothing else."""
    fields = _words(" ".join(field_text(found.paper) for found in cited))
    told = _words(
        " ".join(f"{' '.join(map(surname, found.paper.authors))} {found.paper.venue} {found.paper.year}" for found in cited)
    )
    names = {word for found in cited for word in _WORD.findall(found.text) if word[1:] != word[1:].lower()}
    words = [word for word in _WORD.findall(text) if not _PLAIN.fullmatch(word)]
    others = [word for word in words if word.casefold() not in fields and word not in names]
    return not others and any(word.casefold() in told for word in words)


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def counts(papers: Sequence[Paper]) -> frozenset[Decimal]:
    """What may be counted: the papers cited, the authors of each."""
    return frozenset(Decimal(count) for count in (len(papers), *(len(paper.authors) for paper in papers)))


def _stands_in(name: str, fields: str) -> bool:
    return not _LETTER.search(name) or re.search(rf"(?<!\w){re.escape(name.casefold())}(?!\w)", fields.casefold()) is not None
