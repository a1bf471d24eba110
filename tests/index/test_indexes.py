"""A library's indexes on real files: who holds them, what the others do, and how damage is mended. Nothing is embedded again."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rag.catalogue import Catalogue
from rag.errors import SettingsError, Unavailable
from rag.index.indexes import Indexes, open_indexes
from tests.index.papers import EMBEDDER, first_sentence, found_densely, indexes_of, open_catalogue, take

ROOT = Path(__file__).parents[2]

FOLLOW = """
import sys
from pathlib import Path
from tests.index.papers import indexes_of, open_catalogue
data = Path(sys.argv[1])
indexes = indexes_of(open_catalogue(data), data)
print(indexes.searched(), flush=True)
input()
indexes.close()
"""


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return open_catalogue(tmp_path)


@pytest.fixture
def open_one(catalogue: Catalogue, tmp_path: Path) -> Iterator[Callable[[], Indexes]]:
    """Opens the same indexes again and again, as another process would; closes them all at the end."""
    opened: list[Indexes] = []

    def open_again() -> Indexes:
        opened.append(indexes_of(catalogue, tmp_path))
        return opened[-1]

    yield open_again
    for indexes in opened:
        indexes.close()


@pytest.fixture
def indexes(open_one: Callable[[], Indexes]) -> Indexes:
    return open_one()


def assert_all_found(indexes: Indexes, catalogue: Catalogue, ids: list[str], first: int = 0) -> None:
    for n, paper_id in enumerate(ids, first):
        assert found_densely(indexes, catalogue, paper_id)[0] == paper_id
        assert indexes.keyword.search(first_sentence(n), 1)[0][0] == paper_id


def within(seconds: float, happened: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if happened():
            return True
        time.sleep(0.05)
    return False


def embedded() -> int:
    return len(EMBEDDER.texts)


def test_papers_are_found_after_catching_up(indexes: Indexes, catalogue: Catalogue) -> None:
    ids = take(catalogue, 0, 300)
    assert indexes.catch_up()
    assert indexes.reached() == indexes.searched() == catalogue.revision() == 3
    assert indexes.not_ready() is None
    assert_all_found(indexes, catalogue, [ids[0], ids[1]])
    assert_all_found(indexes, catalogue, [ids[299]], 299)
    catalogue.remove(ids[:2])
    assert indexes.catch_up()
    assert ids[0] not in found_densely(indexes, catalogue, ids[5], 300)
    assert ids[1] not in dict(indexes.keyword.search("word1", 300))


def test_within_a_set_exactly_its_members_are_found(indexes: Indexes, catalogue: Catalogue) -> None:
    ids = take(catalogue, 0, 200)
    indexes.catch_up()
    vector = EMBEDDER.embed_question("anything")
    found = indexes.dense.search(vector, 300, ids[10:60])
    assert sorted(paper_id for paper_id, _ in found) == sorted(ids[10:60])
    everything = indexes.dense.search(vector, 200)
    assert [hit for hit, _ in found] == [hit for hit, _ in everything if hit in ids[10:60]]
    assert indexes.keyword.search("word12 word90", 5, ids[10:60])[0][0] == ids[12]
    assert ids[90] not in dict(indexes.keyword.search("word12 word90", 100, ids[10:60]))


def test_one_that_searched_keeps_in_step_by_itself(indexes: Indexes, catalogue: Catalogue) -> None:
    take(catalogue, 0, 3)
    assert indexes.searched() == 1
    (late,) = take(catalogue, 3, 4)
    assert within(30, lambda: indexes.searched() == 2)
    assert_all_found(indexes, catalogue, [late], 3)


def test_beside_a_holder_others_search_all_the_same_and_their_papers_get_in(
    open_one: Callable[[], Indexes], catalogue: Catalogue
) -> None:
    take(catalogue, 0, 3)
    holder, other = open_one(), open_one()
    assert holder.searched() == other.searched() == 1
    assert [state.holder is not None for state in other.check()] == [True, True]
    assert [state.holder is not None for state in holder.check()] == [False, False]
    (late,) = take(catalogue, 3, 4)
    assert other.catch_up(2)
    assert_all_found(holder, catalogue, [late], 3)
    assert_all_found(other, catalogue, [late], 3)
    holder.close()
    assert within(30, lambda: [state.holder for state in other.check()] == [None, None])
    (later,) = take(catalogue, 4, 5)
    assert other.catch_up()
    assert_all_found(other, catalogue, [later], 4)


def test_beside_another_process_papers_get_in_too(indexes: Indexes, catalogue: Catalogue, tmp_path: Path) -> None:
    take(catalogue, 0, 3)
    command = [sys.executable, "-c", FOLLOW, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "1\n"
        (late,) = take(catalogue, 3, 4)
        assert indexes.catch_up(2)
        assert_all_found(indexes, catalogue, [late], 3)
        assert {state.holder for state in indexes.check()} == {server.pid}
        with pytest.raises(Unavailable, match=f"Process {server.pid} has the keyword index"):
            indexes.reindex()
        server.communicate("")
    indexes.reindex()


def test_catching_up_leaves_the_indexes_to_others(open_one: Callable[[], Indexes], catalogue: Catalogue) -> None:
    first, second = open_one(), open_one()
    for n, one in enumerate([first, second, first]):
        take(catalogue, n, n + 1)
        assert one.catch_up()
        assert one.reached() == n + 1


def test_waiting_for_a_holder_that_does_nothing_ends(open_one: Callable[[], Indexes], catalogue: Catalogue) -> None:
    take(catalogue, 0, 1)
    holder, other = open_one(), open_one()
    assert holder.searched() == 1
    holder._stop.set()
    take(catalogue, 1, 2)
    time.sleep(0.6)
    assert not other.catch_up(patience=0.5)


def break_nothing(index: Path) -> None:
    """Leaves it as it is."""


def lose_everything(index: Path) -> None:
    """The whole index folder is gone."""
    shutil.rmtree(index)


def spoil_chroma(index: Path) -> None:
    """Chroma's database is rubbish."""
    (index / "dense" / "chroma.sqlite3").write_bytes(b"rubbish" * 5000)


