"""Two hundred questions in ten seconds over fifty channels. In CI as many in two seconds: acknowledging does not get easier."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter

from tests.slack.conftest import Door, eventually
from tests.slack.fake_slack import Json, mention

QUESTIONS, CHANNELS = 200, 50
SECONDS = float(os.environ.get("SLACK_LOAD_SECONDS", "2"))


async def test_every_question_is_acknowledged_within_a_second_and_answered_once_within_a_minute(door: Door) -> None:
    door.library.engine.pauses[0] = 0.2
    bodies = [mention(door.slack, "Otters?", channel=f"C{n % CHANNELS}", user=f"U{n}") for n in range(QUESTIONS)]
    acknowledged: list[float] = []

    async def send(body: Json, after: float) -> None:
        await asyncio.sleep(after)
        started = time.monotonic()
        assert (await door.send(body)).status_code == 200
        acknowledged.append(time.monotonic() - started)

    started = time.monotonic()
    await asyncio.gather(*(send(body, n * SECONDS / QUESTIONS) for n, body in enumerate([*bodies, *bodies[::10]])))
    await eventually(lambda: len(door.slack.posted) >= QUESTIONS, 60)
    acknowledged.sort()
    median, worst = acknowledged[len(acknowledged) // 2] * 1000, acknowledged[-1] * 1000
    print(f"acknowledged in {median:.0f} ms, {worst:.0f} at most; all answered after {time.monotonic() - started:.1f} s")
    await asyncio.sleep(0.5)
    assert max(acknowledged) < 1
    assert Counter(one.thread for one in door.slack.posted) == Counter(body["event"]["ts"] for body in bodies)
    assert all("About" in one.shown for one in door.slack.posted)
