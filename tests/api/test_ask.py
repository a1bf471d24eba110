import json

import pytest
from fastapi.testclient import TestClient

from api.schemas import AnswerOut, KeptAnswerOut, PapersEvent, SentenceEvent
from rag.errors import CatalogueUnavailable, IndexUnavailable, InputError, LLMRefused, LLMUnavailable
from rag.passages import text_hash
from rag.types import Filters, Turn
from tests.api.fakes import FakeEmbedder, FakeLibrary

SSE = {"Accept": "text/event-stream"}


def read_events(text: str) -> list[tuple[str, dict[str, object]]]:
    blocks = [block for block in text.split("\n\n") if block and not block.startswith(":")]
    found = []
    for block in blocks:
        name, data = block.split("\n", 1)
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_an_answer_is_the_object_the_schema_describes(client: TestClient) -> None:
    response = client.post("/api/v1/ask", json={"question": "What do otters do?"})
    assert response.status_code == 200
    answer = AnswerOut.model_validate(response.json())
    assert answer.text == "About Otters sor [1]. About Crows reme [2]."
    assert "".join(sentence.text for sentence in answer.sentences) == answer.text
    assert [one.marker for one in answer.citations] == [1, 2]


def test_history_filters_and_top_k_reach_the_engine(client: TestClient, library: FakeLibrary) -> None:
    body = {
        "question": "And crows?",
        "history": [
            {"role": "user", "content": "Otters?"},
            {"role": "assistant", "content": "Yes [1].", "paper_ids": ["abcdefgh"]},
        ],
        "filters": {
            "year_min": 2019,
            "venues": ["Bird Letters"],
            "authors": ["Wang"],
            "categories": ["Zoology"],
            "paper_ids": ["x"],
        },
        "top_k": 3,
    }
    assert client.post("/api/v1/ask", json=body).status_code == 200
    (asked,) = library.engine.asked
    assert asked.history == (Turn("user", "Otters?"), Turn("assistant", "Yes [1].", ("abcdefgh",)))
    assert asked.filters == Filters(2019, None, ("Bird Letters",), ("Zoology",), ("Wang",), ("x",))
    assert asked.top_n == 3


def test_a_stream_tells_papers_then_sentences_then_the_answer_they_add_up_to(client: TestClient) -> None:
    response = client.post("/api/v1/ask", json={"question": "What?"}, headers=SSE)
    assert response.headers["content-type"].startswith("text/event-stream")
    events = read_events(response.text)
    assert [name for name, _ in events] == ["papers", "sentence", "sentence", "answer"]
    papers = PapersEvent.model_validate(events[0][1])
    sentences = [SentenceEvent.model_validate(data) for name, data in events if name == "sentence"]
    answer = AnswerOut.model_validate(events[-1][1])
    assert (papers.answer_id, papers.status) == (answer.answer_id, answer.status)
    assert "".join(one.sentence.text for one in sentences) == answer.text
    assert [one.marker for each in sentences for one in each.new_citations] == [1, 2]


@pytest.mark.parametrize("headers", [{}, SSE])
def test_an_answer_can_be_fetched_again_and_turns_stale_when_a_cited_paper_goes(
    client: TestClient, library: FakeLibrary, headers: dict[str, str]
) -> None:
    response = client.post("/api/v1/ask", json={"question": "What?"}, headers=headers)
    answer = read_events(response.text)[-1][1] if headers else response.json()
    again = client.get(f"/api/v1/answers/{answer['answer_id']}").json()
    assert KeptAnswerOut.model_validate(again).stale is False
    assert {key: again[key] for key in answer} == answer
    cited = library.catalogue.list(limit=1)[0].paper_id
    assert client.delete(f"/api/v1/papers/{cited}").status_code == 204
    assert client.get(f"/api/v1/answers/{answer['answer_id']}").json()["stale"] is True


def test_an_answer_turns_stale_when_a_cited_paper_gets_another_abstract(client: TestClient, library: FakeLibrary) -> None:
    answer = client.post("/api/v1/ask", json={"question": "What?"}).json()
    newer = {"doi": "10.5555/otter.1", "abstract": "Otters do not sort pebbles after all.", "title": "Pebble choice in otters"}
    assert client.post("/api/v1/papers", json=[newer]).json()["merged"] == 1
    assert client.get(f"/api/v1/answers/{answer['answer_id']}").json()["stale"] is True


def test_an_answer_stays_fresh_when_its_papers_only_get_vectors(client: TestClient, library: FakeLibrary) -> None:
    answer = client.post("/api/v1/ask", json={"question": "What?"}).json()
    cited = library.catalogue.indexed([one["paper"]["paper_id"] for one in answer["citations"]], "new")
    vectors = {text_hash(one): FakeEmbedder().embed_texts(["a"] * (1 + len(one.sentences))) for one in cited}
    assert library.catalogue.add_vectors("new", vectors).revision > answer["revision"]
    assert client.get(f"/api/v1/answers/{answer['answer_id']}").json()["stale"] is False


