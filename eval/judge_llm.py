"""The LLM judge: one schema-bound call an answer, at temperature 0, and every verdict held against what was asked.

What comes back is not trusted: ids that were not submitted count for nothing, an id said twice in two ways counts as not said,
only what is missing is asked for again, "supported" needs words that stand in a cited abstract, what never comes is `unjudged`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from pydantic import BaseModel, ValidationError

from eval.judges import judgement_key, paper_of
from eval.measures import claims_of
from eval.question_set import Question
from eval.runs import AnswerRow, ClaimVerdict, Judgement, PaperRow, SentenceRow, UsageRow
from rag.build import OPENAI_MODEL
from rag.markers import without_markers
from rag.openai_api import OpenAIChat
from rag.prompts import inert, load_prompt, papers_block
from rag.protocols import LLM
from rag.settings import Settings
from rag.text import clean
from rag.verify_llm import find_quote

CALLS = 3
"""The first, and two for what was missing."""

MAX_TOKENS = 4_000
TEMPERATURE = 0.0

Id = TypeVar("Id")


class SaidOfSentence(BaseModel):
    """One entry of what prompts/judge asks for. Numbers are those of the papers as shown."""

    id: str
    verdict: Literal["supported", "partly", "contradicted", "not_stated"]
    quote: str = ""
    alone: tuple[int, ...] = ()
    needed: tuple[int, ...] = ()
    elsewhere: tuple[int, ...] = ()
    reason: str = ""


class SaidOfPoint(BaseModel):
    """Whether the answer tells a point."""

    id: str
    told: bool


class SaidOfStatement(BaseModel):
    """Whether the answer makes a forbidden statement."""

    id: str
    said: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """The entries of one reply that can be read; one that cannot is as good as missing."""

    sentences: tuple[SaidOfSentence, ...]
    points: tuple[SaidOfPoint, ...]
    statements: tuple[SaidOfStatement, ...]


@dataclass
class Submitted:
    """What an answer's judge is asked: papers by number from 1 (cited ones have their marker's number), and things by id."""

    question: str
    papers: dict[int, PaperRow]
    claims: dict[str, tuple[int, SentenceRow]]
    points: dict[str, str]
    statements: dict[str, str]
    sentences_said: dict[str, SaidOfSentence] = field(default_factory=dict)
    points_said: dict[str, SaidOfPoint] = field(default_factory=dict)
    statements_said: dict[str, SaidOfStatement] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        """The ids that have no entry yet."""
        said = self.sentences_said.keys() | self.points_said.keys() | self.statements_said.keys()
        return [id_ for id_ in (*self.claims, *self.points, *self.statements) if id_ not in said]

    def prompt(self) -> tuple[str, str]:
        """Shows all, and asks for what has not been said yet."""
        papers = [(number, paper_of(row), clean(row.abstract).text) for number, row in self.papers.items()]
        return load_prompt("judge").filled(
            papers=papers_block(papers),
            question=neutral(self.question),
            sentences=block("sentences", [sentence_line(id_, one) for id_, (_, one) in self.claims.items()]),
            points=block("points", [f'<point id="{id_}">{neutral(text)}</point>' for id_, text in self.points.items()]),
            statements=block(
                "statements", [f'<statement id="{id_}">{neutral(text)}</statement>' for id_, text in self.statements.items()]
            ),
            wanted=", ".join(self.missing),
        )

    def take(self, reply: Reply) -> None:
        """Keeps what was asked for and said once, or twice alike."""
        self.sentences_said.update(reconciled(reply.sentences, self.claims))
        self.points_said.update(reconciled(reply.points, self.points))
        self.statements_said.update(reconciled(reply.statements, self.statements))


Entry = TypeVar("Entry", SaidOfSentence, SaidOfPoint, SaidOfStatement)


def reconciled(entries: Sequence[Entry], asked: Mapping[str, object]) -> dict[str, Entry]:
    """By id: those asked for, without those that contradict themselves."""
    found: dict[str, Entry] = {}
    unclear = set()
    for entry in entries:
        if entry.id in asked and found.setdefault(entry.id, entry) != entry:
            unclear.add(entry.id)
    return {id_: entry for id_, entry in found.items() if id_ not in unclear}


def block(name: str, lines: Sequence[str]) -> str:
    """Lines between tags; nothing for no lines."""
    return "\n".join([f"<{name}>", *lines, f"</{name}>"]) if lines else ""


def sentence_line(id_: str, sentence: SentenceRow) -> str:
    """A sentence's words, and apart from them the papers it cites."""
    cited = " ".join(map(str, sentence.markers)) or "none"
    return f'<sentence id="{id_}" cites="{cited}">{neutral(without_markers(sentence.text).strip())}</sentence>'


def neutral(text: str) -> str:
    """`text` with nothing in it that could end or begin a tag."""
    return inert(text).replace("<", "‹").replace(">", "›")


