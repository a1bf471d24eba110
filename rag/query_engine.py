"""One question, one straight line: understand, retrieve, decide, generate, cite, verify."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import Response
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import QueryBundle

from rag.abstain import abstention
from rag.compose import Composition
from rag.counting import counted
from rag.errors import FootnoteError, InputError, LLMRefused, LLMUnavailable
from rag.filters import Names
from rag.intent import Understood
from rag.protocols import Generator, Understanding, Verifier
from rag.retrieve import HybridRetriever, as_node
from rag.types import (
    Answer,
    AnswerDone,
    AnswerEvent,
    Decided,
    DraftDone,
    Drafted,
    Filters,
    PapersFound,
    Piece,
    Retrieved,
    ScoredPaper,
    SentenceReady,
    Status,
    Turn,
    Usage,
)

log = logging.getLogger(__name__)

LONGEST_QUESTION = 8_000
"""Characters of a question; a longer one is a document."""

TOP_N = 8

AT_ONCE = 3
"""Questions whose blocking work (embedding, indexes, catalogue) runs at the same time. More only take Python's lock from each
other: with 8, p95 at 32 clients on 2 cores was a quarter longer, a late health check twice as late."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parts:
    """What a query engine is made of; rag/build.py puts it together.

    `catch_up` brings the indexes to the catalogue's revision and returns it; `names` are what filters in words may mean; `relax`
    says what to do when no paper passes a filter, `count` how many do; `extractive` stands in when the `generator`'s LLM fails
    (without an LLM they are the same).
    """

    catch_up: Callable[[], int]
    names: Callable[[], Names]
    relax: Callable[[Filters], str]
    count: Callable[[Filters], int]
    understanding: Understanding
    retriever: HybridRetriever
    generator: Generator
    extractive: Generator
    verifier: Verifier
    unsupported: Literal["flag", "drop"] = "flag"


@dataclass
class Asked:
    """One question on its way down the line."""

    question: str
    answer_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    started: float = field(default_factory=time.perf_counter)
    timings: dict[str, float] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    revision: int = 0
    understood: Understood = field(init=False)
    papers: list[Retrieved] = field(default_factory=list)
    count: int = 0
    generator: Generator = field(init=False)
    status: Status | None = None
    usage: Usage = Usage()
    invalid_markers: int = 0
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Adds the wall time of its block to `timings` (seconds)."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[stage] = self.timings.get(stage, 0.0) + time.perf_counter() - start

    @property
    def scored(self) -> tuple[ScoredPaper, ...]:
        """The papers as the answer shows them."""
        return tuple(ScoredPaper(found.paper, found.score) for found in self.papers)


