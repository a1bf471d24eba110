"""Where everything that must not be lost is kept: the tables, and how they are reached (SQLite by default, Postgres by URL)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

import sqlalchemy.orm  # noqa: F401  # else loaded later, by LlamaIndex, while another thread is at the database: then both break
from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Dialect,
    Engine,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    create_engine,
    event,
    func,
    insert,
    inspect,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from rag.errors import CatalogueUnavailable, SettingsError

SCHEMA = 2
"""Raised whenever a table below changes; a database of another schema is refused, never guessed at."""

WAIT_SECONDS = 30
"""How long a writer waits for another before it gives up."""

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Words(TypeDecorator[str]):
    """Text of any length. NUL and lone surrogates, which no database takes, become U+FFFD: as many characters as before."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return value and UNSTORABLE.sub("\ufffd", value)


metadata = MetaData()

state = Table(
    "state",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("schema", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("arrivals", Integer, nullable=False),
)

papers = Table(
    "papers",
    metadata,
    Column("arrival", Integer, primary_key=True, autoincrement=False),
    Column("paper_id", Words, nullable=False, unique=True),
    Column("revision", Integer, nullable=False),
    Column("changed", Integer, nullable=False),
    Column("deleted", Boolean, nullable=False),
    Column("version", Integer),
    Column("text_hash", Words, nullable=False),
    Column("year", Integer),
    Column("authors_truncated", Boolean, nullable=False),
    Column("venue", Words),
    Column("category", Words),
    Column("title", Words),
    Column("authors", Words, nullable=False),
    Column("url", Words),
    Column("doi", Words),
    Column("keywords", Words, nullable=False),
    Column("abstract", Words, nullable=False),
    Column("text", Words, nullable=False),
    Column("sentences", Words, nullable=False),
    Index("papers_by_revision", "revision", "paper_id", "deleted"),
    Index("papers_by_text", "text_hash", "deleted", "paper_id"),
    Index("papers_by_year", "year", "deleted", "paper_id"),
    Index("papers_by_arrival", "arrival", "deleted", "paper_id", "text_hash", "year"),
)
"""`arrival` counts papers in the order they came. `revision` is that of the last change an index must learn of, `changed` that of
the last change of the paper itself. A removed paper leaves a tombstone (`deleted`, its texts emptied), so that
the indexes learn of it. `authors`, `keywords` and `sentences` are JSON."""

aliases = Table(
    "aliases",
    metadata,
    Column("alias", Words, primary_key=True),
    Column("paper_id", Words, nullable=False, index=True),
)
"""`doi:10.…`, `arxiv:2401.00001`, `id:…`: other names of a paper."""

fingerprints = Table(
    "fingerprints",
    metadata,
    Column("fingerprint", Words, primary_key=True),
    Column("paper_id", Words, primary_key=True, index=True),
)
"""Hashes of every abstract a paper has had; two papers may share one (two DOIs, one abstract)."""

redirects = Table(
    "redirects",
    metadata,
    Column("old_id", Words, primary_key=True),
    Column("paper_id", Words, nullable=False, index=True),
)
"""Ids of papers that turned out to be another one."""

facets = Table(
    "facets",
    metadata,
    Column("kind", Words, primary_key=True),
    Column("key", Words, primary_key=True),
    Column("arrival", Integer, primary_key=True, index=True),
    sqlite_with_rowid=False,
)
"""What filters match: `kind` is author, surname, venue, category or area; `key` is folded (no case, no accents)."""

whole_vectors = Table(
    "whole_vectors",
    metadata,
    Column("model", Words, primary_key=True),
    Column("text_hash", Words, primary_key=True, index=True),
    Column("vector", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
"""float16, shape (dimension,): title and abstract as one. Apart from the sentences, so that reading all of them is quick."""

sentence_vectors = Table(
    "sentence_vectors",
    metadata,
    Column("model", Words, primary_key=True),
    Column("text_hash", Words, primary_key=True, index=True),
    Column("vectors", LargeBinary, nullable=False),
)
"""float16, shape (sentences, dimension)."""

conversations = Table(
    "conversations",
    metadata,
    Column("conversation_id", Words, primary_key=True),
    Column("owner", Words, nullable=False),
    Column("title", Words, nullable=False),
    Column("created", Float, nullable=False),
    Column("updated", Float, nullable=False),
    Column("messages", Integer, nullable=False),
    Column("locked_by", Words),
    Column("locked_until", Float),
    Index("conversations_by_owner", "owner", "updated", "conversation_id"),
)

messages = Table(
    "messages",
    metadata,
    Column("conversation_id", Words, primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("role", Words, nullable=False),
    Column("content", Words, nullable=False),
    Column("answer_id", Words),
    Column("created", Float, nullable=False),
)

answers = Table(
    "answers",
    metadata,
    Column("answer_id", Words, primary_key=True),
    Column("owner", Words, nullable=False, index=True),
    Column("conversation_id", Words, index=True),
    Column("revision", Integer, nullable=False),
    Column("created", Float, nullable=False),
    Column("answer", Words, nullable=False),
)

feedback = Table(
    "feedback",
    metadata,
    Column("answer_id", Words, primary_key=True),
    Column("owner", Words, primary_key=True),
    Column("verdict", Words, nullable=False),
    Column("comment", Words, nullable=False),
    Column("created", Float, nullable=False),
)

threads = Table(
    "threads",
    metadata,
    Column("thread", Words, primary_key=True),
    Column("conversation_id", Words, nullable=False, index=True),
)
"""Which conversation a thread elsewhere (Slack) is: `team/channel/ts`."""

events = Table(
    "events",
    metadata,
    Column("event", Words, primary_key=True),
    Column("expires", Float, nullable=False, index=True),
)
"""Events already dealt with, kept until they can no longer be delivered again."""


class Database:
    """An open database. Reads and writes go through `reading` and `writing`, which turn the driver's errors into ours."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @property
    def shared(self) -> bool:
        """True on Postgres: several machines may be at it."""
        return self.engine.dialect.name == "postgresql"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection in a transaction that sees one state. Raises CatalogueUnavailable."""
        with explained(), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self, alone: str = "") -> Iterator[Connection]:
        """A transaction: committed at its end, or leaves no trace. On SQLite one at a time, on Postgres one at a time of those
        with the same name in `alone`. Raises CatalogueUnavailable."""
        with explained(), self.engine.connect() as connection:
            connection.execution_options(footnote_begin="BEGIN IMMEDIATE")
            with connection.begin():
                if alone and self.shared:
                    connection.execute(select(func.pg_advisory_xact_lock(crc32(alone.encode()))))
                yield connection

    @contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Whether we alone hold `name` (a Postgres advisory lock, freed when we die). On SQLite always True: what several
        processes share there is guarded by file locks."""
        if not self.shared:
            yield True
            return
        number = crc32(name.encode())
        with explained(), self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            held = bool(connection.scalar(select(func.pg_try_advisory_lock(number))))
            try:
                yield held
            finally:
                if held:
                    connection.execute(select(func.pg_advisory_unlock(number)))

    def close(self) -> None:
        """Closes every connection; a later use opens new ones."""
        self.engine.dispose()


def open_database(url: str, wait: float = WAIT_SECONDS) -> Database:
    """The database at `url`, its tables made if it is new; a writer waits `wait` seconds for another.

    Raises SettingsError for a URL that is none of ours or a database of another schema, CatalogueUnavailable when it cannot be
    reached."""
    database = Database(make_engine(url, wait))
    try:
        check_tables(database)
    except BaseException:
        database.close()
        raise
    return database


def check_tables(database: Database) -> None:
    with explained():
        with database.engine.connect() as connection:
            fresh = not inspect(connection).has_table("state")
        if fresh:
            create_tables(database)
        with database.engine.connect() as connection:
            schema = connection.scalar(select(state.c.schema))
    if schema != SCHEMA:
        raise SettingsError(
            f"The database is of schema {schema}, this Footnote needs {SCHEMA}: use the Footnote that made it, "
            "or `papers export` there and `ingest` here into a new data folder."
        )


def sqlite_url(path: Path) -> str:
    """The URL of a SQLite file; its folder is made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CatalogueUnavailable(
            f"The data folder {path.parent} cannot be made: {error.strerror}. Choose another with --data."
        ) from error
    return f"sqlite:///{path}"


def make_engine(url: str, wait: float = WAIT_SECONDS) -> Engine:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise SettingsError("FOOTNOTE_DATABASE_URL is no URL; give one like postgresql://user:password@host/name.") from error
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername == "postgresql+psycopg":
        options = f"-c lock_timeout={round(wait * 1000)}ms"
        return create_engine(parsed, pool_pre_ping=True, pool_size=10, connect_args={"connect_timeout": 10, "options": options})
    if parsed.drivername == "sqlite" and parsed.database not in (None, "", ":memory:"):
        engine = create_engine(parsed, max_overflow=60, connect_args={"timeout": wait})
        event.listen(engine, "connect", prepare_sqlite)
        event.listen(engine, "begin", begin_sqlite)
        return engine
    raise SettingsError(
        f"FOOTNOTE_DATABASE_URL: {parsed.drivername} is not supported; use postgresql://… or leave it empty for SQLite."
    )


def prepare_sqlite(connection: object, record: ConnectionPoolEntry) -> None:
    """Readers beside one writer (WAL), commits that survive a power cut, and transactions begun by us, not by the driver."""
    connection.isolation_level = None  # type: ignore[attr-defined]  # a sqlite3.Connection, typed as the bare DBAPI one
    cursor = connection.cursor()  # type: ignore[attr-defined]
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA cache_size=-16384")  # KiB, for each connection
    cursor.close()


def begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("footnote_begin", "BEGIN"))


def create_tables(database: Database) -> None:
    """Safe to run by several processes at once."""
    with database.writing(alone="tables") as connection:
        metadata.create_all(connection)
        if connection.scalar(select(state.c.id)) is None:
            connection.execute(insert(state).values(id=1, schema=SCHEMA, revision=0, arrivals=0))


@contextmanager
def explained() -> Iterator[None]:
    """Turns SQLAlchemy's and the driver's errors into CatalogueUnavailable with one line that says what to do."""
    try:
        yield
    except DBAPIError as error:
        raise CatalogueUnavailable(explain(str(error.orig))) from error
    except SQLAlchemyError as error:
        raise CatalogueUnavailable(explain(str(error))) from error


def explain(reason: str) -> str:
    line = reason.strip().splitlines()[0] if reason.strip() else "no reason given"
    for sign, advice in {
        "locked": "another process is writing; try again when it is done",
        "lock timeout": "another process is writing; try again when it is done",
        "disk is full": "free some space and run the same command again; nothing committed is lost",
        "No space left": "free some space and run the same command again; nothing committed is lost",
        "readonly": "the data folder is read-only; make it writable or choose another with --data",
        "unable to open": "check that the data folder exists and is yours, or choose another with --data",
        "malformed": "the database file is damaged; restore it from a backup, or ingest again into a new data folder",
        "not a database": "the database file is damaged; restore it from a backup, or ingest again into a new data folder",
        "connection": "check that the database server is up and FOOTNOTE_DATABASE_URL is right",
        "password": "check FOOTNOTE_DATABASE_URL",
    }.items():
        if sign in line:
            return f"The catalogue cannot be used ({line}): {advice}."
    return f"The catalogue cannot be used: {line}."
