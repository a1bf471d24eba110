"""Slack's door: events over HTTP (`/slack/events`) or Socket Mode (`footnote slack`), and what the bot does in Slack.

The only file that knows slack_bolt and slack_sdk. Bolt reads and acknowledges; it does not know a second delivery, waits for
none of its listeners at the end and answers malformed requests with 500, so the bot, its queue and a guard are ours.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import typer
from aiohttp import ClientConnectorError, ClientError
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry.builtin_async_handlers import AsyncConnectionErrorRetryHandler, AsyncRateLimitErrorRetryHandler
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api.context import Context
from api.errors import ApiError
from api.logs import log_as_json
from api.serve import SWITCH_SECONDS
from api.slack_blocks import RATE, Message
from api.slack_bot import Bot, Place, Refused, Said
from api.slack_events import read_click, read_command, read_event
from api.slack_queue import Pace
from api.slack_text import read_question
from rag.build import open_library
from rag.doctor import Finding
from rag.errors import SettingsError
from rag.settings import Settings

log = logging.getLogger(__name__)

PATH = "/slack/events"
POST_SECONDS = 240.0
"""A post, with all the waiting that Slack asks for."""

TRIES = 6
BRIEF_SECONDS = 5
READ_MESSAGES = 100
WORKING = "is reading the papers…"


class SlackChat:
    """Slack's Web API, as far as the bot needs it."""

    def __init__(self, token: str, base_url: str) -> None:
        patient = [
            AsyncRateLimitErrorRetryHandler(max_retry_count=TRIES),
            AsyncConnectionErrorRetryHandler(max_retry_count=2, error_types=[ClientConnectorError]),  # nothing was sent
        ]
        self._client = AsyncWebClient(token, base_url=base_url, retry_handlers=patient)
        self._brief = AsyncWebClient(token, base_url=base_url, timeout=BRIEF_SECONDS, retry_handlers=[])
        self._pace = Pace()

    async def post(self, channel: str, thread: str | None, message: Message) -> str:
        """Posts at the channel's pace, waiting when Slack asks for it. Raises Refused."""
        async with self._pace.turn(channel):
            with refusals():
                async with asyncio.timeout(POST_SECONDS):
                    posted = await self._client.chat_postMessage(
                        channel=channel,
                        thread_ts=thread,
                        text=message.text,
                        blocks=list(message.blocks) or None,
                        unfurl_links=False,
                        unfurl_media=False,
                    )
                return str(posted["ts"])

    async def whisper(self, channel: str, thread: str | None, user: str, text: str) -> None:
        """Shows one person a sentence. Raises Refused."""
        with refusals():
            async with asyncio.timeout(POST_SECONDS):
                await self._client.chat_postEphemeral(channel=channel, user=user, text=text, thread_ts=thread)

    async def reply(self, address: str, message: Message) -> None:
        """Answers a command by the address Slack gave with it. Raises Refused."""
        with refusals():
            hook = AsyncWebhookClient(address)
            said = await hook.send(text=message.text, blocks=list(message.blocks) or None, response_type="ephemeral")
            if said.status_code != 200:
                raise Refused(said.body)

    async def show_work(self, channel: str, thread: str) -> None:
        """Slack takes it away with the next post, or after two minutes."""
        try:
            await self._brief.assistant_threads_setStatus(channel_id=channel, thread_ts=thread, status=WORKING)
        except (SlackClientError, ClientError, TimeoutError) as error:
            log.info("no status is shown: %s", error)

    async def said_before(self, place: Place, ts: str) -> Sequence[Said]:
        """The thread's messages before `ts`, oldest first; none where Slack does not let us read."""
        try:
            found = await self._brief.conversations_replies(channel=place.channel, ts=place.thread, limit=READ_MESSAGES)
            messages = [one for one in found["messages"] if float(one["ts"]) < float(ts)]
            return [Said(read_question(one.get("text", "")), ours="bot_id" in one) for one in messages]
        except (SlackClientError, ClientError, TimeoutError, KeyError, ValueError) as error:
            log.info("a thread cannot be read: %s", error)
            return ()


@contextmanager
def refusals() -> Iterator[None]:
    """Whatever keeps Slack from taking a message, as Refused."""
    try:
        yield
    except SlackApiError as error:
        raise Refused(str(error.response.get("error") or error.response.status_code)) from error
    except (SlackClientError, ClientError, TimeoutError) as error:
        raise Refused(type(error).__name__) from error


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
    bot = Bot(context, chat, channel_ids(settings.slack_channels))
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


def examine(settings: Settings) -> Iterator[Finding]:
    """For `footnote doctor`: whether Slack takes the tokens."""
    bot, app = settings.slack_bot_token.get_secret_value(), settings.slack_app_token.get_secret_value()
    yield asyncio.run(token_found("Slack bot token", bot, "xoxb-", "auth.test", settings.slack_api_url))
    if app:
        yield asyncio.run(token_found("Slack app token", app, "xapp-", "apps.connections.open", settings.slack_api_url))
    if not app and not settings.slack_signing_secret.get_secret_value():
        todo = "set FOOTNOTE_SLACK_APP_TOKEN (Socket Mode) or FOOTNOTE_SLACK_SIGNING_SECRET (events over HTTP)"
        yield Finding("Slack events", "broken", "Slack has no way to reach Footnote", todo)


async def token_found(part: str, token: str, prefix: str, method: str, base_url: str) -> Finding:
    """Asks Slack whether it takes a token."""
    name = f"FOOTNOTE_{part.upper().replace(' ', '_')}"
    if not token.startswith(prefix):
        return Finding(part, "broken", f"it does not begin with {prefix}", f"check {name}")
    try:
        said = await AsyncWebClient(token, base_url=base_url, timeout=10, retry_handlers=[]).api_call(method)
    except SlackApiError as error:
        return Finding(part, "broken", f"Slack says {error.response.get('error')}", f"check {name}")
    except (SlackClientError, ClientError, TimeoutError) as error:
        return Finding(part, "broken", f"Slack cannot be reached ({type(error).__name__})", "check FOOTNOTE_SLACK_API_URL")
    return Finding(part, "works", f"accepted for {said['team']}" if said.get("team") else "accepted")
