"""The two indexes as things derived of the catalogue: what they take from it, and how they are checked against it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from rag.catalogue import Change
from rag.errors import IndexDamaged
from rag.index import keyword
from rag.index.chroma import SCHEMA_VERSION, ChromaIndex, EmbeddedChroma
from rag.index.keyword import TantivyIndex
from rag.index.sync import BATCH, Progress
from rag.types import IndexedPaper, Vectors

SAMPLE_LAST, SAMPLE_ANY = 1500, 200
"""Papers searched for after an unclean stop: the last to come (what Chroma had not yet merged, up to 1,000 records, is what a
kill may lose), and some of the others."""

SEARCH_SECONDS = 120
"""How long those searches may take; a broken store can hang for ever."""


class PaperSource(Protocol):
    """What the indexes read of the catalogue."""

    def revision(self) -> int:
        """The number of changes so far."""

    def count(self, model: str | None = None) -> int:
        """How many papers there are; with `model`, how many have vectors of it."""

    def changes(self, after: int, limit: int) -> list[Change]:
        """Papers changed after revision `after`, in order of revision."""

    def indexed(self, paper_ids: Sequence[str], model: str) -> list[IndexedPaper]:
        """With vectors of `model`, None where there are none."""

    def whole_vectors(self, model: str) -> tuple[list[str], Vectors]:
        """Ids of all papers with vectors of `model`, in order of arrival, and one row for each."""


class DenseSide:
    """Row 0 of each paper's vectors, in Chroma."""

    name = "dense index"

    def __init__(self, catalogue: PaperSource, chroma: ChromaIndex, model: str) -> None:
        self._catalogue = catalogue
        self._chroma = chroma
        self._model = model
        self.made_by = f"{model}, schema {SCHEMA_VERSION}"
        self.fragile = isinstance(chroma, EmbeddedChroma)

    def count(self) -> int:
        """How many papers it holds."""
        return self._chroma.count()

    def expected(self) -> int:
        """How many papers have a vector."""
        return self._catalogue.count(self._model)

    def apply(self, changes: Sequence[Change]) -> None:
        """Takes over the vectors of changed papers; one without a vector goes out."""
        alive = self._catalogue.indexed([change.paper_id for change in changes if not change.deleted], self._model)
        vectors = {found.paper.paper_id: found.vectors[0] for found in alive if found.vectors is not None}
        self._chroma.delete([change.paper_id for change in changes if change.paper_id not in vectors])
        if vectors:
            self._chroma.upsert(list(vectors), np.stack(list(vectors.values())))

    def rebuild(self) -> None:
        """From the catalogue's vectors, all at once."""
        self._chroma.rebuild([self._catalogue.whole_vectors(self._model)])

    def fault(self, changing: frozenset[str]) -> str | None:
        """Searches for papers by their own vectors: in a child process for an embedded store, which may hang or crash it."""
        paper_ids, vectors = self._catalogue.whole_vectors(self._model)
        rows = [row for row in sampled(len(paper_ids)) if paper_ids[row] not in changing]
        if not rows:
            return None
        sample = [paper_ids[row] for row in rows]
        if isinstance(self._chroma, EmbeddedChroma):
            self._chroma.close()
            return searched_apart(self._chroma, sample, vectors[rows])
        return lacking_line(self._chroma.lacking(sample, vectors[rows]), len(sample))

    def close(self) -> None:
        """Closes Chroma's files."""
        self._chroma.close()


