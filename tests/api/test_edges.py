"""What surrounds every request: keys, limits, ids, headers, logs, and what happens when somebody leaves."""

import asyncio
import io
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator

import httpx2
import pytest
from fastapi.testclient import TestClient

from api.body_limit import LIMIT
from api.logs import JsonLines
from api.upload import LIMIT as UPLOAD_LIMIT
from tests.api.conftest import HERE, MakeApp
from tests.api.fakes import FakeLibrary, served

ASK = {"question": "What do otters do?"}
CHAT = {"model": "footnote", "messages": [{"role": "user", "content": "What do otters do?"}]}
PROBLEM = "application/problem+json"


def wait_until(true: Callable[[], bool], seconds: float = 5) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not come true in time"
        time.sleep(0.01)


@pytest.fixture
def keyed(make_app: MakeApp) -> Iterator[TestClient]:
    """A client without a key of a server that has some."""
    with TestClient(make_app(api_keys="user", admin_keys="admin", host="0.0.0.0"), base_url="http://footnote.example") as client:
        yield client


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/api/v1/ask"), ("GET", "/api/v1/papers"), ("GET", "/v1/models"), ("GET", "/metrics"), ("GET", "/api/v1/nothing")],
)
def test_everything_but_health_needs_a_key(keyed: TestClient, method: str, path: str) -> None:
    response = keyed.request(method, path)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert keyed.request(method, path, headers=bearer("user")).status_code != 401


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json", "/docs"])
def test_health_and_the_description_need_no_key(keyed: TestClient, path: str) -> None:
    assert keyed.get(path).status_code == 200


def test_a_body_without_a_key_is_not_even_read(keyed: TestClient) -> None:
    def body() -> Iterator[bytes]:
        raise AssertionError("the body was read")
        yield b""

    assert keyed.post("/api/v1/papers", content=body()).status_code == 401


def test_changing_papers_takes_an_admin_key(keyed: TestClient) -> None:
    for method, path in (("POST", "/api/v1/papers"), ("DELETE", "/api/v1/papers/nothere1")):
        refused = keyed.request(method, path, headers=bearer("user"))
        assert (refused.status_code, refused.json()["code"]) == (403, "admin_key_needed")
        assert keyed.request(method, path, headers=bearer("admin")).status_code in (404, 422)


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Host": "127.0.0.1:1"}, {"Origin": "http://evil.example"}, {"Origin": "null"}]
)
@pytest.mark.parametrize("path", ["/api/v1/papers", "/v1/models", "/", "/metrics"])
def test_without_keys_another_host_or_origin_is_refused(client: TestClient, headers: dict[str, str], path: str) -> None:
    response = client.get(path, headers=headers)
    assert response.status_code == 403


def test_with_keys_any_host_and_origin_will_do(keyed: TestClient) -> None:
    headers = {"Host": "elsewhere.example", "Origin": "https://page.example", **bearer("user")}
    assert keyed.get("/api/v1/papers", headers=headers).status_code == 200


def test_a_key_that_asks_too_often_is_told_when_to_come_back(make_app: MakeApp) -> None:
    with TestClient(make_app(api_keys="one,two", rate_limit=2), base_url=HERE) as client:
        statuses = [client.get("/api/v1/papers", headers=bearer("one")).status_code for _ in range(3)]
        refused = client.get("/v1/models", headers=bearer("one"))
        assert statuses == [200, 200, 429]
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limited")
        assert 1 <= int(refused.headers["retry-after"]) <= 30
        assert client.get("/api/v1/papers", headers=bearer("two")).status_code == 200


@pytest.mark.parametrize("headers", [{}, {"Accept": "text/event-stream"}])
def test_answers_beyond_the_cap_get_429_and_free_places_are_taken_again(
    make_app: MakeApp, library: FakeLibrary, headers: dict[str, str]
) -> None:
    library.engine.pauses = {0: 30}
    with served(make_app(max_concurrent=1)) as url, httpx2.Client(timeout=10) as client:

        def ask() -> None:
            with pytest.raises(httpx2.TimeoutException):
                httpx2.post(f"{url}/api/v1/ask", json=ASK, headers=headers, timeout=1)

        thread = threading.Thread(target=ask)
        thread.start()
        wait_until(lambda: library.engine.running == 1)
        refused = client.post(f"{url}/api/v1/ask", json=ASK, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_answers")
        assert refused.headers["retry-after"] == "1"
        assert client.post(f"{url}/v1/chat/completions", json=CHAT).status_code == 429
        thread.join()
        wait_until(lambda: library.engine.running == 0)
        library.engine.pauses = {}
        assert client.post(f"{url}/api/v1/ask", json=ASK, headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/api/v1/ask", ASK, {}),
        ("/api/v1/ask", ASK, {"Accept": "text/event-stream"}),
        ("/v1/chat/completions", CHAT, {}),
        ("/v1/chat/completions", {**CHAT, "stream": True}, {}),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 3])
