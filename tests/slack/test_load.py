"""Two hundred questions in ten seconds over fifty channels. In CI as many in two seconds: acknowledging does not get easier."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter

import pytest

from tests.api.fakes import FakeLibrary
from tests.slack.conftest import eventually, open_door
from tests.slack.fake_slack import FakeSlack, Json, mention

QUESTIONS, CHANNELS = 200, 50
SECONDS = float(os.environ.get("SLACK_LOAD_SECONDS", "2"))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streaming"])
async def test_every_question_is_acknowledged_within_a_second_and_answered_once_within_a_minute(
    library: FakeLibrary, slack: FakeSlack, stream: bool
) -> None:
    library.engine.pauses |= {0: 0.2, 2: 0.8} if stream else {0: 0.2}  # some of the streams are shown before they are done
    bodies = [mention(slack, "Otters?", channel=f"C{n % CHANNELS}", user=f"U{n}") for n in range(QUESTIONS)]
    acknowledged: list[float] = []
    async with open_door(library, slack, slack_stream=stream) as door:

        async def send(body: Json, after: float) -> None:
            await asyncio.sleep(after)
            started = time.monotonic()
            assert (await door.send(body)).status_code == 200
            acknowledged.append(time.monotonic() - started)

        started = time.monotonic()
        await asyncio.gather(*(send(body, n * SECONDS / QUESTIONS) for n, body in enumerate([*bodies, *bodies[::10]])))
        await eventually(lambda: len(slack.posted) >= QUESTIONS and not any(one.streaming for one in slack.posted), 60)
        took = time.monotonic() - started
        await asyncio.sleep(0.5)
    acknowledged.sort()
    median, worst = acknowledged[len(acknowledged) // 2] * 1000, acknowledged[-1] * 1000
    streamed = sum(bool(one.pieces) for one in slack.posted)
    print(f"acknowledged in {median:.0f} ms, {worst:.0f} at most; all answered after {took:.1f} s, {streamed} by streams")
    assert max(acknowledged) < 1
    assert Counter(one.thread for one in slack.posted) == Counter(body["event"]["ts"] for body in bodies)
    assert all(one.shown.count("About Otters") == 1 and one.blocks[-1]["type"] == "actions" for one in slack.posted)
    assert (streamed > 0) == stream
