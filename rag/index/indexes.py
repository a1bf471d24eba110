"""Both indexes of a library as one thing: searched, kept in step, checked, rebuilt. Who may write to them is settled here.

Embedded, one process at a time has them open, under a file lock each: the first that searches or serves, which then keeps them in
step for all. A process that finds them taken searches the catalogue's vectors exactly, and reads the keyword index beside its
writer. With a Chroma server the dense index is shared, and whoever gets the database's lock writes to it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from rag.catalogue import Catalogue
from rag.errors import IndexDamaged, IndexUnavailable, Unavailable
from rag.index.chroma import ChromaIndex, EmbeddedChroma, cloud_chroma, served_chroma
from rag.index.derived import DenseSide, KeywordSide, MarkRecord
from rag.index.exact import ExactIndex
from rag.index.keyword import TantivyIndex
from rag.index.lock import FileLock
from rag.index.sync import FileRecord, Keeper, MemoryRecord
from rag.types import Vectors

log = logging.getLogger(__name__)

POLL_SECONDS = 0.5
"""How often the catalogue is asked for its revision by who keeps the indexes in step."""

RETRY_SECONDS = 30.0
"""How long an index that could not be rebuilt (a full disk) is left alone."""

PATIENCE_SECONDS = 30.0
"""How long `catch_up` waits for another process that makes no headway."""

CLOSE_SECONDS = 10.0
"""How long `close` waits for a batch that is being applied."""

EXACT_LIMIT = 500_000
"""Above so many papers (0.8 GB of vectors) a filtered question is not scored in memory; the index is searched ever deeper."""

Found = TypeVar("Found")


def nothing() -> None:
    """What a search waits for unless told otherwise."""


@dataclass(frozen=True, slots=True)
class IndexState:
    """What `footnote doctor` tells of an index: `holder` is the pid of another process that has it, `fault` what is wrong."""

    name: str
    revision: int
    holder: int | None
    fault: str | None


class DenseSearch:
    """Chroma for all papers; exact for a set of them, or while Chroma is not ours to use."""

    def __init__(self, catalogue: Catalogue, chroma: ChromaIndex, model: str, keeper: Keeper, lock: FileLock | None) -> None:
        self.keeper = keeper
        self.begin = nothing
        self._catalogue = catalogue
        self._chroma = chroma
        self._exact = ExactIndex(catalogue, model)
        self._lock = lock
        self._current = False

    def catch_up(self) -> bool:
        """Brings Chroma up to date if we may, and keeps it. Whether a search now finds what the catalogue has."""
        if self._lock is None or self._lock.keep():
            self._current = self.keeper.catch_up(keep_open=True) or self._current
            return self._current
        return True

    def rebuild(self) -> bool:
        """Makes it anew; questions are searched exactly meanwhile. False when another process has it."""
        self._current = False
        return self.keeper.rebuild("asked for")

    def search(self, vector: Vectors, k: int, within: Collection[str] | None = None) -> list[tuple[str, float]]:
        """The `k` nearest papers as (paper_id, cosine), best first; only those `within`, if given. Raises IndexUnavailable."""
        self.begin()
        try:
            if within is None and self._usable():
                return self._chroma.search(vector, k)
            if within is not None and self._usable() and self._catalogue.count() > EXACT_LIMIT:
                return self._search_ever_deeper(vector, k, frozenset(within))
        except IndexDamaged as error:
            self._current = False
            self.keeper.suspect(str(error))
        return self._exact.search(vector, k, within)

    def fault(self) -> str | None:
        """Why a search would not be answered now."""
        try:
            if self._usable():
                self._chroma.count()
        except IndexDamaged:
            return None
        except IndexUnavailable as error:
            return str(error)
        return None

    def searched(self) -> int:
        """The revision that searches see now."""
        return self.keeper.reached() if self._usable() else self._catalogue.revision()

    def release(self) -> None:
        """Leaves the index to other processes."""
        self.keeper.let_go()
        self._current = False
        if self._lock is not None:
            self._lock.release()

    def holder(self) -> int | None:
        """Pid of another process that has it."""
        return self._lock.holder() if self._lock is not None else None

    @property
    def kept(self) -> bool:
        """Whether it stays open between uses: ours until `release`, or shared."""
        return self._lock is None or self._lock.kept

    def _usable(self) -> bool:
        return self._lock is None or (self._lock.kept and self._current)

    def _search_ever_deeper(self, vector: Vectors, k: int, members: frozenset[str]) -> list[tuple[str, float]]:
        reach = 4 * k
        while True:
            ranked = self._chroma.search(vector, reach)
            found = [hit for hit in ranked if hit[0] in members]
            if len(found) >= min(k, len(members)) or len(ranked) < reach:
                return found[:k]
            reach *= 2


class KeywordSearch:
    """Tantivy's index on disk, as its writer or beside it; one in memory where that can be neither written nor read."""

    def __init__(self, catalogue: Catalogue, folder: Path) -> None:
        self.begin = nothing
        self._lock = FileLock(folder.with_suffix(".lock"))
        self._disk = KeywordSide(catalogue, folder)
        self._disk_keeper = Keeper(self._disk, catalogue, FileRecord(folder.with_suffix(".json")), self._lock.alone)
        self._memory = KeywordSide(catalogue, None)
        self._memory_keeper = Keeper(self._memory, catalogue, MemoryRecord(), _ours)
        self._searched = self._disk
        self._seen = -1

    @property
    def keeper(self) -> Keeper:
        """Of the index on disk, or of the one in memory when the folder cannot be written to."""
        return self._disk_keeper if self._lock.usable() else self._memory_keeper

    def catch_up(self) -> bool:
        """Brings what is searched here up to date: as its writer, beside another writer, or in memory."""
        if self._lock.keep():
            self._searched = self._disk
            return self._disk_keeper.catch_up(keep_open=True)
        if self._readable():
            self._searched = self._disk
            return True
        self._searched = self._memory
        return self._memory_keeper.catch_up(keep_open=True)

    def rebuild(self) -> bool:
        """Makes it anew. False when another process has it."""
        return self.keeper.rebuild("asked for")

    def searched(self) -> int:
        """The revision that searches see now."""
        return (self._disk_keeper if self._searched is self._disk else self._memory_keeper).reached()

    def search(self, question: str, k: int, within: Collection[str] | None = None) -> list[tuple[str, float]]:
        """The best `k` papers with a score above zero as (paper_id, BM25), best first; only those `within`, if given."""
        return self._ask(lambda index: index.search(question, k, within))

    def scores(self, question: str, paper_ids: Sequence[str]) -> Mapping[str, float]:
        """The BM25 score of each of these papers (absent: 0), the same numbers `search` gives."""
        return self._ask(lambda index: index.scores(question, paper_ids))

    def count(self) -> int:
        """How many papers it holds."""
        return self._ask(lambda index: index.count())

    def weights(self, text: str) -> Mapping[str, float]:
        """The content terms of `text` as indexed, in order, each with its inverse document frequency."""
        return self._ask(lambda index: index.weights(text))

    def correct(self, question: str) -> str:
        """`question` with mistyped words replaced by the nearest of the papers."""
        return self._ask(lambda index: index.correct(question))

    def release(self) -> None:
        """Leaves the index to other processes."""
        self._disk_keeper.let_go()
        self._lock.release()

    def holder(self) -> int | None:
        """Pid of another process that has it."""
        return self._lock.holder()

    @property
    def kept(self) -> bool:
        """Whether it is ours until `release`."""
        return self._lock.kept

    def _ask(self, ask: Callable[[TantivyIndex], Found]) -> Found:
        """Asks the index; one found damaged is mended or replaced first."""
        self.begin()
        try:
            self._look_again()
            return ask(self._searched.index)
        except IndexDamaged as error:
            self._disk_keeper.suspect(str(error))
            self.catch_up()
            return ask(self._searched.index)

    def _look_again(self) -> None:
        """Beside another writer: sees what it has committed since."""
        if self._searched is self._disk and not self._lock.kept and (reached := self._disk_keeper.reached()) != self._seen:
            self._searched.index.refresh()
            self._seen = reached

    def _readable(self) -> bool:
        try:
            return self._disk_keeper.reached() >= 0 and not self._disk_keeper.suspected and self._disk.count() >= 0
        except IndexDamaged:
            return False


