"""A library whose catalogue and journal are real (SQLite) and whose engine, retriever and LLM are told what to do."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
import uuid
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import uvicorn
from fastapi import FastAPI

from api.connections import ImpatientProtocol
from rag.catalogue import Catalogue
from rag.database import open_database, sqlite_url
from rag.identity import read_record
from rag.ingest import Models, Source, ingest
from rag.journal import Journal
from rag.protocols import Delta
from rag.types import (
    Answer,
    AnswerDone,
    AnswerEvent,
    AnswerSentence,
    Citation,
    Drafted,
    Evidence,
    Filters,
    IndexedPaper,
    IngestReport,
    Paper,
    PapersFound,
    RawPaper,
    Retrieved,
    ScoredPaper,
    SentenceReady,
    Turn,
    Usage,
    Vectors,
    Verdict,
)

PAPERS = (
    RawPaper(
        abstract="Otters sort pebbles by weight. The heaviest pebbles open the hardest shells. We followed 12 otters for a year.",
        where="1",
        title="Pebble choice in otters",
        authors=("Lutz, Ada", "Brook, Tim"),
        category="Zoology · Tools",
        venue="Journal of Small Things",
        year=2021,
        doi="10.5555/otter.1",
        external_ids=("doi:10.5555/otter.1",),
    ),
    RawPaper(
        abstract="Crows remember faces for 5 years. They teach their young whom to avoid.",
        where="2",
        title="Long memory in crows",
        authors=("周欣", "Wang"),
        authors_truncated=True,
        category="Zoology · Memory",
        venue="Bird Letters",
        year=2019,
        url="https://example.org/crows?id=7",
        external_ids=("id:crow-7",),
    ),
    RawPaper(abstract="Moss grows on $n^2$ stones. Nobody knows why.", where="3", authors=("Fern, Io",), category="Botany"),
)


class FakeEmbedder:
    """Vectors that depend on nothing but the text's length."""

    model = "fake"
    dimension = 2

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors."""
        return np.array([[np.cos(len(text)), np.sin(len(text))] for text in texts], np.float32)

    def embed_question(self, question: str) -> Vectors:
        """A unit vector."""
        vector: Vectors = self.embed_texts([question])[0]
        return vector


def make_answer(question: str, papers: Sequence[Paper], revision: int = 0) -> Answer:
    """Cites each paper's first ten characters, one sentence a paper."""
    citations = tuple(Citation(n, paper, paper.abstract[:10], 0, 10) for n, paper in enumerate(papers, 1))
    sentences = tuple(
        AnswerSentence(
            text=f"About {one.quote} [{one.marker}].{' ' if one.marker < len(papers) else ''}",
            markers=(one.marker,),
            basis="abstract",
            evidence=(Evidence(one.marker, one.start, one.end, one.quote, 0.9),),
            support="ok",
            reason="the words are there",
            score=0.9,
        )
        for one in citations
    )
    return Answer(
        answer_id=uuid.uuid4().hex,
        question=question,
        standalone_question=question,
        status="answered" if papers else "not_in_corpus",
        text="".join(sentence.text for sentence in sentences),
        sentences=sentences,
        citations=citations,
        papers=tuple(ScoredPaper(paper, 0.5) for paper in papers),
        generator="extractive",
        prompt_version=None,
        verifier="fake",
        filters=Filters(),
        revision=revision,
        usage=Usage(10, 5),
        timings_ms={"retrieve": 4, "total": 5},
    )


def events_of(answer: Answer) -> Iterator[AnswerEvent]:
    """What an engine streams on the way to this answer."""
    yield PapersFound(answer.answer_id, answer.status, answer.standalone_question, answer.filters, answer.papers)
    for sentence in answer.sentences:
        yield SentenceReady(sentence, tuple(one for one in answer.citations if one.marker in sentence.markers))
    yield AnswerDone(answer)


@dataclass(frozen=True)
class Asked:
    """What the engine was asked."""

    question: str
    history: tuple[Turn, ...]
    filters: Filters
    top_n: int


