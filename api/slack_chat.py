"""What the bot does in Slack, whoever carries it there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from api.slack_blocks import Message
from api.slack_events import Place
from rag.wire import JsonObject


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a thread; `ours` may be any bot's."""

    text: str
    ours: bool


class Refused(Exception):
    """Slack does not take a message; the error's text is Slack's code (`not_in_channel`). `wait` are the seconds after which it
    may be tried again; None where that would not help, or where nobody knows whether the message arrived."""

    def __init__(self, code: str, wait: float | None = None) -> None:
        super().__init__(code)
        self.wait = wait


class Chat(Protocol):
    """What the bot does in Slack."""

    async def post(self, channel: str, thread: str | None, message: Message) -> str:
        """Posts in the channel's turn and gives the message's `ts`. Raises Refused."""

    async def whisper(self, channel: str, thread: str | None, user: str, text: str) -> None:
        """Shows one person a sentence. Raises Refused."""

    async def reply(self, address: str, message: Message) -> None:
        """Answers a command where we may not post. Raises Refused."""

    async def show_work(self, place: Place, doing: str) -> None:
        """Shows what is being done, if it can."""

    async def said_before(self, place: Place, ts: str) -> Sequence[Said]:
        """What people and bots said in a thread before `ts`; nothing where it cannot be read."""

    def turn(self, channel: str) -> AbstractAsyncContextManager[None]:
        """The channel's turn, for `start` and `append`, which take none themselves."""

    async def start(self, place: Place, user: str, text: str) -> str:
        """Begins a message that streams, for `user` to see, and gives its `ts`. Raises Refused."""

    async def append(self, place: Place, ts: str, text: str) -> None:
        """Adds to a message that streams. Raises Refused."""

    async def stop(self, place: Place, ts: str, text: str = "", blocks: Sequence[JsonObject] = ()) -> None:
        """Ends a stream with a last text and blocks below it. Raises Refused."""

    async def update(self, place: Place, ts: str, message: Message) -> None:
        """Puts another message in the place of one that does not stream (any more). Raises Refused."""

    async def delete(self, place: Place, ts: str) -> None:
        """Takes away a message of ours. Raises Refused."""


Show = Callable[[Message], Awaitable[object]]
"""Where an answer goes. Raises Refused."""
