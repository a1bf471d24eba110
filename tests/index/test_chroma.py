"""The dense index in embedded Chroma: what it finds, keeps and refuses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rag.errors import IndexDamaged, SettingsError
from rag.index.chroma import BATCH, EmbeddedChroma, cloud_chroma, served_chroma
from rag.types import Vectors

DIMENSION = 16


def unit_vectors(n: int, seed: int = 7) -> Vectors:
    rows = np.random.default_rng(seed).standard_normal((n, DIMENSION)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def names(n: int) -> list[str]:
    return [f"paper-{i:04}" for i in range(n)]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[EmbeddedChroma]:
    dense = EmbeddedChroma(tmp_path / "chroma", "model@1")
    dense.rebuild([])
    yield dense
    dense.close()


def test_search_gives_the_nearest_by_cosine_best_first(index: EmbeddedChroma) -> None:
    vectors = unit_vectors(2 * BATCH + 3)
    index.upsert(names(len(vectors)), vectors)
    assert index.count() == len(vectors)
    found = index.search(vectors[5], 3)
    best = np.argsort(-(vectors @ vectors[5]))[:3]
    assert [paper_id for paper_id, _ in found] == [f"paper-{i:04}" for i in best]
    assert [cosine for _, cosine in found] == pytest.approx((vectors @ vectors[5])[best], abs=1e-5)


def test_a_vector_given_again_replaces_the_old_one(index: EmbeddedChroma) -> None:
    first, second = unit_vectors(2)
    index.upsert(["paper-0001"], first[None])
    index.upsert(["paper-0001"], second[None])
    assert index.count() == 1
    assert dict(index.search(second, 5)) == pytest.approx({"paper-0001": 1.0}, abs=1e-5)


def test_deleting_takes_papers_out_and_unknown_ids_are_no_error(index: EmbeddedChroma) -> None:
    index.upsert(names(3), unit_vectors(3))
    index.delete(["paper-0001", "paper-9999"])
    assert sorted(paper_id for paper_id, _ in index.search(unit_vectors(1)[0], 9)) == ["paper-0000", "paper-0002"]


def test_an_empty_index_finds_nothing(index: EmbeddedChroma) -> None:
    assert index.count() == 0
    assert index.search(unit_vectors(1)[0], 5) == []
    index.upsert([], np.zeros((0, DIMENSION), np.float32))
    index.delete([])


def test_what_was_written_is_there_after_closing(index: EmbeddedChroma) -> None:
    index.upsert(names(3), unit_vectors(3))
    index.close()
    assert index.count() == 3


def test_vectors_of_another_model_never_mix(index: EmbeddedChroma, tmp_path: Path) -> None:
    index.upsert(names(3), unit_vectors(3))
    index.close()
    other = EmbeddedChroma(tmp_path / "chroma", "model@2")
    with pytest.raises(IndexDamaged, match="no dense index"):
        other.count()


@pytest.mark.parametrize(("space", "model", "reason"), [("l2", "model@1", "not cosine"), ("cosine", "model@2", "another model")])
def test_a_collection_made_otherwise_is_refused(index: EmbeddedChroma, space: str, model: str, reason: str) -> None:
    client = index._connected()
    client.delete_collection(index._name)
    client.create_collection(
        index._name,
        embedding_function=None,
        metadata={**index._made_by, "model": model},
        configuration={"hnsw": {"space": space}},  # type: ignore[arg-type]  # a literal in Chroma's types
    )
    index.close()
    with pytest.raises(IndexDamaged, match=reason):
        index.count()


def test_marks_are_kept_beside_the_collection(index: EmbeddedChroma) -> None:
    index.mark(revision=3, clean=False)
    index.mark(revision=4)
    index.close()
    marks = index.marks()
    assert (marks["revision"], marks["clean"], marks["model"]) == (4, False, "model@1")
    index.upsert(names(3), unit_vectors(3))
    assert index.search(unit_vectors(3)[2], 1)[0][0] == "paper-0002"


def test_marks_of_no_collection_are_none(tmp_path: Path) -> None:
    assert EmbeddedChroma(tmp_path, "model@1").marks() == {}


def test_papers_without_a_vector_are_lacking_and_twins_are_not(index: EmbeddedChroma) -> None:
    vectors = unit_vectors(30)
    index.upsert(names(30), np.concatenate([vectors[:10], np.repeat(vectors[10:11], 20, axis=0)]))
    assert index.lacking(["paper-0003", "paper-0025", "paper-9999"], vectors[[3, 10, 20]]) == ["paper-9999"]


def test_a_rebuild_holds_exactly_what_it_was_given(index: EmbeddedChroma) -> None:
    index.upsert(names(5), unit_vectors(5))
    vectors = unit_vectors(2 * BATCH, seed=8)
    ids = [f"other-{i:04}" for i in range(len(vectors))]
    index.rebuild(iter([(ids[:10], vectors[:10]), (ids[10:], vectors[10:])]))
    assert index.count() == len(ids)
    assert index.search(vectors[300], 1)[0][0] == "other-0300"
    index.close()
    assert index.count() == len(ids)


def test_a_broken_store_is_damage_and_a_rebuild_mends_it(index: EmbeddedChroma, tmp_path: Path) -> None:
    index.upsert(names(5), unit_vectors(5))
    index.close()
    (tmp_path / "chroma" / "chroma.sqlite3").write_bytes(b"not a database" * 1000)
    with pytest.raises(IndexDamaged, match="footnote reindex"):
        index.count()
    index.rebuild([(names(5), unit_vectors(5))])
    assert index.count() == 5


def test_vectors_of_a_wrong_length_are_refused(index: EmbeddedChroma) -> None:
    index.upsert(names(1), unit_vectors(1))
    with pytest.raises(IndexDamaged, match="dimension"):
        index.upsert(["paper-0002"], np.ones((1, DIMENSION + 1), np.float32))


@pytest.mark.parametrize("url", ["ftp://host", "localhost:8000", "http://", "http://host/path"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="FOOTNOTE_CHROMA_URL"):
        served_chroma(url, "model@1")


def test_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(SettingsError, match="password") as refused:
        served_chroma("http://me:secret@host:8000", "model@1")
    assert "secret" not in str(refused.value)


def test_cloud_without_a_key_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHROMA_API_KEY", raising=False)
    with pytest.raises(SettingsError, match="CHROMA_API_KEY"):
        cloud_chroma("model@1").count()


def test_importing_the_module_does_not_import_chromadb() -> None:
    check = "import sys, rag.index.chroma; sys.exit('chromadb' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], cwd=Path(__file__).parents[2], check=False).returncode == 0
