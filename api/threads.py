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

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns. Raises TimeoutError when it is not back in time; the thread then ends by itself."""
        async with asyncio.timeout(self.seconds):
            return await anyio.to_thread.run_sync(work, limiter=self.limiter, abandon_on_cancel=True)