class LLMJudge:
    """An LLM behind any OpenAI-compatible endpoint. Raises LLMUnavailable, LLMRefused."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    @property
    def name(self) -> str:
        """`llm:<model>@<digest of its prompt>`."""
        return f"llm:{self._llm.model}@{load_prompt('judge').version.partition('@')[2]}"

    async def judge(self, question: Question, answer: AnswerRow) -> Judgement:
        """An abstention claims nothing and tells no point: it is not sent."""
        key = judgement_key(self.name, question, answer)
        if answer.status != "answered":
            return Judgement(id=question.id, key=key, judge=self.name)
        asked = submitted(question, answer)
        usage = UsageRow()
        for _ in range(CALLS):
            if not asked.missing:
                break
            usage = await self._ask(asked, usage)
        return Judgement(
            id=question.id,
            key=key,
            judge=self.name,
            claims=tuple(verdict(id_, asked) for id_ in asked.claims),
            points=tuple(asked.points_said[id_].told if id_ in asked.points_said else None for id_ in asked.points),
            must_not=tuple(asked.statements_said[id_].said if id_ in asked.statements_said else None for id_ in asked.statements),
            usage=usage,
            error="the judge left things unsaid" if asked.missing else "",
        )

    async def _ask(self, asked: Submitted, usage: UsageRow) -> UsageRow:
        text, used = await self._llm.complete(*asked.prompt(), json_schema=SCHEMA, max_tokens=MAX_TOKENS)
        asked.take(read_reply(text))
        return UsageRow(
            prompt_tokens=usage.prompt_tokens + used.prompt_tokens,
            completion_tokens=usage.completion_tokens + used.completion_tokens,
        )


def submitted(question: Question, answer: AnswerRow) -> Submitted:
    """The papers cited under their markers' numbers, then the others shown."""
    papers = {citation.marker: citation.paper for citation in answer.citations}
    known = {paper.paper_id for paper in papers.values()}
    others = [one.paper for one in answer.papers if one.paper.paper_id not in known]
    papers.update(enumerate(others, start=max(papers, default=0) + 1))
    return Submitted(
        question.question,
        papers,
        {f"s{number}": pair for number, pair in enumerate(claims_of(answer), start=1)},
        {f"p{number}": text for number, text in enumerate(question.points, start=1)},
        {f"m{number}": text for number, text in enumerate(question.must_not, start=1)},
    )


def read_reply(text: str) -> Reply:
    """Whatever can be read of a reply, entry by entry."""
    try:
        found = json.loads(text)
    except ValueError:
        found = {}
    rows = found if isinstance(found, dict) else {}
    return Reply(
        tuple(entries(rows.get("sentences"), SaidOfSentence)),
        tuple(entries(rows.get("points"), SaidOfPoint)),
        tuple(entries(rows.get("statements"), SaidOfStatement)),
    )


def entries(given: object, kind: type[Entry]) -> list[Entry]:
    """Those entries of a list that are as asked for."""
    kept = []
    for row in given if isinstance(given, list) else []:
        try:
            kept.append(kind.model_validate(row))
        except ValidationError:
            continue
    return kept


def verdict(id_: str, asked: Submitted) -> ClaimVerdict:
    """The judge's word as far as it stands: "supported" only with a citation, and with words that are in a cited abstract."""
    place, sentence = asked.claims[id_]
    said = asked.sentences_said.get(id_)
    if said is None:
        return ClaimVerdict(claim=place, word="unjudged", reason="the judge gave no verdict")
    word, reason = said.verdict, said.reason
    if word == "supported" and not sentence.markers:
        word, reason = "not_stated", "cites nothing"
    cited = [asked.papers[marker] for marker in sentence.markers if marker in asked.papers]
    if word == "supported" and not any(stands_in(said.quote, paper, sentence) for paper in cited):
        word, reason = "partly", "the judge's quotation does not stand in a cited paper"
    supported = word == "supported"
    return ClaimVerdict(
        claim=place,
        word=word,
        alone=tuple(marker for marker in sentence.markers if supported and marker in said.alone),
        needed=tuple(marker for marker in sentence.markers if supported and needs(marker, said, sentence)),
        elsewhere=tuple(
            asked.papers[number].pid for number in said.elsewhere if number in asked.papers and number not in sentence.markers
        ),
        quote=said.quote,
        reason=" ".join(reason.split())[:200],
    )


def stands_in(quote: str, paper: PaperRow, sentence: SentenceRow) -> bool:
    """Whether the quotation is the abstract's, or for a sentence on authors, year and the like, one of the paper's fields."""
    if find_quote(paper.abstract, quote):
        return True
    fields = " | ".join(map(str, (paper.title, ", ".join(paper.authors), paper.year, paper.venue, paper.category)))
    return sentence.basis == "metadata" and bool(quote.strip()) and quote.casefold() in fields.casefold()


def needs(marker: int, said: SaidOfSentence, sentence: SentenceRow) -> bool:
    """The only citation of a supported sentence is needed, whatever the judge lists."""
    return marker in said.needed or len(sentence.markers) == 1


def judging_llm(settings: Settings, model: str, base_url: str, api_key: str) -> OpenAIChat:
    """The judge's LLM: the one named, else the one that answers; at temperature 0. A key goes only to the server it was given
    for. Raises SettingsError."""
    if model or base_url:
        return OpenAIChat(model or OPENAI_MODEL, base_url, api_key, settings.llm_timeout, TEMPERATURE)
    key = settings.llm_api_key.get_secret_value()
    return OpenAIChat(settings.llm_model or OPENAI_MODEL, settings.llm_base_url, key, settings.llm_timeout, TEMPERATURE)


def _object(properties: dict[str, object]) -> dict[str, object]:
    """Every field required and no others, as strict servers want it."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_TEXT = {"type": "string"}
_NUMBERS = {"type": "array", "items": {"type": "integer"}}


def _list(properties: dict[str, object]) -> dict[str, object]:
    return {"type": "array", "items": _object(properties)}


SCHEMA = _object(
    {
        "sentences": _list(
            {
                "id": _TEXT,
                "verdict": {"type": "string", "enum": ["supported", "partly", "contradicted", "not_stated"]},
                "quote": _TEXT,
                "alone": _NUMBERS,
                "needed": _NUMBERS,
                "elsewhere": _NUMBERS,
                "reason": _TEXT,
            }
        ),
        "points": _list({"id": _TEXT, "told": {"type": "boolean"}}),
        "statements": _list({"id": _TEXT, "said": {"type": "boolean"}}),
    }
)
