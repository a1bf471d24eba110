"""How much a client may send. Our own, because FastAPI's answers 413 in plain text where the length is known beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import ApiError, error_response, trouble_of

LIMIT = 2**20
"""Bytes of a body, but for the paths in `larger`."""


@dataclass
class BodyLimit:
    """ASGI middleware: 413 before a body that says it is too long, and as soon as one that does not say has become so."""

    app: ASGIApp
    larger: Mapping[str, int]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        most = self.larger.get(scope["path"], LIMIT)
        said = Headers(scope=scope).get("content-length", "0")
        if said.isdecimal() and int(said) > most:
            error = ApiError(413, "too_large", f"The body may have {most:,} bytes at most.")
            await error_response(scope["path"], trouble_of(error))(scope, receive, send)
            return
        await self.app(scope, counted(receive, most), send)


def counted(receive: Receive, most: int) -> Receive:
    """`receive`, which raises HTTPException 413 once more than `most` bytes have come."""
    total = 0

    async def receive_counted() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > most:
            raise HTTPException(413, f"The body may have {most:,} bytes at most.")
        return message

    return receive_counted