def lose_chroma(index: Path) -> None:
    """Chroma's folder is gone, the record says all is well."""
    shutil.rmtree(index / "dense")


def spoil_tantivy(index: Path) -> None:
    """Tantivy's list of files is rubbish."""
    (index / "keyword" / "meta.json").write_text("{rubbish")


def lose_tantivy(index: Path) -> None:
    """A segment of Tantivy is gone."""
    for segment in (index / "keyword").glob("*.term"):
        segment.unlink()


def claim_another_model(index: Path) -> None:
    """The records tell of other models."""
    for record in index.glob("*.json"):
        record.write_text(record.read_text().replace("schema", "scheme"))


@pytest.mark.parametrize(
    "harm", [break_nothing, lose_everything, spoil_chroma, lose_chroma, spoil_tantivy, lose_tantivy, claim_another_model]
)
def test_a_damaged_index_is_mended_at_the_next_start(
    harm: Callable[[Path], None], open_one: Callable[[], Indexes], catalogue: Catalogue, tmp_path: Path
) -> None:
    ids = take(catalogue, 0, 30)
    first = open_one()
    assert first.catch_up()
    first.close()
    texts = embedded()
    harm(tmp_path / "index")
    assert_all_found(open_one(), catalogue, ids)
    assert embedded() == texts


def test_vectors_lost_without_a_trace_are_missed_after_an_unclean_stop(
    open_one: Callable[[], Indexes], catalogue: Catalogue, tmp_path: Path
) -> None:
    ids = take(catalogue, 0, 300)
    first = open_one()
    assert first.catch_up()
    first.close()
    empty_segments(tmp_path / "index" / "dense")
    record = tmp_path / "index" / "dense.json"
    record.write_text(record.read_text().replace("true", "false"))
    assert_all_found(open_one(), catalogue, [ids[0], ids[1]])


