from __future__ import annotations

import time

import pytest
from hypothesis import given

from rag.markers import Masked, only_of_papers, tidied, with_markers, without_markers
from tests.model_text import model_texts

FORMS = [
    ("It works [1,2].", "It works [1][2].", (1, 2)),
    ("It works [1-3].", "It works [1][2][3].", (1, 2, 3)),
    ("It works [3–1].", "It works [3][1].", (3, 1)),
    ("It works[1][2].", "It works [1][2].", (1, 2)),
    ("It works [[2]].", "It works [2].", (2,)),
    ("It works【1】.", "It works [1].", (1,)),
    ("It works【1†source】.", "It works [1].", (1,)),
    ("It works ［1］.", "It works [1].", (1,)),
    ("它有效[1，2]。", "它有效 [1][2]。", (1, 2)),
    ("It works [^2].", "It works [2].", (2,)),
    ("It works [Paper 1, Paper 3].", "It works [1][3].", (1, 3)),
    ("It works ([1], [2]).", "It works [1][2].", (1, 2)),
    ("It works [1], [2] and [3].", "It works [1][2] and [3].", (1, 2, 3)),
    ("It works [1][1].", "It works [1].", (1,)),
    ("It works. [1]", "It works [1].", (1,)),
    ("It works.[1][2]", "It works [1][2].", (1, 2)),
    ("It works [1]. [2]\n", "It works [1][2].\n", (1, 2)),
    ("它有效。[1]", "它有效 [1]。", (1,)),
    ("It works [1]–[3].", "It works [1][2][3].", (1, 2, 3)),
    ("It works [1]-[2], too.", "It works [1][2], too.", (1, 2)),
    ("It works [[1]]–[[3]].", "It works [1][2][3].", (1, 2, 3)),
    ("It works [1] to [3].", "It works [1][2][3].", (1, 2, 3)),
    ("It works [1] through [3] well.", "It works [1][2][3] well.", (1, 2, 3)),
    ("它有效[1]至[3]。", "它有效 [1][2][3]。", (1, 2, 3)),
    ("它有效【1】到【2】。", "它有效 [1][2]。", (1, 2)),
    ("From [3] to [1].", "From [3] to [1].", (3, 1)),
    ("It works [1] – [2] shows why.", "It works [1] – [2] shows why.", (1, 2)),
    ("What [1] told us [2].", "What [1] told us [2].", (1, 2)),
    ("“It works.” [1]", "“It works” [1].", (1,)),
    ("“It works [1].”", "“It works” [1].", (1,)),
    ('They are "experts [1]."', 'They are "experts" [1].', (1,)),
    ('They are "experts ([1])."', 'They are "experts" [1].', (1,)),
    ('They are "experts [1]" of "sorts [2]", it says.', 'They are "experts" [1] of "sorts" [2], it says.', (1, 2)),
    ("“Does it work [1]?”", "“Does it work?” [1]", (1,)),
    ("“Does it work?” [1]", "“Does it work?” [1]", (1,)),
    ("“专家[1]。”", "“专家” [1]。", (1,)),
    ("The papers’ [1] own.", "The papers’ [1] own.", (1,)),
    ("It works (well [1].)", "It works (well [1].)", (1,)),
    ("[1] shows it [2].", "[1] shows it [2].", (1, 2)),
    ("- [1] shows it.", "- [1] shows it.", (1,)),
    ("- It works. [1]\n", "- It works [1].\n", (1,)),
]


@pytest.mark.parametrize(("written", "ours", "markers"), FORMS)
def test_every_form_of_marker_is_written_in_ours_before_the_full_stop(written: str, ours: str, markers: tuple[int, ...]) -> None:
    assert only_of_papers(written, 3) == (ours, markers, 0)


@pytest.mark.parametrize(
    "text",
    [
        "Call `x[1]` or ``a ` [2]``.",
        "```python\nx[1]\n```",
        "See [1](https://example.org/a_(b)) and [the page](http://x.y) and ![figure](f.png).",
        "Let $x[1]$ and $$y\n[2]$$ and \\(z[3]\\) and \\[w[1]\\] be given.",
        "The score lies in [0, 1].",
        "The [CLS] token and [sic] stay, and so does a[i].",
    ],
)
def test_code_links_mathematics_and_intervals_are_left_alone(text: str) -> None:
    assert only_of_papers(text, 3) == (text, (), 0)


def test_prices_are_no_mathematics() -> None:
    assert only_of_papers("It costs $5 [1] or $6 [2].", 3).markers == (1, 2)


@pytest.mark.parametrize(
    ("written", "ours", "removed"),
    [
        ("It works [9].", "It works.", 1),
        ("It works [1, 9].", "It works [1].", 1),
        ("It works [0].", "It works.", 1),
        ("It works [2023].", "It works.", 1),
        ("It works【4:0†paper.pdf】.", "It works.", 1),
        ("It works ([9]).", "It works.", 1),
        ("It works [7-9] well.", "It works well.", 3),
        ("It works [1[9]].", "It works [1].", 1),
    ],
)
def test_invented_markers_are_removed_and_counted(written: str, ours: str, removed: int) -> None:
    text, _, count = only_of_papers(written, 3)
    assert (text, count) == (ours, removed)


def test_renaming_gives_new_numbers_in_place() -> None:
    assert tidied("A [3][2]. `[3]`", {3: 1, 2: 2}.get) == ("A [1][2]. `[3]`", (1, 2), 0)


@pytest.mark.parametrize(
    ("text", "numbers", "expected"),
    [
        ("It works [1] well [2]. ", (3, 1), "It works well [3][1]. "),
        ("- It works\n", (2,), "- It works [2]\n"),
        ("It works [1].\n\n", (), "It works.\n\n"),
        ("它有效 [1]。", (2,), "它有效 [2]。"),
    ],
)
def test_a_sentence_is_given_other_markers(text: str, numbers: tuple[int, ...], expected: str) -> None:
    assert with_markers(text, numbers) == expected


def test_a_sentence_without_its_markers_keeps_its_code() -> None:
    assert without_markers("Call `x[1]` [1]. ") == "Call `x[1]`. "


def test_a_long_bracket_costs_no_time() -> None:
    start = time.perf_counter()
    only_of_papers("[1" + "  1" * 2_000 + " x " + "[" * 2_000 + "`$" * 2_000, 3)
    assert time.perf_counter() - start < 2


@given(model_texts)
def test_tidying_twice_changes_nothing(text: str) -> None:
    once = only_of_papers(text, 3)
    assert only_of_papers(once.text, 3) == (once.text, once.markers, 0)
    assert set(once.markers) <= {1, 2, 3}


@given(model_texts)
def test_masked_text_is_the_same_however_it_is_cut(text: str) -> None:
    whole = Masked().feed(text, whole=True)
    for place in range(len(text)):
        masked = Masked()
        assert masked.feed(text[:place]) + masked.feed(text[place:], whole=True) == whole


@pytest.mark.timeout(5)
@pytest.mark.parametrize("unit", ["[1] ", "[1], ", "[1] , ", "([1] ", "[1]; [2] ", "[1]", "[1]\t "])
def test_many_markers_in_a_row_take_no_longer_than_they_are_long(unit: str) -> None:
    assert only_of_papers(unit * 500, 3).markers in ((1,), (1, 2))
