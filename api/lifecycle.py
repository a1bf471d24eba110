"""Ending well: from SIGTERM on nothing new is begun; what runs may finish, and after a while is told to end."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from api.errors import ApiError

FINISH_SECONDS = 20.0
"""Running answers get this long; uvicorn ends what is left at 25 s, Compose's `stop_grace_period` is 30 s."""


@dataclass
class Lifecycle:
    """Whether the server is going down (since `ended_at`, by the loop's clock), and the answers to end before it does."""

    finish_seconds: float = FINISH_SECONDS
    ending: bool = False
    ended_at: float | None = None
    _enders: set[Callable[[], None]] = field(default_factory=set)

    def end(self) -> None:
        """Begins the end: called on the event loop, once."""
        if not self.ending:
            loop = asyncio.get_running_loop()
            self.ending, self.ended_at = True, loop.time()
            loop.call_later(self.finish_seconds, self._end_running)

    def _end_running(self) -> None:
        for end in tuple(self._enders):
            end()

    @contextmanager
    def running(self, end: Callable[[], None]) -> Iterator[None]:
        """Registers work that `end` can stop. Raises ApiError 503 when the server is going down already."""
        if self.ending:
            raise ApiError(503, "ending", "The server is going down; try again in a moment.", retry_after=5)
        self._enders.add(end)
        try:
            yield
        finally:
            self._enders.discard(end)


@contextmanager
def on_signals(end: Callable[[], None]) -> Iterator[None]:
    """Calls `end` on the running loop when SIGTERM or SIGINT comes, then whatever handler stood there before (uvicorn's)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(end)
        previous = before[signal.Signals(number)]
        if callable(previous):
            previous(number, frame)

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, previous in before.items():
            if signal.getsignal(number) is handle:
                signal.signal(number, previous)
