import asyncio
import threading
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from pydantic import SecretStr

from api.app import create_app
from api.patient_engine import PatientEngine
from api.security import read_keys
from rag.errors import IndexUnavailable, Unavailable
from rag.settings import Settings
from rag.types import AnswerDone
from tests.api.fakes import FakeEngine, FakeLibrary, fake_library, served


@dataclass
class SlowLibrary(FakeLibrary):
    """A library whose engine is there once `built` is set; the first tries to load it may fail."""

    built: threading.Event = field(default_factory=threading.Event)
    faults: list[Exception] = field(default_factory=list)
    ready: FakeEngine | None = None

    def __post_init__(self) -> None:
        self.ready = self.engine
        del self.engine

    def __getattr__(self, name: str) -> FakeEngine:
        if name != "engine":
            raise AttributeError(name)
        self.built.wait(10)
        if self.faults:
            raise self.faults.pop()
        assert self.ready is not None
        return self.ready


@pytest.fixture
def slow(tmp_path: Path) -> SlowLibrary:
    made = fake_library(tmp_path)
    return SlowLibrary(made.catalogue, made.journal, made.engine, made.retriever)


async def test_a_question_waits_for_the_engine_but_not_for_ever(slow: SlowLibrary) -> None:
    engine = PatientEngine(slow, patience=0.1)
    with pytest.raises(Unavailable, match="brought up to date"):
        await anext(engine.stream("What?"))
    asyncio.get_running_loop().call_later(0.05, slow.built.set)
    events = [event async for event in engine.stream("What?")]
    assert isinstance(events[-1], AnswerDone)


async def test_loading_that_failed_is_tried_again_with_the_next_question(slow: SlowLibrary) -> None:
    slow.built.set()
    slow.faults = [IndexUnavailable("Chroma does not answer")]
    told: list[str] = []
    engine = PatientEngine(slow, lambda: told.append("loaded"))
    with pytest.raises(IndexUnavailable):
        await anext(engine.stream("What?"))
    assert not told
    for _ in range(2):
        assert [event async for event in engine.stream("What?")]
    assert told == ["loaded"]


def test_health_is_answered_while_the_indexes_are_built(slow: SlowLibrary) -> None:
    slow.waiting_for = "The indexes are being brought up to date."
    given = Settings(api_keys=SecretStr(""))
    with served(create_app(slow, given, read_keys(given, "127.0.0.1"))) as url:
        assert httpx2.get(f"{url}/healthz").status_code == 200
        assert httpx2.get(f"{url}/readyz").status_code == 503
        slow.built.set()
        assert httpx2.post(f"{url}/api/v1/ask", json={"question": "What?"}).status_code == 200
