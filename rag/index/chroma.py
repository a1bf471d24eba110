"""The dense index: one vector a paper, in Chroma (embedded, a server, or Chroma Cloud).

Chroma holds nothing that the catalogue cannot rebuild, and is given vectors only: never a text, never an embedding function
(the default one downloads a model). Its collection's name carries what its vectors were made by, so that two models never mix.
"""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rag.errors import IndexDamaged, IndexUnavailable, SettingsError, is_panic
from rag.types import Vectors

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

SCHEMA_VERSION = 1
BATCH = 250
"""Records a write: fastest, and inside Chroma Cloud's quota of 300."""

HNSW = {"space": "cosine", "ef_search": 200}
"""ef_search 200: recall against exact search of .997/.991/.981 at 10/50/100 of 50,000 (the default 100: .990/.972/.944). Chroma
heeds it at creation only."""

SELF_SEARCH = 10
"""Papers asked for when a paper is searched by its own vector."""

CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 10.0


class ChromaIndex:
    """A DenseIndex in one Chroma collection, opened on first use. Safe for many threads.

    Raises IndexUnavailable when Chroma does not answer, IndexDamaged when what it holds cannot be used and must be rebuilt.
    """

    def __init__(self, connect: Callable[[], ClientAPI], model: str, *, space: str = "hnsw", where: str) -> None:
        made_by = {"model": model, "normalised": True, "schema_version": SCHEMA_VERSION}
        self._connect = connect
        self._made_by = made_by
        self._configuration: dict[str, Any] = {space: HNSW if space == "hnsw" else {"space": "cosine"}}  # Any: Chroma's own type
        self._where = where
        self._name = "footnote-" + hashlib.sha256(repr(sorted(made_by.items())).encode()).hexdigest()[:12]
        self._opening = threading.RLock()
        self._client: ClientAPI | None = None
        self._collection: Collection | None = None

    def count(self) -> int:
        """How many papers it holds."""
        return int(self._do(lambda collection: collection.count()))

    def upsert(self, paper_ids: Sequence[str], vectors: Vectors) -> None:
        """Idempotent; `vectors` has shape (len(paper_ids), dimension)."""
        for ids, rows in _batches(paper_ids, vectors):
            self._do(partial(_upsert, ids=ids, vectors=rows))

    def delete(self, paper_ids: Sequence[str]) -> None:
        """Ids it does not hold are no error."""
        for start in range(0, len(paper_ids), BATCH):
            self._do(partial(_delete, ids=list(paper_ids[start : start + BATCH])))

    def search(self, vector: Vectors, k: int) -> list[tuple[str, float]]:
        """The `k` nearest papers as (paper_id, cosine), best first; found by HNSW, so one may be missed now and then."""
        if k < 1:
            return []
        found = self._do(lambda collection: collection.query(query_embeddings=[vector], n_results=k, include=["distances"]))
        return [(paper_id, 1.0 - distance) for paper_id, distance in zip(found["ids"][0], found["distances"][0], strict=True)]

    def rebuild(self, batches: Iterable[tuple[Sequence[str], Vectors]]) -> None:
        """Holds exactly these papers. They go to a new collection, which takes the old one's name when it is whole."""
        with self._explained():
            with self._opening:
                client = self._connected()
            for left_over in (f"{self._name}-new", f"{self._name}-old"):
                self._drop(client, left_over)
            collection = self._create(client, f"{self._name}-new")
            for paper_ids, vectors in batches:
                for ids, rows in _batches(paper_ids, vectors):
                    _upsert(collection, ids=ids, vectors=rows)
            self._switch(client, collection)
            self._collection = collection

    def lacking(self, paper_ids: Sequence[str], vectors: Vectors) -> list[str]:
        """Those of these papers that a search by their own vector does not find: HNSW may miss one now and then, but not many."""
        return [
            paper_id
            for paper_id, vector in zip(paper_ids, vectors, strict=True)
            if paper_id not in dict(found := self.search(vector, SELF_SEARCH)) and not _crowded(found)
        ]

    def marks(self) -> Mapping[str, object]:
        """What `mark` has written beside the collection; empty when there is none."""
        with suppress(IndexDamaged), self._explained(), self._opening:
            self._collection = self._open(self._connected())
            return dict(self._collection.metadata or {})
        return {}

    def mark(self, **marks: str | int | bool) -> None:
        """Writes `marks` beside the collection, in place of those of the same name."""
        self._do(lambda collection: collection.modify(metadata={**collection.metadata, **marks}))

    def close(self) -> None:
        """Lets go of the store; the next use opens it again."""
        with self._opening:
            client, self._client, self._collection = self._client, None, None
            if client is not None:
                _hang_up(client)

    def _do(self, use: Callable[[Any], Any]) -> Any:  # Any: what the collection's method gives
        """Uses the collection; once more if another process has rebuilt it under a new identity meanwhile."""
        from chromadb.errors import NotFoundError

        with self._explained():
            try:
                return use(self._opened())
            except NotFoundError:
                self._collection = None
                return use(self._opened())

    def _opened(self) -> Collection:
        with self._opening:
            if self._collection is None:
                self._collection = self._open(self._connected())
            return self._collection

    def _connected(self) -> ClientAPI:
        if self._client is None:
            self._client = self._connect()
        return self._client

    def _open(self, client: ClientAPI) -> Collection:
        from chromadb.errors import NotFoundError

        try:
            collection = client.get_collection(self._name, embedding_function=None)
        except NotFoundError as error:
            raise IndexDamaged(f"There is no dense index in {self._where} yet: run `footnote reindex`.") from error
        self._check(collection)
        return collection

    def _create(self, client: ClientAPI, name: str) -> Collection:
        collection = client.get_or_create_collection(
            name,
            configuration=self._configuration,  # type: ignore[arg-type]  # a TypedDict of the same keys
            metadata=self._made_by,
            embedding_function=None,
        )
        self._check(collection)
        return collection

    def _check(self, collection: Collection) -> None:
        """Chroma's `get_or_create` ignores a distance or metadata that differ, so they are read back."""
        configuration = collection.configuration_json
        spaces = [configuration[kind]["space"] for kind in ("hnsw", "spann") if configuration.get(kind)]
        if spaces != ["cosine"]:
            raise IndexDamaged(
                f"The collection {collection.name} in {self._where} measures {spaces}, not cosine: run `footnote reindex`."
            )
        if any((collection.metadata or {}).get(key) != value for key, value in self._made_by.items()):
            raise IndexDamaged(
                f"The collection {collection.name} in {self._where} was made by another model: run `footnote reindex`."
            )

    def _switch(self, client: ClientAPI, collection: Collection) -> None:
        from chromadb.errors import NotFoundError

        try:
            old = client.get_collection(self._name, embedding_function=None)
            old.modify(name=f"{self._name}-old")
        except NotFoundError:
            old = None
        collection.modify(name=self._name)
        if old is not None:
            client.delete_collection(old.name)

    def _drop(self, client: ClientAPI, name: str) -> None:
        from chromadb.errors import NotFoundError

        with suppress(NotFoundError):
            client.delete_collection(name)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Every fault of Chroma as ours. It raises bare `Exception` for a server's error, so nothing narrower can be caught."""
        try:
            yield
        except (IndexUnavailable, SettingsError):
            raise
        except BaseException as error:
            if not (isinstance(error, Exception) or is_panic(error)):
                raise
            raise self._fault(error) from error

    def _fault(self, error: BaseException) -> IndexUnavailable:
        return IndexUnavailable(f"Chroma at {self._where} does not answer ({_line(error)}). Check that it runs, then try again.")


