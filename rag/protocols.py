"""The seams: a protocol stands here only where there are two implementations (a test's fake counts)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rag.filters import Names
from rag.intent import Understood
from rag.types import AnswerEvent, Drafted, Filters, Piece, Retrieved, Turn, Usage, Vectors, Verdict


class Embedder(Protocol):
    """Turns texts into unit vectors. Deterministic: the same text gives the same vector, bit for bit, run after run."""

    @property
    def model(self) -> str:
        """Names weights, runtime and pooling; vectors of different names are never compared."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension). Texts are passages."""

    def embed_question(self, question: str) -> Vectors:
        """Shape (dimension,)."""


class DenseIndex(Protocol):
    """One vector a paper. Derived from the catalogue, rebuilt at will. Raises IndexUnavailable."""

    def count(self) -> int:
        """How many papers it holds."""

    def upsert(self, paper_ids: Sequence[str], vectors: Vectors) -> None:
        """Idempotent; `vectors` has shape (len(paper_ids), dimension)."""

    def delete(self, paper_ids: Sequence[str]) -> None:
        """Ids it does not hold are no error."""

    def search(self, vector: Vectors, k: int) -> list[tuple[str, float]]:
        """The `k` nearest papers as (paper_id, cosine), best first."""


class KeywordIndex(Protocol):
    """BM25 over title, authors, category, venue, keywords and abstract. Derived from the catalogue."""

    def count(self) -> int:
        """How many papers it holds."""

    def search(self, question: str, k: int, within: Collection[str] | None = None) -> list[tuple[str, float]]:
        """The best `k` papers with a score above zero as (paper_id, BM25), best first; only those `within`, if given. Any text is
        a valid question."""

    def correct(self, question: str) -> str:
        """`question` with each word that occurs in no paper replaced by the nearest one that does, if there is one."""

    def scores(self, question: str, paper_ids: Sequence[str]) -> Mapping[str, float]:
        """The BM25 score of each of these papers (absent: 0), the same numbers `search` gives."""

    def weights(self, text: str) -> Mapping[str, float]:
        """The content terms of `text` as indexed (stemmed, no stop words), in order, each with its inverse document frequency
        in the corpus; a term that occurs nowhere has the highest."""


class Retriever(Protocol):
    """Finds papers for a question. Blocking: the engine runs it on its own bounded threads."""

    def find(self, question: str, *, top_k: int, filters: Filters = ...) -> list[Retrieved]:
        """Best first, at most `top_k`."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of an LLM's answer, or its end: `usage` comes with the last piece only, and `cut` says that the server's length
    limit ended the answer in the middle."""

    text: str
    usage: Usage | None = None
    cut: bool = False


class LLM(Protocol):
    """A chat model behind any OpenAI-compatible endpoint. Raises LLMUnavailable, LLMRefused."""

    @property
    def model(self) -> str:
        """The model's name as its server knows it."""

    def stream(self, system: str, user: str, *, max_tokens: int = ...) -> AsyncGenerator[Delta, None]:
        """The answer's text as it comes, reasoning removed. Closing the iterator closes the connection."""

    async def complete(
        self, system: str, user: str, *, json_schema: Mapping[str, object] | None = None, max_tokens: int = ...
    ) -> tuple[str, Usage]:
        """A whole short answer; with `json_schema`, text that is valid JSON (not yet validated against the schema)."""


class Generator(Protocol):
    """Drafts an answer from papers: an LLM, or sentences extracted from the abstracts."""

    @property
    def name(self) -> str:
        """`extractive`, or the LLM's model name."""

    @property
    def prompt_version(self) -> str | None:
        """`answer@1a2b3c4d`; None without a prompt."""

    def generate(
        self, question: str, *, standalone: str, papers: Sequence[Retrieved], history: Sequence[Turn] = ...
    ) -> AsyncGenerator[Piece, None]:
        """`question` is as asked (its language is the answer's), `standalone` as understood. Closing the iterator stops the work.

        Raises LLMUnavailable, LLMRefused; before the first piece unless the fault came later.
        """


class Verifier(Protocol):
    """Says whether the papers a drafted sentence cites bear it out, before anyone sees the sentence."""

    @property
    def name(self) -> str:
        """`local@1a2b3c4d`, `llm:<model>@…`: whose word it is, and by which weights or prompt."""

    async def verify(self, drafted: Drafted, papers: Sequence[Retrieved]) -> Verdict:
        """`drafted.markers` are places (from 1) in `papers`. A sentence that fails, or cites nothing, is cited anew from `papers`
        where one of them supports it. Raises LLMUnavailable, LLMRefused."""


class Understanding(Protocol):
    """Reads a question: makes it standalone, finds its filters and the kind of answer it wants."""

    async def understand(self, question: str, history: Sequence[Turn], filters: Filters, names: Names) -> Understood:
        """`filters` were given beside the question and win over those in its words."""


class Engine(Protocol):
    """What `api/` and `eval/` need of the query engine."""

    def stream(
        self,
        question: str,
        *,
        history: Sequence[Turn] = ...,
        filters: Filters = ...,
        top_n: int = ...,
    ) -> AsyncGenerator[AnswerEvent, None]:
        """PapersFound, a SentenceReady for each sentence, AnswerDone. Raises InputError, Unavailable before PapersFound."""
