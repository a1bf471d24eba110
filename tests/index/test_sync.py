"""Keeping an index in step: what is applied, when it is doubted, and that a stop at any moment loses nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from rag.catalogue import Change
from rag.errors import IndexDamaged, IndexUnavailable
from rag.index.sync import BATCH, FileRecord, Keeper, Progress


class Ledger:
    """A catalogue of names: revision n put (or removed) one paper."""

    def __init__(self, papers: int = 0) -> None:
        self.rows: dict[str, Change] = {}
        for n in range(papers):
            self.put(f"paper-{n}")

    def put(self, paper_id: str, deleted: bool = False) -> None:
        self.rows[paper_id] = Change(paper_id, self.revision() + 1, deleted)

    def revision(self) -> int:
        return max((row.revision for row in self.rows.values()), default=0)

    def changes(self, after: int, limit: int) -> list[Change]:
        return sorted((row for row in self.rows.values() if row.revision > after), key=lambda row: row.revision)[:limit]

    def alive(self) -> set[str]:
        return {row.paper_id for row in self.rows.values() if not row.deleted}


class Shelf:
    """An index that is a set of names, and remembers what was done to it."""

    name = "shelf"
    fragile = False

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.made_by = "model 1"
        self.held: set[str] = set()
        self.applied: list[int] = []
        self.rebuilds = 0
        self.closed = 0
        self.fails_at: int | None = None
        self.damaged = False
        self.found_wrong: str | None = None
        self.looked_into: list[frozenset[str]] = []

    def count(self) -> int:
        if self.damaged:
            raise IndexDamaged("it is broken")
        return len(self.held)

    def expected(self) -> int:
        return len(self.ledger.alive())

    def apply(self, changes: Sequence[Change]) -> None:
        if self.damaged:
            raise IndexDamaged("it is broken")
        for change in changes:
            if change.revision == self.fails_at:
                raise KeyboardInterrupt
            (self.held.discard if change.deleted else self.held.add)(change.paper_id)
        self.applied.append(len(changes))

    def rebuild(self) -> None:
        self.rebuilds += 1
        self.damaged = False
        self.found_wrong = None
        self.held = self.ledger.alive()

    def fault(self, changing: frozenset[str]) -> str | None:
        self.looked_into.append(changing)
        return self.found_wrong

    def close(self) -> None:
        self.closed += 1


class Desk:
    """A ledger, a shelf, a record on disk, and whether somebody else has the shelf."""

    def __init__(self, folder: Path, papers: int) -> None:
        self.ledger = Ledger(papers)
        self.shelf = Shelf(self.ledger)
        self.record = FileRecord(folder / "shelf.json")
        self.taken = False

    @contextmanager
    def alone(self) -> Iterator[bool]:
        yield not self.taken

    def keeper(self) -> Keeper:
        """A new one: as after a restart."""
        return Keeper(self.shelf, self.ledger, self.record, self.alone)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path, papers=5)
    assert desk.keeper().catch_up(keep_open=False)
    assert desk.shelf.rebuilds == 1
    return desk


def test_changes_are_applied_in_batches_and_only_once(desk: Desk) -> None:
    for n in range(5, BATCH + 10):
        desk.ledger.put(f"paper-{n}")
    desk.ledger.put("paper-2", deleted=True)
    keeper = desk.keeper()
    assert keeper.catch_up(keep_open=True)
    assert keeper.catch_up(keep_open=True)
    assert desk.shelf.applied == [BATCH, 6]
    assert desk.shelf.held == desk.ledger.alive()
    assert keeper.reached() == desk.ledger.revision()
    assert desk.shelf.rebuilds == 1


def test_an_index_in_step_is_left_as_it_is(desk: Desk) -> None:
    assert desk.keeper().catch_up(keep_open=False)
    assert (desk.shelf.applied, desk.shelf.rebuilds, desk.shelf.looked_into) == ([], 1, [])


def test_a_stop_in_the_middle_is_made_good_at_the_next_start(desk: Desk) -> None:
    for n in range(5, 2 * BATCH):
        desk.ledger.put(f"paper-{n}")
    desk.shelf.fails_at = BATCH + 500
    with pytest.raises(KeyboardInterrupt):
        desk.keeper().catch_up(keep_open=False)
    progress = desk.record.read()
    assert progress is not None
    assert (progress.revision, progress.clean) == (BATCH + 5, False)
    desk.shelf.fails_at = None
    assert desk.keeper().catch_up(keep_open=False)
    assert desk.shelf.held == desk.ledger.alive()
    assert desk.shelf.rebuilds == 1


def test_after_an_unclean_stop_the_index_is_searched_but_not_for_what_was_being_written(desk: Desk) -> None:
    desk.ledger.put("paper-5")
    desk.shelf.fails_at = 6
    with pytest.raises(KeyboardInterrupt):
        desk.keeper().catch_up(keep_open=False)
    desk.shelf.fails_at = None
    desk.shelf.found_wrong = "2 papers were not found"
    assert desk.keeper().catch_up(keep_open=False)
    assert desk.shelf.looked_into == [frozenset({"paper-5"})]
    assert desk.shelf.rebuilds == 2


@pytest.mark.parametrize(
    "progress",
    [
        None,
        Progress(5, 5, "model 0", clean=True),
        Progress(-1, 0, "model 1", clean=False),
        Progress(9, 5, "model 1", clean=True),
        Progress(5, 4, "model 1", clean=True),
    ],
    ids=["no record", "another model", "unfinished rebuild", "ahead of the catalogue", "another count"],
)
def test_an_index_that_cannot_be_right_is_rebuilt(
    desk: Desk, progress: Progress | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if progress is None:
        (tmp_path / "shelf.json").write_text("{")
    else:
        desk.record.write(progress)
    assert desk.keeper().catch_up(keep_open=False)
    assert desk.shelf.rebuilds == 2
    assert desk.keeper().reached() == 5
    if progress is not None:
        assert len(caplog.records) == 1
        assert "The shelf was rebuilt" in caplog.text


def test_an_index_with_papers_that_the_catalogue_never_had_is_rebuilt(desk: Desk) -> None:
    desk.shelf.held.add("paper-of-another-catalogue")
    desk.record.write(Progress(5, 6, "model 1", clean=True))
    assert desk.keeper().catch_up(keep_open=False)
    assert desk.shelf.held == desk.ledger.alive()


@pytest.mark.parametrize("pending", [False, True])
def test_a_damaged_index_is_rebuilt(desk: Desk, pending: bool) -> None:
    if pending:
        desk.ledger.put("paper-5")
    desk.shelf.damaged = True
    assert desk.keeper().catch_up(keep_open=False)
    assert desk.shelf.rebuilds == 2
    assert desk.shelf.held == desk.ledger.alive()


def test_damage_that_comes_later_is_mended_when_it_is_suspected(desk: Desk) -> None:
    keeper = desk.keeper()
    assert keeper.catch_up(keep_open=True)
    desk.shelf.found_wrong = "nothing was found"
    assert keeper.catch_up(keep_open=True)
    assert desk.shelf.rebuilds == 1
    keeper.suspect("a search failed")
    assert keeper.suspected
    assert keeper.catch_up(keep_open=True)
    assert desk.shelf.rebuilds == 2
    assert not keeper.suspected


def test_a_suspicion_without_ground_rebuilds_nothing(desk: Desk) -> None:
    keeper = desk.keeper()
    keeper.suspect("a search failed")
    assert keeper.catch_up(keep_open=True)
    assert desk.shelf.rebuilds == 1
    assert not keeper.suspected


def test_what_another_process_has_is_not_touched(desk: Desk) -> None:
    desk.ledger.put("paper-5")
    desk.taken = True
    keeper = desk.keeper()
    assert not keeper.catch_up(keep_open=False)
    assert not keeper.rebuild("asked for")
    assert keeper.check(keep_open=False) is None
    assert (desk.shelf.applied, desk.shelf.rebuilds) == ([], 1)
    desk.record.write(Progress(6, 6, "model 1", clean=True))
    assert keeper.catch_up(keep_open=False)


def test_the_index_is_let_go_unless_it_is_kept_open(desk: Desk) -> None:
    closed = desk.shelf.closed
    keeper = desk.keeper()
    keeper.catch_up(keep_open=True)
    assert desk.shelf.closed == closed
    desk.ledger.put("paper-5")
    keeper.catch_up(keep_open=False)
    assert desk.shelf.closed == closed + 1


def test_a_fragile_index_is_searched_when_its_holder_died_with_it_open(desk: Desk) -> None:
    desk.shelf.fragile = True
    desk.keeper().catch_up(keep_open=True)  # and never lets go
    keeper = desk.keeper()
    keeper.catch_up(keep_open=True)
    assert len(desk.shelf.looked_into) == 1
    desk.ledger.put("paper-5")
    keeper.catch_up(keep_open=True)
    keeper.let_go()
    desk.keeper().catch_up(keep_open=False)
    assert len(desk.shelf.looked_into) == 1
    assert desk.shelf.rebuilds == 1


def test_letting_go_in_the_middle_of_a_write_leaves_the_index_unclean(desk: Desk) -> None:
    desk.ledger.put("paper-5")
    desk.shelf.fails_at = 6
    keeper = desk.keeper()
    with pytest.raises(KeyboardInterrupt):
        keeper.catch_up(keep_open=True)
    keeper.let_go()
    progress = desk.record.read()
    assert progress is not None
    assert not progress.clean


def test_an_index_that_was_let_go_is_doubted_again(desk: Desk) -> None:
    keeper = desk.keeper()
    keeper.catch_up(keep_open=False)
    desk.shelf.held.clear()
    keeper.catch_up(keep_open=False)
    assert desk.shelf.held == desk.ledger.alive()


def test_a_check_searches_the_index(desk: Desk) -> None:
    keeper = desk.keeper()
    assert keeper.check(keep_open=False) is None
    desk.shelf.found_wrong = "3 papers were not found"
    assert keeper.check(keep_open=False) == "3 papers were not found"


def test_a_record_is_read_back_or_is_none(tmp_path: Path) -> None:
    record = FileRecord(tmp_path / "new" / "shelf.json")
    assert record.read() is None
    record.write(Progress(3, 2, "model", clean=True))
    assert record.read() == Progress(3, 2, "model", clean=True)
    for text in ("", "[]", '{"revision": 1}', "\x00"):
        (tmp_path / "new" / "shelf.json").write_text(text)
        assert record.read() is None


def test_a_record_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IndexUnavailable, match=r"shelf\.json cannot be written"):
        FileRecord(tmp_path / "file" / "shelf.json").write(Progress(3, 2, "model", clean=True))
