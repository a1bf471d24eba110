"""Puts a library together from the settings; nowhere else are parts joined."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rag import ingest
from rag.catalogue import Catalogue
from rag.database import Database, open_database, sqlite_url
from rag.index.indexes import Indexes, open_indexes
from rag.ingest import Models, Source, Step
from rag.journal import Journal
from rag.protocols import Embedder, Verifier
from rag.relax import relaxation
from rag.settings import Settings
from rag.types import Filters, IngestReport

if TYPE_CHECKING:
    from rag.openai_api import OpenAIChat
    from rag.other_scripts import OtherScripts
    from rag.query_engine import QueryEngine
    from rag.retrieve import HybridRetriever

OPENAI_MODEL = "gpt-5-mini"
"""The model asked when nothing but `OPENAI_API_KEY` is set."""

E5_FLOOR = 0.75
"""Cosine that multilingual-e5-small gives texts which have nothing to do with each other."""


@dataclass(frozen=True)
class Library:
    """Papers and what answers from them. Use it as a context manager, or `close` it: other processes wait for its indexes."""

    settings: Settings
    database: Database
    catalogue: Catalogue
    journal: Journal
    embedder: Embedder
    reads_other_scripts: bool
    indexes: Indexes

    @cached_property
    def llm(self) -> OpenAIChat | None:
        """The configured LLM; None without one."""
        return make_llm(self.settings)

    @cached_property
    def multilingual(self) -> Embedder | None:
        """The model for questions in other scripts; None without `footnote[multilingual]`."""
        if not self.reads_other_scripts:
            return None
        from rag.embedding_multilingual import MultilingualEmbedder

        return MultilingualEmbedder()

    @cached_property
    def retriever(self) -> HybridRetriever:
        """Finds papers. Loads LlamaIndex, and at the first search the indexes."""
        from rag.index.exact import ExactIndex
        from rag.retrieve import HybridRetriever, Space

        def other_scripts() -> Space | None:
            model = self.multilingual
            return Space(model, ExactIndex(self.catalogue, model.model), E5_FLOOR) if model else None

        return HybridRetriever(self.catalogue, self.indexes.keyword, Space(self.embedder, self.indexes.dense), other_scripts)

    @cached_property
    def engine(self) -> QueryEngine:
        """Answers questions."""
        from rag.embedding import LocalEmbedder
        from rag.extract import ExtractiveGenerator
        from rag.generate import OpenAIGenerator
        from rag.query_engine import Parts, QueryEngine
        from rag.understand import RuleUnderstanding
        from rag.understand_llm import LLMUnderstanding
        from rag.verify import LocalVerifier
        from rag.verify_llm import LLMVerifier
        from rag.word_vectors import WordVectors

        words = self.embedder if self.settings.embedding == "local" else LocalEmbedder()
        extractive = ExtractiveGenerator(self.indexes.keyword.weights, self.embedder, WordVectors(words))
        local = LocalVerifier(
            words, self.indexes.keyword, vectors_of=self.embedder.model, other_scripts=self._verified_in_other_scripts()
        )
        llm = self.llm
        return QueryEngine(
            Parts(
                catch_up=self.indexes.searched,
                names=self.catalogue.filter_names,
                relax=self.relaxation,
                count=lambda filters: len(self.catalogue.matching(filters)) if filters else self.catalogue.count(),
                understanding=LLMUnderstanding(llm) if llm else RuleUnderstanding(multilingual=self.reads_other_scripts),
                retriever=self.retriever,
                generator=OpenAIGenerator(llm) if llm else extractive,
                extractive=extractive,
                verifier=LLMVerifier(llm, local) if llm and self.settings.verify == "llm" else local,
                unsupported=self.settings.unsupported,
            )
        )

    def _verified_in_other_scripts(self) -> OtherScripts | None:
        from rag.other_scripts import OtherScripts

        def load() -> Embedder:
            assert self.multilingual
            return self.multilingual

        return OtherScripts(load, self.catalogue.vectors) if self.reads_other_scripts else None

    def relaxation(self, filters: Filters) -> str:
        """What to say when no paper passes these filters. Blocking."""
        return relaxation(filters, self.catalogue.matching, self.catalogue.filter_names())

    @property
    def verifier(self) -> Verifier:
        """Checks sentences against papers: the one that answers use."""
        return self.engine.parts.verifier

    def ingest(self, sources: Iterable[Source], on_step: Callable[[Step], None] = lambda step: None) -> IngestReport:
        """Adds papers and waits for the indexes. Blocking. Raises CatalogueUnavailable."""
        return ingest.ingest(self.catalogue, self._models(), sources, on_step=on_step, catch_up=self.indexes.catch_up)

    def reindex(self, on_step: Callable[[Step], None] = lambda step: None) -> None:
        """Embeds what lacks vectors of a configured model, then makes both indexes anew. Blocking. Raises Unavailable."""
        ingest.embed_missing(self.catalogue, self._models(), on_step)
        self.indexes.reindex()

    def _models(self) -> Models:
        return Models(self.embedder, (self.multilingual,) if self.multilingual else ())

    def not_ready(self) -> str | None:
        """What questions must wait for, in one sentence; None when they need not. Blocking."""
        return self.indexes.not_ready()

    def close(self) -> None:
        """Leaves indexes and database to others."""
        self.indexes.close()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()


def open_library(settings: Settings) -> Library:
    """The library of `settings`. Heavy parts (Chroma, the LLM's client) are loaded when first used. Raises SettingsError,
    CatalogueUnavailable."""
    from rag.embedding_multilingual import multilingual_installed

    embedder = make_embedder(settings)
    database = open_database(settings.database_url or sqlite_url(settings.data / "catalogue.db"))
    catalogue = Catalogue(database)
    return Library(
        settings=settings,
        database=database,
        catalogue=catalogue,
        journal=Journal(database),
        embedder=embedder,
        reads_other_scripts=multilingual_installed(),
        indexes=open_indexes(catalogue, settings.data / "index", settings.chroma_url, embedder.model),
    )


def make_embedder(settings: Settings) -> Embedder:
    """What `FOOTNOTE_EMBEDDING` names."""
    if settings.embedding == "openai":
        from rag.openai_api import OpenAIEmbedder

        return OpenAIEmbedder(
            settings.embedding_model, settings.embedding_base_url, settings.embedding_api_key.get_secret_value()
        )
    from rag.embedding import LocalEmbedder

    return LocalEmbedder()


def make_llm(settings: Settings) -> OpenAIChat | None:
    """The LLM that `FOOTNOTE_LLM_MODEL` names; OpenAI's own when only `OPENAI_API_KEY` is set; else None."""
    if not settings.llm_model and not settings.llm_base_url and not os.environ.get("OPENAI_API_KEY"):
        return None
    from rag.openai_api import OpenAIChat

    model = settings.llm_model or OPENAI_MODEL
    return OpenAIChat(model, settings.llm_base_url, settings.llm_api_key.get_secret_value(), settings.llm_timeout)
