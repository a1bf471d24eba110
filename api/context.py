"""What every handler works with, and how it gets it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer

from api.answering import Answering, Work
from api.errors import ApiError
from api.library import Library
from api.lifecycle import Lifecycle
from api.metrics import Metrics
from api.security import Caller
from api.threads import Threads

bearer = HTTPBearer(
    auto_error=False, description="One of FOOTNOTE_API_KEYS or FOOTNOTE_ADMIN_KEYS; not needed on a bare loopback."
)
"""Only describes the scheme in the OpenAPI document: `Gate` has looked at the key before."""


@dataclass(frozen=True)
class Context:
    """The library, and the limits under which HTTP uses it."""

    library: Library
    answering: Answering
    work: Work
    threads: Threads
    uploads: Threads
    metrics: Metrics
    lifecycle: Lifecycle


def context_of(request: Request) -> Context:
    """The context `create_app` made."""
    context: Context = request.app.state.context
    return context


def caller_of(request: Request) -> Caller:
    """Who asks, as `Gate` found out."""
    caller: Caller = request.state.caller
    return caller


def admin_of(caller: Annotated[Caller, Depends(caller_of)]) -> Caller:
    """Who asks, if they may change the papers. Raises ApiError 403."""
    if not caller.admin:
        raise ApiError(403, "admin_key_needed", "Changing the papers takes one of FOOTNOTE_ADMIN_KEYS.")
    return caller


The = Annotated[Context, Depends(context_of)]
Asker = Annotated[Caller, Depends(caller_of)]
Admin = Annotated[Caller, Depends(admin_of)]
OWN = "/api/v1"
"""Where our own API is. Routers carry their whole prefix, so that `scope["route"]` tells the whole path's template."""

WITH_KEY = [Security(bearer)]
