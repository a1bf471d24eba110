"""How often a key may ask, and how many answers may be made at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from api.errors import ApiError


@dataclass
class RateLimit:
    """A token bucket for each owner: `per_minute` requests a minute, as many in one go; 0 allows all.

    Owners are configured keys, so the table cannot grow without end.
    """

    per_minute: int
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict)

    def spend(self, owner: str, now: float | None = None) -> None:
        """Takes one request off the owner's bucket. Raises ApiError 429 with the seconds until the next is free."""
        if not self.per_minute:
            return
        now = time.monotonic() if now is None else now
        left, since = self._buckets.get(owner, (float(self.per_minute), now))
        left = min(self.per_minute, left + (now - since) * self.per_minute / 60)
        if left < 1:
            wait = (1 - left) * 60 / self.per_minute
            raise ApiError(429, "rate_limited", f"More than {self.per_minute} requests a minute with this key.", retry_after=wait)
        self._buckets[owner] = (left - 1, now)


@dataclass
class Generations:
    """The answers being made right now, at most `most` of them."""

    most: int
    running: int = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Holds a place while an answer is made. Raises ApiError 429 at once when none is free: waiting would hide the load."""
        if self.running >= self.most:
            raise ApiError(429, "too_many_answers", f"{self.most} answers are being made already; try again.", retry_after=1)
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
