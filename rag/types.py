"""The values that travel through Footnote: frozen, typed, free of any third party but numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""Shape (n, dimension), each row of unit length, so that a dot product is a cosine."""

Status = Literal["answered", "not_in_corpus", "needs_full_text"]
Basis = Literal["abstract", "metadata"]
Support = Literal["ok", "weak", "mismatch", "number_mismatch", "uncited"]
Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Paper:
    """One work known by its abstract. `abstract` is the source's text, verbatim."""

    paper_id: str
    abstract: str
    title: str | None = None
    authors: tuple[str, ...] = ()
    authors_truncated: bool = False
    category: str | None = None
    venue: str | None = None
    year: int | None = None
    url: str | None = None
    doi: str | None = None
    keywords: tuple[str, ...] = ()

    @property
    def doi_url(self) -> str | None:
        """Where the DOI leads."""
        return self.doi and f"https://doi.org/{self.doi}"

    @property
    def cite_as(self) -> str:
        """`Zhang et al., 2024`: how a colleague would name it in passing."""
        names = [surname(author) for author in self.authors]
        if not names:
            who = self.title or "Unknown authors"
        elif len(names) == 1 and not self.authors_truncated:
            who = names[0]
        elif len(names) == 2 and not self.authors_truncated:
            who = f"{names[0]} & {names[1]}"
        else:
            who = f"{names[0]} et al."
        return f"{who}, {self.year}" if self.year else who


def surname(author: str) -> str:
    """The family name: before the comma if there is one, the whole of a name without spaces (`周欣`), else the last word."""
    if "," in author:
        return author.split(",")[0].strip() or author
    words = [word for word in author.split() if not word.startswith("(")]
    return words[-1] if words else author


@dataclass(frozen=True, slots=True)
class RawPaper:
    """A paper as a reader found it, before it has an identity.

    `external_ids` are prefixed: `doi:10.…` `arxiv:2401.00001` `pmid:…` `openreview:…` identify the work across sources;
    `id:…` is the file's own name for it, an alias only. `version` orders versions of one work (arXiv's v1, v2).
    `where` names the place in the source: `line 12`, `record 3`.
    """

    abstract: str
    where: str
    title: str | None = None
    authors: tuple[str, ...] = ()
    authors_truncated: bool = False
    category: str | None = None
    venue: str | None = None
    year: int | None = None
    url: str | None = None
    doi: str | None = None
    keywords: tuple[str, ...] = ()
    external_ids: tuple[str, ...] = ()
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record or file that could not be taken: `source` is the file, `where` the line or index in it."""

    source: str
    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of an abstract: `start`/`end` are code points of the verbatim abstract, `text` is its cleaned reading."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class IndexedPaper:
    """A paper with what the indexes need of it.

    `text` is the cleaned abstract; `sentences` are its sentences in order; `vectors` holds, when loaded, row 0 for the whole
    (title and abstract) and row i+1 for `sentences[i]`.
    """

    paper: Paper
    text: str
    sentences: tuple[Sentence, ...]
    vectors: Vectors | None = None


@dataclass(frozen=True, slots=True)
class VectorBlock:
    """The vectors of several papers under one another, shape (rows, dimension): from row `starts[i]` on those of `paper_ids[i]`,
    first of the whole, then of each sentence."""

    paper_ids: tuple[str, ...]
    starts: tuple[int, ...]
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class Filters:
    """What a question may be narrowed to. Text fields match without case; several values of one field mean "any of them"."""

    year_min: int | None = None
    year_max: int | None = None
    venues: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    paper_ids: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self != Filters()


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation. `paper_ids` are the papers an answer cited, best first (empty for what a person said)."""

    role: Role
    content: str
    paper_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A paper found for a question. `score` is the fused score in [0, 1]; `dense` the cosine, `keyword` the BM25 score over
    the best BM25 score; `sentence_scores[i]` is the cosine of `found.sentences[i]` to the question."""

    found: IndexedPaper
    score: float
    dense: float
    keyword: float
    sentence_scores: tuple[float, ...] = ()

    @property
    def paper(self) -> Paper:
        return self.found.paper


@dataclass(frozen=True, slots=True)
class Evidence:
    """The words a sentence rests on: `quote == abstract[start:end]` of the paper behind `marker`. `score` in [0, 1]."""

    marker: int
    start: int
    end: int
    quote: str
    score: float


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens counted by the LLM's server; zero without one."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.prompt_tokens + other.prompt_tokens, self.completion_tokens + other.completion_tokens)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a verifier found out about a drafted sentence. `evidence` has one piece for each paper that the sentence may cite
    after all (a failing one may have been cited anew), its `marker` being the paper's place (from 1) in the list retrieved; empty
    when nothing bears the sentence out at all. `reason` is one line; `score` in [0, 1]; `usage` is what it cost."""

    support: Support
    evidence: tuple[Evidence, ...]
    reason: str
    score: float
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """One checked sentence of an answer. `text` keeps its markers and trailing white space; `score` in [0, 1]."""

    text: str
    markers: tuple[int, ...]
    basis: Basis
    evidence: tuple[Evidence, ...]
    support: Support
    reason: str
    score: float

    @property
    def doubt(self) -> str:
        """The reason why its sources do not bear it out; empty where they do, or may (`weak`)."""
        return "" if self.support in ("ok", "weak") else self.reason


