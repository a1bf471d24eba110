"""How fast questions are answered over HTTP: `python -m eval.bench_http DATA CORPUS.jsonl.gz`.

DATA is a library of many papers (`python -m eval.bench_retrieval CORPUS --data DATA` makes one of 50,000), to whose journal the
answers are added; CORPUS gives the questions, its papers' one-line summaries. `footnote serve` runs as a process of its own and
is asked over loopback. One JSON object comes out, milliseconds and MiB:

  load      answers without an LLM at 1, 8 and 32 clients: p50, p95, answers a second, and the processor time of one answer
  health    /healthz, asked fifty times a second while 60 clients wait for answers: p50, p95, the slowest
  memory    of a fresh server after 1,000 and after 10,000 answers, and by what share it grew
  first_sentence   from a scripted LLM's token that ends an answer's first sentence to its event: p50, p95, the slowest

Client and server share this machine's cores; `busy` is how many processes wanted to run when it began and ended. At 20 answers
a second the whole takes 11 minutes, nearly all of it for the 10,000 answers; `--answers 2000 --seconds 10` takes 3.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path

import aiohttp
from aiohttp import web

from eval.datasets import rows

CLIENTS = (1, 8, 32)
SECONDS = 20.0
"""How long each number of clients asks."""

EARLY, LATE = 1_000, 10_000
"""Answers after which the server's memory is read."""

TOKEN_SECONDS = 0.02
"""Between two tokens of the scripted LLM, as of a quick real one."""

SENTENCES = 30
"""Answers whose first sentence is timed."""

CROWD = 60
"""Clients while health is asked for."""

HEALTH_PAUSE = 0.02
"""Seconds between two questions for health."""


@dataclass(frozen=True, slots=True)
class Load:
    """What so many clients got: milliseconds an answer, answers a second, how many failed, and the milliseconds of processor time
    that an answer took in the server, which other work on the machine hardly changes."""

    clients: int
    p50: float
    p95: float
    per_second: float
    answers: int
    failed: int
    cpu: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the library's data folder")
    parser.add_argument("corpus", type=Path, help="JSON Lines with tldr")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"for each number of clients ({SECONDS:g})")
    parser.add_argument(
        "--answers", type=int, default=LATE, help=f"after which the memory is read again ({LATE}; more than {EARLY})"
    )
    given = parser.parse_args()
    questions = [str(row["tldr"]) for row in islice(rows(given.corpus, "abstract"), 5_000) if row.get("tldr")]
    print(json.dumps(asyncio.run(measure(given.data, questions, given.seconds, given.answers)), indent=1))


async def measure(data: Path, questions: Sequence[str], seconds: float, answers: int) -> dict[str, object]:
    """All figures; times in milliseconds, memory in MiB."""
    figures: dict[str, object] = {"machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"}
    busy = [os.getloadavg()[0]]
    async with asked(data) as (session, server):
        figures["papers"] = await ready(session, server.url)
        await load(session, server, questions, clients=4, answers=100)
        figures["load"] = [asdict(await load(session, server, questions, clients, seconds=seconds)) for clients in CLIENTS]
        figures["health"] = await health(session, server, questions, seconds)
    async with asked(data) as (session, server):
        await ready(session, server.url)
        figures["memory"] = await memory(session, server, questions, answers)
    async with (
        scripted_llm() as llm,
        asked(data, FOOTNOTE_LLM_MODEL="scripted", FOOTNOTE_LLM_BASE_URL=llm.url) as (session, server),
    ):
        await ready(session, server.url)
        delays = [await first_sentence(session, server.url, llm, question) for question in questions[: SENTENCES + 3]]
        timed = [delay for delay in delays[3:] if delay is not None]
        figures["first_sentence"] = {**percentiles(timed), "max": milliseconds(max(timed)), "answers": len(timed)}
    figures["busy"] = [*busy, os.getloadavg()[0]]
    return figures


@asynccontextmanager
async def asked(data: Path, **settings: str) -> AsyncIterator[tuple[aiohttp.ClientSession, Server]]:
    """A fresh server and a client, which opens as many connections as there are requests at once."""
    with serving(data, **settings) as server:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            yield session, server


@dataclass(frozen=True, slots=True)
class Server:
    """A running `footnote serve`."""

    url: str
    pid: int

    def mebibytes(self) -> float:
        """Its memory now, resident."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024

    def processor_seconds(self) -> float:
        """Its processor time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(data: Path, **settings: str) -> Iterator[Server]:
    """`footnote serve` on a free port, without a limit on the rate."""
    command = [sys.executable, "-m", "footnote", "--data", str(data), "serve", "--port", "0"]
    environment = {**os.environ, "FOOTNOTE_RATE_LIMIT": "0", **settings}
    with tempfile.TemporaryFile("w+") as log, subprocess.Popen(command, stderr=log, env=environment) as process:
        try:
            yield Server(address_in(log.fileno(), process), process.pid)
        finally:
            process.send_signal(signal.SIGTERM)


def address_in(log: int, process: subprocess.Popen[bytes]) -> str:
    """The address that the server says on its first line."""
    while process.poll() is None:
        if found := re.search(r"http://\S+", os.pread(log, 4096, 0).decode()):
            return found[0]
        time.sleep(0.05)
    raise SystemExit(os.pread(log, 4096, 0).decode())


