"""Exact search: the same as multiplying everything, in step with the catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.catalogue import Catalogue, Change
from rag.index.exact import RELOAD, ExactIndex
from rag.types import IndexedPaper, Vectors
from tests.index.papers import EMBEDDER, open_catalogue, take


class Vault:
    """A catalogue of vectors only, that never changes."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors

    def revision(self) -> int:
        return 1

    def changes(self, after: int, limit: int) -> list[Change]:
        return []

    def indexed(self, paper_ids: Sequence[str], model: str) -> list[IndexedPaper]:
        return []

    def whole_vectors(self, model: str) -> tuple[list[str], Vectors]:
        return [f"paper-{n:04}" for n in range(len(self.vectors))], self.vectors


VECTORS = np.stack([EMBEDDER.embed_question(str(n // 2)) for n in range(300)])
EXACT = ExactIndex(Vault(VECTORS), "hash")


@given(st.integers(0, 299), st.integers(0, 320), st.none() | st.sets(st.integers(0, 310)))
def test_search_is_sorting_all_cosines(question: int, k: int, members: set[int] | None) -> None:
    vector = VECTORS[question]
    within = None if members is None else [f"paper-{n:04}" for n in members]
    rows = range(300) if members is None else [n for n in members if n < 300]
    expected = sorted(round(-float(VECTORS[n] @ vector), 5) for n in rows)[:k]
    found = EXACT.search(vector, k, within)
    assert [round(-cosine, 5) for _, cosine in found] == pytest.approx(expected, abs=2e-5)
    assert len({paper_id for paper_id, _ in found}) == len(found)
    assert within is None or {paper_id for paper_id, _ in found} <= set(within)


def test_an_empty_catalogue_finds_nothing() -> None:
    assert ExactIndex(Vault(np.zeros((0, 0), np.float32)), "hash").search(VECTORS[0], 5) == []


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return open_catalogue(tmp_path)


def nearest(exact: ExactIndex, catalogue: Catalogue, paper_id: str) -> str:
    (paper,) = catalogue.indexed([paper_id], EMBEDDER.model)
    assert paper.vectors is not None
    return exact.search(paper.vectors[0], 1)[0][0]


def test_what_the_catalogue_takes_and_loses_is_found_and_gone_at_once(catalogue: Catalogue) -> None:
    exact = ExactIndex(catalogue, EMBEDDER.model)
    first = take(catalogue, 0, 5)
    assert exact.count() == 5
    second = take(catalogue, 5, 9)
    assert [nearest(exact, catalogue, paper_id) for paper_id in [*first, *second]] == [*first, *second]
    vector = VECTORS[0]
    catalogue.remove(first[:2])
    assert exact.count() == 7
    assert not {paper_id for paper_id, _ in exact.search(vector, 9)} & set(first[:2])
    catalogue.remove([*first, *second])
    assert exact.search(vector, 9) == []


def test_after_many_changes_all_is_read_again(catalogue: Catalogue) -> None:
    exact = ExactIndex(catalogue, EMBEDDER.model)
    take(catalogue, 0, 3)
    assert exact.count() == 3
    ids = take(catalogue, 3, RELOAD + 10)
    assert exact.count() == RELOAD + 10
    assert nearest(exact, catalogue, ids[-1]) == ids[-1]
