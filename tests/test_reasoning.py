from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.reasoning import ReasoningFilter, without_reasoning

SHAPES = [
    "<think>The user wants [1].</think>\n\nIt works [1].",
    "\n<think>\n\n</think>\n\nIt works [1].",
    "<THINKING>Hmm [2].</THINKING>It works [1].",
    "<think>a</think><think>b</think>It works [1].",
    "Okay, the user asks about [1]. Let me see.\n</think>\n\nIt works [1].",
    "Paper one says so.</think>It works [1].",
    "好的，用户问的是[1]。</think>It works [1].",
]


@pytest.mark.parametrize("reply", SHAPES)
def test_reasoning_is_taken_out_wherever_the_stream_is_cut(reply: str) -> None:
    assert without_reasoning(reply) == "It works [1]."
    for size in range(1, len(reply) + 1):
        reasoning = ReasoningFilter(wary=False)
        given_out = "".join(reasoning.feed(reply[place : place + size]) for place in range(0, len(reply), size))
        assert given_out + reasoning.finish() == "It works [1]."


def test_an_unclosed_thought_is_no_answer() -> None:
    assert without_reasoning("<think>The user wants [1]. It works [1].") == ""


@pytest.mark.parametrize(
    "text", ["It uses `<think>` and `</think>` tags [1].", "The <think> and </think> tags help [1].", "a < b [1]"]
)
def test_tags_that_an_answer_speaks_of_are_kept(text: str) -> None:
    assert without_reasoning(text) == text


def test_text_is_let_through_from_its_first_marker_on() -> None:
    reasoning = ReasoningFilter(wary=False)
    assert reasoning.feed("It works ") == ""
    assert reasoning.feed("[1") == "It works [1"
    assert reasoning.feed("]. It") == "]. It"


def test_long_text_that_does_not_sound_like_thinking_is_let_through() -> None:
    reasoning = ReasoningFilter(wary=False)
    assert reasoning.feed("Paris is the capital of France. " * 5) != ""
    thinking = ReasoningFilter(wary=False)
    assert thinking.feed("Okay, the user asks for the capital of France. " * 20) == ""


def test_a_status_word_is_let_through_at_once() -> None:
    assert ReasoningFilter(wary=False).feed("NOT_IN_PAPERS") == "NOT_IN_PAPERS"


def test_a_model_known_to_think_is_not_believed_before_its_closing_tag() -> None:
    reasoning = ReasoningFilter(wary=True)
    assert reasoning.feed("It works [1]. ") == ""
    assert reasoning.feed("</think>No [2]") == "No [2]"
    assert reasoning.lone_closing_tag


def test_a_closed_thought_is_no_lone_closing_tag() -> None:
    reasoning = ReasoningFilter(wary=False)
    reasoning.feed("<think>x</think>It works [1].")
    assert not reasoning.lone_closing_tag


@given(st.text(alphabet=st.sampled_from("ab [1]\n.<"), max_size=40), st.data())
def test_an_answer_without_reasoning_passes_whole(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text)))
    reasoning = ReasoningFilter(wary=False)
    assert reasoning.feed(text[:place]) + reasoning.feed(text[place:]) + reasoning.finish() == text.lstrip()
