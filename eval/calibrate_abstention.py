"""Fits when to abstain (`rag/abstention.json`): `python -m eval.calibrate_abstention QUESTIONS.jsonl PAPERS…`.

Questions with a known paper are asked three times: of the whole shelf (an answer is there), of the shelf without that paper (it
is not in the papers), and with the sentences that bear the answer taken out of it (the paper is there, the answer is not). Two
logistic models are fitted on what `rag.decide.signals` sees, cross-validated by question; each threshold refuses a
chosen share of all answerable questions. Unanswerable questions of the set are held out: they only tell how well it came out.

The numbers in the repository come from the dev questions together with `eval/conceptual.jsonl`, our own questions in wholly other
words than the papers' (which tell no answers, hence `--refuse-answered 0.02`, .05 of the dev questions alone).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]  # ships no types
from sklearn.metrics import roc_auc_score  # type: ignore[import-untyped]  # ships no types
from sklearn.model_selection import GroupKFold, cross_val_predict  # type: ignore[import-untyped]  # ships no types

from rag.build import Library, open_library
from rag.decide import CALIBRATION, CLEAR_LEAD, Signals, calibration, signals
from rag.extract import by_meaning
from rag.filters import Names
from rag.ingest import files
from rag.match import match, meaning_coverage, places_by_author
from rag.retrieve import scored
from rag.settings import read_settings
from rag.types import Filters, Retrieved, Turn
from rag.understand import understand
from rag.word_vectors import WordVectors

RELEVANT = ("score", "lead", "coverage", "missing_names", "length")
ANSWERED = ("meaning", "sentence_coverage", "number_missing")
FULL_TEXT_MATTER = -1.5
"""Not fitted: no question about a learning rate or a licence stands in the sets; the weight says "rather not"."""

FOLDS = 10
"""Of cross-validation; fewer where there are fewer questions."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question with what was seen of its best paper. `kind` is `whole`, `paper away`, `sentence away` or `unanswerable`;
    `is_told` whether the set tells what the answer must say."""

    question_id: str
    kind: str
    note: str
    seen: Signals
    is_told: bool = True

    @property
    def is_about_one(self) -> bool:
        return self.is_told and bool(self.seen.is_named) and self.seen.lead >= CLEAR_LEAD


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("papers", type=Path, nargs="+")
    share = "share of all answerable questions that may be refused for want of "
    parser.add_argument("--refuse-relevant", type=float, default=0.045, help=share + "a paper on the subject")
    parser.add_argument("--refuse-answered", type=float, default=0.05, help=share + "an answer in the paper that is named")
    parser.add_argument("--out", type=Path, default=CALIBRATION)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, open_library(read_settings(data=Path(folder))) as library:
        library.ingest(files(given.papers))
        cases = list(all_cases(library, read_questions(given.questions)))
    fitted = calibrated(cases, given.refuse_relevant, given.refuse_answered)
    given.out.write_text(json.dumps(fitted, indent=1) + "\n", encoding="utf8")
    print(json.dumps(fitted["figures"], indent=1))


@dataclass(frozen=True, slots=True)
class Asked:
    """A line of the question set; `gold` are the first 10 hex digits of the SHA-256 of the gold abstracts."""

    question_id: str
    kind: str
    note: str
    question: str
    history: tuple[Turn, ...]
    gold: frozenset[str]
    points: tuple[str, ...]


def read_questions(path: Path) -> list[Asked]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]
    return [
        Asked(
            row["id"],
            row["kind"],
            row.get("note", "").split(";")[0],
            row["question"],
            tuple(Turn(turn["role"], turn["content"]) for turn in row.get("history", [])),
            frozenset([*row["gold"], *row.get("also", [])]),
            tuple(row["points"]),
        )
        for row in rows
        if row["lang"] == "en"
    ]


def all_cases(library: Library, questions: Sequence[Asked]) -> Iterator[Case]:
    for asked in questions:
        text = understand(asked.question, asked.history, Filters(), Names(has_years=False)).search_text
        found = library.retriever.find(text, top_k=20)
        if places_by_author(asked.question, found[:8]):
            continue
        kind = "unanswerable" if asked.kind == "unanswerable" else "whole"
        is_told = kind == "unanswerable" or bool(asked.points)
        yield Case(asked.question_id, kind, asked.note or asked.kind, seen(library, text, found), is_told)
        if asked.kind != "fact":
            continue
        others = [paper for paper in found if digest(paper) not in asked.gold]
        yield Case(asked.question_id, "paper away", asked.note, seen(library, text, others))
        for paper in (paper for paper in found if asked.points and digest(paper) in asked.gold):
            if shortened := without_answer(library, text, paper, asked.points):
                yield Case(asked.question_id, "sentence away", asked.note, seen(library, text, [shortened, *others]))


def digest(found: Retrieved) -> str:
    return hashlib.sha256(found.paper.abstract.strip().encode()).hexdigest()[:10]


def seen(library: Library, text: str, papers: Sequence[Retrieved]) -> Signals:
    weigh, words = library.indexes.keyword.weights, WordVectors(library.embedder)
    ranked = [papers[place] for place in by_meaning(text, papers, weigh, words)]
    best = match(text, ranked[0], weigh)
    return signals(text, ranked, best, lambda found: meaning_coverage(text, found, weigh, words))


def without_answer(library: Library, text: str, found: Retrieved, points: Sequence[str]) -> Retrieved | None:
    """The paper without the sentence nearest to each point of the answer; None if nothing is left."""
    paper = found.found
    assert paper.vectors is not None
    told = set((paper.vectors[1:] @ library.embedder.embed_texts(points).T).argmax(axis=0).tolist())
    kept = [index for index in range(len(paper.sentences)) if index not in told]
    if not kept:
        return None
    rest = " ".join(paper.sentences[index].text for index in kept)
    vectors = np.concatenate([library.embedder.embed_texts([rest]), paper.vectors[1:][kept]])
    left = replace(paper, text=rest, sentences=tuple(paper.sentences[index] for index in kept), vectors=vectors)
    cosines = np.clip(vectors @ library.embedder.embed_question(text), 0, 1)
    return scored(left, cosines, found.keyword)


def calibrated(cases: Sequence[Case], refuse_relevant: float, refuse_answered: float) -> dict[str, object]:
    """The content of abstention.json."""
    about_one = [case for case in cases if case.is_about_one]
    relevant, relevant_figures = fit(RELEVANT, cases, "whole", "paper away", refuse_relevant)
    whole = sum(case.kind == "whole" for case in cases)
    share = refuse_answered * whole / sum(case.kind == "whole" for case in about_one)
    answered, answered_figures = fit(ANSWERED, about_one, "whole", "sentence away", share)
    answered["weights"]["full_text_matter"] = FULL_TEXT_MATTER  # type: ignore[index]  # ours, three lines above
    hopeless = min(case.seen.score for case in cases if case.kind == "whole")
    return {
        "relevant": {"model": relevant},
        "answered": {"model": answered},
        "hopeless": round(hopeless, 3),
        "other_scripts": calibration().other_scripts,
        "figures": {"relevant": relevant_figures, "answered": answered_figures},
    }


def fit(
    names: Sequence[str], cases: Sequence[Case], right: str, wrong: str, refuse: float
) -> tuple[dict[str, object], dict[str, object]]:
    """A logistic model (balanced classes, C = 10) with its cross-validated figures and curve."""
    used = [case for case in cases if case.kind in (right, wrong)]
    table = values(names, used)
    labels = np.array([case.kind == right for case in used])
    groups = [case.question_id for case in used]
    model = LogisticRegression(C=10, class_weight="balanced", max_iter=5000)
    held_out = cross_val_predict(
        model, table, labels, groups=groups, cv=GroupKFold(min(FOLDS, len(set(groups)))), method="predict_proba"
    )[:, 1]
    model.fit(table, labels)
    threshold = float(np.quantile(held_out[labels], refuse))
    curve = [
        {"refused": share, "abstained": round(float((held_out[~labels] < np.quantile(held_out[labels], share)).mean()), 3)}
        for share in (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
    ]
    weights = {name: round(float(weight), 3) for name, weight in zip(names, model.coef_[0], strict=True)}
    stored = {"bias": round(float(model.intercept_[0]), 3), "weights": weights, "threshold": round(threshold, 3)}
    figures = {
        "cases": len(used),
        "auroc_cross_validated": round(float(roc_auc_score(labels, held_out)), 3),
        "curve_cross_validated": curve,
        "held_out_unanswerable_below_threshold": below(model, names, cases, threshold),
    }
    return stored, figures


def values(names: Sequence[str], cases: Sequence[Case]) -> NDArray[np.float64]:
    assert set(names) <= {field.name for field in fields(Signals)}
    return np.array([[getattr(case.seen, name) for name in names] for case in cases])


def below(model: LogisticRegression, names: Sequence[str], cases: Sequence[Case], threshold: float) -> dict[str, str]:
    counts = {}
    for note in sorted({case.note for case in cases if case.kind == "unanswerable"}):
        asked = [case for case in cases if case.kind == "unanswerable" and case.note == note]
        low = int((model.predict_proba(values(names, asked))[:, 1] < threshold).sum())
        counts[note] = f"{low} of {len(asked)}"
    return counts


if __name__ == "__main__":
    main()
