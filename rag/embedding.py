"""The local embedding model: all-MiniLM-L6-v2 in int8 on onnxruntime, out of installed packages, with no network."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # ships no types
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from rag.encoder_graph import WORDS, Encoder, WordTable, encoder_graph, saturation_probe
from rag.minilm import minilm_tokenizer, minilm_weights
from rag.protocols import Embedder
from rag.types import Vectors

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding

MAX_TOKENS = 256


class SentenceEncoder:
    """A tokenizer, word vectors and an encoder (see encoder_graph.py). Safe to share between threads.

    `model` is its name and the hash of its graph, so that vectors of another graph are never taken for these. `signed` says how
    weights are written; it makes no difference to the vectors where this CPU sums rightly.
    """

    def __init__(
        self, name: str, tokenizer: Tokenizer, words: WordTable, encoder: Encoder, max_tokens: int, *, signed: bool | None = None
    ) -> None:
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_tokens)
        self._tokenizer = tokenizer
        self._words = words
        graph = encoder_graph(encoder)
        self.model = f"{name}@int8-{hashlib.sha256(graph).hexdigest()[:8]}"
        if not (sums_signed_rightly() if signed is None else signed):
            graph = encoder_graph(encoder, signed=False)
        self._session = session(graph)
        self.dimension: int = self._session.get_outputs()[0].shape[1]

    def vector(self, text: str) -> Vectors:
        """Shape (dimension,), unit length; any text will do, the empty one too."""
        words = self._words(self._tokenizer.encode(text).ids)
        vector: Vectors = self._session.run(None, {WORDS: words[None]})[0][0]
        return vector

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension): one text a run and a thread, for onnxruntime lets go of Python's lock."""
        found = np.empty((len(texts), self.dimension), dtype=np.float32)
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            for row, vector in enumerate(threads.map(self.vector, texts)):
                found[row] = vector
        return found


def session(graph: bytes) -> onnxruntime.InferenceSession:
    """One thread a run, the graph as written: "basic" leaves LayerNormalization alone (see encoder_graph.normalise)."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def sums_signed_rightly() -> bool:
    """Whether this CPU multiplies signed weights without overflow (see encoder_graph.saturation_probe)."""
    graph, given, right = saturation_probe()
    return bool(np.allclose(session(graph).run(None, {WORDS: given})[0], right, rtol=1e-4))


def unigram_tokenizer(scored: list[tuple[str, float]], *, start: int, end: int, unknown: int) -> Tokenizer:
    """XLM-RoBERTa's tokenizer from its scored pieces and three ids: split at white space, each word marked in front."""
    tokenizer = Tokenizer(models.Unigram(scored, unknown, byte_fallback=False))
    tokenizer.normalizer = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", start), ("</s>", end)])
    return tokenizer


class LocalEmbedder:
    """all-MiniLM-L6-v2: mean of at most 256 tokens, 384 dimensions. Raises SettingsError if its packages are not right."""

    def __init__(self) -> None:
        tokenizer = Tokenizer.from_buffer(minilm_tokenizer())
        self._encoder = SentenceEncoder("all-MiniLM-L6-v2", tokenizer, *minilm_weights(), MAX_TOKENS)
        self.model = self._encoder.model
        self.dimension = self._encoder.dimension

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), 384)."""
        return self._encoder.vectors(texts)

    def embed_question(self, question: str) -> Vectors:
        """Shape (384,)."""
        return self._encoder.vector(question)


def llama_embedding(embedder: Embedder) -> BaseEmbedding:
    """The embedder as LlamaIndex knows one: a question's vector for queries, a passage's for texts.

    LlamaIndex is imported here and not above: it takes two seconds, which plain embedding shall not pay.
    """
    from llama_index.core.base.embeddings.base import BaseEmbedding

    class LlamaEmbedding(BaseEmbedding):
        """Runs on a thread of its own when awaited, so that the event loop goes on."""

        def _get_query_embedding(self, query: str) -> list[float]:
            vector: list[float] = embedder.embed_question(query).tolist()
            return vector

        def _get_text_embedding(self, text: str) -> list[float]:
            return self._get_text_embeddings([text])[0]

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            vectors: list[list[float]] = embedder.embed_texts(texts).tolist()
            return vectors

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return await asyncio.to_thread(self._get_query_embedding, query)

        async def _aget_text_embedding(self, text: str) -> list[float]:
            return await asyncio.to_thread(self._get_text_embedding, text)

        async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return await asyncio.to_thread(self._get_text_embeddings, texts)

    return LlamaEmbedding(model_name=embedder.model)
