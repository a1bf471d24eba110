"""A run's folder: `manifest.json`, `questions.jsonl`, and append-only `answers.jsonl` and `judgements-<judge>.jsonl`.

A killed run leaves at worst half a line at a file's end; it is cut off when the run goes on.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from eval.question_set import Question, QuestionSet, pid
from rag.errors import InputError
from rag.types import Status, Support

ROOT = Path(__file__).parent.parent
CODE = ("rag/**/*.py", "rag/**/*.json", "prompts/**/*.md")
"""What an answer depends on, besides papers, models and settings."""

DRIVER = ("eval/runs.py", "eval/answers.py")


class Row(BaseModel):
    """A line of a file of ours; keys it does not know are left alone."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class PaperRow(Row):
    """A paper as an Answer shows it."""

    paper_id: str
    abstract: str
    title: str | None = None
    authors: tuple[str, ...] = ()
    authors_truncated: bool = False
    category: str | None = None
    venue: str | None = None
    year: int | None = None
    cite_as: str = ""

    @property
    def pid(self) -> str:
        return pid(self.abstract)


class QuoteRow(Row):
    """Words of the paper behind a marker."""

    marker: int
    start: int
    end: int
    quote: str


class EvidenceRow(QuoteRow):
    """The words a sentence rests on."""

    score: float = 0.0


class SentenceRow(Row):
    """One sentence of an answer."""

    text: str
    markers: tuple[int, ...]
    basis: Literal["abstract", "metadata"] = "abstract"
    evidence: tuple[EvidenceRow, ...] = ()
    support: Support = "ok"
    reason: str = ""
    score: float = 0.0


class CitationRow(QuoteRow):
    """What a marker stands for."""

    paper: PaperRow


class ScoredRow(Row):
    """A retrieved paper."""

    paper: PaperRow
    score: float


class UsageRow(Row):
    """Tokens."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


class AnswerRow(Row):
    """An Answer as DESIGN gives it, read back."""

    status: Status
    text: str
    sentences: tuple[SentenceRow, ...] = ()
    citations: tuple[CitationRow, ...] = ()
    papers: tuple[ScoredRow, ...] = ()
    generator: str = ""
    prompt_version: str | None = None
    verifier: str = ""
    usage: UsageRow = UsageRow()
    timings_ms: dict[str, float] = {}
    notice: str | None = None
    invalid_markers: int = 0


class Failure(Row):
    """Why there is no answer."""

    code: str
    message: str


class Record(Row):
    """A line of `answers.jsonl`: the answer, or the failure in its place. `cached` ones took no time of their own; `failures`
    are an LLM's errors that were overcome."""

    id: str
    key: str
    answer: AnswerRow | None = None
    error: Failure | None = None
    seconds: float = 0.0
    cached: bool = False
    failures: tuple[str, ...] = ()


Word = Literal["supported", "partly", "contradicted", "not_stated", "unjudged"]


class ClaimVerdict(Row):
    """A judge's word on one claim (a sentence of an answer, by its place from 0). `alone` are the markers whose paper bears it
    out by itself, `needed` those without which the rest would not; `elsewhere` are pids of shown papers, not cited, that bear it
    out; `quote` is what the judge rests on; `score` in [0, 1] where the judge gives one."""

    claim: int
    word: Word
    alone: tuple[int, ...] = ()
    needed: tuple[int, ...] = ()
    elsewhere: tuple[str, ...] = ()
    quote: str = ""
    reason: str = ""
    score: float | None = None


class Judgement(Row):
    """A line of `judgements-<judge>.jsonl`: one answer. `points[i]` tells whether point i is covered, `must_not[i]` whether the
    forbidden thing is said; None where the judge cannot tell."""

    id: str
    key: str
    judge: str
    claims: tuple[ClaimVerdict, ...] = ()
    points: tuple[bool | None, ...] = ()
    must_not: tuple[bool | None, ...] = ()
    usage: UsageRow = UsageRow()
    error: str = ""


class Machine(Row):
    """Where a run was made."""

    system: str
    cpu: str
    cores: int
    python: str


class Manifest(Row):
    """What a run was made of. Two runs of one `digest` asked the same of the same."""

    question_set: str
    set_digest: str
    questions: int
    papers: int
    papers_digest: str
    commit: str
    code_digest: str
    settings: dict[str, str]
    prompts: dict[str, str]
    models: dict[str, str]
    top_n: int
    distractors: int = 0
    seed: int = 0
    missing_gold: tuple[str, ...] = ()
    machine: Machine

    @property
    def digest(self) -> str:
        """Of everything an answer depends on; the machine and the commit (whose code has a digest) are not part of it."""
        content = self.model_dump(mode="json", exclude={"machine", "commit", "question_set", "missing_gold"})
        return digest_of(content)

    @property
    def answer_digest(self) -> str:
        """The same without the set: what one question's answer depends on."""
        left_out = {"machine", "commit", "question_set", "missing_gold", "set_digest", "questions", "seed", "distractors"}
        return digest_of(self.model_dump(mode="json", exclude=left_out))


@dataclass(frozen=True, slots=True)
class Run:
    """A finished or half-finished run, read whole. `records` and `judgements` are by question id, the last line winning."""

    folder: Path
    manifest: Manifest
    questions: tuple[Question, ...]
    records: dict[str, Record]
    judgements: dict[str, Judgement]
    judge: str

    @property
    def name(self) -> str:
        return self.folder.name


