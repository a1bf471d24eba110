import pytest
from fastapi.testclient import TestClient

from api.schemas import PaperOut, PapersPage, SearchOut
from rag.errors import IndexUnavailable
from tests.api.fakes import PAPERS, FakeLibrary

NEW = {"title": "Slow snails", "abstract": "Snails are slow when it is dry.", "authors": ["Shell, Bo"], "year": 2022}


def titles(response: object) -> list[str | None]:
    return [paper.title for paper in PapersPage.model_validate(response).papers]


def test_papers_page_by_cursor_without_gap_or_repeat(client: TestClient) -> None:
    found: list[str] = []
    cursor: str | None = None
    for _ in range(10):
        params = {"limit": "1", **({"cursor": cursor} if cursor else {})}
        page = PapersPage.model_validate(client.get("/api/v1/papers", params=params).json())
        found += [paper.abstract for paper in page.papers]
        cursor = page.cursor
        if cursor is None:
            break
    assert found == [paper.abstract for paper in PAPERS]


def test_a_cursor_survives_the_removal_of_the_paper_it_stands_at(client: TestClient, library: FakeLibrary) -> None:
    cursor = client.get("/api/v1/papers", params={"limit": 1}).json()["cursor"]
    library.catalogue.remove([library.catalogue.list(limit=1)[0].paper_id])
    assert len(client.get("/api/v1/papers", params={"cursor": cursor}).json()["papers"]) == 2


@pytest.mark.parametrize("cursor", ["x", "é", "%00", "bm90aGVyZQ=="])
def test_a_cursor_that_leads_nowhere_is_422(client: TestClient, cursor: str) -> None:
    assert client.get("/api/v1/papers", params={"cursor": cursor}).status_code == 422


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"year_min": "2020"}, ["Pebble choice in otters"]),
        ({"year_max": "2020"}, ["Long memory in crows"]),
        ({"venue": "bird letters"}, ["Long memory in crows"]),
        ({"author": ["Wang", "Brook"]}, ["Pebble choice in otters", "Long memory in crows"]),
        ({"category": "botany"}, [None]),
        ({"category": "astronomy"}, []),
    ],
)
def test_papers_are_filtered(client: TestClient, params: dict[str, str], expected: list[str | None]) -> None:
    assert titles(client.get("/api/v1/papers", params=params).json()) == expected


@pytest.mark.parametrize("name", ["10.5555/otter.1", "doi:10.5555/otter.1"])
def test_a_paper_is_read_by_its_id_and_by_its_other_names(client: TestClient, library: FakeLibrary, name: str) -> None:
    paper_id = library.catalogue.list(limit=1)[0].paper_id
    by_id = PaperOut.model_validate(client.get(f"/api/v1/papers/{paper_id}").json())
    assert by_id.abstract == PAPERS[0].abstract
    assert client.get(f"/api/v1/papers/{name}").json()["paper_id"] == paper_id


def test_a_paper_nobody_knows_is_404(client: TestClient) -> None:
    for path in ("nothere1", "nothere1.bib", "10.1/x"):
        assert client.get(f"/api/v1/papers/{path}").json()["code"] == "not_found"


@pytest.mark.parametrize(
    ("form", "media_type", "sign"),
    [
        ("bib", "application/x-bibtex", "@misc{"),
        ("ris", "application/x-research-info-systems", "TY  - GEN"),
        ("json", "application/vnd.citationstyles.csl+json", '"DOI"'),
    ],
)
def test_a_paper_and_an_answers_citations_are_exported(
    client: TestClient, library: FakeLibrary, form: str, media_type: str, sign: str
) -> None:
    paper_id = library.catalogue.list(limit=1)[0].paper_id
    answer_id = client.post("/api/v1/ask", json={"question": "What?"}).json()["answer_id"]
    for path, count in ((f"papers/{paper_id}", 1), (f"answers/{answer_id}", 2)):
        response = client.get(f"/api/v1/{path}.{form}")
        assert response.headers["content-type"] == f"{media_type}; charset=utf-8"
        assert response.headers["content-disposition"].endswith(f'.{form}"')
        assert sign in response.text
        assert response.text.count("otters") >= 1
        assert ("crows" in response.text) is (count == 2)


def test_search_gives_papers_with_scores_and_no_answer(client: TestClient, library: FakeLibrary) -> None:
    response = client.get("/api/v1/search", params={"question": "crows", "top_k": 2, "year_min": 2000})
    found = SearchOut.model_validate(response.json())
    assert [one.score for one in found.papers] == [0.9, 0.89]
    assert library.engine.asked == []


def test_search_over_a_broken_index_is_503(client: TestClient, library: FakeLibrary) -> None:
    library.retriever.fault = IndexUnavailable("Chroma does not answer")
    assert client.get("/api/v1/search", params={"question": "crows"}).status_code == 503


@pytest.mark.parametrize(
    "params", [{}, {"question": ""}, {"question": " "}, {"question": "x", "top_k": "0"}, {"question": "x", "yer_min": "2000"}]
)
def test_a_bad_search_is_422(client: TestClient, params: dict[str, str]) -> None:
    assert client.get("/api/v1/search", params=params).status_code == 422
