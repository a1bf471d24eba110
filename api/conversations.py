"""Conversations: each belongs to the key that made it; its questions are answered one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, get_args

from anyio import CancelScope
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from api.answering import Ask
from api.ask import STREAMED, answer_response
from api.context import OWN, Asker, Context, The
from api.export import Form, cited_in, described, export_response
from api.schemas import (
    AnswerOut,
    ConversationHead,
    ConversationIn,
    ConversationOut,
    ConversationsPage,
    ConversationsQuery,
    MessageIn,
    MessageOut,
    Name,
)
from rag.errors import Busy
from rag.journal import Conversation, Journal, Message, TurnTaken
from rag.types import Answer, AnswerEvent

router = APIRouter(tags=["conversations"], prefix=f"{OWN}/conversations")

LOOK_AGAIN = 0.1
"""Seconds between two looks whether the conversation's turn is free."""

SPARE = 10.0
"""Seconds a turn lasts beyond the deadline of its answer, for storing it."""


@router.post("", status_code=201)
async def create_conversation(body: ConversationIn, the: The, caller: Asker) -> ConversationHead:
    """Begins a conversation."""
    return head(await the.threads.run(lambda: the.library.journal.create(caller.owner, body.title)))


@router.get("")
async def list_conversations(asked: Annotated[ConversationsQuery, Query()], the: The, caller: Asker) -> ConversationsPage:
    """The caller's conversations, last used first."""
    journal = the.library.journal
    found, more = await the.threads.run(lambda: journal.conversations(caller.owner, cursor=asked.cursor, limit=asked.limit))
    return ConversationsPage(conversations=[head(one) for one in found], cursor=more)


def _add_export(form: Form) -> None:
    @router.get(f"/{{conversation_id}}.{form}", name=f"export_conversation_{form}", responses=described(form))
    async def export_conversation(conversation_id: Name, the: The, caller: Asker) -> Response:
        """The papers cited in a conversation, each once, for a reference manager."""
        kept = await the.threads.run(lambda: the.library.journal.answers(caller.owner, conversation_id))
        papers = await the.threads.run(lambda: cited_in(kept, the.library.catalogue))
        return export_response(papers, form, f"conversation-{conversation_id}")


for _form in get_args(Form):
    _add_export(_form)


@router.get("/{conversation_id}")
async def read_conversation(conversation_id: Name, the: The, caller: Asker) -> ConversationOut:
    """A conversation with its messages."""

    def both(journal: Journal) -> tuple[Conversation, list[Message]]:
        return journal.conversation(caller.owner, conversation_id), journal.messages(caller.owner, conversation_id)

    found, messages = await the.threads.run(lambda: both(the.library.journal))
    return ConversationOut(
        conversation_id=found.conversation_id,
        title=found.title,
        created=found.created.isoformat(),
        updated=found.updated.isoformat(),
        messages=[message_out(one) for one in messages],
    )


@router.delete("/{conversation_id}", status_code=204)
async def delete_conversation(conversation_id: Name, the: The, caller: Asker) -> None:
    """Deletes a conversation with its answers."""
    await the.threads.run(lambda: the.library.journal.delete(caller.owner, conversation_id))


@router.post("/{conversation_id}/messages", response_model=AnswerOut, responses={200: STREAMED})
async def post_message(conversation_id: Name, body: MessageIn, request: Request, the: The, caller: Asker) -> Response:
    """Asks in a conversation; what was said before is the question's history. A second question waits for the first's answer."""
    return await answer_response(request, in_turn(the, caller.owner, conversation_id, body))


async def in_turn(the: Context, owner: str, conversation_id: str, body: MessageIn) -> AsyncGenerator[AnswerEvent, None]:
    """The events of an answer during which the conversation is ours alone. What is not answered to the end leaves no trace."""
    turn = await take_turn(the, owner, conversation_id)

    async def record(answer: Answer) -> None:
        await the.threads.run(lambda: the.library.journal.record(turn, body.question, answer))

    try:
        ask = Ask(body.question, turn.history, body.filters.value(), body.top_k)
        async with aclosing(the.answering.stream(ask, record)) as events:
            async for event in events:
                yield event
    finally:
        with CancelScope(shield=True):
            await the.threads.run(lambda: the.library.journal.give_up(turn))


async def take_turn(the: Context, owner: str, conversation_id: str) -> TurnTaken:
    """Waits for the conversation to be free. Raises Busy when it is not within the deadline of an answer."""
    journal, seconds = the.library.journal, the.work.deadline + SPARE
    give_up_at = asyncio.get_running_loop().time() + the.work.deadline
    while True:
        try:
            return await the.threads.take(lambda: journal.take_turn(owner, conversation_id, seconds), journal.give_up)
        except Busy:
            if asyncio.get_running_loop().time() > give_up_at:
                raise
            await asyncio.sleep(LOOK_AGAIN)


def head(found: Conversation) -> ConversationHead:
    """A conversation as it is listed."""
    return ConversationHead(
        conversation_id=found.conversation_id,
        title=found.title,
        created=found.created.isoformat(),
        updated=found.updated.isoformat(),
        messages=found.messages,
    )


def message_out(message: Message) -> MessageOut:
    """One message."""
    return MessageOut(
        role=message.role, content=message.content, answer_id=message.answer_id, created=message.created.isoformat()
    )
