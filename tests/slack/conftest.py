"""The service with Slack's door open, and the Slack it talks to."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from pydantic import SecretStr

from api.app import create_app
from api.security import read_keys
from rag.settings import Settings
from tests.api.fakes import FakeLibrary, fake_library
from tests.slack.fake_slack import APP_TOKEN, SECRET, TOKEN, FakeSlack, Json, Posted, fake_slack, signed


@dataclass
class Door:
    """The service, as Slack reaches it."""

    client: httpx2.AsyncClient
    slack: FakeSlack
    library: FakeLibrary

    async def send(self, body: Json | str, **headers: str) -> httpx2.Response:
        """A signed request."""
        text = body if isinstance(body, str) else json.dumps(body)
        return await self.client.post("/slack/events", content=text, headers={**signed(text), **headers})

    async def ask(self, body: Json) -> Posted:
        """Sends an event and waits for the first message in its thread."""
        event = body["event"]
        thread = event.get("thread_ts") or event["ts"]
        before = len(self.slack.in_thread(thread))
        assert (await self.send(body)).status_code == 200
        await eventually(lambda: len(self.slack.in_thread(thread)) > before)
        return self.slack.in_thread(thread)[before]


async def eventually(true: Callable[[], object], seconds: float = 20) -> None:
    """Waits until something is true."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it never came true"
        await asyncio.sleep(0.01)


def slack_settings(slack: FakeSlack, **given: object) -> Settings:
    """Settings with every secret, for the fake."""
    secrets = {"slack_bot_token": TOKEN, "slack_app_token": APP_TOKEN, "slack_signing_secret": SECRET}
    kept = {name: SecretStr(value) for name, value in secrets.items()}
    return Settings(**{**kept, "slack_api_url": slack.base, **given})  # type: ignore[arg-type]  # a test's own settings


@asynccontextmanager
async def open_door(library: FakeLibrary, slack: FakeSlack, **given: object) -> AsyncGenerator[Door, None]:
    """The running service."""
    settings = slack_settings(slack, **given)
    app = create_app(library, settings, read_keys(settings, "127.0.0.1"))
    transport = httpx2.ASGITransport(app=app)
    async with app.router.lifespan_context(app), httpx2.AsyncClient(transport=transport, base_url="http://slack.test") as client:
        yield Door(client, slack, library)


@pytest.fixture
def library(tmp_path: Path) -> Iterator[FakeLibrary]:
    made = fake_library(tmp_path)
    yield made
    made.catalogue.database.close()


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with fake_slack() as running:
        yield running


@pytest.fixture
async def door(library: FakeLibrary, slack: FakeSlack) -> AsyncIterator[Door]:
    async with open_door(library, slack) as opened:
        yield opened
