"""What the bot does in Slack, whoever carries it there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from api.slack_blocks import Message
from api.slack_events import Place


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a thread; `ours` may be any bot's."""

    text: str
    ours: bool


class Refused(Exception):
    """Slack does not take a message; the error's text is Slack's code (`not_in_channel`)."""


class Chat(Protocol):
    """What the bot does in Slack."""

    async def post(self, channel: str, thread: str | None, message: Message) -> str:
        """Posts and gives the message's `ts`. Raises Refused."""

    async def whisper(self, channel: str, thread: str | None, user: str, text: str) -> None:
        """Shows one person a sentence. Raises Refused."""

    async def reply(self, address: str, message: Message) -> None:
        """Answers a command where we may not post. Raises Refused."""

    async def show_work(self, channel: str, thread: str) -> None:
        """Shows that something is being done, if it can."""

    async def said_before(self, place: Place, ts: str) -> Sequence[Said]:
        """What people and bots said in a thread before `ts`; nothing where it cannot be read."""


Show = Callable[[Message], Awaitable[object]]
"""Where an answer goes. Raises Refused."""
