"""An answer that appears sentence by sentence, in a message of Slack's that streams.

A convenience on top of an answer posted whole, never in its place: whatever goes wrong with the stream, the message is edited to
hold the whole answer, or the answer is posted. What Slack does, by its reference and by what others measured: 20 streams begun
and 20 ended a minute (Tier 2), 100 appends (Tier 4); a stream dies five minutes after it began; it holds about 10,600 bytes; a
message cannot be edited while it streams (`streaming_state_conflict`), only after.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from api.leaving import stop
from api.slack_blocks import MOST_BLOCKS, Message, Reply, broken_off, going_on, packed, text_blocks, with_warning
from api.slack_chat import Chat, Refused, Show
from api.slack_delivery import show
from api.slack_events import Place
from api.slack_text import settled, size
from rag.types import AnswerSentence
from rag.wire import JsonObject

log = logging.getLogger(__name__)

HEAD_START = 0.5
"""Seconds after the first sentence within which an answer that is done is posted whole: most that no LLM writes are."""

STREAMS_A_MINUTE = 18
"""Streams begun in a workspace; further answers are posted whole, rather than to wait for Slack."""

STREAM_TEXT = 8_000
"""Bytes of text that are streamed; the rest follows as messages of their own."""

STREAM = 10_000
"""Bytes of a streamed message, with the blocks below its text."""


class Streamed:
    """An answer that streams to `user` in a thread once it is known to be one, if `may_begin` then; else it is posted by `post`.

    `_sent` is what Slack has surely taken; `_unsure` is true while, and after, nobody knows whether a call has reached it.
    """

    def __init__(self, chat: Chat, place: Place, user: str, post: Show, may_begin: Callable[[], bool]) -> None:
        self._chat, self._place, self._user = chat, place, user
        self._post, self._may_begin = post, may_begin
        self._sentences: list[str] = []
        self._news, self._over, self._calling = asyncio.Event(), asyncio.Event(), asyncio.Lock()
        self._ts: str | None = None
        self._sent = ""
        self._unsure = False

    def add(self, sentence: AnswerSentence) -> None:
        """Takes a sentence, checked; at once."""
        self._sentences.append(with_warning(sentence))
        self._news.set()

    def end(self) -> None:
        """Lets `flow` end."""
        self._over.set()

    async def flow(self) -> None:
        """Appends what was added, whenever it is the channel's turn; what comes in between goes together."""
        appending = asyncio.create_task(self._append_all())
        try:
            await self._over.wait()
            async with self._calling:  # a call that is under way is waited for
                pass
        finally:
            await stop(appending)

    async def _append_all(self) -> None:
        """Goes on as long as Slack takes it."""
        await self._news.wait()
        await asyncio.sleep(HEAD_START)
        try:
            while self._ts or self._may_begin():
                await self._news.wait()
                self._news.clear()
                await self._append()
        except Refused as refused:
            log.info("a stream is refused: %s", refused)
        except Exception:
            log.exception("a stream broke off")

    async def _append(self) -> None:
        """Raises Refused, but for an append that may be tried again: then waits as long as Slack says."""
        try:
            async with self._chat.turn(self._place.channel), self._calling:
                await self._append_settled()
        except Refused as refused:
            if self._ts is None or refused.wait is None:
                raise
            self._unsure = False  # nothing was taken
            self._news.set()
            await asyncio.sleep(refused.wait)

    async def _append_settled(self) -> None:
        """What nothing that follows can change, and Slack has not got yet. Raises Refused."""
        made = settled(self._sentences, STREAM_TEXT)
        text = made[len(self._sent) :] if made.startswith(self._sent) else ""
        if text.strip():
            self._unsure = True
            if self._ts is None:
                self._ts = await self._chat.start(self._place, self._user, text)
            else:
                await self._chat.append(self._place, self._ts, text)
            self._sent, self._unsure = made, False

    async def finish(self, reply: Reply) -> None:
        """Ends the stream with the rest of an answer, or with why there is no more of it."""
        if self._ts is None:
            await show(reply.messages, self._post)
            return
        if not reply.body:
            reply = broken_off("".join(self._sentences), reply.messages[0].text)
        rest = await self._close(self._ts, reply)
        if rest is None:
            rest = await self._recover(self._ts, reply)
        await show(rest, self._post)

    async def _close(self, ts: str, reply: Reply) -> tuple[Message, ...] | None:
        """Ends a stream and gives the messages to follow; None when it does not show what the reply says, or is dead."""
        if self._unsure or not reply.body.startswith(self._sent):
            return None
        ending = ending_of(reply, self._sent)
        self._unsure = True
        try:
            await self._chat.stop(self._place, ts, ending.text, ending.blocks)
        except Refused as refused:
            log.info("a stream is not ended as it should be: %s", refused)
            return None
        return ending.messages

    async def _recover(self, ts: str, reply: Reply) -> tuple[Message, ...]:
        """Edits the message to hold the reply's first one and gives the messages to follow. When Slack refuses that, or nobody
        knows, it is deleted, and all are to follow."""
        with suppress(Refused):  # it was dead already
            await self._chat.stop(self._place, ts)
        try:
            await self._chat.update(self._place, ts, reply.messages[0])
        except Refused as refused:
            log.warning("a streamed answer is posted anew: %s", refused)
            with suppress(Refused):  # then its beginning stays above it
                await self._chat.delete(self._place, ts)
            return reply.messages
        return reply.messages[1:]


@dataclass(frozen=True, slots=True)
class Ending:
    """The last of a stream: text, the blocks below, and the messages that have to follow."""

    text: str
    blocks: tuple[JsonObject, ...]
    messages: tuple[Message, ...]


def ending_of(reply: Reply, sent: str) -> Ending:
    """How a stream ends that has shown `sent`, the beginning of the reply's text."""
    left = reply.body[len(sent) :].rstrip()
    room = STREAM - size(sent) - size(left)
    if room < 0:
        return Ending("", (), tuple(going_on(packed([*text_blocks(left), *reply.below]))))
    fitting = 0
    for block in reply.below[:MOST_BLOCKS]:
        room -= size(json.dumps(block, ensure_ascii=False))
        fitting += room >= 0
    return Ending(left, reply.below[:fitting], tuple(going_on(packed(reply.below[fitting:]))))