@contextmanager
def _ours() -> Iterator[bool]:
    """What is in our own memory, nobody else writes to."""
    yield True


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
        self._complaint = ""
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def follow(self) -> None:
        """Begins to keep the indexes in step in the background; returns at once."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep_in_step, name="indexes", daemon=True)
                self._thread.start()

    def not_ready(self) -> str | None:
        """What questions must wait for, in one sentence; None once the indexes have caught up and while Chroma answers."""
        self.follow()
        if not self._caught_up:
            return self._complaint or "The indexes are being brought up to date."
        return self.dense.fault()

    def searched(self) -> int:
        """The revision that searches see now. Waits for the first catch-up. Raises IndexUnavailable."""
        self._begun()
        return max(0, min(self.keyword.searched(), self.dense.searched()))

    def reached(self) -> int:
        """The revision that both indexes have reached; -1 when one cannot be used. Raises IndexUnavailable."""
        return min(self.keyword.keeper.reached(), self.dense.keeper.reached())

    def catch_up(self, revision: int | None = None) -> bool:
        """Brings the indexes to `revision` (the catalogue's own if None), or waits until the process that has them does. False
        when that does not happen in PATIENCE_SECONDS, or Chroma does not answer."""
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
                best, deadline = reached, time.monotonic() + PATIENCE_SECONDS
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
            self._complain("")
        except IndexDamaged as error:  # and it could not be rebuilt
            self._complain(str(error))
            return RETRY_SECONDS
        except Unavailable as error:
            self._complain(str(error))
        except BaseException:  # the outermost edge of this thread; a panic in Rust is no Exception
            log.exception("The indexes could not be kept in step")
            return RETRY_SECONDS
        return POLL_SECONDS

    def _complain(self, complaint: str) -> None:
        """Once for each fault, not twice a second."""
        if complaint and complaint != self._complaint:
            log.warning("%s", complaint)
        self._complaint = complaint


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