def test_an_answer_stays_fresh_when_a_paper_it_does_not_cite_goes(client: TestClient, library: FakeLibrary) -> None:
    answer = client.post("/api/v1/ask", json={"question": "What?"}).json()
    library.catalogue.remove([library.catalogue.list()[-1].paper_id])
    assert client.get(f"/api/v1/answers/{answer['answer_id']}").json()["stale"] is False


@pytest.mark.parametrize("headers", [{}, SSE])
@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        (InputError("too odd"), 422, "invalid_input"),
        (IndexUnavailable("Chroma at http://secret does not answer"), 503, "unavailable"),
        (CatalogueUnavailable("connection to server at secret failed"), 503, "unavailable"),
        (LLMUnavailable("busy at http://secret", retry_after=7), 503, "llm_unavailable"),
        (LLMRefused("no such model at http://secret"), 502, "llm_refused"),
        (RuntimeError("a secret detail"), 500, "internal_error"),
    ],
)
def test_what_fails_before_the_first_event_has_a_status(
    client: TestClient,
    library: FakeLibrary,
    fault: Exception,
    status: int,
    code: str,
    headers: dict[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    library.engine.faults[0] = fault
    response = client.post("/api/v1/ask", json={"question": "What?"}, headers=headers)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert response.headers["content-type"] == "application/problem+json"
    assert "secret" not in response.text
    assert status < 500 or "secret" in caplog.text
    if isinstance(fault, LLMUnavailable):
        assert response.headers["retry-after"] == "7"


def test_what_fails_in_the_middle_of_a_stream_is_its_last_event(client: TestClient, library: FakeLibrary) -> None:
    library.engine.faults[2] = LLMUnavailable("the LLM fell silent")
    events = read_events(client.post("/api/v1/ask", json={"question": "What?"}, headers=SSE).text)
    assert [name for name, _ in events] == ["papers", "sentence", "error"]
    assert events[-1][1]["code"] == "llm_unavailable"


def test_an_answer_that_broke_off_is_not_kept(client: TestClient, library: FakeLibrary) -> None:
    library.engine.faults[2] = LLMUnavailable("the LLM fell silent")
    events = read_events(client.post("/api/v1/ask", json={"question": "What?"}, headers=SSE).text)
    assert client.get(f"/api/v1/answers/{events[0][1]['answer_id']}").status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "body.question"),
        ({"question": ""}, "body.question"),
        ({"question": " \n\t"}, "body.question"),
        ({"question": "x" * 4001}, "body.question"),
        ({"question": 5}, "body.question"),
        ({"question": "x", "top_k": "8"}, "body.top_k"),
        ({"question": "x", "top_k": 0}, "body.top_k"),
        ({"question": "x", "topk": 8}, "body.topk"),
        ({"question": "x", "filters": {"year": 2020}}, "body.filters.year"),
        ({"question": "x", "filters": {"year_min": "2020"}}, "body.filters.year_min"),
        ({"question": "x", "history": [{"role": "robot", "content": "x"}]}, "body.history.0.role"),
        ([], "body"),
        (None, "body"),
    ],
)
def test_a_bad_field_is_named(client: TestClient, body: object, field: str) -> None:
    response = client.post("/api/v1/ask", json=body)
    assert response.status_code == 422
    assert field in [error["field"] for error in response.json()["errors"]]


def test_a_text_too_long_is_told_in_characters(client: TestClient) -> None:
    assert "4000 characters" in client.post("/api/v1/ask", json={"question": "x" * 4001}).json()["detail"]


def test_of_what_was_said_before_no_more_is_read_than_a_question_may_have(client: TestClient, library: FakeLibrary) -> None:
    said = [{"role": role, "content": "x" * 5000} for role in ("user", "assistant")]
    assert client.post("/api/v1/ask", json={"question": "And?", "history": said}).status_code == 200
    body = {"model": "footnote", "messages": [*said, {"role": "user", "content": "And?"}]}
    assert client.post("/v1/chat/completions", json=body).status_code == 200
    assert [[len(turn.content) for turn in asked.history] for asked in library.engine.asked] == [[4000, 5000]] * 2


@pytest.mark.parametrize(
    ("content", "status"),
    [(b"{", 400), (b"\xff\xfe", 400), (b"[" * 100_000, 400), (b'{"question": ' + b"9" * 5000 + b"}", 400), (b"", 422)],
)
def test_a_body_that_is_not_json_is_told_so(client: TestClient, content: bytes, status: int) -> None:
    response = client.post("/api/v1/ask", content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    assert status == 422 or "JSON" in response.json()["detail"]


def test_nul_and_lone_surrogates_never_reach_the_engine(client: TestClient, library: FakeLibrary) -> None:
    assert client.post("/api/v1/ask", json={"question": "a\x00b"}).status_code == 200
    assert library.engine.asked[0].question == "a\ufffdb"
    raw = client.post("/api/v1/ask", content=b'{"question": "a\\ud800b"}', headers={"Content-Type": "application/json"})
    assert raw.status_code == 422
