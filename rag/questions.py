"""Question files: JSON Lines of `{"question", "history"?, "filters"?}`; other keys are left to those who know them."""

from __future__ import annotations

from dataclasses import dataclass, fields

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag.errors import InputError
from rag.types import Filters, Role, Turn


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the turns before it and what it is narrowed to."""

    question: str
    history: tuple[Turn, ...] = ()
    filters: Filters = Filters()


class TurnRow(BaseModel):
    """One message of a history as a file writes it."""

    role: Role
    content: str
    paper_ids: tuple[str, ...] = ()


class FiltersRow(BaseModel):
    """Filters as a file writes them; a mistyped name is refused, since it would silently widen the question."""

    model_config = ConfigDict(extra="forbid")

    year_min: int | None = None
    year_max: int | None = None
    venues: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    paper_ids: tuple[str, ...] = ()


class QuestionRow(BaseModel):
    """One line of a question file."""

    question: str = Field(min_length=1)
    history: tuple[TurnRow, ...] | None = None
    filters: FiltersRow | None = None


def read_question(line: str | bytes) -> Asked:
    """The question on one line of a file. Raises InputError that names the key at fault."""
    try:
        row = QuestionRow.model_validate_json(line)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise InputError(f"{where}: {fault['msg']}" if where else fault["msg"]) from error
    history = tuple(Turn(turn.role, turn.content, turn.paper_ids) for turn in row.history or ())
    filters = Filters(**row.filters.model_dump()) if row.filters else Filters()
    return Asked(row.question, history, filters)


def completed(own: Filters, general: Filters) -> Filters:
    """A question's own filters, and the general ones for fields it leaves open."""
    return Filters(*(getattr(own, field.name) or getattr(general, field.name) for field in fields(Filters)))
