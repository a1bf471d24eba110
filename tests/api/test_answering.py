import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from api.answering import Work
from api.errors import ApiError
from api.lifecycle import Lifecycle
from api.limits import Generations
from api.metrics import Metrics
from api.sse import with_pings
from rag.errors import LLMUnavailable


def work(most: int = 2, deadline: float = 5, finish: float = 5) -> Work:
    return Work(Generations(most), Lifecycle(finish_seconds=finish), Metrics(), deadline)


class Source:
    """Yields 1, then waits for `gate`, then yields 2; notes whether it was closed."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.gate = asyncio.Event()
        self.fault = fault
        self.ended = False

    async def items(self) -> AsyncGenerator[int, None]:
        try:
            yield 1
            await self.gate.wait()
            if self.fault:
                raise self.fault
            yield 2
        finally:
            self.ended = True


async def test_items_come_as_they_are_made() -> None:
    source = Source()
    async with aclosing(work().run(source.items())) as items:
        assert await anext(items) == 1
        source.gate.set()
        assert [item async for item in items] == [2]
    assert source.ended


async def test_a_deadline_ends_the_work_with_a_timeout() -> None:
    source, making = Source(), work(deadline=0.05)
    with pytest.raises(TimeoutError):
        [item async for item in making.run(source.items())]
    assert source.ended
    assert making.places.running == 0


async def test_closing_the_iterator_cancels_the_work_and_frees_its_place() -> None:
    source, making = Source(), work(most=1)
    items = making.run(source.items())
    assert await anext(items) == 1
    assert making.places.running == 1
    await items.aclose()
    assert source.ended
    assert making.places.running == 0


async def test_one_piece_of_work_too_many_is_refused_before_it_begins() -> None:
    making = work(most=1)
    items = making.run(Source().items())
    await anext(items)
    other = Source()
    with pytest.raises(ApiError) as refused:
        await anext(making.run(other.items()))
    assert refused.value.status == 429
    await items.aclose()


async def test_a_server_going_down_lets_work_finish_for_a_while_then_ends_it_and_begins_none() -> None:
    making = work(finish=0.05)
    quick, slow = Source(), Source()
    first, second = making.run(quick.items()), making.run(slow.items())
    await anext(first)
    await anext(second)
    making.lifecycle.end()
    with pytest.raises(ApiError) as refused:
        await anext(making.run(Source().items()))
    assert refused.value.status == 503
    quick.gate.set()
    assert [item async for item in first] == [2]
    with pytest.raises(ApiError) as ended:
        await anext(second)
    assert (ended.value.status, ended.value.code) == (503, "ending")
    assert slow.ended


async def test_a_failure_upstream_is_passed_on_and_counted() -> None:
    making, source = work(), Source(LLMUnavailable("silent"))
    source.gate.set()
    with pytest.raises(LLMUnavailable):
        [item async for item in making.run(source.items())]
    assert b'footnote_upstream_errors_total{kind="LLMUnavailable"} 1.0' in making.metrics.text()


async def test_an_idle_stream_is_kept_alive_with_comments() -> None:
    gate = asyncio.Event()

    async def chunks() -> AsyncGenerator[bytes, None]:
        yield b"one"
        await gate.wait()
        yield b"two"

    pinged = with_pings(chunks(), every=0.01)
    assert await anext(pinged) == b"one"
    assert (await anext(pinged)).startswith(b":")
    gate.set()
    rest = [chunk async for chunk in pinged]
    assert [chunk for chunk in rest if not chunk.startswith(b":")] == [b"two"]


async def test_leaving_an_idle_stream_closes_what_makes_it() -> None:
    closed = False

    async def chunks() -> AsyncGenerator[bytes, None]:
        nonlocal closed
        try:
            await asyncio.sleep(60)
            yield b""
        finally:
            closed = True

    pinged = with_pings(chunks(), every=0.01)
    await anext(pinged)
    await pinged.aclose()
    assert closed
