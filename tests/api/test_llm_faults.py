"""A failing LLM behind the real service: a right answer, or the papers' own sentences with a notice, and always in time."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI
from openai import OpenAI
from pydantic import SecretStr

from api.app import create_app
from api.schemas import AnswerOut
from api.security import read_keys
from rag.build import Library, open_library
from rag.ingest import files
from rag.settings import Settings
from tests.api.fakes import served
from tests.api.test_ask import SSE, read_events
from tests.stub_llm import DONE, NO_CHOICES, ROLE, USAGE, Reply, StubLLM, answer, error, event, in_pieces, steps

SAMPLES = Path(__file__).parents[2] / "rag" / "samples" / "papers.txt"
QUESTION = "How much faster does Latte generate video with LeMiCa?"
SAID = "LeMiCa makes Latte 2.9 times faster [1]."
LLM_SECONDS = 3.0
SPARE_SECONDS = 4.0
"""For everything else than waiting for the LLM, on a busy machine."""

WELL: dict[str, Sequence[Reply]] = {
    "429 with Retry-After, then an answer": [error(429, retry_after="0"), answer(SAID)],
    "500, then an answer": [error(500), answer(SAID)],
    "no choices first": [steps(NO_CHOICES, ROLE, event(SAID), event(finish="stop"), USAGE, DONE)],
    "thoughts between tags": [answer(f"<think>which? [3]</think>{SAID}")],
    "a byte at a time": [Reply(in_pieces(ROLE + event(SAID) + event(finish="stop") + USAGE + DONE, 1))],
}
SHORT: dict[str, tuple[Sequence[Reply], str]] = {
    "stall in the middle": ([steps(ROLE, event(f"{SAID} It nee"), 60.0)], "LLMUnavailable"),
    "cut in the middle": ([steps(ROLE, event(f"{SAID} It nee"), None)], "LLMUnavailable"),
    "length": ([answer(f"{SAID} It nee", finish="length")], ""),
}
FAILED: dict[str, tuple[Sequence[Reply], str, str]] = {
    "429 for ever": ([error(429)], "overloaded", "LLMUnavailable"),
    "429 with a long Retry-After": ([error(429, retry_after="600")], "overloaded", "LLMUnavailable"),
    "500 for ever": ([error(500)], "failed", "LLMUnavailable"),
    "stall before the first token": ([steps(ROLE, 60.0)], "took too long", "LLMUnavailable"),
    "cut before the first token": ([steps(None)], "cannot be reached", "LLMUnavailable"),
    "a page instead of an answer": ([Reply([b"<html>"], 502, {}, "text/html")], "failed", "LLMUnavailable"),
    "unfinished thoughts": ([answer("<think>which? [3]")], "gave no answer", "LLMUnavailable"),
    "content filter on the question": ([error(400, code="content_filter")], "content filter", "LLMRefused"),
    "content filter on the answer": ([steps(ROLE, event(None, finish="content_filter"), DONE)], "content filter", "LLMRefused"),
    "insufficient quota": ([error(429, code="insufficient_quota")], "no quota", "LLMRefused"),
    "context overflow": ([error(400, code="context_length_exceeded")], "too long", "LLMRefused"),
    "unknown model": ([error(404, code="model_not_found")], "not set up properly", "LLMRefused"),
}


@pytest.fixture(scope="module")
def stub() -> Iterator[StubLLM]:
    with StubLLM(answer(SAID)) as made:
        yield made


@pytest.fixture(scope="module")
def library(stub: StubLLM, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    given = Settings(
        data=tmp_path_factory.mktemp("samples"),
        llm_model="stub",
        llm_base_url=stub.base_url,
        llm_api_key=SecretStr("key"),
        llm_timeout=LLM_SECONDS,
    )
    with open_library(given) as opened:
        opened.ingest(files([SAMPLES]))
        yield opened


@pytest.fixture(scope="module")
def url(library: Library) -> Iterator[str]:
    with served(app_of(library)) as address:
        yield address


def app_of(library: Library) -> FastAPI:
    return create_app(library, library.settings, read_keys(library.settings, "127.0.0.1"))


def ask(url: str, stub: StubLLM, replies: Sequence[Reply], headers: dict[str, str]) -> AnswerOut:
    stub.replies = list(replies)
    began = time.monotonic()
    response = httpx2.post(f"{url}/api/v1/ask", json={"question": QUESTION}, headers=headers, timeout=30)
    assert time.monotonic() - began < LLM_SECONDS + SPARE_SECONDS
    assert response.status_code == 200
    if not headers:
        return AnswerOut.model_validate(response.json())
    events = read_events(response.text)
    assert [name for name, _ in events] == ["papers", *["sentence"] * (len(events) - 2), "answer"]
    told = AnswerOut.model_validate(events[-1][1])
    assert "".join(data["sentence"]["text"] for _, data in events[1:-1]) == told.text  # type: ignore[index]  # JSON
    return told


def failures(url: str, kind: str) -> float:
    for line in httpx2.get(f"{url}/metrics").text.splitlines():
        if line.startswith(f'footnote_upstream_errors_total{{kind="{kind}"}}'):
            return float(line.split()[1])
    return 0.0


@pytest.mark.parametrize("headers", [{}, SSE])
@pytest.mark.parametrize("replies", WELL.values(), ids=WELL.keys())
def test_what_can_be_overcome_is(url: str, stub: StubLLM, replies: Sequence[Reply], headers: dict[str, str]) -> None:
    told = ask(url, stub, replies, headers)
    assert (told.text, told.generator, told.notice) == (SAID, "stub", None)
    assert told.sentences[0].evidence[0].quote.startswith("Latte runs 2.9 times faster")


def test_thoughts_before_a_closing_tag_are_never_shown(library: Library, stub: StubLLM) -> None:
    with served(app_of(replace(library))) as url:  # an LLM of its own: from then on it is known to think so
        for headers in ({}, SSE):
            assert ask(url, stub, [answer(f"Okay, the user asks about Latte: [3]?</think>{SAID}")], headers).text == SAID


@pytest.mark.parametrize("headers", [{}, SSE])
@pytest.mark.parametrize(("replies", "failure"), SHORT.values(), ids=SHORT.keys())
def test_an_answer_that_ends_early_keeps_its_whole_sentences_and_says_so(
    url: str, stub: StubLLM, replies: Sequence[Reply], failure: str, headers: dict[str, str]
) -> None:
    before = failures(url, failure)
    told = ask(url, stub, replies, headers)
    assert (told.text.rstrip(), told.generator) == (SAID, "stub")
    assert told.notice
    assert failures(url, failure) == before + bool(failure)


@pytest.mark.parametrize("headers", [{}, SSE])
@pytest.mark.parametrize(("replies", "notice", "failure"), FAILED.values(), ids=FAILED.keys())
def test_without_the_llm_the_papers_own_sentences_answer(
    url: str,
    stub: StubLLM,
    replies: Sequence[Reply],
    notice: str,
    failure: str,
    headers: dict[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = failures(url, failure)
    told = ask(url, stub, replies, headers)
    assert (told.status, told.generator) == ("answered", "extractive")
    assert "LeMiCa" in told.text
    assert notice in (told.notice or "")
    assert "127.0.0.1" not in (told.notice or ""), "readers are not told where the LLM is"
    assert f"the LLM stub at {stub.base_url}" in caplog.text.replace("The", "the"), "those who run it are"
    assert failures(url, failure) == before + 1


@pytest.mark.parametrize("stream", [False, True])
def test_the_model_without_retrieval_passes_an_llms_fault_on(url: str, stub: StubLLM, stream: bool) -> None:
    body = {"model": "footnote-chat", "messages": [{"role": "user", "content": "A title?"}], "stream": stream}
    for replies, status, code in (([error(429, retry_after="600")], 503, "llm_unavailable"), ([error(401)], 502, "llm_refused")):
        stub.replies = list(replies)
        response = httpx2.post(f"{url}/v1/chat/completions", json=body, timeout=30)
        assert (response.status_code, response.json()["error"]["code"]) == (status, code)
        assert "127.0.0.1" not in response.text
    stub.replies = [steps(ROLE, event("Half a ti"), None)]
    response = httpx2.post(f"{url}/v1/chat/completions", json=body, timeout=30)
    told = json.loads(response.text.strip().split("data: ")[-1]) if stream else response.json()
    assert told["error"]["code"] == "llm_unavailable"
    stub.replies = [answer("Otters")]
    with OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0) as client:
        done = client.chat.completions.create(model="footnote-chat", messages=[{"role": "user", "content": "A title?"}])
    assert done.choices[0].message.content == "Otters"
    assert done.usage and done.usage.total_tokens == 77


def test_the_llms_connection_is_closed_when_the_client_leaves(url: str, stub: StubLLM) -> None:
    stub.replies = [steps(ROLE, event(f"{SAID} It "), 60.0)]
    stub.left.clear()
    with pytest.raises(httpx2.TimeoutException):
        httpx2.post(f"{url}/api/v1/ask", json={"question": QUESTION}, timeout=0.8)
    assert stub.left.wait(2)


def test_a_first_sentence_is_shown_soon_after_the_token_that_ends_it(url: str, stub: StubLLM) -> None:
    stub.replies = [steps(ROLE, event(f"{SAID} It needs"), 0.5, event(" no training [1]."), event(finish="stop"), DONE)]
    with httpx2.stream("POST", f"{url}/api/v1/ask", json={"question": QUESTION}, headers=SSE, timeout=30) as response:
        seen: dict[str, float] = {}
        for line in response.iter_lines():
            if line.startswith("event: "):
                seen.setdefault(line, time.monotonic())
    assert seen["event: answer"] - seen["event: sentence"] > 0.2
