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

from rag.encoder_graph import WORDS, WordTable, encoder_graph
from rag.minilm import minilm_tokenizer, minilm_weights
from rag.protocols import Embedder
from rag.types import Vectors

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding

MAX_TOKENS = 256


class SentenceEncoder:
    """A tokenizer, word vectors and an encoder graph (see encoder_graph.py). Safe to share between threads."""

    def __init__(self, tokenizer: Tokenizer, words: WordTable, graph: bytes, max_tokens: int) -> None:
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_tokens)
        self._tokenizer = tokenizer
        self._words = words
        self._session = onnxruntime.InferenceSession(graph, session_options(), providers=["CPUExecutionProvider"])
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


def session_options() -> onnxruntime.SessionOptions:
    """One thread a run, the graph as written, and integer sums that cannot overflow on CPUs without VNNI.

    "Basic" leaves LayerNormalization alone (see encoder_graph.normalise). With x64quantprecision onnxruntime itself turns to its
    slower, exact kernels where the fast ones would saturate, so that an older CPU computes the same integers.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.add_session_config_entry("session.x64quantprecision", "1")
    return options


def unigram_tokenizer(scored: list[tuple[str, float]], *, start: int, end: int, unknown: int) -> Tokenizer:
    """XLM-RoBERTa's tokenizer from its scored pieces and three ids: split at white space, each word marked in front."""
    tokenizer = Tokenizer(models.Unigram(scored, unknown, byte_fallback=False))
    tokenizer.normalizer = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", start), ("</s>", end)])
    return tokenizer


class LocalEmbedder:
    """all-MiniLM-L6-v2: mean of at most 256 tokens, 384 dimensions. Raises SettingsError if its packages are not right.

    `model` ends in the graph's own hash, so that vectors of another graph are never taken for these.
    """

    def __init__(self) -> None:
        words, encoder = minilm_weights()
        graph = encoder_graph(encoder)
        self.model = f"all-MiniLM-L6-v2@int8-{hashlib.sha256(graph).hexdigest()[:8]}"
        self._encoder = SentenceEncoder(Tokenizer.from_buffer(minilm_tokenizer()), words, graph, MAX_TOKENS)
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
