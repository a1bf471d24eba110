"""Question sets: JSON Lines of `{id, kind, lang, question, gold, also?, points, must_not?, history?, filters?, note?}`.

`gold` names papers by pid (the first 10 hex digits of the SHA-256 of the stripped abstract), by paper_id or by any other name the
catalogue resolves; `also` are papers as good as gold. An unanswerable question has no gold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag.build import Library
from rag.errors import InputError, NotFound
from rag.questions import FiltersRow, TurnRow
from rag.types import Filters, Turn

UNANSWERABLE = "unanswerable"


class Question(BaseModel):
    """One line of a question set."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str = Field(min_length=1)
    question: str = Field(min_length=1)
    kind: str = "fact"
    lang: str = "en"
    gold: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    history: tuple[TurnRow, ...] = ()
    filters: FiltersRow | None = None
    note: str = ""

    @property
    def sort(self) -> str:
        """The kind, and for facts and unanswerable questions the first word of their note: `fact, specific`."""
        detail = self.note.split(";")[0].strip()
        return f"{self.kind}, {detail}" if detail and self.kind in ("fact", UNANSWERABLE) else self.kind

    @property
    def is_answerable(self) -> bool:
        return self.kind != UNANSWERABLE

    @property
    def has_false_premise(self) -> bool:
        """Either abstaining or correcting the premise is right, so neither is scored."""
        return not self.is_answerable and self.note.startswith("false_premise")

    @property
    def turns(self) -> tuple[Turn, ...]:
        return tuple(Turn(turn.role, turn.content, turn.paper_ids) for turn in self.history)

    @property
    def narrowed(self) -> Filters:
        return Filters(**self.filters.model_dump()) if self.filters else Filters()


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A file's questions, in its order; `digest` is the SHA-256 of the file's bytes."""

    name: str
    digest: str
    questions: tuple[Question, ...]


def read_question_set(path: Path) -> QuestionSet:
    """Raises InputError naming the line at fault: no question may be dropped silently."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    questions = tuple(read_line(line, f"{path}, line {n}") for n, line in enumerate(content.splitlines(), 1) if line.strip())
    if not questions:
        raise InputError(f"{path} holds no questions.")
    seen: set[str] = set()
    for one in questions:
        if one.id in seen:
            raise InputError(f"{path} has two questions with the id {one.id}: give each an id of its own.")
        seen.add(one.id)
    return QuestionSet(path.name, hashlib.sha256(content).hexdigest(), questions)


def read_line(line: bytes, where: str) -> Question:
    """Raises InputError."""
    try:
        question = Question.model_validate_json(line)
    except ValidationError as error:
        fault = error.errors()[0]
        raise InputError(f"{where}: {'.'.join(map(str, fault['loc']))} {fault['msg']}".replace(":  ", ": ")) from error
    if question.is_answerable != bool(question.gold):
        raise InputError(f"{where}: an {'answerable' if question.is_answerable else 'unanswerable'} question "
                         f"{'needs' if question.is_answerable else 'has no'} gold papers.")  # fmt: skip
    return question


def pid(abstract: str) -> str:
    """How question sets name a paper, whatever its id is in a library."""
    return hashlib.sha256(abstract.strip().encode("utf8", "replace")).hexdigest()[:10]


def pids(library: Library) -> Iterator[tuple[str, str]]:
    """(pid, paper_id) of every paper."""
    after: str | None = None
    while page := library.catalogue.list(after=after, limit=1000):
        yield from ((pid(paper.abstract), paper.paper_id) for paper in page)
        after = page[-1].paper_id


def with_pids(questions: Iterable[Question], library: Library) -> tuple[list[Question], list[str]]:
    """The questions with gold and also as pids, and the names that stand for no paper here. Raises InputError if none does."""
    known = dict(pids(library))
    missing: dict[str, None] = {}

    def resolved(name: str) -> str:
        if name in known:
            return name
        try:
            (paper,) = library.catalogue.papers([library.catalogue.resolve(name)])
        except (NotFound, ValueError):
            missing[name] = None
            return name
        return pid(paper.abstract)

    found = [
        one.model_copy(update={"gold": tuple(map(resolved, one.gold)), "also": tuple(map(resolved, one.also))})
        for one in questions
    ]
    named = {name for one in found for name in one.gold}
    if named and named <= set(missing):
        raise InputError("The library holds no gold paper of these questions: name their papers with --papers or --data.")
    return found, list(missing)
