"""Slack's door: events over HTTP (`/slack/events`) or Socket Mode (`footnote slack`).

The only file that knows slack_bolt. Bolt reads and acknowledges; it does not know a second delivery, waits for none of its
listeners at the end and answers malformed requests with 500, so the bot, its queue and a guard are ours.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import typer
from aiohttp import ClientError
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.errors import SlackApiError
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api.context import Context
from api.errors import ApiError
from api.logs import log_as_json
from api.serve import SWITCH_SECONDS
from api.slack_blocks import RATE
from api.slack_bot import Bot
from api.slack_events import read_click, read_command, read_event
from api.slack_web import SlackChat
from rag.build import open_library
from rag.errors import SettingsError
from rag.settings import Settings

PATH = "/slack/events"


def listening(bot: Bot, token: str, base_url: str) -> AsyncApp:
    """A bolt app that hands everything to the bot and acknowledges at once. The guard has checked who sends; so that no event
    waits for `auth.test`, bolt is told at once that the token is good."""

    async def authorize(team_id: str | None = None, enterprise_id: str | None = None, **_: object) -> AuthorizeResult:
        return AuthorizeResult(enterprise_id=enterprise_id, team_id=team_id, bot_token=token)

    app = AsyncApp(
        name="footnote",
        client=AsyncWebClient(base_url=base_url),
        authorize=authorize,
        request_verification_enabled=False,
        ignoring_self_events_enabled=False,
        attaching_conversation_kwargs_enabled=False,
        process_before_response=True,  # what was acknowledged has been heard: bolt waits for no listener at the end
    )

    async def on_event(body: dict[str, Any]) -> None:  # Any: Slack's JSON
        if asked := read_event(body):
            bot.hear(asked)

    async def on_command(ack: Callable[..., Awaitable[object]], command: dict[str, str]) -> None:
        refused = bot.command(read_command(command))
        await (ack(refused) if refused else ack())

    async def on_click(ack: Callable[..., Awaitable[object]], body: dict[str, Any]) -> None:  # Any: Slack's JSON
        await ack()
        bot.click(read_click(body))

    app.event(re.compile(".*"))(on_event)
    app.command(re.compile(".*"))(on_command)
    app.action(re.compile(f"^{RATE}_(up|down)$"))(on_click)
    return app


@dataclass(frozen=True)
class HttpDoor:
    """Slack over HTTP: a route, and the bot that runs while it is served."""

    route: Route
    running: Callable[[], AbstractAsyncContextManager[None]]


def http_door(context: Context, settings: Settings) -> HttpDoor:
    """The door for settings with a signing secret. Raises SettingsError without a token."""
    verifier = SignatureVerifier(settings.slack_signing_secret.get_secret_value())
    bot, app = open_bot(context, settings)
    return HttpDoor(Route(PATH, guarded(app, verifier), methods=["POST"]), bot.running)


def open_bot(context: Context, settings: Settings) -> tuple[Bot, AsyncApp]:
    """The bot and what listens for it. Raises SettingsError without a token."""
    token = settings.slack_bot_token.get_secret_value()
    if not token:
        raise SettingsError("FOOTNOTE_SLACK_BOT_TOKEN is needed too: the token that begins with xoxb-.")
    chat = SlackChat(token, settings.slack_api_url)
    bot = Bot(context, chat, channel_ids(settings.slack_channels), stream=settings.slack_stream)
    return bot, listening(bot, token, settings.slack_api_url)


def channel_ids(text: str) -> Collection[str]:
    """The ids in FOOTNOTE_SLACK_CHANNELS. Raises SettingsError for a name in place of an id."""
    ids = text.replace(",", " ").split()
    for one in ids:
        if not re.fullmatch(r"[CGD][A-Z0-9]+", one):
            raise SettingsError(
                f"FOOTNOTE_SLACK_CHANNELS: {one} is no channel id; it stands at the end of the channel's details."
            )
    return frozenset(ids)


def guarded(app: AsyncApp, verifier: SignatureVerifier) -> Callable[[Request], Awaitable[Response]]:
    """Slack's requests on their way to bolt: 401 for what Slack did not sign just now, 400 for what cannot be read (of which
    bolt makes errors of several kinds, or a 500)."""

    async def events(request: Request) -> Response:
        body = read_body(request.headers, await request.body(), verifier)
        malformed = ApiError(400, "malformed", "This is none of Slack's requests.")
        try:
            answer = await app.async_dispatch(AsyncBoltRequest(body=body, headers=dict(request.headers)))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise malformed from error
        if answer.status >= 500:
            raise malformed
        return Response(answer.body, answer.status, answer.first_headers())

    return events


def read_body(headers: Mapping[str, str], body: bytes, verifier: SignatureVerifier) -> str:
    """The text of a request that Slack signed within the last minutes. Raises ApiError 401, 400."""
    timestamp = headers.get("x-slack-request-timestamp", "")
    signature = headers.get("x-slack-signature", "")
    if not re.fullmatch(r"[0-9]{1,12}", timestamp) or not re.fullmatch(r"v0=[0-9a-f]{64}", signature):
        raise ApiError(401, "unsigned", "Slack's signature is missing or malformed.")
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise ApiError(400, "malformed", "The body is not UTF-8.") from error
    if not verifier.is_valid(text, timestamp, signature):
        raise ApiError(401, "unsigned", "Slack's signature does not fit, or is too old.")
    if headers.get("content-type", "").startswith("application/json") and not is_object(text):
        raise ApiError(400, "malformed", "The body is not a JSON object.")
    return text


def is_object(text: str) -> bool:
    """Whether this is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def serve(settings: Settings) -> None:
    """`footnote slack`: answers in Slack over Socket Mode until SIGTERM or Ctrl-C. Raises SettingsError for a token that is
    missing or not accepted."""
    from api.app import make_context  # which loads this file where Slack is served over HTTP

    if not settings.slack_app_token.get_secret_value():
        raise SettingsError("FOOTNOTE_SLACK_APP_TOKEN is needed: the token that begins with xapp-, for Socket Mode.")
    log_as_json()
    sys.setswitchinterval(SWITCH_SECONDS)
    with open_library(settings) as library:
        library.indexes.follow()
        asyncio.run(serve_sockets(make_context(library, settings), settings))


