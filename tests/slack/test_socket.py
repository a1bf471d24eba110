"""Socket Mode: the same bot, over a WebSocket that Slack's stand-in holds."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from urllib.parse import parse_qsl

import pytest
from pydantic import SecretStr

from api.app import make_context
from api.slack import socket_mode
from rag.errors import SettingsError
from tests.api.fakes import FakeLibrary
from tests.slack.conftest import eventually, slack_settings
from tests.slack.fake_slack import FakeSlack, Json, command_form, mention

_envelopes = itertools.count(1)


async def push(slack: FakeSlack, kind: str, payload: Json) -> str:
    """Sends an envelope and gives its id."""
    envelope = f"envelope-{next(_envelopes)}"
    sent = {"type": kind, "envelope_id": envelope, "payload": payload, "accepts_response_payload": kind == "slash_commands"}
    await slack.sockets[-1].send_json(sent)
    return envelope


@pytest.fixture
async def connected(library: FakeLibrary, slack: FakeSlack) -> AsyncIterator[FakeSlack]:
    settings = slack_settings(slack)
    async with socket_mode(make_context(library, settings), settings):
        await eventually(lambda: slack.sockets)
        yield slack


async def test_a_mention_is_acknowledged_and_answered(connected: FakeSlack) -> None:
    envelope = await push(connected, "events_api", mention(connected, "Otters?"))
    await eventually(lambda: connected.posted)
    assert connected.acks == [{"envelope_id": envelope}]
    assert "About" in connected.posted[0].shown


async def test_a_redelivery_is_answered_once(connected: FakeSlack) -> None:
    body = mention(connected, "Otters?")
    for _ in range(3):
        await push(connected, "events_api", body)
    await push(connected, "events_api", mention(connected, "Otters?", channel="C2"))
    await eventually(lambda: len(connected.acks) == 4 and len(connected.posted) == 2)
    assert {one.channel for one in connected.posted} == {"C1", "C2"}


async def test_a_command_is_answered(connected: FakeSlack) -> None:
    await push(connected, "slash_commands", dict(parse_qsl(command_form(connected, "Otters?"))))
    await eventually(lambda: len(connected.posted) == 2)


async def test_a_command_that_asks_nothing_is_told_so_in_the_acknowledgement(connected: FakeSlack) -> None:
    await push(connected, "slash_commands", dict(parse_qsl(command_form(connected, ""), keep_blank_values=True)))
    await eventually(lambda: connected.acks)
    assert "What would you like to know" in connected.acks[0]["payload"]["text"]


async def test_when_slack_says_disconnect_a_new_connection_is_made(connected: FakeSlack) -> None:
    await connected.sockets[0].send_json({"type": "disconnect", "reason": "refresh_requested"})
    await eventually(lambda: len(connected.sockets) == 2)
    await push(connected, "events_api", mention(connected, "Otters?"))
    await eventually(lambda: connected.posted)


async def test_what_was_asked_before_the_end_is_answered(library: FakeLibrary, slack: FakeSlack) -> None:
    settings = slack_settings(slack)
    library.engine.pauses[0] = 0.5
    async with socket_mode(make_context(library, settings), settings):
        await eventually(lambda: slack.sockets)
        await push(slack, "events_api", mention(slack, "Otters?"))
        await eventually(lambda: library.engine.running)
    assert "About" in slack.posted[0].shown


async def test_answers_stream(library: FakeLibrary, slack: FakeSlack) -> None:
    settings = slack_settings(slack, slack_stream=True)
    library.engine.pauses[2] = 0.9
    async with socket_mode(make_context(library, settings), settings):
        await eventually(lambda: slack.sockets)
        await push(slack, "events_api", mention(slack, "Otters?"))
        await eventually(lambda: slack.posted)
        assert slack.posted[0].streaming
    assert not slack.posted[0].streaming and len(slack.posted[0].pieces) == 2


async def test_a_token_that_slack_does_not_take_is_told(library: FakeLibrary, slack: FakeSlack) -> None:
    settings = slack_settings(slack, slack_app_token=SecretStr("xapp-bad"))
    with pytest.raises(SettingsError, match="FOOTNOTE_SLACK_APP_TOKEN: Slack says invalid_auth"):
        async with socket_mode(make_context(library, settings), settings):
            pass


async def test_a_slack_that_cannot_be_reached_is_told(library: FakeLibrary, slack: FakeSlack) -> None:
    settings = slack_settings(slack, slack_api_url="http://127.0.0.1:9/api/")
    with pytest.raises(SettingsError, match="FOOTNOTE_SLACK_API_URL"):
        async with socket_mode(make_context(library, settings), settings):
            pass
