"""The dense index on a real Chroma server: shared by replicas, away now and then, and back."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rag.catalogue import Catalogue
from rag.database import Database, open_database, sqlite_url
from rag.errors import IndexUnavailable
from rag.index.chroma import served_chroma
from rag.index.indexes import Indexes
from rag.types import Vectors
from tests.index.papers import EMBEDDER, first_sentence, found_densely, indexes_of, take
from tests.servers import ChromaServer, chroma_server

Replica = Callable[[str], Indexes]


@pytest.fixture
def server() -> Iterator[ChromaServer]:
    with chroma_server() as running:
        yield running


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """SQLite, or what the test asks for."""
    opened = open_database(
        request.getfixturevalue("postgres").emptied()
        if getattr(request, "param", "sqlite") == "postgres"
        else sqlite_url(tmp_path / "footnote.db")
    )
    yield opened
    opened.close()


on_postgres = pytest.mark.parametrize("database", ["postgres"], indirect=True)
on_both = pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def catalogue(database: Database) -> Catalogue:
    return Catalogue(database)


@pytest.fixture
def replica(catalogue: Catalogue, server: ChromaServer, tmp_path: Path) -> Iterator[Replica]:
    """Opens a replica with a data folder of its own."""
    opened: list[Indexes] = []

    def open_one(name: str) -> Indexes:
        opened.append(indexes_of(catalogue, tmp_path / name, server.url))
        return opened[-1]

    yield open_one
    for indexes in opened:
        indexes.close()


def within(seconds: float, happened: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if happened():
            return True
        time.sleep(0.1)
    return False


def answers(indexes: Indexes) -> bool:
    try:
        indexes.dense.search(EMBEDDER.embed_question("?"), 1)
    except IndexUnavailable:
        return False
    return True


@on_both
def test_replicas_share_the_dense_index_and_each_keeps_its_own_words(replica: Replica, catalogue: Catalogue) -> None:
    ids = take(catalogue, 0, 300)
    first, second = replica("a"), replica("b")
    assert first.searched() == 3
    assert within(60, lambda: second.not_ready() is None)
    (late,) = take(catalogue, 300, 301)
    assert within(60, lambda: first.searched() == second.searched() == 4)
    for indexes in (first, second):
        assert indexes.dense._chroma.count() == 301
        for n, paper_id in ((0, ids[0]), (300, late)):
            assert found_densely(indexes, catalogue, paper_id)[0] == paper_id
            assert indexes.keyword.search(first_sentence(n), 1)[0][0] == paper_id


def test_a_rebuild_serves_the_old_papers_until_the_new_collection_is_whole(server: ChromaServer) -> None:
    mine, theirs = (served_chroma(server.url, "model") for _ in range(2))
    old, new = (EMBEDDER.embed_texts([f"{kind} {n}" for n in range(300)]) for kind in ("old", "new"))
    mine.rebuild([([f"old-{n}" for n in range(300)], old)])
    assert theirs.search(old[7], 1)[0][0] == "old-7"

    def batches() -> Iterator[tuple[list[str], Vectors]]:
        for start in range(0, 300, 100):
            assert theirs.search(old[7], 1)[0][0] == "old-7"
            assert theirs.count() == 300
            yield [f"new-{n}" for n in range(start, start + 100)], new[start : start + 100]

    mine.rebuild(batches())
    assert theirs.search(new[7], 1)[0][0] == "new-7"
    assert theirs.count() == mine.count() == 300
    mine.close()
    theirs.close()


def test_a_server_that_is_away_is_an_error_and_its_return_needs_nobody(
    replica: Replica, catalogue: Catalogue, server: ChromaServer
) -> None:
    ids = take(catalogue, 0, 5)
    indexes = replica("a")
    assert found_densely(indexes, catalogue, ids[0])[0] == ids[0]
    server.kill()
    started = time.monotonic()
    with pytest.raises(IndexUnavailable, match=f"{server.url} does not answer"):
        indexes.dense.search(EMBEDDER.embed_question("?"), 3)
    assert time.monotonic() - started < 10
    assert indexes.not_ready() == IndexUnavailable.plain  # anybody may read it
    take(catalogue, 5, 6)
    assert not indexes.catch_up(2)
    assert indexes.keyword.search(first_sentence(5), 1)
    server.start()
    assert within(60, lambda: indexes.not_ready() is None and indexes.searched() == 2)
    assert found_densely(indexes, catalogue, ids[0])[0] == ids[0]


def test_a_server_that_is_away_at_the_start_is_waited_for(replica: Replica, catalogue: Catalogue, server: ChromaServer) -> None:
    take(catalogue, 0, 5)
    server.kill()
    indexes = replica("a")
    assert not answers(indexes)
    assert indexes.not_ready() is not None
    server.start()
    assert within(60, lambda: indexes.not_ready() is None)
    assert answers(indexes)


def test_a_server_that_hangs_is_an_error_too(replica: Replica, catalogue: Catalogue, server: ChromaServer) -> None:
    take(catalogue, 0, 5)
    indexes = replica("a")
    assert answers(indexes)
    server.send(signal.SIGSTOP)
    try:
        started = time.monotonic()
        assert not answers(indexes)
        assert time.monotonic() - started < 20
    finally:
        server.send(signal.SIGCONT)
    assert within(60, lambda: answers(indexes))


def test_a_server_that_lost_everything_is_filled_again(replica: Replica, catalogue: Catalogue, server: ChromaServer) -> None:
    ids = take(catalogue, 0, 5)
    indexes = replica("a")
    assert found_densely(indexes, catalogue, ids[0])[0] == ids[0]
    embedded = len(EMBEDDER.texts)
    server.kill()
    server.forget()
    server.start()
    assert found_densely(indexes, catalogue, ids[0])[0] == ids[0]
    assert within(60, lambda: indexes.dense._chroma.marks().get("papers") == 5)
    assert within(60, lambda: indexes.not_ready() is None)
    assert found_densely(indexes, catalogue, ids[0])[0] == ids[0]
    assert len(EMBEDDER.texts) == embedded


@on_postgres
def test_a_data_folder_that_cannot_be_written_is_no_hindrance(replica: Replica, catalogue: Catalogue, tmp_path: Path) -> None:
    (tmp_path / "a").touch()  # a file where the data folder should be
    ids = take(catalogue, 0, 5)
    indexes = replica("a")
    assert found_densely(indexes, catalogue, ids[0])[0] == ids[0]
    assert indexes.keyword.search(first_sentence(0), 1)[0][0] == ids[0]
    assert indexes.catch_up()
