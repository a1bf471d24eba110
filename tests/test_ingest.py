from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from rag.catalogue import Catalogue
from rag.database import Database, open_database, sqlite_url
from rag.errors import CatalogueUnavailable, UnreadableFile
from rag.identity import read_record
from rag.ingest import BATCH, Models, Source, Step, bytes_in, embed_missing, files, ingest
from rag.passages import texts_to_embed
from rag.types import Filters, RawPaper, Rejected, Vectors
from tests.shelf_of_papers import HashEmbedder, commit, raw_paper

PAGE = """论文检索

Theory · Optimization

Ada One, Ben Two 等

{}
"""


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    database = open_database(sqlite_url(tmp_path / "footnote.db"))
    yield Catalogue(database)
    database.close()


def source(*items: RawPaper | Rejected, name: str = "papers.jsonl") -> Source:
    return Source(name, lambda: iter(items))


def unreadable(name: str, named: bool) -> Source:
    def fail() -> Iterator[RawPaper]:
        raise UnreadableFile(f"{name}: is none of the formats read here")
        yield

    return Source(name, fail, named)


def many(count: int) -> list[RawPaper]:
    return [raw_paper(f"topic{number}", external_ids=(f"id:{number}",)) for number in range(count)]


def test_papers_are_stored_with_vectors_of_the_whole_and_of_each_sentence(catalogue: Catalogue) -> None:
    embedder = HashEmbedder()
    report = ingest(catalogue, Models(embedder), [source(raw_paper("trees", title="On Trees"))])
    assert (report.added, report.merged, report.unchanged, report.revision) == (1, 0, 0, 1)
    (found,) = catalogue.indexed(catalogue.matching(Filters()), embedder.model)
    wanted = [embedder.embed_question(text) for text in texts_to_embed(found)]
    assert found.vectors is not None
    assert np.allclose(found.vectors, wanted, atol=1e-3)


def test_the_same_input_twice_changes_nothing_and_embeds_nothing(catalogue: Catalogue) -> None:
    embedder, papers = HashEmbedder(), source(*many(300), raw_paper("topic7", category="Theory"))
    first = ingest(catalogue, Models(embedder), [papers])
    embedded = len(embedder.texts)
    again = ingest(catalogue, Models(embedder), [papers])
    assert (first.added, first.merged) == (300, 1)
    assert (again.added, again.merged, again.unchanged) == (0, 0, 301)
    assert again.revision == first.revision
    assert len(embedder.texts) == embedded


def test_no_text_is_embedded_twice(catalogue: Catalogue) -> None:
    embedder = HashEmbedder()
    ingest(catalogue, Models(embedder), [source(*many(5), *many(5), raw_paper("topic1", category="Theory"))])
    paper = read_record(many(1)[0]).indexed
    assert len(embedder.texts) == 5 * len(texts_to_embed(paper))


def test_a_second_model_gets_the_whole_text_only(catalogue: Catalogue) -> None:
    main, other = HashEmbedder("main"), HashEmbedder("other")
    ingest(catalogue, Models(main, [other]), [source(*many(3))])
    assert len(other.texts) == 3
    assert set(other.texts) < set(main.texts)
    assert len(catalogue.whole_vectors("other")[0]) == 3


def test_a_model_switched_on_later_gets_its_vectors(catalogue: Catalogue) -> None:
    main, other = HashEmbedder("main"), HashEmbedder("other")
    ingest(catalogue, Models(main), [source(*many(BATCH + 2))])
    steps: list[Step] = []
    assert embed_missing(catalogue, Models(main, [other]), steps.append) == BATCH + 2
    assert [step.papers for step in steps] == [BATCH, BATCH + 2]
    assert len(catalogue.whole_vectors("other")[0]) == BATCH + 2
    assert embed_missing(catalogue, Models(main, [other])) == 0
    assert len(other.texts) == BATCH + 2


