import time

import pytest
from fastapi.testclient import TestClient

from api.schemas import VerifyOut
from api.verify import read_sentences
from tests.api.fakes import FakeLibrary


def test_each_sentence_of_a_text_is_checked_against_the_papers_it_cites(client: TestClient, library: FakeLibrary) -> None:
    otters, crows, moss = (paper.paper_id for paper in library.catalogue.list())
    text = "Otters sort pebbles [1]. Both are clever【3】[1,9]. Nobody says this."
    response = client.post("/api/v1/verify", json={"text": text, "paper_ids": [otters, moss, "id:crow-7"]})
    found = VerifyOut.model_validate(response.json())
    assert [one.text for one in found.sentences] == ["Otters sort pebbles [1]. ", "Both are clever [3][1]. ", "Nobody says this."]
    assert [one.support for one in found.sentences] == ["ok", "ok", "uncited"]
    assert [(one.marker, one.quote) for one in found.sentences[1].evidence] == [(3, "Crows"), (1, "Otters")]
    assert [paper.paper_id for paper in found.papers] == [otters, moss, crows]
    assert (found.verifier, found.invalid_markers) == ("fake", 1)
    assert [papers for _, papers in library.verifier.seen] == [(otters,), (crows, otters), ()]


def test_a_text_of_thousands_of_sentences_is_read_soon() -> None:
    began = time.process_time()
    sentences, invalid = read_sentences("Otters sort pebbles [1]. " * 4_000, 1)
    assert (len(sentences), invalid) == (4_000, 0)
    assert time.process_time() - began < 5  # all at once it takes minutes


def test_claims_are_checked_against_their_own_papers(client: TestClient, library: FakeLibrary) -> None:
    otters, crows, _ = (paper.paper_id for paper in library.catalogue.list())
    claims = [
        {"text": "Crows remember.", "paper_ids": [crows]},
        {"text": "Otters and crows are clever.", "paper_ids": [otters, crows, otters]},
    ]
    found = VerifyOut.model_validate(client.post("/api/v1/verify", json={"claims": claims}).json())
    assert [paper.paper_id for paper in found.papers] == [crows, otters]
    assert [one.text for one in found.sentences] == ["Crows remember [1].", "Otters and crows are clever [2][1]."]
    assert [papers for _, papers in library.verifier.seen] == [(crows,), (otters, crows)]


def test_a_paper_nobody_knows_is_404(client: TestClient) -> None:
    for body in ({"text": "So [1].", "paper_ids": ["nothere1"]}, {"claims": [{"text": "So.", "paper_ids": ["nothere1"]}]}):
        assert client.post("/api/v1/verify", json=body).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": "So [1]."},
        {"text": "", "paper_ids": ["a"]},
        {"text": "So [1].", "paper_ids": []},
        {"claims": []},
        {"claims": [{"text": "So.", "paper_ids": []}]},
        {"text": "So.", "paper_ids": ["a"], "claims": []},
    ],
)
def test_a_body_that_is_neither_text_nor_claims_is_422(client: TestClient, body: object) -> None:
    assert client.post("/api/v1/verify", json=body).status_code == 422
