"""Keeping an index in step with the catalogue: idempotent, from any process, and mended by itself.

An index is derived: whatever is wrong with it (missing, damaged, of another model, ahead of the catalogue), it is rebuilt from
what the catalogue holds, without one embedding call.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from rag.catalogue import Change
from rag.errors import IndexDamaged, IndexUnavailable

log = logging.getLogger(__name__)

BATCH = 1000
"""Changes read and applied at a time."""


NONE_YET = "there is none yet"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an index has come: `papers` it held at `revision`. `clean` is false from before a write until after it, and for an
    index that may crash its process, for as long as one has it open."""

    revision: int
    papers: int
    made_by: str
    clean: bool


class Derived(Protocol):
    """An index made of the catalogue. Its methods raise IndexDamaged when only a rebuild helps."""

    @property
    def name(self) -> str:
        """For people: `dense index`."""

    @property
    def made_by(self) -> str:
        """Names model, schema and whatever else makes a rebuild needed when it changes."""

    @property
    def fragile(self) -> bool:
        """Whether a broken one may crash or hang the process that searches it."""

    def count(self) -> int:
        """How many papers it holds."""

    def expected(self) -> int:
        """How many it should hold now."""

    def apply(self, changes: Sequence[Change]) -> None:
        """Makes it hold these papers as the catalogue has them now."""

    def rebuild(self) -> None:
        """Makes it hold exactly what the catalogue has now, whatever it held before."""

    def fault(self, changing: frozenset[str]) -> str | None:
        """What is wrong with it, found by searching it; `changing` are papers it need not hold yet."""

    def close(self) -> None:
        """Lets go of its files; the next use opens it again."""


class Record(Protocol):
    """Where an index's progress is written, so that every process can read it."""

    def read(self) -> Progress | None:
        """None when nothing legible is there."""

    def write(self, progress: Progress) -> None:
        """All or nothing."""


class ChangeSource(Protocol):
    """What keeping in step reads of the catalogue."""

    def revision(self) -> int:
        """The number of changes so far."""

    def changes(self, after: int, limit: int) -> list[Change]:
        """Papers changed after revision `after`, in order of revision."""


class FileRecord:
    """A record in a small JSON file, replaced whole."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Progress | None:
        """None when the file is absent or not ours."""
        try:
            return Progress(**json.loads(self._path.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, progress: Progress) -> None:
        """On disk when it returns. Raises IndexUnavailable when there is no room, or no right to write."""
        fresh = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with fresh.open("w") as file:
                json.dump(asdict(progress), file)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._path)
        except OSError as error:
            raise IndexUnavailable(
                f"{self._path} cannot be written ({error.strerror}): make room or mend its rights, then run the command again."
            ) from error


class MemoryRecord:
    """A record of an index that lives in this process only."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def read(self) -> Progress | None:
        """None at first."""
        return self._progress

    def write(self, progress: Progress) -> None:
        """For as long as we live."""
        self._progress = progress


