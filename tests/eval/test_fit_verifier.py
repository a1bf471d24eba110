import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eval.fit_verifier import (
    FIGURES_FILE,
    Embedded,
    Measured,
    Pair,
    auroc,
    balanced_accuracy,
    best_threshold,
    caught_at,
    fit,
    is_swap,
    measure,
    read_pairs,
    shares,
)
from rag.embedding import LocalEmbedder
from rag.similarity import Features, read_model

JUDGE = Path(__file__).parents[3] / "shared" / "data" / "judge"


def measured(scores: list[float], right: list[bool], wrong_numbers: list[bool] | None = None) -> Measured:
    """Pairs whose only telling feature is the first."""
    pairs = tuple(Pair("claim", "evidence", one, "human", "dev") for one in right)
    rows = np.zeros((len(scores), 6))
    rows[:, 0] = scores
    return Measured(pairs, rows, np.array(wrong_numbers or [False] * len(scores)))


RECALL_ALONE = replace(read_model(), weights=(10.0, 0, 0, 0, 0, 0), intercept=-5.0, ok=0.5, mismatch=0.1)


def test_the_figures_belong_to_the_weights_that_ship() -> None:
    figures = json.loads(FIGURES_FILE.read_text(encoding="utf8"))
    assert figures["verifier"] == read_model().name


def test_the_figures_reach_what_was_asked_for() -> None:
    figures = json.loads(FIGURES_FILE.read_text(encoding="utf8"))
    assert figures["wrong_abstracts"]["auroc"] >= 0.98
    assert figures["judged_claims"]["balanced_accuracy"] >= 0.73


def test_a_threshold_lies_in_the_middle_of_the_best_ones() -> None:
    scores = np.array([0.1, 0.2, 0.6, 0.7])
    assert best_threshold(scores, np.array([False, False, True, True])) == pytest.approx(0.4, abs=0.01)


def test_balanced_accuracy_counts_both_kinds_alike() -> None:
    scores, right = np.array([0.9, 0.9, 0.9, 0.1, 0.9]), np.array([True, True, True, True, False])
    assert balanced_accuracy(scores, right, 0.5) == pytest.approx((0.75 + 0) / 2)


def test_wrong_ones_are_counted_at_the_threshold_that_keeps_the_right_ones() -> None:
    pairs = measured([0.1, 0.2, 0.6, 0.5, 0.7, 0.8, 0.9], [False, False, False, True, True, True, True])
    assert caught_at(pairs, RECALL_ALONE, 1.0) == pytest.approx(2 / 3, abs=1e-3)
    assert caught_at(pairs, RECALL_ALONE, 0.75) == 1.0


def test_each_pair_is_called_one_thing() -> None:
    pairs = measured([0.9, 0.9, 0.4, 0.1, 0.1], [True, True, True, True, False], [False, True, False, True, False])
    assert shares(pairs, RECALL_ALONE)["right"] == {"ok": 0.25, "mismatch": 0.25, "number_mismatch": 0.25, "weak": 0.25}
    assert shares(pairs, RECALL_ALONE)["wrong"]["mismatch"] == 1.0


def test_fitting_learns_what_tells_right_from_wrong() -> None:
    pairs = measured([0.1, 0.2, 0.3, 0.7, 0.8, 0.9] * 5, [False, False, False, True, True, True] * 5)
    fitted = fit(pairs, pairs)
    assert list(fitted["weights"]) == list(Features.__slots__)  # type: ignore[call-overload]  # a JSON value
    assert fitted["weights"]["recall"] > 0  # type: ignore[index]  # a JSON value
    assert 0 < fitted["mismatch"] < 1  # type: ignore[operator]  # a JSON value
    assert 0 < fitted["ok"] < 1  # type: ignore[operator]  # a JSON value


def test_pairs_are_read_from_a_judge_file(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl.gz"
    row = {"claim": "c", "evidence": "e", "label": "contradicted", "kind": "antonym", "split": "test"}
    with gzip.open(path, "wt", encoding="utf8") as file:
        file.write(json.dumps(row) + "\n" + json.dumps({**row, "label": "supported"}) + "\n")
    assert [pair.right for pair in read_pairs(path)] == [False, True]


@pytest.mark.skipif(not JUDGE.is_dir(), reason="the judge data are not at ../shared/data/judge")
def test_right_abstracts_are_told_from_wrong_ones_of_the_same_topic() -> None:
    pairs = [pair for pair in read_pairs(JUDGE / "pubmedqa_conclusion.jsonl.gz") if is_swap(pair) and pair.split == "test"][:40]
    assert auroc(measure(pairs, Embedded(LocalEmbedder())), read_model()) >= 0.95
