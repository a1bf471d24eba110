"""Fits the local verifier's gate for sentences in other scripts and reports what it can and cannot tell.

    python -m eval.fit_other_scripts [--check claims.jsonl --check-papers file-or-folder]

`eval/claims_zh.jsonl` holds Chinese sentences on the sample papers, each with its paper's first author: true ones, and some with
a number changed. Each true one is held against its own paper and, as wrong citations, against the papers nearest to it: once with
the right paper among those retrieved, once without. Figures are cross-validated by paper. With --check, the same figures are
told, and not kept, of claims that took no part. Writes `rag/other_scripts_weights.json` and `eval/other_scripts_figures.json`.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]  # ships no types
from sklearn.metrics import roc_auc_score  # type: ignore[import-untyped]  # ships no types

from eval.fit_verifier import MISTAKEN, Flags, Numbers, library
from rag.cli_ingest import SAMPLES
from rag.embedding import LocalEmbedder
from rag.embedding_multilingual import MultilingualEmbedder
from rag.index.keyword import TantivyIndex
from rag.other_scripts import WEIGHTS_FILE, Nearness, OtherScripts, ScriptGate
from rag.passages import prepare
from rag.protocols import Embedder
from rag.readers import read
from rag.scripts import set_apart
from rag.similarity import Model, Vocabulary, read_claim, read_model
from rag.text import clean
from rag.types import Drafted, IndexedPaper, Paper, RawPaper, VectorBlock, Vectors
from rag.verify import LocalVerifier

CLAIMS_FILE = Path(__file__).with_name("claims_zh.jsonl")
FIGURES_FILE = Path(__file__).with_name("other_scripts_figures.json")

SHOWN = 8
"""Papers retrieved for a question."""

FOLDS = 11

CITED_ANEW = 0.05
"""Share of claims whose paper was not retrieved that may be cited anew all the same."""


class Remembering:
    """An embedder that embeds each text but once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}
        self.model = embedder.model
        self.dimension = embedder.dimension

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension)."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._embedder.embed_texts(new), strict=True))
        return np.array([self._known[text] for text in texts], dtype=np.float32).reshape(-1, self.dimension)

    def embed_question(self, question: str) -> Vectors:
        """Shape (dimension,)."""
        key = f"\0{question}"
        if key not in self._known:
            self._known[key] = self._embedder.embed_question(question)
        return self._known[key]


@dataclass(frozen=True, slots=True)
class Claimed:
    """A sentence about a paper; `true`, or with a number that is not the paper's."""

    text: str
    paper: str
    true: bool


@dataclass(frozen=True, slots=True)
class Case:
    """A claim among the papers shown, with the place (from 1) that it cites."""

    claim: Claimed
    shown: tuple[str, ...]
    place: int

    @property
    def right(self) -> bool:
        return self.shown[self.place - 1] == self.claim.paper

    @property
    def has_right(self) -> bool:
        """Whether the right paper was retrieved."""
        return self.claim.paper in self.shown


class Shelf:
    """Papers by their first authors, and claims held against them."""

    def __init__(self, papers: Iterable[RawPaper], e5: Remembering, words: Remembering) -> None:
        prepared = {raw.authors[0]: prepare(paper_of(raw)) for raw in papers if raw.authors}
        self.papers: dict[str, IndexedPaper] = {
            name: replace(found, vectors=words.embed_texts(["", *(sentence.text for sentence in found.sentences)]))
            for name, found in prepared.items()
        }
        self.embedding = e5.model
        self._e5, self._words = e5, words
        self._corpus: TantivyIndex = library(found.paper.abstract for found in prepared.values())
        self._vocabulary = Vocabulary(self._corpus)

    def cases(self, claims: Iterable[Claimed]) -> Iterator[Case]:
        """Each claim citing each paper shown, with the right one among them and without."""
        for claim in claims:
            wholes = self._e5.embed_texts([found.text for found in self.papers.values()])
            nearness = dict(zip(self.papers, wholes @ self._e5.embed_question(claim.text), strict=True))
            others = sorted((name for name in self.papers if name != claim.paper), key=lambda name: -nearness[name])
            for shown in ((claim.paper, *others[: SHOWN - 1]), tuple(others[:SHOWN])):
                yield from (Case(claim, shown, place) for place in range(1, SHOWN + 1))

    def features(self, case: Case, *, alone: bool = False) -> Nearness:
        """With `alone`, of the paper cited without the others."""
        if alone:
            case = Case(case.claim, case.shown[case.place - 1 : case.place], 1)
        gate = self._gate(case)
        return gate.nearness([gate.hold(case.place)])

    def rival(self, case: Case) -> float:
        """The best cosine with a sentence of another paper."""
        gate = self._gate(case)
        return gate.rival([gate.hold(case.place)])

    def _gate(self, case: Case) -> ScriptGate:
        claim = read_claim(set_apart(clean(case.claim.text).text), self._vocabulary)
        return self._across(ANY).gate(claim, [self.papers[name] for name in case.shown], [case.place], self._vocabulary)

    def word(self, case: Case, model: Model | None) -> str:
        """What the whole verifier says of it; without `model`, as it is without the extra."""
        verifier = LocalVerifier(self._words, self._corpus, other_scripts=self._across(model) if model else None)
        drafted = Drafted(f"{case.claim.text} [{case.place}]", (case.place,))
        verdict = verifier.check(drafted, [self.papers[name] for name in case.shown])
        if not verdict.reason.startswith("cited anew"):
            return verdict.support
        return "cited anew, rightly" if case.shown[verdict.evidence[0].marker - 1] == case.claim.paper else "cited anew, wrongly"

    def _across(self, model: Model) -> OtherScripts:
        return OtherScripts(lambda: self._e5, nothing_stored, model=model)


