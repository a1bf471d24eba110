"""Both indexes of a library as one thing: searched, kept in step, checked, rebuilt. Who may write to them is settled here.

Embedded, one process at a time has them open, under a file lock each: the first that searches or serves, which then keeps them in
step for all. A process that finds them taken searches the catalogue's vectors exactly, and reads the keyword index beside its
writer. With a Chroma server the dense index is shared, and whoever gets the database's lock writes to it.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rag.catalogue import Catalogue
from rag.errors import IndexDamaged, IndexUnavailable, Unavailable
from rag.index.chroma import ChromaIndex, EmbeddedChroma, cloud_chroma, served_chroma
from rag.index.dense_search import DenseSearch
from rag.index.derived import DenseSide, MarkRecord
from rag.index.keyword_search import KeywordSearch
from rag.index.lock import FileLock
from rag.index.sync import FileRecord, Keeper

log = logging.getLogger(__name__)

POLL_SECONDS = 0.5
"""How often the catalogue is asked for its revision by who keeps the indexes in step."""

RETRY_SECONDS = 30.0
"""How long an index that could not be rebuilt (a full disk) is left alone."""

PATIENCE_SECONDS = 30.0
"""How long `catch_up` waits for another process that makes no headway."""

CLOSE_SECONDS = 10.0
"""How long `close` waits for a batch that is being applied."""


@dataclass(frozen=True, slots=True)
class IndexState:
    """What `footnote doctor` tells of an index: `holder` is the pid of another process that has it, `fault` what is wrong."""

    name: str
    revision: int
    holder: int | None
    fault: str | None


class Indexes:
    """A library's indexes. `dense` and `keyword` are what questions search; the first search, or `follow`, takes the indexes,
    brings them up to date and keeps them so until `close`."""

    def __init__(self, catalogue: Catalogue, dense: DenseSearch, keyword: KeywordSearch) -> None:
        self._catalogue = catalogue
        self.dense = dense
        self.keyword = keyword
        self.dense.begin = self.keyword.begin = self._begun
        self._stop = threading.Event()
        self._tried = threading.Event()
        self._caught_up = False
        self._complaint: Unavailable | None = None
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def follow(self) -> None:
        """Begins to keep the indexes in step in the background; returns at once."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep_in_step, name="indexes", daemon=True)
                self._thread.start()

    def not_ready(self) -> str | None:
        """What questions must wait for, in one sentence for everybody; None once the indexes have caught up and while Chroma
        answers."""
        self.follow()
        if not self._caught_up:
            return self._complaint.told if self._complaint else "The indexes are being brought up to date."
        return self.dense.fault()

    def searched(self) -> int:
        """The revision that searches see now. Waits for the first catch-up. Raises IndexUnavailable."""
        self._begun()
        return max(0, min(self.keyword.searched(), self.dense.searched()))

    def reached(self) -> int:
        """The revision that both indexes have reached; -1 when one cannot be used. Raises IndexUnavailable."""
        return min(self.keyword.keeper.reached(), self.dense.keeper.reached())

    def catch_up(self, revision: int | None = None, *, patience: float = PATIENCE_SECONDS) -> bool:
        """Brings the indexes to `revision` (the catalogue's own if None), or waits until the process that has them does. False
        when they make no headway for `patience` seconds, or Chroma does not answer."""
        target = self._catalogue.revision() if revision is None else revision
        best, deadline = -2, 0.0
        while True:
            try:
                reached = self._advance(target)
            except IndexUnavailable as error:
                log.warning("%s", error)
                return False
            if reached >= target:
                return True
            if reached > best:
                best, deadline = reached, time.monotonic() + patience
            elif time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS / 5)

    def reindex(self) -> None:
        """Makes both indexes anew from the catalogue. Raises Unavailable when another process has them."""
        for side in (self.keyword, self.dense):
            if not side.rebuild():
                pid = side.holder()
                who = f"Process {pid}" if pid else "Another process"
                raise Unavailable(f"{who} has the {side.keeper.name}: stop it, then run `footnote reindex` again.")
            if not side.kept:
                side.keeper.let_go()

    def check(self) -> list[IndexState]:
        """Looks into both indexes and searches each for papers it must hold. Raises IndexUnavailable."""
        return [
            IndexState(side.keeper.name, side.keeper.reached(), side.holder(), side.keeper.check(keep_open=side.kept))
            for side in (self.keyword, self.dense)
        ]

    def close(self) -> None:
        """Stops following and leaves the indexes to other processes. A rebuild under way is not waited for: it is begun again
        at the next start."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)
            if self._thread.is_alive():
                return
        self.keyword.release()
        self.dense.release()

    def _begun(self) -> None:
        self.follow()
        self._tried.wait()

    def _advance(self, target: int) -> int:
        for side in (self.keyword, self.dense):
            if side.keeper.reached() < target:
                side.keeper.catch_up(keep_open=side.kept)
        return self.reached()

    def _keep_in_step(self) -> None:
        while not self._stop.is_set():
            pause = self._step()
            self._tried.set()
            self._stop.wait(pause)
        self._tried.set()

    def _step(self) -> float:
        """Catches up once; how many seconds to wait before the next time."""
        try:
            caught_up = self.keyword.catch_up() and self.dense.catch_up()
            self._caught_up = self._caught_up or caught_up
            self._complain(None)
        except IndexDamaged as error:  # and it could not be rebuilt
            self._complain(error)
            return RETRY_SECONDS
        except Unavailable as error:
            self._complain(error)
        except BaseException:  # the outermost edge of this thread; a panic in Rust is no Exception
            log.exception("The indexes could not be kept in step")
            return RETRY_SECONDS
        return POLL_SECONDS

    def _complain(self, error: Unavailable | None) -> None:
        """In the log once for each fault, not twice a second; `not_ready` tells it without addresses."""
        if error and str(error) != str(self._complaint):
            log.warning("%s", error)
        self._complaint = error


def open_indexes(catalogue: Catalogue, folder: Path, chroma_url: str, model: str) -> Indexes:
    """The indexes of `catalogue`: in `folder`, but for a dense index at `chroma_url` (a server's address, or `cloud`). Touches
    nothing yet. Raises SettingsError for another kind of address."""
    file_lock = FileLock(folder / "dense.lock")
    chroma: ChromaIndex
    if not chroma_url:
        chroma = EmbeddedChroma(folder / "dense", model)
        dense_side = DenseSide(catalogue, chroma, model)
        keeper = Keeper(dense_side, catalogue, FileRecord(folder / "dense.json"), file_lock.alone)
        dense = DenseSearch(catalogue, chroma, model, keeper, file_lock)
    else:
        chroma = cloud_chroma(model) if chroma_url == "cloud" else served_chroma(chroma_url, model)
        database = catalogue.database
        alone = partial(database.alone, "dense index") if database.shared else file_lock.alone
        keeper = Keeper(DenseSide(catalogue, chroma, model), catalogue, MarkRecord(chroma), alone)
        dense = DenseSearch(catalogue, chroma, model, keeper, None)
    return Indexes(catalogue, dense, KeywordSearch(catalogue, folder / "keyword"))
