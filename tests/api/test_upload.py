import gzip
import json

import pytest
from fastapi.testclient import TestClient

from api.schemas import IngestReportOut
from tests.api.fakes import FakeLibrary

NEW = {"title": "Slow snails", "abstract": "Snails are slow when it is dry.", "authors": ["Shell, Bo"], "year": 2022}
BAD = {"title": "Nothing"}
BIB = "@article{shell, title={Slow snails}, author={Shell, Bo}, year={2022}, abstract={Snails are slow when it is dry.}}"


def snails(library: FakeLibrary) -> list[str]:
    return [paper.abstract for paper in library.catalogue.list() if "Snails" in paper.abstract]


def test_a_json_array_adds_papers_and_reports(client: TestClient, library: FakeLibrary) -> None:
    report = IngestReportOut.model_validate(client.post("/api/v1/papers", json=[NEW, BAD]).json())
    assert (report.added, len(report.rejected), report.indexed, report.revision) == (1, 1, True, library.catalogue.revision())
    assert "abstract" in report.rejected[0].reason
    assert snails(library) == [NEW["abstract"]]
    assert client.post("/api/v1/papers", json=[NEW]).json()["unchanged"] == 1


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(NEW).encode() + b"\n",
        b"title,abstract\nSlow snails,Snails are slow when it is dry.\n",
        BIB.encode(),
        gzip.compress(BIB.encode()),
    ],
)
def test_a_file_in_any_readers_format_is_taken_as_form_or_body(client: TestClient, library: FakeLibrary, content: bytes) -> None:
    form = client.post("/api/v1/papers", files={"file": ("papers", content)})
    assert (form.status_code, form.json()["added"]) == (200, 1)
    body = client.post("/api/v1/papers", content=content)
    assert (body.status_code, body.json()["unchanged"]) == (200, 1)
    assert snails(library) == [NEW["abstract"]]


def test_several_files_of_a_form_are_one_ingest_and_the_bad_one_is_named(client: TestClient) -> None:
    files = [("file", ("a.bib", BIB.encode())), ("file", ("notes.bin", b"\x00\x01\x02\x03"))]
    report = client.post("/api/v1/papers", files=files).json()
    assert (report["added"], [one["source"] for one in report["rejected"]]) == (1, ["notes.bin"])


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n", b"[]", b"{}", b"null", b'[{"title": "x"}]', b"[" * 10_000])
def test_an_upload_without_a_single_paper_is_422_with_reasons(client: TestClient, content: bytes) -> None:
    for response in (
        client.post("/api/v1/papers", content=content, headers={"Content-Type": "application/json"}),
        client.post("/api/v1/papers", files={"file": ("it", content)}),
    ):
        assert (response.status_code, response.json()["code"]) == (422, "nothing_taken")
        assert response.json()["errors"][0]["message"]


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (b"--x--\r\n", "multipart/form-data; boundary=x"),
        (b"nonsense", "multipart/form-data; boundary=x"),
        (b"nonsense", "multipart/form-data"),
        (b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n--x--\r\n', "multipart/form-data; boundary=x"),
    ],
)
def test_a_form_without_files_is_told_so(client: TestClient, content: bytes, content_type: str) -> None:
    response = client.post("/api/v1/papers", content=content, headers={"Content-Type": content_type})
    assert response.status_code in (400, 422)
    assert response.headers["content-type"] == "application/problem+json"
