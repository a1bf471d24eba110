"""What goes over the wire, as pydantic models: what a client may send, and the shape of what it gets.

Responses are written by `rag/wire.py` (one JSON for every door); the models here describe them in the OpenAPI document, and a
test holds the two together.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from rag.types import Basis, Filters, Role, Status, Support, Turn

QUESTION_LIMIT = 4_000
TEXT_LIMIT = 100_000
NO_NUL = "\ufffd"


def without_nul(text: str) -> str:
    """Postgres cannot hold NUL in a text, so it becomes U+FFFD at the door."""
    return text.replace("\x00", NO_NUL)


def without_fraction(value: object) -> object:
    """JSON has one kind of number: 8.0 is an integer there. In a query it is text, and digits are asked for."""
    if isinstance(value, str) and not value.lstrip("+-").isdecimal():
        raise ValueError("must be a whole number")
    return int(value) if isinstance(value, float) and value.is_integer() else value


INTEGRAL = BeforeValidator(without_fraction)
"""Stands last in an `Annotated`: what stands after it would be missing in the JSON schema."""

Text = Annotated[str, Field(max_length=TEXT_LIMIT), AfterValidator(without_nul)]
"""The limits of a text stand before the validator, after which they would count `items`."""
Question = Annotated[
    str,
    Field(min_length=1, max_length=QUESTION_LIMIT, pattern=r"\S", examples=["Which method lowers memory use in training?"]),
    AfterValidator(without_nul),
]
Name = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(without_nul)]
Year = Annotated[int, Field(ge=0, le=9999), INTEGRAL]
PageSize = Annotated[int, Field(ge=1, le=500), INTEGRAL]
TopK = Annotated[int, Field(ge=1, le=50, description="How many papers are retrieved and shown."), INTEGRAL]
Score = Annotated[float, Field(ge=0, le=1)]
Offset = Annotated[int, Field(ge=0, description="In Unicode code points of the abstract.")]


class Request(BaseModel):
    """A body we read: unknown fields and values of another type are refused, not guessed at."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Reply(BaseModel):
    """A body we write."""

    model_config = ConfigDict(extra="forbid")


class FiltersIn(Request):
    """What to narrow a question to. Text matches without case; several values of one field mean any of them."""

    year_min: Year | None = None
    year_max: Year | None = None
    venues: list[Name] = Field(default=[], max_length=100)
    categories: list[Name] = Field(default=[], max_length=100)
    authors: list[Name] = Field(default=[], max_length=100)
    paper_ids: list[Name] = Field(default=[], max_length=1000)

    def value(self) -> Filters:
        """The same, as the engine takes it."""
        return Filters(
            year_min=self.year_min,
            year_max=self.year_max,
            venues=tuple(self.venues),
            categories=tuple(self.categories),
            authors=tuple(self.authors),
            paper_ids=tuple(self.paper_ids),
        )


class InQuery(BaseModel):
    """Query parameters: text, so numbers are read from it; an unknown one is refused like an unknown field."""

    model_config = ConfigDict(extra="forbid")


class FiltersInQuery(InQuery):
    """The filters as query parameters; a name may be given several times."""

    year_min: Year | None = None
    year_max: Year | None = None
    venue: list[Name] = Field(default=[], max_length=100)
    category: list[Name] = Field(default=[], max_length=100)
    author: list[Name] = Field(default=[], max_length=100)

    def filters(self) -> Filters:
        """The same, as the engine takes it."""
        return Filters(self.year_min, self.year_max, tuple(self.venue), tuple(self.category), tuple(self.author))


class SearchQuery(FiltersInQuery):
    """What to search for."""

    question: Question
    top_k: TopK = 10


class PapersQuery(FiltersInQuery):
    """Which papers to list."""

    cursor: Name | None = None
    limit: PageSize = 100


class ConversationsQuery(InQuery):
    """Which conversations to list."""

    cursor: Name | None = None
    limit: PageSize = 50


class TurnIn(Request):
    """An earlier message. `paper_ids` are the papers an answer cited, best first, so that "their method" can be understood."""

    role: Role
    content: Text
    paper_ids: list[Name] = Field(default=[], max_length=100)

    def value(self) -> Turn:
        """The same, as the engine takes it; of what a person said, as much as a question may have."""
        said = self.content[:QUESTION_LIMIT] if self.role == "user" else self.content
        return Turn(self.role, said, tuple(self.paper_ids))


class AskIn(Request):
    """A question; `history` makes it a follow-up."""

    question: Question
    history: list[TurnIn] = Field(default=[], max_length=100)
    filters: FiltersIn = FiltersIn()
    top_k: TopK = 8


class MessageIn(Request):
    """A question in a conversation, whose earlier messages are its history."""

    question: Question
    filters: FiltersIn = FiltersIn()
    top_k: TopK = 8


class ConversationIn(Request):
    """A new conversation; without a title it is named after its first question."""

    title: Annotated[str, Field(max_length=200), AfterValidator(without_nul)] = ""


class FeedbackIn(Request):
    """What somebody thought of an answer; sent again, it replaces what was there."""

    answer_id: Name
    verdict: Literal["up", "down"]
    comment: Annotated[str, Field(max_length=4_000), AfterValidator(without_nul)] = ""


class ClaimIn(Request):
    """A sentence, and the papers it is said to rest on."""

    text: Question
    paper_ids: list[Name] = Field(min_length=1, max_length=20)


class VerifyTextIn(Request):
    """A text with markers: `[n]`, in any common form, stands for the n-th of `paper_ids`."""

    text: Annotated[str, Field(min_length=1, max_length=TEXT_LIMIT, pattern=r"\S"), AfterValidator(without_nul)]
    paper_ids: list[Name] = Field(min_length=1, max_length=100)


