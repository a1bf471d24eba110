"""What Prometheus reads at `/metrics`. Names and labels are a contract; labels never hold what a person typed."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from rag.types import Answer

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""Set by `footnote serve --workers`: the folder in which the workers' figures meet."""


@dataclass
class Metrics:
    """The figures of one application, in a registry of their own."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"footnote_{name}", text, labels, registry=self.registry)

        def seconds(name: str, text: str, *labels: str) -> Histogram:
            return Histogram(f"footnote_{name}", text, labels, registry=self.registry, buckets=SECONDS)

        self._requests = seconds("http_request_seconds", "Time to the end of a response.", "method", "route", "status")
        self._stages = seconds("answer_stage_seconds", "Time an answer spent in each stage; `total` is the whole.", "stage")
        self._answers = counter("answers", "Answers given.", "status", "generator")
        self._retrieved = Histogram(
            "footnote_retrieved_papers",
            "Papers shown with an answer.",
            registry=self.registry,
            buckets=(0, 1, 2, 4, 8, 16, 32, 64),
        )
        self._invalid = counter("invalid_markers", "Markers an LLM invented, removed before anybody saw them.")
        self._support = counter("sentence_support", "Verdicts on sentences.", "support")
        self._tokens = counter("llm_tokens", "Tokens counted by the LLM's server.", "kind")
        self._upstream = counter("upstream_errors", "Failures of the LLM, the index or the catalogue.", "kind")
        self.in_flight = Gauge(
            "footnote_answers_in_flight", "Answers being made.", registry=self.registry, multiprocess_mode="livesum"
        )

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """One response, under its route's template (`/api/v1/papers/{paper_id}`)."""
        self._requests.labels(method, route, str(status)).observe(seconds)

    def answer(self, answer: Answer) -> None:
        """One finished answer."""
        self._answers.labels(answer.status, "extractive" if answer.generator == "extractive" else "llm").inc()
        self._retrieved.observe(len(answer.papers))
        self._invalid.inc(answer.invalid_markers)
        for stage, milliseconds in answer.timings_ms.items():
            self._stages.labels(stage).observe(milliseconds / 1000)
        for sentence in answer.sentences:
            self._support.labels(sentence.support).inc()
        for failure in answer.failures:
            self._upstream.labels(failure).inc()
        self.tokens(answer.usage.prompt_tokens, answer.usage.completion_tokens)

    def tokens(self, prompt: int, completion: int) -> None:
        """What one call of the LLM took."""
        self._tokens.labels("prompt").inc(prompt)
        self._tokens.labels("completion").inc(completion)

    def upstream_error(self, error: Exception) -> None:
        """A part we need failed, by the name of our error (`LLMUnavailable`)."""
        self._upstream.labels(type(error).__name__).inc()

    def text(self) -> bytes:
        """The exposition format; of all workers together where there are several."""
        if SHARED not in os.environ:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]  # the package leaves it untyped
        return generate_latest(together)
