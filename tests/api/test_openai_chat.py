"""The real `openai` client against a real socket."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import openai
import pytest
from fastapi.testclient import TestClient
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionMessageParam

from rag.errors import LLMRefused, LLMUnavailable
from rag.types import AnswerSentence
from tests.api.conftest import MakeApp
from tests.api.fakes import FakeLibrary, FakeLLM, served

ASKED: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What do otters do?"}]


@pytest.fixture
def url(make_app: MakeApp) -> Iterator[str]:
    with served(make_app()) as address:
        yield address


@pytest.fixture
def chat(url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0, timeout=10) as client:
        yield client


def test_both_models_are_listed_and_can_be_looked_up(chat: OpenAI) -> None:
    assert [model.id for model in chat.models.list()] == ["footnote", "footnote-chat"]
    assert chat.models.retrieve("footnote-chat").owned_by == "footnote"


def test_an_answer_comes_with_footnotes_as_links_and_annotations(chat: OpenAI, library: FakeLibrary, url: str) -> None:
    otters, crows = library.catalogue.list(limit=2)
    done = chat.chat.completions.create(model="footnote", messages=ASKED)
    message = done.choices[0].message
    first = f'[[1]](https://doi.org/10.5555/otter.1#paper-{otters.paper_id} "{otters.cite_as}: Pebble choice in otters")'
    assert message.content is not None
    assert message.content.startswith(f"About Otters sor {first}. About Crows reme [[2]](https://example.org/crows?id=7#paper-")
    assert message.annotations is not None
    for note, paper in zip(message.annotations, (otters, crows), strict=True):
        place = note.url_citation
        assert message.content[place.start_index : place.end_index].startswith("[[")
        assert message.content[place.start_index : place.end_index].endswith(")")
        assert place.url in message.content
        assert place.model_extra == {"paper_id": paper.paper_id, "quote": paper.abstract[:10]}
    assert (done.object, done.choices[0].finish_reason, done.usage and done.usage.total_tokens) == ("chat.completion", "stop", 15)
    answer_id = done.id.removeprefix("chatcmpl-")
    assert httpx2.get(f"{url}/api/v1/answers/{answer_id}").json()["question"] == "What do otters do?"


def test_a_stream_adds_up_to_the_same_message(chat: OpenAI) -> None:
    whole = chat.chat.completions.create(model="footnote", messages=ASKED).choices[0].message
    stream = chat.chat.completions.create(
        model="footnote",
        messages=ASKED,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].delta.role for chunk in chunks[1:-1]] == [None] * (len(chunks) - 2)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == whole.content
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices] == [None] * (len(chunks) - 2) + ["stop"]
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 15
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert len({chunk.id for chunk in chunks}) == 1
    noted = [
        note for chunk in chunks if chunk.choices for note in (chunk.choices[0].delta.model_extra or {}).get("annotations", [])
    ]
    assert noted == [note.model_dump() for note in whole.annotations or []]


def test_without_include_usage_no_chunk_is_without_choices(chat: OpenAI) -> None:
    stream = chat.chat.completions.create(model="footnote", messages=ASKED, stream=True)
    assert all(chunk.choices for chunk in stream)


def test_the_stream_on_the_wire_ends_with_done(url: str) -> None:
    body = {"model": "footnote", "messages": ASKED, "stream": True}
    response = httpx2.post(f"{url}/v1/chat/completions", json=body)
    lines = [line for line in response.text.split("\n\n") if line]
    assert lines[-1] == "data: [DONE]"
    assert all(line.startswith("data: ") for line in lines)
    assert json.loads(lines[0].removeprefix("data: "))["choices"][0]["delta"] == {"role": "assistant", "content": ""}


def test_the_papers_an_answer_cited_are_known_again_in_the_next_turn(chat: OpenAI, library: FakeLibrary) -> None:
    first = chat.chat.completions.create(model="footnote", messages=ASKED).choices[0].message
    talk: list[Any] = [
        {"role": "system", "content": "Be brief."},
        *ASKED,
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [{"type": "text", "text": "And"}, {"type": "image_url"}, {"type": "text", "text": "why?"}]},
    ]
    chat.chat.completions.create(model="footnote", messages=talk)
    asked = library.engine.asked[-1]
    assert asked.question == "And\nwhy?"
    assert [(turn.role, turn.content) for turn in asked.history] == [
        ("user", "What do otters do?"),
        ("assistant", "About Otters sor [1]. About Crows reme [2]."),
    ]
    assert asked.history[1].paper_ids == tuple(paper.paper_id for paper in library.catalogue.list(limit=2))


def test_a_paper_without_an_address_is_linked_to_this_server(chat: OpenAI, library: FakeLibrary, url: str) -> None:
    library.engine.cited = 3
    moss = library.catalogue.list()[2]
    content = chat.chat.completions.create(model="footnote", messages=ASKED).choices[0].message.content
    assert f"]({url}/?paper={moss.paper_id}#paper-{moss.paper_id} " in (content or "")


def test_a_sentence_its_paper_does_not_bear_out_says_so(chat: OpenAI, library: FakeLibrary) -> None:
    wrong = AnswerSentence("Otters fly [1].", (1,), "abstract", (), "mismatch", "the abstract (of [1]) says other things", 0.1)
    library.engine.change = {"sentences": (wrong,), "text": wrong.text, "notice": "No LLM is configured."}
    content = chat.chat.completions.create(model="footnote", messages=ASKED).choices[0].message.content
    assert content is not None
    assert content.endswith(" *(⚠ the abstract of 1 says other things)*\n\n*No LLM is configured.*")


def test_the_second_model_passes_the_chat_on_without_retrieval(chat: OpenAI, library: FakeLibrary) -> None:
    library.llm = FakeLLM()
    talk: list[Any] = [{"role": "system", "content": "Title, please."}, *ASKED]
    done = chat.chat.completions.create(model="footnote-chat", messages=talk)
    assert done.choices[0].message.content == "Hello"
    assert done.usage is not None
    assert done.usage.total_tokens == 9
    assert library.llm.asked == [("Title, please.", "What do otters do?")]
    assert library.engine.asked == []
    stream = chat.chat.completions.create(model="footnote-chat", messages=talk, stream=True)
    assert [chunk.choices[0].delta.content or "" for chunk in stream] == ["", "Hel", "lo", ""]


def test_a_cut_answer_of_the_llm_says_length(chat: OpenAI, library: FakeLibrary) -> None:
    library.llm = FakeLLM(cut=True)
    done = chat.chat.completions.create(model="footnote-chat", messages=ASKED)
    assert done.choices[0].finish_reason == "length"


@pytest.mark.parametrize("stream", [False, True])
def test_the_second_model_without_an_llm_says_what_to_set(chat: OpenAI, stream: bool) -> None:
    with pytest.raises(openai.BadRequestError, match="FOOTNOTE_LLM_MODEL") as refused:
        chat.chat.completions.create(model="footnote-chat", messages=ASKED, stream=stream)
    assert refused.value.code == "no_llm_configured"


@pytest.mark.parametrize(
    ("change", "kind", "code", "param"),
    [
        ({"model": "gpt-9"}, openai.NotFoundError, "model_not_found", "model"),
        ({"n": 2}, openai.BadRequestError, "unsupported", "n"),
        ({"messages": [{"role": "system", "content": "x"}]}, openai.BadRequestError, "no_question", "messages"),
        ({"messages": [{"role": "user", "content": " "}]}, openai.BadRequestError, "no_question", "messages"),
        ({"messages": [{"role": "user", "content": "x" * 4001}]}, openai.BadRequestError, "context_length_exceeded", "messages"),
        ({"messages": []}, openai.UnprocessableEntityError, "invalid_request", "messages"),
        ({"messages": [{"role": "user", "content": 5}]}, openai.UnprocessableEntityError, "invalid_request", None),
    ],
)
def test_bad_requests_get_openais_errors(
    chat: OpenAI, change: dict[str, object], kind: type[openai.APIStatusError], code: str, param: str | None
) -> None:
    with pytest.raises(kind) as refused:
        chat.chat.completions.create(**{"model": "footnote", "messages": ASKED, **change})  # type: ignore[call-overload]  # wrong on purpose
    assert refused.value.code == code
    assert param is None or refused.value.param == param


def test_fields_we_do_not_know_are_accepted(chat: OpenAI) -> None:
    done = chat.chat.completions.create(
        model="footnote",
        messages=ASKED,
        temperature=0.3,
        top_p=1,
        seed=1,
        user="me",
        max_tokens=1000,
        extra_body={"chat_id": "7", "tools": None},
    )
    assert done.choices


@pytest.mark.parametrize("stream", [False, True])
def test_faults_before_the_first_chunk_have_a_status(chat: OpenAI, library: FakeLibrary, stream: bool) -> None:
    library.engine.faults[0] = LLMUnavailable("the LLM is busy", retry_after=3)
    with pytest.raises(openai.InternalServerError) as failed:
        chat.chat.completions.create(model="footnote", messages=ASKED, stream=stream)
    assert (failed.value.status_code, failed.value.code) == (503, "llm_unavailable")
    assert failed.value.response.headers["retry-after"] == "3"


def test_a_fault_in_the_middle_of_a_stream_reaches_the_client_as_an_error(chat: OpenAI, library: FakeLibrary) -> None:
    library.engine.faults[2] = LLMRefused("the LLM at http://10.0.0.7", told="The content filter stopped this answer.")
    with pytest.raises(openai.APIError, match="content filter stopped"):
        list(chat.chat.completions.create(model="footnote", messages=ASKED, stream=True))


def test_a_wrong_key_is_an_authentication_error(make_app: MakeApp) -> None:
    with served(make_app(api_keys="right")) as url:
        with OpenAI(base_url=f"{url}/v1", api_key="wrong", max_retries=0) as wrong, pytest.raises(openai.AuthenticationError):
            wrong.models.list()
        with OpenAI(base_url=f"{url}/v1", api_key="right", max_retries=0) as right:
            assert right.models.list().data


def test_unknown_addresses_under_v1_answer_in_openais_shape(client: TestClient) -> None:
    for method, path, status in (
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/chat/completions", 405),
        ("POST", "/v1/embeddings", 404),
    ):
        response = client.request(method, path)
        assert response.status_code == status
        assert set(response.json()["error"]) == {"message", "type", "param", "code"}


async def test_streams_run_side_by_side(url: str, library: FakeLibrary) -> None:
    library.engine.pauses = {1: 1.0}

    async def ask(client: AsyncOpenAI) -> AsyncIterator[str]:
        stream = await client.chat.completions.create(model="footnote", messages=ASKED, stream=True)
        async for chunk in stream:
            yield chunk.choices[0].delta.content or ""

    async with AsyncOpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0) as client:

        async def text() -> str:
            return "".join([piece async for piece in ask(client)])

        async with asyncio.timeout(10):  # one after the other they take 12 s
            texts = await asyncio.gather(*(text() for _ in range(12)))
    assert len(set(texts)) == 1