ANY = Model("", (0.0,) * len(fields(Nearness)), 0.0, ok=0.5, mismatch=0.5)
"""For features alone."""


def nothing_stored(paper_ids: Sequence[str], model: str) -> VectorBlock:
    """The vectors of a catalogue that has none."""
    return VectorBlock((), (), np.zeros((0, 384), dtype=np.float32))


def paper_of(raw: RawPaper) -> Paper:
    """A paper of no catalogue."""
    return Paper(raw.authors[0], raw.abstract, raw.title, raw.authors, category=raw.category, year=raw.year)


def read_papers(path: Path) -> list[RawPaper]:
    """Of a file, or of all files of a folder."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return [raw for file in files for raw in read(file) if isinstance(raw, RawPaper)]


def read_claims(path: Path) -> list[Claimed]:
    """The lines of a claims file."""
    rows = map(json.loads, path.read_text(encoding="utf8").splitlines())
    return [Claimed(row["claim"], row["paper"], row["kind"] == "true") for row in rows]


def fitted(rows: Numbers, right: Flags) -> Model:
    """Weights and intercept in the features' own units, wrong citations together weighing as much as right ones."""
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    logistic = LogisticRegression(class_weight="balanced", max_iter=3000).fit((rows - mean) / deviation, right)
    weights = logistic.coef_[0] / deviation
    return Model("", tuple(map(float, weights)), float(logistic.intercept_[0] - weights @ mean), ok=0.5, mismatch=0.5)


def probabilities(model: Model, rows: Numbers) -> Numbers:
    """Shape (n,)."""
    return np.array([model.probability(Nearness(*row)) for row in rows])


def folds(cases: Sequence[Case]) -> Iterator[Flags]:
    """What is left out in turn: all claims about some papers."""
    fold = {name: number % FOLDS for number, name in enumerate(dict.fromkeys(case.claim.paper for case in cases))}
    for number in range(FOLDS):
        yield np.array([fold[case.claim.paper] == number for case in cases])


def with_thresholds(model: Model, scores: Numbers, cases: Sequence[Case]) -> Model:
    """`ok` is reached by MISTAKEN of the wrong citations, `mismatch` missed by MISTAKEN of the right ones, `anew` reached by some
    paper for CITED_ANEW of the claims whose paper was not retrieved."""
    right = np.array([case.right for case in cases])
    absent = scores[[not case.has_right for case in cases]].reshape(-1, SHOWN).max(axis=1)
    return replace(
        model,
        ok=float(np.quantile(scores[~right], 1 - MISTAKEN)),
        mismatch=float(np.quantile(scores[right], MISTAKEN)),
        anew=float(np.quantile(absent, 1 - CITED_ANEW)),
    )


def told(scores: Numbers, cases: Sequence[Case]) -> dict[str, float]:
    """Area under the ROC curve of right against wrong citations, with the right paper among those retrieved and without."""
    right = np.array([case.right for case in cases])
    beside = np.array([case.has_right for case in cases])

    def area(wrong: Flags) -> float:
        chosen = right | wrong
        return round(float(roc_auc_score(right[chosen], scores[chosen])), 3)

    return {"auroc": area(~right & beside), "auroc_right_paper_not_retrieved": area(~right & ~beside)}


