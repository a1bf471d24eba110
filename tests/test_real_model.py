"""The wire to an LLM, against a real one. What it says is of no use: it is there for broken output and for how servers stream."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing

import pytest

from rag.errors import LLMRefused, LLMUnavailable
from rag.generate import OpenAIGenerator
from rag.openai_api import OpenAIChat
from rag.protocols import Delta
from rag.types import Decided, DraftDone, Drafted, IndexedPaper, Paper, Piece, Retrieved, Sentence
from tests.real_model_server import real_model_server

SYSTEM = "You answer in one short sentence."
SCHEMA = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "green"]}, "count": {"type": "integer"}},
    "required": ["colour", "count"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with real_model_server() as url:
        yield url


@pytest.fixture
async def llm(base_url: str) -> AsyncIterator[OpenAIChat]:
    chat = OpenAIChat("smollm2", base_url, timeout=60.0)
    yield chat
    await chat.aclose()


async def test_an_answer_streams_with_its_token_counts(llm: OpenAIChat) -> None:
    deltas = [delta async for delta in llm.stream(SYSTEM, "What is the capital of France?", max_tokens=40)]
    usage = deltas[-1].usage
    assert usage is not None
    assert usage.prompt_tokens > 10
    assert 0 < usage.completion_tokens <= 40
    assert "".join(delta.text for delta in deltas).strip()


async def test_an_answer_at_its_length_limit_says_so(llm: OpenAIChat) -> None:
    deltas = [delta async for delta in llm.stream(SYSTEM, "Tell a long story.", max_tokens=3)]
    assert deltas[-1].cut


async def test_json_keeps_to_its_schema(llm: OpenAIChat) -> None:
    text, _ = await llm.complete(SYSTEM, "Three green apples. Reply with JSON.", json_schema=SCHEMA, max_tokens=60)
    value = json.loads(text)
    assert value["colour"] in ("red", "green")
    assert isinstance(value["count"], int)


async def test_a_question_too_long_for_the_model_is_refused_in_words(llm: OpenAIChat) -> None:
    with pytest.raises(LLMRefused, match="longer context"):
        await llm.complete(SYSTEM, "word " * 6_000)


async def test_leaving_early_frees_the_model(llm: OpenAIChat) -> None:
    async with aclosing(llm.stream(SYSTEM, "Tell a very long story.", max_tokens=4_000)) as deltas:
        await anext(deltas)
    start = time.monotonic()
    await asyncio.wait_for(llm.complete(SYSTEM, "Say yes.", max_tokens=200), 30)
    assert time.monotonic() - start < 20, "its one place was still taken by the story"


async def test_whatever_it_writes_makes_a_well_formed_draft(llm: OpenAIChat) -> None:
    abstract = "We study bandits on graphs. The regret grows with the logarithm of time."
    paper = Paper(paper_id="p1234567", abstract=abstract, authors=("Ada Li",), year=2024)
    sentences = (Sentence(0, 27, abstract[:27]), Sentence(28, len(abstract), abstract[28:]))
    found = Retrieved(IndexedPaper(paper, abstract, sentences), 0.9, 0.9, 0.9)
    pieces = await drafted(llm, found)
    assert [type(piece) for piece in pieces] in ([], [Decided, *[Drafted] * (len(pieces) - 2), DraftDone])
    assert all(set(piece.markers) <= {1} for piece in pieces if isinstance(piece, Drafted))


async def drafted(llm: OpenAIChat, found: Retrieved) -> list[Piece]:
    """A draft of at most 150 tokens, where it would write thousands; none if no sentence ends before that."""
    generator = OpenAIGenerator(Brief(llm))
    try:
        return [piece async for piece in generator.generate("How does the regret grow?", standalone="", papers=[found])]
    except LLMUnavailable:
        return []


class Brief:
    """The same model, with less to say."""

    def __init__(self, llm: OpenAIChat) -> None:
        self.model = llm.model
        self.complete = llm.complete
        self._llm = llm

    def stream(self, system: str, user: str, *, max_tokens: int = 150) -> AsyncGenerator[Delta, None]:
        return self._llm.stream(system, user, max_tokens=max_tokens)
