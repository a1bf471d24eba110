"""Server-sent events: how a stream is written, kept alive, and begun only when nothing can fail before its first byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from typing import TypeVar

from fastapi import Request
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.types import Send

from api.answering import closing
from api.leaving import stop, unless_client_leaves

T = TypeVar("T")

PING_SECONDS = 15.0
MEDIA_TYPE = "text/event-stream"


class EventStream(StreamingResponse):
    """Bytes of events. The generator behind it is closed when the client leaves, wherever it stands."""

    media_type = MEDIA_TYPE

    def __init__(self, content: AsyncGenerator[bytes, None]) -> None:
        super().__init__(content, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})

    async def stream_response(self, send: Send) -> None:
        """Overrides Starlette's, which leaves a generator it was sending from to the garbage collector."""
        async with closing(aiter(self.body_iterator)):
            await super().stream_response(send)


def wants_stream(request: Request) -> bool:
    """Whether `Accept` asks for server-sent events."""
    return MEDIA_TYPE in request.headers.get("accept", "")


def event(name: str, data: Mapping[str, object]) -> bytes:
    """One named event with a JSON object."""
    return format_sse_event(event=name, data_str=json.dumps(data, ensure_ascii=False))


def message(data: Mapping[str, object]) -> bytes:
    """One nameless event with a JSON object, as OpenAI's API streams them."""
    return format_sse_event(data_str=json.dumps(data, ensure_ascii=False))


async def begun(request: Request, source: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """`source` with its first item already fetched: what fails before that raises here, while a status can still tell.

    Raises ClientDisconnect when the client leaves meanwhile.
    """

    async def fetch() -> T:
        return await anext(source)

    async def rest(first: T) -> AsyncGenerator[T, None]:
        async with closing(source):
            yield first
            async for item in source:
                yield item

    try:
        return rest(await unless_client_leaves(request, fetch()))
    except BaseException:
        await source.aclose()
        raise


async def with_pings(chunks: AsyncGenerator[bytes, None], every: float = PING_SECONDS) -> AsyncGenerator[bytes, None]:
    """The chunks, with a comment whenever `every` seconds bring none, so that no proxy takes the stream for dead."""

    async def fetch() -> bytes:
        return await anext(chunks)

    async with closing(chunks):
        while True:
            pending = asyncio.ensure_future(fetch())
            try:
                while not (await asyncio.wait({pending}, timeout=every))[0]:
                    yield KEEPALIVE_COMMENT
                yield pending.result()
            except StopAsyncIteration:
                return
            finally:
                await stop(pending)