class VerifyClaimsIn(Request):
    """Claims, each with the papers it is said to rest on."""

    claims: list[ClaimIn] = Field(min_length=1, max_length=100)


class FormulasIn(Request):
    """Texts that may hold formulas: abstracts, titles, sentences."""

    texts: list[Text] = Field(min_length=1, max_length=8)


class PaperOut(Reply):
    """One work known by its abstract, which is the source's text verbatim."""

    paper_id: str
    title: str | None
    abstract: str
    authors: list[str]
    authors_truncated: bool
    category: str | None
    venue: str | None
    year: int | None
    url: str | None
    doi: str | None
    cite_as: str


class ScoredPaperOut(Reply):
    """A retrieved paper."""

    paper: PaperOut
    score: Score


class EvidenceOut(Reply):
    """`abstract[start:end] == quote` of the paper behind `marker`."""

    marker: Annotated[int, Field(ge=1)]
    start: Offset
    end: Offset
    quote: str
    score: Score


class SentenceOut(Reply):
    """One checked sentence; its text keeps markers and white space."""

    text: str
    markers: list[int]
    basis: Basis
    evidence: list[EvidenceOut]
    support: Support
    reason: str
    score: Score


class CitationOut(Reply):
    """What a marker stands for: the paper and the words quoted at the marker's first use."""

    marker: Annotated[int, Field(ge=1)]
    paper: PaperOut
    quote: str
    start: Offset
    end: Offset


class FiltersOut(Reply):
    """Only the filters that were set."""

    year_min: int | None = None
    year_max: int | None = None
    venues: list[str] = []
    categories: list[str] = []
    authors: list[str] = []
    paper_ids: list[str] = []


class UsageOut(Reply):
    """Tokens counted by the LLM's server; zero without one."""

    prompt_tokens: int
    completion_tokens: int


class AnswerOut(Reply):
    """The Answer object, the same through every door: the sentences' texts joined are `text`, markers run 1..n by first use."""

    answer_id: str
    question: str
    standalone_question: str
    status: Status
    text: str
    sentences: list[SentenceOut]
    citations: list[CitationOut]
    papers: list[ScoredPaperOut]
    generator: str
    prompt_version: str | None
    verifier: str
    filters: FiltersOut
    revision: int
    usage: UsageOut
    timings_ms: dict[str, int]
    notice: str | None
    invalid_markers: int


class VerifyOut(Reply):
    """The sentences as they were read and what was found; markers are places (from 1) in `papers`."""

    verifier: str
    sentences: list[SentenceOut]
    papers: list[PaperOut]
    invalid_markers: Annotated[int, Field(description="Markers that stood for no paper.")]


class KeptAnswerOut(AnswerOut):
    """An answer fetched again, made at catalogue revision `revision`. `stale`: a paper it cites has changed or gone since."""

    created: Annotated[str, Field(description="ISO 8601, UTC.")]
    conversation_id: str | None
    stale: bool


class PapersEvent(Reply):
    """SSE event `papers`, the first: what was retrieved, and the status, which stays."""

    answer_id: str
    status: Status
    standalone_question: str
    filters: FiltersOut
    papers: list[ScoredPaperOut]


class SentenceEvent(Reply):
    """SSE event `sentence`: a checked sentence and the citations that appear in it for the first time."""

    sentence: SentenceOut
    new_citations: list[CitationOut]


class FieldErrorOut(Reply):
    """A field that was refused."""

    field: str
    message: str


class Problem(Reply):
    """An error, by RFC 9457. `code` is for programs, `detail` for people; `errors` lists refused fields."""

    type: Literal["about:blank"]
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldErrorOut] = []


class RejectedOut(Reply):
    """A record that was not taken: `where` in `source`, and why."""

    source: str
    where: str
    reason: str


class IngestReportOut(Reply):
    """What an upload did. `indexed`: whether questions see it already."""

    added: int
    merged: int
    unchanged: int
    skipped: list[RejectedOut]
    rejected: list[RejectedOut]
    revision: int
    indexed: bool
    seconds: dict[str, float]


class FormulaOut(Reply):
    """A formula of a text, its dollars included in `start` and `end`, as a MathML element."""

    start: Offset
    end: Offset
    mathml: str


class FormulasOut(Reply):
    """The formulas of each text, in order."""

    texts: list[list[FormulaOut]]


class PapersPage(Reply):
    """A page of papers; `cursor` leads to the next, null at the end."""

    papers: list[PaperOut]
    cursor: str | None


class SearchOut(Reply):
    """Papers for a question, best first, without an answer."""

    question: str
    papers: list[ScoredPaperOut]


class MessageOut(Reply):
    """One message of a conversation; an assistant's has the id of its answer."""

    role: Role
    content: str
    answer_id: str | None
    created: Annotated[str, Field(description="ISO 8601, UTC.")]


class ConversationHead(Reply):
    """A conversation without its messages."""

    conversation_id: str
    title: str
    created: str
    updated: str
    messages: int


class ConversationsPage(Reply):
    """The caller's conversations, last used first; `cursor` leads to the next page, null at the end."""

    conversations: list[ConversationHead]
    cursor: str | None


class ConversationOut(Reply):
    """A conversation with its messages in order."""

    conversation_id: str
    title: str
    created: str
    updated: str
    messages: list[MessageOut]


class FeedbackOut(Reply):
    """The feedback as it is kept."""

    answer_id: str
    verdict: Literal["up", "down"]
    comment: str


class Health(Reply):
    """The process answers."""

    status: Literal["ok"]


class Readiness(Reply):
    """Questions can be answered, from `papers` papers, as the catalogue stood at `revision`."""

    status: Literal["ready"]
    papers: int
    revision: int
