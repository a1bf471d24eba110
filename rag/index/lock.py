"""One process at a time: a lock on a file, freed by the kernel when its holder dies."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class FileLock:
    """An advisory lock (`flock`) on `path`; the file holds the pid of who has it, for people. Never waits.

    A child must be spawned, not forked: a forked one would keep the lock after its parent's death.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mutex = threading.Lock()
        self._file: int | None = None
        self._uses = 0
        self._kept = False

    @property
    def kept(self) -> bool:
        """Whether we hold it until `release`."""
        return self._kept

    def usable(self) -> bool:
        """Whether the folder lets us have a lock at all: not when it is read-only."""
        if self._file is not None:
            return True
        file = self._opened()
        if file is not None:
            os.close(file)
        return file is not None

    def keep(self) -> bool:
        """Takes it until `release`; False when another process has it."""
        with self._mutex:
            self._kept = self._take()
            return self._kept

    def release(self) -> None:
        """Lets go of what `keep` took."""
        with self._mutex:
            self._kept = False
            self._free()

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether we hold it within this block."""
        with self._mutex:
            held = self._take()
            self._uses += held
        try:
            yield held
        finally:
            with self._mutex:
                self._uses -= held
                self._free()

    def holder(self) -> int | None:
        """Pid of the other process that has it; None when it is free or ours."""
        with self._mutex:
            if self._take():
                self._free()
                return None
            text = self._path.read_text().strip() if self._path.exists() else ""
            return int(text) if text.isdigit() else None

    def _take(self) -> bool:
        if self._file is not None:
            return True
        file = self._opened()
        if file is None:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        with suppress(OSError):  # a full disk: the lock is ours, but people cannot read whose
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
        self._file = file
        return True

    def _opened(self) -> int | None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:  # a read-only folder: nobody can write there
            return None

    def _free(self) -> None:
        if self._file is not None and not self._kept and self._uses == 0:
            os.close(self._file)
            self._file = None
