"""A bound on the share of wrong answers among those given, at a chosen level: where to begin to abstain.

Thresholds on the engine's confidence are fixed before it is looked at which answers are right, and are tested from the strictest
down, each by an exact binomial bound, until one fails: so each may use the whole error rate (Angelopoulos et al., 2021, Learn
then Test, fixed-sequence testing; the risk is that of Geifman and El-Yaniv, 2017, Selective classification). Answers must be
exchangeable with those to come: questions of the same kind, of the same papers.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy import stats  # type: ignore[import-untyped]  # ships no types

from eval.measures import Seen
from eval.runs import replace_file
from eval.summary import scored_answers
from rag.errors import InputError

THRESHOLDS = tuple(place / 40 for place in range(29))
"""Fused scores from 0 to 0.7: few answers lie above."""

ENOUGH = 25
"""Answers from which a threshold is worth testing. How many lie above one is known without knowing which of them are right."""

DELTA = 0.1
"""Probability that the bound fails, over the draw of the questions it was found on."""

Answers = Sequence[tuple[float, bool]]
"""(confidence, correct) of each answer given."""


@dataclass(frozen=True, slots=True)
class Half:
    """Answers above the threshold in one half of the questions, and how many of them are wrong."""

    answered: int
    given: int
    wrong: int

    @property
    def risk(self) -> float | None:
        """None where nothing is given."""
        return self.wrong / self.given if self.given else None


@dataclass(frozen=True, slots=True)
class Bounded:
    """The lowest threshold whose answers are wrong at most `level` of the time, found on `fitted`, tried on `tested`; `holds`
    tells whether the tested half agrees with the bound (an exact binomial test at 5 %)."""

    level: float
    threshold: float
    fitted: Half
    tested: Half
    holds: bool


def threshold_for(answers: Answers, level: float, delta: float = DELTA) -> float | None:
    """The lowest threshold above which the share of wrong answers is at most `level`, surely but for `delta`; None where already
    the strictest one cannot be trusted that far."""
    found = None
    for threshold in worth_testing(answers):
        half = above(answers, threshold)
        if upper_bound(half.wrong, half.given, delta) > level:
            break
        found = threshold
    return found


def worth_testing(answers: Answers) -> list[float]:
    """The thresholds, from the strictest that leaves ENOUGH answers down."""
    return [one for one in reversed(THRESHOLDS) if sum(confidence >= one for confidence, _ in answers) >= ENOUGH]


def above(answers: Answers, threshold: float) -> Half:
    """What is given when abstaining below the threshold."""
    kept = [correct for confidence, correct in answers if confidence >= threshold]
    return Half(len(answers), len(kept), kept.count(False))


def upper_bound(wrong: int, given: int, delta: float) -> float:
    """Of a share, at 1 - delta (Clopper and Pearson, 1934)."""
    return 1.0 if wrong == given else float(stats.beta.ppf(1 - delta, wrong + 1, given - wrong))


def bounded(seen: Sequence[Seen], level: float, delta: float = DELTA) -> Bounded:
    """Found on the questions whose id hashes even, tried on the others. Raises InputError where no bound can be given."""
    if not 0 < level < 1:
        raise InputError("--wrong-at-most wants a share between 0 and 1, such as 0.2.")
    fitting = scored_answers([one for one in seen if is_even(one.question.id)])
    testing = scored_answers([one for one in seen if not is_even(one.question.id)])
    threshold = threshold_for(fitting, level, delta)
    if threshold is None:
        strictest = [above(fitting, one) for one in worth_testing(fitting)[:1]]
        least = upper_bound(strictest[0].wrong, strictest[0].given, delta) if strictest else 1.0
        raise InputError(
            f"No threshold keeps wrong answers to {level:.0%}: the bound that the surest of these {len(fitting)} answers give "
            f"is {least:.0%}. "
            "Ask for that, or calibrate on more questions."
        )
    tested = above(testing, threshold)
    agrees = not tested.given or float(stats.binomtest(tested.wrong, tested.given, level, "greater").pvalue) >= 0.05
    return Bounded(level, threshold, above(fitting, threshold), tested, agrees)


def is_even(question_id: str) -> bool:
    """Which half a question falls in: its id alone decides."""
    return hashlib.sha256(question_id.encode("utf8", "replace")).digest()[0] % 2 == 0


def write_threshold(found: Bounded, fitted: Path, target: Path) -> None:
    """Makes it the fused score below which the engine does not answer, never lower than in `fitted`, whose other thresholds are
    kept. Raises InputError."""
    try:
        stored = json.loads(fitted.read_text(encoding="utf8"))
        stored["hopeless"] = max(stored["hopeless"], found.threshold)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{fitted} holds no abstention thresholds: {error}") from error
    stored.setdefault("figures", {})["wrong_at_most"] = {
        "level": found.level,
        "threshold": found.threshold,
        **{name: f"{half.wrong} of {half.given} wrong" for name, half in (("fitted", found.fitted), ("tested", found.tested))},
    }
    replace_file(target, json.dumps(stored, indent=1) + "\n")


def run_module(name: str, *arguments: str | Path) -> str:
    """What `python -m name …` prints. Raises InputError with its last line where it fails."""
    done = subprocess.run([sys.executable, "-m", name, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"{name} failed: {(done.stderr.strip() or 'no reason given').splitlines()[-1]}")
    return done.stdout
