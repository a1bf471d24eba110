"""The queue, the fuse and the pace on their own."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from api import slack_queue
from api.slack_queue import Fuse, JobQueue, Pace


@dataclass(eq=False)
class Noted:
    """A job that notes what became of it."""

    seconds: float = 0.0
    fault: Exception | None = None
    became: list[str] = field(default_factory=list)

    async def run(self) -> None:
        self.became.append("begun")
        await asyncio.sleep(self.seconds)
        if self.fault:
            raise self.fault
        self.became.append("done")

    async def give_up(self) -> None:
        self.became.append("given up")


async def test_a_full_queue_takes_nothing() -> None:
    queue = JobQueue(size=2, workers=1)
    assert [queue.offer(Noted()) for _ in range(3)] == [True, True, False]


async def test_draining_finishes_what_was_taken_and_takes_nothing_more() -> None:
    queue = JobQueue(size=10, workers=2)
    queue.start()
    jobs = [Noted(0.01) for _ in range(6)]
    assert all(queue.offer(job) for job in jobs)
    await queue.drain(5)
    assert all(job.became == ["begun", "done"] for job in jobs)
    assert not queue.offer(Noted())


async def test_what_is_not_done_in_time_is_given_up_running_or_not() -> None:
    queue = JobQueue(size=10, workers=1)
    queue.start()
    jobs = [Noted(60), Noted()]
    for job in jobs:
        queue.offer(job)
    await queue.drain(0.05)
    assert [job.became for job in jobs] == [["begun", "given up"], ["given up"]]


async def test_a_farewell_does_not_last_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mute(Noted):
        async def give_up(self) -> None:
            await asyncio.sleep(60)

    monkeypatch.setattr(slack_queue, "FAREWELL_SECONDS", 0.05)
    queue = JobQueue(size=10, workers=1)
    queue.offer(Mute())
    await asyncio.wait_for(queue.drain(0.05), 1)


async def test_a_job_that_fails_stops_no_worker(caplog: pytest.LogCaptureFixture) -> None:
    queue = JobQueue(size=10, workers=1)
    queue.start()
    after = Noted()
    queue.offer(Noted(fault=ValueError("oh")))
    queue.offer(after)
    await queue.drain(5)
    assert after.became == ["begun", "done"]
    assert "oh" in caplog.text


def ticking(times: list[float]) -> Callable[[], float]:
    return lambda: times.pop(0)


def test_the_fuse_tells_once_then_drops_then_recovers() -> None:
    fuse = Fuse(2, clock=ticking([0, 1, 2, 3, 59, 61, 62.5, 63]))
    said = [fuse.admit("thread") for _ in range(8)]
    assert said == ["go", "go", "tell", "drop", "drop", "go", "go", "tell"]


def test_the_fuse_counts_each_thread_by_itself() -> None:
    fuse = Fuse(1, clock=lambda: 0.0)
    assert [fuse.admit(thread) for thread in "abab"] == ["go", "go", "tell", "tell"]


def test_the_fuse_forgets_threads_that_are_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slack_queue, "REMEMBERED", 3)
    now = [0.0]
    fuse = Fuse(1, clock=lambda: now[0])
    for n in range(50):
        now[0] += 30
        fuse.admit(str(n))
    assert len(fuse._times) <= 5


async def test_the_pace_lets_channels_go_side_by_side_and_posts_of_one_apart() -> None:
    pace = Pace(0.1)
    began: dict[str, list[float]] = {"a": [], "b": []}

    async def post(channel: str) -> None:
        async with pace.turn(channel):
            began[channel].append(time.monotonic())

    await asyncio.gather(*(post(channel) for channel in "ababab"))
    for times in began.values():
        assert all(later - earlier >= 0.1 for earlier, later in itertools.pairwise(times))
    assert max(times[-1] for times in began.values()) - min(times[0] for times in began.values()) < 0.45


async def test_the_pace_forgets_channels_that_are_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slack_queue, "REMEMBERED", 3)
    pace = Pace(0)
    for n in range(20):
        async with pace.turn(str(n)):
            pass
    assert len(pace._channels) <= 5
