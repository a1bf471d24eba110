"""The manifests ask for what the code does, no more and no less."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

import api.slack
from api.slack_web import SCOPES as SCOPES_NEEDED

ROOT = Path(api.slack.__file__).parent
MODES = {mode: yaml.safe_load((ROOT / f"slack_manifest_{mode}.yaml").read_text(encoding="utf8")) for mode in ("http", "socket")}

HISTORY = {"channels:history", "groups:history", "im:history", "mpim:history"}
SCOPES: dict[str, set[str]] = {
    "chat_postMessage": {"chat:write"},
    "chat_postEphemeral": {"chat:write"},
    "chat_startStream": {"chat:write"},
    "chat_appendStream": {"chat:write"},
    "chat_stopStream": {"chat:write"},
    "chat_update": {"chat:write"},
    "chat_delete": {"chat:write"},
    "assistant_threads_setStatus": {"chat:write"},
    "conversations_replies": HISTORY,
}
"""By Slack's reference, a bot token's scopes for the methods; `auth.test` needs none, `apps.connections.open` the app's token."""

EVENTS = {"app_mention": {"app_mentions:read"}, "message.im": {"im:history"}}


def methods_called() -> set[str]:
    """The Web API methods named in api/slack*.py."""
    from slack_sdk.web.async_client import AsyncWebClient

    trees = [ast.parse(path.read_text(encoding="utf8")) for path in ROOT.glob("slack*.py")]
    names = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return {name for name in names if "_" in name and not name.startswith("_") and name in vars(AsyncWebClient)} - {"api_call"}


@pytest.mark.parametrize("manifest", MODES.values(), ids=MODES)
def test_a_manifest_has_exactly_the_scopes_of_the_methods_called(manifest: dict[str, Any]) -> None:
    needed = {"commands"}.union(*(SCOPES[method] for method in methods_called()), *EVENTS.values())
    assert set(manifest["oauth_config"]["scopes"]["bot"]) == needed


@pytest.mark.parametrize("manifest", MODES.values(), ids=MODES)
def test_the_doctor_looks_for_exactly_the_scopes_of_the_manifest(manifest: dict[str, Any]) -> None:
    assert sorted(manifest["oauth_config"]["scopes"]["bot"]) == sorted(SCOPES_NEEDED)


@pytest.mark.parametrize("manifest", MODES.values(), ids=MODES)
def test_a_manifest_describes_a_plain_app_which_slack_accepts_of_new_apps_too(manifest: dict[str, Any]) -> None:
    assert not {"assistant_view", "agent_view"} & set(manifest["features"])  # new apps may not, respectively need not, have it


@pytest.mark.parametrize("manifest", MODES.values(), ids=MODES)
def test_a_manifest_asks_for_the_events_that_are_read(manifest: dict[str, Any]) -> None:
    assert set(manifest["settings"]["event_subscriptions"]["bot_events"]) == set(EVENTS)
    assert manifest["settings"]["interactivity"]["is_enabled"]
    assert manifest["features"]["app_home"]["messages_tab_enabled"]
    assert not manifest["features"]["app_home"]["messages_tab_read_only_enabled"]
    assert [one["command"] for one in manifest["features"]["slash_commands"]] == ["/ask"]


def test_the_manifests_differ_in_how_events_come_and_in_nothing_else() -> None:
    http, socket = MODES["http"], MODES["socket"]
    addresses = [
        http["features"]["slash_commands"][0].pop("url"),
        http["settings"]["event_subscriptions"].pop("request_url"),
        http["settings"]["interactivity"].pop("request_url"),
    ]
    assert {address.partition(".com")[2] for address in addresses} == {api.slack.PATH}
    assert (http["settings"].pop("socket_mode_enabled"), socket["settings"].pop("socket_mode_enabled")) == (False, True)
    assert http == socket
