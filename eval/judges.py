"""Judges: who says whether an answer's claims are borne out. Each is given a question with its answer and nothing of the engine.

`local` runs the code of `rag/verify.py`. It is deterministic and blind to negation and direction, and on extractive answers it is
circular: it is asked whether sentences copied from the papers stand in the papers. Reports say so and lead with other measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from eval.measures import claims_of
from eval.question_set import Question
from eval.runs import CODE, AnswerRow, ClaimVerdict, Judgement, PaperRow, SentenceRow, Word, code_digest, digest_of
from rag.index.keyword import TantivyIndex
from rag.markers import without_markers
from rag.passages import prepare
from rag.protocols import Embedder
from rag.similarity import Corpus, read_model
from rag.text import clean
from rag.types import Drafted, IndexedPaper, Paper, Support, Vectors, Verdict
from rag.verify import LocalVerifier

WORDS: Mapping[Support, Word] = {
    "ok": "supported",
    "weak": "partly",
    "mismatch": "not_stated",
    "number_mismatch": "not_stated",
    "uncited": "not_stated",
}
POINT_WORDS = 0.6
"""Share of a point's words, by weight, that an answer which tells it holds."""


class Judge(Protocol):
    """Judges one answer at a time."""

    @property
    def name(self) -> str:
        """Whose word it is and by which weights or prompt: `local@1a2b3c4d`, `llm:<model>@…`."""

    async def judge(self, question: Question, answer: AnswerRow) -> Judgement:
        """Every claim submitted has a verdict, `unjudged` at worst. Raises LLMUnavailable, LLMRefused."""


class Papers(Protocol):
    """Where the vectors of papers are: the catalogue."""

    def indexed(self, paper_ids: Sequence[str], model: str) -> list[IndexedPaper]:
        """With vectors; unknown ones are left out."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A paper that the answer shows, and the marker that stands for it, if one does."""

    pid: str
    marker: int | None
    paper: IndexedPaper


class Remembering:
    """An embedder that embeds no claim twice."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.model, self.dimension = embedder.model, embedder.dimension
        self._known: dict[str, Vectors] = {}

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension)."""
        return self._embedder.embed_texts(texts)

    def embed_question(self, question: str) -> Vectors:
        """Shape (dimension,)."""
        if question not in self._known:
            self._known[question] = self._embedder.embed_question(question)
        return self._known[question]


