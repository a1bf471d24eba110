"""Papers and made-up vectors for tests of what is built on the catalogue."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from rag.catalogue import Catalogue
from rag.identity import read_record
from rag.types import Commit, RawPaper, Vectors

ABSTRACT = (
    "We study {} in graphs with many cycles and few edges. A bound is given that holds for every such graph. "
    "It is tight up to a constant, which we compute for small cases of {}."
)


def raw_paper(topic: str = "colouring", **given: object) -> RawPaper:
    """A paper about `topic`, its abstract three sentences long."""
    return RawPaper(abstract=ABSTRACT.format(topic, topic), where="line 1", **given)  # type: ignore[arg-type]  # fields by name


class HashEmbedder:
    """An embedder whose vectors depend on the text alone; `texts` is all it was ever given."""

    def __init__(self, model: str = "hash", dimension: int = 8) -> None:
        self.model = model
        self.dimension = dimension
        self.texts: list[str] = []

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return np.stack([self.embed_question(text) for text in texts])

    def embed_question(self, question: str) -> Vectors:
        seed = int.from_bytes(hashlib.sha256(question.encode()).digest()[:8], "big")
        vector = np.random.default_rng(seed).standard_normal(self.dimension).astype(np.float32)
        unit: Vectors = vector / np.linalg.norm(vector)
        return unit


def commit(catalogue: Catalogue, *papers: RawPaper) -> Commit:
    """Commits papers without any vectors."""
    return catalogue.commit([read_record(paper) for paper in papers])
