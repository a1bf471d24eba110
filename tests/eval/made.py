"""Questions, answers and judgements made by hand, and an engine and an LLM that say what they are told."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eval.measures import Seen
from eval.question_set import Question
from eval.runs import (
    AnswerRow,
    CitationRow,
    ClaimVerdict,
    EvidenceRow,
    Judgement,
    Machine,
    Manifest,
    PaperRow,
    Record,
    Run,
    ScoredRow,
    SentenceRow,
    UsageRow,
)
from rag.protocols import Delta
from rag.types import Answer, AnswerSentence, Citation, Evidence, Filters, Paper, ScoredPaper, Turn, Usage

PAPERS = {
    name: PaperRow(paper_id=f"paper-{name}", abstract=f"{text} The rest of paper {name} is about something else.", cite_as=name)
    for name, text in {
        "a": "Larkspur raises the utilisation of a cluster from 61% to 84%.",
        "b": "Children who stammer are assessed as reliably from recordings made at home.",
        "c": "Adding gadolinium lowers the corrosion rate of magnesium alloys by two thirds.",
    }.items()
}
PID = {name: paper.pid for name, paper in PAPERS.items()}


def question(id_: str = "q1", gold: str = "a", **given: object) -> Question:
    """Answerable from `gold`; unanswerable without."""
    kind = "fact" if gold else "unanswerable"
    return Question.model_validate(
        {"id": id_, "question": f"What of {id_}?", "kind": kind, "gold": tuple(PID[one] for one in gold), **given}
    )


def answer(*sentences: tuple[str, str], shown: str = "abc", status: str = "answered", **given: object) -> AnswerRow:
    """Each sentence with the names of the papers it cites: `("It rises", "ab")`."""
    order = list(dict.fromkeys("".join(cited for _, cited in sentences)))
    rows = []
    for text, cited in sentences:
        markers = tuple(order.index(name) + 1 for name in cited)
        written = text + "".join(f" [{marker}]" for marker in markers) + ". "
        rows.append(
            SentenceRow(text=written, markers=markers, evidence=tuple(quote(name, order.index(name) + 1) for name in cited))
        )
    citations = tuple(
        CitationRow(paper=PAPERS[name], **quote(name, place).model_dump(exclude={"score"})) for place, name in enumerate(order, 1)
    )
    return AnswerRow.model_validate(
        {
            "status": status,
            "text": "".join(row.text for row in rows),
            "sentences": rows,
            "citations": citations,
            "papers": tuple(ScoredRow(paper=PAPERS[name], score=0.9 - 0.1 * place) for place, name in enumerate(shown)),
            "generator": "extractive",
            "timings_ms": {"total": 10},
            **given,
        }
    )


def quote(name: str, marker: int) -> EvidenceRow:
    """The paper's first sentence."""
    end = PAPERS[name].abstract.index(".") + 1
    return EvidenceRow(marker=marker, start=0, end=end, quote=PAPERS[name].abstract[:end], score=1.0)


REFUSED = answer(("Nothing here says so", ""), status="not_in_corpus")


def record(id_: str, of: AnswerRow | None, **given: object) -> Record:
    """A line of answers.jsonl; an error where there is no answer."""
    error = None if of else {"code": "llm_unavailable", "message": "it is down"}
    return Record.model_validate({"id": id_, "key": id_, "answer": of, "error": error, **given})


def judgement(id_: str, *words: str, points: Sequence[bool | None] = (), judge: str = "llm:test@1", **given: object) -> Judgement:
    """One word a claim: `supported`, `not_stated`, …; a supported claim's citations are each enough alone."""
    claims = tuple(
        ClaimVerdict.model_validate({"claim": place, "word": word, "alone": (1, 2, 3) if word == "supported" else ()})
        for place, word in enumerate(words)
    )
    return Judgement.model_validate({"id": id_, "key": id_, "judge": judge, "claims": claims, "points": tuple(points), **given})


def seen(one: Question, of: AnswerRow | None, judged: Judgement | None = None) -> Seen:
    return Seen(one, record(one.id, of), judged)


MANIFEST = Manifest(
    question_set="set.jsonl",
    set_digest="1",
    questions=1,
    papers=3,
    papers_digest="2",
    commit="abc",
    code_digest="3",
    settings={},
    prompts={},
    models={"generator": "extractive"},
    top_n=8,
    machine=Machine(system="test", cpu="test", cores=2, python="3"),
)


def run_of(folder: Path, *given: Seen) -> Run:
    """A run that was read."""
    records = {one.question.id: one.record for one in given if one.record}
    judged = {one.question.id: one.judgement for one in given if one.judgement}
    judge = next((one.judge for one in judged.values()), "")
    return Run(folder, MANIFEST, tuple(one.question for one in given), records, judged, judge)


@dataclass
class FakeEngine:
    """Answers with the paper's first sentence, or raises what it is told to; `asked` is what it was asked."""

    fail: Callable[[str], Exception | None] = lambda asked: None
    asked: list[str] = field(default_factory=list)
    tokens: int = 10

    async def answer(self, asked: str, *, history: Sequence[Turn] = (), filters: Filters = Filters(), top_n: int = 8) -> Answer:
        self.asked.append(asked)
        if error := self.fail(asked):
            raise error
        row = PAPERS["a"]
        paper = Paper(row.paper_id, row.abstract)
        end = row.abstract.index(".") + 1
        said = Evidence(1, 0, end, row.abstract[:end], 1.0)
        return Answer(
            answer_id="1",
            question=asked,
            standalone_question=asked,
            status="answered",
            text=row.abstract[: end - 1] + " [1].",
            sentences=(AnswerSentence(row.abstract[: end - 1] + " [1].", (1,), "abstract", (said,), "ok", "", 1.0),),
            citations=(Citation(1, paper, said.quote, 0, end),),
            papers=(ScoredPaper(paper, 0.9),),
            generator="extractive",
            prompt_version=None,
            verifier="local@1",
            filters=filters,
            revision=1,
            usage=Usage(self.tokens, self.tokens),
            timings_ms={"total": 5},
        )


@dataclass
class FakeLLM:
    """Gives one reply after the other, the last again and again, or fails; `prompts` is what it was told."""

    replies: list[str]
    prompts: list[tuple[str, str]] = field(default_factory=list)
    model: str = "fake"
    fail: Exception | None = None

    async def complete(
        self, system: str, user: str, *, json_schema: Mapping[str, object] | None = None, max_tokens: int = 0
    ) -> tuple[str, Usage]:
        self.prompts.append((system, user))
        if self.fail:
            raise self.fail
        return (self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]), Usage(100, 10)

    def stream(self, system: str, user: str, *, max_tokens: int = 0) -> AsyncGenerator[Delta, None]:
        raise NotImplementedError


NO_TOKENS = UsageRow()
