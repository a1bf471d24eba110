"""How fast papers are found among 50,000: `python -m eval.bench_retrieval PAPERS.jsonl.gz [--papers N] [--real]`.

The texts are real; so are the vectors of the first 3,000 papers, and those of the rest are seeded noise around them (`--real`
embeds all, which takes an hour). Everything else is real: catalogue, Chroma, Tantivy, `footnote ask` as a process of its own.
Questions are the papers' own one-line summaries. Run it on an idle machine: absolute times are this machine's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from eval.datasets import rows
from rag.build import Library, open_library
from rag.ingest import Source
from rag.protocols import Embedder
from rag.settings import Settings
from rag.types import Filters, RawPaper, Rejected, Vectors

REAL = 3_000
"""Papers with real vectors."""

QUESTIONS = 300
NOISE = 0.05
"""Standard deviation of the noise in each of the vector's dimensions, whose own is about 0.05: neighbours, not copies."""


class NoisyEmbedder:
    """Real vectors for questions and for the first texts; seeded noise around those for the rest."""

    def __init__(self, real: Embedder, texts: int) -> None:
        self.model = real.model
        self.dimension = real.dimension
        self._real = real
        self._left = texts
        self._known: list[Vectors] = []
        self._random = np.random.default_rng(0)

    def embed_question(self, question: str) -> Vectors:
        """Real."""
        return self._real.embed_question(question)

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Real until `texts` are used up."""
        if self._left > 0:
            self._left -= len(texts)
            vectors = self._real.embed_texts(texts)
            self._known.append(vectors)
            return vectors
        known = np.concatenate(self._known)
        self._known = [known]
        near = known[self._random.integers(len(known), size=len(texts))]
        moved = near + self._random.normal(0, NOISE, near.shape)
        noisy: Vectors = (moved / np.linalg.norm(moved, axis=1, keepdims=True)).astype(np.float32)
        return noisy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="JSON Lines with title, abstract, year, venue, tldr")
    parser.add_argument("--papers", type=int, default=50_000)
    parser.add_argument("--real", action="store_true", help="embed every paper")
    parser.add_argument("--data", type=Path, help="keep the library there, and use the one that is there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.data or Path(temporary)
        with open_library(Settings(data=folder)) as opened:
            texts = 10**12 if given.real else REAL * 8
            library = replace(opened, reads_other_scripts=False, embedder=NoisyEmbedder(opened.embedder, texts))
            figures = measure(library, given.corpus, given.papers)
        figures["cold_ask_seconds"] = cold_starts(folder)
    figures["machine"] = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(json.dumps(figures, indent=1))


def measure(library: Library, corpus: Path, papers: int) -> dict[str, object]:
    started = time.perf_counter()
    report = library.ingest([Source(str(corpus), lambda: records(corpus, papers))])
    ingested = time.perf_counter() - started
    questions = [str(row["tldr"]) for row in rows(corpus, "abstract") if row.get("tldr")][:QUESTIONS]
    find = library.retriever.find
    for question in questions[:20]:
        find(question, top_k=8)
    filters = {
        "unfiltered": Filters(),
        "filtered, half of the papers": Filters(year_min=2022),
        "filtered, one venue": Filters(venues=(next(iter(library.catalogue.filter_names().venues)),)),
    }
    return {
        "papers": library.catalogue.count(),
        "ingest_seconds": round(ingested, 1),
        "ingest_stages": report.seconds,
        "milliseconds": {
            name: percentiles(lambda question, chosen=chosen: find(question, top_k=8, filters=chosen), questions)  # type: ignore[misc]  # bound early
            for name, chosen in filters.items()
        },
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def records(corpus: Path, most: int) -> Iterator[RawPaper | Rejected]:
    """The first `most` papers of the corpus."""
    for number, row in enumerate(rows(corpus, "abstract"), start=1):
        if number > most:
            return
        yield RawPaper(
            abstract=str(row["abstract"]).strip(),
            where=f"record {number}",
            title=row.get("title"),
            authors=tuple(row.get("authors") or ()),
            venue=row.get("venue"),
            year=row.get("year"),
            external_ids=(f"id:{row['id']}",),
        )


def percentiles(ask: Callable[[str], object], questions: Sequence[str]) -> dict[str, float]:
    """p50 and p95 in milliseconds, one question after the other, embedding and texts included."""
    times = []
    for question in questions:
        started = time.perf_counter()
        ask(question)
        times.append((time.perf_counter() - started) * 1000)
    return {"p50": round(float(np.percentile(times, 50)), 1), "p95": round(float(np.percentile(times, 95)), 1)}


def cold_starts(folder: Path, runs: int = 3) -> list[float]:
    """Wall seconds of `footnote ask` as a fresh process."""
    command = [str(Path(sys.executable).with_name("footnote")), "ask", "What helps offline reinforcement learning?"]
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        subprocess.run(command, env={**os.environ, "FOOTNOTE_DATA": str(folder)}, check=True, capture_output=True)
        times.append(round(time.perf_counter() - started, 2))
    return times


if __name__ == "__main__":
    main()