def test_an_index_that_crashed_its_process_is_mended_at_the_next_start(
    open_one: Callable[[], Indexes], catalogue: Catalogue, tmp_path: Path
) -> None:
    ids = take(catalogue, 0, 1300)  # so many that Chroma has written its graph
    command = [sys.executable, "-c", FOLLOW, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        server.stdout.readline()
        server.kill()
    (header,) = (tmp_path / "index" / "dense").glob("*/header.bin")
    header.write_bytes(bytes(header.stat().st_size))  # seen to crash with a double free
    assert_all_found(open_one(), catalogue, ids[:2])


def test_a_check_finds_vectors_that_were_lost_without_a_trace(
    open_one: Callable[[], Indexes], catalogue: Catalogue, tmp_path: Path
) -> None:
    take(catalogue, 0, 300)
    first = open_one()
    assert first.catch_up()
    assert [state.fault for state in first.check()] == [None, None]
    first.close()
    empty_segments(tmp_path / "index" / "dense")
    keyword, dense = open_one().check()
    assert keyword.fault is None
    assert dense.fault is not None


def empty_segments(chroma: Path) -> None:
    """Takes a quarter of the vectors out behind the collection's count."""
    code = (
        "import sys, sqlite3; from contextlib import closing\n"
        "with closing(sqlite3.connect(sys.argv[1])) as db, db:\n"
        "    db.execute('DELETE FROM embeddings_queue WHERE seq_id % 4 = 0')"
    )
    subprocess.run([sys.executable, "-c", code, str(chroma / "chroma.sqlite3")], check=True)


def test_damage_while_searching_is_answered_exactly_and_mended(indexes: Indexes, catalogue: Catalogue, tmp_path: Path) -> None:
    ids = take(catalogue, 0, 30)
    assert indexes.searched() == 1
    indexes.dense._chroma.close()
    spoil_chroma(tmp_path / "index")
    assert_all_found(indexes, catalogue, ids[:3])
    assert within(60, lambda: not indexes.dense.keeper.suspected)
    assert_all_found(indexes, catalogue, ids[:3])
    assert indexes.check()[1].fault is None


def test_papers_without_a_vector_of_the_model_are_searched_by_their_words_only(catalogue: Catalogue, tmp_path: Path) -> None:
    (paper_id,) = take(catalogue, 0, 1)
    other_model = open_indexes(catalogue, tmp_path / "index", "", "another model")
    try:
        assert other_model.catch_up()
        assert other_model.dense.search(np.ones(8, np.float32), 5) == []
        assert other_model.keyword.search(first_sentence(0), 1)[0][0] == paper_id
    finally:
        other_model.close()


def test_after_closing_searches_are_still_answered(indexes: Indexes, catalogue: Catalogue) -> None:
    ids = take(catalogue, 0, 5)
    assert indexes.catch_up()
    indexes.close()
    assert_all_found(indexes, catalogue, ids)


def test_where_nothing_can_be_written_all_is_found_all_the_same(indexes: Indexes, catalogue: Catalogue, tmp_path: Path) -> None:
    (tmp_path / "index").touch()  # a file where the folder should be
    ids = take(catalogue, 0, 5)
    assert_all_found(indexes, catalogue, ids)
    assert indexes.not_ready() is None
    (late,) = take(catalogue, 5, 6)
    assert within(30, lambda: indexes.searched() == 2)
    assert_all_found(indexes, catalogue, [late], 5)


def test_reindexing_makes_both_anew(indexes: Indexes, catalogue: Catalogue, tmp_path: Path) -> None:
    ids = take(catalogue, 0, 5)
    assert indexes.catch_up()
    stray = tmp_path / "index" / "dense" / "stray"
    stray.touch()
    indexes.keyword._disk.index.apply([], [ids[0]])
    indexes.reindex()
    assert not stray.exists()
    assert_all_found(indexes, catalogue, ids)


def test_an_address_that_is_none_is_refused(catalogue: Catalogue, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="FOOTNOTE_CHROMA_URL"):
        open_indexes(catalogue, tmp_path / "index", "chroma:8000", "model")


def test_opening_touches_and_imports_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.index.papers import indexes_of, open_catalogue\n"
        "data = Path(sys.argv[1]); indexes_of(open_catalogue(data), data)\n"
        "assert 'chromadb' not in sys.modules; assert not (data / 'index').exists()"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=True)


def test_many_threads_search_while_papers_come_in(indexes: Indexes, catalogue: Catalogue) -> None:
    (first,) = take(catalogue, 0, 1)
    assert indexes.searched() == 1
    (paper,) = catalogue.indexed([first], EMBEDDER.model)
    vectors = paper.vectors
    assert vectors is not None
    done = threading.Event()

    def search() -> int:
        times = 0
        while not done.is_set():
            assert indexes.dense.search(vectors[0], 3)[0][0] == first
            assert indexes.dense.search(vectors[0], 3, [first])[0][0] == first
            assert indexes.keyword.search("word0", 3)[0][0] == first
            times += 1
        return times

    with ThreadPoolExecutor(4) as threads:
        searches = [threads.submit(search) for _ in range(4)]
        try:
            for start in range(1, 1001, 100):
                take(catalogue, start, start + 100)
                assert indexes.catch_up()
        finally:
            done.set()
        assert all(one.result() > 0 for one in searches)
    assert indexes.dense._chroma.count() == 1001