class Keeper:
    """Keeps one index in step. `alone` tells, as a context, whether we are the one who may write to it now."""

    def __init__(
        self, index: Derived, catalogue: ChangeSource, record: Record, alone: Callable[[], AbstractContextManager[bool]]
    ) -> None:
        self._index = index
        self._catalogue = catalogue
        self._record = record
        self._alone = alone
        self._working = threading.RLock()
        self._trusted = False
        self._suspected = False

    def reached(self) -> int:
        """The revision the index stands at, whoever brought it there; -1 when there is none that we can use."""
        progress = self._record.read()
        return progress.revision if progress and progress.made_by == self._index.made_by else -1

    @property
    def name(self) -> str:
        """Which index, for people."""
        return self._index.name

    @property
    def suspected(self) -> bool:
        """Whether a search found it damaged and nobody has looked into it since."""
        return self._suspected

    def suspect(self, reason: str) -> None:
        """A search found the index damaged: the next `catch_up` looks into it, and rebuilds it if so."""
        if not self._suspected:
            log.warning("%s", reason)
        self._suspected = True

    def catch_up(self, *, keep_open: bool) -> bool:
        """Applies what is missing, if we may write now; afterwards lets go of the index unless `keep_open`. Whether it has
        reached the revision that the catalogue had at the call. Raises IndexUnavailable, CatalogueUnavailable."""
        target = self._catalogue.revision()
        if self._trusted and not self._suspected and self.reached() >= target:
            return True
        with self._working, self._alone() as alone:
            if alone:
                try:
                    self._bring_to(target, clean=not (keep_open and self._index.fragile))
                finally:
                    if not keep_open:
                        self.let_go()
        return self.reached() >= target

    def rebuild(self, reason: str) -> bool:
        """Makes the index anew; False when another process holds it."""
        with self._working, self._alone() as alone:
            if alone:
                self._rebuild(reason, self._catalogue.revision(), clean=not self._index.fragile)
                self._trusted = True
            return alone

    def check(self, *, keep_open: bool) -> str | None:
        """What is wrong with the index, found by searching it; None if nothing, or if another process has it."""
        with self._working, self._alone() as alone:
            if not alone:
                return None
            try:
                return self._doubt(self._record.read(), thorough=True)
            finally:
                if not keep_open:
                    self.let_go()

    def let_go(self) -> None:
        """Closes the index; it is checked again when it is next written to, since others may have been at it."""
        with self._working:
            self._index.close()
            if self._index.fragile and self._trusted and (progress := self._record.read()):
                self._record.write(replace(progress, clean=True))
            self._trusted = False

    def _bring_to(self, target: int, *, clean: bool) -> None:
        progress = self._record.read()
        unsure = self._suspected or not self._trusted or progress is None or progress.revision < 0
        doubt = self._doubt(progress, thorough=self._suspected) if unsure else None
        self._trusted = False
        if doubt is None:
            assert progress is not None
            try:
                self._apply(progress, target, clean=clean)
                doubt = self._miscount() if unsure else None
            except IndexDamaged as error:
                doubt = str(error)
        if doubt is not None:
            self._rebuild(doubt, target, clean=clean)
        self._trusted, self._suspected = True, False

    def _miscount(self) -> str | None:
        """Whether it holds another number of papers than the catalogue; unknown while somebody is writing there."""
        before = self._catalogue.revision()
        held, expected = self._index.count(), self._index.expected()
        if self.reached() == before == self._catalogue.revision() and held != expected:
            return f"it holds {held} papers instead of {expected}"
        return None

    def _doubt(self, progress: Progress | None, *, thorough: bool) -> str | None:
        """Why the index cannot be used as it stands, if so. Searching it is for after an unclean stop, or to be thorough."""
        if progress is None:
            return NONE_YET
        if progress.made_by != self._index.made_by:
            return f"it was made by {progress.made_by}, now it is {self._index.made_by}"
        if progress.revision < 0:
            return "a rebuild was not finished"
        if progress.revision > self._catalogue.revision():
            return "it is ahead of the catalogue"
        try:
            if thorough or not progress.clean:
                changing = frozenset(change.paper_id for change in self._catalogue.changes(progress.revision, 10**9))
                fault = self._index.fault(changing)
                if fault is not None:
                    return fault
            held = self._index.count()
        except IndexDamaged as error:
            return str(error)
        if progress.clean and held != progress.papers:
            return f"it holds {held} papers instead of {progress.papers}"
        return None

    def _apply(self, progress: Progress, target: int, *, clean: bool) -> None:
        before = progress
        while progress.revision < target and (changes := self._catalogue.changes(progress.revision, BATCH)):
            if progress.clean:
                self._record.write(replace(progress, clean=False))
            self._index.apply(changes)
            progress = replace(progress, revision=changes[-1].revision, clean=False)
            self._record.write(progress)
        done = replace(progress, revision=max(progress.revision, target), papers=self._index.count(), clean=clean)
        if done != before:
            self._record.write(done)

    def _rebuild(self, reason: str, target: int, *, clean: bool) -> None:
        started = time.monotonic()
        made_by = self._index.made_by
        self._record.write(Progress(-1, 0, made_by, clean=False))
        self._index.rebuild()
        held = self._index.count()
        self._record.write(Progress(target, held, made_by, clean=clean))
        seconds = time.monotonic() - started
        if held:
            log.log(
                logging.INFO if reason == NONE_YET else logging.WARNING,
                "The %s was rebuilt (%s): %d papers in %.1f s",
                self._index.name,
                reason,
                held,
                seconds,
            )
