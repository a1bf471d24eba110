"""Curves, corrected estimates and worst answers of a run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from eval.figures import figures_of
from eval.measures import Seen
from eval.plots import bars, intervals
from eval.plots import reliability as reliability_plot
from eval.plots import risk_coverage as risk_plot
from eval.summary import LabelRow, badness, corrected, reliability, risk_coverage, summary_of
from tests.eval.made import REFUSED, answer, judgement, question, run_of, seen


def given(id_: str, sure: float, right: bool) -> Seen:
    """An answer of this confidence."""
    of = answer(("One", "a" if right else "b"))
    shown = (of.papers[0].model_copy(update={"score": sure}), *of.papers[1:])
    return seen(
        question(id_, points=("x",)), of.model_copy(update={"papers": shown}), judgement(id_, "supported", points=(right,))
    )


def test_risk_falls_where_only_the_surest_answers_are_given() -> None:
    run = [
        given("q1", 0.9, True),
        given("q2", 0.8, True),
        given("q3", 0.8, False),
        given("q4", 0.1, False),
        seen(question("q5"), REFUSED),
    ]
    points = risk_coverage(run)
    assert [(one.coverage, round(one.risk, 3)) for one in points] == [(0.25, 0.0), (0.75, 0.333), (1.0, 0.5)]


def test_reliability_bins_hold_equally_many_answers_with_an_interval() -> None:
    bins = reliability([given(f"q{n}", n / 100, n >= 25) for n in range(50)])
    assert [one.answers for one in bins] == [10] * 5
    assert bins[0].correct == 0 and bins[-1].correct == 1
    assert all(one.interval and one.interval.low <= one.correct <= one.interval.high for one in bins)
    assert reliability([]) == []


def test_an_estimate_is_corrected_from_150_labels_on_and_not_before() -> None:
    random = np.random.default_rng(5)
    run, labels = [], []
    for n in range(200):
        name = f"q{n}"
        true = random.random(2) < 0.6
        words = ["supported" if fine or random.random() < 0.5 else "not_stated" for fine in true]
        run.append(seen(question(name), answer(("One", "a"), ("Two", "b")), judgement(name, *words)))
        if n < 90:
            labels += [LabelRow(id=name, claim=place, supported=bool(fine)) for place, fine in enumerate(true)]
    found = corrected(run, labels)
    assert found is not None and found.labels == 180
    assert found.raw > 0.75, "the judge is too kind"
    assert found.interval.low <= 0.6 <= found.interval.high and abs(found.estimate - 0.6) < abs(found.raw - 0.6)
    assert corrected(run, labels[:149]) is None
    assert corrected(run, []) is None


def test_labels_beside_a_run_are_found(tmp_path: Path) -> None:
    run = run_of(tmp_path, *(seen(question(f"q{n}"), answer(("One", "a")), judgement(f"q{n}", "supported")) for n in range(160)))
    rows = [{"id": f"q{n}", "claim": 0, "supported": n % 2 == 0} for n in range(160)]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
    found = summary_of(run).corrected
    assert found is not None and found.estimate == pytest.approx(0.5) and found.raw == 1.0


def test_the_worst_come_first_and_right_answers_not_at_all() -> None:
    order = [
        seen(question("q1"), None),
        seen(question("q2", ""), answer(("One", "a"))),
        seen(question("q3", "c", points=("x",)), answer(("One", "a")), judgement("q3", "not_stated", points=(False,))),
        seen(question("q4", "c", points=("x",)), answer(("One", "a")), judgement("q4", "supported", points=(False,))),
        seen(question("q5"), REFUSED),
        seen(question("q6", points=("x", "y")), answer(("One", "a")), judgement("q6", "supported", points=(True, False))),
    ]
    values = [badness(one) for one in order]
    assert (values == sorted(values, reverse=True) and len(set(values)) == len(values) - 1) or values[2] == 4.0
    assert badness(given("q7", 0.9, True)) == 0
    assert badness(seen(question("q8", ""), REFUSED)) == 0


def test_plots_name_themselves_and_hold_every_value() -> None:
    figures = figures_of([given("q1", 0.9, True), given("q2", 0.2, False)])
    drawn = intervals([figures["gold_first"], figures["must_not_violations"]])
    assert 'aria-label="Measures with their 95 % intervals"' in drawn and "undefined" in drawn and "1.000" in drawn
    assert "fact (2)" in bars(figures["gold_first"])
    assert "polyline" in risk_plot(risk_coverage([given("q1", 0.9, True)])) and "no answers" in risk_plot([])
    assert reliability_plot([]).count("<circle") == 0
