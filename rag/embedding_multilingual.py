"""A second local model, for questions that are not in a Latin script: multilingual-e5-small in int8 on onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence

from rag.embedding import SentenceEncoder, unigram_tokenizer
from rag.multilingual_e5 import PACKAGE, multilingual_e5
from rag.packaged import package_folder
from rag.types import Vectors

MAX_TOKENS = 512


def multilingual_installed() -> bool:
    """Whether `footnote[multilingual]` is there. Nothing is loaded."""
    return package_folder(PACKAGE) is not None


class MultilingualEmbedder:
    """multilingual-e5-small: mean of at most 512 tokens, 384 dimensions. Raises SettingsError if its package is not right.

    Passages and questions carry the prefixes that it was trained with.
    """

    def __init__(self) -> None:
        e5 = multilingual_e5()
        self._characters = e5.characters
        tokenizer = unigram_tokenizer(e5.pieces.scored, start=e5.pieces.start, end=e5.pieces.end, unknown=e5.pieces.unknown)
        self._encoder = SentenceEncoder("multilingual-e5-small", tokenizer, e5.words, e5.encoder, MAX_TOKENS)
        self.model = self._encoder.model
        self.dimension = self._encoder.dimension

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), 384)."""
        return self._encoder.vectors([f"passage: {text}".translate(self._characters) for text in texts])

    def embed_question(self, question: str) -> Vectors:
        """Shape (384,)."""
        return self._encoder.vector(f"query: {question}".translate(self._characters))
