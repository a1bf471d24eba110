"""What a run comes to: figures, findings by name, curves, the judge's own quality, and the worst answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eval.figures import CIRCULAR, Figure, figures_of
from eval.measures import Seen, faithfulness, points_covered, seen_of
from eval.runs import Manifest, Row, Run, read_rows
from eval.stats import Interval, prediction_powered, wilson

ENOUGH_LABELS = 150
"""Human labels from which the estimate corrected by them is shown."""

WORST = 12
BINS = 5
"""Bins of the reliability plot, equally full: a run has a hundred answers or so."""

SWAPPED, INVENTED, SELDOM = 0.05, 0.10, 0.5
"""Shares of misattributed and of unborne claims above which, and of abstentions below which, a fault is named; the whole interval
must lie beyond."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of the system that was asked, by name, and the figure that shows it."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Point:
    """Risk–coverage: at this confidence or above, `coverage` of all answers are given, and `risk` of those are not correct."""

    confidence: float
    coverage: float
    risk: float


@dataclass(frozen=True, slots=True)
class Bin:
    """Reliability: answers of about this confidence, and the share of them that is correct."""

    confidence: float
    correct: float
    answers: int
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Corrected:
    """The share of supported claims that people would find: the judge's, corrected by its error on labelled answers."""

    raw: float
    estimate: float
    interval: Interval
    labels: int


class QualityRow(Row):
    """A line of `judge-quality.json`, as `eval.judge_quality.Quality` was written."""

    judge: str
    name: str
    labelled: int
    judged: int
    confusion: dict[str, dict[str, int]]
    by_kind: dict[str, KindRow]
    balanced_accuracy: float | None
    kappa: float | None
    auroc: float | None


class KindRow(Row):
    """Of one kind of claim."""

    judged: int
    right: float
    auroc: float | None = None


class LabelRow(Row):
    """A line of a run's `labels.jsonl`: whether a person finds a claim (by its place from 0) borne out by what it cites."""

    id: str
    claim: int
    supported: bool


@dataclass(frozen=True, slots=True)
class Summary:
    """All that a report shows."""

    run: str
    manifest: Manifest
    judge: str
    is_circular: bool
    asked: int
    questions: int
    figures: dict[str, Figure]
    findings: tuple[Finding, ...]
    risk_coverage: tuple[Point, ...]
    reliability: tuple[Bin, ...]
    quality: tuple[QualityRow, ...]
    corrected: Corrected | None
    worst: tuple[Seen, ...]

    @property
    def leading(self) -> list[Figure]:
        """The figures that a reader can rely on, best evidence first; circular ones come after all others."""
        return [one for one in self.figures.values() if not (self.is_circular and one.name in CIRCULAR)]

    @property
    def circular(self) -> list[Figure]:
        """Those that the judge's circularity makes worthless as evidence of quality."""
        return [one for one in self.figures.values() if self.is_circular and one.name in CIRCULAR]


def summary_of(run: Run) -> Summary:
    """Reads what lies beside the run too. Raises InputError."""
    seen = seen_of(run)
    figures = figures_of(seen)
    answered = [one.answer for one in seen if one.answer and one.is_answered]
    extractive = bool(answered) and any(one.generator == "extractive" for one in answered)
    return Summary(
        run=run.name,
        manifest=run.manifest,
        judge=run.judge,
        is_circular=extractive and run.judge.startswith("local"),
        asked=sum(one.record is not None for one in seen),
        questions=len(seen),
        figures=figures,
        findings=tuple(findings(figures)),
        risk_coverage=tuple(risk_coverage(seen)),
        reliability=tuple(reliability(seen)),
        quality=read_quality(run.folder / "judge-quality.json"),
        corrected=corrected(seen, list(read_rows(run.folder / "labels.jsonl", LabelRow))),
        worst=tuple(sorted((one for one in seen if badness(one) > 0), key=badness, reverse=True)[:WORST]),
    )


def read_quality(file: Path) -> tuple[QualityRow, ...]:
    """Nothing where the run has no judge."""
    try:
        return tuple(QualityRow.model_validate(row) for row in json.loads(file.read_text(encoding="utf8")))
    except FileNotFoundError:
        return ()


def findings(figures: dict[str, Figure]) -> list[Finding]:
    """Faults that the figures show beyond chance."""
    found = []
    if lies_above(figures["misattribution_rate"], SWAPPED):
        found.append(Finding("citations point to the wrong papers", said(figures["misattribution_rate"])))
    if lies_above(figures["unborne_rate"], INVENTED):
        found.append(Finding("claims that no paper shown bears out", said(figures["unborne_rate"])))
    if lies_above(figures["uncited_claim_rate"], INVENTED):
        found.append(Finding("claims without a citation", said(figures["uncited_claim_rate"])))
    abstaining = figures["abstention_recall"]
    if abstaining.interval and abstaining.interval.high < SELDOM:
        found.append(Finding("unanswerable questions are answered", said(abstaining)))
    if lies_above(figures["over_refusal"], SELDOM):
        found.append(Finding("answerable questions are refused", said(figures["over_refusal"])))
    for name in ("marker_validity", "quotes_verbatim"):
        if (value := figures[name].value) is not None and value < 1:
            found.append(Finding(f"{name.replace('_', ' ')} is not whole", said(figures[name])))
    if figures["error_rate"].value:
        found.append(Finding("questions ended in errors", said(figures["error_rate"])))
    if figures["llm_failure_rate"].value:
        found.append(Finding("an LLM failed and the papers' own sentences stood in", said(figures["llm_failure_rate"])))
    return found


