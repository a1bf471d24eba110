"""Papers into the catalogue: read, plan, embed what is new, commit, acknowledge; a batch at a time.

What was acknowledged is kept whatever happens next; a batch is there wholly or not at all, so the same command can be run again.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from rag import readers
from rag.catalogue import Catalogue, NotEmbedded
from rag.errors import CatalogueUnavailable, UnreadableFile
from rag.identity import Record, read_record
from rag.passages import texts_to_embed
from rag.protocols import Embedder
from rag.types import Commit, IndexedPaper, IngestReport, RawPaper, Rejected, Vectors

BATCH = 128
"""Papers a transaction: a few seconds of embedding, so that little is lost when it is stopped."""

TRIES = 5
"""How often a batch is planned again because somebody else changed the same papers meanwhile."""

Reading = Iterator[RawPaper | Rejected]


@dataclass(frozen=True, slots=True)
class Source:
    """Something to read papers from. `named`: given by name; else met on a walk, where what holds no papers is only skipped.
    `open` raises UnreadableFile before its first item."""

    name: str
    open: Callable[[], Reading]
    named: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """One acknowledged batch: `papers` is how many records were taken so far, `seconds` since the start."""

    commit: Commit
    papers: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Models:
    """What embeds: `main` the whole and each sentence, `whole_only` the whole alone (a model for other languages)."""

    main: Embedder
    whole_only: Sequence[Embedder] = ()

    @property
    def names(self) -> list[str]:
        return [self.main.model, *(embedder.model for embedder in self.whole_only)]

    def embed(self, wanting: Mapping[str, Mapping[str, IndexedPaper]]) -> dict[str, dict[str, Vectors]]:
        """The vectors that papers want, by model and text hash."""
        found = {self.main.model: embed_papers(self.main, wanting.get(self.main.model, {}))}
        for embedder in self.whole_only:
            found[embedder.model] = embed_papers(embedder, wanting.get(embedder.model, {}), rows=1)
        return found


@dataclass
class Tally:
    """Counts while an ingest runs."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    skipped: list[Rejected] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started


def ingest(
    catalogue: Catalogue,
    models: Models,
    sources: Iterable[Source],
    *,
    on_step: Callable[[Step], None] = lambda step: None,
    catch_up: Callable[[int], bool] = lambda revision: False,
) -> IngestReport:
    """Adds the papers of all sources, gives papers that lack vectors of a model theirs, then waits for the indexes: `catch_up`
    tells whether they have reached a revision.

    `on_step` hears of each batch once it cannot be lost any more. Nothing is embedded twice. The report's seconds add up to the
    whole: `read` is the time spent waiting for the reader, which works one batch ahead. Raises CatalogueUnavailable.
    """
    started, tally = time.perf_counter(), Tally()
    for records in read_ahead(sources, tally):
        commit = commit_batch(catalogue, models, records, tally)
        tally.counts.update(added=commit.added, merged=commit.merged, unchanged=commit.unchanged)
        on_step(Step(commit, tally.counts.total(), time.perf_counter() - started))
    with tally.timed("embed"):
        embed_missing(catalogue, models, on_step)
    revision = catalogue.revision()
    with tally.timed("index"):
        indexed = catch_up(revision)
    return IngestReport(
        added=tally.counts["added"],
        merged=tally.counts["merged"],
        unchanged=tally.counts["unchanged"],
        skipped=tuple(tally.skipped),
        rejected=tuple(tally.rejected),
        revision=revision,
        indexed=indexed,
        seconds={stage: round(seconds, 3) for stage, seconds in tally.seconds.items()},
    )


def embed_missing(catalogue: Catalogue, models: Models, on_step: Callable[[Step], None] = lambda step: None) -> int:
    """Gives papers vectors of a model that was switched on after they came. Returns how many papers got some."""
    started, done = time.perf_counter(), 0
    for model in models.names:
        while papers := catalogue.missing(model, BATCH):
            commit = catalogue.add_vectors(model, models.embed({model: papers})[model])
            done += len(papers)
            on_step(Step(commit, done, time.perf_counter() - started))
    return done


def files(
    paths: Sequence[Path], format: str = "auto", watch: Callable[[BinaryIO], BinaryIO] = lambda stream: stream
) -> Iterator[Source]:
    """The files at `paths`, folders walked; see `rag.readers` for formats. `watch` is given each file as it is opened, and
    may put a stream in front of it that tells how far the reading is."""
    for file in readers.walk(paths):
        yield Source(str(file.path), partial(readers.read, file.path, format, watch), file.named)


def bytes_in(paths: Sequence[Path]) -> int:
    """The size of the files at `paths`, folders walked: what an ingest has to read."""
    return sum(file.path.stat().st_size for file in readers.walk(paths) if os.path.exists(file.path))  # noqa: PTH110  # also where nobody may look


def commit_batch(catalogue: Catalogue, models: Models, records: Sequence[Record], tally: Tally) -> Commit:
    """Embeds what the batch needs and commits it; plans again when somebody else changed the same papers in between."""
    for _ in range(TRIES):
        with tally.timed("plan"):
            wanting = catalogue.plan(records, models.names)
        with tally.timed("embed"):
            embedded = models.embed(wanting)
        try:
            with tally.timed("commit"):
                return catalogue.commit(records, embedded)
        except NotEmbedded:
            continue
    raise CatalogueUnavailable("Other processes keep changing the same papers; run the same command again when they are done.")


def embed_papers(embedder: Embedder, papers: Mapping[str, IndexedPaper], rows: int | None = None) -> dict[str, Vectors]:
    """The vectors of the first `rows` texts of each paper (None: all), under the papers' keys, in one call."""
    texts = [texts_to_embed(paper)[:rows] for paper in papers.values()]
    if not texts:
        return {}
    vectors = embedder.embed_texts([text for of_paper in texts for text in of_paper])
    ends = np.cumsum([len(of_paper) for of_paper in texts])
    return dict(zip(papers, np.split(vectors, ends[:-1]), strict=True))


def read_ahead(sources: Iterable[Source], tally: Tally) -> Iterator[list[Record]]:
    """Batches of records; the next is read and cleaned in a thread while its caller is busy with the one before."""
    records = read_records(sources, tally)
    with ThreadPoolExecutor(1, "reader") as thread:
        batch = thread.submit(lambda: list(islice(records, BATCH)))
        while True:
            with tally.timed("read"):
                ready = batch.result()
            if not ready:
                return
            batch = thread.submit(lambda: list(islice(records, BATCH)))
            yield ready


def read_records(sources: Iterable[Source], tally: Tally) -> Iterator[Record]:
    for source in sources:
        for item in readable(source, tally):
            if isinstance(item, Rejected):
                tally.rejected.append(item)
            else:
                yield read_record(item)


def readable(source: Source, tally: Tally) -> Reading:
    """What a source holds; one that cannot be read is rejected if it was named, else skipped."""
    try:
        yield from source.open()
    except UnreadableFile as error:
        (tally.rejected if source.named else tally.skipped).append(Rejected(source.name, "", str(error)))