async def ready(session: aiohttp.ClientSession, url: str) -> int:
    """Waits until questions can be answered; how many papers there are."""
    while True:
        async with session.get(f"{url}/readyz") as response:
            if response.status == 200:
                return int((await response.json())["papers"])
        await asyncio.sleep(0.2)


async def load(
    session: aiohttp.ClientSession,
    server: Server,
    questions: Sequence[str],
    clients: int,
    *,
    seconds: float = 1e9,
    answers: int = 10**9,
) -> Load:
    """`clients` who each ask one question after the other, for so many seconds or until there were so many answers."""
    times: list[float] = []
    failed = 0
    asked = cycle(questions)
    began, processor = time.perf_counter(), server.processor_seconds()

    async def client() -> None:
        nonlocal failed
        while time.perf_counter() - began < seconds and len(times) + failed < answers:
            start = time.perf_counter()
            if await is_answered(session, server.url, next(asked)):
                times.append(time.perf_counter() - start)
            else:
                failed += 1

    await asyncio.gather(*(client() for _ in range(clients)))
    took = time.perf_counter() - began
    each = (server.processor_seconds() - processor) * 1000 / max(1, len(times))
    per_second = round(len(times) / took, 1)
    return Load(clients, **percentiles(times), per_second=per_second, answers=len(times), failed=failed, cpu=round(each, 1))


async def is_answered(session: aiohttp.ClientSession, url: str, question: str) -> bool:
    """Whether the question was answered."""
    try:
        async with session.post(f"{url}/api/v1/ask", json={"question": question}) as response:
            await response.read()
            return response.status == 200
    except aiohttp.ClientError:
        return False


async def health(session: aiohttp.ClientSession, server: Server, questions: Sequence[str], seconds: float) -> dict[str, float]:
    """How soon health is told while a crowd waits for answers."""
    times: list[float] = []

    async def look() -> None:
        while True:
            start = time.perf_counter()
            async with session.get(f"{server.url}/healthz") as response:
                await response.read()
            times.append(time.perf_counter() - start)
            await asyncio.sleep(HEALTH_PAUSE)

    looking = asyncio.create_task(look())
    crowd = await load(session, server, questions, CROWD, seconds=seconds)
    looking.cancel()
    return {**percentiles(times), "max": milliseconds(max(times)), "answers": crowd.answers, "failed": crowd.failed}


async def memory(session: aiohttp.ClientSession, server: Server, questions: Sequence[str], answers: int) -> dict[str, float]:
    """What the server takes after EARLY and after `answers` more answers."""
    await load(session, server, questions, clients=8, answers=EARLY)
    early = server.mebibytes()
    await load(session, server, questions, clients=8, answers=answers - EARLY)
    late = server.mebibytes()
    return {f"after_{EARLY}": round(early, 1), f"after_{answers}": round(late, 1), "growth": round(late / early - 1, 3)}


@dataclass
class ScriptedLLM:
    """Streams the first paper's first sentence and another, a token at a time; `ended` is when the token went out that ends the
    first."""

    url: str = ""
    ended: float = 0.0

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """One chat completion."""
        said = json.dumps(await request.json())
        found = re.search(r"Abstract: ([^.\\]{40,400})\.", said)
        words = (found[1] if found else "The abstract answers the question").split()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for token in [*(f"{word} " for word in words), "[1", "].", " It", " says", " more", " [1", "]."]:
            await asyncio.sleep(TOKEN_SECONDS)
            await response.write(chunk({"content": token}, None))
            if "." in token and not self.ended:
                self.ended = time.perf_counter()
        await response.write(chunk({}, "stop") + b"data: [DONE]\n\n")
        return response


def chunk(delta: dict[str, str], finish: str | None) -> bytes:
    """A piece of a chat completion on the wire."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "scripted", "choices": [choice]}
    return f"data: {json.dumps(body)}\n\n".encode()


@asynccontextmanager
async def scripted_llm() -> AsyncIterator[ScriptedLLM]:
    """The LLM's server on a free loopback port."""
    llm = ScriptedLLM()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", llm.complete)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    llm.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield llm
    finally:
        await runner.cleanup()


async def first_sentence(session: aiohttp.ClientSession, url: str, llm: ScriptedLLM, question: str) -> float | None:
    """Seconds from the token that ends the first sentence to its event; None where the LLM was not asked or not believed."""
    llm.ended = 0.0
    headers = {"Accept": "text/event-stream"}
    seen = 0.0
    async with session.post(f"{url}/api/v1/ask", json={"question": question}, headers=headers) as response:
        async for line in response.content:
            if line == b"event: sentence\n" and not seen:
                seen = time.perf_counter()
    return seen - llm.ended if 0 < llm.ended < seen else None


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """p50 and p95 in milliseconds."""
    cuts = statistics.quantiles(seconds, n=20, method="inclusive")
    return {"p50": milliseconds(cuts[9]), "p95": milliseconds(cuts[18])}


def milliseconds(seconds: float) -> float:
    """To a tenth."""
    return round(seconds * 1000, 1)


if __name__ == "__main__":
    main()