def lies_above(figure: Figure, limit: float) -> bool:
    """Whether the whole interval does."""
    return figure.interval is not None and figure.interval.low > limit


def said(figure: Figure) -> str:
    """`misattribution_rate 0.412 [0.351, 0.470], 210/210 claims`."""
    value = "undefined" if figure.value is None else f"{figure.value:.3f}"
    interval = f" [{figure.interval.low:.3f}, {figure.interval.high:.3f}]" if figure.interval else ""
    return f"{figure.name} {value}{interval}, {figure.scored}/{figure.asked} {figure.unit}"


def scored_answers(seen: Sequence[Seen]) -> list[tuple[float, bool]]:
    """(confidence, correct) of every answer given whose correctness is known, surest first."""
    pairs = [
        (one.confidence, one.is_correct)
        for one in seen
        if one.is_answered and not one.question.has_false_premise and one.is_correct is not None and one.confidence is not None
    ]
    return sorted(((sure, right) for sure, right in pairs if sure is not None and right is not None), reverse=True)


def risk_coverage(seen: Sequence[Seen]) -> list[Point]:
    """The curve of El-Yaniv and Wiener (2010) over answers given; answers of one confidence stand or fall together."""
    pairs = scored_answers(seen)
    points = []
    for place, (sure, _) in enumerate(pairs, start=1):
        if place == len(pairs) or pairs[place][0] < sure:
            risk = 1 - sum(right for _, right in pairs[:place]) / place
            points.append(Point(sure, place / len(pairs), risk))
    return points


def reliability(seen: Sequence[Seen]) -> list[Bin]:
    """Answers in BINS equally full bins of confidence (Zadrozny and Elkan, 2002)."""
    pairs = scored_answers(seen)[::-1]
    chunks = [[pairs[place] for place in places] for places in np.array_split(np.arange(len(pairs)), BINS) if len(places)]
    return [
        Bin(
            sum(sure for sure, _ in chunk) / len(chunk),
            sum(right for _, right in chunk) / len(chunk),
            len(chunk),
            wilson(sum(right for _, right in chunk), len(chunk)),
        )
        for chunk in chunks
    ]


def corrected(seen: Sequence[Seen], labels: Sequence[LabelRow]) -> Corrected | None:
    """Prediction-powered inference (Angelopoulos et al., 2023) on the mean share of supported claims of a question, so that
    claims of one answer are not taken for independent. None with fewer than ENOUGH_LABELS labels."""
    by_question: dict[str, dict[int, bool]] = {}
    for label in labels:
        by_question.setdefault(label.id, {})[label.claim] = label.supported
    shares = {one.question.id: part.total / part.count for one in seen if (part := faithfulness(one)).count}
    said_of = {one.question.id: {verdict.claim: verdict.word == "supported" for _, verdict in one.verdicts} for one in seen}
    both = {
        name: {place: people for place, people in claims.items() if place in said_of.get(name, {})}
        for name, claims in by_question.items()
    }
    both = {name: claims for name, claims in both.items() if claims}
    if sum(map(len, both.values())) < ENOUGH_LABELS or len(both) < 2:
        return None
    judged = [sum(said_of[name][place] for place in claims) / len(claims) for name, claims in both.items()]
    people = [sum(claims.values()) / len(claims) for claims in both.values()]
    others = [share for name, share in shares.items() if name not in both] or judged
    estimate, interval = prediction_powered(others, judged, people)
    return Corrected(sum(shares.values()) / len(shares), estimate, interval, sum(map(len, both.values())))


def badness(seen: Seen) -> float:
    """How much there is to mend in an answer: a wrong one is worse than an incomplete one, and that worse than none."""
    if seen.record is None or seen.question.has_false_premise:
        return 0.0
    if seen.answer is None:
        return 5.0
    if not seen.question.is_answerable:
        return 4.0 if seen.is_answered else 0.0
    if not seen.is_answered:
        return 2.0
    points, borne = points_covered(seen), faithfulness(seen)
    missing = 1 - points.total / points.count if points.count else 0.0
    unborne = 1 - borne.total / borne.count if borne.count else 0.0
    wrong = not {citation.paper.pid for citation in seen.answer.citations} & seen.right
    return 2.0 * wrong + missing + unborne + 2.0 * (seen.judgement is not None and True in seen.judgement.must_not)
