"""Step 2: which papers speak to a question. Found densely and by keyword, scored exactly by both, fused per paper."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Protocol

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from rag.errors import Unavailable
from rag.protocols import Embedder, KeywordIndex
from rag.scripts import is_latin
from rag.types import Filters, IndexedPaper, Retrieved, ScoredPaper, VectorBlock, Vectors

TOP_K = 10
"""Papers given to a LlamaIndex program."""

CANDIDATES = 50
"""Papers taken from each side before both exact scores are computed for all of them. With 200, one in 29 of the best 8 of 50,000
is another one, and the best is the same for 300 of 300 questions."""

WHOLE, BEST, SECOND = 0.5, 0.375, 0.125
"""What the whole abstract, its best and its second-best sentence count for in a paper's dense score. With sentences, specific
dev questions had gold in top 5 in 100 %, by the whole alone in 86 %; nearby weights cannot be told apart on 100 questions."""

KEYWORD_SHARE = 0.45
"""What keywords count for in the fused score; .4 to .55 are alike on the dev questions and collections."""

BEST_BM25 = 2.2
"""BM25 of a term in an ideal paper over its inverse document frequency: k1 + 1."""

SEARCHES_AT_ONCE = 8
"""Keyword searches that run while their questions are embedded."""


class DenseSearch(Protocol):
    """The nearest papers by whole abstract, exact within a set of papers."""

    def search(self, vector: Vectors, k: int, within: Collection[str] | None = None) -> list[tuple[str, float]]:
        """The `k` nearest papers as (paper_id, cosine), best first."""


class PaperSource(Protocol):
    """What retrieval reads of the catalogue."""

    def indexed(self, paper_ids: Sequence[str], model: str) -> list[IndexedPaper]:
        """In the order asked, `vectors` filled for `model`."""

    def vectors(self, paper_ids: Sequence[str], model: str) -> VectorBlock:
        """The vectors of `model` alone."""

    def matching(self, filters: Filters) -> list[str]:
        """The ids of all papers that pass."""


@dataclass(frozen=True, slots=True)
class Space:
    """A vector space papers can be searched in. Cosines below `floor` mean nothing in it (e5 gives unrelated texts .7)."""

    embedder: Embedder
    index: DenseSearch
    floor: float = 0.0

    def rescaled(self, cosines: Vectors) -> Vectors:
        """Cosines as scores in [0, 1]."""
        scores: Vectors = np.clip((cosines - self.floor) / (1 - self.floor), 0.0, 1.0).astype(np.float32)
        return scores


class HybridRetriever(BaseRetriever):
    """Finds papers for a question. Blocking; safe for many threads. A LlamaIndex retriever; `find` gives our own types.

    A paper's dense score is WHOLE · cos(question, abstract) + BEST and SECOND · the cosines of its two best sentences; its
    keyword score is BM25 over the BM25 that a paper made of the question's rarest words would get, so that a question in other
    words than the papers' is decided by its meaning and one with names by its words. Both lie in [0, 1].
    """

    def __init__(
        self, papers: PaperSource, keyword: KeywordIndex, space: Space, other_scripts: Callable[[], Space | None] = lambda: None
    ) -> None:
        """`other_scripts` gives the space for questions in another script, asked for at the first such question."""
        super().__init__()
        self._papers = papers
        self._keyword = keyword
        self._space = space
        self._other_scripts = cache(other_scripts)
        self._beside = ThreadPoolExecutor(SEARCHES_AT_ONCE, "keyword")

    def find(self, question: str, *, top_k: int, filters: Filters = Filters(), exclude: Sequence[str] = ()) -> list[Retrieved]:
        """Best first, at most `top_k`; only papers that pass `filters`, none of `exclude`."""
        within = self._papers.matching(filters) if filters else None
        if within == []:
            return []
        space = self._space_for(question)
        reach = max(CANDIDATES, top_k) + len(exclude)
        by_words = self._beside.submit(self._keyword.search, question, reach, within)
        vector = space.embedder.embed_question(self._keyword.correct(question))
        by_meaning = dict(space.index.search(vector, reach, within))
        keyword = dict(by_words.result())
        candidates = [paper_id for paper_id in by_meaning | keyword if paper_id not in exclude]
        keyword.update(self._keyword.scores(question, [c for c in candidates if c not in keyword]))
        ideal = BEST_BM25 * sum(self._keyword.weights(question).values())
        words = {paper_id: min(1.0, score / ideal) if ideal else 0.0 for paper_id, score in keyword.items()}
        best = self._ranked(candidates, vector, space, words)[:top_k]
        papers = self._papers.indexed(best, space.embedder.model)
        found = best_first([self._scored(paper, vector, space, words) for paper in papers])
        return found if space is self._space else best_first(self._by_sentence(found, vector, space))

    def _ranked(self, candidates: Sequence[str], vector: Vectors, space: Space, words: Mapping[str, float]) -> list[str]:
        """The candidates by their fused score, best first. Only vectors are read for it."""
        block = self._papers.vectors(candidates, space.embedder.model)
        cosines = space.rescaled(block.vectors @ vector).tolist() if block.paper_ids else []
        spans = zip(block.paper_ids, pairwise((*block.starts, len(cosines))), strict=True)
        scores = {paper_id: fused(cosines[start:end], words.get(paper_id, 0.0)) for paper_id, (start, end) in spans}
        unscored = [paper_id for paper_id in candidates if paper_id not in scores]
        if unscored and self._papers.indexed(unscored, space.embedder.model):
            raise Unavailable(f"Papers have no vectors of {space.embedder.model} yet: run `footnote reindex`.")
        return sorted(scores, key=lambda paper_id: (-scores[paper_id], paper_id))

    def _scored(self, found: IndexedPaper, vector: Vectors, space: Space, words: Mapping[str, float]) -> Retrieved:
        assert found.vectors is not None  # as in _ranked
        return scored(found, space.rescaled(found.vectors @ vector), words.get(found.paper.paper_id, 0.0))

    def _by_sentence(self, found: Sequence[Retrieved], vector: Vectors, space: Space) -> list[Retrieved]:
        """In a space where only whole abstracts have vectors: the best papers scored by their sentences too. They carry the
        vectors of the main space, as all papers retrieved do."""
        papers = self._papers.indexed([one.paper.paper_id for one in found], self._space.embedder.model)
        by_id = {one.paper.paper_id: one for one in found}
        rescored = []
        for paper in papers:  # those that are still there
            one = by_id[paper.paper.paper_id]
            assert one.found.vectors is not None
            rows = np.concatenate([one.found.vectors[:1], space.embedder.embed_texts([s.text for s in paper.sentences])])
            rescored.append(scored(paper, space.rescaled(rows @ vector), one.keyword))
        return rescored

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [as_node(found) for found in self.find(query_bundle.query_str, top_k=TOP_K)]

    def _space_for(self, question: str) -> Space:
        return self._space if is_latin(question) else self._other_scripts() or self._space


def best_first(found: Sequence[Retrieved]) -> list[Retrieved]:
    """By score; equal scores by id, so that the order is always the same."""
    return sorted(found, key=lambda one: (-one.score, one.paper.paper_id))


def scored(found: IndexedPaper, cosines: Vectors, words: float) -> Retrieved:
    """A paper with its scores, from the cosines of its whole and of each sentence to the question and its keyword score."""
    values = cosines.tolist()
    return Retrieved(found, fused(values, words), dense=pooled(values), keyword=words, sentence_scores=tuple(values[1:]))


def fused(cosines: Sequence[float], words: float) -> float:
    """Cosines to the question, of the whole and of each sentence, and the keyword score as one score; all in [0, 1]."""
    return (1 - KEYWORD_SHARE) * pooled(cosines) + KEYWORD_SHARE * words


def pooled(cosines: Sequence[float]) -> float:
    """The cosines of a paper's whole and of each of its sentences as its dense score."""
    whole, *sentences = cosines
    if not sentences:
        return whole
    ranked = sorted(sentences)
    return WHOLE * whole + BEST * ranked[-1] + SECOND * ranked[-2:][0]


def as_node(found: Retrieved | ScoredPaper) -> NodeWithScore:
    """A paper as LlamaIndex passes them round: its abstract as text, its other fields as metadata that no prompt sees."""
    paper = found.paper
    fields = {"title": paper.title, "authors": list(paper.authors), "year": paper.year, "venue": paper.venue, "url": paper.url}
    node = TextNode(id_=paper.paper_id, text=paper.abstract, metadata=fields, excluded_llm_metadata_keys=list(fields))
    return NodeWithScore(node=node, score=found.score)
