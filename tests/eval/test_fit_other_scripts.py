import json
from collections import Counter

import numpy as np
import pytest

from eval.fit_other_scripts import (
    CLAIMS_FILE,
    FIGURES_FILE,
    SHOWN,
    Case,
    Claimed,
    fitted,
    folds,
    probabilities,
    read_claims,
    read_papers,
    shares,
    told,
    with_thresholds,
)
from rag.cli_ingest import SAMPLES
from rag.other_scripts import TYPICAL_RIVAL, WEIGHTS_FILE, Nearness, in_other_script
from rag.similarity import read_model

FIGURES = json.loads(FIGURES_FILE.read_text(encoding="utf8"))


def cases(*papers: str) -> list[Case]:
    """One claim about each paper, among others with the right one first, and without it."""
    others = tuple(f"other-{number}" for number in range(SHOWN))
    return [
        Case(Claimed("句子", paper, true=True), shown, place)
        for paper in papers
        for shown in ((paper, *others[1:]), others)
        for place in range(1, SHOWN + 1)
    ]


def test_the_figures_belong_to_the_weights_that_ship() -> None:
    assert FIGURES["gate"] == read_model(WEIGHTS_FILE, Nearness).name
    assert FIGURES["typical_rival"] == TYPICAL_RIVAL
    assert FIGURES["claims"] == len(read_claims(CLAIMS_FILE))


def test_the_figures_reach_what_was_asked_for() -> None:
    assert FIGURES["auroc"] >= 0.98
    assert FIGURES["called"]["right"]["ok"] >= 0.85
    assert FIGURES["called"]["wrong"]["ok"] <= 0.02
    assert FIGURES["called"]["number changed"]["number_mismatch"] == 1.0


def test_every_claim_is_in_chinese_and_about_a_sample_paper() -> None:
    claims = read_claims(CLAIMS_FILE)
    authors = Counter(raw.authors[0] for raw in read_papers(SAMPLES))
    assert {claim.paper for claim in claims} == set(authors)
    assert set(authors.values()) == {1}
    assert all(in_other_script(claim.text) for claim in claims)
    assert sum(not claim.true for claim in claims) == 15


def test_fitting_learns_what_tells_right_from_wrong_in_the_features_own_units() -> None:
    rows = np.array([[0.03, 1 / 3, 0.0], [0.02, 0.0, 0.0], [-0.03, 0.0, 1 / 3], [-0.04, 1 / 3, 0.0]] * 5)
    right = np.array([True, True, False, False] * 5)
    model = fitted(rows, right)
    assert model.weights[0] > 0
    assert (probabilities(model, rows)[right] > 0.8).all()
    assert (probabilities(model, rows)[~right] < 0.2).all()


def test_every_claim_is_left_out_once_with_all_others_about_its_paper() -> None:
    all_cases = cases(*(f"paper-{number}" for number in range(30)))
    left_out = list(folds(all_cases))
    assert (np.sum(left_out, axis=0) == 1).all()
    for out in left_out:
        papers = [{case.claim.paper for case, one in zip(all_cases, out, strict=True) if one is kept} for kept in (True, False)]
        assert not papers[0] & papers[1]


def test_thresholds_bound_how_many_are_mistaken() -> None:
    all_cases = cases(*(f"paper-{number}" for number in range(100)))
    scores = np.random.default_rng(1).random(len(all_cases))
    right = np.array([case.right for case in all_cases])
    scores[right] += 0.5
    model = with_thresholds(fitted(np.random.default_rng(2).random((len(right), 3)), right), scores, all_cases)
    assert (scores[~right] >= model.ok).mean() == pytest.approx(0.02, abs=0.01)
    assert (scores[right] < model.mismatch).mean() == pytest.approx(0.02, abs=0.01)
    absent = scores[[not case.has_right for case in all_cases]].reshape(-1, SHOWN)
    assert (absent >= model.anew).any(axis=1).mean() == pytest.approx(0.05, abs=0.02)


def test_wrong_citations_are_told_apart_by_whether_the_right_paper_was_there() -> None:
    all_cases = cases("paper-1")
    scores = np.array([0.5 if case.right else 0.1 if case.has_right else 0.9 for case in all_cases])
    assert told(scores, all_cases) == {"auroc": 1.0, "auroc_right_paper_not_retrieved": 0.0}


def test_shares_are_of_each_kind() -> None:
    assert shares([("right", "ok"), ("right", "weak"), ("wrong", "weak")]) == {
        "right": {"n": 2, "ok": 0.5, "weak": 0.5},
        "wrong": {"n": 1, "weak": 1.0},
    }
