"""Questions asked in Slack over HTTP: once each, in the thread, never silent."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from rag.errors import CatalogueUnavailable, InputError, LLMRefused, LLMUnavailable
from rag.types import AnswerSentence, Citation, Turn
from tests.api.fakes import FakeLibrary, fake_library, make_answer
from tests.slack.conftest import Door, eventually, open_door
from tests.slack.fake_slack import BOT, BOT_ID, TEAM, FakeSlack, click_form, command_form, direct, event_body, mention


def is_busy(library: FakeLibrary, running: int) -> bool:
    return library.engine.running == running


async def settled() -> None:
    """Long enough for a second answer to have come."""
    await asyncio.sleep(0.3)


async def test_a_mention_is_answered_in_its_thread_with_footnotes_and_buttons(door: Door) -> None:
    body = mention(door.slack, "What do otters sort?")
    answer = await door.ask(body)
    assert answer.thread == body["event"]["ts"]
    assert [block["type"] for block in answer.blocks] == ["markdown", "section", "section", "actions"]
    assert "About" in answer.blocks[0]["text"]
    assert "*[1]* <https://doi.org/10.5555/otter.1|Lutz & Brook, 2021>".replace("&", "&amp;") in answer.shown
    assert "Journal of Small Things · Pebble choice in otters\n“Otters sor”" in answer.shown
    assert door.library.engine.asked[0].question == "What do otters sort?"


async def test_a_status_is_shown_before_the_answer(door: Door) -> None:
    body = mention(door.slack, "Otters?")
    await door.ask(body)
    assert door.slack.methods == ["assistant.threads.setStatus", "chat.postMessage"]
    assert door.slack.statuses[0]["thread_ts"] == body["event"]["ts"]


async def test_a_question_that_has_to_wait_is_told_so_once(
    library: FakeLibrary, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.slack_bot.WORKERS", 1)
    library.engine.pauses[0] = 0.5
    async with open_door(library, slack) as door:
        await door.send(mention(slack, "Otters?"))
        await eventually(partial(is_busy, library, 1))
        waiting = mention(slack, "Crows?", channel="C2")
        await door.send(waiting)
        await door.send(waiting)
        assert (await door.send(command_form(slack, "Moss?", "C3"))).text == (
            "Your question is taken; I answer 3 other questions before it."
        )
    told = [one["status"] for one in slack.statuses if one["thread_ts"] == waiting["event"]["ts"]]
    assert len(told) == 2
    assert re.fullmatch(r"answers [12] other questions? before this one…", told[0])  # two, if the second delivery is answered
    assert told[1] == "is reading the papers…"


async def test_no_status_is_shown_where_we_may_not_answer(
    library: FakeLibrary, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.slack_bot.WORKERS", 1)
    library.engine.pauses[0] = 0.3
    async with open_door(library, slack, slack_channels="C1") as door:
        await door.send(mention(slack, "Otters?"))
        await eventually(partial(is_busy, library, 1))
        await door.send(mention(slack, "Crows?", channel="C2"))
    assert {one["channel_id"] for one in slack.statuses} == {"C1"}


async def test_a_direct_message_is_answered_in_its_thread(door: Door) -> None:
    body = direct(door.slack, "Otters?")
    assert (await door.ask(body)).channel == "D1"


async def test_a_command_is_shown_and_answered_in_its_thread(door: Door) -> None:
    response = await door.send(command_form(door.slack, "Otters <!channel>?"))
    assert (response.status_code, response.text) == (200, "")
    await eventually(lambda: len(door.slack.posted) == 2)
    question, answer = door.slack.posted
    assert question.text == "*Asked:* Otters ?"
    assert answer.thread == question.ts


async def test_a_command_where_we_may_not_post_is_answered_to_the_one_who_asked(door: Door) -> None:
    door.slack.not_in.add("C1")
    await door.send(command_form(door.slack, "Otters?"))
    await eventually(lambda: door.slack.replied)
    assert door.slack.replied[0]["response_type"] == "ephemeral"
    assert "About" in door.slack.replied[0]["blocks"][0]["text"]


async def test_an_empty_command_asks_what_is_wanted(door: Door) -> None:
    assert "What would you like to know" in (await door.send(command_form(door.slack, " "))).text


async def test_a_thread_is_a_conversation(door: Door) -> None:
    first = mention(door.slack, "What do otters sort?")
    said = await door.ask(first)
    await door.ask(mention(door.slack, "And why?", thread=first["event"]["ts"]))
    history = door.library.engine.asked[1].history
    assert [turn.role for turn in history] == ["user", "assistant"]
    assert history[0].content == "What do otters sort?"
    assert said.text.startswith(history[1].content[:10])
    assert "conversations.replies" not in door.slack.methods


async def test_the_conversation_is_kept_under_team_channel_and_thread(door: Door) -> None:
    body = mention(door.slack, "Otters?")
    await door.ask(body)
    kept = door.library.journal.thread(f"slack:{TEAM}", f"{TEAM}/C1/{body['event']['ts']}")
    assert kept.messages == 2


async def test_first_mentioned_in_a_thread_the_bot_has_read_what_people_said_in_it(door: Door) -> None:
    root = door.slack.new_ts()
    door.slack.threads[root] = [
        {"ts": root, "user": "U7", "text": "Otters sort &lt;things&gt;"},
        {"ts": door.slack.new_ts(), "bot_id": "BOTHER", "text": "I am a bot"},
    ]
    await door.ask(mention(door.slack, "Is that so?", thread=root))
    assert door.library.engine.asked[0].history == (Turn("user", "Otters sort <things>"),)


async def test_a_thread_that_cannot_be_read_is_answered_all_the_same(door: Door) -> None:
    door.slack.threads["1.0"] = []
    door.slack.faults["conversations.replies"].append("missing_scope")
    assert "About" in (await door.ask(mention(door.slack, "Is that so?", thread="1.0"))).shown


async def test_an_empty_mention_in_a_thread_answers_what_was_said_last(door: Door) -> None:
    root = door.slack.new_ts()
    door.slack.threads[root] = [
        {"ts": root, "user": "U7", "text": "I read about otters"},
        {"ts": door.slack.new_ts(), "user": "U8", "text": "What do they sort?"},
    ]
    await door.ask(mention(door.slack, "", thread=root))
    asked = door.library.engine.asked[0]
    assert (asked.question, asked.history) == ("What do they sort?", (Turn("user", "I read about otters"),))


async def test_an_empty_mention_after_our_own_answer_asks_what_is_wanted(door: Door) -> None:
    first = mention(door.slack, "Otters?")
    await door.ask(first)
    assert "What would you like to know" in (await door.ask(mention(door.slack, "", thread=first["event"]["ts"]))).text


async def test_an_empty_mention_asks_what_is_wanted(door: Door) -> None:
    assert "What would you like to know" in (await door.ask(mention(door.slack, " "))).text
    assert not door.library.engine.asked


async def test_bib_gives_what_the_thread_cited(door: Door) -> None:
    first = mention(door.slack, "Otters?")
    await door.ask(first)
    shown = (await door.ask(mention(door.slack, "BIB", thread=first["event"]["ts"]))).shown
    assert shown.startswith("```\n@misc{")
    assert "doi = {10.5555/otter.1}" in shown
    assert "abstract" not in shown


async def test_bib_of_a_thread_without_citations_says_so(door: Door) -> None:
    assert "Nothing was cited" in (await door.ask(mention(door.slack, "bib"))).text


async def test_redeliveries_are_answered_once(library: FakeLibrary, slack: FakeSlack) -> None:
    async with open_door(library, slack) as door:
        body = mention(slack, "Otters?")
        for retry in range(4):
            assert (await door.send(body, **{"X-Slack-Retry-Num": str(retry)})).status_code == 200
    assert len(slack.posted) == 1  # all that was heard is done when the door has closed


async def test_a_mention_that_comes_as_message_too_is_answered_once(library: FakeLibrary, slack: FakeSlack) -> None:
    async with open_door(library, slack) as door:
        body = mention(slack, "Otters?", channel="D1")
        twin = event_body({**body["event"], "type": "message", "channel_type": "im"})
        await asyncio.gather(door.send(body), door.send(twin))
    assert len(slack.posted) == 1


async def test_a_redelivery_to_another_process_is_not_answered_again(door: Door, library: FakeLibrary) -> None:
    body = mention(door.slack, "Otters?")
    await door.ask(body)
    async with open_door(library, door.slack) as other:
        await other.send(body)
    assert len(door.slack.posted) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"subtype": "message_changed", "message": {"text": "x"}},
        {"subtype": "bot_message"},
        {"bot_id": BOT_ID, "user": BOT},
        {"bot_id": "BOTHER"},
        {"subtype": "message_deleted"},
        {"user": None},
        {"ts": "1700000000.000001"},
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [mention, direct], ids=["mention", "direct"])
async def test_edits_bots_and_old_events_are_not_answered(
    door: Door, make: Callable[..., dict[str, object]], change: dict[str, object]
) -> None:
    body = make(door.slack, "Otters?")
    body["event"] |= change  # type: ignore[operator]  # JSON
    assert (await door.send(body)).status_code == 200
    await settled()
    assert not door.slack.posted


@pytest.mark.parametrize("make", [mention, direct], ids=["mention", "direct"])
async def test_a_question_that_comes_with_a_file_is_answered(door: Door, make: Callable[..., dict[str, object]]) -> None:
    answer = await door.ask(make(door.slack, "Otters?", subtype="file_share", files=[{"id": "F1", "name": "otters.pdf"}]))
    assert "About" in answer.shown
    assert "What would you like to know" in (await door.ask(make(door.slack, "", subtype="file_share", files=[]))).text


async def test_an_edited_question_is_not_answered_again(library: FakeLibrary, slack: FakeSlack) -> None:
    async with open_door(library, slack) as door:
        body = mention(slack, "Otters?")
        await door.ask(body)
        await door.send(event_body({**body["event"], "edited": {"user": "U1", "ts": "2.0"}, "text": f"<@{BOT}> Crows?"}))
    assert len(slack.posted) == 1


@pytest.mark.parametrize("kind", ["link_shared", "app_home_opened", "message", "reaction_added"])
async def test_events_that_ask_nothing_are_acknowledged(door: Door, kind: str) -> None:
    body = event_body({"type": kind, "user": "U1", "channel": "C1", "channel_type": "channel", "ts": door.slack.new_ts()})
    assert (await door.send(body)).status_code == 200
    await settled()
    assert not door.slack.posted


FAULTS = [
    (LLMUnavailable("secret host"), "language model does not answer"),
    (LLMRefused("secret key"), "language model refused"),
    (CatalogueUnavailable("secret url"), "library cannot be reached"),
    (InputError("The question has no words: <!channel>."), "The question has no words: &lt;!channel&gt;."),
    (TimeoutError(), "took too long"),
    (RuntimeError("secret"), "Something broke here"),
]


@pytest.mark.parametrize(("fault", "said"), FAULTS, ids=lambda value: type(value).__name__)
async def test_every_failure_ends_in_a_short_message(door: Door, fault: Exception, said: str) -> None:
    door.library.engine.faults[0] = fault
    answer = await door.ask(mention(door.slack, "Otters?"))
    assert said in answer.text
    assert "secret" not in answer.text
    assert len(answer.text) < 200


async def test_a_question_after_a_failure_is_answered(door: Door) -> None:
    door.library.engine.faults[0] = LLMUnavailable("down")
    body = mention(door.slack, "Otters?")
    await door.ask(body)
    door.library.engine.faults.clear()
    assert "About" in (await door.ask(mention(door.slack, "Otters?", thread=body["event"]["ts"]))).shown


async def test_a_429_is_waited_out_as_slack_asks(door: Door) -> None:
    door.slack.faults["chat.postMessage"].append(1)
    started = time.monotonic()
    answer = await door.ask(mention(door.slack, "Otters?"))
    assert "About" in answer.shown and answer.blocks
    assert time.monotonic() - started >= 1
    assert door.slack.methods.count("chat.postMessage") == 2


@pytest.mark.parametrize("code", ["invalid_blocks", "msg_blocks_too_long", "internal_error"])
async def test_a_refused_post_ends_in_a_short_one(door: Door, code: str) -> None:
    door.slack.faults["chat.postMessage"].append(code)
    answer = await door.ask(mention(door.slack, "Otters?"))
    assert answer.text.startswith(f"Slack would not show the whole answer ({code}). It begins: About")
    assert not answer.blocks


async def test_a_refused_short_post_ends_in_a_plain_sentence(door: Door) -> None:
    door.slack.faults["chat.postMessage"] += ["invalid_blocks", "msg_too_long"]
    answer = await door.ask(mention(door.slack, "Otters?"))
    assert (answer.text, answer.blocks) == ("There is an answer, but Slack will not show it here. Ask whoever runs Footnote.", [])


async def test_a_refused_second_part_is_told(door: Door) -> None:
    answer = make_answer("?", door.library.catalogue.list(limit=1))
    sentences = tuple(replace(answer.sentences[0], text=f"Sentence {n} of a long answer [1]. ") for n in range(400))
    door.library.engine.change = {"sentences": sentences, "text": "".join(one.text for one in sentences)}
    body = mention(door.slack, "Everything?")
    await door.send(body)
    await eventually(lambda: door.slack.posted)
    door.slack.faults["chat.postMessage"].append("internal_error")
    await eventually(lambda: len(door.slack.posted) == 2)
    assert door.slack.posted[1].text == "Slack would not show the rest of the answer (internal_error)."


async def test_a_status_that_slack_refuses_is_no_matter(door: Door) -> None:
    door.slack.faults["assistant.threads.setStatus"].append(30)
    started = time.monotonic()
    assert "About" in (await door.ask(mention(door.slack, "Otters?"))).shown
    assert time.monotonic() - started < 5


async def test_what_slack_will_not_hear_at_all_is_logged(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    door.slack.faults["chat.postMessage"] += ["channel_not_found"] * 3
    await door.send(mention(door.slack, "Otters?"))
    await eventually(lambda: caplog.text.count("refused to show why: channel_not_found") == 2)
    assert "About" in (await door.ask(mention(door.slack, "Otters?", channel="C2"))).shown


async def test_posts_keep_slacks_pace_in_a_channel(door: Door) -> None:
    for _ in range(3):
        await door.send(mention(door.slack, "Otters?"))
    await eventually(lambda: len(door.slack.posted) == 3)
    assert door.slack.methods.count("chat.postMessage") == 3  # none met a 429


async def test_too_many_questions_in_a_thread_break_the_fuse_with_one_message(
    library: FakeLibrary, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.slack_bot.MOST_A_MINUTE", 2)
    root = slack.new_ts()
    async with open_door(library, slack) as door:
        for n in range(5):
            await door.send(mention(slack, f"Otters {n}?", thread=root))
    assert len(slack.posted) == 3
    assert sum("many questions" in one.text for one in slack.posted) == 1


async def test_feedback_is_kept_a_person_and_answer(door: Door) -> None:
    answer = await door.ask(mention(door.slack, "Otters?"))
    for verdict, user in [("up", "U1"), ("down", "U2"), ("down", "U1")]:
        assert (await door.send(click_form(answer, verdict, user))).status_code == 200
        await eventually(lambda: door.slack.whispered)
        assert door.slack.whispered.pop()["user"] == user
    owner, answer_id = answer.blocks[-1]["elements"][0]["value"].split()
    kept = door.library.journal.feedback(owner, answer_id)
    assert sorted(one.verdict for one in kept) == ["down", "down"]


async def test_feedback_on_an_answer_that_is_gone_says_so(door: Door) -> None:
    answer = await door.ask(mention(door.slack, "Otters?"))
    for button in answer.blocks[-1]["elements"]:
        button["value"] = f"slack:{TEAM} 00000000"
    await door.send(click_form(answer))
    await eventually(lambda: door.slack.whispered)
    assert door.slack.whispered[0]["text"] == "That is no longer there."


async def test_only_allowed_channels_are_answered(library: FakeLibrary, slack: FakeSlack) -> None:
    async with open_door(library, slack, slack_channels="C1, C5") as door:
        await door.send(mention(slack, "Otters?", channel="C2"))
        await eventually(lambda: slack.whispered)
        assert "not allowed to answer in this channel" in slack.whispered[0]["text"]
        assert "not allowed" in (await door.send(command_form(slack, "Otters?", "C2"))).text
        assert "About" in (await door.ask(mention(slack, "Otters?"))).shown
        assert "About" in (await door.ask(direct(slack, "Otters?"))).shown
        assert {one.channel for one in slack.posted} == {"C1", "D1"}


async def test_what_was_asked_before_the_end_is_answered(library: FakeLibrary, slack: FakeSlack) -> None:
    library.engine.pauses[0] = 0.3
    async with open_door(library, slack) as door:
        for n in range(20):
            await door.send(mention(slack, "Otters?", channel=f"C{n}"))
    assert len(slack.posted) == 20


async def test_what_cannot_be_answered_before_the_end_says_so(
    library: FakeLibrary, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.slack_bot.DRAIN_SECONDS", 0.2)
    library.engine.pauses[0] = 60
    async with open_door(library, slack) as door:
        for n in range(20):
            body = mention(slack, "Otters?", channel=f"C{n}")
            await door.send(body)
        await door.send(body)  # a redelivery that waits is not told again
        await eventually(lambda: library.engine.running == 16)
    assert len(slack.posted) == 20
    assert all("being restarted" in one.text for one in slack.posted)


async def test_a_full_queue_says_so_once_a_question(
    library: FakeLibrary, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.slack_bot.WAITING", 1)
    monkeypatch.setattr("api.slack_bot.WORKERS", 4)
    library.engine.pauses[0] = 2
    async with open_door(library, slack) as door:
        for n in range(4):
            await door.send(mention(slack, "Otters?", channel=f"C{n}"))
            await eventually(partial(is_busy, library, n + 1))
        await door.send(mention(slack, "Otters?", channel="C90"))
        late = mention(slack, "Otters?", channel="C91")
        await door.send(late)
        await door.send(late)
        assert "Too many questions" in (await door.send(command_form(slack, "Otters?"))).text
        await eventually(lambda: len(slack.posted) == 6)
        await settled()
    assert [one.channel for one in slack.posted if "Too many questions" in one.text] == ["C91"]


async def test_nothing_of_an_abstract_or_a_model_acts_in_slack(door: Door) -> None:
    (paper,) = door.library.catalogue.list(limit=1)
    nasty = "See <!channel> <@U1> https://evil.com [x](http://evil.com)"
    paper = replace(paper, title=nasty, venue=nasty, authors=(nasty,), url="https://a.b/|<!here>")
    sentence = AnswerSentence(f"{nasty} [1].", (1,), "abstract", (), "mismatch", nasty, 0.1)
    change = {
        "sentences": (sentence,),
        "text": sentence.text,
        "citations": (Citation(1, paper, nasty, 0, 5),),
        "notice": nasty,
    }
    door.library.engine.change = change
    answer = await door.ask(mention(door.slack, nasty))  # the fake refuses what would act
    assert len(answer.blocks) == 4
    assert "⚠" in answer.blocks[0]["text"] and "⚠" in answer.blocks[1]["text"]["text"]


async def test_without_papers_the_bot_says_so(tmp_path: Path, slack: FakeSlack) -> None:
    (tmp_path / "empty").mkdir()
    library = fake_library(tmp_path / "empty", papers=())
    library.engine.change = {"text": "Not in these papers. The library holds no papers that match."}
    async with open_door(library, slack) as door:
        answer = await door.ask(mention(slack, "Otters?"))
    assert answer.blocks[0] == {"type": "markdown", "text": "Not in these papers. The library holds no papers that match."}
    library.catalogue.database.close()


async def test_an_answer_of_fourteen_thousand_characters_comes_whole(door: Door) -> None:
    papers = door.library.catalogue.list(limit=2)
    answer = make_answer("?", papers)
    said = [f"This is sentence {n} of a long answer [{n % 2 + 1}]. " for n in range(340)]
    sentences = tuple(replace(answer.sentences[0], text=text) for text in said)
    door.library.engine.change = {"text": "".join(said), "sentences": sentences}
    body = mention(door.slack, "Tell me everything")
    await door.send(body)
    await eventually(lambda: any(one.blocks and one.blocks[-1]["type"] == "actions" for one in door.slack.posted))
    shown = " ".join(one.blocks[0]["text"] for one in door.slack.posted)
    assert [one.text[:8] for one in door.slack.posted] == ["This is ", "The answ"]
    assert shown.split() == "".join(said).split()


async def test_the_log_names_no_token_and_no_question(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    await door.ask(mention(door.slack, "A secret about otters?"))
    assert "xoxb" not in caplog.text and "secret" not in caplog.text


async def test_slack_is_told_the_challenge(door: Door) -> None:
    response = await door.send({"type": "url_verification", "challenge": "abc", "token": "x"})
    assert response.status_code == 200
    assert json.loads(response.text)["challenge"] == "abc"