def test_the_next_ingest_gives_vectors_of_a_new_model_to_all_papers(catalogue: Catalogue) -> None:
    main, other = HashEmbedder("main"), HashEmbedder("other")
    ingest(catalogue, Models(main), [source(*many(3))])
    report = ingest(catalogue, Models(main, [other]), [source(raw_paper("new"))])
    assert len(catalogue.whole_vectors("other")[0]) == 4
    assert report.revision == catalogue.revision()


def test_each_batch_is_acknowledged_after_it_is_kept(catalogue: Catalogue) -> None:
    steps: list[Step] = []

    def check(step: Step) -> None:
        assert catalogue.count() == step.papers
        assert catalogue.revision() == step.commit.revision
        steps.append(step)

    report = ingest(catalogue, Models(HashEmbedder()), [source(*many(2 * BATCH + 1))], on_step=check)
    assert [step.papers for step in steps] == [BATCH, 2 * BATCH, 2 * BATCH + 1]
    assert [step.commit.revision for step in steps] == [1, 2, 3]
    assert steps == sorted(steps, key=lambda step: step.seconds)
    assert report.revision == 3


def test_what_cannot_be_taken_is_listed_and_stops_nothing(catalogue: Catalogue) -> None:
    bad = Rejected("papers.jsonl", "line 2", "no abstract")
    sources = [
        source(raw_paper("a"), bad, raw_paper("b")),
        unreadable("photo.jpg", False),
        unreadable("x.bin", True),
        source(raw_paper("c")),
    ]
    report = ingest(catalogue, Models(HashEmbedder()), sources)
    assert report.added == 3
    assert report.rejected == (bad, Rejected("x.bin", "", "x.bin: is none of the formats read here"))
    assert report.skipped == (Rejected("photo.jpg", "", "photo.jpg: is none of the formats read here"),)


def test_the_report_tells_whether_the_indexes_have_caught_up(catalogue: Catalogue) -> None:
    asked: list[int] = []

    def catch_up(revision: int) -> bool:
        asked.append(revision)
        return True

    report = ingest(catalogue, Models(HashEmbedder()), [source(*many(3))], catch_up=catch_up)
    assert report.indexed
    assert asked == [report.revision] == [1]
    assert not ingest(catalogue, Models(HashEmbedder()), [source(*many(3))], catch_up=lambda revision: False).indexed


def test_seconds_are_told_by_stage(catalogue: Catalogue) -> None:
    report = ingest(catalogue, Models(HashEmbedder()), [source(*many(3))])
    assert set(report.seconds) == {"read", "plan", "embed", "commit", "index"}
    assert all(seconds >= 0 for seconds in report.seconds.values())


def test_nothing_at_all_is_a_report_of_zeros(catalogue: Catalogue) -> None:
    report = ingest(catalogue, Models(HashEmbedder()), [])
    assert (report.added, report.merged, report.unchanged, report.revision, report.rejected) == (0, 0, 0, 0, ())


