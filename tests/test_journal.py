from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest

from rag.database import Database
from rag.errors import Busy, InputError, NotFound
from rag.journal import Journal, TurnTaken
from rag.types import Answer, Citation, Filters, Paper, Turn
from rag.wire import answer_to_json

ABSTRACT = "Trees are graphs without cycles. 树是没有圈的图。"


class Clock:
    """A clock that moves when told, a little with each look."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def journal(database: Database, clock: Clock) -> Journal:
    return Journal(database, clock)


def answer(answer_id: str = "a1", *cited: str) -> Answer:
    citations = tuple(Citation(n, Paper(paper_id, ABSTRACT), ABSTRACT[:5], 0, 5) for n, paper_id in enumerate(cited, 1))
    return Answer(
        answer_id=answer_id,
        question="What are trees?",
        standalone_question="What are trees?",
        status="answered",
        text=f"Text of {answer_id}. 树",
        sentences=(),
        citations=citations,
        papers=(),
        generator="extractive",
        prompt_version=None,
        verifier="local@1",
        filters=Filters(),
        revision=17,
    )


def ask(journal: Journal, conversation_id: str, question: str, given: Answer, owner: str = "me") -> TurnTaken:
    turn = journal.take_turn(owner, conversation_id, seconds=60)
    journal.record(turn, question, given)
    return turn


def test_a_conversation_keeps_its_messages_in_order(journal: Journal) -> None:
    conversation = journal.create("me")
    ask(journal, conversation.conversation_id, "What are trees?", answer("a1", "p1"))
    ask(journal, conversation.conversation_id, "And forests?", answer("a2"))
    said = journal.messages("me", conversation.conversation_id)
    assert [(message.role, message.content, message.answer_id) for message in said] == [
        ("user", "What are trees?", None),
        ("assistant", "Text of a1. 树", "a1"),
        ("user", "And forests?", None),
        ("assistant", "Text of a2. 树", "a2"),
    ]
    assert said[0].created < said[2].created
    assert journal.conversation("me", conversation.conversation_id).messages == 4


def test_the_history_names_the_papers_each_answer_cited(journal: Journal) -> None:
    conversation = journal.create("me")
    ask(journal, conversation.conversation_id, "What are trees?", answer("a1", "p2", "p1", "p2"))
    turn = journal.take_turn("me", conversation.conversation_id, 60)
    assert turn.history == (Turn("user", "What are trees?"), Turn("assistant", "Text of a1. 树", ("p2", "p1")))


def test_a_conversation_is_named_after_its_first_question_unless_it_has_a_name(journal: Journal) -> None:
    named, unnamed = journal.create("me", "Trees"), journal.create("me")
    for conversation, answer_id in ((named, "a1"), (unnamed, "a2")):
        ask(journal, conversation.conversation_id, "What are trees? " * 20, answer(answer_id))
        ask(journal, conversation.conversation_id, "And forests?", answer(answer_id + "b"))
    titles = [journal.conversation("me", conversation.conversation_id).title for conversation in (named, unnamed)]
    assert titles[0] == "Trees"
    assert titles[1].startswith("What are trees?")
    assert len(titles[1]) <= 80


def test_conversations_come_last_used_first_a_page_at_a_time(journal: Journal) -> None:
    made = [journal.create("me", str(number)).conversation_id for number in range(5)]
    ask(journal, made[1], "Up?", answer())
    seen, cursor = journal.conversations("me", limit=2)
    while cursor:
        page, cursor = journal.conversations("me", cursor=cursor, limit=2)
        seen += page
    assert [conversation.conversation_id for conversation in seen] == [made[n] for n in (1, 4, 3, 2, 0)]


def test_a_page_that_ends_with_the_last_conversation_has_no_cursor(journal: Journal) -> None:
    journal.create("me")
    journal.create("me")
    assert journal.conversations("me", limit=2)[1] is None


@pytest.mark.parametrize("cursor", ["", "x", "1.0", "1.0 a b", "\x00 \x00", "nan"])
def test_a_made_up_cursor_is_refused(journal: Journal, cursor: str) -> None:
    with pytest.raises(InputError, match="cursor"):
        journal.conversations("me", cursor=cursor)


def test_nobody_sees_or_changes_what_belongs_to_another(journal: Journal) -> None:
    conversation_id = journal.create("me").conversation_id
    ask(journal, conversation_id, "Mine?", answer("a1"))
    assert journal.conversations("you") == ([], None)
    for attempt in (
        lambda: journal.conversation("you", conversation_id),
        lambda: journal.messages("you", conversation_id),
        lambda: journal.answers("you", conversation_id),
        lambda: journal.take_turn("you", conversation_id, 60),
        lambda: journal.delete("you", conversation_id),
        lambda: journal.answer("you", "a1"),
        lambda: journal.rate("you", "a1", "up"),
        lambda: journal.feedback("you", "a1"),
    ):
        with pytest.raises(NotFound):
            attempt()
    assert journal.conversation("me", conversation_id).messages == 2


def test_a_second_question_waits_for_the_first(journal: Journal) -> None:
    conversation_id = journal.create("me").conversation_id
    turn = journal.take_turn("me", conversation_id, 60)
    with pytest.raises(Busy):
        journal.take_turn("me", conversation_id, 60)
    journal.record(turn, "First?", answer())
    assert len(journal.take_turn("me", conversation_id, 60).history) == 2


def test_a_turn_given_up_frees_the_conversation_and_leaves_nothing(journal: Journal) -> None:
    conversation_id = journal.create("me").conversation_id
    turn = journal.take_turn("me", conversation_id, 60)
    journal.give_up(turn)
    journal.give_up(turn)
    assert journal.take_turn("me", conversation_id, 60).history == ()


def test_a_turn_runs_out_and_its_late_answer_is_not_kept(journal: Journal, clock: Clock) -> None:
    conversation_id = journal.create("me").conversation_id
    late = journal.take_turn("me", conversation_id, 60)
    assert late.expires == datetime.fromtimestamp(clock.now + 60, UTC)
    clock.now += 61
    turn = journal.take_turn("me", conversation_id, 60)
    with pytest.raises(Busy):
        journal.record(late, "Late?", answer("late"))
    journal.give_up(late)
    journal.record(turn, "Next?", answer("next"))
    assert [message.content for message in journal.messages("me", conversation_id)] == ["Next?", "Text of next. 树"]
    with pytest.raises(NotFound):
        journal.answer("me", "late")


def test_of_many_who_ask_at_once_one_gets_the_turn(journal: Journal) -> None:
    conversation_id = journal.create("me").conversation_id
    got: list[bool] = []

    def try_it() -> None:
        try:
            journal.take_turn("me", conversation_id, 60)
            got.append(True)
        except Busy:
            got.append(False)

    threads = [threading.Thread(target=try_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False] * 7 + [True]


def test_an_answer_comes_back_unchanged(journal: Journal) -> None:
    journal.keep("me", answer("a1", "p2", "p1"))
    kept = journal.answer("me", "a1")
    assert kept.answer == answer_to_json(answer("a1", "p2", "p1"))
    assert (kept.revision, kept.cited, kept.conversation_id) == (17, ("p2", "p1"), None)


def test_the_answers_of_a_conversation_come_in_order(journal: Journal) -> None:
    conversation_id = journal.create("me").conversation_id
    for answer_id in ("z", "a", "m"):
        ask(journal, conversation_id, "Q?", answer(answer_id))
    assert [kept.answer_id for kept in journal.answers("me", conversation_id)] == ["z", "a", "m"]


def test_the_last_word_of_each_rater_counts(journal: Journal) -> None:
    journal.keep("me", answer("a1"))
    journal.rate("me", "a1", "up")
    journal.rate("me", "a1", "down", "No: 错\x00")
    journal.rate("me", "a1", "up", rater="somebody")
    assert [(said.verdict, said.comment) for said in journal.feedback("me", "a1")] == [("down", "No: 错\ufffd"), ("up", "")]


def test_deleting_a_conversation_deletes_all_of_it(journal: Journal) -> None:
    conversation = journal.thread("me", "T/C/1")
    ask(journal, conversation.conversation_id, "Q?", answer("a1"))
    journal.rate("me", "a1", "up")
    other = journal.create("me").conversation_id
    ask(journal, other, "Q?", answer("a2"))
    turn = journal.take_turn("me", conversation.conversation_id, 60)
    journal.delete("me", conversation.conversation_id)
    for attempt in (
        lambda: journal.conversation("me", conversation.conversation_id),
        lambda: journal.answer("me", "a1"),
        lambda: journal.record(turn, "Q?", answer("a3")),
    ):
        with pytest.raises(NotFound):
            attempt()
    journal.give_up(turn)
    journal.keep("me", answer("a1"))
    assert journal.feedback("me", "a1") == []
    assert journal.answer("me", "a2").answer_id == "a2"
    assert journal.thread("me", "T/C/1").messages == 0


def test_a_thread_is_one_conversation_however_many_ask_at_once(journal: Journal) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(journal.thread("slack", "T/C/1.0").conversation_id)) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len(set(found)) == 1
    assert journal.thread("slack", "T/C/2.0").conversation_id not in found


def test_an_event_is_new_once(journal: Journal, clock: Clock) -> None:
    assert journal.first_time("event:1", "message:T/C/1")
    assert not journal.first_time("event:1")
    assert not journal.first_time("event:2", "message:T/C/1")
    assert journal.first_time("event:3", "event:3")
    clock.now += 25 * 3600
    assert journal.first_time("event:1", "message:T/C/1")


def test_of_many_deliveries_at_once_one_is_the_first(journal: Journal) -> None:
    got: list[bool] = []
    threads = [threading.Thread(target=lambda: got.append(journal.first_time("event:1"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False] * 7 + [True]
