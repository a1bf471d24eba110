"""The outermost layer: a request id, one log line and one figure a request, and an answer even to what nobody foresaw."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import error_response, noted
from api.logs import EXTRA, request_id
from api.metrics import Metrics

log = logging.getLogger("footnote.http")
ACCEPTED_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
HEADER = "X-Request-ID"
CLIENT_LEFT = 499
"""nginx's number for a client that left before it was answered; seen in logs and figures only."""


@dataclass
class RequestContext:
    """ASGI middleware. The log line names the path without its query string, which may hold a question."""

    app: ASGIApp
    metrics: Metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        current = given if ACCEPTED_ID.fullmatch(given) else uuid.uuid4().hex
        token = request_id.set(current)
        status = CLIENT_LEFT
        began = time.perf_counter()

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = current
            await send(message)

        try:
            await self._answer(scope, receive, send_with_id, lambda: status != CLIENT_LEFT)
        finally:
            self._note(scope, status, time.perf_counter() - began)
            request_id.reset(token)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, started: Callable[[], bool]) -> None:
        try:
            await self.app(scope, receive, send)
        except ClientDisconnect:
            return
        except Exception as error:
            trouble = noted(error)
            if started():
                raise
            await error_response(scope["path"], trouble)(scope, receive, send)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path_format", None) or "none"
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.metrics.request(method, route, status, seconds)
        caller = scope.get("state", {}).get("caller")
        fields: dict[str, object] = {
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "ms": round(seconds * 1000, 1),
            "owner": caller.owner if caller else None,
        }
        log.info("request", extra={EXTRA: fields})
