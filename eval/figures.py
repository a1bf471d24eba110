"""The figures of a run: each measure with its interval, how many could be scored, and by kind of question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from eval import measures
from eval.measures import Part, Seen
from eval.stats import RESAMPLES, Floats, Interval, Ratio, cluster_bootstrap, macro, micro, percentile_interval, wilson

Average = Literal["binary", "macro", "micro"]


@dataclass(frozen=True, slots=True)
class Measure:
    """`average`: one yes or no a question (Wilson interval), the mean over questions, or over all claims alike (both with
    questions resampled). `better` is the direction."""

    name: str
    of: Callable[[Seen], Part]
    average: Average
    unit: str = "questions"
    better: Literal["high", "low"] = "high"

    @property
    def about(self) -> str:
        """Formula and source."""
        of = self.of.func if isinstance(self.of, partial) else self.of
        return " ".join((of.__doc__ or "").split())


MEASURES = (
    Measure("litqa_accuracy", measures.litqa_accuracy, "binary"),
    Measure("litqa_precision", measures.litqa_precision, "binary"),
    Measure("points_covered", measures.points_covered, "macro", "points"),
    Measure("must_not_violations", measures.must_not_violations, "micro", "statements", "low"),
    Measure("gold_first", measures.gold_first, "binary"),
    Measure("gold_in_top_5", partial(measures.gold_in_top, k=5), "macro"),
    Measure("gold_in_top_8", partial(measures.gold_in_top, k=8), "macro"),
    Measure("first_citation_gold", measures.first_citation_gold, "binary"),
    Measure("nDCG@10", measures.NDCG_10, "macro"),
    Measure("R@5", measures.RECALL_5, "macro"),
    Measure("R@10", measures.RECALL_10, "macro"),
    Measure("RR@10", measures.RR_10, "macro"),
    Measure("marker_validity", measures.marker_validity, "micro", "markers"),
    Measure("quotes_verbatim", measures.quotes_verbatim, "micro", "quotes"),
    Measure("uncited_claim_rate", measures.uncited_claim_rate, "micro", "claims", "low"),
    Measure("abstention_precision", measures.abstention_precision, "binary"),
    Measure("abstention_recall", measures.abstention_recall, "binary"),
    Measure("over_refusal", measures.over_refusal, "binary", better="low"),
    Measure("faithfulness", measures.faithfulness, "macro", "claims"),
    Measure("faithfulness_micro", measures.faithfulness, "micro", "claims"),
    Measure("contradiction_rate", measures.contradiction_rate, "micro", "claims", "low"),
    Measure("unborne_rate", measures.unborne_rate, "micro", "claims", "low"),
    Measure("citation_recall", measures.citation_recall, "macro", "claims"),
    Measure("citation_precision", measures.citation_precision, "macro", "citations"),
    Measure("misattribution_rate", measures.misattribution_rate, "micro", "claims", "low"),
    Measure("error_rate", measures.error_rate, "binary", better="low"),
    Measure("llm_failure_rate", measures.llm_failure_rate, "binary", better="low"),
)

CIRCULAR = frozenset(
    {
        *("faithfulness", "faithfulness_micro", "unborne_rate", "citation_recall", "citation_precision", "citation_f1"),
        "misattribution_rate",
    }
)
"""What the local judge says of extractive answers: it is the engine's own verifier, on sentences copied from the papers."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A measure's value, None where it is undefined; `scored` of `asked` `unit`s could be told."""

    name: str
    value: float | None
    interval: Interval | None
    scored: int
    asked: int
    unit: str
    better: Literal["high", "low"]
    about: str
    by_kind: dict[str, tuple[float | None, int]]


def figures_of(seen: Sequence[Seen]) -> dict[str, Figure]:
    """Every measure, the harmonic means, and latency and cost."""
    found = {measure.name: figure(measure, seen) for measure in MEASURES}
    by_name = {measure.name: measure for measure in MEASURES}
    for name, pair, about in (
        ("citation_f1", ("citation_precision", "citation_recall"), "ALCE"),
        ("abstention_f1", ("abstention_precision", "abstention_recall"), "van Rijsbergen, 1979"),
    ):
        found[name] = harmonic(name, [by_name[one] for one in pair], seen, about)
    return {**found, **costs(seen)}


def figure(measure: Measure, seen: Sequence[Seen]) -> Figure:
    """One measure over some questions."""
    parts = [measure.of(one) for one in seen]
    by_kind: dict[str, list[Part]] = {}
    for one, part in zip(seen, parts, strict=True):
        if part.count:
            by_kind.setdefault(one.question.sort, []).append(part)
    return Figure(
        measure.name,
        value_of(measure.average, parts),
        interval_of(measure.average, parts),
        sum(part.scored for part in parts),
        sum(part.asked for part in parts),
        measure.unit,
        measure.better,
        measure.about,
        {kind: (value_of(measure.average, of), len(of)) for kind, of in sorted(by_kind.items())},
    )


def ratios(parts: Iterable[Part]) -> list[Ratio]:
    """The parts that add something."""
    return [Ratio(part.total, part.count) for part in parts if part.count]


def value_of(average: Average, parts: Sequence[Part]) -> float | None:
    """None where nothing could be scored."""
    if not any(part.scored for part in parts):
        return None
    return (micro if average == "micro" else macro)(ratios(parts))


def interval_of(average: Average, parts: Sequence[Part]) -> Interval | None:
    """None where the value is undefined or rests on fewer than two questions (one will do for a yes or no)."""
    if value_of(average, parts) is None:
        return None
    kept = ratios(parts)
    if average == "binary":
        return wilson(round(sum(one.total for one in kept)), len(kept))
    return cluster_bootstrap(kept, micro if average == "micro" else macro)


def harmonic(name: str, pair: Sequence[Measure], seen: Sequence[Seen], source: str) -> Figure:
    """2·P·R / (P + R) of two measures' values; its interval by resampling questions for both at once."""
    rows = [[measure.of(one) for one in seen] for measure in pair]
    values = [value_of(measure.average, parts) for measure, parts in zip(pair, rows, strict=True)]
    asked = max(sum(part.asked for part in parts) for parts in rows)
    scored = min(sum(part.scored for part in parts) for parts in rows)
    about = f"Harmonic mean of {pair[0].name} and {pair[1].name} ({source})."
    defined = None not in values
    value = f1(*(np.array([one or 0.0]) for one in values))[0] if defined else None
    interval = resampled_f1(rows) if defined and len(seen) > 1 else None
    if interval and interval.low == interval.high:  # no doubt where both are 0 or 1 in every draw: their own intervals know more
        interval = f1_of_ends([interval_of(measure.average, parts) for measure, parts in zip(pair, rows, strict=True)])
    return Figure(name, None if value is None else float(value), interval, scored, asked, pair[1].unit, "high", about, {})


