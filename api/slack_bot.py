"""What the bot does with what it hears: a question is answered once, in its thread, and whatever happens something is said."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from api import slack_sentences as say
from api.answering import Answering, Work
from api.context import Context
from api.lifecycle import Lifecycle
from api.limits import Generations
from api.slack_answers import Answers
from api.slack_blocks import Message, Reply, asked_message
from api.slack_chat import Chat, Refused, Show
from api.slack_delivery import Delivery, Whole, show
from api.slack_events import Asked, Click, Command, Place
from api.slack_queue import Fuse, JobQueue
from api.slack_stream import STREAMS_A_MINUTE, Streamed

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
    """Hears, answers, and is told what people think of it. `channels` are those it may answer in; none means all. With `stream`
    answers appear sentence by sentence."""

    def __init__(self, the: Context, chat: Chat, channels: Collection[str] = (), *, stream: bool = False) -> None:
        self.the = for_slack(the)
        self._server = the.lifecycle
        self.chat = chat
        self.answers = Answers(self.the, chat)
        self.channels = channels
        self.stream = stream
        self.fuse = Fuse(MOST_A_MINUTE)
        self.streams = Fuse(STREAMS_A_MINUTE)
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
        question = Question(self, asked)
        if not self.questions.offer(question):
            self._run_errand(partial(self._turn_away, asked))
        elif ahead := self.questions.ahead:
            self.errands.offer(Errand(partial(question.announce, ahead)))

    def command(self, command: Command) -> str | None:
        """Takes a question asked by a slash command; at once. What to tell the one who asked: that it cannot be taken, or has to
        wait."""
        if not command.text:
            return say.WANTED
        if not self.allowed(command.channel):
            return say.NOT_HERE
        if not self.questions.offer(CommandQuestion(self, command)):
            return say.FULL
        return say.patience(self.questions.ahead) if self.questions.ahead else None

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

    async def answer(self, asked: Asked, delivery: Delivery) -> None:
        """Answers a question where it was asked."""
        place = asked.place
        admission = self.fuse.admit(fuse_key(asked))
        if admission == "tell":
            await self.tell(place, say.SLOWLY)
        elif admission == "go" and not self.allowed(place.channel):
            await self.whisper(place, asked.user, say.NOT_HERE)
        elif admission == "go":
            reply, _ = await asyncio.gather(self._reply(asked, delivery), self._show_progress(place, delivery))
            await delivery.finish(reply)

    async def _reply(self, asked: Asked, delivery: Delivery) -> Reply:
        try:
            return await self.answers.reply(asked, delivery.add)
        finally:
            delivery.end()

    async def _show_progress(self, place: Place, delivery: Delivery) -> None:
        """The status first: Slack takes it away with the first sentence."""
        await self.chat.show_work(place, say.WORKING)
        await delivery.flow()

    def delivery(self, place: Place, user: str) -> Delivery:
        """How the answer to a user's question gets into its thread."""
        post = self.in_thread(place)
        if not self.stream:
            return Whole(post)
        return Streamed(self.chat, place, user, post, lambda: self.streams.admit(place.team) == "go")

    def in_thread(self, place: Place) -> Show:
        """Posts to a thread."""
        return partial(self.chat.post, place.channel, place.thread)

    async def tell(self, place: Place, sentence: str) -> None:
        """Says a sentence in a thread."""
        await show([Message(sentence)], self.in_thread(place))

    async def whisper(self, place: Place, user: str, text: str) -> None:
        """Tells one person, or the thread if that cannot be."""
        try:
            await self.chat.whisper(place.channel, place.thread, user, text)
        except Refused:
            await self.tell(place, text)

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
            await self.tell(asked.place, say.FULL)

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
    delivery: Delivery | None = None
    _first: asyncio.Task[bool] | None = None

    async def announce(self, ahead: int) -> None:
        """Shows that it has to wait for others."""
        place = self.asked.place
        if self.bot.allowed(place.channel) and await self.is_first() and not self.delivery:
            await self.bot.chat.show_work(place, say.waiting(ahead))

    async def run(self) -> None:
        """Answers it, if it was not answered before."""
        if await self.is_first():
            self.delivery = self.bot.delivery(self.asked.place, self.asked.user)
            await self.bot.answer(self.asked, self.delivery)

    async def give_up(self) -> None:
        """Says that there is no time left."""
        if self.delivery:
            await self.delivery.finish(Reply((Message(say.RESTARTING),)))
        elif await self.is_first():
            await self.bot.tell(self.asked.place, say.RESTARTING)

    async def is_first(self) -> bool:
        """Whether it was not asked before; of a question that comes twice only one is told so."""
        if self._first is None:
            self._first = asyncio.create_task(self.bot.is_first(self.asked))
        return await asyncio.shield(self._first)


@dataclass(eq=False)
class CommandQuestion:
    """A slash command in the queue: the question is posted, for all to see, and answered in its thread."""

    bot: Bot
    command: Command
    delivery: Delivery = field(init=False)

    def __post_init__(self) -> None:
        self.delivery = Whole(partial(self.bot.chat.reply, self.command.reply_to))

    async def run(self) -> None:
        """Answers it; by the command's own address where we may not post."""
        bot, asked = self.bot, self.command
        place = Place(asked.team, asked.channel, asked.trigger)
        with suppress(Refused):
            place = replace(place, thread=await bot.chat.post(asked.channel, None, asked_message(asked.text)))
            self.delivery = bot.delivery(place, asked.user)
        question = Asked(place, asked.user, asked.text, place.thread, asked.trigger, in_thread=False)
        await bot.answer(question, self.delivery)

    async def give_up(self) -> None:
        """Says that there is no time left."""
        await self.delivery.finish(Reply((Message(say.RESTARTING),)))


@dataclass(eq=False)
class Errand:
    """A small thing to do."""

    work: Callable[[], Awaitable[None]]

    async def run(self) -> None:
        """Does it."""
        await self.work()

    async def give_up(self) -> None:
        """Nobody waits for it."""
