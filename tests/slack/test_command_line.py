"""`footnote slack` and `footnote doctor` as a person runs them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from api.doctor import examine
from api.slack_web import SCOPES
from tests.slack.conftest import eventually, slack_settings
from tests.slack.fake_slack import APP_TOKEN, SECRET, TOKEN, FakeSlack, mention
from tests.stub_llm import DONE, ROLE, USAGE, StubLLM, event, steps

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "rag" / "samples" / "papers.txt"


async def start(data: Path, *words: str, **given: str) -> asyncio.subprocess.Process:
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("FOOTNOTE_", "OPENAI_"))}
    command = [sys.executable, "-m", "footnote", "--data", str(data), *words]
    environment = {**bare, "PYTHONPATH": str(ROOT), **given}
    piped = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*command, stdout=piped, stderr=piped, env=environment)


async def run(data: Path, *words: str, **given: str) -> tuple[int | None, str, str]:
    process = await start(data, *words, **given)
    out, err = await asyncio.wait_for(process.communicate(), 120)
    return process.returncode, out.decode(), err.decode()


async def findings(slack: FakeSlack, **given: str) -> dict[str, tuple[str, str]]:
    """State and words by part, of the doctor's findings about Slack."""
    empty = {"slack_bot_token": "", "slack_app_token": "", "slack_signing_secret": ""}
    settings = slack_settings(slack, **{name: SecretStr(value) for name, value in {**empty, **given}.items()})
    found = await asyncio.to_thread(lambda: list(examine(settings)))
    return {one.part: (one.state, one.said) for one in found}


async def test_the_bot_answers_from_the_papers_and_ends_at_sigterm(slack: FakeSlack, tmp_path: Path) -> None:
    assert (await run(tmp_path, "ingest", str(SAMPLES)))[0] == 0
    tokens = {"FOOTNOTE_SLACK_BOT_TOKEN": TOKEN, "FOOTNOTE_SLACK_APP_TOKEN": APP_TOKEN, "FOOTNOTE_SLACK_API_URL": slack.base}
    process = await start(tmp_path, "slack", **tokens)
    try:
        await eventually(lambda: slack.sockets, 60)
        body = mention(slack, "How much faster does Latte generate video with LeMiCa?")
        await slack.sockets[0].send_json({"type": "events_api", "envelope_id": "e1", "payload": body})
        await eventually(lambda: slack.posted, 60)
        assert "2.9" in slack.posted[0].shown
        process.send_signal(signal.SIGTERM)
        _, err = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 0
        assert b"Footnote listens to Slack" in err
        assert b"Latte" not in err and TOKEN.encode() not in err
    finally:
        if process.returncode is None:
            process.kill()


async def test_an_llms_answer_appears_sentence_by_sentence(slack: FakeSlack, tmp_path: Path) -> None:
    assert (await run(tmp_path, "ingest", str(SAMPLES)))[0] == 0
    said = [
        "LeMiCa speeds up video diffusion without training [1]. ",
        "On Latte it runs 2.9 times faster [1]. ",
        "It caches [1].",
    ]
    pauses = [step for sentence in said for step in (event(sentence), 1.3)]
    with StubLLM(steps(ROLE, *pauses, event(finish="stop"), USAGE, DONE)) as llm:
        slack_side = {"SLACK_BOT_TOKEN": TOKEN, "SLACK_APP_TOKEN": APP_TOKEN, "SLACK_API_URL": slack.base, "SLACK_STREAM": "true"}
        llm_side = {"LLM_BASE_URL": llm.base_url, "LLM_MODEL": "stub"}
        given = {f"FOOTNOTE_{name}": value for name, value in {**slack_side, **llm_side}.items()}
        process = await start(tmp_path, "slack", **given)
        try:
            await eventually(lambda: slack.sockets, 60)
            body = mention(slack, "What makes video diffusion faster without training?")
            await slack.sockets[0].send_json({"type": "events_api", "envelope_id": "e1", "payload": body})
            await eventually(lambda: slack.posted and not slack.posted[0].streaming, 60)
            process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(process.communicate(), 30)
        finally:
            if process.returncode is None:
                process.kill()
    (answer,) = slack.posted
    assert len(answer.pieces) >= 2 and "".join(answer.pieces) == "".join(said)
    assert [block["type"] for block in answer.blocks] == ["section", "actions"] and not answer.edits


async def test_the_doctor_checks_the_tokens(slack: FakeSlack) -> None:
    assert await findings(slack) == {"Slack": ("off", "no token is set")}
    assert await findings(slack, slack_bot_token=TOKEN, slack_app_token=APP_TOKEN) == {
        "Slack bot token": ("works", "accepted for Papers Ltd"),
        "Slack app token": ("works", "accepted"),
    }
    assert await findings(slack, slack_bot_token="xoxb-bad", slack_app_token="xoxb-app") == {
        "Slack bot token": ("broken", "Slack says invalid_auth"),
        "Slack app token": ("broken", "it does not begin with xapp-"),
    }
    assert (await findings(slack, slack_bot_token=TOKEN))["Slack events"][0] == "broken"
    assert list(await findings(slack, slack_bot_token=TOKEN, slack_signing_secret=SECRET)) == ["Slack bot token"]


async def test_the_doctor_tells_of_scopes_that_slack_did_not_grant(slack: FakeSlack) -> None:
    slack.scopes = ", ".join(SCOPES)
    assert (await findings(slack, slack_bot_token=TOKEN, slack_signing_secret=SECRET))["Slack bot token"][0] == "works"
    slack.scopes = "app_mentions:read,chat:write,channels:history,groups:history,im:history,mpim:historyx"
    said = (await findings(slack, slack_bot_token=TOKEN, slack_signing_secret=SECRET))["Slack bot token"]
    assert said == ("broken", "it lacks the scopes mpim:history, commands")


async def test_the_doctor_tells_of_a_bad_token_and_ends_with_1(slack: FakeSlack, tmp_path: Path) -> None:
    tokens = {"FOOTNOTE_SLACK_BOT_TOKEN": "xoxb-bad", "FOOTNOTE_SLACK_APP_TOKEN": APP_TOKEN}
    code, out, _ = await run(tmp_path, "doctor", "--json", FOOTNOTE_SLACK_API_URL=slack.base, **tokens)
    assert code == 1
    found = [json.loads(line) for line in out.splitlines()]
    assert {one["part"]: one["state"] for one in found}["Slack bot token"] == "broken"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "FOOTNOTE_SLACK_APP_TOKEN is needed"),
        ({"FOOTNOTE_SLACK_APP_TOKEN": "xapp-bad", "FOOTNOTE_SLACK_BOT_TOKEN": TOKEN}, "Slack says invalid_auth"),
    ],
    ids=["no token", "bad token"],
)
async def test_a_missing_or_bad_token_is_told_in_one_line(
    slack: FakeSlack, tmp_path: Path, given: dict[str, str], said: str
) -> None:
    code, _, err = await run(tmp_path, "slack", FOOTNOTE_SLACK_API_URL=slack.base, **given)
    assert code == 1
    assert said in err.splitlines()[-1]
    assert "Traceback" not in err
