"""Reading a question by rules: follow-ups, filters in words, kinds of answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.filters import Names, read_filters
from rag.types import Filters, Turn
from rag.understand import Intent, intent_of, is_follow_up, understand

NAMES = Names(venues=("ICML", "NeurIPS", "ICLR 2021"), categories=("Optimization · Non-Convex", "Theory"))
HISTORY = (
    Turn("user", "Is there a faster algorithm for Gromov-Wasserstein?"),
    Turn("assistant", "Yes, LoBCD-GW updates a block of the coupling [1].", ("lobcd-paper",)),
)


@pytest.mark.parametrize(
    ("question", "filters", "rest"),
    [
        ("What is new in GNNs since 2021?", Filters(year_min=2021), "What is new in GNNs?"),
        ("GNNs after 2021", Filters(year_min=2022), "GNNs"),
        ("Which GNNs before 2019 scale?", Filters(year_max=2018), "Which GNNs scale?"),
        ("GNNs until 2019", Filters(year_max=2019), "GNNs"),
        ("GNNs between 2018 and 2020", Filters(year_min=2018, year_max=2020), "GNNs"),
        ("GNNs, 2018-2020", Filters(year_min=2018, year_max=2020), "GNNs,"),
        ("Which papers from 2020 are on GNNs?", Filters(year_min=2020, year_max=2020), "Which are on GNNs?"),
        ("since 2024, only ICML: what helps exploration?", Filters(year_min=2024, venues=("ICML",)), "what helps exploration?"),
        ("What was published at neurips on bandits?", Filters(venues=("NeurIPS",)), "What was on bandits?"),
        ("rates in the Theory category", Filters(categories=("Theory",)), "rates"),
        ("2021年以来的图神经网络有哪些？", Filters(year_min=2021), "的图神经网络有哪些？"),
        ("2019 年之前的工作", Filters(year_max=2018), "的工作"),
    ],
)
def test_filters_are_read_from_the_words(question: str, filters: Filters, rest: str) -> None:
    assert read_filters(question, NAMES) == (filters, rest)


@pytest.mark.parametrize(
    "question",
    [
        "What changed as of January 21, 2026?",
        "Does ICML matter for theory?",
        "How are 2048 tokens handled in theory?",
        "Theory of bandits",
    ],
)
def test_a_year_or_name_that_only_stands_there_sets_no_filter(question: str) -> None:
    assert read_filters(question, NAMES) == (Filters(), question)


@given(st.text(max_size=200))
def test_any_text_can_be_read(question: str) -> None:
    understood = understand(question, HISTORY, Filters(), NAMES)
    assert understood.question == question


def test_filters_given_beside_the_question_win() -> None:
    understood = understand("GNNs since 2021", (), Filters(year_min=2015, venues=("ICML",)), NAMES)
    assert understood.filters == Filters(year_min=2015, venues=("ICML",))


def test_years_asked_of_a_shelf_without_years_are_told_not_applied() -> None:
    understood = understand("GNNs since 2021", (), Filters(), Names(has_years=False))
    assert understood.filters == Filters()
    assert understood.notice is not None and "has a year" in understood.notice


@pytest.mark.parametrize(
    ("question", "follows"),
    [
        ("who wrote it?", True),
        ("And which of the two matrices is the fragile one?", True),
        ("what about actor-critic then?", True),
        ("How would I check that in a real model?", True),
        ("Are there any other position papers besides that one?", True),
        ("它需要训练吗？", True),
        ("Which optimizer converges on non-smooth convex problems in a decentralized network?", False),
        ("What speedup does Mind Dreamer have over DreamerV3 on continuous control tasks?", False),
    ],
)
def test_follow_ups_are_told_from_new_questions(question: str, follows: bool) -> None:
    assert is_follow_up(question) is follows


def test_a_follow_up_carries_the_last_exchange_and_no_markers() -> None:
    understood = understand("who wrote it?", HISTORY, Filters(), NAMES)
    assert "LoBCD-GW" in understood.search_text and "[1]" not in understood.standalone
    assert understood.standalone.startswith("who wrote it?")


def test_a_new_question_carries_nothing() -> None:
    question = "What speedup does Mind Dreamer have over DreamerV3 on continuous control tasks?"
    assert understand(question, HISTORY, Filters(), NAMES).search_text == question


def test_asked_for_others_the_papers_cited_are_left_out() -> None:
    assert understand("any other papers besides that one?", HISTORY, Filters(), NAMES).exclude == ("lobcd-paper",)
    assert understand("who wrote it?", HISTORY, Filters(), NAMES).exclude == ()


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("who wrote it?", "authors"),
        ("Who are the authors of the XRPO paper?", "authors"),
        ("这篇论文的作者是谁？", "authors"),
        ("Which year was SOAR published?", "year"),
        ("Where was SOAR presented?", "venue"),
        ("How many papers are there on bandits?", "count"),
        ("list the position papers please", "list"),
        ("Which papers release new benchmarks?", "list"),
        ("Do we have anything on speech recognition?", "list"),
        ("Which ReID datasets is ReasonAug evaluated on?", "explain"),
        ("How does LU-KV solve the budget allocation?", "explain"),
        ("Whose results depend on the authors' assumption of convexity?", "explain"),
    ],
)
def test_the_kind_of_answer_is_read_from_the_words(question: str, intent: Intent) -> None:
    assert intent_of(question) == intent
