"""A Slack that is as strict as the real one: over HTTP, and over a WebSocket for Socket Mode.

It refuses what Slack refuses (sizes, unknown blocks, an unknown thread, two posts a second in a channel, more calls a minute than
a method's tier, edits of a stream, appends to none) and what must never reach Slack (raw mentions, links that are not our own
footnotes), in every field.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import json
import math
import re
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from aiohttp import WSMsgType, web

TOKEN, APP_TOKEN, SECRET = "xoxb-good", "xapp-good", "8f742231b10e8888abcd99yyyzzz85a5"
TEAM, BOT, BOT_ID = "T1", "UBOT", "BBOT"
OWN_LINK = re.compile(r"<https?://[^|<>\s]+\|[^<>|]*>")
ADDRESS = re.compile(r"(?:://|www\.|mailto:)[^\s`]")
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
BLOCK_TEXT = {"markdown": 12_000, "section": 3_000, "context": 3_000, "plain_text": 75}
PER_MINUTE = {"chat.startStream": 20, "chat.stopStream": 20, "chat.appendStream": 100, "chat.update": 50, "chat.delete": 50}
"""Calls of a method a minute, by Slack's tiers 2, 4 and 3."""

PER_SECOND = {"chat.postMessage", "chat.startStream", "chat.appendStream"}
"""Methods of which a channel takes one call a second: the first by Slack's reference, the others to be sure."""

STREAM_BYTES = 10_600
LOST = "lost"
"""A fault: the call is done and its answer does not arrive."""

Json = dict[str, Any]  # Any: JSON as it came


class Refusal(Exception):
    """Slack's error code."""


@dataclass
class Posted:
    """A message Slack took."""

    channel: str
    thread: str | None
    ts: str
    text: str
    blocks: list[Json]
    at: float
    pieces: list[str] = field(default_factory=list)
    streaming: bool = False
    edits: int = 0

    @property
    def shown(self) -> str:
        """Everything that can be read of it."""
        read = ["".join(self.pieces), *texts_of(self.blocks)] if self.pieces else texts_of(self.blocks)
        return "\n".join(read) if self.blocks or self.pieces else self.text


