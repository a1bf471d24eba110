"""What the bot does with what it hears: a question is answered once, in its thread, and whatever happens something is said."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from api import slack_sentences as say
from api.answering import Answering, Work
from api.context import Context
from api.lifecycle import Lifecycle
from api.limits import Generations
from api.slack_answers import Answers
from api.slack_blocks import Message, asked_message, beginning
from api.slack_chat import Chat, Refused, Show
from api.slack_events import Asked, Click, Command, Place
from api.slack_queue import Fuse, JobQueue

log = logging.getLogger(__name__)

WAITING = 400
"""Questions that may wait; the next is told to come back."""

WORKERS = 16
"""Questions answered at once."""

ERRANDS = 400
MOST_A_MINUTE = 10
"""Questions of one thread that are answered in a minute: a fuse against loops."""

DRAIN_SECONDS = 18.0
"""How long shutdown waits for what was asked; Compose kills 30 s after SIGTERM."""


class Bot:
    """Hears, answers, and is told what people think of it. `channels` are those it may answer in; none means all."""

    def __init__(self, the: Context, chat: Chat, channels: Collection[str] = ()) -> None:
        self.the = for_slack(the)
        self._server = the.lifecycle
        self.chat = chat
        self.answers = Answers(self.the, chat)
        self.channels = channels
        self.fuse = Fuse(MOST_A_MINUTE)
        self.questions = JobQueue(WAITING, WORKERS)
        self.errands = JobQueue(ERRANDS, 4)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Works inside its block and finishes at its end."""
        self.questions.start()
        self.errands.start()
        try:
            yield
        finally:
            await self.questions.drain(self._seconds_left())
            await self.errands.drain(1.0)

    def _seconds_left(self) -> float:
        """For finishing: what HTTP took to finish its own answers counts."""
        now = asyncio.get_running_loop().time()
        return max(1.0, DRAIN_SECONDS - (now - (self._server.ended_at or now)))

    def hear(self, asked: Asked) -> None:
        """Takes a question; at once."""
        if not self.questions.offer(Question(self, asked)):
            self._run_errand(partial(self._turn_away, asked))

    def command(self, command: Command) -> str | None:
        """Takes a question asked by a slash command; at once. What to tell the one who asked if it cannot be taken."""
        if not command.text:
            return say.WANTED
        if not self.allowed(command.channel):
            return say.NOT_HERE
        return None if self.questions.offer(CommandQuestion(self, command)) else say.FULL

    def click(self, click: Click) -> None:
        """Takes a verdict; at once."""
        self._run_errand(partial(self._rate, click))

    def allowed(self, channel: str) -> bool:
        """Whether we may answer there; direct messages are always answered."""
        return not self.channels or channel in self.channels or channel.startswith("D")

    async def is_first(self, asked: Asked) -> bool:
        """Whether this is a question's first delivery; also where nobody can tell, for silence would be worse."""
        try:
            return await self.the.threads.run(lambda: self.the.library.journal.first_time(*asked.names))
        except Exception:
            log.exception("not known whether a question was answered before")
            return True

    async def answer(self, asked: Asked, show: Show | None = None) -> None:
        """Answers a question where it was asked."""
        place = asked.place
        admission = self.fuse.admit(fuse_key(asked))
        if admission == "drop":
            return
        if admission == "tell":
            await self.show([Message(say.SLOWLY)], self.in_thread(place))
        elif not self.allowed(place.channel):
            await self.whisper(place, asked.user, say.NOT_HERE)
        else:
            messages, _ = await asyncio.gather(self.answers.messages(asked), self.chat.show_work(place.channel, place.thread))
            await self.show(messages, show or self.in_thread(place))

    def in_thread(self, place: Place) -> Show:
        """Posts to a thread."""
        return partial(self.chat.post, place.channel, place.thread)

    async def show(self, messages: Sequence[Message], show: Show) -> None:
        """Shows messages in order; of one that Slack refuses, its beginning."""
        for message in messages:
            try:
                await show(message)
            except Refused as refused:
                log.warning("Slack refused a message: %s", refused)
                try:
                    await show(beginning(message, str(refused)))
                except Refused as again:
                    log.error("Slack refused to show why: %s", again)

    async def whisper(self, place: Place, user: str, text: str) -> None:
        """Tells one person, or the thread if that cannot be."""
        try:
            await self.chat.whisper(place.channel, place.thread, user, text)
        except Refused:
            await self.show([Message(text)], self.in_thread(place))

    async def _rate(self, click: Click) -> None:
        owner, _, answer_id = click.value.rpartition(" ")
        rater = f"{click.place.owner}/{click.user}"
        try:
            await self.the.threads.run(lambda: self.the.library.journal.rate(owner, answer_id, click.verdict, rater=rater))
            sentence = say.THANKS[click.verdict]
        except Exception as error:
            log.warning("a verdict was not kept", exc_info=True)
            sentence = say.sentence_of(error)
        await self.whisper(click.place, click.user, sentence)

    async def _turn_away(self, asked: Asked) -> None:
        """Says that the queue is full, once a question."""
        if await self.is_first(asked):
            await self.show([Message(say.FULL)], self.in_thread(asked.place))

    def _run_errand(self, work: Callable[[], Awaitable[None]]) -> None:
        if not self.errands.offer(Errand(work)):
            log.error("too much to do: Slack was told nothing")


def for_slack(the: Context) -> Context:
    """The context with places of Slack's own, whose work goes on at shutdown: it is the queue that ends it."""
    work = Work(Generations(WORKERS), Lifecycle(), the.metrics, the.work.deadline)
    answering = Answering(the.answering.engine, work, the.answering.log_questions)
    return replace(the, work=work, lifecycle=work.lifecycle, answering=answering)


def fuse_key(asked: Asked) -> str:
    """What the fuse counts by: the thread; in direct messages, where each question begins one, the channel."""
    return asked.place.key if asked.in_thread else f"{asked.place.team}/{asked.place.channel}/{asked.user}"


@dataclass(eq=False)
class Question:
    """A question in the queue."""

    bot: Bot
    asked: Asked
    begun: bool = False

    async def run(self) -> None:
        """Answers it, if it was not answered before."""
        if await self.bot.is_first(self.asked):
            self.begun = True
            await self.bot.answer(self.asked)

    async def give_up(self) -> None:
        """Says that there is no time left."""
        if self.begun or await self.bot.is_first(self.asked):
            await self.bot.show([Message(say.RESTARTING)], self.bot.in_thread(self.asked.place))


@dataclass(eq=False)
class CommandQuestion:
    """A slash command in the queue: the question is posted, for all to see, and answered in its thread."""

    bot: Bot
    command: Command

    async def run(self) -> None:
        """Answers it; by the command's own address where we may not post."""
        bot, asked = self.bot, self.command
        try:
            ts = await bot.chat.post(asked.channel, None, asked_message(asked.text))
            show = None
        except Refused:
            ts = asked.trigger
            show = partial(bot.chat.reply, asked.reply_to)
        place = Place(asked.team, asked.channel, ts)
        await bot.answer(Asked(place, asked.user, asked.text, ts, asked.trigger, in_thread=False), show)

    async def give_up(self) -> None:
        """Says that there is no time left."""
        await self.bot.show([Message(say.RESTARTING)], partial(self.bot.chat.reply, self.command.reply_to))


@dataclass(eq=False)
class Errand:
    """A small thing to do."""

    work: Callable[[], Awaitable[None]]

    async def run(self) -> None:
        """Does it."""
        await self.work()

    async def give_up(self) -> None:
        """Nobody waits for it."""
