"""Puts a library together from the settings; nowhere else are parts joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rag import ingest
from rag.catalogue import Catalogue
from rag.database import Database, open_database, sqlite_url
from rag.index.indexes import Indexes, open_indexes
from rag.ingest import Models, Source, Step
from rag.journal import Journal
from rag.protocols import Embedder
from rag.settings import Settings
from rag.types import IngestReport


@dataclass(frozen=True)
class Library:
    """Papers and what answers from them. Use it as a context manager, or `close` it: other processes wait for its indexes."""

    settings: Settings
    database: Database
    catalogue: Catalogue
    journal: Journal
    embedder: Embedder
    multilingual: Embedder | None
    indexes: Indexes

    def ingest(self, sources: Iterable[Source], on_step: Callable[[Step], None] = lambda step: None) -> IngestReport:
        """Adds papers and waits for the indexes. Blocking. Raises CatalogueUnavailable."""
        models = Models(self.embedder, (self.multilingual,) if self.multilingual else ())
        return ingest.ingest(self.catalogue, models, sources, on_step=on_step, catch_up=self.indexes.catch_up)

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
    embedder = make_embedder(settings)
    database = open_database(settings.database_url or sqlite_url(settings.data / "catalogue.db"))
    catalogue = Catalogue(database)
    return Library(
        settings=settings,
        database=database,
        catalogue=catalogue,
        journal=Journal(database),
        embedder=embedder,
        multilingual=None,
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
