"""Answers out of the catalogue's fields: who wrote a paper, when, where it appeared, where it is to be found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag.intent import Intent
from rag.markers import in_round_brackets
from rag.scripts import language_of
from rag.text import clean
from rag.types import Decided, Drafted, Paper, Piece, Retrieved, cut

OPENING_LENGTH = 70
"""Characters of an abstract that tell a reader which paper is meant."""

SAID = {
    "en": {"authors": "was written by", "year": "is from", "venue": "appeared at", "category": "is filed under", "link": "is at"},
    "zh": {"authors": "的作者是", "year": "发表于", "venue": "发表在", "category": "的类别是", "link": "的链接是"},
}


def from_fields(papers: Sequence[tuple[int, Retrieved]], intent: Intent, question: str) -> Iterator[Piece]:
    """A sentence for each of `papers` (with its place from 1) that has the field, checked against the catalogue later (`basis` is
    `metadata`); where none has it, the full text of the first may."""
    language = language_of(question)
    drafted = [
        Drafted(sentence_on(found, SAID[language][intent], value, place, language), (place,), basis="metadata")
        for place, found in papers
        if (value := field_of(found.paper, intent, language))
    ]
    yield Decided("answered") if drafted else Decided("needs_full_text", (papers[0][0],))
    yield from drafted


def sentence_on(found: Retrieved, said: str, value: str, place: int, language: str) -> str:
    """`“Title” was written by A and B [1]. `"""
    known = known_by(found)
    if language == "zh":
        return f"{known if found.paper.title else f'以{known}开头的论文'}{said} {value} [{place}]。"
    return f"{known if found.paper.title else f'The paper that begins {known}'} {said} {value} [{place}]. "


def field_of(paper: Paper, intent: Intent, language: str) -> str:
    """The field in words; empty where it is not known."""
    return {
        "authors": joined(paper.authors, paper.authors_truncated, language),
        "year": str(paper.year or ""),
        "venue": paper.venue or "",
        "category": paper.category or "",
        "link": paper.url or paper.doi_url or "",
    }[intent]


def known_by(found: Retrieved) -> str:
    """What a reader knows a paper by: its title, else how its abstract begins, in quotation marks."""
    title = found.paper.title
    return f"“{in_round_brackets(clean(title).text if title else opening_words(found.found.text))}”"


def opening_words(text: str) -> str:
    """The first OPENING_LENGTH characters of a text, cut behind a word."""
    begun = cut(text, OPENING_LENGTH)
    whole, space, _ = begun.rpartition(" ")
    return f"{whole.rstrip(' ,;:')}…" if space and begun != text else begun


def joined(names: Sequence[str], truncated: bool, language: str) -> str:
    """`A, B and C`; `A, B and others` when the source cut the list. In Chinese `A、B、C` and `A、B等`."""
    if language == "zh":
        return "、".join(names) + "等" * truncated
    parts = [*names, "others"] if truncated else list(names)
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
