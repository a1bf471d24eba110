"""Two runs over the same questions: in which measures do they differ beyond chance?"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from eval.figures import MEASURES, Measure
from eval.measures import Seen, seen_of
from eval.runs import Run
from eval.stats import LEVEL, Difference, holm, mcnemar, paired_bootstrap
from rag.errors import InputError


@dataclass(frozen=True, slots=True)
class Compared:
    """B minus A in one measure, over the questions where both have it. `p_value` is McNemar's exact one for a yes or no, else of
    sign flips; `adjusted` is Holm's over all measures compared."""

    name: str
    a: float
    b: float
    difference: Difference
    p_value: float
    adjusted: float
    left_out: int

    @property
    def differs(self) -> bool:
        """Beyond chance, at a family-wise 5 %."""
        return self.adjusted < 1 - LEVEL


@dataclass(frozen=True, slots=True)
class Comparison:
    """`questions` are in both runs, with the same wording; `only_one` are not."""

    a: str
    b: str
    questions: int
    only_one: int
    measures: tuple[Compared, ...]


def compared(a: Run, b: Run) -> Comparison:
    """Raises InputError where the runs share no question, or were judged by different judges."""
    if a.judge != b.judge:
        raise InputError(
            f"{a.name} was judged by {a.judge or 'nobody'}, {b.name} by {b.judge or 'nobody'}: judge both alike first."
        )
    mine, theirs = ({one.question.id: one for one in seen_of(run) if one.record} for run in (a, b))
    common = [name for name, one in mine.items() if name in theirs and same(one, theirs[name])]
    if not common:
        raise InputError(f"{a.name} and {b.name} share no question.")
    pairs = [(mine[name], theirs[name]) for name in common]
    found = [one for measure in MEASURES if (one := paired(measure, pairs)) is not None]
    adjusted = holm({name: p_value for name, *_, p_value, _ in found})
    return Comparison(
        a.name,
        b.name,
        len(common),
        len(mine) + len(theirs) - 2 * len(common),
        tuple(Compared(name, x, y, difference, p, adjusted[name], out) for name, x, y, difference, p, out in found),
    )


def same(a: Seen, b: Seen) -> bool:
    """Whether two runs asked the same thing under one id."""
    return (a.question.question, a.question.history, a.question.gold) == (
        b.question.question,
        b.question.history,
        b.question.gold,
    )


def paired(measure: Measure, pairs: list[tuple[Seen, Seen]]) -> tuple[str, float, float, Difference, float, int] | None:
    """The measure's mean over questions in both runs; None where no question has it in both. Questions that have it in one only
    (one abstained, the other answered) are counted as left out."""
    parts = [(measure.of(a), measure.of(b)) for a, b in pairs]
    both = [(a.total / a.count, b.total / b.count) for a, b in parts if a.count and b.count]
    if not both:
        return None
    left, right = [a for a, _ in both], [b for _, b in both]
    difference = paired_bootstrap(left, right)
    p_value = mcnemar(list(map(bool, left)), list(map(bool, right))) if measure.average == "binary" else difference.p_value
    out = sum(bool(a.count) != bool(b.count) for a, b in parts)
    return measure.name, sum(left) / len(left), sum(right) / len(right), difference, p_value, out


def to_json(found: Comparison) -> dict[str, object]:
    """Ready for `json.dumps`."""
    return {**asdict(found), "measures": [{**asdict(one), "differs": one.differs} for one in found.measures]}


def to_text(found: Comparison) -> str:
    """For a terminal."""
    lines = [
        f"{found.b} against {found.a}, {found.questions} questions"
        + (f", {found.only_one} in one only" if found.only_one else "")
    ]
    for one in found.measures:
        interval = one.difference.interval
        lines.append(
            f"{one.name:22} {one.a:.3f} → {one.b:.3f}  {one.difference.value:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]  "
            f"p {one.p_value:.3f}, Holm {one.adjusted:.3f}, {one.difference.questions} questions"
            + (f", {one.left_out} left out" if one.left_out else "")
            + ("  DIFFERS" if one.differs else "")
        )
    return "\n".join(lines)
