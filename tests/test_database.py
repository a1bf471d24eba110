from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, select, update

from rag.catalogue import Catalogue
from rag.catalogue_writing import lock
from rag.database import Database, make_engine, open_database, sqlite_url, state
from rag.errors import CatalogueUnavailable, SettingsError
from tests.servers import PostgresServer


def write(database: Database, revision: int, then: Callable[[Connection], object] = lambda connection: None) -> None:
    with database.writing() as connection:
        connection.execute(update(state).values(revision=revision))
        then(connection)


def test_opening_again_keeps_what_is_there(database: Database, database_url: str) -> None:
    with database.writing() as connection:
        connection.execute(update(state).values(revision=7))
    again = open_database(database_url)
    with again.reading() as connection:
        assert connection.scalar(select(state.c.revision)) == 7
    again.close()


def test_many_openers_of_a_new_database_make_its_tables_once(database_url: str) -> None:
    opened: list[Database] = []
    threads = [threading.Thread(target=lambda: opened.append(open_database(database_url))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 6
    for one in opened:
        with one.reading() as connection:
            assert connection.execute(select(state.c.revision)).scalars().all() == [0]
        one.close()


def test_a_failed_write_leaves_no_trace(database: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        write(database, 99, then=lambda connection: 1 / 0)
    with database.reading() as connection:
        assert connection.scalar(select(state.c.revision)) == 0


def test_a_database_of_another_schema_is_refused(database: Database, database_url: str) -> None:
    with database.writing() as connection:
        connection.execute(update(state).values(schema=999))
    with pytest.raises(SettingsError, match="schema 999"):
        open_database(database_url)


@pytest.mark.parametrize("url", ["postgres://u:p@h/n", "postgresql://u:p@h/n", "postgresql+psycopg://u:p@h/n"])
def test_each_spelling_of_a_postgres_url_is_taken(url: str) -> None:
    assert make_engine(url).url.drivername == "postgresql+psycopg"


@pytest.mark.parametrize("url", ["mysql://h/n", "sqlite://", "not a url", "sqlite:///:memory:"])
def test_other_urls_are_refused_with_a_setting_error(url: str) -> None:
    with pytest.raises(SettingsError, match="FOOTNOTE_DATABASE_URL"):
        make_engine(url)


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(CatalogueUnavailable, match="FOOTNOTE_DATABASE_URL"):
        open_database("postgresql://nobody@127.0.0.1:1/none")


def test_a_file_that_is_no_database_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "footnote.db").write_bytes(b"not a database at all, whatever its name says" * 100)
    with pytest.raises(CatalogueUnavailable, match="damaged"):
        open_database(sqlite_url(tmp_path / "footnote.db"))


def test_a_data_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CatalogueUnavailable, match="--data"):
        sqlite_url(tmp_path / "file" / "footnote.db")


def test_a_lock_held_too_long_is_unavailable(database: Database, database_url: str) -> None:
    impatient = open_database(database_url, wait=0.1)
    with database.writing() as connection:
        lock(connection)
        with pytest.raises(CatalogueUnavailable, match="another process is writing"):
            Catalogue(impatient).remove(["unknown0"])
    impatient.close()


def test_a_full_disk_is_unavailable_and_loses_nothing(tmp_path: Path) -> None:
    database = open_database(sqlite_url(tmp_path / "footnote.db"))
    with database.writing() as connection:
        connection.execute(update(state).values(revision=1))
        connection.exec_driver_sql(f"PRAGMA max_page_count={connection.exec_driver_sql('PRAGMA page_count').scalar()}")
    with pytest.raises(CatalogueUnavailable, match="free some space"):
        write(database, 2, then=lambda c: c.exec_driver_sql("CREATE TABLE big AS SELECT zeroblob(10000000) AS blob"))
    with database.reading() as connection:
        assert connection.scalar(select(state.c.revision)) == 1
    database.close()


def test_readers_are_not_held_up_by_a_writer(database: Database) -> None:
    with database.writing() as writer:
        writer.execute(update(state).values(revision=5))
        with database.reading() as reader:
            assert reader.scalar(select(state.c.revision)) == 0


def test_only_one_process_holds_a_name(database: Database) -> None:
    with database.alone("sync") as first, database.alone("sync") as second, database.alone("other") as other:
        assert first
        assert other
        assert second is not database.shared
    with database.alone("sync") as again:
        assert again


def test_a_server_that_comes_back_is_used_again(postgres: PostgresServer) -> None:
    database = open_database(postgres.emptied())
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = 'postgres'"
        )
    with database.reading() as connection:
        assert connection.scalar(select(state.c.revision)) == 0
    database.close()


def test_a_connection_lost_in_the_middle_is_unavailable_and_leaves_no_trace(postgres: PostgresServer) -> None:
    database = open_database(postgres.emptied())
    with pytest.raises(CatalogueUnavailable):
        write(database, 5, then=lambda c: c.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())"))
    with database.reading() as connection:
        assert connection.scalar(select(state.c.revision)) == 0
    database.close()


def test_more_readers_than_the_pool_holds_are_served(database: Database) -> None:
    def look() -> None:
        with database.reading() as connection:
            seen.append(connection.scalar(select(state.c.revision)))

    seen: list[int | None] = []
    threads = [threading.Thread(target=look) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [0] * 40
