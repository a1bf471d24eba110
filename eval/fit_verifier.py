"""Fits the local verifier's similarity gate and reports what it can and cannot tell.

    python -m eval.fit_verifier ../shared/data/judge --claims ../shared/data/questions/claims.dev.jsonl --papers ../shared/seeds

Weights come from right against wrong abstracts only (pubmedqa_conclusion's train split: each conclusion with its own abstract and
with another of its topic). The threshold for `ok` has the best balanced accuracy on attributionbench outside its dev split (see
best_threshold), the one for `mismatch` loses MISTAKEN of the right abstracts it was fitted on. Figures are of splits that took no
part. Writes `rag/verifier_weights.json` and `eval/verifier_figures.json`.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]  # ships no types
from sklearn.metrics import roc_auc_score, roc_curve  # type: ignore[import-untyped]  # ships no types

from rag.embedding import LocalEmbedder
from rag.index.keyword import TantivyIndex
from rag.passages import prepare
from rag.protocols import Embedder
from rag.readers import read
from rag.similarity import WEIGHTS_FILE, Features, Model, Vocabulary, compare, read_claim, read_model, read_paper
from rag.text import clean
from rag.types import Drafted, IndexedPaper, Paper, RawPaper, Vectors
from rag.verify import LocalVerifier, wrong_numbers

FIGURES_FILE = Path(__file__).with_name("verifier_figures.json")

MISTAKEN = 0.02
"""Share of right abstracts that may be called a mismatch."""

SMALL_SHELF = 100
"""Papers of a shelf on which word weights are checked to mean the same."""

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Pair:
    """A claim with the text it is held against, judged by people or right by construction."""

    claim: str
    evidence: str
    right: bool
    kind: str
    split: str


@dataclass(frozen=True, slots=True)
class Measured:
    """Pairs with their features, shape (n, 6), and whether a number of the claim is not the evidence's."""

    pairs: tuple[Pair, ...]
    features: Numbers
    number_wrong: Flags

    def where(self, keep: Callable[[Pair], bool]) -> Measured:
        """The pairs that `keep` keeps."""
        kept = np.array([keep(pair) for pair in self.pairs], dtype=bool)
        chosen = tuple(pair for pair, one in zip(self.pairs, kept, strict=True) if one)
        return Measured(chosen, self.features[kept], self.number_wrong[kept])

    @property
    def right(self) -> Flags:
        return np.array([pair.right for pair in self.pairs], dtype=bool)

    def probabilities(self, model: Model) -> Numbers:
        """Shape (n,)."""
        return np.array([model.probability(Features(*row)) for row in self.features])

    def gated(self, model: Model) -> Numbers:
        """The same, 0 where a number is wrong."""
        return np.where(self.number_wrong, 0.0, self.probabilities(model))


def read_pairs(path: Path) -> Iterator[Pair]:
    """The pairs of a judge file."""
    with gzip.open(path, "rt", encoding="utf8") as lines:
        for line in lines:
            row = json.loads(line)
            yield Pair(row["claim"], row["evidence"], row["label"] == "supported", row["kind"], row.get("split", ""))


class Embedded:
    """Texts with their vectors, each embedded once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[str, Vectors] = {}

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension)."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors.update(zip(new, self._embedder.embed_texts(new), strict=True))
        empty = np.zeros((0, self._embedder.dimension), dtype=np.float32)
        return np.stack([self._vectors[text] for text in texts]) if texts else empty


def measure(pairs: Iterable[Pair], embedded: Embedded, shelf: Iterable[str] | None = None) -> Measured:
    """Words weigh as in a library of the `shelf`'s texts, by default of all evidence there is."""
    pairs = tuple(pairs)
    papers = {pair.evidence: prepare(Paper("", pair.evidence)) for pair in pairs}
    vocabulary = Vocabulary(library(papers if shelf is None else shelf))
    rows = []
    for pair in pairs:
        claim = read_claim(clean(pair.claim).text, vocabulary)
        reading = read_paper(papers[pair.evidence], vocabulary)
        cosines = embedded([sentence.text for sentence in reading.found.sentences]) @ embedded([claim.text])[0]
        wrong = bool(wrong_numbers(claim.text, [reading]))
        rows.append((*astuple(compare(claim, [reading], [cosines])), wrong))
    table = np.array(rows, dtype=np.float64)
    return Measured(pairs, table[:, :-1], table[:, -1].astype(bool))


