"""The words of an abstract that stand for a sentence: verbatim, at their place."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.similarity import own_words
from rag.types import Evidence, IndexedPaper

QUOTED_WORDS = 8
"""So many of an abstract's words in a row are a quotation even if its sentence goes on."""

_WORD = re.compile(r"[^\W_]+")


def quote(place: int, found: IndexedPaper, start: int, end: int, score: float = 1.0) -> Evidence:
    """Sentences `start:end` of the abstract, verbatim."""
    first, last = found.sentences[start].start, found.sentences[end - 1].end
    return Evidence(place, first, last, found.paper.abstract[first:last], score)


def opening(place: int, found: IndexedPaper) -> Evidence:
    """The abstract's first sentence, for a sentence about the paper as a whole."""
    return quote(place, found, 0, 1)


def quotation(text: str, cited: Sequence[tuple[int, IndexedPaper]]) -> tuple[Evidence, ...]:
    """Evidence for a sentence that only repeats its one paper's words, after at most the paper's names; else none."""
    if len(cited) != 1:
        return ()
    place, found = cited[0]
    said = _words(text)
    for index, sentence in enumerate(found.sentences):
        before, repeated, after = said.partition(_words(sentence.text))
        if repeated and _is_naming(before + after, found):
            return (quote(place, found, index, index + 1),)
    if said.count(" ") > QUOTED_WORDS:
        whole = [index for index, sentence in enumerate(found.sentences) if said in _words(sentence.text)]
        return tuple(quote(place, found, index, index + 1) for index in whole[:1])
    return ()


def _words(text: str) -> str:
    """Lower-case words, one space before and after each."""
    return f" {' '.join(word.group().lower() for word in _WORD.finditer(text))} "


def _is_naming(rest: str, found: IndexedPaper) -> bool:
    known = _words(f"{own_words(found.paper)} {found.paper.title or ''} {found.paper.category or ''}")
    return all(f" {word} " in known for word in rest.split())
