"""Answers that appear sentence by sentence: whole in the end, once, whatever becomes of the stream."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.slack_blocks import broken_off, reply_of, section
from api.slack_stream import STREAM_TEXT, ending_of
from api.slack_text import safe_markdown, settled, size
from rag.errors import CatalogueUnavailable, LLMUnavailable
from rag.query_engine import failure_notice
from rag.types import Turn
from tests.api.fakes import FakeLibrary, make_answer
from tests.slack.conftest import Door, eventually, open_door
from tests.slack.fake_slack import BOT, LOST, FakeSlack, Json, Posted, check_stream, command_form, direct, event_body, mention
from tests.slack.test_text import TEXTS, calmly, words

SAID = ["About Otters sor [1]. ", "About Crows reme [2]."]


@pytest.fixture
async def door(library: FakeLibrary, slack: FakeSlack) -> AsyncIterator[Door]:
    library.engine.pauses |= {2: 0.7, 3: 1.3}  # the second sentence comes after the first was shown, and is before the end
    async with open_door(library, slack, slack_stream=True) as opened:
        yield opened


async def ended(slack: FakeSlack, count: int = 1) -> list[Posted]:
    """All messages, when there are so many and none streams."""
    await eventually(lambda: len(slack.posted) >= count and not any(one.streaming for one in slack.posted) and has_buttons(slack))
    return slack.posted


def has_buttons(slack: FakeSlack) -> bool:
    return "actions" in json.dumps(slack.posted[-1].blocks)


def calls(slack: FakeSlack) -> list[str]:
    """The calls that put an answer into Slack, by their last word."""
    return [method.rpartition(".")[2] for method in slack.methods if method.startswith("chat.")]


def is_whole(message: Posted) -> bool:
    """Whether it holds the answer once, footnotes and buttons."""
    kinds = [block["type"] for block in message.blocks]
    return message.shown.replace("\n", " ").count("".join(SAID)) == 1 and kinds[-3:] == ["section", "section", "actions"]


def say(library: FakeLibrary, texts: Sequence[str]) -> None:
    """Lets the engine say these sentences."""
    answer = make_answer("?", library.catalogue.list(limit=2))
    sentences = tuple(replace(answer.sentences[0], text=text) for text in texts)
    library.engine.change = {"text": "".join(texts), "sentences": sentences}


async def test_an_answer_appears_sentence_by_sentence_and_ends_with_footnotes_and_buttons(door: Door) -> None:
    body = mention(door.slack, "What do otters sort?")
    await door.send(body)
    await eventually(lambda: door.slack.posted)
    assert door.slack.posted[0].pieces == SAID[:1] and door.library.engine.running
    (answer,) = await ended(door.slack)
    assert answer.pieces == SAID
    assert answer.thread == body["event"]["ts"]
    assert [block["type"] for block in answer.blocks] == ["section", "section", "actions"]
    assert "Lutz &amp; Brook, 2021" in answer.shown
    assert calls(door.slack) == ["startStream", "appendStream", "stopStream"]
    assert door.slack.methods[0] == "assistant.threads.setStatus"  # the first sentence takes it away


async def test_what_comes_between_two_turns_is_appended_together(door: Door) -> None:
    texts = [f"Sentence {n} [1]. " for n in range(9)]
    say(door.library, texts)
    door.library.engine.pauses |= {3: 0.1, 10: 1.3}
    await door.send(mention(door.slack, "Otters?"))
    (answer,) = await ended(door.slack)
    assert answer.pieces == [texts[0], "".join(texts[1:])]


async def test_a_direct_message_and_a_command_stream_too(door: Door) -> None:
    await door.send(direct(door.slack, "Otters?"))
    await door.send(command_form(door.slack, "Otters?"))
    await ended(door.slack, 3)
    assert sorted(one.channel for one in door.slack.posted if "".join(one.pieces) == "".join(SAID)) == ["C1", "D1"]


async def test_a_thread_of_streamed_answers_is_a_conversation(door: Door) -> None:
    first = mention(door.slack, "What do otters sort?")
    await door.send(first)
    await ended(door.slack)
    await door.send(mention(door.slack, "And why?", thread=first["event"]["ts"]))
    await ended(door.slack, 2)
    assert door.library.engine.asked[1].history[0] == Turn("user", "What do otters sort?")


async def test_an_answer_that_is_there_at_once_is_posted_whole(door: Door) -> None:
    door.library.engine.pauses.clear()
    assert (await door.ask(mention(door.slack, "Otters?"))).blocks[0]["text"] == "".join(SAID)
    assert calls(door.slack) == ["postMessage"]


@pytest.mark.parametrize("status", ["not_in_corpus", "needs_full_text"])
async def test_what_is_no_answer_is_posted_whole(door: Door, status: str) -> None:
    door.library.engine.change = {"status": status}
    answer = await door.ask(mention(door.slack, "Otters?"))
    assert answer.blocks[0]["text"] == "".join(SAID)
    assert calls(door.slack) == ["postMessage"]


async def test_an_answer_whose_stream_has_died_is_edited_into_its_message(door: Door) -> None:
    door.slack.stream_appends = 0
    await door.send(mention(door.slack, "Otters?"))
    (answer,) = await ended(door.slack)
    assert is_whole(answer) and answer.edits == 1
    assert calls(door.slack) == ["startStream", "appendStream", "stopStream", "update"]


async def test_a_stream_that_dies_before_its_end_is_noticed_at_the_end(door: Door) -> None:
    await door.send(mention(door.slack, "Otters?"))
    await eventually(lambda: door.slack.posted and len(door.slack.posted[0].pieces) == 2)
    door.slack.posted[0].streaming = False
    (answer,) = await ended(door.slack)
    assert is_whole(answer) and answer.edits == 1


@pytest.mark.parametrize("method", ["chat.appendStream", "chat.stopStream"])
@pytest.mark.parametrize("fault", ["message_not_in_streaming_state", "stopped_by_user", "internal_error", "msg_too_long", LOST])
async def test_a_stream_that_breaks_ends_as_one_whole_message(door: Door, method: str, fault: str) -> None:
    door.slack.faults[method].append(fault)
    await door.send(mention(door.slack, "Otters?"))
    await eventually(lambda: door.slack.posted and door.slack.posted[0].edits)
    (answer,) = await ended(door.slack)
    assert is_whole(answer) and answer.edits == 1


@pytest.mark.parametrize("fault", ["block_mismatch", "edit_window_closed", LOST])
async def test_an_answer_that_cannot_be_edited_is_posted_anew_in_its_place(door: Door, fault: str) -> None:
    door.slack.faults["chat.stopStream"].append("internal_error")
    door.slack.faults["chat.update"].append(fault)
    await door.send(mention(door.slack, "Otters?"))
    await eventually(lambda: "postMessage" in calls(door.slack))
    (answer,) = await ended(door.slack)
    assert is_whole(answer) and not answer.pieces and not answer.edits


async def test_an_answer_that_can_neither_be_edited_nor_deleted_is_posted_anew(door: Door) -> None:
    door.slack.stream_appends = 0
    door.slack.faults["chat.update"].append("edit_window_closed")
    door.slack.faults["chat.delete"].append("cant_delete_message")
    await door.send(mention(door.slack, "Otters?"))
    beginning, answer = await ended(door.slack, 2)
    assert beginning.pieces == SAID[:1] and is_whole(answer)


@pytest.mark.parametrize("fault", ["missing_scope", "channel_type_not_supported", "unknown_method", 30])
async def test_where_slack_begins_no_stream_the_answer_is_posted_whole(door: Door, fault: str | int) -> None:
    door.slack.faults["chat.startStream"].append(fault)
    answer = await door.ask(mention(door.slack, "Otters?"))
    assert is_whole(answer)
    assert calls(door.slack) == ["startStream", "postMessage"]


async def test_a_429_of_an_append_is_waited_out_and_the_stream_goes_on(door: Door) -> None:
    door.library.engine.pauses[3] = 4
    door.slack.faults["chat.appendStream"].append(2)
    await door.send(mention(door.slack, "Otters?"))
    (answer,) = await ended(door.slack)
    assert answer.pieces == SAID
    assert calls(door.slack) == ["startStream", "appendStream", "appendStream", "stopStream"]


async def test_an_answer_that_is_done_does_not_wait_for_a_429_of_an_append(door: Door) -> None:
    door.slack.faults["chat.appendStream"].append(60)
    await door.send(mention(door.slack, "Otters?"))
    (answer,) = await ended(door.slack)
    assert answer.pieces == SAID
    assert calls(door.slack) == ["startStream", "appendStream", "stopStream"]


async def test_a_call_that_is_under_way_when_the_answer_is_done_is_waited_for(door: Door) -> None:
    door.slack.delays["chat.appendStream"] = 1.5
    say(door.library, ["One [1]. ", "Two [2]. ", "Three [1]."])
    door.library.engine.pauses |= {3: 1.3, 4: 0}
    await door.send(mention(door.slack, "Otters?"))
    (answer,) = await ended(door.slack)
    assert answer.pieces == ["One [1]. ", "Two [2]. ", "Three [1]."] and not answer.edits


async def test_a_429_of_the_end_is_waited_out(door: Door) -> None:
    door.slack.faults["chat.stopStream"].append(1)
    await door.send(mention(door.slack, "Otters?"))
    (answer,) = await ended(door.slack)
    assert answer.pieces == SAID and not answer.edits


async def test_an_llm_that_fails_half_way_is_told_without_naming_a_server(door: Door) -> None:
    fault = LLMUnavailable("The LLM m at http://10.0.0.7/v1 failed (gpu-7:8000 is (not) there). Set FOOTNOTE_LLM_BASE_URL.")
    door.library.engine.change = {"notice": failure_notice("answered", fault)}
    await door.send(mention(door.slack, "Otters?"))
    (answer,) = await ended(door.slack)
    assert answer.blocks[-2]["elements"][0]["text"].endswith("The answer ends here.")
    assert not any(name in answer.shown for name in ("10.0.0.7", "gpu-7", "FOOTNOTE"))


@pytest.mark.parametrize("dead", [False, True], ids=["stream lives", "stream has died"])
@pytest.mark.parametrize(
    ("fault", "said"), [(TimeoutError(), "It took too long"), (CatalogueUnavailable("secret"), "The library cannot be reached")]
)
async def test_an_answer_that_breaks_off_says_so_below_what_was_said(door: Door, fault: Exception, said: str, dead: bool) -> None:
    door.library.engine.faults[3] = fault
    await door.send(mention(door.slack, "Otters?"))
    await eventually(lambda: door.slack.posted)
    door.slack.posted[0].streaming = not dead
    await eventually(lambda: "⚠" in door.slack.posted[0].shown)
    (answer,) = door.slack.posted
    assert answer.shown.startswith("".join(SAID)) and f"⚠ {said}" in answer.shown
    assert "secret" not in answer.shown + answer.text
    assert not answer.streaming


async def test_at_shutdown_a_half_answer_says_that_it_is_one(
    library: FakeLibrary, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.slack_bot.DRAIN_SECONDS", 0.2)
    library.engine.pauses[2] = 60
    async with open_door(library, slack, slack_stream=True) as door:
        await door.send(mention(slack, "Otters?"))
        await eventually(lambda: slack.posted)
    (answer,) = slack.posted
    assert not answer.streaming
    assert answer.shown.startswith(SAID[0]) and "⚠ I am being restarted" in answer.shown


async def test_what_streams_before_the_end_is_finished(library: FakeLibrary, slack: FakeSlack) -> None:
    library.engine.pauses[2] = 0.9
    async with open_door(library, slack, slack_stream=True) as door:
        await door.send(mention(slack, "Otters?"))
        await eventually(lambda: slack.posted)
    (answer,) = slack.posted
    assert answer.pieces == SAID and not answer.streaming and is_whole(answer)


async def test_of_a_long_answer_the_rest_follows_in_messages_of_its_own(door: Door) -> None:
    texts = [f"This is sentence {n} of a long answer [{n % 2 + 1}]. " for n in range(340)]
    say(door.library, texts)
    door.library.engine.pauses |= {300: 2}
    await door.send(mention(door.slack, "Everything?"))
    first, *rest = await ended(door.slack, 2)
    shown = "".join(first.pieces) + " ".join(block["text"] for one in rest for block in one.blocks if block["type"] == "markdown")
    assert shown.split() == "".join(texts).split()
    assert STREAM_TEXT / 2 < size("".join(first.pieces)) <= STREAM_TEXT
    assert [block["type"] for block in rest[-1].blocks] == ["markdown", "section", "section", "actions"]
    assert not first.blocks and {one.text for one in rest} == {"The answer goes on."}


async def test_code_and_addresses_are_never_cut_and_nothing_acts(door: Door) -> None:
    texts = [
        "Ping <!channel> and see [1]",
        "(https://evil.com) now. ",
        "It says `a. ",
        "b` and <@U1>. ",
        "Run:\n```py\nx = '<!here>'. ",
        "y = 2. ",
        "\n```\n",
        "[x](http://evil.com) & more [1].",
    ]
    say(door.library, texts)
    door.library.engine.pauses = dict.fromkeys(range(2, 10), 1.2)
    await door.send(mention(door.slack, "Otters?"))
    (answer,) = await ended(door.slack)
    assert len(answer.pieces) > 3  # of which the fake has refused none
    assert not answer.edits
    assert "".join(answer.pieces) == safe_markdown("".join(texts))


async def test_text_that_changes_what_was_shown_ends_as_one_whole_message(door: Door) -> None:
    texts = ["See www.", "evil.com and more [1]."]
    say(door.library, texts)
    await door.send(mention(door.slack, "Otters?"))
    (answer,) = await ended(door.slack)
    assert answer.edits == 1
    assert answer.blocks[0]["text"] == "See `www.evil.com` and more [1]."
    assert calls(door.slack) == ["startStream", "stopStream", "update"]


async def test_an_edited_question_does_not_disturb_the_stream(door: Door) -> None:
    body = mention(door.slack, "Otters?")
    await door.send(body)
    await eventually(lambda: door.slack.posted)
    edited = {"edited": {"user": "U1", "ts": "2.0"}, "text": f"<@{BOT}> Crows?"}
    await door.send(event_body({**body["event"], **edited}))
    await door.send(event_body({**body["event"], "type": "message", "subtype": "message_changed", "message": edited}))
    await door.send(body)  # Slack delivers again
    (answer,) = await ended(door.slack)
    await asyncio.sleep(0.3)
    assert answer.pieces == SAID and len(door.slack.posted) == len(door.library.engine.asked) == 1


async def test_removed_from_the_channel_in_the_middle_the_bot_goes_on_elsewhere(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    await door.send(mention(door.slack, "Otters?"))
    await eventually(lambda: door.slack.posted)
    door.slack.not_in.add("C1")
    await eventually(lambda: "refused to show why: not_in_channel" in caplog.text)
    await door.send(mention(door.slack, "Otters?", channel="C2"))
    await eventually(lambda: len(door.slack.posted) == 2 and not door.slack.posted[1].streaming)
    assert is_whole(door.slack.posted[1])
    assert not door.library.engine.running


async def test_a_workspace_has_no_more_streams_a_minute_than_slack_takes(
    library: FakeLibrary, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.slack_bot.STREAMS_A_MINUTE", 2)
    library.engine.pauses[2] = 0.9
    async with open_door(library, slack, slack_stream=True) as door:
        for n in range(5):
            await door.send(mention(slack, "Otters?", channel=f"C{n}"))
    assert len(slack.posted) == 5 and all(map(is_whole, slack.posted))
    assert sorted(calls(slack)) == ["postMessage"] * 3 + ["startStream"] * 2 + ["stopStream"] * 2


async def test_streams_in_one_channel_keep_its_pace(door: Door) -> None:
    for _ in range(3):
        await door.send(mention(door.slack, "Otters?"))
    posted = await ended(door.slack, 3)
    await eventually(lambda: all(map(is_whole, posted)))
    assert not any(one.edits for one in posted)


async def test_the_log_tells_of_a_broken_stream_and_names_no_text(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    door.slack.stream_appends = 0
    await door.send(mention(door.slack, "A secret about otters?"))
    await ended(door.slack)
    assert "message_not_in_streaming_state" in caplog.text
    assert "secret" not in caplog.text and "Otters sor" not in caplog.text and "xoxb" not in caplog.text


async def test_without_the_setting_nothing_streams(library: FakeLibrary, slack: FakeSlack) -> None:
    library.engine.pauses[2] = 0.9
    async with open_door(library, slack) as door:
        await door.send(mention(slack, "Otters?"))
    assert calls(slack) == ["postMessage"]


@calmly
@given(st.lists(TEXTS, max_size=8))
def test_what_is_settled_is_cut_nowhere_and_nothing_in_it_acts(texts: list[str]) -> None:
    sent: list[str] = []
    for count in range(len(texts) + 1):
        made = settled(texts[:count], STREAM_TEXT)
        if made.startswith("".join(sent)) and made[len("".join(sent)) :].strip():
            sent.append(made[len("".join(sent)) :])
    check_stream(sent, [])
    for piece in sent:
        check_stream([piece], [])
        assert piece.count("`") % 2 == 0


@calmly
@given(st.lists(TEXTS, min_size=1, max_size=8), st.integers(0, 8), st.integers(1, 40), st.integers(1, 60))
def test_a_streams_end_says_all_that_is_left_within_slacks_limits(texts: list[str], count: int, times: int, notes: int) -> None:
    below = tuple(section(f"*[{n}]* " + "é" * 500) for n in range(notes))
    reply = reply_of("".join(texts) * times, below, "plain")
    sent = settled(texts[:count], STREAM_TEXT)
    if not reply.body.startswith(sent) or not sent.strip():
        return
    ending = ending_of(reply, sent)
    blocks = [dict(block) for block in ending.blocks]
    check_stream([sent, ending.text], blocks)
    left: list[Json] = [dict(block) for message in ending.messages for block in message.blocks]
    assert [one for one in [*blocks, *left] if one["type"] == "section"] == list(below)
    shown = "".join([sent, ending.text, *(one["text"] for one in left if one["type"] == "markdown")])
    assert words(shown) == words(reply.body)


@calmly
@given(st.lists(st.sampled_from(["One [1]. ", "`a` b. ", "两个。"]), max_size=6))
def test_ordinary_sentences_are_settled_as_they_come(texts: list[str]) -> None:
    assert settled(texts, STREAM_TEXT) == safe_markdown("".join(texts))


def test_a_message_that_streams_is_filled_by_bytes_and_whole_sentences() -> None:
    assert settled(["论文" * 20, "，二" * 20, "。" * 20], 250) == "论文" * 20 + "，二" * 20
    assert settled(["&" * 60, "a"], 250) == ""


def test_a_broken_off_answer_is_what_was_said_and_why_no_more_comes() -> None:
    reply = broken_off("One <b>. ", "It took too long.")
    assert reply.body == "One &lt;b&gt;. "
    assert reply.below == (section("⚠ It took too long."),)
    assert "It took too long." in reply.messages[0].text
