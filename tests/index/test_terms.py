"""How texts are spelled for the keyword index."""

from __future__ import annotations

import time

import pytest

from rag.index.terms import asked, spell


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("LU-KV", "LU-KV LUKV"),
        ("low–rank", "low–rank lowrank"),
        ("Wang's α", "Wang alpha"),
        ("O'Brien", "O'Brien OBrien"),
        ("周欣研究", " 周欣 欣研 研究 "),
        ("the ﬁrst", "the first"),
    ],
)
def test_texts_are_spelled_for_the_index(text: str, spelled: str) -> None:
    assert spell(text) == spelled


def test_a_word_of_very_many_letters_is_spelled_at_once() -> None:
    began = time.process_time()
    assert spell("a" * 100_000) == "a" * 100_000
    assert time.process_time() - began < 1  # tried at each letter it takes minutes, and no other thread runs meanwhile


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("What did He et al. show about caches?", ["He", "et", "al", "caches"]),
        ("he didn't", []),
        ("How does IT do?", ["IT"]),
        ("", []),
    ],
)
def test_words_that_only_ask_are_dropped_and_names_kept(question: str, kept: list[str]) -> None:
    assert asked(question).replace(".", " ").replace("?", " ").split() == kept