@dataclass
class FakeEngine:
    """Cites the first papers of the catalogue. `pauses[n]` seconds come before event n; `faults[n]` is raised instead of it."""

    catalogue: Catalogue
    pauses: dict[int, float] = field(default_factory=dict)
    faults: dict[int, Exception] = field(default_factory=dict)
    change: Mapping[str, object] = field(default_factory=dict)
    cited: int = 2
    asked: list[Asked] = field(default_factory=list)
    running: int = 0
    stopped_at: float | None = None

    async def stream(
        self, question: str, *, history: Sequence[Turn] = (), filters: Filters = Filters(), top_n: int = 8
    ) -> AsyncGenerator[AnswerEvent, None]:
        """The events of one answer."""
        self.asked.append(Asked(question, tuple(history), filters, top_n))
        self.running += 1
        try:
            papers = self.catalogue.list(limit=self.cited)
            answer = make_answer(question, papers, self.catalogue.revision())
            for place, event in enumerate(events_of(replace(answer, **self.change))):  # type: ignore[arg-type]  # a test's own fields
                if place in self.faults:
                    raise self.faults[place]
                await asyncio.sleep(self.pauses.get(place, 0))
                yield event
        except (asyncio.CancelledError, GeneratorExit):
            self.stopped_at = time.monotonic()
            raise
        finally:
            self.running -= 1


@dataclass
class FakeLLM:
    """Says its pieces; `fault` is raised after them."""

    pieces: tuple[str, ...] = ("Hel", "lo")
    fault: Exception | None = None
    cut: bool = False
    asked: list[tuple[str, str]] = field(default_factory=list)
    model: str = "fake-llm"

    async def stream(self, system: str, user: str, *, max_tokens: int = 100) -> AsyncGenerator[Delta, None]:
        """The pieces, usage and cut with the last."""
        self.asked.append((system, user))
        for piece in self.pieces:
            yield Delta(piece)
        if self.fault:
            raise self.fault
        yield Delta("", Usage(7, 2), self.cut)

    async def complete(
        self, system: str, user: str, *, json_schema: Mapping[str, object] | None = None, max_tokens: int = 100
    ) -> tuple[str, Usage]:
        """All of them at once."""
        return "".join(self.pieces), Usage(7, 2)


@dataclass
class FakeRetriever:
    """Finds what the catalogue lists first."""

    catalogue: Catalogue
    fault: Exception | None = None
    pause: float = 0.0

    def find(self, question: str, *, top_k: int, filters: Filters = Filters()) -> list[Retrieved]:
        """Scores fall from 0.9."""
        time.sleep(self.pause)
        if self.fault:
            raise self.fault
        papers = self.catalogue.list(limit=top_k, filters=filters)
        return [Retrieved(IndexedPaper(paper, "", ()), 0.9 - n / 100, 0.5, 0.5) for n, paper in enumerate(papers)]


@dataclass
class FakeVerifier:
    """Bears out what cites a paper, by the first word of its abstract."""

    name: str = "fake"
    seen: list[tuple[Drafted, tuple[str, ...]]] = field(default_factory=list)

    async def verify(self, drafted: Drafted, papers: Sequence[Retrieved]) -> Verdict:
        """`uncited` without a marker."""
        self.seen.append((drafted, tuple(one.paper.paper_id for one in papers)))
        words = {place: papers[place - 1].paper.abstract.split()[0] for place in drafted.markers}
        evidence = tuple(Evidence(place, 0, len(word), word, 0.7) for place, word in words.items())
        return Verdict("ok" if evidence else "uncited", evidence, "it is a fake", 0.7)


@dataclass
class FakeLibrary:
    """What `create_app` takes."""

    catalogue: Catalogue
    journal: Journal
    engine: FakeEngine
    retriever: FakeRetriever
    llm: FakeLLM | None = None
    verifier: FakeVerifier = field(default_factory=FakeVerifier)
    embedder: FakeEmbedder = field(default_factory=FakeEmbedder)
    waiting_for: str | None = None

    def ingest(self, sources: Iterable[Source]) -> IngestReport:
        """As the real one, with vectors of no meaning."""
        return ingest(self.catalogue, Models(FakeEmbedder()), sources, catch_up=lambda revision: True)

    def not_ready(self) -> str | None:
        """What it was told."""
        return self.waiting_for


def fake_library(folder: Path, papers: Sequence[RawPaper] = PAPERS) -> FakeLibrary:
    """A library of `papers` in a fresh SQLite file."""
    database = open_database(sqlite_url(folder / "catalogue.sqlite"))
    catalogue = Catalogue(database)
    if papers:
        catalogue.commit([read_record(paper) for paper in papers])
    return FakeLibrary(catalogue, Journal(database), FakeEngine(catalogue), FakeRetriever(catalogue))


@contextlib.contextmanager
def served(app: FastAPI, http: type[ImpatientProtocol] = ImpatientProtocol) -> Iterator[str]:
    """The address of a real server on a free loopback port, in a thread of its own."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, http=http, log_config=None, lifespan="on", timeout_graceful_shutdown=5))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.005)
            assert thread.is_alive(), "the server did not start"
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)
