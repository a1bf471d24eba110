"""Gates: bounds that a run's figures must keep, a stored baseline they must not drop below, and bounds decided while asking."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eval.figures import MEASURES, Figure, Measure
from eval.measures import Seen
from eval.stats import LEVEL, ConfidenceSequence
from rag.errors import InputError


@dataclass(frozen=True, slots=True)
class Bound:
    """`faithfulness ≥ 0.9`, or `over_refusal ≤ 0.1`."""

    name: str
    limit: float
    side: Literal["min", "max"]

    def __str__(self) -> str:
        return f"{self.name} {'≥' if self.side == 'min' else '≤'} {self.limit:g}"

    def holds(self, value: float | None) -> bool:
        """An undefined value keeps no bound."""
        return value is not None and (value >= self.limit if self.side == "min" else value <= self.limit)


def read_bounds(least: Iterable[str], most: Iterable[str] = ()) -> list[Bound]:
    """From `name=value`. Raises InputError."""
    return [read_bound(text, "min") for text in least] + [read_bound(text, "max") for text in most]


def read_bound(text: str, side: Literal["min", "max"]) -> Bound:
    """Raises InputError."""
    name, equals, value = text.partition("=")
    try:
        if equals:
            return Bound(name.strip(), float(value), side)
    except ValueError:
        pass
    raise InputError(f"{text!r} is no bound; write it like faithfulness=0.9.")


@dataclass(frozen=True, slots=True)
class Held:
    """A bound against a run: `said` tells the figure in words."""

    bound: str
    holds: bool
    said: str


def hold(figures: Mapping[str, Figure], bounds: Sequence[Bound]) -> list[Held]:
    """Each bound against the figure it names. Raises InputError for a name that is no measure."""
    for bound in bounds:
        if bound.name not in figures:
            raise InputError(f"{bound.name} is no measure; there are: {', '.join(figures)}.")
    return [Held(str(bound), bound.holds(figures[bound.name].value), in_words(figures[bound.name])) for bound in bounds]


def in_words(figure: Figure) -> str:
    """`0.912 [0.871, 0.945], 120/123 claims`."""
    if figure.value is None:
        return f"undefined, {figure.scored}/{figure.asked} {figure.unit}"
    digits = 0 if figure.value > 1 else 3
    interval = f" [{figure.interval.low:.{digits}f}, {figure.interval.high:.{digits}f}]" if figure.interval else ""
    return f"{figure.value:.{digits}f}{interval}, {figure.scored}/{figure.asked} {figure.unit}"


def hold_baseline(figures: Mapping[str, Figure], baseline: Mapping[str, float]) -> list[Held]:
    """A figure is worse than the baseline when its whole interval is: less than that may be chance. Raises InputError for a name
    that is no measure."""
    found = []
    for name, before in baseline.items():
        if name not in figures:
            raise InputError(f"the baseline names {name}, which is no measure.")
        figure = figures[name]
        if figure.value is None or figure.interval is None:
            kept = False
        elif figure.better == "high":
            kept = figure.interval.high >= before
        else:
            kept = figure.interval.low <= before
        found.append(Held(f"{name} no worse than {before:g}", kept, in_words(figure)))
    return found


def read_baseline(file: Path) -> dict[str, float]:
    """`{"figures": {name: value}}`. Raises InputError."""
    try:
        figures = json.loads(file.read_text(encoding="utf8"))["figures"]
        return {str(name): float(value) for name, value in figures.items()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise InputError(f"{file} is no baseline: {error}") from error


class Deciding:
    """Bounds decided while questions are asked in random order: a confidence sequence for each measure's mean over questions, so
    that one may stop at any time. The error rate is shared among the bounds (Bonferroni): deciding any of them wrongly has
    probability at most 1 - LEVEL."""

    def __init__(self, bounds: Sequence[Bound]) -> None:
        by_name = {measure.name: measure for measure in MEASURES}
        level = 1 - (1 - LEVEL) / max(1, len(bounds))
        self._watched: list[tuple[Bound, Measure, ConfidenceSequence]] = []
        for bound in bounds:
            measure = by_name.get(bound.name)
            if measure is None or measure.average == "micro":
                means = ", ".join(one.name for one in MEASURES if one.average != "micro")
                raise InputError(f"--until decided wants a mean over questions, not {bound.name}: one of {means}.")
            self._watched.append((bound, measure, ConfidenceSequence(level)))
        if not bounds:
            raise InputError("--until decided wants a bound to decide: --min faithfulness=0.9.")
        self.asked = 0

    def add(self, seen: Seen) -> bool:
        """Takes one more question. Returns whether the gate is decided."""
        self.asked += 1
        for _, measure, sequence in self._watched:
            part = measure.of(seen)
            if part.count:
                sequence.add(min(1.0, max(0.0, part.total / part.count)))
        return self.decided is not None

    @property
    def decided(self) -> bool | None:
        """True once every bound surely holds, False once one surely does not, None until then."""
        states = [state(bound, sequence) for bound, _, sequence in self._watched]
        if False in states:
            return False
        return True if all(states) else None

    def held(self) -> list[Held]:
        """What is known of each bound; an undecided one does not hold."""
        return [
            Held(
                str(bound), state(bound, sequence) is True, f"mean in [{sequence.interval.low:.3f}, {sequence.interval.high:.3f}]"
            )
            for bound, _, sequence in self._watched
        ]


def state(bound: Bound, sequence: ConfidenceSequence) -> bool | None:
    """Whether the whole interval keeps the bound (True), none of it does (False), or that is open (None)."""
    low, high = bound.holds(sequence.interval.low), bound.holds(sequence.interval.high)
    return low if low == high else None
