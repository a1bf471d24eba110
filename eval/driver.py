"""`footnote eval questions` from start to end: a library, a judge, the questions, and what came of them."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from eval.answers import Asking, Limits, describe, in_order
from eval.gate import Bound, Deciding
from eval.judge_quality import measure_judge
from eval.judges import Judge, LocalJudge
from eval.measures import Seen
from eval.question_set import Question, QuestionSet, read_question_set, with_pids
from eval.runs import Judgement, Record, Run, judgements_file, read_run, replace_file
from eval.shelves import Distractors, home_of, open_copy, open_papers
from rag.build import Library, make_llm
from rag.errors import InputError
from rag.ingest import Step
from rag.settings import Settings

JudgeKind = Literal["local", "llm", "none"]


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """Who judges: the LLM is the one that answers unless another is named."""

    kind: JudgeKind = "local"
    model: str = ""
    base_url: str = ""
    api_key: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to ask of what. Without `papers`, of a copy of the library in the data folder. With `until_decided` the questions come
    in a random order and asking stops once the `bounds` are decided."""

    file: Path
    out: Path | None = None
    papers: tuple[Path, ...] = ()
    distractors: Distractors | None = None
    judge: JudgeChoice = JudgeChoice()
    limits: Limits = field(default_factory=Limits)
    bounds: tuple[Bound, ...] = ()
    until_decided: bool = False
    at_once: int = 4
    seed: int = 0
    labels: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """The run, why it stopped early if it did, and the bounds it was deciding, if it was."""

    run: Run
    stopped: str
    deciding: Deciding | None


@dataclass
class InOrder:
    """Hands judged answers to `deciding` in the order they were asked in, whichever came first: which answers are fast must not
    decide when to stop."""

    deciding: Deciding
    order: Sequence[Question]
    waiting: dict[str, Seen] = field(default_factory=dict)

    def __call__(self, question: Question, record: Record, judgement: Judgement | None) -> bool:
        self.waiting[question.id] = Seen(question, record, judgement)
        while self.deciding.decided is None and self.deciding.asked < len(self.order):
            seen = self.waiting.pop(self.order[self.deciding.asked].id, None)
            if seen is None:
                break
            self.deciding.add(seen)
        return self.deciding.decided is not None


def ask_set(
    settings: Settings,
    plan: Plan,
    on_step: Callable[[Step], None] = lambda step: None,
    progress: Callable[[int], AbstractContextManager[Callable[[], None]]] | None = None,
) -> Finished:
    """Asks, judges, and holds the judge against labelled claims. `progress(n)` gives what is called after each question. Raises
    InputError."""
    question_set = read_question_set(plan.file)
    deciding = Deciding(plan.bounds) if plan.until_decided else None
    with ExitStack() as stack:
        library = stack.enter_context(opened(settings, plan, stack, on_step))
        judge = make_judge(plan.judge, library)
        questions, asking = prepared(settings, plan, question_set, library, judge)
        order = in_order(questions, plan.seed if deciding else None)
        if deciding:
            asking.decided = InOrder(deciding, order)
        if progress:
            asking.on_done = stack.enter_context(progress(len(order)))
        stopped = asyncio.run(asking.run(order))
        if judge:
            write_quality(judge, plan.labels, asking)
    said = judge is not None and judgements_file(asking.folder, judge.name).stat().st_size > 0
    return Finished(read_run(asking.folder, judge.name if judge and said else None), stopped, deciding)


def opened(settings: Settings, plan: Plan, stack: ExitStack, on_step: Callable[[Step], None]) -> Library:
    """The library to ask."""
    if plan.papers:
        return open_papers(settings, plan.papers, plan.distractors, on_step)
    if plan.distractors:
        raise InputError("--distractors puts papers among those of --papers: name these too.")
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="footnote-eval-"))
    return open_copy(settings, Path(folder) / "library")


def prepared(
    settings: Settings, plan: Plan, question_set: QuestionSet, library: Library, judge: Judge | None
) -> tuple[list[Question], Asking]:
    """The questions, gold resolved, and the run they go into."""
    questions, missing = with_pids(question_set.questions, library)
    count = plan.distractors.count if plan.distractors else 0
    manifest = describe(library, question_set, distractors=count, seed=plan.seed, missing_gold=tuple(missing))
    home = home_of(settings)
    folder = plan.out or home / "runs" / f"{plan.file.stem}-{manifest.digest}"
    asking = Asking(library.engine, judge, folder, home / "cache", manifest, plan.limits, at_once=plan.at_once)
    return questions, asking


def make_judge(choice: JudgeChoice, library: Library) -> Judge | None:
    """Raises InputError where an LLM is asked for and none is configured."""
    if choice.kind == "none":
        return None
    if choice.kind == "local":
        return LocalJudge(library.embedder, library.indexes.keyword, library.catalogue)
    from eval.judge_llm import LLMJudge, judging_llm

    settings = library.settings
    llm = make_llm(settings)
    if llm is None and not choice.model:
        raise InputError("--judge llm wants an LLM: set FOOTNOTE_LLM_MODEL, or name one with --judge-model and --judge-url.")
    return LLMJudge(judging_llm(settings, choice.model, choice.base_url, choice.api_key))


def write_quality(judge: Judge, labels: Sequence[Path], asking: Asking) -> None:
    """`judge-quality.json`: how the judge does on claims whose label is known."""
    quality = asyncio.run(measure_judge(judge, labels, asking.cache))
    rows = [asdict(one) for one in quality]
    replace_file(asking.folder / "judge-quality.json", json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
