"""What HTTP needs of a library; `rag.build` opens the real one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from rag.catalogue import Catalogue
from rag.ingest import Source
from rag.journal import Journal
from rag.protocols import LLM, Embedder, Engine, Retriever, Verifier
from rag.types import IngestReport


class Library(Protocol):
    """A catalogue, a journal and an engine that belong together."""

    @property
    def catalogue(self) -> Catalogue:
        """The papers."""

    @property
    def journal(self) -> Journal:
        """Conversations, answers, feedback."""

    @property
    def engine(self) -> Engine:
        """Answers questions."""

    @property
    def retriever(self) -> Retriever:
        """Finds papers. Blocking."""

    @property
    def llm(self) -> LLM | None:
        """The LLM, if one is configured."""

    @property
    def verifier(self) -> Verifier:
        """Checks sentences."""

    @property
    def embedder(self) -> Embedder:
        """Made the papers' vectors."""

    def ingest(self, sources: Iterable[Source]) -> IngestReport:
        """Adds papers and waits for the indexes. Blocking."""

    def not_ready(self) -> str | None:
        """What questions must wait for, in one sentence; None when they need not. Blocking."""
