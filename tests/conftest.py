"""With CI=true a test that skips for want of a Debian package fails: there `.ci/run` installs them all."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from rag.database import Database, open_database, sqlite_url
from tests.servers import PostgresServer, postgres_server


def refuse_missing_package(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turns a skip whose reason says `apt-get install …` into a failure."""
    if os.environ.get("CI") == "true" and report.skipped and "apt-get install" in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"skipped, though CI has every package: {report.longrepr}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    refuse_missing_package(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    refuse_missing_package(report)
    return report


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One Postgres server for all tests of this process."""
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database: tests that use it run on SQLite and on Postgres."""
    if request.param == "sqlite":
        yield sqlite_url(tmp_path / "footnote.db")
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    yield server.emptied()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """An open, empty database, on SQLite and on Postgres."""
    opened = open_database(database_url)
    yield opened
    opened.close()
