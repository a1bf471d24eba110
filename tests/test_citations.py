from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.citations import MarkerFilter
from rag.markers import only_of_papers
from rag.types import Drafted
from tests.model_text import model_texts


def filtered(pieces: Iterable[str], *, papers: int = 3, cut: bool = False) -> tuple[list[Drafted], int]:
    """The sentences of a text that comes in pieces, and how many markers were removed."""
    marker_filter = MarkerFilter(papers)
    sentences = [sentence for piece in pieces for sentence in marker_filter.feed(piece)]
    return sentences + marker_filter.finish(cut=cut), marker_filter.removed


def texts(text: str, *, cut: bool = False) -> list[str]:
    """The sentences of a text, which must be the same when it comes character by character."""
    sentences, removed = filtered([text], cut=cut)
    assert filtered(text, cut=cut) == (sentences, removed)
    return [sentence.text for sentence in sentences]


SENTENCES = [
    ("It works [1]. It is fast [2].", ["It works [1]. ", "It is fast [2]."]),
    ("It works. [1] It is fast. [2]", ["It works [1]. ", "It is fast [2]."]),
    ("It works.[1] It is fast.[2][3]\n", ["It works [1]. ", "It is fast [2][3]."]),
    ("It works [1].[2] It is fast.", ["It works [1][2]. ", "It is fast."]),
    (
        "Zhang et al. [1] show it, e.g. on CIFAR. Others [2] do not.",
        ["Zhang et al. [1] show it, e.g. on CIFAR. ", "Others [2] do not."],
    ),
    ("It works. [1], [2] Next one.", ["It works [1][2]. ", "Next one."]),
    ("It follows Zhang et al. Adamson wrote it [1]. Next.", ["It follows Zhang et al. Adamson wrote it [1]. ", "Next."]),
    ("Several exist. [1] proposes one. [2] improves it.", ["Several exist. ", "[1] proposes one. ", "[2] improves it."]),
    ("**It works.** [1] Next one.", ["**It works [1].** ", "Next one."]),
    ("它有效[1]。它很快。【2】还有一个[3]。", ["它有效 [1]。", "它很快 [2]。", "还有一个 [3]。"]),
    ("It is `a. B` and $x. Y$ [1]. Next.", ["It is `a. B` and $x. Y$ [1]. ", "Next."]),
    ("It was wrapped\nover lines [1].\nNext line.", ["It was wrapped\nover lines [1].\n", "Next line."]),
    ("One paragraph [1]\n\nAnother [2]", ["One paragraph [1]\n\n", "Another [2]"]),
    (
        "Two papers:\n\n- **A** does. It is good [1]\n- B [2].\n\nBoth work.",
        ["Two papers:\n\n", "- **A** does. It is good [1]\n", "- B [2].\n\n", "Both work."],
    ),
    ("1. A [1]\n   goes on\n2) B [2]\nAfter it.", ["1. A [1]\n   goes on\n", "2) B [2]\n", "After it."]),
    ("## Answer\nIt works [1].", ["## Answer\n", "It works [1]."]),
    ("| a | b |\n| x [1]. Y | z |\n", ["| a | b |\n", "| x [1]. Y | z |"]),
    ("Code:\n```\na. B\n\n# c [1]\n```\nIt runs [1].", ["Code:\n", "```\na. B\n\n# c [1]\n```\nIt runs [1]."]),
    ("  \n It works [1].  \n", ["It works [1]."]),
    ("It works [1].\n\n---\n", ["It works [1].\n\n"]),
    ("It works [1].Next one.", ["It works [1]. ", "Next one."]),
    ('They are "experts [1]." Next one [2].', ['They are "experts" [1]. ', "Next one [2]."]),
    ("They say “it works.” [1] Next one.", ["They say “it works” [1]. ", "Next one."]),
    ("“Does it work [1]?” Next one [2].", ["“Does it work?” [1] ", "Next one [2]."]),
    ("It works [1]–[3]. Next one [1] to [2].", ["It works [1][2][3]. ", "Next one [1][2]."]),
]


@pytest.mark.parametrize(("text", "expected"), SENTENCES)
def test_text_is_cut_into_sentences_with_their_markers_and_white_space(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


SOURCE_LISTS = [
    "Sources:\n[1] Zhang et al., 2024\n[2] https://example.org\n",
    "**References**\n\n- [1] Zhang\n",
    "## Sources\n1. Zhang et al.",
    "Sources: [1], [2]",
    "参考文献：\n[1] 张",
    "[1]: https://example.org\n",
    "[1] Zhang et al. A title. 2024.\n",
]


@pytest.mark.parametrize("sources", SOURCE_LISTS)
def test_a_list_of_sources_at_the_end_is_dropped(sources: str) -> None:
    assert "".join(texts("It works [1][2].\n\n" + sources)) == "It works [1][2].\n\n"


@pytest.mark.parametrize(
    "text",
    [
        "Sources differ in quality [1].\nReferences to prior work are few [2].",
        "These papers fit:\n\n[1] FedLPA (2024)\n[2] FedAvg (2023)",
        "Sources: the papers name three [1].",
    ],
)
def test_what_only_begins_like_a_list_of_sources_is_kept(text: str) -> None:
    assert "".join(texts(text)) == text


def test_markers_are_those_of_the_papers_given_in_order_of_first_use() -> None:
    sentences, removed = filtered(["It works [2][1], not [2, 7]. As said [8]."])
    assert [sentence.markers for sentence in sentences] == [(2, 1), ()]
    assert removed == 2


def test_a_sentence_is_given_as_soon_as_the_next_one_begins() -> None:
    marker_filter = MarkerFilter(3)
    assert marker_filter.feed("It works [1]. ") == []
    assert [sentence.text for sentence in marker_filter.feed("N")] == ["It works [1]. "]


@pytest.mark.parametrize(
    "unfinished",
    [
        *("It works [1", "It works [", "It works [[1]", "It works【1†sou", "It works (", "It works [1]. See [2](http://x"),
        *("It works [1]", "It works [1]–", "It works [1] to ", "It works [1] t", "It works [1]–[", "It works [1]–[3"),
    ],
)
def test_no_unfinished_marker_is_given(unfinished: str) -> None:
    given_so_far = MarkerFilter(3).feed(unfinished)
    assert "".join(sentence.text for sentence in given_so_far) in ("", "It works [1]. ")


def test_an_answer_that_was_cut_off_ends_with_its_last_whole_sentence() -> None:
    assert texts("It works [1]. It is fast [2]. And it is", cut=True) == ["It works [1]. ", "It is fast [2]. "]
    assert texts("It works [1]. It is fast [2].", cut=True) == ["It works [1]. ", "It is fast [2]."]
    assert texts("It works", cut=True) == []
    assert texts("“Does it work [1]?” And", cut=True) == ["“Does it work?” [1] "]


@given(model_texts, st.data())
def test_cutting_the_text_anywhere_gives_the_same_sentences(text: str, data: st.DataObject) -> None:
    expected = filtered([text])
    assert filtered(text) == expected
    place = data.draw(st.integers(0, len(text)))
    assert filtered([text[:place], text[place:]]) == expected


@given(model_texts)
def test_sentences_hold_words_and_settled_markers(text: str) -> None:
    for sentence in filtered([text])[0]:
        assert sentence.text.strip()
        assert only_of_papers(sentence.text, 3) == (sentence.text, sentence.markers, 0)
