from __future__ import annotations

import asyncio
import email.utils
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import numpy as np
import openai
import pytest

from rag.errors import LLMRefused, LLMUnavailable, SettingsError
from rag.openai_api import OPENAI, OpenAIChat, OpenAIEmbedder, credentials
from rag.openai_faults import SENTENCES, Endpoint, error_of
from rag.openai_wire import MAX_TOKENS
from rag.types import Usage
from tests.stub_llm import (
    DONE,
    NO_CHOICES,
    ROLE,
    USAGE,
    Reply,
    Step,
    StubLLM,
    answer,
    data,
    embeddings,
    error,
    event,
    in_pieces,
    steps,
)

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}


@asynccontextmanager
async def chat(stub: StubLLM, *, seconds: float = 5.0, key: str = "key") -> AsyncIterator[OpenAIChat]:
    llm = OpenAIChat("stub", stub.base_url, key, seconds)
    try:
        yield llm
    finally:
        await llm.aclose()


async def asked(*replies: Reply, seconds: float = 5.0) -> tuple[str, Usage, bool]:
    """What one question gives: its text, usage, and whether it was cut."""
    with StubLLM(*replies) as stub:
        async with chat(stub, seconds=seconds) as llm:
            return await all_of(llm)


async def all_of(llm: OpenAIChat) -> tuple[str, Usage, bool]:
    deltas = [delta async for delta in llm.stream("system", "user")]
    usage = deltas[-1].usage
    assert usage is not None, "the last piece carries the usage"
    return "".join(delta.text for delta in deltas), usage, deltas[-1].cut


async def test_an_answer_comes_in_pieces_with_its_usage_last() -> None:
    with StubLLM(answer("It works [1]. 它有效。")) as stub:
        async with chat(stub) as llm:
            assert await all_of(llm) == ("It works [1]. 它有效。", Usage(70, 7), False)
        (request,) = stub.requests
        assert request["path"] == "/v1/chat/completions"
        assert request["messages"] == [{"role": "system", "content": "system"}, {"role": "user", "content": "user"}]
        assert stub.headers[0]["authorization"] == "Bearer key"


async def test_an_empty_system_message_is_not_sent() -> None:
    with StubLLM(answer("It works [1].")) as stub:
        async with chat(stub) as llm:
            await llm.complete("", "user")
        assert stub.requests[0]["messages"] == [{"role": "user", "content": "user"}]


ODD_STREAMS = {
    "no choices first": [NO_CHOICES, ROLE, event("It works [1].", finish="stop"), DONE],
    "null content": [event(None), event("It works [1]."), event(None, finish="stop"), DONE],
    "no delta fields": [data({"choices": [{"index": 0, "delta": {}}]}), event("It works [1].", finish="stop"), DONE],
    "parts": [event([{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "It works [1]."}], finish="stop"), DONE],
    "reasoning content": [event(reasoning_content="Let me see [1]."), event("It works [1].", finish="stop"), DONE],
    "reasoning": [event(None, reasoning="Let me see [1]."), event("It works [1].", finish="stop"), DONE],
    "thoughts in tags": [event("<thi"), event("nk>No [2].</th"), event("ink>\nIt works"), event(" [1].", finish="stop"), DONE],
    "closing tag only": [event("Let me see [2]."), event("</think>It works [1].", finish="stop"), DONE],
    "comments": [b": wait\n\n", event("It works [1].", finish="stop"), DONE],
    "no usage, no end": [event("It works [1].", finish="stop")],
    "fault after the end": [event("It works [1].", finish="stop"), data({"error": {"message": "late"}})],
    "bytes split anywhere": in_pieces(ROLE + event("It works [1].", finish="stop") + USAGE + DONE, 3),
}


@pytest.mark.parametrize("stream", ODD_STREAMS.values(), ids=ODD_STREAMS.keys())
async def test_odd_but_whole_streams_give_their_answer(stream: list[Step]) -> None:
    text, _, cut = await asked(Reply(stream))
    assert (text, cut) == ("It works [1].", False)


async def test_characters_split_across_reads_are_whole() -> None:
    text = "有效🙂 é [1]。"
    assert (await asked(Reply(in_pieces(event(text, finish="stop") + DONE, 1))))[0] == text


async def test_an_answer_at_its_length_limit_is_given_as_cut() -> None:
    assert await asked(answer("It works [1]. And it", finish="length")) == ("It works [1]. And it", Usage(70, 7), True)