def library(texts: Iterable[str]) -> TantivyIndex:
    """A keyword index in memory."""
    index = TantivyIndex(None)
    index.apply([prepare(Paper(f"paper-{number:06d}", text)) for number, text in enumerate(sorted(texts))], [])
    return index


def fit(train: Measured, thresholds: Measured) -> dict[str, object]:
    """The content of the weights file."""
    logistic = LogisticRegression(max_iter=3000).fit(train.features, train.right)
    weights = {field.name: round(float(weight), 3) for field, weight in zip(fields(Features), logistic.coef_[0], strict=True)}
    intercept = round(float(logistic.intercept_[0]), 3)
    model = Model("", tuple(weights.values()), intercept, ok=0, mismatch=0)
    right = train.probabilities(model)[train.right]
    return {
        "weights": weights,
        "intercept": intercept,
        "ok": round(best_threshold(thresholds.gated(model), thresholds.right), 3),
        "mismatch": round(float(np.quantile(right, MISTAKEN)), 3),
    }


def best_threshold(scores: Numbers, right: Flags) -> float:
    """The middle of the thresholds whose balanced accuracy is within one standard error of the best: the curve is flat there, and
    its highest point is chance."""
    thresholds = np.linspace(0, 1, 201)
    reached = np.array([balanced_accuracy(scores, right, threshold) for threshold in thresholds])
    error = np.sqrt(reached.max() * (1 - reached.max()) / len(scores))
    return float(np.median(thresholds[reached >= reached.max() - error]))


def balanced_accuracy(scores: Numbers, right: Flags, threshold: float) -> float:
    """Mean of the share of right ones at or above the threshold and of wrong ones below."""
    return float(((scores[right] >= threshold).mean() + (scores[~right] < threshold).mean()) / 2)


def auroc(measured: Measured, model: Model) -> float:
    """Area under the ROC curve of the gate alone."""
    return round(float(roc_auc_score(measured.right, measured.probabilities(model))), 4)


def caught_at(measured: Measured, model: Model, kept: float) -> float:
    """Share of wrong abstracts below the threshold that keeps `kept` of the right ones."""
    wrong_kept, right_kept, _ = roc_curve(measured.right, measured.probabilities(model), drop_intermediate=False)
    return round(1 - float(wrong_kept[np.searchsorted(right_kept, kept)]), 3)


def figures(abstracts: Measured, small: Measured, judged: Measured, model: Model) -> dict[str, object]:
    """What the gate tells on splits that took no part in fitting."""
    test = abstracts.where(is_swap)
    dev = judged.where(lambda pair: pair.split == "dev")
    edits = sorted({pair.kind for pair in abstracts.pairs} - {"original", "topic_swap"})
    return {
        "wrong_abstracts": {
            "pairs": len(test.pairs),
            "auroc": auroc(test, model),
            "auroc_small_shelf": auroc(small.where(is_swap), model),
            "caught_by_kept": {f"{kept:.3f}": caught_at(test, model, kept) for kept in np.arange(0.8, 1.0, 0.025)},
            "called": shares(test, model),
        },
        "edits_auroc": {kind: auroc(of_kinds(abstracts, "original", kind), model) for kind in edits},
        "edits_with_a_wrong_number": {
            kind: round(float(of_kinds(abstracts, kind).number_wrong.mean()), 3) for kind in ["original", *edits]
        },
        "judged_claims": {
            "pairs": len(dev.pairs),
            "auroc": auroc(dev, model),
            "balanced_accuracy": round(balanced_accuracy(dev.gated(model), dev.right, model.ok), 3),
            "called": shares(dev, model),
        },
    }


def of_kinds(measured: Measured, *kinds: str) -> Measured:
    """The pairs of these kinds."""
    return measured.where(lambda pair: pair.kind in kinds)


