"""How well the retriever ranks: TREC measures of a retrieval set, by ir-measures."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import ir_measures
from ir_measures import RR, Qrel, R, ScoredDoc, nDCG

from eval.datasets import RetrievalSet, documents
from rag.build import Library, open_library
from rag.errors import NotFound
from rag.ingest import Source, Step
from rag.settings import Settings

MEASURES = (nDCG @ 10, R @ 5, R @ 10, R @ 100, RR @ 10)
"""nDCG with linear gain and log2 discount (trec_eval's ndcg_cut), recall and reciprocal rank (relevant from grade 1)."""

DEPTH = 100
"""Papers of a ranking."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """What came of one query: its best documents with their scores, and the wall time in seconds."""

    query_id: str
    scores: dict[str, float]
    seconds: float


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """Measures over all queries that have qrels, and each measure by query."""

    measures: dict[str, float]
    by_query: dict[str, dict[str, float]]
    queries: int
    documents: int
    seconds: dict[str, float]


def evaluate(
    dataset: RetrievalSet,
    data: Path,
    on_step: Callable[[Step], None] = lambda step: None,
    on_query: Callable[[], None] = lambda: None,
) -> RetrievalResult:
    """Ingests the corpus into a library of its own in `data` (what is there is not embedded again) and asks every query."""
    started = time.perf_counter()
    with open_library(Settings(data=data)) as opened:
        library = replace(opened, reads_other_scripts=False)  # the sets are English: its vectors would be made in vain
        library.ingest([Source(str(dataset.corpus), lambda: documents(dataset.corpus), True)], on_step)
        ingested = time.perf_counter()
        owners = doc_ids(library, dataset)
        rankings = []
        for query in dataset.queries:
            rankings.append(rank(library, owners, query.query_id, query.text))
            on_query()
        asked = time.perf_counter()
    seconds = {"ingest": round(ingested - started, 3), "queries": round(asked - ingested, 3)}
    return measured(dataset, rankings, len(owners), seconds)


def doc_ids(library: Library, dataset: RetrievalSet) -> dict[str, list[str]]:
    """Which documents each paper is: more than one where the corpus holds a work twice."""
    owners: dict[str, list[str]] = {}
    for document in documents(dataset.corpus):
        for name in getattr(document, "external_ids", ()):
            try:
                owners.setdefault(library.catalogue.resolve(name), []).append(name.removeprefix("id:"))
            except NotFound:
                continue
    return owners


def rank(library: Library, owners: dict[str, list[str]], query_id: str, text: str) -> Ranking:
    """The best documents for one query."""
    started = time.perf_counter()
    found = library.retriever.find(text, top_k=DEPTH)
    seconds = time.perf_counter() - started
    return Ranking(query_id, {doc: one.score for one in found for doc in owners.get(one.paper.paper_id, ())}, seconds)


def measured(dataset: RetrievalSet, rankings: list[Ranking], papers: int, seconds: dict[str, float]) -> RetrievalResult:
    """Measures of finished rankings. A query without qrels is left out, one without a ranking counts 0."""
    qrels = [Qrel(query, doc, grade) for query, grades in dataset.qrels.items() for doc, grade in grades.items()]
    run = [ScoredDoc(one.query_id, doc, score) for one in rankings for doc, score in one.scores.items()]
    overall = ir_measures.calc_aggregate(MEASURES, qrels, run)
    by_query: dict[str, dict[str, float]] = {}
    for value in ir_measures.iter_calc(MEASURES, qrels, run):
        by_query.setdefault(value.query_id, {})[str(value.measure)] = value.value
    measures = {str(measure): round(float(overall[measure]), 4) for measure in MEASURES}
    return RetrievalResult(measures, by_query, len(dataset.queries), papers, seconds)