class LocalJudge:
    """The engine's own local verifier, asked about one set of papers after the other."""

    def __init__(self, embedder: Embedder, corpus: Corpus, papers: Papers | None = None) -> None:
        self._embedder = Remembering(embedder)
        model = read_model()
        self._near = model.ok
        self._verifier = LocalVerifier(self._embedder, corpus, model=model)
        self._corpus = corpus
        self._papers = papers

    @property
    def name(self) -> str:
        return self._verifier.name

    def among(self, texts: Sequence[str]) -> LocalJudge:
        """The same judge in a library of these texts: what a word weighs is told by the papers around it."""
        corpus = TantivyIndex(None)
        papers = sorted(set(texts))
        corpus.apply([prepare(Paper(f"paper-{number:06d}", text)) for number, text in enumerate(papers)], [])
        return LocalJudge(self._embedder, corpus)

    async def judge(self, question: Question, answer: AnswerRow) -> Judgement:
        """Sees no contradictions: what is not supported is `partly` or `not_stated`, and whether a forbidden thing is said or
        denied it cannot tell."""
        shown = self._shown(answer)
        plain = without_markers(answer.text)
        return Judgement(
            id=question.id,
            key=judgement_key(self.name, question, answer),
            judge=self.name,
            claims=tuple(self._claim(place, sentence, shown) for place, sentence in claims_of(answer)),
            points=tuple(self.tells(plain, point) for point in question.points),
            must_not=(None,) * len(question.must_not),
        )

    def _claim(self, place: int, sentence: SentenceRow, shown: Sequence[Shown]) -> ClaimVerdict:
        cited = [one for one in shown if one.marker in sentence.markers]
        verdict = self._check(sentence, cited)
        supported = self._bears_out(verdict)
        alone = [one for one in cited if (supported if len(cited) == 1 else self._supports(sentence, [one]))]
        needed = [
            one
            for one in cited
            if supported and one not in alone and not self._supports(sentence, [other for other in cited if other != one])
        ]
        elsewhere = [] if supported else [one for one in shown if one not in cited and self._supports(sentence, [one])]
        return ClaimVerdict(
            claim=place,
            word="supported" if supported else WORDS[verdict.support],
            alone=tuple(one.marker for one in alone if one.marker),
            needed=tuple(one.marker for one in needed if one.marker),
            elsewhere=tuple(one.pid for one in elsewhere),
            quote=verdict.evidence[0].quote if verdict.evidence else "",
            reason=verdict.reason,
            score=round(verdict.score, 4),
        )

    def _supports(self, sentence: SentenceRow, papers: Sequence[Shown]) -> bool:
        return self._bears_out(self._check(sentence, papers))

    def _bears_out(self, verdict: Verdict) -> bool:
        """Near enough, and with the right numbers. A name that does not stand in the abstract warns a reader, but as a rule for a
        judge does not pay: balanced accuracy on attributionbench .737 without it, .724 with it (dev); .713, .717 (test)."""
        return verdict.support == "ok" or (verdict.support == "weak" and verdict.score >= self._near)

    def _check(self, sentence: SentenceRow, papers: Sequence[Shown]) -> Verdict:
        """Only `papers` are given, so that nothing can be cited anew."""
        drafted = Drafted(sentence.text, tuple(range(1, len(papers) + 1)), sentence.basis)
        return self._verifier.check(drafted, [one.paper for one in papers])

    def _shown(self, answer: AnswerRow) -> list[Shown]:
        """Papers cited, then those only shown."""
        markers = {citation.paper.paper_id: citation.marker for citation in answer.citations}
        papers = [*(one.paper for one in answer.citations), *(one.paper for one in answer.papers)]
        rows = {paper.paper_id: paper for paper in papers}
        stored: dict[str, IndexedPaper] = {}
        if self._papers:
            stored = {one.paper.paper_id: one for one in self._papers.indexed(list(rows), self._embedder.model)}
        return [
            Shown(row.pid, markers.get(paper_id), stored.get(paper_id) or self._embedded(row)) for paper_id, row in rows.items()
        ]

    def _embedded(self, row: PaperRow) -> IndexedPaper:
        return with_vectors(paper_of(row), self._embedder)

    def tells(self, text: str, point: str) -> bool:
        """Whether `text` tells a point: near in meaning, or with POINT_WORDS of its words, and with all its numbers."""
        if not text.strip():
            return False
        telling = with_vectors(Paper("answer", text), self._embedder)
        support = self._verifier.check(Drafted(f"{point} [1]", (1,)), [telling]).support
        return support == "ok" or (support == "weak" and self._words_held(point, text) >= POINT_WORDS)

    def _words_held(self, point: str, text: str) -> float:
        wanted = self._corpus.weights(clean(point).text)
        held = self._corpus.weights(clean(text).text)
        whole = sum(wanted.values())
        return sum(weight for term, weight in wanted.items() if term in held) / whole if whole else 0.0


def paper_of(row: PaperRow) -> Paper:
    """The paper behind a row."""
    return Paper(
        row.paper_id, row.abstract, row.title, row.authors, row.authors_truncated, row.category, row.venue, row.year
    )  # fmt: skip


def with_vectors(paper: Paper, embedder: Embedder) -> IndexedPaper:
    """A paper of no catalogue, with the vectors that the verifier needs; row 0, which it does not look at, is left empty."""
    found = prepare(paper)
    return IndexedPaper(paper, found.text, found.sentences, embedder.embed_texts(["", *(one.text for one in found.sentences)]))


def judgement_key(judge: str, question: Question, answer: AnswerRow, library: str = "") -> str:
    """What a judgement depends on: the judge, the answer, the reference, and the library that tells how much a word weighs."""
    said = answer.model_dump(mode="json", exclude={"timings_ms", "usage"})
    return digest_of([judge, code_of(judge), library, question.question, question.points, question.must_not, said])


@cache
def code_of(judge: str) -> str:
    """A digest of the code whose word it is: the local judge runs the engine's, an LLM's words are only read."""
    return code_digest(patterns=(*CODE, "eval/judges.py") if judge.startswith("local") else ("eval/judge_llm.py",))
