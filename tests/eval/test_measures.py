"""Each measure does what its docstring says, and makes none of the mistakes that known tools make."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval import measures
from eval.figures import figures_of
from eval.measures import Part
from eval.runs import AnswerRow, ClaimVerdict
from tests.eval.made import PAPERS, PID, REFUSED, answer, judgement, question, record, seen

TWO = answer(("One", "a"), ("Two", "b"))


def test_the_denominator_is_the_claims_submitted_not_the_verdicts_returned() -> None:
    """Ragas divides by what the judge returned."""
    one = seen(question(), TWO, judgement("q1", "supported"))
    assert measures.faithfulness(one) == Part(1, 2, 1, 2)
    assert measures.citation_recall(one) == Part(1, 2, 1, 2)


def test_an_abstention_is_not_faithful_it_claims_nothing() -> None:
    """DeepEval counts "I don't know" as faithful."""
    one = seen(question(), REFUSED, judgement("q1"))
    assert measures.faithfulness(one).count == 0
    assert figures_of([one])["faithfulness"].value is None


def test_nothing_judged_is_undefined_neither_0_nor_1() -> None:
    figures = figures_of([seen(question(), TWO)])
    assert figures["faithfulness"].value is None and figures["faithfulness"].interval is None
    assert (figures["faithfulness"].scored, figures["faithfulness"].asked) == (0, 2)


@pytest.mark.parametrize(
    ("text", "markers"),
    [
        ("It rises [1, 2].", (1, 2)),
        ("It rises [1-2].", (1, 2)),
        ("It rises 【1】【2】.", (1, 2)),
        ("- It\n- rises [1][2].", (1, 2)),
    ],
)
def test_every_form_of_marker_is_read_also_after_a_line_end(text: str, markers: tuple[int, ...]) -> None:
    """ALCE's script reads `[1, 2]` as `[1]` and stops at the first newline."""
    whole = answer(("x", "ab"))
    row = whole.sentences[0].model_copy(update={"text": text, "markers": markers})
    part = measures.marker_validity(seen(question(), whole.model_copy(update={"text": text, "sentences": (row,)})))
    assert part == Part(2, 2, 2, 2)


def test_a_marker_that_stands_for_nothing_counts_though_the_engine_removed_it() -> None:
    part = measures.marker_validity(seen(question(), TWO.model_copy(update={"invalid_markers": 2})))
    assert part == Part(2, 4, 4, 4)


def test_sentences_after_a_line_end_are_claims_too() -> None:
    two_lines = answer(("One\n", "a"), ("\nTwo", "b"))
    assert len(seen(question(), two_lines).claims) == 2


def test_an_uncited_sentence_does_not_inherit_the_citation_before_it() -> None:
    """ScholarQABench's script lets it."""
    one = seen(question(), answer(("One", "a"), ("Two", "")), judgement("q1", "supported", "supported"))
    assert measures.citation_recall(one) == Part(1, 2, 2, 2)
    assert measures.uncited_claim_rate(one) == Part(1, 2, 2, 2)


def test_a_question_that_failed_is_counted_as_a_failure_and_not_dropped() -> None:
    figures = figures_of([seen(question("q1"), TWO, judgement("q1", "supported", "supported")), seen(question("q2"), None)])
    assert figures["gold_first"].value == 0.5 and (figures["gold_first"].scored, figures["gold_first"].asked) == (1, 2)
    assert figures["litqa_accuracy"].value == 0.5
    assert figures["error_rate"].value == 0.5


def test_a_citation_that_adds_nothing_is_irrelevant_by_leaving_one_out() -> None:
    both = answer(("Both", "ab"))
    for verdict, relevant in (
        (ClaimVerdict(claim=0, word="supported", alone=(1,)), 1),
        (ClaimVerdict(claim=0, word="supported", needed=(1, 2)), 2),
        (ClaimVerdict(claim=0, word="supported"), 0),
        (ClaimVerdict(claim=0, word="partly", alone=(1,), needed=(1, 2)), 0),
    ):
        one = seen(question(), both, judgement("q1").model_copy(update={"claims": (verdict,)}))
        assert measures.citation_precision(one) == Part(relevant, 2, 2, 2), verdict


def test_what_another_paper_shown_bears_out_is_misattributed_and_not_invented() -> None:
    elsewhere = ClaimVerdict(claim=0, word="not_stated", elsewhere=(PID["b"],))
    nowhere = ClaimVerdict(claim=1, word="not_stated")
    one = seen(question(), TWO, judgement("q1").model_copy(update={"claims": (elsewhere, nowhere)}))
    assert measures.misattribution_rate(one) == Part(1, 2, 2, 2)
    assert measures.unborne_rate(one) == Part(1, 2, 2, 2)


def test_the_local_judge_leaves_contradiction_undefined() -> None:
    local = judgement("q1", "not_stated", "supported", judge="local@1")
    assert figures_of([seen(question(), TWO, local)])["contradiction_rate"].value is None
    other = judgement("q1", "contradicted", "supported")
    assert figures_of([seen(question(), TWO, other)])["contradiction_rate"].value == 0.5