def test_work_stops_when_the_client_leaves(
    make_app: MakeApp, library: FakeLibrary, path: str, body: object, headers: dict[str, str], place: int
) -> None:
    library.engine.pauses = {place: 60}
    with served(make_app()) as url:
        began = time.monotonic()
        with pytest.raises(httpx2.TimeoutException):
            httpx2.post(f"{url}{path}", json=body, headers=headers, timeout=0.4)
        left = time.monotonic()
        wait_until(lambda: library.engine.stopped_at is not None, 2)
        assert library.engine.stopped_at is not None
        assert library.engine.stopped_at - left < 1
        assert library.engine.stopped_at - began >= 0.3
        assert library.engine.running == 0


@pytest.mark.parametrize("headers", [{}, {"Accept": "text/event-stream"}])
def test_a_conversation_is_free_again_when_the_client_left(
    make_app: MakeApp, library: FakeLibrary, headers: dict[str, str]
) -> None:
    library.engine.pauses = {1: 60}
    with served(make_app()) as url, httpx2.Client(timeout=5) as client:
        conversation = client.post(f"{url}/api/v1/conversations", json={}).json()["conversation_id"]
        path = f"{url}/api/v1/conversations/{conversation}/messages"
        with pytest.raises(httpx2.TimeoutException):
            client.post(path, json=ASK, headers=headers, timeout=0.4)
        library.engine.pauses = {}
        assert client.post(path, json=ASK).status_code == 200


async def test_health_answers_at_once_while_sixty_slow_questions_are_in_flight(make_app: MakeApp, library: FakeLibrary) -> None:
    library.engine.pauses = {1: 60}
    limits = httpx2.Limits(max_connections=100)
    with served(make_app()) as url:
        async with httpx2.AsyncClient(timeout=60, limits=limits) as client:
            asking = [asyncio.create_task(client.post(f"{url}/api/v1/ask", json=ASK)) for _ in range(60)]
            await asyncio.to_thread(wait_until, lambda: library.engine.running == 60, 30)
            assert await median_of_health(client, url) < 0.1
            assert "footnote_answers_in_flight 60.0" in (await client.get(f"{url}/metrics")).text
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)


async def median_of_health(client: httpx2.AsyncClient, url: str) -> float:
    """Seconds; the median, since other work on this machine may hold up one try or the other."""
    times = []
    for _ in range(11):
        began = time.perf_counter()
        assert (await client.get(f"{url}/healthz")).json() == {"status": "ok"}
        times.append(time.perf_counter() - began)
    return sorted(times)[5]


async def test_health_answers_while_every_database_thread_is_busy(make_app: MakeApp, library: FakeLibrary) -> None:
    library.retriever.pause = 2
    with served(make_app()) as url:
        async with httpx2.AsyncClient(timeout=60) as client:
            searching = [asyncio.create_task(client.get(f"{url}/api/v1/search?question=crows")) for _ in range(40)]
            await asyncio.sleep(0.5)
            assert await median_of_health(client, url) < 0.1
            for task in searching:
                task.cancel()
            await asyncio.gather(*searching, return_exceptions=True)


def test_a_body_too_large_is_413_whether_it_says_so_or_not(client: TestClient) -> None:
    def unsaid() -> Iterator[bytes]:
        yield from (b"x" * 65536 for _ in range(LIMIT // 65536 + 1))

    for path, content in (("/api/v1/ask", b"x" * (LIMIT + 1)), ("/api/v1/ask", unsaid())):
        response = client.post(path, content=content, headers={"Content-Type": "application/json"})
        assert (response.status_code, response.headers["content-type"]) == (413, PROBLEM)
    assert client.post("/v1/chat/completions", content=b"x" * (LIMIT + 1)).json()["error"]["code"] == "too_large"


def test_an_upload_may_be_larger_but_not_endless(client: TestClient) -> None:
    assert client.post("/api/v1/papers", content=b"x" * (LIMIT + 1)).status_code == 422
    assert client.post("/api/v1/papers", headers={"Content-Length": str(UPLOAD_LIMIT + 1)}, content=b"x").status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("GET", "/api/v1/nothing", 404), ("PUT", "/api/v1/ask", 405), ("GET", "/api/v1/ask", 405)],
)
def test_unknown_addresses_and_methods_are_problems_too(client: TestClient, method: str, path: str, status: int) -> None:
    response = client.request(method, path)
    assert (response.status_code, response.json()["status"]) == (status, status)
    assert response.headers["content-type"] == PROBLEM
    if status == 405:
        assert "POST" in response.headers["allow"]


def test_cors_is_off_unless_an_origin_is_allowed(make_app: MakeApp) -> None:
    preflight = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    with TestClient(make_app(api_keys="k"), base_url=HERE) as client:
        assert "access-control-allow-origin" not in client.options("/api/v1/ask", headers=preflight).headers
    with TestClient(make_app(api_keys="k", cors_origins="https://page.example"), base_url=HERE) as client:
        allowed = client.options("/api/v1/ask", headers=preflight)
        assert allowed.headers["access-control-allow-origin"] == "https://page.example"
        asked = client.get("/api/v1/papers", headers={"Origin": "https://page.example", **bearer("k")})
        assert asked.headers["access-control-allow-origin"] == "https://page.example"
        refused = client.get("/api/v1/papers", headers={"Origin": "https://other.example", **bearer("k")})
        assert "access-control-allow-origin" not in refused.headers


