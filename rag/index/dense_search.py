"""The dense index as questions search it: Chroma, or the catalogue's vectors exactly."""

from __future__ import annotations

from collections.abc import Callable, Collection

from rag.catalogue import Catalogue
from rag.errors import IndexDamaged, IndexUnavailable
from rag.index.chroma import ChromaIndex
from rag.index.exact import ExactIndex
from rag.index.lock import FileLock
from rag.index.sync import Keeper
from rag.types import Vectors

EXACT_LIMIT = 500_000
"""Above so many papers (0.8 GB of vectors) a filtered question is not scored in memory; the index is searched ever deeper."""


class DenseSearch:
    """Chroma for all papers; exact for a set of them, or while Chroma is not ours to use."""

    def __init__(self, catalogue: Catalogue, chroma: ChromaIndex, model: str, keeper: Keeper, lock: FileLock | None) -> None:
        self.keeper = keeper
        self.begin: Callable[[], None] = lambda: None  # what a search waits for; Indexes has it wait for the first catch-up
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
            if within is not None and self._usable() and self._catalogue.arrivals() > EXACT_LIMIT:
                return self._search_ever_deeper(vector, k, frozenset(within))
        except IndexDamaged as error:
            self._current = False
            self.keeper.suspect(str(error))
        return self._exact.search(vector, k, within)

    def fault(self) -> str | None:
        """Why a search would not be answered now, without Chroma's address."""
        try:
            if self._usable():
                self._chroma.count()
        except IndexDamaged:
            return None
        except IndexUnavailable as error:
            return error.told
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
