"""The library's engine, whose loading waits for the indexes: they may be built anew, and health is told meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from anyio.to_thread import run_sync

from api.library import Library
from rag.errors import Unavailable
from rag.protocols import Engine
from rag.types import AnswerEvent, Filters, Turn

PATIENCE_SECONDS = 20.0
"""How long a question waits for the engine to be there: an opened library takes a second or two, a rebuilt index minutes."""


@dataclass
class PatientEngine:
    """An engine that is loaded on a thread, when asked for first; `on_loaded` is called there afterwards."""

    library: Library
    on_loaded: Callable[[], None] = lambda: None
    patience: float = PATIENCE_SECONDS
    _loading: asyncio.Future[Engine] | None = None

    async def loaded(self) -> Engine:
        """The engine. Raises Unavailable when it is not there in time; what loading raised is raised once, then tried again."""
        if self._loading is None or (self._loading.done() and (self._loading.cancelled() or self._loading.exception())):
            self._loading = asyncio.ensure_future(run_sync(self._load, abandon_on_cancel=True))
        try:
            return await asyncio.wait_for(asyncio.shield(self._loading), self.patience)
        except TimeoutError as error:
            raise Unavailable("The indexes are being brought up to date; ask again in a moment.") from error

    def _load(self) -> Engine:
        engine = self.library.engine
        self.on_loaded()
        return engine

    async def stream(
        self, question: str, *, history: Sequence[Turn] = (), filters: Filters = Filters(), top_n: int = 8
    ) -> AsyncGenerator[AnswerEvent, None]:
        """The engine's events; raises Unavailable when it is not there in time."""
        engine = await self.loaded()
        stream = engine.stream(question, history=history, filters=filters, top_n=top_n)
        try:
            async for event in stream:
                yield event
        finally:
            await stream.aclose()
