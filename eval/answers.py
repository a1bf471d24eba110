"""Asks a question set: concurrently, resumably, within limits. Each answer is on the disk, and judged, before the next begins."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from eval.judges import Judge, judgement_key
from eval.question_set import Question, QuestionSet, pids
from eval.runs import (
    AnswerRow,
    Appender,
    Failure,
    Judgement,
    Manifest,
    Record,
    UsageRow,
    begin,
    digest_of,
    judgements_file,
    manifest_of,
    newest,
    read_rows,
    replace_file,
)
from rag.build import Library
from rag.cli_ask import code_of
from rag.errors import FootnoteError
from rag.prompts import load_prompt
from rag.query_engine import TOP_N, QueryEngine
from rag.wire import answer_to_json

logger = logging.getLogger(__name__)

AT_ONCE = 4
"""Questions asked at the same time."""

Kind = TypeVar("Kind", Record, Judgement)


@dataclass(frozen=True, slots=True)
class Limits:
    """Where to stop before a further question is begun: tokens of this run, and cost in the currency of the prices, which are for
    a million tokens."""

    tokens: int | None = None
    cost: float | None = None
    price_in: float = 0.0
    price_out: float = 0.0

    def reached(self, used: UsageRow) -> bool:
        """Whether nothing more may be begun."""
        return (self.tokens is not None and used.tokens >= self.tokens) or (
            self.cost is not None and self.paid(used) >= self.cost
        )

    def paid(self, used: UsageRow) -> float:
        """What these tokens cost."""
        return (used.prompt_tokens * self.price_in + used.completion_tokens * self.price_out) / 1e6


@dataclass
class Asking:
    """A run in progress. `decided` is asked after each judged answer; once it says yes no further question is begun."""

    engine: QueryEngine
    judge: Judge | None
    folder: Path
    cache: Path
    manifest: Manifest
    limits: Limits = Limits()
    on_done: Callable[[], None] = lambda: None
    decided: Callable[[Question, Record, Judgement | None], bool] = lambda question, record, judgement: False
    at_once: int = AT_ONCE
    used: UsageRow = field(default_factory=UsageRow)
    stopped: str = ""
    _answers: Appender = field(init=False)
    _judgements: Appender | None = field(init=False, default=None)

    async def run(self, questions: Sequence[Question]) -> str:
        """Asks what is not answered yet and judges what is not judged yet. Returns why it stopped early, or nothing."""
        begin(self.folder, self.manifest, questions)
        records = newest(self.folder)
        judged = self._judged()
        self._answers = Appender(self.folder / "answers.jsonl")
        self._judgements = Appender(judgements_file(self.folder, self.judge.name)) if self.judge else None
        waiting = iter(questions)
        try:
            workers = (self._work(waiting, records, judged) for _ in range(self.at_once))
            await asyncio.gather(*workers)
        finally:
            self._answers.close()
            if self._judgements:
                self._judgements.close()
        return self.stopped

    def _judged(self) -> dict[str, Judgement]:
        if self.judge is None:
            return {}
        return {one.id: one for one in read_rows(judgements_file(self.folder, self.judge.name), Judgement)}

    async def _work(self, waiting: Iterator[Question], records: dict[str, Record], judged: dict[str, Judgement]) -> None:
        """Takes one question after the other until none is left or a limit is reached."""
        for question in waiting:  # one iterator, shared by all workers
            if not self.stopped and self.limits.reached(self.used):
                self.stopped = f"stopped at the limit: {self.used.tokens:,} tokens used, {self.limits.paid(self.used):.2f} paid"
            if self.stopped:
                return
            record = records.get(question.id)
            if record is None or record.error is not None:
                record = await self._answered(question)
                self._answers.add(record)
            judgement = await self._judgement(question, record, judged.get(question.id))
            if self.decided(question, record, judgement):
                self.stopped = "stopped: the gate is decided"
            self.on_done()

    async def _answered(self, question: Question) -> Record:
        """From the cache, or the engine; an error is a record like any other."""
        key = answer_key(self.manifest, question)
        if (kept := read_cached(self.cache, key, Record)) is not None:
            return kept.model_copy(update={"id": question.id, "cached": True})
        started = time.perf_counter()
        try:
            answer = await self.engine.answer(
                question.question, history=question.turns, filters=question.narrowed, top_n=self.manifest.top_n
            )
        except FootnoteError as error:
            return failed(question, key, code_of(error), error, started)
        except Exception as error:
            logger.exception("question %s", question.id)
            return failed(question, key, type(error).__name__, error, started)
        row = AnswerRow.model_validate(answer_to_json(answer))
        self._count(row.usage)
        seconds = round(time.perf_counter() - started, 3)
        record = Record(id=question.id, key=key, answer=row, seconds=seconds, failures=answer.failures)
        if not answer.failures:  # what an LLM failed at is worth another try
            write_cached(self.cache, key, record)
        return record

    async def _judgement(self, question: Question, record: Record, before: Judgement | None) -> Judgement | None:
        if self.judge is None or self._judgements is None or record.answer is None:
            return None
        key = judgement_key(self.judge.name, question, record.answer, self.manifest.papers_digest)
        if before and before.key == key and not before.error:
            return before
        kept = read_cached(self.cache, key, Judgement)
        if kept is None:
            kept = await self._fresh_judgement(self.judge, question, record.answer, key)
            self._count(kept.usage)
            if not kept.error:
                write_cached(self.cache, key, kept)
        kept = kept.model_copy(update={"id": question.id})
        self._judgements.add(kept)
        return kept

    async def _fresh_judgement(self, judge: Judge, question: Question, answer: AnswerRow, key: str) -> Judgement:
        """A judge that fails leaves the answer unjudged, which counts against what was submitted and is said."""
        try:
            return (await judge.judge(question, answer)).model_copy(update={"key": key})
        except FootnoteError as error:
            return Judgement(id=question.id, key=key, judge=judge.name, error=str(error))

    def _count(self, usage: UsageRow) -> None:
        self.used = UsageRow(
            prompt_tokens=self.used.prompt_tokens + usage.prompt_tokens,
            completion_tokens=self.used.completion_tokens + usage.completion_tokens,
        )


def failed(question: Question, key: str, code: str, error: Exception, started: float) -> Record:
    """The record of a question that has no answer."""
    seconds = round(time.perf_counter() - started, 3)
    return Record(id=question.id, key=key, error=Failure(code=code, message=str(error)), seconds=seconds)


def answer_key(manifest: Manifest, question: Question) -> str:
    """A hash of all that an answer depends on: question, history, filters, papers, code, prompts, models, settings."""
    asked = question.model_dump(mode="json", include={"question", "history", "filters"})
    return digest_of([manifest.answer_digest, asked])


def cached_file(cache: Path, key: str) -> Path:
    return cache / key[:2] / f"{key}.json"


def read_cached(cache: Path, key: str, kind: type[Kind]) -> Kind | None:
    """None where it is not there, or is damaged."""
    try:
        return kind.model_validate_json(cached_file(cache, key).read_bytes())
    except (OSError, ValueError):
        return None


def write_cached(cache: Path, key: str, row: Record | Judgement) -> None:
    """Whole or not at all."""
    file = cached_file(cache, key)
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, row.model_dump_json(exclude_defaults=True))


def describe(library: Library, question_set: QuestionSet, top_n: int = TOP_N, **more: object) -> Manifest:
    """What a run on this library is made of."""
    settings, engine = library.settings, library.engine
    said = {name: str(getattr(settings, name)) for name in ("embedding", "verify", "unsupported", "llm_model")}
    prompts = ("answer", "standalone", *(["verify"] if settings.verify == "llm" else []))
    return manifest_of(
        question_set,
        (one for one, _ in pids(library)),
        settings=said,
        prompts={name: load_prompt(name).version for name in prompts} if library.llm else {},
        models={
            "generator": engine.parts.generator.name,
            "verifier": engine.parts.verifier.name,
            "embedding": library.embedder.model,
            "other scripts": str(library.reads_other_scripts),
        },
        top_n=top_n,
        **more,
    )


def in_order(questions: Sequence[Question], seed: int | None) -> list[Question]:
    """As they stand, or in an order drawn by `seed`: what is stopped early must have been asked in a random one."""
    drawn = list(questions)
    if seed is not None:
        random.Random(seed).shuffle(drawn)
    return drawn
