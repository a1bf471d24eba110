"""Exact nearest papers: every vector of the catalogue in memory, multiplied by the question's."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rag.catalogue import Change
from rag.types import IndexedPaper, Vectors

RELOAD = 2000
"""With more changes than this, reading all vectors again is cheaper than reading the changed papers one by one."""


class VectorSource(Protocol):
    """What exact search reads of the catalogue."""

    def revision(self) -> int:
        """The number of changes so far."""

    def changes(self, after: int, limit: int) -> list[Change]:
        """Papers changed after revision `after`."""

    def indexed(self, paper_ids: Sequence[str], model: str) -> list[IndexedPaper]:
        """With vectors of `model`."""

    def whole_vectors(self, model: str) -> tuple[list[str], Vectors]:
        """Ids of all papers with vectors of `model`, and one row for each."""


FEW = 5
"""A set smaller than one in so many papers is scored alone; above, copying its vectors together costs more than scoring all."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    revision: int
    paper_ids: Sequence[str]
    rows: Mapping[str, int]
    vectors: Vectors

    def rows_of(self, paper_ids: Collection[str]) -> NDArray[np.intp]:
        """In order and once each; ids without a vector have none."""
        nowhere = len(self.paper_ids)
        asked = np.zeros(nowhere + 1, bool)
        asked[np.fromiter(map(self.rows.get, paper_ids, repeat(nowhere)), np.intp, len(paper_ids))] = True
        return np.flatnonzero(asked[:nowhere])


class ExactIndex:
    """The nearest papers by cosine, among all or exactly within a set. About 3 ms for 50,000 papers of 384 dimensions and 77 MB.

    Always in step: each search asks the catalogue for its revision first. Safe for many threads.
    """

    def __init__(self, catalogue: VectorSource, model: str) -> None:
        self._catalogue = catalogue
        self._model = model
        self._updating = threading.Lock()
        self._snapshot: _Snapshot | None = None

    def count(self) -> int:
        """How many papers have a vector."""
        return len(self._current().paper_ids)

    def search(self, vector: Vectors, k: int, within: Collection[str] | None = None) -> list[tuple[str, float]]:
        """The `k` nearest papers as (paper_id, cosine), best first; only those `within`, if given."""
        now = self._current()
        rows = np.arange(len(now.paper_ids)) if within is None else now.rows_of(within)
        if k < 1 or not len(rows):
            return []
        few = len(rows) * FEW < len(now.paper_ids)
        cosines: Vectors = now.vectors[rows] @ vector if few else (now.vectors @ vector)[rows]
        best = np.argpartition(-cosines, k - 1)[:k] if k < len(rows) else np.arange(len(rows))
        best = best[np.lexsort((rows[best], -cosines[best]))]
        return [(now.paper_ids[rows[i]], float(cosines[i])) for i in best]

    def _current(self) -> _Snapshot:
        revision = self._catalogue.revision()
        now = self._snapshot
        if now is not None and now.revision >= revision:
            return now
        with self._updating:
            now = self._snapshot
            if now is None or now.revision < revision:
                now = self._snapshot = self._updated(now, revision)
            return now

    def _updated(self, old: _Snapshot | None, revision: int) -> _Snapshot:
        changes = self._catalogue.changes(old.revision, RELOAD) if old is not None else []
        if old is None or len(changes) >= RELOAD:
            paper_ids, vectors = self._catalogue.whole_vectors(self._model)
            return _snapshot(revision, paper_ids, vectors)
        touched = {change.paper_id for change in changes}
        kept = [row for row, paper_id in enumerate(old.paper_ids) if paper_id not in touched]
        fresh = self._catalogue.indexed([change.paper_id for change in changes if not change.deleted], self._model)
        added = {found.paper.paper_id: found.vectors[0] for found in fresh if found.vectors is not None}
        parts = [old.vectors[kept]] if kept else []
        vectors = np.concatenate([*parts, np.stack(list(added.values()))]) if added else old.vectors[kept]
        return _snapshot(revision, [*(old.paper_ids[row] for row in kept), *added], vectors)


def _snapshot(revision: int, paper_ids: Sequence[str], vectors: Vectors) -> _Snapshot:
    return _Snapshot(revision, paper_ids, {paper_id: row for row, paper_id in enumerate(paper_ids)}, vectors)
