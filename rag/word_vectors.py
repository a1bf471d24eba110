"""Vectors of single words, remembered: the same few thousand words turn up in every shelf of one field."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag.protocols import Embedder
from rag.types import Vectors

MOST = 50_000
"""Words remembered, 75 MB at 384 dimensions; then they are forgotten all at once."""


class WordVectors:
    """An embedder of words that embeds each but once. Safe for many threads."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}

    def of(self, words: Sequence[str]) -> Vectors:
        """Shape (len(words), dimension), unit rows."""
        known = self._known
        if new := [word for word in dict.fromkeys(words) if word not in known]:
            if len(known) + len(new) > MOST:
                known = self._known = {word: known[word] for word in words if word in known}
            known.update(zip(new, self._embedder.embed_texts(new), strict=True))
        return np.stack([known[word] for word in words])