def shares(words: Iterable[tuple[str, str]]) -> dict[str, dict[str, float]]:
    """How often what was said of each kind of case."""
    counted: dict[str, Counter[str]] = {}
    for kind, word in words:
        counted.setdefault(kind, Counter())[word] += 1
    return {
        kind: {"n": found.total()} | {word: round(count / found.total(), 3) for word, count in found.most_common()}
        for kind, found in counted.items()
    }


def kind_of(case: Case) -> str:
    """Right or wrong, by whether the right paper was retrieved too."""
    return "right" if case.right else "wrong" if case.has_right else "wrong, right paper not retrieved"


def called(shelf: Shelf, cases: Iterable[Case], numbers: Iterable[Case], model: Model | None) -> Iterator[tuple[str, str]]:
    """Kinds of cases with what is said of them; `numbers` cite the right paper with a number that is not its."""
    yield from ((kind_of(case), shelf.word(case, model)) for case in cases)
    yield from (("number changed", shelf.word(case, model)) for case in numbers if case.right)


def check(shelf: Shelf, claims: Sequence[Claimed], model: Model) -> dict[str, object]:
    """Figures of claims that took no part in fitting, before and after."""
    cases = list(shelf.cases(claim for claim in claims if claim.true))
    numbers = list(shelf.cases(claim for claim in claims if not claim.true))
    scores = probabilities(model, np.array([astuple(shelf.features(case)) for case in cases]))
    alone = probabilities(model, np.array([astuple(shelf.features(case, alone=True)) for case in cases]))
    right = np.array([case.right for case in cases])
    return {
        **told(scores, cases),
        "alone": {
            "auroc": told(alone, cases)["auroc"],
            "right_near": round(float((alone[right] >= model.ok).mean()), 3),
            "wrong_near": round(float((alone[~right] >= model.ok).mean()), 3),
            "wrong_mismatch": round(float((alone[~right] < model.mismatch).mean()), 3),
        },
        "called": shares(called(shelf, cases, numbers, model)),
        "called_without_the_extra": shares(called(shelf, cases, numbers, None)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", type=Path, help="claims that take no part")
    parser.add_argument("--check-papers", type=Path, help="the papers that --check is about")
    given = parser.parse_args()
    e5, words = Remembering(MultilingualEmbedder()), Remembering(LocalEmbedder())
    final, report = fit(Shelf(read_papers(SAMPLES), e5, words), read_claims(CLAIMS_FILE))
    FIGURES_FILE.write_text(json.dumps(report, indent=1) + "\n", encoding="utf8")
    if given.check:
        report["check"] = check(Shelf(read_papers(given.check_papers), e5, words), read_claims(given.check), final)
    print(json.dumps(report, indent=1))


def fit(shelf: Shelf, claims: Sequence[Claimed]) -> tuple[Model, dict[str, object]]:
    """The model of all claims, written to its file, and its figures, each of models that did not see the paper."""
    cases = list(shelf.cases(claim for claim in claims if claim.true))
    numbers = list(shelf.cases(claim for claim in claims if not claim.true))
    rows = np.array([astuple(shelf.features(case)) for case in cases])
    right = np.array([case.right for case in cases])
    models = [(out, fitted(rows[~out], right[~out])) for out in folds(cases)]
    scores = np.zeros(len(cases))
    for out, model in models:
        scores[out] = probabilities(model, rows[out])
    final = written(with_thresholds(fitted(rows, right), scores, cases))
    said: list[tuple[str, str]] = []
    for out, model in models:
        left_out = [case for case, is_out in zip(cases, out, strict=True) if is_out]
        said += called(shelf, left_out, (), replace(final, weights=model.weights, intercept=model.intercept))
    return final, {
        "gate": final.name,
        "embedding": shelf.embedding,
        "claims": len(claims),
        "typical_rival": round(float(np.median([shelf.rival(case) for case in cases if case.right])), 3),
        **told(scores, cases),
        "called": shares([*said, *called(shelf, (), numbers, final)]),
        "called_without_the_extra": shares(called(shelf, cases, numbers, None)),
    }


def written(model: Model) -> Model:
    """Writes the weights file and reads it again."""
    weights = {field.name: round(weight, 3) for field, weight in zip(fields(Nearness), model.weights, strict=True)}
    edges = {name: round(getattr(model, name), 3) for name in ("intercept", "ok", "mismatch", "anew")}
    WEIGHTS_FILE.write_text(json.dumps({"weights": weights, **edges}, indent=1) + "\n", encoding="utf8")
    return read_model(WEIGHTS_FILE, Nearness)


if __name__ == "__main__":
    main()