@dataclass(frozen=True, slots=True)
class Citation:
    """What a marker stands for: the paper and the words quoted at the marker's first use."""

    marker: int
    paper: Paper
    quote: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Decided:
    """First piece of a draft: what the generator thinks it can do with the papers. `markers` are the papers it named for
    `needs_full_text`, as places (from 1) in the list it was given. After `not_in_corpus` no sentence follows."""

    status: Status
    markers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Drafted:
    """A sentence as a generator wrote it, nothing checked yet. `text` keeps its trailing white space; a marker `[k]` in it is
    the k-th paper (from 1) of the list the generator was given, and `markers` are those k in order of first use."""

    text: str
    markers: tuple[int, ...]
    basis: Basis = "abstract"


@dataclass(frozen=True, slots=True)
class DraftDone:
    """Last piece of a draft. `invalid_markers` counts markers that stood for no paper and were removed; `notice` tells the
    reader of a fault that left the draft usable (it was cut off)."""

    usage: Usage = Usage()
    invalid_markers: int = 0
    notice: str | None = None


Piece = Decided | Drafted | DraftDone
"""A generator gives one Decided, then Drafted sentences, then one DraftDone."""


@dataclass(frozen=True, slots=True)
class ScoredPaper:
    """A retrieved paper as the answer shows it."""

    paper: Paper
    score: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The one object every door gives. DESIGN's promises: the sentences join to `text`; markers are 1..n in order of first use;
    every quote is verbatim; `not_in_corpus` carries no citation, `answered` at least one. `failures` names the errors of an LLM
    that were overcome on the way; `notice` tells the reader, this is for figures."""

    answer_id: str
    question: str
    standalone_question: str
    status: Status
    text: str
    sentences: tuple[AnswerSentence, ...]
    citations: tuple[Citation, ...]
    papers: tuple[ScoredPaper, ...]
    generator: str
    prompt_version: str | None
    verifier: str
    filters: Filters
    revision: int
    usage: Usage = Usage()
    timings_ms: dict[str, int] = field(default_factory=dict)
    notice: str | None = None
    invalid_markers: int = 0
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PapersFound:
    """First event of a streamed answer: what was retrieved, and the status, which no later event changes."""

    answer_id: str
    status: Status
    standalone_question: str
    filters: Filters
    papers: tuple[ScoredPaper, ...]


@dataclass(frozen=True, slots=True)
class SentenceReady:
    """A sentence whose citations were checked, with the citations that appear in it for the first time."""

    sentence: AnswerSentence
    new_citations: tuple[Citation, ...]


@dataclass(frozen=True, slots=True)
class AnswerDone:
    """Last event: the whole answer; the streamed sentences put together equal it."""

    answer: Answer


AnswerEvent = PapersFound | SentenceReady | AnswerDone


@dataclass(frozen=True, slots=True)
class Commit:
    """One acknowledged transaction of the catalogue: its revision and what it did to each paper, by count."""

    revision: int
    added: int = 0
    merged: int = 0
    unchanged: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What an ingest did. `seconds` by stage; `indexed` tells whether the indexes have reached `revision`."""

    added: int
    merged: int
    unchanged: int
    skipped: tuple[Rejected, ...]
    rejected: tuple[Rejected, ...]
    revision: int
    indexed: bool
    seconds: dict[str, float]


def cut(text: str, limit: int) -> str:
    """`text` in at most `limit` characters, an ellipsis in place of what was cut."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def unique(values: Sequence[str]) -> tuple[str, ...]:
    """`values` without repeats, in order."""
    return tuple(dict.fromkeys(values))
