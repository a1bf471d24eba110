"""How near a claim is to papers, told by a gate: here the one for English, `rag/other_scripts.py` has the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from rag.scripts import is_latin
from rag.similarity import Cited, Claim, Model, Reading, compare, held_terms, missing_names, weight_held
from rag.spelling import is_english

MOST_QUOTED = 3
"""Sentences in a row that evidence may span."""

SENTENCE_COST = 0.2
"""What a further sentence must add to be quoted too, in the share of the claim's words that the abstract holds."""

ENGLISH_SHARE = 0.5
"""A sentence with a smaller share of English words is in another language, and the abstract's words cannot tell."""

FEW_WORDS = 4
"""Of fewer words that share says nothing."""

_LOWER_WORD = re.compile(r"\b[^\W\d_A-Z]+\b")


class Gate(Protocol):
    """Tells how near one claim is to papers. `rivals` are the places of papers that it may be cited anew to."""

    @property
    def model(self) -> Model: ...

    @property
    def rivals(self) -> Sequence[int]: ...

    @property
    def is_foreign(self) -> bool:
        """Whether the claim is in a language that the gate does not read."""

    def hold(self, place: int) -> Cited:
        """The paper at a place that is cited or a rival's."""

    def score(self, cited: Sequence[Cited]) -> float:
        """That these papers are right ones for the claim, in [0, 1]."""

    def unknown(self, readings: Sequence[Reading]) -> tuple[str, ...]:
        """The names of the claim that the papers do not know."""

    def span(self, cited: Cited) -> tuple[int, int]:
        """The sentences `start:end` of a paper that bear the claim out best."""


class WordGate:
    """By words and the main embedding model."""

    def __init__(self, model: Model, claim: Claim, hold: Callable[[int], Cited], rivals: Sequence[int]) -> None:
        self.model = model
        self.hold = hold
        self.rivals = rivals
        self._claim = claim

    @property
    def is_foreign(self) -> bool:
        """Whether it is not in English."""
        return is_foreign(self._claim.text)

    def score(self, cited: Sequence[Cited]) -> float:
        return self.model.probability(compare(self._claim, [one.reading for one in cited], [one.cosines for one in cited]))

    def unknown(self, readings: Sequence[Reading]) -> tuple[str, ...]:
        return missing_names(self._claim, readings)

    def span(self, cited: Cited) -> tuple[int, int]:
        """Up to MOST_QUOTED sentences in a row."""
        reading = cited.reading
        sentences = len(reading.sentences)
        held = weight_held(self._claim.terms, held_terms(reading, 0, sentences)) or 1.0

        def worth(span: tuple[int, int]) -> float:
            start, end = span
            share = weight_held(self._claim.terms, held_terms(reading, start, end)) / held
            return share + float(cited.cosines[start:end].max()) - SENTENCE_COST * (end - start)

        spans = ((start, start + size) for size in range(1, MOST_QUOTED + 1) for start in range(sentences - size + 1))
        return max(spans, key=worth)


def is_foreign(text: str) -> bool:
    """Whether a sentence is in another script, or mostly of words that are not English."""
    words = [word for word in _LOWER_WORD.findall(text) if len(word) > 2]
    return not is_latin(text) or (len(words) >= FEW_WORDS and sum(map(is_english, words)) < ENGLISH_SHARE * len(words))