def digest_of(content: object) -> str:
    """16 hex digits of the SHA-256 of a value as JSON."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode("utf8", "replace")).hexdigest()[:16]


def code_digest(root: Path = ROOT, patterns: Sequence[str] = (*CODE, *DRIVER)) -> str:
    """Of the engine's code and prompts as they lie on the disk, committed or not; or of the files of other patterns."""
    files = sorted({file for pattern in patterns for file in root.glob(pattern)})
    whole = hashlib.sha256()
    for file in files:
        whole.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes() + b"\0")
    return whole.hexdigest()[:16]


def commit_of(root: Path = ROOT) -> str:
    """The checked-out commit, `+` behind it when files differ from it; `unknown` where there is no git."""
    try:
        git = ["git", "-C", str(root)]
        head = subprocess.run(
            [*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed.strip() else "")


def this_machine() -> Machine:
    """System, processor, cores and Python of this process."""
    cpu = platform.processor() or platform.machine()
    try:
        names = [line for line in Path("/proc/cpuinfo").read_text(encoding="utf8").splitlines() if line.startswith("model name")]
        cpu = names[0].partition(":")[2].strip() if names else cpu
    except OSError:
        pass
    return Machine(system=platform.platform(), cpu=cpu, cores=os.cpu_count() or 1, python=platform.python_version())


def begin(folder: Path, manifest: Manifest, questions: Iterable[Question]) -> None:
    """Makes the folder, or takes up the run that is in it. Raises InputError if that one was made of something else."""
    file = folder / "manifest.json"
    if file.exists():
        before = read_manifest(folder)
        differing = [
            name
            for name, value in manifest.model_dump(mode="json", exclude={"machine", "commit"}).items()
            if before.model_dump(mode="json")[name] != value
        ]
        if differing:
            raise InputError(
                f"{folder} holds a run made with other {', '.join(differing)}: its answers and new ones cannot be one run. "
                "Give another folder with --out."
            )
        return
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / "questions.jsonl", "".join(one.model_dump_json(exclude_defaults=True) + "\n" for one in questions))
    replace_file(file, manifest.model_dump_json(indent=1) + "\n")


def replace_file(file: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    draft = file.with_name(file.name + ".part")
    draft.write_text(text, encoding="utf8")
    draft.replace(file)


def read_manifest(folder: Path) -> Manifest:
    """Raises InputError."""
    try:
        return Manifest.model_validate_json((folder / "manifest.json").read_bytes())
    except OSError as error:
        raise InputError(f"{folder} holds no run; make one with: footnote eval questions SET --out {folder}") from error
    except ValidationError as error:
        raise InputError(f"{folder / 'manifest.json'} is no run's manifest: {error.errors()[0]['msg']}") from error


def read_run(folder: Path, judge: str | None = None) -> Run:
    """`judge` picks among several judges' words; by default the last one that judged. Raises InputError."""
    manifest = read_manifest(folder)
    questions = tuple(read_rows(folder / "questions.jsonl", Question))
    files = sorted(folder.glob("judgements-*.jsonl"), key=lambda file: (file.stat().st_mtime, file.name))
    by_judge = {rows[0].judge: rows for file in files if (rows := list(read_rows(file, Judgement)))}
    if judge is not None and judge not in by_judge:
        raise InputError(f"{folder} has no words of the judge {judge}; it has: {', '.join(by_judge) or 'none'}.")
    chosen = judge or next(reversed(by_judge), "")
    judgements = {one.id: one for one in by_judge.get(chosen, ())}
    return Run(folder, manifest, questions, newest(folder), judgements, chosen)


def judgements_file(folder: Path, judge: str) -> Path:
    """Where a judge's words go."""
    return folder / f"judgements-{re.sub(r'[^0-9A-Za-z@._-]', '-', judge)}.jsonl"


def newest(folder: Path) -> dict[str, Record]:
    """The last record of each question."""
    return {one.id: one for one in read_rows(folder / "answers.jsonl", Record)}


Model = TypeVar("Model", bound=BaseModel)


def read_rows(file: Path, kind: type[Model]) -> Iterator[Model]:
    """The whole lines of a file; nothing where there is no file. Raises InputError naming a line that is wrong."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return
    for number, line in enumerate(content[: content.rfind(b"\n") + 1].split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            yield kind.model_validate_json(line)
        except ValidationError as error:
            raise InputError(f"{file}, line {number}: {error.errors()[0]['msg']}") from error


class Appender:
    """Adds lines to a file, each whole on the disk before the next; first cuts off half a line that a kill left."""

    def __init__(self, file: Path) -> None:
        file.touch()
        content = file.read_bytes()
        if whole := content.rfind(b"\n") + 1:
            os.truncate(file, whole)
        elif content:
            os.truncate(file, 0)
        self._file = file.open("ab")

    def add(self, row: BaseModel) -> None:
        """One line."""
        self._file.write(row.model_dump_json(exclude_defaults=True).encode("utf8", "replace") + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def manifest_of(
    question_set: QuestionSet,
    papers: Iterable[str],
    settings: dict[str, str],
    prompts: dict[str, str],
    models: dict[str, str],
    top_n: int,
    **more: object,
) -> Manifest:
    """The manifest of a run made here and now; `papers` are the pids of the library."""
    known = sorted(papers)
    return Manifest(
        question_set=question_set.name,
        set_digest=question_set.digest[:16],
        questions=len(question_set.questions),
        papers=len(known),
        papers_digest=digest_of(known),
        commit=commit_of(),
        code_digest=code_digest(),
        settings=settings,
        prompts=prompts,
        models=models,
        top_n=top_n,
        machine=this_machine(),
        **more,  # type: ignore[arg-type]  # pydantic checks them
    )
