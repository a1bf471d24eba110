from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping

import pytest

from rag.errors import LLMRefused, LLMUnavailable
from rag.filters import Names
from rag.protocols import Delta
from rag.types import Filters, Turn, Usage
from rag.understand import understand
from rag.understand_llm import LLMUnderstanding, is_english

NAMES = Names(venues=("ICML", "NeurIPS"), categories=("Theory",))
HISTORY = (Turn("user", "What is FedLPA?"), Turn("assistant", "A method [1].", paper_ids=("p-fedlpa",)))
USAGE = Usage(50, 5)


class ReadingLLM:
    """Gives one reading, or raises."""

    model = "reader"

    def __init__(self, reading: Mapping[str, object] | str = "", fault: Exception | None = None, seconds: float = 0.0) -> None:
        self._text = reading if isinstance(reading, str) else json.dumps(reading)
        self._fault, self._seconds = fault, seconds
        self.asked: list[str] = []

    def stream(self, system: str, user: str, *, max_tokens: int = 0) -> AsyncGenerator[Delta, None]:
        raise AssertionError("a reading is asked for whole")

    async def complete(
        self, system: str, user: str, *, json_schema: Mapping[str, object] | None = None, max_tokens: int = 0
    ) -> tuple[str, Usage]:
        self.asked.append(user)
        await asyncio.sleep(self._seconds)
        if self._fault:
            raise self._fault
        return self._text, USAGE


async def test_a_follow_up_is_made_standalone_from_the_conversation() -> None:
    llm = ReadingLLM({"question": "How fast is FedLPA, at ICML since 2024?", "topic": "How fast is FedLPA?", "year_min": 2024,
                      "year_max": None, "venues": ["icml", "VLDB"], "categories": [], "authors": ["Ada Li"],
                      "asks_for": "list", "other_papers": True})  # fmt: skip
    understood = await LLMUnderstanding(llm).understand("它有多快？", HISTORY, Filters(), NAMES)
    assert understood.question == "它有多快？"
    assert understood.standalone == "How fast is FedLPA, at ICML since 2024?"
    assert understood.search_text == "How fast is FedLPA?"
    assert understood.filters == Filters(year_min=2024, venues=("ICML",), authors=("Ada Li",)), "VLDB is not among the venues"
    assert (understood.intent, understood.exclude, understood.usage) == ("list", ("p-fedlpa",), USAGE)
    assert "What is FedLPA?" in llm.asked[0]


async def test_filters_given_beside_the_question_win() -> None:
    llm = ReadingLLM({"question": "How fast is it?", "year_min": 2024, "venues": ["ICML"]})
    understood = await LLMUnderstanding(llm).understand("它", (), Filters(year_min=2020, categories=("Theory",)), NAMES)
    assert understood.filters == Filters(year_min=2020, venues=("ICML",), categories=("Theory",))


async def test_years_that_no_paper_has_are_not_used_and_that_is_told() -> None:
    llm = ReadingLLM({"question": "What came since 2024?", "topic": "news", "year_min": 2024})
    understood = await LLMUnderstanding(llm).understand("新的？", (), Filters(), Names(has_years=False))
    assert understood.filters == Filters()
    assert understood.notice


async def test_an_english_question_without_a_conversation_costs_no_call() -> None:
    llm = ReadingLLM()
    question = "Which papers since 2024 study bandits?"
    assert await LLMUnderstanding(llm).understand(question, (), Filters(), NAMES) == understand(question, (), Filters(), NAMES)
    assert llm.asked == []


@pytest.mark.parametrize(
    "llm",
    [
        ReadingLLM(fault=LLMUnavailable("down")),
        ReadingLLM(fault=LLMRefused("no key")),
        ReadingLLM("{}"),
        ReadingLLM({"question": ""}),
        ReadingLLM({"question": "x", "year_min": "soon"}),
        ReadingLLM({"question": "x"}, seconds=5.0),
    ],
    ids=["down", "refused", "no question", "empty question", "no year", "slow"],
)
async def test_without_a_usable_reading_the_rules_reading_stands(llm: ReadingLLM) -> None:
    understood = await LLMUnderstanding(llm, patience=0.1).understand("它有多快？", HISTORY, Filters(), NAMES)
    assert understood == understand("它有多快？", HISTORY, Filters(), NAMES)


@pytest.mark.parametrize(
    ("question", "english"),
    [
        ("What does α-divergence do?", True),
        ("what about Müller's method", True),
        ("Was zeigt diese Arbeit?", False),
        ("Qu'est-ce que FedLPA ?", False),
        ("FedLPA 是什么?", False),
        ("What is 联邦学习?", False),
        ("Что такое FedLPA?", False),
    ],
)
def test_english_is_told_by_its_small_words_and_script(question: str, english: bool) -> None:
    assert is_english(question) == english