class KeywordSide:
    """The words of each paper, in Tantivy: in `folder`, or in memory with None."""

    name = "keyword index"
    made_by = f"schema {keyword.SCHEMA_VERSION}"
    fragile = False

    def __init__(self, catalogue: PaperSource, folder: Path | None) -> None:
        self._catalogue = catalogue
        self._folder = folder
        self._opened: TantivyIndex | None = None

    @property
    def index(self) -> TantivyIndex:
        """Opened on first use. Raises IndexDamaged."""
        if self._opened is None:
            self._opened = TantivyIndex(self._folder)
        return self._opened

    def count(self) -> int:
        """How many papers it holds."""
        return self.index.count()

    def expected(self) -> int:
        """How many papers there are."""
        return self._catalogue.count()

    def apply(self, changes: Sequence[Change]) -> None:
        """Takes over the texts of changed papers."""
        alive = self._catalogue.indexed([change.paper_id for change in changes if not change.deleted], "")
        present = {found.paper.paper_id for found in alive}
        self.index.apply(alive, [change.paper_id for change in changes if change.paper_id not in present])

    def rebuild(self) -> None:
        """In one commit, so that readers see the old papers or the new ones; a folder that cannot be opened is begun anew."""
        try:
            self.index.rebuild(self._papers())
        except IndexDamaged:
            self.close()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            self.index.rebuild(self._papers())

    def fault(self, changing: frozenset[str]) -> str | None:
        """Searches for the last papers by their own words. (Its commits are whole or not at all, so a kill leaves no half.)"""
        paper_ids = [paper_id for paper_id in self._last() if paper_id not in changing]
        lacking = [
            found.paper.paper_id
            for found in self._catalogue.indexed(paper_ids, "")
            if self.index.weights(found.text) and not self.index.scores(found.text, [found.paper.paper_id])
        ]
        return f"{len(lacking)} of {len(paper_ids)} papers were not found by their own words" if lacking else None

    def close(self) -> None:
        """Lets go of its files."""
        self._opened = None

    def _last(self) -> list[str]:
        after = max(0, self._catalogue.revision() - SAMPLE_ANY)
        changes = self._catalogue.changes(after, 10**9)
        return [change.paper_id for change in changes if not change.deleted][-SAMPLE_ANY:]

    def _papers(self) -> Iterator[IndexedPaper]:
        after = 0
        while changes := self._catalogue.changes(after, BATCH):
            yield from self._catalogue.indexed([change.paper_id for change in changes if not change.deleted], "")
            after = changes[-1].revision


class MarkRecord:
    """Progress beside a collection on a shared Chroma server, for every replica to read."""

    def __init__(self, chroma: ChromaIndex) -> None:
        self._chroma = chroma

    def read(self) -> Progress | None:
        """None when there is no collection, or it is being filled."""
        marks = self._chroma.marks()
        if "revision" not in marks:
            return None
        revision, papers = (int(str(marks[key])) for key in ("revision", "papers"))
        return Progress(revision, papers, str(marks["made_by"]), bool(marks["clean"]))

    def write(self, progress: Progress) -> None:
        """The beginning of a rebuild is not marked: the old collection serves until the new one takes its name."""
        if progress.revision >= 0:
            self._chroma.mark(revision=progress.revision, papers=progress.papers, made_by=progress.made_by, clean=progress.clean)


def sampled(n: int) -> list[int]:
    """Which of `n` papers, in order of arrival, are searched for."""
    last = range(max(0, n - SAMPLE_LAST), n)
    others = np.random.default_rng().permutation(last.start)[:SAMPLE_ANY]
    return [*sorted(map(int, others)), *last]


def searched_apart(chroma: EmbeddedChroma, paper_ids: Sequence[str], vectors: Vectors) -> str | None:
    """What a child process finds wrong when it searches the store for these papers by these vectors."""
    with tempfile.TemporaryDirectory() as scratch:
        sample = Path(scratch) / "sample.npz"
        np.savez(sample, paper_ids=np.array(paper_ids, dtype=np.str_), vectors=vectors)
        command = [sys.executable, "-m", "rag.index.selfsearch", str(chroma.folder), chroma.model, str(sample)]
        try:
            child = subprocess.run(
                command, capture_output=True, cwd=Path(__file__).parents[2], timeout=SEARCH_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"searching it took more than {SEARCH_SECONDS} s"
    if child.returncode:
        lines = child.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        return f"searching it ended with {child.returncode} ({lines[-1][:200]})"
    return lacking_line(json.loads(child.stdout), len(paper_ids))


def lacking_line(lacking: Sequence[str], asked: int) -> str | None:
    """HNSW misses a paper in some thousands although it is there."""
    if len(lacking) * 1000 <= asked:
        return None
    return f"{len(lacking)} of {asked} papers were not found by their own vectors"
