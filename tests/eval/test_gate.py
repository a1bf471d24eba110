"""Gates fail when they should, compare runs fairly, and are decided no earlier than the evidence allows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eval.compare import compared, to_text
from eval.driver import InOrder
from eval.figures import figures_of
from eval.gate import Bound, Deciding, hold, hold_baseline, read_bounds
from eval.measures import Seen
from rag.errors import InputError
from tests.eval.made import REFUSED, answer, judgement, question, record, run_of, seen

ONE = answer(("One", "a"))


def judged(id_: str, right: bool) -> Seen:
    return seen(question(id_), ONE, judgement(id_, "supported" if right else "not_stated"))


def test_bounds_are_read_and_mistyped_ones_refused() -> None:
    assert read_bounds(["faithfulness=0.9"], ["over_refusal=.1"]) == [
        Bound("faithfulness", 0.9, "min"),
        Bound("over_refusal", 0.1, "max"),
    ]
    for wrong in ("faithfulness", "faithfulness=high"):
        with pytest.raises(InputError, match="no bound"):
            read_bounds([wrong])
    with pytest.raises(InputError, match="no measure; there are: litqa"):
        hold(figures_of([judged("q", True)]), read_bounds(["faithfullness=1"]))


def test_an_undefined_figure_holds_no_bound() -> None:
    figures = figures_of([seen(question(), ONE)])
    assert [one.holds for one in hold(figures, read_bounds(["faithfulness=0"], ["faithfulness=1"]))] == [False, False]
    assert not hold_baseline(figures, {"faithfulness": 0.0})[0].holds


def test_a_baseline_allows_what_may_be_chance_and_nothing_more() -> None:
    figures = figures_of([judged(f"q{n}", n < 36) for n in range(40)])
    faithful = figures["faithfulness"]
    assert faithful.value == 0.9 and faithful.interval is not None
    assert hold_baseline(figures, {"faithfulness": faithful.interval.high - 0.001})[0].holds
    assert not hold_baseline(figures, {"faithfulness": faithful.interval.high + 0.001})[0].holds
    assert hold_baseline(figures, {"unborne_rate": 0.1})[0].holds
    assert not hold_baseline(figures, {"unborne_rate": 0.001})[0].holds


def test_a_gate_is_decided_either_way_and_stays_open_in_between() -> None:
    good, bad, open_ = (Deciding(read_bounds(["faithfulness=0.8"])) for _ in range(3))
    assert any(good.add(judged(f"q{n}", True)) for n in range(200)) and good.decided is True
    assert good.asked < 100, "a hundred perfect answers are more than enough for 0.8"
    assert any(bad.add(judged(f"q{n}", n % 2 == 0)) for n in range(200)) and bad.decided is False
    assert not any(open_.add(judged(f"q{n}", n % 5 > 0)) for n in range(200)) and open_.decided is None
    assert [one.holds for one in (*good.held(), *bad.held(), *open_.held())] == [True, False, False]


def test_a_gate_is_decided_wrongly_at_most_at_its_nominal_rate() -> None:
    random = np.random.default_rng(7)
    right, wrong = judged("q", True), judged("q", False)
    mistakes = 0
    for _ in range(300):
        deciding = Deciding(read_bounds(["faithfulness=0.8"]))
        for fine in random.random(150) < 0.8 - 1e-9:  # just below: to say that it holds is a mistake
            if deciding.add(right if fine else wrong):
                break
        mistakes += deciding.decided is True
    assert mistakes / 300 <= 0.05


def test_a_question_without_the_measure_decides_nothing() -> None:
    deciding = Deciding(read_bounds(["faithfulness=0.8"]))
    for n in range(300):
        deciding.add(seen(question(f"q{n}"), REFUSED))
    assert deciding.decided is None


def test_only_means_over_questions_can_be_decided_early() -> None:
    with pytest.raises(InputError, match="mean over questions"):
        Deciding(read_bounds(["faithfulness_micro=0.9"]))
    with pytest.raises(InputError, match="wants a bound"):
        Deciding([])


def test_answers_count_in_the_order_they_were_asked_in_not_that_they_came_in() -> None:
    order = [question(f"q{n}") for n in range(3)]
    deciding = Deciding(read_bounds(["faithfulness=0.8"]))
    take = InOrder(deciding, order)
    for place, counted in ((2, 0), (1, 0), (0, 3)):
        one = order[place]
        take(one, record(one.id, ONE), judgement(one.id, "supported"))
        assert deciding.asked == counted


def test_two_runs_are_compared_question_by_question(tmp_path: Path) -> None:
    a = run_of(tmp_path / "a", *(judged(f"q{n}", n % 2 == 0) for n in range(60)))
    b = run_of(tmp_path / "b", *(judged(f"q{n}", True) for n in range(60)))
    found = {one.name: one for one in compared(a, b).measures}
    assert found["faithfulness"].differs and found["faithfulness"].difference.value == 0.5
    assert not found["gold_first"].differs
    assert not any(one.differs for one in compared(a, a).measures)
    assert "DIFFERS" in to_text(compared(a, b)) and "DIFFERS" not in to_text(compared(a, a))


def test_questions_in_one_run_only_are_counted_and_other_judges_refused(tmp_path: Path) -> None:
    a = run_of(tmp_path / "a", judged("q1", True), judged("q2", True))
    b = run_of(
        tmp_path / "b", judged("q1", True), seen(question("q2", question="Something else?"), ONE, judgement("q2", "supported"))
    )
    assert (compared(a, b).questions, compared(a, b).only_one) == (1, 2)
    other = run_of(tmp_path / "c", seen(question("q1"), ONE, judgement("q1", "supported", judge="local@1")))
    with pytest.raises(InputError, match="judge both alike"):
        compared(a, other)
    with pytest.raises(InputError, match="share no question"):
        compared(a, run_of(tmp_path / "d", judged("q9", True)))