def test_every_response_has_a_request_id_and_a_good_one_is_kept(client: TestClient, library: FakeLibrary) -> None:
    assert client.get("/healthz", headers={"X-Request-ID": "mine-7"}).headers["x-request-id"] == "mine-7"
    for bad in ("", "a b", "x" * 65, "<script>"):
        given = client.get("/nothing", headers={"X-Request-ID": bad}).headers["x-request-id"]
        assert given != bad
        assert len(given) == 32
    library.engine.faults[0] = RuntimeError("broken")
    assert client.post("/api/v1/ask", json=ASK).headers["x-request-id"]


@pytest.mark.parametrize("path", ["/healthz", "/api/v1/papers", "/nothing", "/docs"])
def test_every_response_is_locked_down(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"


def test_the_documentation_loads_nothing_from_elsewhere(client: TestClient) -> None:
    page = client.get("/docs").text
    assert "http" not in page
    for asset in ("/docs/assets/swagger-ui.css", "/docs/assets/swagger-ui-bundle.js", "/docs/start.js"):
        assert asset in page
        assert client.get(asset).status_code == 200


def logged(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(JsonLines().format(record) for record in caplog.records if record.name.startswith(("footnote", "api")))


def test_logs_tell_of_each_request_but_not_what_was_asked(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    client.post("/api/v1/ask", json={"question": "the-secret-question"}, headers={"X-Request-ID": "id-1"})
    client.get("/api/v1/search", params={"question": "the-secret-question"})
    client.post("/api/v1/ask", json={"question": "the-secret-question", "top_k": "x"})
    lines = [json.loads(line) for line in logged(caplog).splitlines() if '"footnote.http"' in line]
    assert [(line["path"], line["status"]) for line in lines] == [
        ("/api/v1/ask", 200),
        ("/api/v1/search", 200),
        ("/api/v1/ask", 422),
    ]
    assert (lines[0]["method"], lines[0]["owner"], lines[0]["level"]) == ("POST", "local", "info")
    assert lines[0]["ms"] >= 0
    assert "the-secret-question" not in logged(caplog)


def test_log_lines_of_a_request_carry_its_id(client: TestClient, library: FakeLibrary) -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(JsonLines())
    logging.getLogger("footnote").addHandler(handler)
    library.engine.faults[0] = RuntimeError("broken")
    client.post("/api/v1/ask", json=ASK, headers={"X-Request-ID": "id-2"})
    logging.getLogger("footnote").removeHandler(handler)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    (broken,) = [line for line in lines if line["message"] == "unforeseen error"]
    assert broken["request_id"] == "id-2"
    assert "RuntimeError: broken" in broken["traceback"]


def test_question_text_is_logged_when_that_is_wanted(make_app: MakeApp, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with TestClient(make_app(log_questions=True), base_url=HERE) as client:
        client.post("/api/v1/ask", json={"question": "no secret"})
    assert '"question": "no secret"' in logged(caplog)


def test_figures_tell_what_happened(client: TestClient, library: FakeLibrary) -> None:
    library.engine.change = {"invalid_markers": 3}
    client.post("/api/v1/ask", json=ASK)
    library.engine.change = {}
    library.engine.cited = 0
    client.post("/api/v1/ask", json=ASK)
    text = client.get("/metrics").text
    for line in (
        'footnote_answers_total{generator="extractive",status="answered"} 1.0',
        'footnote_answers_total{generator="extractive",status="not_in_corpus"} 1.0',
        "footnote_invalid_markers_total 3.0",
        "footnote_retrieved_papers_count 2.0",
        "footnote_retrieved_papers_sum 2.0",
        'footnote_sentence_support_total{support="ok"} 2.0',
        'footnote_llm_tokens_total{kind="prompt"} 20.0',
        'footnote_answer_stage_seconds_count{stage="retrieve"} 2.0',
        'footnote_http_request_seconds_count{method="POST",route="/api/v1/ask",status="200"} 2.0',
        "footnote_answers_in_flight 0.0",
    ):
        assert line in text


def test_paths_and_methods_of_strangers_make_no_new_figures(client: TestClient) -> None:
    client.get("/nothing/a")
    client.get("/nothing/b")
    client.request("BREW", "/nothing/c")
    client.get("/api/v1/papers/nothere1")
    text = client.get("/metrics").text
    assert 'method="GET",route="none",status="404"} 2.0' in text
    assert 'method="other",route="none"' in text
    assert 'route="/api/v1/papers/{paper_id}",status="404"} 1.0' in text
    assert "BREW" not in text


def test_ready_says_what_it_waits_for(client: TestClient, library: FakeLibrary) -> None:
    assert client.get("/readyz").json() == {"status": "ready", "papers": 3, "revision": 1}
    library.waiting_for = "The keyword index is 7 revisions behind."
    response = client.get("/readyz")
    assert (response.status_code, response.json()["detail"]) == (503, "The keyword index is 7 revisions behind.")
