"""Intervals cover and tests err at the rates they claim, by simulation with fixed seeds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats as scipy_stats  # type: ignore[import-untyped]  # ships no types

from eval.stats import (
    ConfidenceSequence,
    Interval,
    Ratio,
    balanced_accuracy,
    cluster_bootstrap,
    cohen_kappa,
    holm,
    macro,
    mcnemar,
    micro,
    paired_bootstrap,
    prediction_powered,
    wilson,
)

ROUNDS = 400


def clustered(random: np.random.Generator, questions: int, share: float) -> list[Ratio]:
    """Answers of 1 to 8 claims whose truth hangs together: most answers are all right or all wrong. Micro mean is `share`."""
    found = []
    for _ in range(questions):
        claims = int(random.integers(1, 9))
        own = random.beta(share * 0.5, (1 - share) * 0.5)
        found.append(Ratio(float(random.binomial(claims, own)), claims))
    return found


def test_the_cluster_bootstrap_covers_where_claims_hang_together() -> None:
    random = np.random.default_rng(1)
    hits = naive = 0
    for seed in range(ROUNDS):
        ratios = clustered(random, 80, 0.7)
        interval = cluster_bootstrap(ratios, seed=seed, resamples=400)
        assert interval is not None
        hits += interval.low <= 0.7 <= interval.high
        claims = int(sum(one.count for one in ratios))
        apart = wilson(int(sum(one.total for one in ratios)), claims)
        assert apart is not None
        naive += apart.low <= 0.7 <= apart.high
    assert 0.91 <= hits / ROUNDS <= 0.98
    assert naive / ROUNDS < 0.80, "claims taken for independent must be seen to cover too seldom"


def test_macro_weighs_questions_and_micro_claims_alike() -> None:
    ratios = [Ratio(1, 1), Ratio(0, 3), Ratio(0, 0)]
    assert micro(ratios) == 0.25
    assert macro(ratios) == 0.5
    assert micro([]) is None and macro([Ratio(0, 0)]) is None
    assert cluster_bootstrap([Ratio(1, 1)]) is None


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (5, 10), (10, 10), (139, 154)])
def test_wilson_is_scipy_s(successes: int, trials: int) -> None:
    theirs = scipy_stats.binomtest(successes, trials).proportion_ci(method="wilson")
    assert wilson(successes, trials) == Interval(pytest.approx(theirs.low, abs=1e-9), pytest.approx(theirs.high, abs=1e-9))  # type: ignore[arg-type]  # approx
    assert wilson(0, 0) is None


def test_a_system_against_itself_differs_in_at_most_five_per_cent_of_comparisons() -> None:
    random = np.random.default_rng(2)
    flagged = covered = 0
    for seed in range(1000):
        ability = random.random(60)
        a, b = ((random.random(60) < ability).astype(float) for _ in range(2))
        found = paired_bootstrap(list(a), list(b), seed=seed, resamples=300)
        flagged += found.p_value < 0.05
        covered += found.interval.low <= 0 <= found.interval.high
    assert flagged <= 50
    assert covered >= 920


def test_a_real_difference_is_found() -> None:
    random = np.random.default_rng(3)
    a = (random.random(200) < 0.6).astype(float)
    b = np.maximum(a, (random.random(200) < 0.4).astype(float))
    found = paired_bootstrap(list(a), list(b))
    assert found.p_value < 0.01 and found.interval.low > 0
    assert mcnemar([bool(x) for x in a], [bool(x) for x in b]) < 0.01


def test_mcnemar_is_exact() -> None:
    assert mcnemar([True] * 6, [False] * 6) == pytest.approx(2 * 0.5**6)
    assert mcnemar([True, False], [True, False]) == 1.0


def test_holm_is_the_textbook_s() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_the_confidence_sequence_holds_at_every_look(share: float) -> None:
    random = np.random.default_rng(4)
    wrong = peeking_wrong = 0
    for _ in range(ROUNDS):
        values = (random.random(400) < share).astype(float)
        sequence = ConfidenceSequence()
        outside = False
        for value in values:
            interval = sequence.add(float(value))
            outside = outside or not interval.low <= share <= interval.high
        wrong += outside
        looks = [wilson(int(values[:n].sum()), n) for n in range(20, 401, 20)]
        peeking_wrong += any(look is not None and not look.low <= share <= look.high for look in looks)
    assert wrong / ROUNDS <= 0.05
    assert peeking_wrong / ROUNDS > 0.10, "looking again and again at fixed-n intervals must be seen to err"


def test_the_confidence_sequence_narrows_and_never_widens() -> None:
    random = np.random.default_rng(5)
    sequence = ConfidenceSequence()
    widths = [(found := sequence.add(float(x))).high - found.low for x in random.random(2000) * 0.2 + 0.4]
    assert all(later <= earlier for earlier, later in pairwise(widths))
    assert widths[-1] < 0.05
    with pytest.raises(ValueError, match="not in"):
        sequence.add(1.5)


def test_prediction_powered_inference_mends_a_biased_judge() -> None:
    random = np.random.default_rng(6)
    covered = raw_right = 0
    for _ in range(ROUNDS):
        truth = random.random(1200) < 0.7
        judged = np.where(truth, random.random(1200) < 0.95, random.random(1200) < 0.4).astype(float)
        estimate, interval = prediction_powered(list(judged[200:]), list(judged[:200]), [float(x) for x in truth[:200]])
        covered += interval.low <= 0.7 <= interval.high
        raw_right += abs(judged.mean() - 0.7) < abs(estimate - 0.7)
    assert 0.92 <= covered / ROUNDS <= 0.98
    assert raw_right / ROUNDS < 0.3


def test_agreement_measures() -> None:
    assert cohen_kappa([True, True, False, False], [True, False, False, False]) == pytest.approx(0.5)
    assert cohen_kappa([True], [True]) is None
    assert balanced_accuracy([True, True, False], [True, False, False]) == 0.75
    assert balanced_accuracy([True], [True]) is None