class QueryEngine(BaseQueryEngine):
    """Answers questions from papers. A LlamaIndex query engine; `stream` and `answer` give the whole Answer."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(callback_manager=None)
        self.parts = parts
        self._threads: CapacityLimiter | None = None

    async def answer(
        self, question: str, *, history: Sequence[Turn] = (), filters: Filters = Filters(), top_n: int = TOP_N
    ) -> Answer:
        """The answer at once. Raises InputError, Unavailable."""
        async with aclosing(self.stream(question, history=history, filters=filters, top_n=top_n)) as events:
            async for event in events:
                if isinstance(event, AnswerDone):
                    return event.answer
        raise AssertionError("a stream ends with AnswerDone")

    async def stream(
        self, question: str, *, history: Sequence[Turn] = (), filters: Filters = Filters(), top_n: int = TOP_N
    ) -> AsyncGenerator[AnswerEvent, None]:
        """PapersFound, a SentenceReady for each sentence, AnswerDone. Raises InputError, Unavailable before PapersFound."""
        asked = Asked(checked(question))
        await self._understand(asked, history, filters)
        await self._retrieve(asked, top_n)
        composition = Composition(asked.papers)
        async with aclosing(self._verified(asked, composition, history)) as events:
            async for event in events:
                yield event
        yield AnswerDone(self._finished(asked, composition))

    async def _understand(self, asked: Asked, history: Sequence[Turn], filters: Filters) -> None:
        with asked.timed("understand"):
            names = await self._off_the_loop(self.parts.names)
            asked.understood = await self.parts.understanding.understand(asked.question, history, filters, names)
            asked.usage += asked.understood.usage
            asked.notices += [asked.understood.notice] if asked.understood.notice else []

    async def _retrieve(self, asked: Asked, top_n: int) -> None:
        understood = asked.understood

        def find() -> tuple[int, list[Retrieved]]:
            revision = self.parts.catch_up()
            if not understood.search_text:
                return revision, []
            asked.count = self.parts.count(understood.filters) if understood.counts else 0
            found = self.parts.retriever.find(
                understood.search_text, top_k=top_n, filters=understood.filters, exclude=understood.exclude
            )
            return revision, found

        with asked.timed("retrieve"):
            asked.revision, asked.papers = await self._off_the_loop(find)
            if not asked.papers and understood.filters and understood.search_text:
                asked.notices.append(await self._off_the_loop(lambda: self.parts.relax(understood.filters)))

    async def _verified(
        self, asked: Asked, composition: Composition, history: Sequence[Turn]
    ) -> AsyncGenerator[AnswerEvent, None]:
        """The generator's sentences, checked; the papers' own when its LLM fails, or cites nothing, before one was shown. A count
        of papers needs no generator."""
        if asked.count and asked.papers:
            for event in self._counted(asked, composition):
                yield event
            return
        for generator in dict.fromkeys((self.parts.generator, self.parts.extractive)):
            asked.generator = generator
            try:
                async with aclosing(self._attempt(asked, composition, history)) as events:
                    async for event in events:
                        yield event
            except (LLMUnavailable, LLMRefused) as error:
                log.warning("The LLM gave no whole answer: %s", error)
                asked.failures.append(type(error).__name__)
                asked.notices.append(failure_notice(asked.status, error))
            if asked.status is not None:
                return
            composition.clear()
        for event in self._abstained(asked, composition, Decided("not_in_corpus")):
            yield event

    async def _attempt(
        self, asked: Asked, composition: Composition, history: Sequence[Turn]
    ) -> AsyncGenerator[AnswerEvent, None]:
        """PapersFound, which tells the status, waits for the first sentence that a paper bears out; the others follow it."""
        waiting: list[SentenceReady] = []
        async with aclosing(self._pieces(asked, history)) as pieces:
            async for piece in pieces:
                if isinstance(piece, DraftDone):
                    self._note_end(asked, piece)
                elif isinstance(piece, Decided) and piece.status != "answered":
                    for event in self._abstained(asked, composition, piece):
                        yield event
                elif isinstance(piece, Drafted) and (ready := await self._checked(asked, composition, piece)):
                    waiting.append(ready)
                    if asked.status is None and composition.citations:
                        yield self._announced(asked, "answered")
                    while asked.status and waiting:
                        yield waiting.pop(0)

    async def _pieces(self, asked: Asked, history: Sequence[Turn]) -> AsyncGenerator[Piece, None]:
        drafting = asked.generator.generate(
            asked.understood.question, standalone=asked.understood.standalone, papers=asked.papers, history=history
        )
        async with aclosing(drafting):
            while True:
                with asked.timed("generate"):
                    piece = await anext(drafting, None)
                if piece is None:
                    return
                yield piece

    async def _checked(self, asked: Asked, composition: Composition, drafted: Drafted) -> SentenceReady | None:
        with asked.timed("verify"):
            verdict = await self.parts.verifier.verify(drafted, asked.papers)
            asked.usage += verdict.usage
        if self.parts.unsupported == "drop" and verdict.support not in ("ok", "weak"):
            return None
        return composition.add(drafted, verdict)

    def _counted(self, asked: Asked, composition: Composition) -> Iterator[AnswerEvent]:
        asked.generator = self.parts.extractive
        yield self._announced(asked, "answered")
        yield composition.add(*counted(asked.question, asked.count, asked.understood.filters, asked.papers))

    def _abstained(self, asked: Asked, composition: Composition, decided: Decided) -> Iterator[AnswerEvent]:
        yield self._announced(asked, decided.status)
        for drafted, verdict in abstention(decided.status, asked.question, asked.papers, decided.markers):
            yield composition.add(drafted, verdict)

    def _announced(self, asked: Asked, status: Status) -> PapersFound:
        asked.status = status
        understood = asked.understood
        return PapersFound(asked.answer_id, status, understood.standalone, understood.filters, asked.scored)

    def _note_end(self, asked: Asked, done: DraftDone) -> None:
        asked.usage += done.usage
        asked.invalid_markers += done.invalid_markers
        asked.notices += [done.notice] if done.notice else []

    def _finished(self, asked: Asked, composition: Composition) -> Answer:
        assert asked.status is not None
        asked.timings["total"] = time.perf_counter() - asked.started
        return Answer(
            answer_id=asked.answer_id,
            question=asked.question,
            standalone_question=asked.understood.standalone,
            status=asked.status,
            text=composition.text,
            sentences=tuple(composition.sentences),
            citations=tuple(composition.citations),
            papers=asked.scored,
            generator=asked.generator.name,
            prompt_version=asked.generator.prompt_version,
            verifier=self.parts.verifier.name,
            filters=asked.understood.filters,
            revision=asked.revision,
            usage=asked.usage,
            timings_ms={stage: round(seconds * 1000) for stage, seconds in asked.timings.items()},
            notice=" ".join(asked.notices) or None,
            invalid_markers=asked.invalid_markers,
            failures=tuple(asked.failures),
        )

    async def _off_the_loop(self, work: Callable[[], T]) -> T:
        """Runs blocking work on threads of our own, at most AT_ONCE of them."""
        if self._threads is None:
            self._threads = CapacityLimiter(AT_ONCE)
        return await run_sync(work, limiter=self._threads)

    # LlamaIndex's face

    def _query(self, query_bundle: QueryBundle) -> Response:
        return asyncio.run(self._aquery(query_bundle))

    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        answer = await self.answer(query_bundle.query_str)
        nodes = [as_node(scored) for scored in answer.papers]
        return Response(answer.text, source_nodes=nodes, metadata={"status": answer.status, "answer_id": answer.answer_id})

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}


def failure_notice(shown: Status | None, error: FootnoteError) -> str:
    """What the reader is told of an LLM that failed: before anything was `shown` the papers' own sentences stand in."""
    if shown is None:
        return f"{error.told} These are the papers' own sentences."
    return f"{error.told} The answer ends here."


def checked(question: str) -> str:
    """The question without surrounding white space. Raises InputError."""
    question = question.replace("\0", "\ufffd").strip()
    if not any(char.isalnum() for char in question):
        raise InputError("The question has no words: ask something.")
    if len(question) > LONGEST_QUESTION:
        raise InputError(f"The question has {len(question):,} characters; the most is {LONGEST_QUESTION:,}.")
    return question.encode("utf8", "replace").decode("utf8")
