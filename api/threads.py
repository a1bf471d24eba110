"""Blocking calls of the catalogue and the journal, on threads of their own: a slow database never starves the health check."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

T = TypeVar("T")


@dataclass(frozen=True)
class Threads:
    """At most `limiter` calls at once; each must be back in `seconds`."""

    seconds: float = 30.0
    limiter: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(16))
    _undoing: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns. Raises TimeoutError when it is not back in time; the thread then ends by itself."""
        async with asyncio.timeout(self.seconds):
            return await anyio.to_thread.run_sync(work, limiter=self.limiter, abandon_on_cancel=True)

    async def take(self, work: Callable[[], T], give_back: Callable[[T], None]) -> T:
        """As `run`; if nobody waits any more when `work` returns, what it took is given back."""
        taking = asyncio.ensure_future(self.run(work))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            undoing = asyncio.create_task(self._give_back(taking, give_back))
            self._undoing.add(undoing)
            undoing.add_done_callback(self._undoing.discard)
            raise

    async def _give_back(self, taking: asyncio.Future[T], give_back: Callable[[T], None]) -> None:
        try:
            taken = await taking
        except Exception:
            return  # nothing was taken
        await self.run(lambda: give_back(taken))
