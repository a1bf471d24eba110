"""The keyword index as questions search it: on disk, beside its writer, or in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from rag.catalogue import Catalogue
from rag.errors import IndexDamaged
from rag.index.derived import KeywordSide
from rag.index.keyword import TantivyIndex
from rag.index.lock import FileLock
from rag.index.sync import FileRecord, Keeper, MemoryRecord

Found = TypeVar("Found")


class KeywordSearch:
    """Tantivy's index on disk, as its writer or beside it; one in memory where that can be neither written nor read."""

    def __init__(self, catalogue: Catalogue, folder: Path) -> None:
        self.begin: Callable[[], None] = lambda: None  # what a search waits for; Indexes has it wait for the first catch-up
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
