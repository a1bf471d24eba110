"""Which word of the papers a mistyped one was meant to be."""

from __future__ import annotations

from collections.abc import Iterable

from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from rag.index.terms import ASKING

REMEMBERED = 10_000
"""Mistyped words whose correction is remembered until the next commit."""


class Vocabulary:
    """The words of the papers, to find the one that a mistyped word was meant to be. 10 ms a word for those of 50,000 papers."""

    def __init__(self, words: Iterable[tuple[str, int]]) -> None:
        self._papers = {word: papers for word, papers in words if len(word) >= 3 and word.isalpha()}
        self._by_length: dict[int, list[str]] = {}
        for word in self._papers:
            self._by_length.setdefault(len(word), []).append(word)
        self._found: dict[str, str | None] = {}

    def nearest(self, word: str) -> str | None:
        """The word within 1 edit (2 of a word over 6 letters, if it begins alike) with the fewest edits, the same first letter,
        the most papers; failing these the commonest that `word` begins (`algo`)."""
        if word not in self._found:
            if len(self._found) >= REMEMBERED:
                self._found.clear()
            self._found[word] = self._search(word)
        return self._found[word]

    def _search(self, word: str) -> str | None:
        edits = 1 if len(word) <= 6 else 2
        lengths = range(len(word) - edits, len(word) + edits + 1)
        candidates = [known for length in lengths for known in self._by_length.get(length, [])]
        near = extract(word, candidates, scorer=OSA.distance, score_cutoff=edits, limit=None)
        likely = [match for match in near if match[1] < 2 or match[0][0] == word[0]]
        ranked = sorted(likely, key=lambda match: (match[1], match[0][0] != word[0], -self._papers[match[0]], match[0]))
        if ranked and ranked[0][0] not in ASKING:
            return ranked[0][0]
        longer = [known for known in self._papers if known.startswith(word)]
        return max(longer, key=lambda known: self._papers[known], default=None)
