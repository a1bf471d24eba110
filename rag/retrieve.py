"""Step 2: which papers speak to a question. Found densely and by keyword, scored exactly by both, fused per paper."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from rag.errors import Unavailable
from rag.protocols import Embedder, KeywordIndex
from rag.scripts import is_latin
from rag.types import Filters, IndexedPaper, Retrieved, ScoredPaper, Vectors

TOP_K = 10
"""Papers given to a LlamaIndex program."""

CANDIDATES = 60
"""Papers taken from each side before both exact scores are computed for all of them."""

WHOLE, BEST, SECOND = 0.5, 0.375, 0.125
"""What the whole abstract, its best and its second-best sentence count for in a paper's dense score. With sentences, specific
dev questions had gold in top 5 in 100 %, by the whole alone in 86 %; nearby weights cannot be told apart on 100 questions."""

KEYWORD_SHARE = 0.45
"""What keywords count for in the fused score; .4 to .55 are alike on the dev questions and collections."""

BEST_BM25 = 2.2
"""BM25 of a term in an ideal paper over its inverse document frequency: k1 + 1."""


class DenseSearch(Protocol):
    """The nearest papers by whole abstract, exact within a set of papers."""

    def search(self, vector: Vectors, k: int, within: Collection[str] | None = None) -> list[tuple[str, float]]:
        """The `k` nearest papers as (paper_id, cosine), best first."""


class PaperSource(Protocol):
    """What retrieval reads of the catalogue."""

    def indexed(self, paper_ids: Sequence[str], model: str) -> list[IndexedPaper]:
        """In the order asked, `vectors` filled for `model`."""

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

    def find(self, question: str, *, top_k: int, filters: Filters = Filters(), exclude: Sequence[str] = ()) -> list[Retrieved]:
        """Best first, at most `top_k`; only papers that pass `filters`, none of `exclude`."""
        within = self._papers.matching(filters) if filters else None
        if within == []:
            return []
        space = self._space_for(question)
        vector = space.embedder.embed_question(self._keyword.correct(question))
        reach = max(CANDIDATES, top_k) + len(exclude)
        keyword = dict(self._keyword.search(question, reach, within))
        ids = dict.fromkeys([paper_id for paper_id, _ in space.index.search(vector, reach, within)])
        candidates = [paper_id for paper_id in (*ids, *(k for k in keyword if k not in ids)) if paper_id not in exclude]
        keyword.update(self._keyword.scores(question, [c for c in candidates if c not in keyword]))
        ideal = BEST_BM25 * sum(self._keyword.weights(question).values())
        papers = self._papers.indexed(candidates, space.embedder.model)
        found = best_first([self._scored(paper, vector, space, keyword, ideal) for paper in papers])[:top_k]
        return found if space is self._space else best_first(self._by_sentence(found, vector, space))

    def _by_sentence(self, found: Sequence[Retrieved], vector: Vectors, space: Space) -> list[Retrieved]:
        """In a space where only whole abstracts have vectors: the best papers scored by their sentences too. They carry the
        vectors of the main space, as all papers retrieved do."""
        papers = self._papers.indexed([one.paper.paper_id for one in found], self._space.embedder.model)
        wholes = self._papers.indexed([one.paper.paper_id for one in found], space.embedder.model)
        scored = []
        for paper, whole, one in zip(papers, wholes, found, strict=True):
            assert whole.vectors is not None
            rows = np.concatenate([whole.vectors[:1], space.embedder.embed_texts([s.text for s in paper.sentences])])
            scored.append(fused(paper, space.rescaled(rows @ vector), one.keyword))
        return scored

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [as_node(found) for found in self.find(query_bundle.query_str, top_k=TOP_K)]

    def _space_for(self, question: str) -> Space:
        return self._space if is_latin(question) else self._other_scripts() or self._space

    def _scored(
        self, found: IndexedPaper, vector: Vectors, space: Space, keyword: Mapping[str, float], ideal: float
    ) -> Retrieved:
        if found.vectors is None:
            raise Unavailable(f"Papers have no vectors of {space.embedder.model} yet: run `footnote reindex`.")
        words = min(1.0, keyword.get(found.paper.paper_id, 0.0) / ideal) if ideal else 0.0
        return fused(found, space.rescaled(found.vectors @ vector), words)


def best_first(found: Sequence[Retrieved]) -> list[Retrieved]:
    """By score; equal scores by id, so that the order is always the same."""
    return sorted(found, key=lambda one: (-one.score, one.paper.paper_id))


def fused(found: IndexedPaper, cosines: Vectors, words: float) -> Retrieved:
    """`cosines` of the whole and of each sentence to the question, and the keyword score, as one score; all in [0, 1]."""
    dense = float(cosines[0])
    if len(cosines) > 1:
        ranked = np.sort(cosines[1:])
        dense = WHOLE * dense + BEST * float(ranked[-1]) + SECOND * float(ranked[-2:][0])
    score = (1 - KEYWORD_SHARE) * dense + KEYWORD_SHARE * words
    return Retrieved(found, score=score, dense=dense, keyword=words, sentence_scores=tuple(map(float, cosines[1:])))


def as_node(found: Retrieved | ScoredPaper) -> NodeWithScore:
    """A paper as LlamaIndex passes them round: its abstract as text, its other fields as metadata that no prompt sees."""
    paper = found.paper
    fields = {"title": paper.title, "authors": list(paper.authors), "year": paper.year, "venue": paper.venue, "url": paper.url}
    node = TextNode(id_=paper.paper_id, text=paper.abstract, metadata=fields, excluded_llm_metadata_keys=list(fields))
    return NodeWithScore(node=node, score=found.score)
