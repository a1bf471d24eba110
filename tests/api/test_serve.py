"""`footnote serve` and `footnote keys` as a person runs them."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
from starlette.datastructures import Headers

from api.keys import make_keys
from api.security import read_keys
from rag.settings import Settings
from tests.api.test_ask import SSE
from tests.stub_llm import DONE, ROLE, StubLLM, event, steps

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "rag" / "samples" / "papers.txt"
QUESTION = {"question": "How much faster does Latte generate video with LeMiCa?"}


@dataclass(frozen=True)
class Served:
    """A running `footnote serve`."""

    process: subprocess.Popen[str]
    url: str
    log: Path

    def wait_until_ready(self) -> None:
        for _ in range(600):
            try:
                if httpx2.get(f"{self.url}/readyz").status_code == 200:
                    return
            except httpx2.TransportError:
                assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.1)
        raise AssertionError("not ready in a minute")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the sample papers."""
    folder = tmp_path_factory.mktemp("samples")
    footnote("ingest", SAMPLES, data=folder, check=True)
    return folder


def environment(**given: str) -> dict[str, str]:
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("FOOTNOTE_", "OPENAI_"))}
    return {**bare, "PYTHONPATH": str(ROOT), **given}


def footnote(*words: object, data: Path, check: bool = False, **given: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "footnote", "--data", str(data), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment(**given), check=check)


@contextmanager
def serving(data: Path, log: Path, *words: str, **given: str) -> Iterator[Served]:
    command = [sys.executable, "-m", "footnote", "--data", str(data), "serve", "--port", "0", *words]
    with log.open("w") as out, subprocess.Popen(command, stderr=out, env=environment(**given), text=True) as process:
        try:
            for _ in range(600):
                if found := re.search(r"http://\S+", log.read_text()):
                    break
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
            assert found
            served = Served(process, found[0], log)
            served.wait_until_ready()
            yield served
        finally:
            process.kill()


def test_a_server_answers_and_ends_at_sigterm_within_a_second_or_two(data: Path, tmp_path: Path) -> None:
    with serving(data, tmp_path / "log") as served:
        answer = httpx2.post(f"{served.url}/api/v1/ask", json=QUESTION, timeout=30).json()
        assert "2.9 times faster" in answer["text"]
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(10) in (0, -signal.SIGTERM)
        lines = [json.loads(line) for line in served.log.read_text().splitlines() if line.startswith("{")]
        assert "request" in [line["message"] for line in lines]
        assert "Latte" not in served.log.read_text()


def test_a_stream_under_way_at_sigterm_is_finished(data: Path, tmp_path: Path) -> None:
    first, second = "LeMiCa makes Latte 2.9 times faster [1]. It needs", " no training [1]."
    with (
        StubLLM(steps(ROLE, event(first), 2.0, event(second), event(finish="stop"), DONE)) as stub,
        serving(data, tmp_path / "log", FOOTNOTE_LLM_MODEL="stub", FOOTNOTE_LLM_BASE_URL=stub.base_url) as served,
    ):
        names = []
        with httpx2.stream("POST", f"{served.url}/api/v1/ask", json=QUESTION, headers=SSE, timeout=30) as response:
            for line in response.iter_lines():
                names += [line] if line.startswith("event: ") else []
                if line == "event: sentence" and names.count(line) == 1:
                    served.process.send_signal(signal.SIGTERM)
        assert names == ["event: papers", "event: sentence", "event: sentence", "event: answer"]
        assert served.process.wait(10) in (0, -signal.SIGTERM)


def test_opentelemetry_hears_of_requests_but_not_of_what_was_asked(data: Path, tmp_path: Path) -> None:
    heard: dict[str, bytes] = {}

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard[self.path] = heard.get(self.path, b"") + self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    plain = {"OTEL_EXPORTER_OTLP_COMPRESSION": "none", "OTEL_TRACES_SAMPLER": "always_on"}
    endpoint = f"http://127.0.0.1:{collector.server_port}"
    with serving(data, tmp_path / "log", OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, **plain) as served:
        httpx2.post(f"{served.url}/api/v1/ask", json=QUESTION, timeout=30)
        httpx2.get(f"{served.url}/api/v1/search", params=QUESTION, timeout=30)
        served.process.send_signal(signal.SIGTERM)
        served.process.wait(20)
    collector.shutdown()
    collector.server_close()
    assert b"POST /api/v1/ask" in heard["/v1/traces"]
    assert b"Latte" not in b"".join(heard.values())


def test_another_bind_without_keys_is_refused_in_one_line(data: Path) -> None:
    ended = footnote("serve", "--host", "0.0.0.0", data=data)
    assert ended.returncode == 1
    assert "FOOTNOTE_API_KEYS" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_several_workers_over_the_embedded_index_are_refused_with_the_way_out(data: Path) -> None:
    ended = footnote("serve", "--workers", "2", data=data)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert "FOOTNOTE_CHROMA_URL" in ended.stderr


def test_a_port_that_is_taken_is_named(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = footnote("serve", "--port", port, data=data)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert f"127.0.0.1:{port}" in ended.stderr


def test_new_keys_are_shown_once_and_kept_as_digests(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("OTHER=1\nFOOTNOTE_API_KEYS=sha256:" + "0" * 64 + "\n")
    ended = footnote("keys", "--file", file, data=tmp_path, check=True)
    user, admin = re.findall(r"fn-\S+", ended.stdout)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    written = file.read_text()
    assert user not in written
    assert admin not in written
    values = dict(line.split("=", 1) for line in written.splitlines())
    assert values["OTHER"] == "1"
    assert len(values["POSTGRES_PASSWORD"]) >= 24
    assert values["FOOTNOTE_API_KEYS"].startswith("sha256:" + "0" * 64 + ",sha256:")
    keys = read_keys(Settings(api_keys=values["FOOTNOTE_API_KEYS"], admin_keys=values["FOOTNOTE_ADMIN_KEYS"]), "0.0.0.0")  # type: ignore[arg-type]
    assert not keys.caller(Headers({"Authorization": f"Bearer {user}"})).admin
    assert keys.caller(Headers({"Authorization": f"Bearer {admin}"})).admin


def test_keys_are_never_made_twice_and_the_database_keeps_its_password(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    first = make_keys(file)
    password = re.findall("^POSTGRES_PASSWORD=.*", file.read_text(), re.MULTILINE)
    second = make_keys(file)
    assert first.user != second.user
    assert first.admin != second.admin
    assert re.findall("^POSTGRES_PASSWORD=.*", file.read_text(), re.MULTILINE) == password
    assert file.read_text().count("sha256:") == 4