PASSING: dict[str, Reply] = {
    "429 with Retry-After": error(429, retry_after="0.05"),
    "429 with a date": error(429, retry_after=email.utils.formatdate(time.time(), usegmt=True)),
    "429 without Retry-After": error(429),
    "500": error(500),
    "503": error(503),
    "cut before the first token": Reply([ROLE, None], headers={"Content-Length": "9999"}),
    "ended before the first token": steps(ROLE),
    "overloaded in the stream": steps(data({"error": {"message": "overloaded", "code": 503}})),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
async def test_a_passing_fault_before_the_first_token_is_tried_again(fault: Reply) -> None:
    assert (await asked(fault, answer("It works [1].")))[0] == "It works [1]."


OVERFLOW = "This model's maximum context length is 4096 tokens"
REFUSED = {
    "quota": (error(429, "You exceeded your current quota", code="insufficient_quota"), "FOOTNOTE_LLM_API_KEY"),
    "key": (error(401, "Incorrect API key provided: sk-abc", code="invalid_api_key"), "FOOTNOTE_LLM_API_KEY"),
    "forbidden": (error(403), "FOOTNOTE_LLM_API_KEY"),
    "unknown model": (error(404, "The model `stub` does not exist", code="model_not_found"), "FOOTNOTE_LLM_MODEL"),
    "overflow": (error(400, OVERFLOW, code="context_length_exceeded"), "longer context"),
    "llama.cpp's overflow": (error(400, "the request exceeds the available context size"), "longer context"),
    "filtered question": (error(400, "The response was filtered", code="content_filter"), "Word the question differently"),
    "filtered answer": (steps(event("It works"), event(None, finish="content_filter")), "Word the question differently"),
    "other": (error(400, "No user message"), "No user message"),
    "quota in the stream": (steps(data({"error": {"message": "no", "code": "insufficient_quota"}})), "quota"),
}


@pytest.mark.parametrize(("fault", "advice"), REFUSED.values(), ids=REFUSED.keys())
async def test_a_refusal_says_what_to_do_and_is_not_tried_again(fault: Reply, advice: str) -> None:
    with StubLLM(fault) as stub:
        async with chat(stub) as llm:
            with pytest.raises(LLMRefused, match=advice) as refusal:
                await all_of(llm)
        assert "sk-abc" not in str(refusal.value)
        assert_fit_for_readers(refusal.value)
        assert len(stub.requests) <= 3  # only ever without a parameter that may have been in the way
        assert len({str(request) for request in stub.requests}) == len(stub.requests)


UNAVAILABLE: dict[str, tuple[Reply, str]] = {
    "429 for long": (error(429, retry_after="3600"), "rate limit"),
    "500 for good": (error(500, "GPU lost"), "GPU lost"),
    "cut in the stream": (Reply([event("It works [1]."), None], headers={"Content-Length": "9999"}), "broke off"),
    "ended in the stream": (steps(event("It works [1].")), "broke off"),
    "fault in the stream": (steps(event("It works [1]."), data({"error": {"message": "GPU lost"}})), "GPU lost"),
    "malformed event": (steps(event("It works [1]."), b"data: {oops\n\n"), "no chat completion"),
    "nothing but thinking": (answer("<think>Let me see [1]."), "gave no answer"),
    "only white space": (answer(" \n"), "gave no answer"),
    "thought to the length limit": (answer("<think>Let me see", finish="length"), "gave no answer within"),
}


@pytest.mark.parametrize(("fault", "words"), UNAVAILABLE.values(), ids=UNAVAILABLE.keys())
async def test_a_lasting_fault_is_told_in_words(fault: Reply, words: str) -> None:
    with pytest.raises(LLMUnavailable, match=words) as failure:
        await asked(fault)
    assert_fit_for_readers(failure.value)


def assert_fit_for_readers(error: LLMUnavailable | LLMRefused) -> None:
    """A sentence that tells neither address nor model nor settings, nor what the LLM's server said."""
    assert error.told[0].isupper()
    assert error.told[-1] == "."
    for private in ("127.0.0.1", "http", "stub", "FOOTNOTE", "GPU", "sk-abc", "No user message"):
        assert private not in error.told


def test_both_wordings_of_every_fault_are_sentences() -> None:
    for kind in ("FOOTNOTE_LLM", "FOOTNOTE_EMBEDDING"):
        for fault in SENTENCES:
            error = error_of(fault, Endpoint(kind, "stub", "http://127.0.0.1:9/v1", "key"))
            assert_fit_for_readers(error)
            assert str(error)[0].isupper()
            assert " The " not in str(error)


async def test_a_server_that_asks_for_long_patience_is_not_waited_for() -> None:
    start = time.monotonic()
    with StubLLM(error(429, retry_after="3600")) as stub:
        async with chat(stub) as llm:
            with pytest.raises(LLMUnavailable) as fault:
                await all_of(llm)
        assert len(stub.requests) == 1
    assert fault.value.retry_after == 3600
    assert time.monotonic() - start < 2


async def test_no_pause_is_longer_than_the_time_left() -> None:
    start = time.monotonic()
    with pytest.raises(LLMUnavailable, match="rate limit"):
        await asked(error(429, retry_after="3"), answer("Too late [1]."), seconds=2.0)
    assert time.monotonic() - start < 1.5


async def test_nothing_is_tried_again_after_the_first_token() -> None:
    with StubLLM(steps(event("It works [1].")), answer("Twice [1].")) as stub:
        async with chat(stub) as llm:
            with pytest.raises(LLMUnavailable):
                await all_of(llm)
        assert len(stub.requests) == 1


async def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    llm = OpenAIChat("stub", "http://me:secret@127.0.0.1:9/v1", "key", 5.0)
    with pytest.raises(LLMUnavailable, match=r"at http://127\.0\.0\.1:9/v1 cannot be reached") as fault:
        await all_of(llm)
    assert "secret" not in str(fault.value)
    assert_fit_for_readers(fault.value)
    await llm.aclose()


@pytest.mark.parametrize(
    "stalling", [steps(9.0), steps(ROLE, 9.0), steps(event("It works [1]."), 9.0)], ids=["at once", "before", "within"]
)
async def test_a_stall_ends_after_half_the_time_for_an_answer(stalling: Reply) -> None:
    start = time.monotonic()
    with pytest.raises(LLMUnavailable, match=r"gave nothing for 1\.5 s"):
        await asked(stalling, seconds=3.0)
    assert 1.25 < time.monotonic() - start < 10


async def test_an_answer_that_never_ends_is_stopped_at_its_time() -> None:
    endless = steps(*[step for _ in range(100) for step in (event("on and on [1] "), 0.05)])
    start = time.monotonic()
    with pytest.raises(LLMUnavailable, match=r"had not finished after 0\.5 s"):
        await asked(endless, seconds=0.5)
    assert time.monotonic() - start < 1.5


async def test_closing_the_iterator_closes_the_connection() -> None:
    with StubLLM(steps(event("It works [1]."), 9.0, event("more"))) as stub:
        async with chat(stub) as llm:
            async with aclosing(llm.stream("system", "user")) as deltas:
                async for _ in deltas:
                    break
            assert await asyncio.to_thread(stub.left.wait, 2)


async def test_cancelling_the_reader_closes_the_connection() -> None:
    with StubLLM(steps(9.0)) as stub:
        async with chat(stub) as llm:
            reader = asyncio.create_task(all_of(llm))
            await asyncio.to_thread(stub.asked.wait, 2)
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader
            assert await asyncio.to_thread(stub.left.wait, 2)


def test_connections_are_closed_when_their_event_loop_ends() -> None:
    async def once() -> openai.AsyncOpenAI:
        await all_of(llm)
        return await llm._client()

    with StubLLM(answer("It works [1].")) as stub:
        llm = OpenAIChat("stub", stub.base_url, "key", 5.0)
        first, second = asyncio.run(once()), asyncio.run(once())
    assert first is not second
    assert first.is_closed()
    assert second.is_closed()


def test_one_chat_serves_one_event_loop_after_the_other() -> None:
    async def once() -> str:
        text, _, _ = await all_of(llm)
        await llm.aclose()
        return text

    with StubLLM(answer("It works [1].")) as stub:
        llm = OpenAIChat("stub", stub.base_url, "key", 5.0)
        assert [asyncio.run(once()), asyncio.run(once())] == ["It works [1]."] * 2


async def test_a_model_that_thinks_aloud_once_is_not_trusted_again() -> None:
    thinking = answer("The first paper [1] says it.</think>It works [1].")
    with StubLLM(answer("Let me see.</think>It works [1]."), thinking) as stub:
        async with chat(stub) as llm:
            assert (await all_of(llm))[0] == "It works [1]."
            assert (await all_of(llm))[0] == "It works [1]."


# requests that a server does not take as they are

NOT_TAKEN = {
    "max_tokens": error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", param="max_tokens"),
    "temperature": error(400, "Unsupported value: 'temperature' does not support 0.2 with this model.", param="temperature"),
    "stream_options": error(422, "stream_options: extra fields not permitted"),
}


@pytest.mark.parametrize(("name", "fault"), NOT_TAKEN.items())
async def test_a_parameter_that_is_not_taken_is_left_out_from_then_on(name: str, fault: Reply) -> None:
    with StubLLM(fault, answer("It works [1].")) as stub:
        async with chat(stub) as llm:
            assert (await all_of(llm))[0] == (await all_of(llm))[0] == "It works [1]."
        assert [name in request for request in stub.requests] == [True, False, False]
        assert stub.requests[2].get("max_completion_tokens") == (4 * MAX_TOKENS if name == "max_tokens" else None), "it thinks"


async def test_an_answer_length_counted_into_the_context_is_left_out_once() -> None:
    overflow = error(400, "'max_tokens' is too large: 2048. This model's maximum context length is 4096 tokens")
    with StubLLM(overflow, overflow, answer("It works [1].")) as stub:
        async with chat(stub) as llm:
            assert (await all_of(llm))[0] == "It works [1]."
            await all_of(llm)
        assert ["max_tokens" in request for request in stub.requests] == [True, False, False, True]


@pytest.mark.parametrize(
    "text", ['{"a": 1}', '```json\n{"a": 1}\n```', 'By [1], here it is: {"a": 1}. Done.', '<think>{"a": 2}</think>{"a": 1}']
)
async def test_json_is_found_in_fences_and_words(text: str) -> None:
    with StubLLM(answer(text)) as stub:
        async with chat(stub) as llm:
            assert await llm.complete("system", "user", json_schema=SCHEMA) == ('{"a": 1}', Usage(70, 7))
        assert stub.requests[0]["response_format"]["json_schema"]["schema"] == SCHEMA


async def test_a_server_without_schemas_is_asked_for_json_then_for_text() -> None:
    refusal = error(400, "response_format.type must be text")
    with StubLLM(refusal, refusal, answer('{"a": 1}')) as stub:
        async with chat(stub) as llm:
            await llm.complete("system", "user", json_schema=SCHEMA)
            await llm.complete("system", "user", json_schema=SCHEMA)
        formats = [request.get("response_format", {}).get("type") for request in stub.requests]
        assert formats == ["json_schema", "json_object", None, None]


@pytest.mark.parametrize(
    "reply", [answer("I would rather not."), answer('{"a": 1', finish="length"), answer('{"a": 1}', finish="length")]
)
async def test_what_is_no_json_or_was_cut_is_no_answer(reply: Reply) -> None:
    with StubLLM(reply) as stub:
        async with chat(stub) as llm:
            with pytest.raises(LLMUnavailable):
                await llm.complete("system", "user", json_schema=SCHEMA)


# keys

OF_OTHERS = {
    "OPENAI_API_KEY": "sk-of-openai",
    "OPENAI_ADMIN_KEY": "sk-admin",
    "OPENAI_ORG_ID": "org-mine",
    "OPENAI_PROJECT_ID": "proj-mine",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    "OPENAI_CUSTOM_HEADERS": "X-Secret: of-a-gateway\nAuthorization: Bearer sk-gateway",
}


@pytest.fixture
def keys_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in OF_OTHERS.items():
        monkeypatch.setenv(name, value)


def secrets_sent(stub: StubLLM) -> list[str]:
    sent = [value for headers in stub.headers for value in headers.values()]
    return [value for value in sent if any(secret in value for secret in ("sk-", "org-", "proj-", "gateway"))]


@pytest.mark.usefixtures("keys_of_others")
async def test_no_key_reaches_a_server_it_was_not_given_for() -> None:
    with StubLLM(answer("It works [1].")) as stub:
        async with chat(stub, key="") as llm:
            await all_of(llm)
        assert secrets_sent(stub) == []
    with StubLLM(embeddings([[1.0]])) as stub:
        embedder = OpenAIEmbedder("stub", stub.base_url)
        embedder.embed_question("what")
        embedder.close()
        assert secrets_sent(stub) == []


@pytest.mark.parametrize(
    ("base_url", "key", "environment", "expected"),
    [
        ("", "", {}, None),
        ("", "", {"OPENAI_API_KEY": "sk-1"}, (OPENAI, "sk-1")),
        ("", "", {"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": "http://gateway/v1"}, ("http://gateway/v1", "sk-1")),
        ("", "own", {"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": "http://gateway/v1"}, (OPENAI, "own")),
        ("http://here/v1", "", {"OPENAI_API_KEY": "sk-1"}, ("http://here/v1", "")),
    ],
)
def test_the_openai_key_goes_only_where_it_belongs(
    base_url: str, key: str, environment: dict[str, str], expected: tuple[str, str] | None
) -> None:
    assert credentials(base_url, key, environment) == expected


@pytest.mark.parametrize("make", [OpenAIChat, OpenAIEmbedder])
def test_with_nothing_but_the_openai_key_openai_is_asked(
    make: Callable[[str], OpenAIChat | OpenAIEmbedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert (make("m").endpoint.base_url, make("m").endpoint.api_key) == (OPENAI, "sk-1")


@pytest.mark.parametrize("make", [lambda: OpenAIChat("m"), lambda: OpenAIEmbedder("m"), lambda: OpenAIChat("m", "localhost:1")])
def test_settings_that_cannot_work_are_refused(make: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SettingsError, match="FOOTNOTE_"):
        make()


# embeddings


def embedder(stub: StubLLM) -> OpenAIEmbedder:
    return OpenAIEmbedder("stub", stub.base_url, "key")


def test_vectors_are_of_unit_length_in_the_order_of_the_texts() -> None:
    reply = embeddings([[3.0, 4.0], [0.0, 2.0]])
    with StubLLM(reply) as stub:
        model = embedder(stub)
        vectors = model.embed_texts(["a", ""])
        np.testing.assert_allclose(vectors, [[0.6, 0.8], [0.0, 1.0]], rtol=1e-6)
        assert vectors.dtype == np.float32
        assert (model.dimension, model.tokens_used, model.model) == (2, 5, "openai:stub")
        assert stub.requests[0]["input"] == ["a", "."], "servers refuse an empty text"
        model.close()


def test_rows_are_put_in_the_order_of_their_index() -> None:
    reply = Reply(
        [b'{"data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]}'], content_type="application/json"
    )
    with StubLLM(reply) as stub:
        model = embedder(stub)
        assert model.embed_texts(["a", "b"]).tolist() == [[1, 0], [0, 1]]
        model.close()


def test_many_texts_go_in_batches() -> None:
    with StubLLM(embeddings([[1.0]] * 256), embeddings([[1.0]] * 44)) as stub:
        model = embedder(stub)
        assert model.embed_texts(["text"] * 300).shape == (300, 1)
        assert [len(request["input"]) for request in stub.requests] == [256, 44]
        assert model.tokens_used == 10
        model.close()


def test_no_text_gives_no_vector_of_the_models_dimension() -> None:
    with StubLLM(embeddings([[1.0, 0.0]])) as stub:
        model = embedder(stub)
        assert model.embed_texts([]).shape == (0, 2)
        model.close()


def test_a_text_too_long_for_the_model_is_shortened() -> None:
    too_long = error(413, "inputs must have less than 512 tokens. Given: 700", code="Validation")
    with StubLLM(too_long, embeddings([[1.0]]), too_long, embeddings([[1.0]])) as stub:
        model = embedder(stub)
        assert model.embed_texts(["short", "long" * 200]).shape == (2, 1)
        assert [[len(text) for text in request["input"]] for request in stub.requests] == [[5, 800], [5], [800], [400]]
        model.close()


def test_embedding_waits_for_a_busy_server() -> None:
    with StubLLM(error(429, retry_after="0"), error(500), embeddings([[1.0]])) as stub:
        model = embedder(stub)
        assert model.embed_texts(["a"]).shape == (1, 1)
        model.close()


@pytest.mark.parametrize(
    "reply",
    [
        embeddings([[1.0]]),
        embeddings([[1.0], [1.0, 2.0]]),
        embeddings([[1.0], [0.0]]),
        embeddings([[1.0], [float("nan")]]),
        embeddings([]),
    ],
    ids=["one missing", "two lengths", "nought", "not a number", "none"],
)
def test_vectors_that_are_none_are_refused(reply: Reply) -> None:
    with StubLLM(reply) as stub:
        model = embedder(stub)
        with pytest.raises(LLMUnavailable, match="The embedding model stub at"):
            model.embed_texts(["a", "b"])
        model.close()


def test_a_refused_key_names_the_setting() -> None:
    with StubLLM(error(401)) as stub:
        model = embedder(stub)
        with pytest.raises(LLMRefused, match="FOOTNOTE_EMBEDDING_API_KEY"):
            model.embed_texts(["a"])
        model.close()


async def test_a_judge_may_ask_at_a_temperature_of_its_own() -> None:
    with StubLLM(answer("{}")) as stub:
        for given in ({}, {"temperature": 0.0}):
            llm = OpenAIChat("stub", stub.base_url, "key", 5.0, **given)
            await llm.complete("system", "user", json_schema=SCHEMA)
            await llm.aclose()
    assert [request["temperature"] for request in stub.requests] == [0.2, 0.0]