@dataclass
class FakeSlack:
    """Takes Web API calls. `faults[method]` are errors for the next calls: an error code, seconds of a 429, or LOST. A stream
    dies after `stream_appends`; `delays[method]` are seconds that a call takes; `scopes` are the bot token's."""

    posted: list[Posted] = field(default_factory=list)
    whispered: list[Json] = field(default_factory=list)
    replied: list[Json] = field(default_factory=list)
    statuses: list[Json] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    faults: dict[str, list[str | int]] = field(default_factory=lambda: defaultdict(list))
    threads: dict[str, list[Json]] = field(default_factory=dict)
    not_in: set[str] = field(default_factory=set)
    stream_appends: int = 1_000
    delays: dict[str, float] = field(default_factory=dict)
    scopes: str = ""
    sockets: list[web.WebSocketResponse] = field(default_factory=list)
    acks: list[Json] = field(default_factory=list)
    base: str = ""
    _count: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _closed_until: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _calls: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def new_ts(self) -> str:
        """A message's `ts`, unique and now."""
        return f"{int(time.time())}.{next(self._count):06d}"

    def in_thread(self, ts: str) -> list[Posted]:
        """What we said in a thread."""
        return [one for one in self.posted if one.thread == ts]

    async def handle(self, request: web.Request) -> web.Response:
        """One call of the Web API."""
        method = request.match_info["method"]
        self.methods.append(method)
        sent = await request.json() if request.content_type == "application/json" else dict(await request.post())
        form = {**request.query, **sent}
        await asyncio.sleep(self.delays.get(method, 0))
        fault = self.faults[method].pop(0) if self.faults[method] else None
        try:
            if isinstance(fault, int):
                self._closed_until[method] = time.monotonic() + fault
            elif fault and fault != LOST:
                raise Refusal(fault)
            expected = APP_TOKEN if method == "apps.connections.open" else TOKEN
            if request.headers.get("Authorization") != f"Bearer {expected}":
                raise Refusal("invalid_auth")
            self._keep_pace(method, form)
            said = getattr(self, method.replace(".", "_"))(form)
        except Refusal as refusal:
            return web.json_response({"ok": False, "error": str(refusal)})
        except RateLimited as limit:
            limited = {"ok": False, "error": "ratelimited"}
            return web.json_response(limited, status=429, headers={"Retry-After": str(limit.seconds)})
        if fault == LOST and request.transport:
            request.transport.close()
        return web.json_response({"ok": True, **said}, headers={"X-OAuth-Scopes": self.scopes} if self.scopes else {})

    def _keep_pace(self, method: str, form: Json) -> None:
        """Raises RateLimited."""
        now = time.monotonic()
        if now < self._closed_until[method]:
            raise RateLimited(math.ceil(self._closed_until[method] - now))
        limits = [(method, 60.0, PER_MINUTE.get(method))]
        if method in PER_SECOND:
            limits.append((f"{method} {form['channel']}", 1.0, 1))
        for key, seconds, most in limits:
            recent = [at for at in self._calls[key] if now - at < seconds]
            if most and len(recent) >= most:
                raise RateLimited(math.ceil(seconds - (now - recent[0])))
            self._calls[key] = [*recent, now]

    def auth_test(self, form: Json) -> Json:
        """Who the token is."""
        return {"team": "Papers Ltd", "team_id": TEAM, "user_id": BOT, "bot_id": BOT_ID}

    def apps_connections_open(self, form: Json) -> Json:
        """Where Socket Mode's WebSocket is."""
        return {"url": self.base.replace("http", "ws", 1).replace("/api/", "/socket")}

    def chat_postMessage(self, form: Json) -> Json:
        """Checks and keeps a message."""
        blocks = read_blocks(form)
        check_message(form.get("text") or "", blocks)
        return self._keep(form, form.get("text") or "", blocks)

    def _keep(self, form: Json, text: str, blocks: list[Json], pieces: list[str] | None = None) -> Json:
        channel, thread = form["channel"], form.get("thread_ts")
        if channel in self.not_in:
            raise Refusal("not_in_channel")
        if thread and thread not in self.threads:
            raise Refusal("thread_not_found")
        ts = self.new_ts()
        self.posted.append(Posted(channel, thread, ts, text, blocks, time.monotonic(), pieces or [], streaming=bool(pieces)))
        message = {"ts": ts, "bot_id": BOT_ID, "user": BOT, "text": text}
        self.threads.setdefault(thread or ts, []).append(message)
        return {"ts": ts, "channel": channel}

    def chat_startStream(self, form: Json) -> Json:
        """Begins a message that streams, for one person."""
        for needed in ("recipient_team_id", "recipient_user_id"):
            if not form.get(needed):
                raise Refusal(f"missing_{needed}")
        if not form.get("thread_ts"):
            raise Refusal("invalid_arguments")
        return self._keep(form, "", [], [read_chunks(form)])

    def chat_appendStream(self, form: Json) -> Json:
        """Adds to a stream."""
        stream = self._stream(form)
        if len(stream.pieces) > self.stream_appends:
            stream.streaming = False
            raise Refusal("message_not_in_streaming_state")
        text = read_chunks(form)
        check_stream([*stream.pieces, text], [])
        stream.pieces.append(text)
        return {"ts": stream.ts}

    def chat_stopStream(self, form: Json) -> Json:
        """Ends a stream."""
        stream = self._stream(form)
        last = [read_chunks(form)] if form.get("chunks") else []
        check_stream([*stream.pieces, *last], read_blocks(form))
        stream.pieces += last
        stream.blocks, stream.streaming = read_blocks(form), False
        return {"ts": stream.ts}

    def _stream(self, form: Json) -> Posted:
        stream = self._message(form)
        if not stream.streaming:
            raise Refusal("message_not_in_streaming_state")
        return stream

    def _message(self, form: Json) -> Posted:
        if form["channel"] in self.not_in:
            raise Refusal("channel_not_found")
        found = [one for one in self.posted if one.ts == form["ts"] and one.channel == form["channel"]]
        if not found:
            raise Refusal("message_not_found")
        return found[0]

    def chat_update(self, form: Json) -> Json:
        """Edits a message."""
        message = self._message(form)
        if message.streaming:
            raise Refusal("streaming_state_conflict")
        check_message(form.get("text") or "", read_blocks(form))
        message.text, message.blocks, message.pieces = form.get("text") or "", read_blocks(form), []
        message.edits += 1
        return {"ts": message.ts}

    def chat_delete(self, form: Json) -> Json:
        """Takes a message away."""
        message = self._message(form)
        if message.streaming:
            raise Refusal("cant_delete_message")
        self.posted.remove(message)
        return {"ts": message.ts}

    def chat_postEphemeral(self, form: Json) -> Json:
        """Checks and keeps a sentence for one person."""
        check_message(form["text"], [])
        self.whispered.append(form)
        return {"message_ts": self.new_ts()}

    def assistant_threads_setStatus(self, form: Json) -> Json:
        """Keeps a status."""
        if form["thread_ts"] not in self.threads:
            raise Refusal("thread_not_found")
        self.statuses.append(form)
        return {}

    def conversations_replies(self, form: Json) -> Json:
        """A thread's messages."""
        if form["ts"] not in self.threads:
            raise Refusal("thread_not_found")
        return {"messages": self.threads[form["ts"]], "has_more": False}

    async def reply(self, request: web.Request) -> web.Response:
        """A command's `response_url`."""
        body = await request.json()
        check_message(body.get("text") or "", body.get("blocks") or [])
        self.replied.append(body)
        return web.Response(text="ok")

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        """Socket Mode: says hello, keeps what is acknowledged."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1})
        self.sockets.append(socket)
        async for message in socket:
            if message.type == WSMsgType.TEXT:
                self.acks.append(json.loads(message.data))
        return socket


class RateLimited(Exception):
    """Too many calls."""

    def __init__(self, seconds: int) -> None:
        super().__init__()
        self.seconds = seconds


def read_blocks(form: Json) -> list[Json]:
    """A call's blocks, however they were sent."""
    blocks = form.get("blocks") or []
    read: list[Json] = json.loads(blocks) if isinstance(blocks, str) else blocks
    return read


