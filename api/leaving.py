"""Work stops when the client leaves: a plain handler is not cancelled by itself (Starlette cancels streams only)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from anyio import CancelScope
from fastapi import Request
from starlette.requests import ClientDisconnect

T = TypeVar("T")


async def unless_client_leaves(request: Request, work: Coroutine[object, object, T]) -> T:
    """The result of `work`, which is cancelled as soon as the connection closes. The request's body must have been read.

    Raises ClientDisconnect when the client left.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnect
    finally:
        await stop(gone)
        await stop(task)


async def stop(task: asyncio.Future[T]) -> None:
    """Cancels a task and waits for it to end, once: neither a cancelled scope nor `gather` may cancel its cleaning up."""
    task.cancel()
    with CancelScope(shield=True):
        await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # seen, so that asyncio does not complain


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
