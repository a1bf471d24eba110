"""The application, put together: middleware from the outside in, then the routes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import Lifespan

import api.errors
from api import answers, ask, conversations, formulas, openai_chat, operations, papers, upload, verify
from api.answering import Answering, Work
from api.body_limit import BodyLimit
from api.context import OWN, WITH_KEY, Context
from api.headers import SecurityHeaders
from api.leaving import stop
from api.library import Library
from api.lifecycle import Lifecycle, on_signals
from api.limits import Generations, RateLimit
from api.metrics import Metrics
from api.openapi import OPENAI_ERRORS, OWN_ERRORS, describe
from api.patient_engine import PatientEngine
from api.request_context import HEADER, RequestContext
from api.security import Gate, Keys
from api.site import add_site
from api.threads import Threads
from rag.settings import Settings

if TYPE_CHECKING:
    from api.slack import HttpDoor

SPARE = 15.0
"""Seconds an answer may take beyond the LLM's own deadline: retrieval, verification, storing."""

UPLOAD_SECONDS = 1800.0
EXPOSED = [HEADER, "Retry-After", "Content-Disposition"]


def create_app(
    library: Library,
    settings: Settings,
    keys: Keys,
    *,
    loaded: Callable[[], None] = lambda: None,
    close: Callable[[], None] = lambda: None,
) -> FastAPI:
    """The HTTP service over a library; `loaded` is called once its engine is, `close` after the last request."""
    context = make_context(library, settings, loaded)
    slack = slack_door(context, settings)
    life = partial(lifespan, context=context, close=close, beside=slack.running if slack else nullcontext)
    app = routed_app(middleware(settings, keys, context.metrics), life)
    if slack:
        app.router.routes.append(slack.route)
    app.state.context = context
    return app


def routed_app(middleware: Sequence[Middleware] = (), lifespan: Lifespan[FastAPI] | None = None) -> FastAPI:
    """The routes alone, which is all that the OpenAPI document needs."""
    app = FastAPI(
        title="Footnote",
        summary="Answers from a shelf of paper abstracts, every sentence with a footnote that was checked.",
        version="1",
        middleware=middleware,
        lifespan=lifespan,
        telemetry={"auto_configure": True, "exclude": holds_a_question},
        generate_unique_id_function=lambda route: route.name,
        docs_url=None,
        redoc_url=None,
    )
    for part in (ask, conversations, answers, verify, formulas, upload, papers):
        app.include_router(part.router, dependencies=WITH_KEY, responses=OWN_ERRORS)
    app.include_router(openai_chat.router, dependencies=WITH_KEY, responses=OPENAI_ERRORS)
    app.include_router(operations.router, responses=OWN_ERRORS)
    api.errors.install(app)
    add_site(app)
    describe(app)
    return app


def holds_a_question(scope: MutableMapping[str, Any]) -> bool:
    """Requests that OpenTelemetry does not hear of: it would keep their query string, which is what somebody asked."""
    return str(scope.get("path", "")).endswith("/search")


def slack_door(context: Context, settings: Settings) -> HttpDoor | None:
    """Slack's events, if they are to come here; loads Slack's client only then. Raises SettingsError."""
    if not settings.slack_signing_secret.get_secret_value():
        return None
    from api.slack import http_door

    return http_door(context, settings)


def make_context(library: Library, settings: Settings, loaded: Callable[[], None] = lambda: None) -> Context:
    """What the handlers work with; `loaded` is called once the library's engine is."""
    metrics, lifecycle = Metrics(), Lifecycle()
    work = Work(Generations(settings.max_concurrent), lifecycle, metrics, settings.llm_timeout + SPARE)
    return Context(
        library=library,
        answering=Answering(PatientEngine(library, loaded), work, settings.log_questions),
        work=work,
        threads=Threads(),
        uploads=Threads(UPLOAD_SECONDS),
        metrics=metrics,
        lifecycle=lifecycle,
    )


def middleware(settings: Settings, keys: Keys, metrics: Metrics) -> list[Middleware]:
    """From the outside in. None reads a body, none wraps the response in a task of its own."""
    origins = tuple(settings.cors_origins.replace(",", " ").split())
    cors = Middleware(CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], expose_headers=EXPOSED)
    return [
        Middleware(RequestContext, metrics=metrics),
        Middleware(SecurityHeaders),
        *([cors] if origins else []),
        Middleware(Gate, keys=keys, rate=RateLimit(settings.rate_limit), origins=origins),
        Middleware(BodyLimit, larger={f"{OWN}/papers": upload.LIMIT}),
    ]


@asynccontextmanager
async def lifespan(
    app: FastAPI,
    *,
    context: Context,
    close: Callable[[], None],
    beside: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> AsyncGenerator[None, None]:
    """From the first request to the last; what runs `beside` them ends after them and before `close`."""
    loading = asyncio.create_task(context.answering.engine.loaded())
    with on_signals(context.lifecycle.end):
        async with beside():
            yield
    await stop(loading)
    await anyio.to_thread.run_sync(close)