def read_chunks(form: Json) -> str:
    """The text that a call adds to a stream: chunks, of which a stream takes nothing else once it has begun with them. Raises
    Refusal, also for code that is cut."""
    if "markdown_text" in form:
        raise Refusal("streaming_mode_mismatch")
    chunks = form.get("chunks") or []
    if not chunks or any(one["type"] != "markdown_text" for one in chunks):
        raise Refusal("invalid_chunks")
    text = "".join(one["text"] for one in chunks)
    if not text.strip():
        raise Refusal("no_text")
    if len(text) > 12_000:
        raise Refusal("msg_too_long")
    check_text(text)
    if CODE.sub("", text).count("`"):
        raise Refusal("cut_code")
    return text


def check_stream(pieces: list[str], blocks: list[Json]) -> None:
    """Raises Refusal for a streamed message that has become too long, or acts."""
    check_text("".join(pieces))
    if blocks:
        check_message("", blocks)
    if sum(len(one.encode()) for one in [*pieces, *texts_of(blocks)]) > STREAM_BYTES:
        raise Refusal("msg_too_long")


def check_message(text: str, blocks: list[Json]) -> None:
    """Raises Refusal as Slack would, and for what must never reach it."""
    if not text and not blocks:
        raise Refusal("no_text")
    if len(text) > 4_000:
        raise Refusal("msg_too_long")
    if len(blocks) > 50:
        raise Refusal("invalid_blocks")
    for block in blocks:
        check_block(block)
    if sum(len(one["text"]) for one in blocks if one["type"] == "markdown") > 12_000:
        raise Refusal("msg_blocks_too_long")
    if sum(map(len, texts_of(blocks))) + len(text) > 13_000:
        raise Refusal("msg_blocks_too_long")
    for one in [text, *texts_of(blocks)]:
        check_text(one)


def check_block(block: Json) -> None:
    """Only blocks we know, none empty, none too long."""
    if block["type"] not in ("markdown", "section", "context", "actions"):
        raise Refusal("invalid_blocks")
    for one in texts_of([block]):
        limit = 75 if block["type"] == "actions" else BLOCK_TEXT[block["type"]]
        if not one.strip() or len(one) > limit:
            raise Refusal("invalid_blocks")
    if block["type"] == "actions" and any(len(one["value"]) > 2_000 for one in block["elements"]):
        raise Refusal("invalid_blocks")


