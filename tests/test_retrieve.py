"""What is found for a question, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rag.build import Library, open_library
from rag.errors import Unavailable
from rag.ingest import Source
from rag.retrieve import HybridRetriever, Space, best_first, scored
from rag.settings import Settings
from rag.types import IndexedPaper
from tests.index.papers import about, first_sentence
from tests.shelf_of_papers import HashEmbedder

PAPERS = 30


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    with open_library(Settings(data=Path(tmp_path_factory.mktemp("library")))) as opened:
        opened.ingest([Source("test", lambda: iter(map(about, range(PAPERS))))])
        yield opened


def test_papers_come_in_the_order_that_scoring_all_of_them_by_their_texts_gives(library: Library) -> None:
    question = first_sentence(3)
    found = library.retriever.find(question, top_k=PAPERS)
    assert found[0].paper.paper_id == library.catalogue.resolve("10.5555/paper.3")
    assert len({one.paper.paper_id for one in found}) == len(found)
    vector = library.embedder.embed_question(question)
    again = []
    for one in found:
        (paper,) = library.catalogue.indexed([one.paper.paper_id], library.embedder.model)
        assert paper.vectors is not None
        again.append(scored(paper, (paper.vectors @ vector).clip(0, 1), one.keyword))
    assert [one.paper.paper_id for one in best_first(again)] == [one.paper.paper_id for one in found]
    assert [one.score for one in again] == pytest.approx([one.score for one in found], abs=1e-6)
    assert all(len(one.sentence_scores) == len(one.found.sentences) for one in found)


def test_fewer_papers_are_the_first_of_more(library: Library) -> None:
    many, few = (library.retriever.find("How deep is cold water?", top_k=top_k) for top_k in (PAPERS, 5))
    assert [one.paper.paper_id for one in few] == [one.paper.paper_id for one in many[:5]]


def test_excluded_papers_are_not_found(library: Library) -> None:
    first = library.retriever.find(first_sentence(3), top_k=1)[0].paper.paper_id
    assert first not in {one.paper.paper_id for one in library.retriever.find(first_sentence(3), top_k=PAPERS, exclude=[first])}


def test_papers_without_vectors_of_the_model_are_told_not_left_out(library: Library) -> None:
    space = Space(HashEmbedder(dimension=384), library.indexes.dense)
    retriever = HybridRetriever(library.catalogue, library.indexes.keyword, space)
    with pytest.raises(Unavailable, match="footnote reindex"):
        retriever.find(first_sentence(3), top_k=3)


def test_a_paper_removed_between_two_reads_is_left_out_in_a_space_of_whole_abstracts(library: Library) -> None:
    """As by another process while a question in another script is answered."""
    catalogue = library.catalogue
    gone = catalogue.resolve("10.5555/paper.3")

    class Losing:
        matching, vectors = catalogue.matching, catalogue.vectors
        reads = 0

        def indexed(self, paper_ids: Sequence[str], model: str) -> list[IndexedPaper]:
            self.reads += bool(paper_ids)
            return [one for one in catalogue.indexed(paper_ids, model) if self.reads < 2 or one.paper.paper_id != gone]

    main = Space(library.embedder, library.indexes.dense)
    other = Space(library.embedder, library.indexes.dense)
    retriever = HybridRetriever(Losing(), library.indexes.keyword, main, lambda: other)
    found = retriever.find("冷水有多深？", top_k=PAPERS)
    assert len(found) == PAPERS - 1
    assert gone not in {one.paper.paper_id for one in found}
