"""Clients that send a request drop by drop, and those that only seem to."""

import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from api.connections import ImpatientProtocol
from tests.api.conftest import MakeApp
from tests.api.fakes import FakeLibrary, served

BODY = b'{"question": "What do otters sort?"}'
ASK = b"POST /api/v1/ask HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: " + str(len(BODY)).encode()


class Quick(ImpatientProtocol):
    """Waits half a second."""

    patience = 0.5


@pytest.fixture
def connection(make_app: MakeApp) -> Iterator[socket.socket]:
    with served(make_app(), Quick) as url:
        address = urlsplit(url)
        with socket.create_connection((address.hostname, address.port), timeout=10) as made:
            yield made


def ask(connection: socket.socket) -> bytes:
    """The head of a request that asks."""
    return ASK % "{}:{}".format(*connection.getpeername()).encode()


def status(connection: socket.socket) -> bytes:
    """Of the next response; empty where the connection was closed."""
    try:
        return b"".join(connection.recv(65536).split(b" ")[1:2])
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTT", b"GET /healthz HTTP/1.1\r\nHost: here\r\nX-Slow: a", None])
def test_a_request_that_is_not_sent_to_its_end_is_waited_for_only_so_long(connection: socket.socket, sent: bytes | None) -> None:
    connection.sendall(ask(connection) + b"\r\n\r\n" + BODY[:-1] if sent is None else sent)
    began = time.monotonic()
    assert status(connection) == b""
    assert 0.4 < time.monotonic() - began < 5


def test_drops_that_go_on_buy_no_time(connection: socket.socket) -> None:
    connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
    with pytest.raises(ConnectionError):  # noqa: PT012  # which of the drops meets the closed connection is not ours to say
        for _ in range(100):
            connection.sendall(b"a")
            time.sleep(0.05)


def test_an_answer_may_take_longer_and_the_connection_serves_again(connection: socket.socket, library: FakeLibrary) -> None:
    library.engine.pauses = {0: 1.0}
    for _ in range(2):
        connection.sendall(ask(connection) + b"\r\n\r\n" + BODY)
        assert status(connection) == b"200"
        time.sleep(0.7)  # idle for longer than a request may take


def test_endless_headers_are_refused(connection: socket.socket) -> None:
    connection.sendall(b"GET /healthz HTTP/1.1\r\n" + b"X-Many: of them\r\n" * 5_000)
    assert status(connection) == b"400"