def test_a_quote_that_is_not_at_its_place_is_not_verbatim() -> None:
    good = measures.quotes_verbatim(seen(question(), TWO))
    assert good == Part(4, 4, 4, 4)
    moved = TWO.citations[0].model_copy(update={"start": 1})
    assert measures.quotes_verbatim(seen(question(), TWO.model_copy(update={"citations": (moved, TWO.citations[1])}))).total == 3


def test_points_are_recalled_over_answerable_questions_and_an_abstention_tells_none() -> None:
    wanted = question(points=("x", "y"))
    assert measures.points_covered(seen(wanted, TWO, judgement("q1", points=(True, False)))) == Part(1, 2, 2, 2)
    assert measures.points_covered(seen(wanted, REFUSED, judgement("q1"))) == Part(0, 2, 2, 2)
    assert measures.points_covered(seen(wanted, TWO, judgement("q1", points=(True, None)))) == Part(1, 2, 1, 2)
    assert measures.points_covered(seen(question(gold="", points=("abstains",)), TWO)).count == 0


def test_a_forbidden_statement_that_cannot_be_told_is_left_out() -> None:
    wanted = question(must_not=("x", "y"))
    told = judgement("q1").model_copy(update={"must_not": (True, None)})
    assert measures.must_not_violations(seen(wanted, TWO, told)) == Part(1, 1, 1, 2)


def test_abstaining_is_measured_on_both_sides_and_false_premises_on_neither() -> None:
    run = [
        seen(question("u1", ""), REFUSED),
        seen(question("u2", ""), TWO),
        seen(question("u3", "", note="false_premise; pid=x"), TWO),
        seen(question("a1"), REFUSED),
        seen(question("a2"), answer(status="needs_full_text")),
        seen(question("a3"), TWO),
    ]
    figures = figures_of(run)
    assert figures["abstention_recall"].value == 0.5
    assert figures["abstention_precision"].value == pytest.approx(1 / 3)
    assert figures["abstention_f1"].value == pytest.approx(0.4)
    assert figures["over_refusal"].value == pytest.approx(2 / 3)


def test_answering_the_unanswerable_costs_precision_and_refusing_costs_accuracy() -> None:
    right = seen(question("a1", points=("x",)), answer(("One", "a")), judgement("a1", "supported", points=(True,)))
    wrong_paper = seen(question("a2", "c", points=("x",)), answer(("One", "a")), judgement("a2", "supported", points=(True,)))
    refused = seen(question("a3", points=("x",)), REFUSED)
    invented = seen(question("u1", ""), answer(("One", "a")), judgement("u1", "supported"))
    figures = figures_of([right, wrong_paper, refused, invented])
    assert figures["litqa_accuracy"].value == pytest.approx(1 / 3)
    assert figures["litqa_precision"].value == pytest.approx(1 / 3)


def test_retrieval_is_measured_on_what_is_shown() -> None:
    figures = figures_of([seen(question("q1", "b"), TWO), seen(question("q2", "ac"), TWO)])
    assert figures["RR@10"].value == pytest.approx((1 / 2 + 1) / 2)
    assert figures["gold_first"].value == 0.5
    assert figures["gold_in_top_5"].value == 1.0
    assert figures["R@5"].value == 1.0
    assert figures["first_citation_gold"].by_kind == {"fact": (0.5, 2)}


def test_a_paper_as_good_as_gold_neither_helps_nor_hurts_the_ranking_but_may_come_first() -> None:
    one = seen(question("q1", "b", also=(PID["a"],)), TWO)
    assert measures.gold_first(one).total == 1
    assert measures.RR_10(one).total == 1.0


def test_cached_answers_tell_nothing_of_latency() -> None:
    one = seen(question(), TWO)
    cached = measures.Seen(one.question, record("q1", TWO, cached=True), None)
    assert figures_of([cached])["latency_p50_ms"].value is None
    assert figures_of([one])["latency_p50_ms"].value == 10


@given(st.lists(st.sampled_from(["supported", "partly", "contradicted", "not_stated", "unjudged"]), max_size=6))
def test_parts_keep_their_order_of_size_whatever_a_judge_says(words: list[str]) -> None:
    whole = answer(*((f"Claim {n}", "ab"[n % 2]) for n in range(4)))
    one = seen(question(points=("x",), must_not=("y",)), whole, judgement("q1", *words))
    for name in (
        "faithfulness",
        "citation_recall",
        "citation_precision",
        "misattribution_rate",
        "unborne_rate",
        "contradiction_rate",
    ):
        part = getattr(measures, name)(one)
        assert 0 <= part.total <= part.count <= part.asked and part.scored <= part.asked, name


def test_every_measure_says_what_it_is() -> None:
    for figure in figures_of([seen(question(), TWO, judgement("q1", "supported", "supported"))]).values():
        assert len(figure.about) > 20, figure.name


def test_a_paper_is_named_by_the_hash_of_its_stripped_abstract() -> None:
    assert PAPERS["a"].model_copy(update={"abstract": f"  {PAPERS['a'].abstract}\n"}).pid == PID["a"]
    assert isinstance(REFUSED, AnswerRow)
