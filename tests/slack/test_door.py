"""Who gets in: what Slack signed just now, and nothing else; no request makes a 500."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from starlette.testclient import TestClient

from api.app import create_app
from api.security import read_keys
from api.slack import channel_ids
from rag.errors import SettingsError
from rag.settings import Settings
from tests.api.fakes import FakeLibrary
from tests.slack.conftest import Door, slack_settings
from tests.slack.fake_slack import FakeSlack, event_body, mention, signed

BODY = '{"type": "event_callback"}'


@pytest.mark.parametrize(
    "change",
    [
        {"X-Slack-Request-Timestamp": "soon"},
        {"X-Slack-Request-Timestamp": "²"},
        {"X-Slack-Request-Timestamp": "-1"},
        {"X-Slack-Request-Timestamp": "9" * 400},
        {"X-Slack-Request-Timestamp": ""},
        {"X-Slack-Signature": "v0=é"},
        {"X-Slack-Signature": ""},
        {"X-Slack-Signature": "v0=" + "0" * 64},
    ],
    ids=str,
)
async def test_malformed_headers_are_401(door: Door, change: dict[str, str]) -> None:
    headers = {name.encode(): value.encode() for name, value in {**signed(BODY), **change}.items()}
    assert (await door.client.post("/slack/events", content=BODY, headers=headers)).status_code == 401


async def test_unsigned_requests_are_401(door: Door) -> None:
    assert (await door.client.post("/slack/events", content=BODY)).status_code == 401


@pytest.mark.parametrize("age", [-301, 301, 10**9])
async def test_stale_requests_are_401(door: Door, age: int) -> None:
    body = json.dumps(mention(door.slack, "Otters?"))
    headers = signed(body, at=time.time() - age)
    assert (await door.client.post("/slack/events", content=body, headers=headers)).status_code == 401
    assert not door.slack.posted


async def test_another_secret_is_401(door: Door) -> None:
    body = json.dumps(mention(door.slack, "Otters?"))
    headers = signed(body, secret="another")
    assert (await door.client.post("/slack/events", content=body, headers=headers)).status_code == 401


async def test_a_changed_body_is_401(door: Door) -> None:
    headers = signed(BODY)
    assert (await door.client.post("/slack/events", content=BODY + " ", headers=headers)).status_code == 401


async def test_a_body_that_is_not_utf_8_is_400(door: Door) -> None:
    assert (await door.client.post("/slack/events", content=b"\xff\xfe", headers=signed(BODY))).status_code == 400


@pytest.mark.parametrize(
    "body", ['{"', "{" + '"a":[' * 5000, '{"type": "event_callback", "event": "x"}', '{"event": {"type": 7}}', '{"a": 1}']
)
async def test_signed_nonsense_is_no_500(door: Door, body: str) -> None:
    response = await door.client.post("/slack/events", content=body, headers=signed(body))
    assert 400 <= response.status_code < 500


@pytest.mark.parametrize(
    "body", ["[]", "7", '"x"', "payload=x", "payload=[]", "command=%2Fask", "", "ssl_check=1", "payload=%7B%7D"]
)
async def test_signed_forms_of_nonsense_are_no_500(door: Door, body: str) -> None:
    for kind in ("application/json", "application/x-www-form-urlencoded", "text/plain"):
        headers = {**signed(body), "Content-Type": kind}
        assert (await door.client.post("/slack/events", content=body, headers=headers)).status_code < 500


@pytest.mark.parametrize("missing", ["user", "ts", "channel", "text", "type"])
async def test_events_without_a_field_are_no_500(door: Door, missing: str) -> None:
    body = mention(door.slack, "Otters?")
    del body["event"][missing]
    assert (await door.send(body)).status_code < 500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2), max_leaves=3
)
FIELDS = st.sampled_from(
    ["type", "event", "user", "channel", "ts", "text", "actions", "team", "team_id", "authorizations", "message"]
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(outer=st.dictionaries(FIELDS, JSON, max_size=4), inner=st.dictionaries(FIELDS, JSON, max_size=3))
async def test_whatever_slack_signs_is_no_500(door: Door, outer: dict[str, object], inner: dict[str, object]) -> None:
    for body in (outer, {**event_body({"type": "app_mention", **inner}), **outer}):
        assert (await door.send(json.dumps(body))).status_code < 500


async def test_only_post_is_taken(door: Door) -> None:
    assert (await door.client.get("/slack/events")).status_code == 405


def test_without_a_signing_secret_there_is_no_door(library: FakeLibrary) -> None:
    given = Settings()
    with TestClient(create_app(library, given, read_keys(given, "127.0.0.1"))) as client:
        assert client.post("/slack/events", content=BODY, headers=signed(BODY)).status_code == 404


def test_a_signing_secret_without_a_token_is_told() -> None:
    from api.slack import open_bot

    with pytest.raises(SettingsError, match="FOOTNOTE_SLACK_BOT_TOKEN"):
        open_bot(None, Settings(slack_signing_secret=SecretStr("x")))  # type: ignore[arg-type]  # it does not get so far


def test_a_channels_name_in_place_of_its_id_is_told() -> None:
    assert channel_ids("C01,  G2") == {"C01", "G2"}
    with pytest.raises(SettingsError, match="#general is no channel id"):
        channel_ids("#general")


async def test_the_fake_itself_takes_only_its_token(library: FakeLibrary, slack: FakeSlack) -> None:
    from api.slack_web import token_found

    bad = await token_found("Slack bot token", "xoxb-bad", "xoxb-", "auth.test", slack.base)
    assert (bad.state, bad.said) == ("broken", "Slack says invalid_auth")
    assert slack_settings(slack).slack_api_url == slack.base
