"""What was asked and answered: conversations, answers, feedback, and what Slack must remember. In the catalogue's database.

Blocking, as the catalogue is. `owner` is the id of the key that asks; nobody sees what belongs to another.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import uuid4

from sqlalchemy import Connection, Row, delete, insert, or_, select, tuple_, update

from rag.database import Database, answers, conversations, events, feedback, messages, threads
from rag.errors import Busy, InputError, NotFound
from rag.types import Answer, Role, Turn, cut, unique
from rag.wire import JsonObject, answer_to_json

Verdict = Literal["up", "down"]

TITLE_LENGTH = 80
LONGEST_DELIVERY = 24 * 3600.0
"""Seconds after which Slack no longer delivers an event again."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation without its messages. Times are UTC."""

    conversation_id: str
    title: str
    created: datetime
    updated: datetime
    messages: int


@dataclass(frozen=True, slots=True)
class Message:
    """One message; an assistant's has the id of its answer."""

    role: Role
    content: str
    answer_id: str | None
    created: datetime


@dataclass(frozen=True, slots=True)
class TurnTaken:
    """The right to add the next question and answer to a conversation, until `expires`; `history` is what was said so far."""

    conversation_id: str
    owner: str
    token: str
    expires: datetime
    history: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer as it was given: `answer` is the JSON object of DESIGN §2, made at catalogue revision `revision`."""

    answer_id: str
    answer: JsonObject
    revision: int
    created: datetime
    conversation_id: str | None

    @property
    def cited(self) -> tuple[str, ...]:
        """Ids of the papers it cites, in order of marker; see `Catalogue.changed_since` for whether it is stale."""
        return cited_papers(self.answer)


@dataclass(frozen=True, slots=True)
class Feedback:
    """What an owner thought of an answer; the last word counts."""

    answer_id: str
    verdict: Verdict
    comment: str
    created: datetime


class Journal:
    """Every method raises CatalogueUnavailable when the database does not answer, NotFound for what is not the owner's."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self.database = database
        self._clock = clock

    def create(self, owner: str, title: str = "") -> Conversation:
        """A new conversation; without a title it is named after its first question."""
        with self.database.writing() as connection:
            return self._create(connection, owner, title)

    def conversations(self, owner: str, *, cursor: str | None = None, limit: int = 50) -> tuple[list[Conversation], str | None]:
        """The owner's conversations, last used first, and the cursor of the next page, None at the end. Raises InputError for a
        cursor that is none of ours."""
        place = tuple_(conversations.c.updated, conversations.c.conversation_id)
        query = select(conversations).where(conversations.c.owner == owner)
        if cursor is not None:
            query = query.where(place < tuple_(*read_cursor(cursor)))
        query = query.order_by(conversations.c.updated.desc(), conversations.c.conversation_id.desc()).limit(limit + 1)
        with self.database.reading() as connection:
            rows = connection.execute(query).all()
        more = f"{rows[limit - 1].updated!r} {rows[limit - 1].conversation_id}" if len(rows) > limit else None
        return [read_conversation(row) for row in rows[:limit]], more

    def conversation(self, owner: str, conversation_id: str) -> Conversation:
        """One conversation."""
        with self.database.reading() as connection:
            return read_conversation(own(connection, owner, conversation_id))

    def messages(self, owner: str, conversation_id: str) -> list[Message]:
        """All messages, in order."""
        with self.database.reading() as connection:
            own(connection, owner, conversation_id)
            rows = connection.execute(in_order(conversation_id))
            return [Message(row.role, row.content, row.answer_id, moment(row.created)) for row in rows]

    def answers(self, owner: str, conversation_id: str) -> list[KeptAnswer]:
        """All answers of a conversation, in order: for exporting what it cited."""
        with self.database.reading() as connection:
            own(connection, owner, conversation_id)
            said = messages.join(answers, answers.c.answer_id == messages.c.answer_id)
            query = select(answers).select_from(said).where(messages.c.conversation_id == conversation_id)
            return [read_answer(row) for row in connection.execute(query.order_by(messages.c.position))]

    def delete(self, owner: str, conversation_id: str) -> None:
        """Deletes a conversation with its messages, answers and feedback. An answer being written to it will not be kept."""
        with self.database.writing() as connection:
            own(connection, owner, conversation_id)
            made = select(answers.c.answer_id).where(answers.c.conversation_id == conversation_id)
            connection.execute(delete(feedback).where(feedback.c.answer_id.in_(made)))
            for table in (answers, messages, threads, conversations):
                connection.execute(delete(table).where(table.c.conversation_id == conversation_id))

    def take_turn(self, owner: str, conversation_id: str, seconds: float) -> TurnTaken:
        """The next turn of a conversation, for at most `seconds`; end it with `record` or `give_up`. Raises Busy while somebody
        else has it: two answers to one conversation are written one after the other."""
        now, token = self._clock(), uuid4().hex
        free = or_(conversations.c.locked_until.is_(None), conversations.c.locked_until <= now)
        with self.database.writing() as connection:
            own(connection, owner, conversation_id)
            wanted = update(conversations).where(conversations.c.conversation_id == conversation_id, free)
            if not connection.execute(wanted.values(locked_by=token, locked_until=now + seconds)).rowcount:
                raise Busy("Another question of this conversation is being answered; send this one when that is done.")
            return TurnTaken(conversation_id, owner, token, moment(now + seconds), history(connection, conversation_id))

    def record(self, turn: TurnTaken, question: str, answer: Answer) -> None:
        """Adds the question and its answer, and ends the turn. Raises Busy when the turn ran out and somebody else took it."""
        now = self._clock()
        with self.database.writing() as connection:
            row = own(connection, turn.owner, turn.conversation_id)
            ended = {"locked_by": None, "locked_until": None, "updated": now, "messages": row.messages + 2}
            mine = update(conversations).where(
                conversations.c.conversation_id == turn.conversation_id, conversations.c.locked_by == turn.token
            )
            if not connection.execute(mine.values(**ended, title=row.title or cut(question, TITLE_LENGTH))).rowcount:
                raise Busy("The answer took too long and another question came first; ask again.")
            said = {"conversation_id": turn.conversation_id, "created": now}
            asked = {**said, "position": row.messages, "role": "user", "content": question, "answer_id": None}
            replied = {**said, "position": row.messages + 1, "role": "assistant", "content": answer.text}
            connection.execute(insert(messages), [asked, {**replied, "answer_id": answer.answer_id}])
            connection.execute(insert(answers).values(self._answer_row(turn.owner, turn.conversation_id, answer)))

    def give_up(self, turn: TurnTaken) -> None:
        """Ends a turn without an answer; harmless when it has ended already."""
        with self.database.writing() as connection:
            connection.execute(
                update(conversations).where(conversations.c.locked_by == turn.token).values(locked_by=None, locked_until=None)
            )

    def keep(self, owner: str, answer: Answer) -> None:
        """Keeps an answer that belongs to no conversation."""
        with self.database.writing() as connection:
            connection.execute(insert(answers).values(self._answer_row(owner, None, answer)))

    def answer(self, owner: str, answer_id: str) -> KeptAnswer:
        """An answer given before, unchanged."""
        with self.database.reading() as connection:
            return read_answer(own_answer(connection, owner, answer_id))

    def rate(self, owner: str, answer_id: str, verdict: Verdict, comment: str = "", *, rater: str | None = None) -> Feedback:
        """Keeps what the owner (or, in a shared place as Slack, the person `rater`) thinks of an answer, in place of what they
        said before."""
        now = self._clock()
        row = {"answer_id": answer_id, "owner": rater or owner, "verdict": verdict, "comment": comment, "created": now}
        with self.database.writing(alone=answer_id) as connection:
            own_answer(connection, owner, answer_id)
            connection.execute(delete(feedback).where(feedback.c.answer_id == answer_id, feedback.c.owner == row["owner"]))
            connection.execute(insert(feedback).values(row))
        return Feedback(answer_id, verdict, comment, moment(now))

    def feedback(self, owner: str, answer_id: str) -> list[Feedback]:
        """What was said of an answer, oldest first."""
        with self.database.reading() as connection:
            own_answer(connection, owner, answer_id)
            rows = connection.execute(select(feedback).where(feedback.c.answer_id == answer_id).order_by(feedback.c.created))
            return [Feedback(row.answer_id, row.verdict, row.comment, moment(row.created)) for row in rows]

    def thread(self, owner: str, thread: str) -> Conversation:
        """The conversation of a thread elsewhere (`team/channel/ts`), made when the thread is new."""
        found = select(conversations).join(threads, threads.c.conversation_id == conversations.c.conversation_id)
        with self.database.writing(alone=thread) as connection:
            known = connection.execute(found.where(threads.c.thread == thread, conversations.c.owner == owner)).first()
            if known:
                return read_conversation(known)
            made = self._create(connection, owner, "")
            connection.execute(insert(threads).values(thread=thread, conversation_id=made.conversation_id))
            return made

    def first_time(self, *names: str, seconds: float = LONGEST_DELIVERY) -> bool:
        """Whether none of these names of one event was seen in the last `seconds`; all of them count as seen from now on."""
        now = self._clock()
        with self.database.writing(alone="events") as connection:
            connection.execute(delete(events).where(events.c.expires <= now))
            seen = connection.execute(select(events.c.event).where(events.c.event.in_(names))).first()
            if seen is None:
                connection.execute(insert(events), [{"event": name, "expires": now + seconds} for name in unique(names)])
            return seen is None

    def _create(self, connection: Connection, owner: str, title: str) -> Conversation:
        now, conversation_id = self._clock(), uuid4().hex
        row = {"conversation_id": conversation_id, "owner": owner, "title": title, "created": now, "updated": now}
        connection.execute(insert(conversations).values(**row, messages=0))
        return Conversation(conversation_id, title, moment(now), moment(now), 0)

    def _answer_row(self, owner: str, conversation_id: str | None, answer: Answer) -> dict[str, object]:
        return {
            "answer_id": answer.answer_id,
            "owner": owner,
            "conversation_id": conversation_id,
            "revision": answer.revision,
            "created": self._clock(),
            "answer": json.dumps(answer_to_json(answer), ensure_ascii=False),
        }


