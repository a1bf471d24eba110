"""Connections that nobody holds open by sending a request drop by drop: uvicorn's own protocol waits for ever, and before any key
is looked at."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

PATIENCE_SECONDS = 30.0
"""From a request's first byte (the connection's begin, for the first) to its last, and more as more comes, …"""

SLOWEST = 16 * 1024
"""… so many bytes a second, at which the largest upload takes less than two hours."""

HEADER_BYTES = 64 * 1024
"""Of a request's line and headers together."""


class ImpatientProtocol(HttpToolsProtocol):
    """One connection. Closed when a request does not come in time; 400 for endless headers. Idle ones, and those that wait for an
    answer, are left to uvicorn."""

    patience = PATIENCE_SECONDS
    _waiting: asyncio.TimerHandle | None = None
    _began = 0.0
    _received = 0
    _in_headers = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Waits for the first request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits no more."""
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Counts what has come of the request."""
        self._received += len(data)
        super().data_received(data)
        if self._in_headers and self._received > HEADER_BYTES and not self.transport.is_closing():
            self.send_400_response(f"The headers may have {HEADER_BYTES:,} bytes at most.")

    def on_message_begin(self) -> None:
        """Waits for the rest."""
        super().on_message_begin()
        self._in_headers = True
        self._wait()

    def on_headers_complete(self) -> None:
        """From here on the application sees to how much comes."""
        self._in_headers = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Has it all."""
        super().on_message_complete()
        self._wait_no_more()
        self._received = 0

    def _wait(self) -> None:
        self._wait_no_more()
        self._began = self.loop.time()
        self._waiting = self.loop.call_at(self._due(), self._look)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _due(self) -> float:
        return self._began + self.patience + self._received / SLOWEST

    def _look(self) -> None:
        """Closes the connection, unless more has come meanwhile or it is we who do not read."""
        now = self.loop.time()
        if now >= self._due() and not self.flow.read_paused:
            self.transport.close()
        else:
            self._waiting = self.loop.call_at(max(self._due(), now + 1), self._look)