def is_swap(pair: Pair) -> bool:
    """Whether a pair is of a conclusion with its own abstract, or with another of its topic."""
    return pair.kind in ("original", "topic_swap")


def shares(measured: Measured, model: Model) -> dict[str, dict[str, float]]:
    """What right and wrong pairs are called."""
    scores = measured.probabilities(model)
    called = {
        "ok": (scores >= model.ok) & ~measured.number_wrong,
        "mismatch": scores < model.mismatch,
        "number_mismatch": (scores >= model.mismatch) & measured.number_wrong,
    }
    called["weak"] = ~np.logical_or.reduce(list(called.values()))
    return {
        name: {support: round(float(flags[chosen].mean()), 3) for support, flags in called.items()}
        for name, chosen in (("right", measured.right), ("wrong", ~measured.right))
    }


def called_claims(claims: Path, shelf: Path, embedder: Embedder, model: Model) -> dict[str, dict[str, int]]:
    """What the whole verifier calls the claims of a file about papers, by label or kind of change."""
    papers = {}
    for file in sorted(shelf.iterdir()):
        papers.update({name_of(raw.abstract): indexed(raw, embedder) for raw in read(file) if isinstance(raw, RawPaper)})
    corpus = TantivyIndex(None)
    corpus.apply(list(papers.values()), [])
    verifier = LocalVerifier(embedder, corpus, model=model)
    counted: dict[str, dict[str, int]] = {}
    for line in claims.read_text(encoding="utf8").splitlines():
        row = json.loads(line)
        support = verifier.check(Drafted(row["claim"] + " [1]", (1,)), [papers[row["pid"]]]).support
        kind = counted.setdefault(row["change_kind"] or row["label"], {})
        kind[support] = kind.get(support, 0) + 1
    return counted


def name_of(abstract: str) -> str:
    """How the claims file names a paper: by the hash of its abstract."""
    return hashlib.sha256(abstract.strip().encode()).hexdigest()[:10]


def indexed(raw: RawPaper, embedder: Embedder) -> IndexedPaper:
    """A paper read from a file, with its vectors."""
    found = prepare(Paper(name_of(raw.abstract), raw.abstract, raw.title, raw.authors, category=raw.category, year=raw.year))
    texts = ["", *(sentence.text for sentence in found.sentences)]
    return IndexedPaper(found.paper, found.text, found.sentences, embedder.embed_texts(texts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("judge", type=Path, help="folder with pubmedqa_conclusion.jsonl.gz and attributionbench.jsonl.gz")
    parser.add_argument("--claims", type=Path, help="claims about the papers of --papers")
    parser.add_argument("--papers", type=Path, help="folder of papers that --claims names")
    given = parser.parse_args()
    embedder = LocalEmbedder()
    embedded = Embedded(embedder)
    conclusions = list(read_pairs(given.judge / "pubmedqa_conclusion.jsonl.gz"))
    abstracts = measure(conclusions, embedded)
    judged = measure(read_pairs(given.judge / "attributionbench.jsonl.gz"), embedded)
    train = abstracts.where(lambda pair: is_swap(pair) and pair.split == "train")
    fitted = fit(train, judged.where(lambda pair: pair.split != "dev"))
    WEIGHTS_FILE.write_text(json.dumps(fitted, indent=1) + "\n", encoding="utf8")
    model = read_model()
    small = measure(
        [pair for pair in conclusions if is_swap(pair) and pair.split != "train"],
        embedded,
        sorted({pair.evidence for pair in conclusions})[:SMALL_SHELF],
    )
    found = figures(abstracts.where(lambda pair: pair.split != "train"), small, judged, model)
    report: dict[str, object] = {"verifier": model.name, "embedding": embedder.model, **found}
    if given.claims:
        report["claims"] = called_claims(given.claims, given.papers, embedder, model)
    FIGURES_FILE.write_text(json.dumps(report, indent=1) + "\n", encoding="utf8")
    print(FIGURES_FILE.read_text(encoding="utf8"))


if __name__ == "__main__":
    main()
