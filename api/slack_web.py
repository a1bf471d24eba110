"""Slack's Web API, as far as the bot and `footnote doctor` need it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager

from aiohttp import ClientConnectorError, ClientError
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry.builtin_async_handlers import AsyncConnectionErrorRetryHandler, AsyncRateLimitErrorRetryHandler
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from api.slack_blocks import Message
from api.slack_chat import Refused, Said
from api.slack_events import Place
from api.slack_queue import Pace
from api.slack_text import read_question
from rag.doctor import Finding
from rag.settings import Settings
from rag.wire import JsonObject

log = logging.getLogger(__name__)

POST_SECONDS = 240.0
"""A post, with all the waiting that Slack asks for."""

SCOPES = (
    "app_mentions:read",
    "channels:history",
    "groups:history",
    "im:history",
    "mpim:history",
    "chat:write",
    "commands",
)
"""What the manifests ask for. Slack may install an app with fewer, and takes its token all the same."""

TRIES = 6
BRIEF_SECONDS = 5
READ_MESSAGES = 100


class SlackChat:
    """Slack's Web API, as far as the bot needs it."""

    def __init__(self, token: str, base_url: str) -> None:
        patient = [
            AsyncRateLimitErrorRetryHandler(max_retry_count=TRIES),
            AsyncConnectionErrorRetryHandler(max_retry_count=2, error_types=[ClientConnectorError]),  # nothing was sent
        ]
        self._client = AsyncWebClient(token, base_url=base_url, retry_handlers=patient)
        self._brief = AsyncWebClient(token, base_url=base_url, timeout=BRIEF_SECONDS, retry_handlers=[])
        self._once = AsyncWebClient(token, base_url=base_url, retry_handlers=[])
        self._pace = Pace()

    async def post(self, channel: str, thread: str | None, message: Message) -> str:
        """Posts at the channel's pace, waiting when Slack asks for it. Raises Refused."""
        async with self.turn(channel):
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

    async def show_work(self, place: Place, doing: str) -> None:
        """Slack takes it away with the next post, or after two minutes."""
        try:
            await self._brief.assistant_threads_setStatus(channel_id=place.channel, thread_ts=place.thread, status=doing)
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

    def turn(self, channel: str) -> AbstractAsyncContextManager[None]:
        """The channel's turn."""
        return self._pace.turn(channel)

    async def start(self, place: Place, user: str, text: str) -> str:
        """Begins a stream; tries once, for the answer can still be posted. All of a stream goes in chunks: Slack takes one form
        only from beginning to end. Raises Refused."""
        with refusals():
            begun = await self._once.chat_startStream(
                channel=place.channel,
                thread_ts=place.thread,
                recipient_team_id=place.team,
                recipient_user_id=user,
                chunks=[chunk(text)],
            )
        return str(begun["ts"])

    async def append(self, place: Place, ts: str, text: str) -> None:
        """Adds to a stream; tries once, for nobody could tell whether the text then stands there twice. Raises Refused."""
        with refusals():
            await self._once.chat_appendStream(channel=place.channel, ts=ts, chunks=[chunk(text)])

    async def stop(self, place: Place, ts: str, text: str = "", blocks: Sequence[JsonObject] = ()) -> None:
        """Ends a stream, waiting when Slack asks for it. Raises Refused."""
        with refusals():
            async with asyncio.timeout(POST_SECONDS):
                chunks = [chunk(text)] if text.strip() else None
                await self._client.chat_stopStream(channel=place.channel, ts=ts, chunks=chunks, blocks=list(blocks) or None)

    async def update(self, place: Place, ts: str, message: Message) -> None:
        """Edits a message, waiting when Slack asks for it. Raises Refused."""
        with refusals():
            async with asyncio.timeout(POST_SECONDS):
                await self._client.chat_update(channel=place.channel, ts=ts, text=message.text, blocks=list(message.blocks))

    async def delete(self, place: Place, ts: str) -> None:
        """Deletes a message, or raises Refused soon."""
        with refusals():
            await self._brief.chat_delete(channel=place.channel, ts=ts)


def chunk(text: str) -> JsonObject:
    """A piece of a stream."""
    return {"type": "markdown_text", "text": text}


@contextmanager
def refusals() -> Iterator[None]:
    """Whatever keeps Slack from taking a message, as Refused."""
    try:
        yield
    except SlackApiError as error:
        response = error.response
        wait = seconds_of(response.headers.get("Retry-After")) if response.status_code == 429 else None
        raise Refused(str(response.get("error") or response.status_code), wait) from error
    except (SlackClientError, ClientError, TimeoutError) as error:
        raise Refused(type(error).__name__) from error


def seconds_of(retry_after: str | None) -> float:
    """How long to wait; a second where Slack does not say."""
    return float(retry_after) if retry_after and retry_after.isdecimal() else 1.0


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
    if method == "auth.test" and (missing := missing_scopes(said.headers.get("X-OAuth-Scopes", ""))):
        todo = "add them under OAuth & Permissions (or paste the manifest again) and reinstall the app"
        return Finding(part, "broken", f"it lacks the scopes {', '.join(missing)}", todo)
    return Finding(part, "works", f"accepted for {said['team']}" if said.get("team") else "accepted")


def missing_scopes(granted: str) -> list[str]:
    """Which of SCOPES are not in Slack's header; none where it tells of no scopes."""
    scopes = granted.replace(" ", "").split(",")
    return [one for one in SCOPES if one not in scopes] if granted else []
