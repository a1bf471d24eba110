"""Headers every response carries: a strict Content-Security-Policy above all."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

STRICT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
DOCS = STRICT.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
"""Swagger UI sets styles on its elements; its scripts come from an installed package and need no more than the page's."""

FIXED = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass
class SecurityHeaders:
    """ASGI middleware that adds them, and `Cache-Control` unless a route said otherwise: nothing of the API is stored, and the
    page's files are asked for again after an update."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(FIXED)
                headers["Content-Security-Policy"] = DOCS if path.startswith("/docs") else STRICT
                if path.startswith(("/api/", "/v1/")):
                    headers.setdefault("Cache-Control", "no-store")
                elif path.startswith("/static/"):
                    headers.setdefault("Cache-Control", "no-cache")
            await send(message)

        await self.app(scope, receive, send_with_headers)