class EmbeddedChroma(ChromaIndex):
    """Chroma in a folder of ours, opened by one process at a time: the holder of the index's lock.

    There is no server that could be away, so every fault is damage, and a rebuild starts from an empty folder.
    """

    def __init__(self, folder: Path, model: str) -> None:
        super().__init__(lambda: _persistent(folder), model, where=str(folder))
        self.folder = folder
        self.model = model

    def rebuild(self, batches: Iterable[tuple[Sequence[str], Vectors]]) -> None:
        """Holds exactly these papers, in a folder begun anew."""
        with self._opening:
            self.close()
            shutil.rmtree(self.folder, ignore_errors=True)
            super().rebuild(batches)

    def _fault(self, error: BaseException) -> IndexUnavailable:
        return IndexDamaged(f"The dense index in {self._where} cannot be used ({_line(error)}): run `footnote reindex`.")


def _crowded(found: Sequence[tuple[str, float]]) -> bool:
    """Whether all that was found lies where the vector itself does: more papers of the same text than were asked for."""
    return len(found) == SELF_SEARCH and found[-1][1] > 1 - 1e-4


def _batches(paper_ids: Sequence[str], vectors: Vectors) -> Iterator[tuple[list[str], Vectors]]:
    for start in range(0, len(paper_ids), BATCH):
        yield list(paper_ids[start : start + BATCH]), vectors[start : start + BATCH]


