"""How a reply reaches Slack: as messages when it is whole. api/slack_stream.py lets it appear sentence by sentence."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Protocol

from api import slack_sentences as say
from api.slack_blocks import Message, Reply, beginning
from api.slack_chat import Refused, Show
from rag.types import AnswerSentence

log = logging.getLogger(__name__)


class Delivery(Protocol):
    """Takes an answer while it is being made, and the reply at the end. `flow` runs beside the making, until `end`."""

    def add(self, sentence: AnswerSentence) -> None:
        """Takes a sentence of the answer, checked; at once."""

    async def flow(self) -> None:
        """Shows what was added, as far as that can be."""

    def end(self) -> None:
        """Lets `flow` end: what is still to be said comes with the reply."""

    async def finish(self, reply: Reply) -> None:
        """Says the rest; never nothing, and nothing twice."""


class Whole:
    """Posts the reply when it is there."""

    def __init__(self, post: Show) -> None:
        self._post = post

    def add(self, sentence: AnswerSentence) -> None:
        """The reply has it too."""

    async def flow(self) -> None:
        """Nothing is shown before the end."""

    def end(self) -> None:
        """Nothing is under way."""

    async def finish(self, reply: Reply) -> None:
        """Posts all of it."""
        await show(reply.messages, self._post)


async def show(messages: Iterable[Message], post: Show) -> None:
    """Shows messages in order; of one that Slack refuses its beginning, or at least that there was something."""
    for message in messages:
        try:
            await post(message)
        except Refused as refused:
            log.warning("Slack refused a message: %s", refused)
            await show_simpler([beginning(message, str(refused)), Message(say.UNSHOWN)], post)


async def show_simpler(attempts: Iterable[Message], post: Show) -> None:
    """Shows the first of some messages that Slack takes."""
    for message in attempts:
        try:
            await post(message)
            return
        except Refused as refused:
            log.error("Slack refused to show why: %s", refused)
