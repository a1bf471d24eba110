"""The file lock: one holder at a time, freed by death."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag.index.lock import FileLock

HOLD = (
    "import sys, time; from pathlib import Path; from rag.index.lock import FileLock\n"
    "print(FileLock(Path(sys.argv[1])).keep(), flush=True); time.sleep(60)"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "dense.lock"


def test_one_holds_it_at_a_time(path: Path) -> None:
    first, second = FileLock(path), FileLock(path)
    assert first.keep()
    assert first.kept
    assert not second.keep()
    assert not second.kept
    with second.alone() as held:
        assert not held
    first.release()
    assert second.keep()


def test_held_for_a_block_it_is_free_after_it(path: Path) -> None:
    first, second = FileLock(path), FileLock(path)
    with first.alone() as outer, first.alone() as inner:
        assert outer
        assert inner
        assert not second.keep()
    assert second.keep()


def test_a_block_does_not_let_go_of_what_was_kept(path: Path) -> None:
    first = FileLock(path)
    first.keep()
    with first.alone() as held:
        assert held
    assert not FileLock(path).keep()


def test_releasing_within_a_block_waits_for_its_end(path: Path) -> None:
    first = FileLock(path)
    first.keep()
    with first.alone():
        first.release()
        assert not FileLock(path).keep()
    assert FileLock(path).keep()


def test_the_holders_pid_is_told_to_others_only(path: Path) -> None:
    first, second = FileLock(path), FileLock(path)
    assert second.holder() is None
    first.keep()
    assert second.holder() == os.getpid()
    assert first.holder() is None
    first.release()
    assert second.holder() is None
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_killed_holder_frees_it(path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "True\n"
        assert FileLock(path).holder() == child.pid
        assert not FileLock(path).keep()
    finally:
        child.kill()
        child.communicate()
    assert kept_within(FileLock(path), 2)


def test_a_spawned_child_does_not_keep_it(path: Path) -> None:
    lock = FileLock(path)
    lock.keep()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE):
        lock.release()
        assert FileLock(path).keep()


def test_where_no_file_can_be_made_nobody_holds_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    lock = FileLock(tmp_path / "file" / "dense.lock")
    assert not lock.usable()
    assert not lock.keep()
    assert lock.holder() is None
    assert FileLock(tmp_path / "dense.lock").usable()


def kept_within(lock: FileLock, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if lock.keep():
            return True
        time.sleep(0.02)
    return False


def test_on_a_full_disk_it_is_held_all_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    lock = FileLock(path)
    assert lock.keep()
    lock.release()
