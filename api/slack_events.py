"""What Slack sends, read: a question, a command, a click."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.slack_blocks import RATE
from api.slack_text import read_question
from rag.journal import LONGEST_DELIVERY, Verdict


@dataclass(frozen=True, slots=True)
class Place:
    """A thread: workspace, channel, and the `ts` of its first message."""

    team: str
    channel: str
    thread: str

    @property
    def owner(self) -> str:
        """Whom the conversation belongs to in the journal: the workspace."""
        return f"slack:{self.team}"

    @property
    def key(self) -> str:
        """The thread's name in the journal."""
        return f"{self.team}/{self.channel}/{self.thread}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to us: `text` is read already, `event` Slack's id of the delivery, `in_thread` whether it is a reply."""

    place: Place
    user: str
    text: str
    ts: str
    event: str
    in_thread: bool

    @property
    def names(self) -> tuple[str, str]:
        """By which a second delivery is known."""
        return f"slack:{self.place.team}/{self.place.channel}/{self.ts}", f"slack:{self.event}"


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command. `reply_to` is an address for answers where we may not post; `trigger` is the call's id."""

    team: str
    channel: str
    user: str
    text: str
    reply_to: str
    trigger: str


@dataclass(frozen=True, slots=True)
class Click:
    """A verdict on the answer that `value` names."""

    place: Place
    user: str
    verdict: Verdict
    value: str


def read_event(body: Mapping[str, Any]) -> Asked | None:  # Any: Slack's JSON
    """The question that an event holds. None for what nobody asked us: edits, joins and the like (every `subtype` but a message
    that comes with a file), bots (ourselves too), talk in channels that does not mention us, and mentions so old that nobody
    remembers whether they were answered."""
    event = body["event"]
    direct = event["type"] == "message" and event.get("channel_type") == "im"
    if not direct and event["type"] != "app_mention":
        return None
    if event.get("subtype") not in (None, "file_share") or event.get("bot_id") or not event.get("user"):
        return None
    if time.time() - float(event["ts"]) > LONGEST_DELIVERY:
        return None
    thread = event.get("thread_ts") or event["ts"]
    return Asked(
        place=Place(body["team_id"], event["channel"], thread),
        user=event["user"],
        text=read_question(event.get("text", "")),
        ts=event["ts"],
        event=body["event_id"],
        in_thread=thread != event["ts"],
    )


def read_command(command: Mapping[str, str]) -> Command:
    """A slash command."""
    return Command(
        team=command["team_id"],
        channel=command["channel_id"],
        user=command["user_id"],
        text=read_question(command.get("text", "")),
        reply_to=command["response_url"],
        trigger=command["trigger_id"],
    )


def read_click(body: Mapping[str, Any]) -> Click:  # Any: Slack's JSON
    """A click on one of the buttons under an answer."""
    action, message = body["actions"][0], body["message"]
    place = Place(body["team"]["id"], body["channel"]["id"], message.get("thread_ts") or message["ts"])
    verdict: Verdict = "up" if action["action_id"] == f"{RATE}_up" else "down"
    return Click(place, body["user"]["id"], verdict, action["value"])
