"""Work of many seconds as HTTP runs it: a place, a deadline, and an end when nobody waits any more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from api.errors import ApiError
from api.leaving import stop
from api.lifecycle import Lifecycle
from api.limits import Generations
from api.logs import EXTRA
from api.metrics import Metrics
from api.patient_engine import PatientEngine
from rag.errors import LLMRefused, Unavailable
from rag.types import Answer, AnswerDone, AnswerEvent, Filters, Turn

log = logging.getLogger("footnote.questions")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """A question as a door hands it over."""

    question: str
    history: Sequence[Turn] = ()
    filters: Filters = Filters()
    top_n: int = 8


Keep = Callable[[Answer], Awaitable[None]]
"""Stores a finished answer; done before `AnswerDone` is passed on, so that its id can be fetched at once."""


@dataclass(frozen=True)
class Work:
    """Where answers are made, at most `places.most` at once, each in `deadline` seconds, storing included."""

    places: Generations
    lifecycle: Lifecycle
    metrics: Metrics
    deadline: float

    async def run(self, source: AsyncIterator[T]) -> AsyncGenerator[T, None]:
        """What `source` yields. Closing the iterator cancels the work.

        Raises what `source` raises, TimeoutError past the deadline, ApiError when the server is full or going down.
        """
        items: asyncio.Queue[T | _Failed | None] = asyncio.Queue()
        ended = _Failed(ApiError(503, "ending", "The server is going down and ended this answer; ask again.", retry_after=5))
        with ExitStack() as held:
            held.enter_context(self.lifecycle.running(lambda: items.put_nowait(ended)))
            held.enter_context(self.places.one())
            held.enter_context(self.metrics.in_flight.track_inprogress())
            task = asyncio.create_task(self._produce(source, items))
            try:
                while (item := await items.get()) is not None:
                    if isinstance(item, _Failed):
                        raise item.error
                    yield item
            finally:
                await stop(task)

    async def _produce(self, source: AsyncIterator[T], items: asyncio.Queue[T | _Failed | None]) -> None:
        """A task of its own: what the source enters it leaves in the same task, whoever reads the items."""
        try:
            async with asyncio.timeout(self.deadline), closing(source):
                async for item in source:
                    items.put_nowait(item)
            items.put_nowait(None)
        except Exception as error:
            if isinstance(error, (Unavailable, LLMRefused)):
                self.metrics.upstream_error(error)
            items.put_nowait(_Failed(error))


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception


@asynccontextmanager
async def closing(source: AsyncIterator[T]) -> AsyncIterator[None]:
    """Closes `source` at the end if it can be closed, as every generator can."""
    try:
        yield
    finally:
        if isinstance(source, AsyncGenerator):
            await source.aclose()


@dataclass(frozen=True)
class Answering:
    """Runs questions through the engine."""

    engine: PatientEngine
    work: Work
    log_questions: bool = False

    def stream(self, ask: Ask, keep: Keep) -> AsyncGenerator[AnswerEvent, None]:
        """The engine's events; raises as `Work.run` does."""
        if self.log_questions:
            log.info("question", extra={EXTRA: {"question": ask.question}})
        return self.work.run(self._kept(ask, keep))

    async def _kept(self, ask: Ask, keep: Keep) -> AsyncGenerator[AnswerEvent, None]:
        stream = self.engine.stream(ask.question, history=ask.history, filters=ask.filters, top_n=ask.top_n)
        async with closing(stream):
            async for event in stream:
                if isinstance(event, AnswerDone):
                    self.work.metrics.answer(event.answer)
                    await keep(event.answer)
                yield event


async def whole(events: AsyncGenerator[AnswerEvent, None]) -> Answer:
    """The answer at the end of its events; raises as `Work.run` does."""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, AnswerDone):
                return event.answer
    raise RuntimeError("the engine ended without an answer")