def _upsert(collection: Collection, *, ids: list[str], vectors: Vectors) -> None:
    collection.upsert(ids=ids, embeddings=vectors)


def _delete(collection: Collection, *, ids: list[str]) -> None:
    collection.delete(ids=ids)


def served_chroma(url: str, model: str) -> ChromaIndex:
    """Chroma behind `http(s)://host[:port]`. Raises SettingsError for another kind of address."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise SettingsError(
            "FOOTNOTE_CHROMA_URL holds a name or password, but Chroma asks for none: keep it in a private network."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
        raise SettingsError(f"FOOTNOTE_CHROMA_URL must be http://host:port, https://host:port or cloud, not {url!r}.")
    return ChromaIndex(lambda: _remote(url), model, where=url)


def cloud_chroma(model: str) -> ChromaIndex:
    """Chroma Cloud, by its own CHROMA_API_KEY, CHROMA_TENANT and CHROMA_DATABASE."""
    return ChromaIndex(_cloud, model, space="spann", where="Chroma Cloud")


def _quiet() -> Any:  # Any: Chroma's settings, imported late because chromadb takes a second to load
    """No telemetry, and nothing read from a `.env` file that happens to lie in the working folder."""
    from chromadb.config import Settings

    return Settings(_env_file=None, anonymized_telemetry=False)  # type: ignore[call-arg]  # pydantic-settings' own argument


def _persistent(folder: Path) -> ClientAPI:
    import chromadb
    from chromadb.api.shared_system_client import SharedSystemClient

    folder.mkdir(parents=True, exist_ok=True)
    try:
        return chromadb.PersistentClient(folder, settings=_quiet())
    except Exception:  # Chroma would hand the half-opened store to whoever opens this folder next
        SharedSystemClient._identifier_to_system.pop(str(folder), None)
        raise


def _remote(url: str) -> ClientAPI:
    """Asks for a heartbeat first: the client's own first request has no time limit, and a stopped server would hold it up."""
    import chromadb
    import httpx

    parts = urlsplit(url)
    secure = parts.scheme == "https"
    httpx.get(f"{url.rstrip('/')}/api/v2/heartbeat", timeout=CONNECT_SECONDS).raise_for_status()
    client = chromadb.HttpClient(str(parts.hostname), parts.port or (443 if secure else 8000), secure, settings=_quiet())
    return _limited(client)


def _cloud() -> ClientAPI:
    import chromadb

    try:
        return _limited(chromadb.CloudClient(settings=_quiet()))
    except ValueError as error:
        if "Missing required" not in str(error):
            raise
        raise SettingsError("FOOTNOTE_CHROMA_URL=cloud needs CHROMA_API_KEY (and CHROMA_TENANT, CHROMA_DATABASE).") from error


def _limited(client: Any) -> ClientAPI:  # Any: the session below is reachable no other way
    import httpx

    client._server._session.timeout = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
    return client  # type: ignore[no-any-return]  # it is the client that came in


def _hang_up(client: Any) -> None:  # Any: as above
    """Chroma's own `close` leaves connections open: the client's, and those of a second client that it keeps for itself."""
    servers = [client._server, client._admin_client._server]
    client.close()
    for session in filter(None, (getattr(server, "_session", None) for server in servers)):
        session.close()


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
