"""What the bot does with what it hears: a question is answered once, in its thread, and whatever happens something is said."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from anyio import CancelScope

from api import slack_blocks as say
from api.answering import Answering, Ask, Work, whole
from api.context import Context
from api.conversations import take_turn
from api.export import cited_in
from api.lifecycle import Lifecycle
from api.limits import Generations
from api.slack_blocks import Message
from api.slack_queue import Fuse, JobQueue
from rag.errors import is_panic
from rag.journal import Verdict
from rag.types import Answer, Turn, cut

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

THREAD_TURNS = 20
"""Messages of an existing thread that are read when first mentioned in it."""

TURN_LENGTH = 2_000


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


class Bot:
    """Hears, answers, and is told what people think of it. `channels` are those it may answer in; none means all."""

    def __init__(self, the: Context, chat: Chat, channels: Collection[str] = ()) -> None:
        self.the = for_slack(the)
        self._server = the.lifecycle
        self.chat = chat
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
            messages, _ = await asyncio.gather(self._messages(asked), self.chat.show_work(place.channel, place.thread))
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
                    await show(say.beginning(message, str(refused)))
                except Refused as again:
                    log.error("Slack refused to show why: %s", again)

    async def whisper(self, place: Place, user: str, text: str) -> None:
        """Tells one person, or the thread if that cannot be."""
        try:
            await self.chat.whisper(place.channel, place.thread, user, text)
        except Refused:
            await self.show([Message(text)], self.in_thread(place))

    async def _messages(self, asked: Asked) -> Sequence[Message]:
        """What to say to a question; never nothing."""
        try:
            return await self._found(asked)
        except BaseException as error:
            if not isinstance(error, Exception) and not is_panic(error):
                raise
            sentence = say.sentence_of(error)
            if sentence == say.BROKEN:
                log.exception("a question from Slack broke off")
            return [Message(sentence)]

    async def _found(self, asked: Asked) -> Sequence[Message]:
        journal, place = self.the.library.journal, asked.place
        conversation = await self.the.threads.run(lambda: journal.thread(place.owner, place.key))
        if asked.text.strip("/ ").casefold() in ("bib", "bibtex"):
            return await self._bib(place.owner, conversation.conversation_id)
        unread = asked.in_thread and not (conversation.messages and asked.text)
        before = await self.chat.said_before(place, asked.ts) if unread else ()
        question = asked.text or (before[-1].text if before and not before[-1].ours else "")
        if not question:
            return [Message(say.WANTED)]
        earlier = history(before if asked.text else before[:-1])
        answer = await self._answer(place.owner, conversation.conversation_id, question, earlier)
        return say.answer_messages(answer, place.owner)

    async def _answer(self, owner: str, conversation_id: str, question: str, earlier: Sequence[Turn]) -> Answer:
        """An answer in its turn; `earlier` stands in for the history of a conversation that has none."""
        journal, threads = self.the.library.journal, self.the.threads
        turn = await take_turn(self.the, owner, conversation_id)

        async def record(answer: Answer) -> None:
            await threads.run(lambda: journal.record(turn, question, answer))

        try:
            return await whole(self.the.answering.stream(Ask(question, turn.history or earlier), record))
        finally:
            with CancelScope(shield=True):
                await threads.run(lambda: journal.give_up(turn))

    async def _bib(self, owner: str, conversation_id: str) -> list[Message]:
        library = self.the.library
        kept = await self.the.threads.run(lambda: library.journal.answers(owner, conversation_id))
        return say.bib_messages(await self.the.threads.run(lambda: cited_in(kept, library.catalogue)))

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


def history(before: Sequence[Said]) -> list[Turn]:
    """What people said in a thread, as the history of a question."""
    return [Turn("user", cut(one.text, TURN_LENGTH)) for one in before if one.text and not one.ours][-THREAD_TURNS:]


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
            ts = await bot.chat.post(asked.channel, None, say.asked_message(asked.text))
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