async def serve_sockets(context: Context, settings: Settings) -> None:
    """Listens until a signal comes, then finishes what was asked."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with socket_mode(context, settings):
        typer.echo("Footnote listens to Slack; Ctrl-C ends it.", err=True)
        await stop.wait()


@asynccontextmanager
async def socket_mode(context: Context, settings: Settings) -> AsyncGenerator[None, None]:
    """Connected to Slack inside its block; at its end nothing new is heard, and what was is answered. Raises SettingsError."""
    bot, app = open_bot(context, settings)
    async with bot.running():
        handler = AsyncSocketModeHandler(app, settings.slack_app_token.get_secret_value())
        try:
            await connect(handler)
            yield
        finally:
            await handler.close_async()  # type: ignore[no-untyped-call]  # bolt leaves it untyped


async def connect(handler: AsyncSocketModeHandler) -> None:
    """Opens the connection; later bolt opens it again whenever it breaks, for ever. Raises SettingsError the first time."""
    try:
        handler.client.wss_uri = await handler.client.issue_new_wss_url()
    except SlackApiError as error:
        raise SettingsError(f"FOOTNOTE_SLACK_APP_TOKEN: Slack says {error.response['error']}.") from error
    except (ClientError, TimeoutError) as error:
        raise SettingsError(f"Slack cannot be reached at FOOTNOTE_SLACK_API_URL ({type(error).__name__}).") from error
    await handler.connect_async()  # type: ignore[no-untyped-call]  # bolt leaves it untyped
