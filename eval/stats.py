"""Statistics of evaluation runs. The question is the unit that was sampled, so it is the unit that is resampled."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]  # ships no types

RESAMPLES = 2_000
LEVEL = 0.95

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided confidence interval at `LEVEL`."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """What one question adds to a measure: `total` of it over `count` claims (or citations, …); (0, 0) adds nothing."""

    total: float
    count: float


def micro(ratios: Sequence[Ratio]) -> float | None:
    """All claims alike: sum of totals over sum of counts; None of nothing."""
    count = sum(one.count for one in ratios)
    return sum(one.total for one in ratios) / count if count else None


def macro(ratios: Sequence[Ratio]) -> float | None:
    """All questions alike: the mean over questions that have a claim; None of nothing."""
    values = [one.total / one.count for one in ratios if one.count]
    return sum(values) / len(values) if values else None


def cluster_bootstrap(
    ratios: Sequence[Ratio],
    measure: Callable[[Sequence[Ratio]], float | None] = micro,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Interval | None:
    """Percentile interval of `micro` or `macro`, questions resampled with replacement (Field and Welsh, 2007: claims of one
    answer hang together, and an interval that takes them for independent covers too seldom). None with fewer than two. Where all
    questions have 0, or all 1, resampling would know no doubt: Wilson's interval with as many trials as questions stands in."""
    kept = [one for one in ratios if one.count]
    if len(kept) < 2:
        return None
    if (extreme := {one.total / one.count for one in kept}) in ({0.0}, {1.0}):
        return wilson(len(kept) if extreme == {1.0} else 0, len(kept))
    totals = np.array([one.total for one in kept])
    counts = np.array([one.count for one in kept])
    drawn = np.random.default_rng(seed).integers(len(kept), size=(resamples, len(kept)))
    if measure is macro:
        return percentile_interval((totals / counts)[drawn].mean(axis=1))
    return percentile_interval(totals[drawn].sum(axis=1) / counts[drawn].sum(axis=1))


def percentile_interval(values: Floats) -> Interval:
    """The middle `LEVEL` of bootstrap values."""
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))


def wilson(successes: int, trials: int) -> Interval | None:
    """Score interval of a share, one yes or no a question (Wilson, 1927); None of no trials."""
    if not trials:
        return None
    z = float(stats.norm.ppf((1 + LEVEL) / 2))
    share, shrink = successes / trials, 1 + z**2 / trials
    middle = (share + z**2 / (2 * trials)) / shrink
    half = z * math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2)) / shrink
    return Interval(middle - half if successes else 0.0, middle + half if successes < trials else 1.0)


@dataclass(frozen=True, slots=True)
class Difference:
    """B minus A over the questions both were asked: its interval and two-sided p-value."""

    value: float
    interval: Interval
    p_value: float
    questions: int


def paired_bootstrap(a: Sequence[float], b: Sequence[float], seed: int = 0, resamples: int = RESAMPLES) -> Difference:
    """Mean difference of a measure per question; interval by resampling questions, p-value by flipping the signs of the
    differences (an exact test of "no difference" under exchange of the two systems: Fisher, 1935). Raises ValueError on
    unequal or empty lengths."""
    if len(a) != len(b) or not a:
        raise ValueError("both systems must have answered the same questions")
    differences = np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64)
    random = np.random.default_rng(seed)
    drawn = differences[random.integers(len(differences), size=(resamples, len(differences)))].mean(axis=1)
    flipped = (differences * random.choice([-1.0, 1.0], size=(resamples, len(differences)))).mean(axis=1)
    seen = abs(float(differences.mean()))
    p_value = (1 + int((np.abs(flipped) >= seen - 1e-12).sum())) / (1 + resamples)
    return Difference(float(differences.mean()), percentile_interval(drawn), p_value, len(differences))


