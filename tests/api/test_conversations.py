import threading

import httpx2
import pytest
from fastapi.testclient import TestClient

from api.schemas import AnswerOut, ConversationOut, ConversationsPage
from rag.errors import LLMUnavailable
from tests.api.conftest import HERE, MakeApp
from tests.api.fakes import FakeLibrary, served
from tests.api.test_ask import SSE, read_events


def begin(client: TestClient, title: str = "") -> str:
    response = client.post("/api/v1/conversations", json={"title": title})
    assert response.status_code == 201
    return str(response.json()["conversation_id"])


def test_a_follow_up_is_asked_with_what_was_said_before(client: TestClient, library: FakeLibrary) -> None:
    conversation = begin(client)
    first = client.post(f"/api/v1/conversations/{conversation}/messages", json={"question": "Otters?"}).json()
    assert AnswerOut.model_validate(first)
    events = read_events(
        client.post(f"/api/v1/conversations/{conversation}/messages", json={"question": "Why?"}, headers=SSE).text
    )
    assert [name for name, _ in events] == ["papers", "sentence", "sentence", "answer"]
    history = library.engine.asked[1].history
    assert [(turn.role, turn.content) for turn in history] == [("user", "Otters?"), ("assistant", first["text"])]
    assert history[1].paper_ids == tuple(one["paper"]["paper_id"] for one in first["citations"])


def test_a_conversation_can_be_read_listed_and_deleted(client: TestClient) -> None:
    conversation = begin(client)
    answer = client.post(f"/api/v1/conversations/{conversation}/messages", json={"question": "Otters?"}).json()
    read = ConversationOut.model_validate(client.get(f"/api/v1/conversations/{conversation}").json())
    assert read.title == "Otters?"
    assert [(one.role, one.answer_id) for one in read.messages] == [("user", None), ("assistant", answer["answer_id"])]
    assert client.get(f"/api/v1/answers/{answer['answer_id']}").json()["conversation_id"] == conversation
    listed = ConversationsPage.model_validate(client.get("/api/v1/conversations").json())
    assert [(one.conversation_id, one.messages) for one in listed.conversations] == [(conversation, 2)]
    assert client.delete(f"/api/v1/conversations/{conversation}").status_code == 204
    for path in (f"conversations/{conversation}", f"answers/{answer['answer_id']}"):
        assert client.get(f"/api/v1/{path}").status_code == 404


def test_conversations_page_by_cursor_without_gap_or_repeat(client: TestClient) -> None:
    made = [begin(client, str(number)) for number in range(5)]
    found: list[str] = []
    cursor = None
    while True:
        page = client.get("/api/v1/conversations", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        found += [one["conversation_id"] for one in page["conversations"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert found == made[::-1]


def test_a_conversation_and_its_answers_belong_to_the_key_that_made_them(make_app: MakeApp) -> None:
    with TestClient(make_app(api_keys="one,two"), base_url=HERE) as client:
        client.headers["Authorization"] = "Bearer one"
        conversation = begin(client)
        answer = client.post(f"/api/v1/conversations/{conversation}/messages", json={"question": "Otters?"}).json()["answer_id"]
        client.headers["Authorization"] = "Bearer two"
        assert client.get("/api/v1/conversations").json()["conversations"] == []
        tries = [
            client.get(f"/api/v1/conversations/{conversation}"),
            client.get(f"/api/v1/conversations/{conversation}.bib"),
            client.delete(f"/api/v1/conversations/{conversation}"),
            client.post(f"/api/v1/conversations/{conversation}/messages", json={"question": "Mine?"}),
            client.get(f"/api/v1/answers/{answer}"),
            client.get(f"/api/v1/answers/{answer}.ris"),
            client.post("/api/v1/feedback", json={"answer_id": answer, "verdict": "down"}),
        ]
        assert [one.status_code for one in tries] == [404] * len(tries)


@pytest.mark.parametrize("headers", [{}, SSE])
def test_a_question_that_failed_leaves_no_trace_and_the_next_is_taken(
    client: TestClient, library: FakeLibrary, headers: dict[str, str]
) -> None:
    conversation = begin(client)
    library.engine.faults[2] = LLMUnavailable("silent")
    client.post(f"/api/v1/conversations/{conversation}/messages", json={"question": "Otters?"}, headers=headers)
    assert client.get(f"/api/v1/conversations/{conversation}").json()["messages"] == []
    library.engine.faults.clear()
    again = client.post(f"/api/v1/conversations/{conversation}/messages", json={"question": "Otters?"})
    assert again.status_code == 200
    assert library.engine.asked[-1].history == ()


def test_two_posting_at_once_do_not_interleave(make_app: MakeApp, library: FakeLibrary) -> None:
    library.engine.pauses = {0: 0.05, 1: 0.05}
    with served(make_app()) as url, TestClient(make_app(), base_url=HERE) as reader:
        conversation = begin(reader)

        def post(question: str) -> None:

            path = f"{url}/api/v1/conversations/{conversation}/messages"
            assert httpx2.post(path, json={"question": question}, timeout=20).status_code == 200

        threads = [threading.Thread(target=post, args=(f"Question {n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        messages = reader.get(f"/api/v1/conversations/{conversation}").json()["messages"]
    assert [one["role"] for one in messages] == ["user", "assistant"] * 4
    assert sorted(len(asked.history) for asked in library.engine.asked) == [0, 2, 4, 6]


def test_what_a_conversation_cites_is_exported_once(client: TestClient) -> None:
    conversation = begin(client)
    for question in ("Otters?", "Crows?"):
        client.post(f"/api/v1/conversations/{conversation}/messages", json={"question": question})
    exported = client.get(f"/api/v1/conversations/{conversation}.bib")
    assert exported.headers["content-type"].startswith("application/x-bibtex")
    assert exported.text.count("@misc") == 2
    assert client.get(f"/api/v1/conversations/{conversation}.json").json()[0]["title"] == "Pebble choice in otters"


def test_messages_of_a_conversation_that_is_not_there_are_404(client: TestClient) -> None:
    for headers in ({}, SSE):
        response = client.post("/api/v1/conversations/nothere1/messages", json={"question": "Why?"}, headers=headers)
        assert (response.status_code, response.json()["code"]) == (404, "not_found")