def own(connection: Connection, owner: str, conversation_id: str) -> Row[Any]:  # Any: a row of `conversations`
    wanted = select(conversations).where(conversations.c.conversation_id == conversation_id, conversations.c.owner == owner)
    row = connection.execute(wanted).first()
    if row is None:
        raise NotFound(f"There is no conversation {conversation_id!r} of yours.")
    return row


def own_answer(connection: Connection, owner: str, answer_id: str) -> Row[Any]:  # Any: a row of `answers`
    row = connection.execute(select(answers).where(answers.c.answer_id == answer_id, answers.c.owner == owner)).first()
    if row is None:
        raise NotFound(f"There is no answer {answer_id!r} of yours.")
    return row


def in_order(conversation_id: str) -> Any:  # Any: an SQL query
    return select(messages).where(messages.c.conversation_id == conversation_id).order_by(messages.c.position)


def history(connection: Connection, conversation_id: str) -> tuple[Turn, ...]:
    said = in_order(conversation_id).add_columns(answers.c.answer)
    rows = connection.execute(said.outerjoin_from(messages, answers, answers.c.answer_id == messages.c.answer_id))
    return tuple(Turn(row.role, row.content, cited_papers(json.loads(row.answer)) if row.answer else ()) for row in rows)


def cited_papers(answer: Any) -> tuple[str, ...]:  # Any: our own JSON, read back
    return unique([citation["paper"]["paper_id"] for citation in answer["citations"]])


def read_conversation(row: Row[Any]) -> Conversation:  # Any: a row of `conversations`
    return Conversation(row.conversation_id, row.title, moment(row.created), moment(row.updated), row.messages)


def read_answer(row: Row[Any]) -> KeptAnswer:  # Any: a row of `answers`
    return KeptAnswer(row.answer_id, json.loads(row.answer), row.revision, moment(row.created), row.conversation_id)


def read_cursor(cursor: str) -> Sequence[float | str]:
    try:
        updated, conversation_id = cursor.split(" ")
        return float(updated), conversation_id
    except ValueError as error:
        raise InputError("The cursor is not one that was given here; start without one.") from error


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
