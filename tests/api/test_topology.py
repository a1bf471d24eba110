"""What `docker-compose.yml` puts together, by hand: Postgres, a Chroma server, two API processes with nothing else in common."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from tests.api.test_serve import Served, serving
from tests.servers import ChromaServer, PostgresServer, chroma_server

PAPER = {
    "title": "Whistling walruses",
    "abstract": "Walruses whistle through their lips to court. The loudest whistle carried over 3 kilometres of open water.",
    "authors": ["Floe, Ann"],
    "year": 2020,
}
QUESTION = {"question": "How far does the whistle of a walrus carry over open water?"}


def within(seconds: float, true: Callable[[], bool]) -> float:
    """How long it took until it was true."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < seconds, f"not within {seconds} s"
        time.sleep(0.05)
    return time.monotonic() - began


@pytest.fixture(scope="module")
def chroma() -> Iterator[ChromaServer]:
    with chroma_server() as server:
        yield server


@pytest.fixture(scope="module")
def replicas(postgres: PostgresServer, chroma: ChromaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Served]]:
    with postgres.fresh_database() as database, ExitStack() as running:
        settings = {"FOOTNOTE_DATABASE_URL": database, "FOOTNOTE_CHROMA_URL": chroma.url}
        folders: list[Path] = [tmp_path_factory.mktemp(name) for name in ("first", "second")]
        yield [running.enter_context(serving(folder, folder / "log", **settings)) for folder in folders]


def ask(replica: Served) -> httpx2.Response:
    return httpx2.post(f"{replica.url}/api/v1/ask", json=QUESTION, timeout=60)


def is_answered(replica: Served) -> bool:
    response = ask(replica)
    return response.status_code == 200 and "3 kilometres" in response.json()["text"]


def test_a_paper_added_through_one_is_answered_by_the_other_at_once_and_chroma_may_come_and_go(
    replicas: list[Served], chroma: ChromaServer
) -> None:
    first, second = replicas
    ask(second)  # loads what a first question loads
    added = httpx2.post(f"{first.url}/api/v1/papers", json=[PAPER], timeout=60).json()
    assert (added["added"], added["indexed"]) == (1, True)
    assert within(10, lambda: is_answered(second)) < 3
    answer_id = ask(second).json()["answer_id"]
    assert httpx2.get(f"{first.url}/api/v1/answers/{answer_id}").json()["stale"] is False

    chroma.kill()
    for replica in replicas:
        response = ask(replica)
        assert (response.status_code, response.json()["code"]) == (503, "unavailable")
        assert int(response.headers["retry-after"]) >= 1
        assert httpx2.get(f"{replica.url}/readyz").status_code == 503
        assert httpx2.get(f"{replica.url}/healthz").status_code == 200
    chroma.start()
    for replica in replicas:
        within(20, lambda replica=replica: is_answered(replica))  # type: ignore[misc]  # bound early
        assert httpx2.get(f"{replica.url}/readyz").status_code == 200


def test_several_workers_share_an_address_and_their_figures(
    postgres: PostgresServer, chroma: ChromaServer, tmp_path: Path
) -> None:
    with postgres.fresh_database() as database:
        settings = {"FOOTNOTE_DATABASE_URL": database, "FOOTNOTE_CHROMA_URL": chroma.url}
        with serving(tmp_path, tmp_path / "log", "--workers", "2", **settings) as served:
            for _ in range(10):
                response = ask(served)
                assert response.status_code == 200, response.text
            figures = httpx2.get(f"{served.url}/metrics").text
            assert 'footnote_answers_total{generator="extractive",status="not_in_corpus"} 10.0' in figures
            served.process.terminate()
            served.process.wait(30)
