"""A scripted OpenAI-compatible server on a real socket: it answers as told, byte by byte, stalls and breaks off.

    with StubLLM(error(429, retry_after="0"), answer("It works [1].")) as stub:
        OpenAIChat("stub", stub.base_url, "key")

Each request takes the next reply; the last one is given again and again. `replies` may be set anew at any time.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Step = bytes | float | None
"""Bytes to send, seconds to wait, or None: break the connection off."""


@dataclass(frozen=True)
class Reply:
    """A response: a streamed one's body is not announced by its length, it ends with the connection."""

    steps: Sequence[Step]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "text/event-stream"


def event(content: object = None, *, finish: str | None = None, **delta: object) -> bytes:
    """One event of a chat stream. Other fields of the delta by name."""
    choice = {"index": 0, "delta": {"content": content, **delta}, "finish_reason": finish}
    return data({"id": "stub", "object": "chat.completion.chunk", "created": 0, "model": "stub", "choices": [choice]})


def data(value: object) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


ROLE = event("", role="assistant")
NO_CHOICES = data({"id": "", "object": "", "created": 0, "model": "", "prompt_filter_results": [], "choices": []})
USAGE = data(
    {
        "id": "stub",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "stub",
        "choices": [],
        "usage": {"prompt_tokens": 70, "completion_tokens": 7, "total_tokens": 77},
    }
)
DONE = b"data: [DONE]\n\n"


def answer(text: str, *, finish: str = "stop", piece: int = 4) -> Reply:
    """A whole well-formed stream of `text`, `piece` characters an event."""
    events = [event(text[place : place + piece]) for place in range(0, len(text), piece)]
    return Reply([ROLE, *events, event(finish=finish), USAGE, DONE])


def steps(*given: Step) -> Reply:
    """A stream told step by step."""
    return Reply(given)


def in_pieces(whole: bytes, size: int) -> list[Step]:
    """The same bytes, `size` at a time, each sent by itself: characters and events are split anywhere."""
    return [step for place in range(0, len(whole), size) for step in (whole[place : place + size], 0.0005)]


def error(
    status: int, message: str = "it failed", *, code: str | None = None, param: str | None = None, retry_after: str | None = None
) -> Reply:
    """OpenAI's error object."""
    body = {"error": {"message": message, "type": code or "error", "param": param, "code": code}}
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return Reply([json.dumps(body).encode()], status, headers, "application/json")


def embeddings(vectors: Iterable[Sequence[float]], tokens: int = 5) -> Reply:
    rows = [{"object": "embedding", "index": index, "embedding": list(vector)} for index, vector in enumerate(vectors)]
    body = {"object": "list", "data": rows, "model": "stub", "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
    return Reply([json.dumps(body).encode()], content_type="application/json")


class StubLLM:
    """The server, from `with` to its end. `requests` and `headers` are what came in; `left` is set when a client breaks off."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.requests: list[dict[str, Any]] = []  # JSON as it came
        self.headers: list[dict[str, str]] = []
        self.asked = threading.Event()
        self.left = threading.Event()
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(self)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def next_reply(self, request: dict[str, Any], headers: dict[str, str]) -> Reply:
        with self._lock:
            self.requests.append(request)
            self.headers.append(headers)
            self.asked.set()
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, stub: StubLLM) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stub = stub


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = self.server.stub.next_reply(
            request | {"path": self.path}, {name.lower(): value for name, value in self.headers.items()}
        )
        self.send_response(reply.status)
        for name, value in {"Content-Type": reply.content_type, "Connection": "close", **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self._perform(reply.steps)
        except OSError:
            self.server.stub.left.set()
        self.close_connection = True

    def _perform(self, steps: Iterable[Step]) -> None:
        for step in steps:
            if step is None:
                return
            if isinstance(step, bytes):
                self.wfile.write(step)
                self.wfile.flush()
            else:
                self._wait(step)

    def _wait(self, seconds: float) -> None:
        """Raises OSError when the client leaves meanwhile."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self.server.stub.stopping.is_set():
            time.sleep(min(left, 0.02))
            self.connection.setblocking(False)
            try:
                if self.connection.recv(1) == b"":
                    raise ConnectionResetError
            except BlockingIOError:
                pass
            finally:
                self.connection.setblocking(True)
