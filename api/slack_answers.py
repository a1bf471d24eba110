"""What is said to a question from Slack: an answer, BibTeX, or a sentence; never nothing."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from anyio import CancelScope

from api import slack_sentences as say
from api.answering import Ask, whole
from api.context import Context
from api.conversations import take_turn
from api.export import cited_in
from api.slack_blocks import Message, Reply, answer_reply, bib_messages
from api.slack_chat import Chat, Said
from api.slack_events import Asked
from rag.errors import is_panic
from rag.types import Answer, AnswerEvent, AnswerSentence, PapersFound, SentenceReady, Turn, cut

log = logging.getLogger(__name__)

THREAD_TURNS = 20
"""Messages of an existing thread that are read when first mentioned in it."""

TURN_LENGTH = 2_000

Listen = Callable[[AnswerSentence], None]
"""Takes each sentence of an answer as soon as it is checked; an abstention is short and told at the end."""


class Answers:
    """Finds what to say; of Slack it reads threads, and posts nothing."""

    def __init__(self, the: Context, chat: Chat) -> None:
        self.the = the
        self.chat = chat

    async def reply(self, asked: Asked, listen: Listen) -> Reply:
        """What to say to a question; never nothing."""
        try:
            return await self._found(asked, listen)
        except BaseException as error:
            if not isinstance(error, Exception) and not is_panic(error):
                raise
            sentence = say.sentence_of(error)
            if sentence == say.BROKEN:
                log.exception("a question from Slack broke off")
            return Reply((Message(sentence),))

    async def _found(self, asked: Asked, listen: Listen) -> Reply:
        journal, place = self.the.library.journal, asked.place
        conversation = await self.the.threads.run(lambda: journal.thread(place.owner, place.key))
        if asked.text.strip("/ ").casefold() in ("bib", "bibtex"):
            return await self._bib(place.owner, conversation.conversation_id)
        unread = asked.in_thread and not (conversation.messages and asked.text)
        before = await self.chat.said_before(place, asked.ts) if unread else ()
        question = asked.text or (before[-1].text if before and not before[-1].ours else "")
        if not question:
            return Reply((Message(say.WANTED),))
        earlier = history(before if asked.text else before[:-1])
        answer = await self._answer(place.owner, conversation.conversation_id, question, earlier, listen)
        return answer_reply(answer, place.owner)

    async def _answer(self, owner: str, conversation_id: str, question: str, earlier: Sequence[Turn], listen: Listen) -> Answer:
        """An answer in its turn; `earlier` stands in for the history of a conversation that has none."""
        journal, threads = self.the.library.journal, self.the.threads
        turn = await take_turn(self.the, owner, conversation_id)

        async def record(answer: Answer) -> None:
            await threads.run(lambda: journal.record(turn, question, answer))

        try:
            return await whole(told(self.the.answering.stream(Ask(question, turn.history or earlier), record), listen))
        finally:
            with CancelScope(shield=True):
                await threads.run(lambda: journal.give_up(turn))

    async def _bib(self, owner: str, conversation_id: str) -> Reply:
        library = self.the.library
        kept = await self.the.threads.run(lambda: library.journal.answers(owner, conversation_id))
        papers = await self.the.threads.run(lambda: cited_in(kept, library.catalogue))
        return Reply(tuple(bib_messages(papers)))


async def told(events: AsyncGenerator[AnswerEvent, None], listen: Listen) -> AsyncGenerator[AnswerEvent, None]:
    """The events, of which `listen` hears an answer's sentences on the way."""
    answered = False
    async with aclosing(events):
        async for event in events:
            if isinstance(event, PapersFound):
                answered = event.status == "answered"
            elif isinstance(event, SentenceReady) and answered:
                listen(event.sentence)
            yield event


def history(before: Sequence[Said]) -> list[Turn]:
    """What people said in a thread, as the history of a question."""
    return [Turn("user", cut(one.text, TURN_LENGTH)) for one in before if one.text and not one.ours][-THREAD_TURNS:]
