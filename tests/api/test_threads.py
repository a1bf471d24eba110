import asyncio
import threading
import time

import pytest

from api.threads import Threads


async def test_what_was_taken_for_somebody_who_left_is_given_back() -> None:
    threads, gate = Threads(), threading.Event()
    returned: list[str] = []

    def take() -> str:
        gate.wait(5)
        return "turn"

    waiting = asyncio.create_task(threads.take(take, returned.append))
    await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert returned == []
    gate.set()
    for _ in range(100):
        await asyncio.sleep(0.01)
        if returned:
            break
    assert returned == ["turn"]


async def test_what_was_taken_is_kept_by_somebody_who_stayed() -> None:
    returned: list[str] = []
    assert await Threads().take(lambda: "turn", returned.append) == "turn"
    assert returned == []


async def test_a_call_that_does_not_come_back_is_a_timeout() -> None:
    with pytest.raises(TimeoutError):
        await Threads(seconds=0.05).run(lambda: time.sleep(0.3))
