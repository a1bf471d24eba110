"""Real servers for tests, each a private child process that ends with the tests."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

POSTGRES_PACKAGES = Path("/usr/lib/postgresql")


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A running server that only its socket folder leads to."""

    folder: Path

    def url(self, database: str) -> str:
        """What FOOTNOTE_DATABASE_URL would be."""
        return f"postgresql://postgres@/{database}?host={self.folder}"

    @contextmanager
    def fresh_database(self) -> Iterator[str]:
        """The URL of an empty database, dropped at the end."""
        name = f"test_{uuid.uuid4().hex}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" ENCODING UTF8 TEMPLATE template0')
            yield self.url(name)
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    def emptied(self, database: str = "postgres") -> str:
        """The URL of `database` with nothing in it: quicker than a new one."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        return self.url(database)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A Postgres server out of Debian's package. Skips the test when the package is not there."""
    versions = sorted(POSTGRES_PACKAGES.glob("*/bin/initdb"))
    if not versions:
        pytest.skip("needs the Postgres server: apt-get install postgresql")
    bin_folder = versions[-1].parent
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as name:  # short: a socket's path has at most 107 bytes
        folder = Path(name)
        as_user = runner(folder)
        data = folder / "data"
        run(
            as_user, [bin_folder / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        )
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off -c max_connections=200"
        run(as_user, [bin_folder / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start"])
        try:
            yield PostgresServer(folder)
        finally:
            run(as_user, [bin_folder / "pg_ctl", "-D", data, "-m", "immediate", "stop"])


def runner(folder: Path) -> list[str]:
    """How to run a command as somebody who is not root, whom Postgres refuses; `folder` is given to them."""
    if os.geteuid() != 0:
        return []
    shutil.chown(folder, "nobody")
    return ["runuser", "-u", "nobody", "--"]


def run(as_user: list[str], command: list[str | Path]) -> None:
    done = subprocess.run([*as_user, *map(str, command)], capture_output=True, text=True, cwd="/tmp", timeout=60, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr[-500:]}")


class ChromaServer:
    """A Chroma server on loopback that can be stopped, frozen and started again on the same port and folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """What FOOTNOTE_CHROMA_URL would be."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when it answers. Its log goes to a file: a pipe nobody reads would block it."""
        command = [str(Path(sys.executable).parent / "chroma"), "run", "--host", "127.0.0.1", "--port", str(self.port)]
        with (self.folder / "log").open("ab") as log:
            self._child = subprocess.Popen(
                [*command, "--path", str(self.folder / "data")], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        end = time.monotonic() + 60
        while not self._answers():
            if self._child.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the Chroma server did not start: {(self.folder / 'log').read_text()[-500:]}")
            time.sleep(0.1)

    def kill(self) -> None:
        """As a power cut would."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None

    def send(self, number: signal.Signals) -> None:
        """SIGSTOP freezes it, SIGCONT lets it go on."""
        assert self._child is not None
        self._child.send_signal(number)

    def forget(self) -> None:
        """Takes away all it has stored, while it is down."""
        shutil.rmtree(self.folder / "data")

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/api/v2/heartbeat", timeout=1) as response:
                return int(response.status) == 200
        except OSError:
            return False


@contextmanager
def chroma_server() -> Iterator[ChromaServer]:
    """A running Chroma server with an empty store."""
    with tempfile.TemporaryDirectory(prefix="chroma") as name:
        server = ChromaServer(Path(name))
        try:
            server.start()
            yield server
        finally:
            server.kill()