def check_text(text: str) -> None:
    """No mention, no link but a footnote's, no half entity, no open fence."""
    rest = OWN_LINK.sub("", text)
    if "<" in rest or ">" in rest or re.search(r"&(?!(?:amp|lt|gt);)", rest):
        raise Refusal("raw_mention")
    if rest.count("```") % 2:
        raise Refusal("open_fence")
    if ADDRESS.search(CODE.sub("", rest)) or "](" in CODE.sub("", rest):
        raise Refusal("raw_link")


def texts_of(blocks: list[Json]) -> list[str]:
    """Every text of the blocks."""
    found: list[str] = []
    for block in blocks:
        for one in [block, *block.get("elements", [])]:
            text = one.get("text")
            if text is not None:
                found.append(text if isinstance(text, str) else text["text"])
    return found


@asynccontextmanager
async def fake_slack() -> AsyncGenerator[FakeSlack, None]:
    """A running Slack; its Web API is at `base`."""
    slack = FakeSlack()
    app = web.Application()
    app.router.add_route("*", "/api/{method}", slack.handle)
    app.router.add_post("/reply", slack.reply)
    app.router.add_get("/socket", slack.socket)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    slack.base = f"http://127.0.0.1:{runner.addresses[0][1]}/api/"
    try:
        yield slack
    finally:
        await asyncio.gather(*(socket.close() for socket in slack.sockets))
        await runner.cleanup()


def signed(body: str, *, at: float | None = None, secret: str = SECRET) -> dict[str, str]:
    """Headers of a request that Slack signed."""
    timestamp = str(int(time.time() if at is None else at))
    digest = hmac.new(secret.encode(), f"v0:{timestamp}:{body}".encode(), hashlib.sha256).hexdigest()
    kind = "application/json" if body.startswith("{") else "application/x-www-form-urlencoded"
    return {"X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": f"v0={digest}", "Content-Type": kind}


_events = itertools.count(1)


def event_body(event: Json) -> Json:
    """The envelope of an event."""
    return {
        "type": "event_callback",
        "team_id": TEAM,
        "api_app_id": "A1",
        "event_id": f"Ev{next(_events)}",
        "event_time": int(time.time()),
        "authorizations": [{"team_id": TEAM, "user_id": BOT, "is_bot": True}],
        "event": event,
    }


def mention(slack: FakeSlack, text: str, *, channel: str = "C1", thread: str | None = None, **more: object) -> Json:
    """Somebody mentions us; the message is in the fake's thread, too."""
    ts = slack.new_ts()
    said = {"type": "app_mention", "user": "U1", "text": f"<@{BOT}> {text}", "ts": ts, "channel": channel, **more}
    if thread:
        said["thread_ts"] = thread
    slack.threads.setdefault(thread or ts, []).append(said)
    return event_body(said)


def direct(slack: FakeSlack, text: str, *, thread: str | None = None, **more: object) -> Json:
    """Somebody writes to us directly."""
    body = mention(slack, "", channel="D1", thread=thread, **more)
    body["event"] |= {"type": "message", "channel_type": "im", "text": text}
    return body


def command_form(slack: FakeSlack, text: str, channel: str = "C1") -> str:
    """A slash command."""
    form = {
        "command": "/ask",
        "text": text,
        "team_id": TEAM,
        "channel_id": channel,
        "user_id": "U1",
        "trigger_id": f"trigger-{next(_events)}",
        "response_url": slack.base.replace("/api/", "/reply"),
    }
    return urlencode(form)


def click_form(posted: Posted, verdict: str = "up", user: str = "U1") -> str:
    """A click on a button under one of our messages."""
    actions = next(block for block in posted.blocks if block["type"] == "actions")
    button = next(one for one in actions["elements"] if one["action_id"].endswith(verdict))
    payload = {
        "type": "block_actions",
        "team": {"id": TEAM},
        "user": {"id": user, "team_id": TEAM},
        "channel": {"id": posted.channel},
        "message": {"ts": posted.ts, "thread_ts": posted.thread},
        "actions": [{**button, "block_id": "x", "action_ts": "1.0"}],
        "trigger_id": "1.2",
    }
    return urlencode({"payload": json.dumps(payload)})