def mcnemar(a: Sequence[bool], b: Sequence[bool]) -> float:
    """Exact two-sided p-value for one yes or no a question: only questions on which the two disagree tell (McNemar, 1947)."""
    only_a = sum(x and not y for x, y in zip(a, b, strict=True))
    only_b = sum(y and not x for x, y in zip(a, b, strict=True))
    if only_a + only_b == 0:
        return 1.0
    return float(stats.binomtest(only_a, only_a + only_b, 0.5).pvalue)


def holm(p_values: dict[str, float]) -> dict[str, float]:
    """p-values adjusted for having made so many comparisons (Holm, 1979): each below .05 is one at a family-wise 5 %."""
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, (name, p_value) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        highest = max(highest, min(1.0, p_value * (len(p_values) - rank)))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}


class ConfidenceSequence:
    """An interval for the mean of values in [0, 1] that holds at all times at once, so that one may look after every question and
    stop at will: the predictable plug-in empirical-Bernstein sequence (Waudby-Smith and Ramdas, 2024, JRSS-B, Theorem 2)."""

    def __init__(self, level: float = LEVEL) -> None:
        self._alpha = 1 - level
        self._weights = self._weighted = self._spread = 0.0
        self._sum = 0.5
        self._squares = 0.25
        self._n = 0
        self.interval = Interval(0.0, 1.0)

    def add(self, value: float) -> Interval:
        """The interval after one more value; never wider than before (running intersection). Raises ValueError outside [0, 1]."""
        if not 0 <= value <= 1:
            raise ValueError(f"{value} is not in [0, 1]")
        self._n += 1
        before = self._sum / self._n
        variance = self._squares / self._n
        rate = min(0.5, math.sqrt(2 * math.log(2 / self._alpha) / (variance * self._n * math.log(1 + self._n))))
        self._weights += rate
        self._weighted += rate * value
        self._spread += (value - before) ** 2 * (-math.log(1 - rate) - rate)
        self._sum += value
        self._squares += (value - self._sum / (self._n + 1)) ** 2
        centre = self._weighted / self._weights
        half = (math.log(2 / self._alpha) + self._spread) / self._weights
        low, high = max(self.interval.low, centre - half), min(self.interval.high, centre + half)
        self.interval = Interval(low, high) if low <= high else Interval(min(low, 1.0), min(low, 1.0))
        return self.interval


def prediction_powered(
    judged: Sequence[float], labelled_judged: Sequence[float], labels: Sequence[float]
) -> tuple[float, Interval]:
    """The mean of what people would say: a judge's mean over many items, corrected by its error on the labelled ones, with a
    normal interval (Angelopoulos et al., 2023, Science 382). Raises ValueError without two labels."""
    if len(labels) < 2 or len(labels) != len(labelled_judged):
        raise ValueError("at least two items with both a label and a judge's word are needed")
    error = np.asarray(labels, dtype=np.float64) - np.asarray(labelled_judged, dtype=np.float64)
    many = np.asarray(judged, dtype=np.float64)
    estimate = float(many.mean() + error.mean())
    z = float(stats.norm.ppf((1 + LEVEL) / 2))
    half = z * math.sqrt(float(many.var()) / len(many) + float(error.var(ddof=1)) / len(error))
    return estimate, Interval(estimate - half, estimate + half)


def cohen_kappa(a: Sequence[bool], b: Sequence[bool]) -> float | None:
    """Agreement above chance of two judges (Cohen, 1960), from -1 to 1; None where chance alone agrees always."""
    n = len(a)
    agree = sum(x == y for x, y in zip(a, b, strict=True)) / n if n else 0.0
    chance = (sum(a) / n) * (sum(b) / n) + (1 - sum(a) / n) * (1 - sum(b) / n) if n else 1.0
    return (agree - chance) / (1 - chance) if chance < 1 else None


def balanced_accuracy(labels: Sequence[bool], judged: Sequence[bool]) -> float | None:
    """Mean of the shares of true and of false items judged right; None unless there are both."""
    right = [judge for label, judge in zip(labels, judged, strict=True) if label]
    wrong = [not judge for label, judge in zip(labels, judged, strict=True) if not label]
    return (sum(right) / len(right) + sum(wrong) / len(wrong)) / 2 if right and wrong else None