def test_files_and_folders_become_sources_that_can_be_watched(tmp_path: Path, catalogue: Catalogue) -> None:
    folder = tmp_path / "dumps"
    folder.mkdir()
    (folder / "a.txt").write_text(PAGE.format(raw_paper("a").abstract * 3))
    (folder / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0" * 100)
    size = bytes_in([folder, tmp_path / "missing.txt"])
    assert size == (folder / "a.txt").stat().st_size + 400
    opened: list[BinaryIO] = []

    def watch(stream: BinaryIO) -> BinaryIO:
        opened.append(stream)
        return stream

    report = ingest(catalogue, Models(HashEmbedder()), files([folder, tmp_path / "missing.txt"], watch=watch))
    assert [Path(stream.name).name for stream in opened] == ["a.txt", "photo.jpg"]
    assert report.added == 1
    assert [Path(skipped.source).name for skipped in report.skipped] == ["photo.jpg"]
    assert [Path(rejected.source).name for rejected in report.rejected] == ["missing.txt"]
    (paper,) = catalogue.list()
    assert (paper.category, paper.authors, paper.authors_truncated) == ("Theory · Optimization", ("Ada One", "Ben Two"), True)


class Meddler(HashEmbedder):
    """While it embeds, somebody else changes the same paper: `times` times."""

    def __init__(self, database: Database, times: int) -> None:
        super().__init__()
        self.others = Catalogue(database)
        self.times = times

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        if self.times:
            self.times -= 1
            newer = raw_paper("trees", title=f"Changed {self.times}", version=100 - self.times, external_ids=("doi:10.1000/x",))
            commit(self.others, newer)
        return super().embed_texts(texts)


def test_a_paper_changed_meanwhile_is_planned_and_embedded_again(catalogue: Catalogue) -> None:
    embedder = Meddler(catalogue.database, times=2)
    paper = raw_paper("trees", category="Theory", external_ids=("doi:10.1000/x",))
    report = ingest(catalogue, Models(embedder), [source(paper)])
    assert report.merged == 1
    (found,) = catalogue.indexed(catalogue.matching(Filters()), embedder.model)
    assert found.paper.category == "Theory"
    assert found.vectors is not None
    assert np.allclose(found.vectors[0], embedder.embed_question(texts_to_embed(found)[0]), atol=1e-3)


def test_endless_meddling_ends_in_a_clear_error(catalogue: Catalogue) -> None:
    paper = raw_paper("trees", category="Theory", external_ids=("doi:10.1000/x",))
    with pytest.raises(CatalogueUnavailable, match="run the same command again"):
        ingest(catalogue, Models(Meddler(catalogue.database, times=99)), [source(paper)])


class Stopped(HashEmbedder):
    """Stops like Ctrl-C once it has embedded `papers` batches."""

    def __init__(self, batches: int) -> None:
        super().__init__()
        self.batches = batches

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        if not self.batches:
            raise KeyboardInterrupt
        self.batches -= 1
        return super().embed_texts(texts)


def test_stopping_keeps_what_was_acknowledged_and_going_on_completes_it(catalogue: Catalogue) -> None:
    papers, steps = many(3 * BATCH), list[Step]()
    with pytest.raises(KeyboardInterrupt):
        ingest(catalogue, Models(Stopped(2)), [source(*papers)], on_step=steps.append)
    assert catalogue.count() == steps[-1].papers == 2 * BATCH
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("reader")]
    report = ingest(catalogue, Models(HashEmbedder()), [source(*papers)])
    assert (report.added, report.unchanged) == (BATCH, 2 * BATCH)


def ingest_forever(url: str, acknowledged: str) -> None:
    catalogue = Catalogue(open_database(url))

    def acknowledge(step: Step) -> None:
        with Path(acknowledged).open("a") as file:
            file.write(f"{step.papers}\n")

    ingest(catalogue, Models(HashEmbedder()), [source(*many(100_000))], on_step=acknowledge)


def test_killing_it_at_any_moment_loses_no_acknowledged_paper(tmp_path: Path) -> None:
    url, acknowledged = sqlite_url(tmp_path / "footnote.db"), tmp_path / "acknowledged"
    for delay in (0.0, 0.05, 0.11):
        known = int(acknowledged.read_text().split()[-1]) if acknowledged.exists() else 0
        process = multiprocessing.get_context("spawn").Process(target=ingest_forever, args=(url, str(acknowledged)))
        process.start()
        while not acknowledged.exists() or int((acknowledged.read_text().split() or ["0"])[-1]) <= known:
            process.join(0.01)
            assert process.is_alive()
        process.join(delay)
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        database = open_database(url)
        catalogue = Catalogue(database)
        abstracts = [paper.abstract for paper in catalogue.list(limit=200_000)]
        assert len(abstracts) >= int(acknowledged.read_text().split()[-1])
        assert len(abstracts) == len(set(abstracts)) == len(catalogue.whole_vectors("hash")[0])
        database.close()