def f1(precision: Floats, recall: Floats) -> Floats:
    """Elementwise; 0 where both are 0."""
    return quotient(2 * precision * recall, precision + recall)


def f1_of_ends(intervals: Sequence[Interval | None]) -> Interval | None:
    """From both intervals' low ends to their high ends."""
    if None in intervals:
        return None
    ends = [[getattr(one, end) for one in intervals] for end in ("low", "high")]
    low, high = (float(f1(np.array([precision]), np.array([recall]))[0]) for precision, recall in ends)
    return Interval(low, high)


def quotient(total: Floats, count: Floats) -> Floats:
    """Elementwise; 0 where nothing was counted."""
    value: Floats = np.divide(total, count, out=np.zeros(count.shape), where=count > 0)
    return value


def resampled_f1(rows: Sequence[Sequence[Part]]) -> Interval:
    """Percentile interval; a draw in which a side has nothing counts 0 for it."""
    draws = np.random.default_rng(0).integers(len(rows[0]), size=(RESAMPLES, len(rows[0])))
    sides = []
    for parts in rows:
        has = np.array([float(part.count > 0) for part in parts])
        value = np.array([part.total / part.count if part.count else 0.0 for part in parts])
        sides.append(quotient(value[draws].sum(axis=1), has[draws].sum(axis=1)))
    return percentile_interval(f1(*sides))


def costs(seen: Sequence[Seen]) -> dict[str, Figure]:
    """Latency of answers that were made in this run, and tokens of all."""
    answers = [one.record for one in seen if one.record and one.record.answer]
    times = [float(one.answer.timings_ms.get("total", 0)) for one in answers if one.answer and not one.cached]
    asked = sum(one.record is not None for one in seen)
    tokens = [Ratio(one.answer.usage.tokens, 1) for one in answers if one.answer]
    about = "milliseconds from question to answer inside the engine, answers from the cache left out"
    found = {
        f"latency_p{rank}_ms": Figure(
            f"latency_p{rank}_ms",
            float(np.percentile(times, rank)) if times else None,
            quantile_interval(times, rank / 100),
            len(times),
            asked,
            "questions",
            "low",
            f"{rank}th percentile of {about}.",
            {},
        )
        for rank in (50, 95)
    }
    per_question = Figure(
        "tokens_per_question",
        micro(tokens),
        cluster_bootstrap(tokens) if micro(tokens) else None,
        len(tokens),
        asked,
        "questions",
        "low",
        "Prompt and completion tokens an answer took, as its LLM's server counted them.",
        {},
    )
    return {**found, per_question.name: per_question}


def quantile_interval(values: Sequence[float], quantile: float) -> Interval | None:
    """Percentile interval of a quantile, questions resampled."""
    if len(values) < 2:
        return None
    numbers = np.asarray(values)
    drawn = numbers[np.random.default_rng(0).integers(len(numbers), size=(RESAMPLES, len(numbers)))]
    return percentile_interval(np.quantile(drawn, quantile, axis=1))
