"""The bound on wrong answers holds on questions it has not seen, as often as it says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from eval.conformal import DELTA, Bounded, Half, above, bounded, is_even, threshold_for, upper_bound, write_threshold
from eval.measures import Seen
from rag.errors import InputError
from tests.eval.made import PAPERS, answer, judgement, question, seen


def drawn(random: np.random.Generator, count: int) -> list[tuple[float, bool]]:
    """Answers that are the more often right the surer they are: 35 % wrong at 0, none at 0.7."""
    confidence = random.random(count) * 0.7
    right = random.random(count) > 0.35 * (1 - confidence / 0.7)
    return [(float(sure), bool(one)) for sure, one in zip(confidence, right, strict=True)]


def true_risk(threshold: float) -> float:
    return 0.35 * (1 - (threshold + 0.7) / 2 / 0.7)


@pytest.mark.parametrize("level", [0.1, 0.2])
def test_the_bound_fails_at_most_as_often_as_it_says(level: float) -> None:
    random = np.random.default_rng(11)
    failed = found = 0
    for _ in range(400):
        threshold = threshold_for(drawn(random, 300), level)
        if threshold is not None:
            found += 1
            failed += true_risk(threshold) > level
    assert failed / 400 <= DELTA
    assert found > 200, "a bound that is never given would hold too"


def test_the_lowest_threshold_that_can_be_trusted_is_taken() -> None:
    answers = [(0.5, True)] * 200 + [(0.1, False)] * 100
    threshold = threshold_for(answers, 0.1)
    assert threshold == 0.125
    assert above(answers, threshold) == Half(300, 200, 0)
    assert threshold_for([(0.5, False)] * 50, 0.1) is None
    assert threshold_for([], 0.1) is None


def test_the_binomial_bound_is_the_textbook_s() -> None:
    assert upper_bound(0, 59, 0.05) == pytest.approx(0.0495, abs=1e-3)
    assert upper_bound(5, 5, 0.05) == 1.0


def run(count: int, wrong_every: int) -> list[Seen]:
    found = []
    for number in range(count):
        right = number % wrong_every > 0
        of = answer(("One", "a" if right else "b"))
        paper = PAPERS["a"]
        of = of.model_copy(update={"papers": (of.papers[0].model_copy(update={"paper": paper, "score": 0.5 if right else 0.2}),)})
        found.append(seen(question(f"q{number}", points=("x",)), of, judgement(f"q{number}", "supported", points=(True,))))
    return found


def test_half_of_the_questions_find_the_bound_and_the_others_try_it() -> None:
    found = bounded(run(400, 4), 0.1)
    assert found.threshold > 0.2 and found.fitted.wrong == found.tested.wrong == 0 and found.holds
    assert 150 < found.fitted.answered < 250 and found.fitted.answered + found.tested.answered == 400
    assert sum(is_even(f"q{number}") for number in range(400)) == found.fitted.answered


def test_a_bound_that_cannot_be_given_says_what_can() -> None:
    with pytest.raises(InputError, match=r"surest of these \d+ answers give is \d+%"):
        bounded(run(30, 2), 0.01)
    with pytest.raises(InputError, match="between 0 and 1"):
        bounded([], 5)


def test_the_threshold_is_written_for_the_engine_and_never_lowered(tmp_path: Path) -> None:
    file = tmp_path / "abstention.json"
    for before, after in ((0.1, 0.25), (0.3, 0.3)):
        file.write_text(json.dumps({"hopeless": before, "relevant": 1}), encoding="utf8")
        write_threshold(Bounded(0.2, 0.25, Half(10, 8, 1), Half(9, 7, 1), True), file, tmp_path / "out.json")
        stored = json.loads((tmp_path / "out.json").read_text(encoding="utf8"))
        assert stored["hopeless"] == after and stored["relevant"] == 1
        assert stored["figures"]["wrong_at_most"]["tested"] == "1 of 7 wrong"
    file.write_text("[]", encoding="utf8")
    with pytest.raises(InputError, match="no abstention thresholds"):
        write_threshold(Bounded(0.2, 0.25, Half(10, 8, 1), Half(9, 7, 1), True), file, tmp_path / "out.json")
