"""What keeps Slack's questions in order: a bounded queue that is drained at the end, a fuse, and Slack's own pace."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from rag.errors import is_panic

log = logging.getLogger(__name__)

REMEMBERED = 1_000
"""Threads or channels kept in mind before those that have gone quiet are forgotten."""

FAREWELL_SECONDS = 5.0


class Job(Protocol):
    """Something to be done that somebody waits for."""

    async def run(self) -> None:
        """Does it; what goes wrong it tells itself."""

    async def give_up(self) -> None:
        """Tells that it will not be done."""


class JobQueue:
    """At most `size` jobs waiting, `workers` running at once."""

    def __init__(self, size: int, workers: int) -> None:
        self._waiting: asyncio.Queue[Job] = asyncio.Queue(size)
        self._running: set[Job] = set()
        self._workers = workers
        self._tasks: list[asyncio.Task[None]] = []
        self._open = True

    def start(self) -> None:
        """Begins to work; on the running loop."""
        self._tasks = [asyncio.create_task(self._work()) for _ in range(self._workers)]

    def offer(self, job: Job) -> bool:
        """Takes a job at once; False when there is no room, or no time left."""
        if not self._open or self._waiting.full():
            return False
        self._waiting.put_nowait(job)
        return True

    @property
    def ahead(self) -> int:
        """How many jobs have to end before the one taken last begins."""
        return max(0, self._waiting.qsize() + len(self._running) - self._workers)

    async def drain(self, seconds: float) -> None:
        """Finishes what was taken; what is not done after `seconds` is given up, aloud."""
        self._open = False
        try:
            async with asyncio.timeout(seconds):
                await self._waiting.join()
        except TimeoutError:
            left = self._left()
        else:
            left = []
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if left:
            await self._say_farewell(left)

    def _left(self) -> list[Job]:
        left = list(self._running)
        while not self._waiting.empty():
            left.append(self._waiting.get_nowait())
        return left

    async def _say_farewell(self, left: list[Job]) -> None:
        try:
            async with asyncio.timeout(FAREWELL_SECONDS):
                await asyncio.gather(*(job.give_up() for job in left), return_exceptions=True)
        except TimeoutError:
            log.warning("%d jobs were dropped unanswered", len(left))

    async def _work(self) -> None:
        while True:
            job = await self._waiting.get()
            self._running.add(job)
            try:
                await job.run()
            except BaseException as error:
                if not isinstance(error, Exception) and not is_panic(error):
                    raise
                log.exception("a job failed")
            finally:
                self._running.discard(job)
                self._waiting.task_done()


Admission = Literal["go", "tell", "drop"]


@dataclass
class Fuse:
    """Breaks a loop: at most `most` questions a thread and minute. The first too many is told so, the rest of them nothing. It
    also counts the streams of a workspace."""

    most: int
    seconds: float = 60.0
    clock: Callable[[], float] = time.monotonic
    _times: dict[str, deque[float]] = field(default_factory=dict)

    def admit(self, thread: str) -> Admission:
        """Whether a question of this thread may be answered now."""
        now = self.clock()
        self._forget(now)
        times = self._times.setdefault(thread, deque(maxlen=self.most + 1))
        while times and now - times[0] >= self.seconds:
            times.popleft()
        if len(times) > self.most:
            return "drop"
        times.append(now)
        return "go" if len(times) <= self.most else "tell"

    def _forget(self, now: float) -> None:
        if len(self._times) > REMEMBERED:
            self._times = {key: times for key, times in self._times.items() if times and now - times[-1] < self.seconds}


@dataclass
class Pace:
    """One post a second and channel, which is what Slack takes."""

    seconds: float = 1.1
    _channels: dict[str, _Channel] = field(default_factory=dict)

    @asynccontextmanager
    async def turn(self, channel: str) -> AsyncGenerator[None, None]:
        """Waits for the channel's turn; the next begins `seconds` after this one has ended."""
        self._forget()
        own = self._channels.setdefault(channel, _Channel())
        own.users += 1
        try:
            async with own.lock:
                await asyncio.sleep(own.free_at - time.monotonic())
                try:
                    yield
                finally:
                    own.free_at = time.monotonic() + self.seconds
        finally:
            own.users -= 1

    def _forget(self) -> None:
        if len(self._channels) > REMEMBERED:
            now = time.monotonic()
            self._channels = {key: one for key, one in self._channels.items() if one.users or one.free_at > now}


@dataclass
class _Channel:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    free_at: float = 0.0
    users: int = 0
