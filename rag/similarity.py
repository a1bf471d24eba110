"""How near a sentence is to an abstract: six features and the logistic model over them.

The features see words and meaning, not truth: negation and direction pass them (AUROC about .55 on such edits). Weights and
thresholds are fitted by `eval/fit_verifier.py` on right against wrong abstracts and kept in `verifier_weights.json`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from rag.match import names_in
from rag.numbers import held_values
from rag.types import IndexedPaper, Paper, Vectors

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

WEIGHTS_FILE = Path(__file__).with_name("verifier_weights.json")

REACH = 1
"""Sentences before and after the one nearest in meaning whose words count. Words wherever they stand take chance hits in long
texts for support (AUROC on attributionbench's dev split .79, with neighbours only .81)."""

LEAST_WEIGHT = 0.25
"""What a term in every abstract weighs, as a share of one that stands in a single abstract."""

REMEMBERED = 4096
"""Texts whose terms are kept at hand."""

Terms = Mapping[str, float]
"""The content terms of a text in order, each with its weight in (0, 1]."""


class Corpus(Protocol):
    """Knows how rare a word is among the papers; a keyword index is one (an empty one weighs all words alike)."""

    def count(self) -> int:
        """How many papers there are."""

    def weights(self, text: str) -> Mapping[str, float]:
        """The content terms of `text`, stemmed, in order, each with ln(1 + (N - n + 0.5) / (n + 0.5)) for n of N papers."""


class Vocabulary:
    """The content terms of texts, with weights that mean the same for a shelf of ten papers and of a million."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._read = lru_cache(REMEMBERED)(self._weigh)

    def terms(self, text: str) -> Terms:
        """Weight 1 for a term of one paper or none, LEAST_WEIGHT for one of all papers, as its idf lies between."""
        return self._read(text, self._corpus.count())

    def _weigh(self, text: str, papers: int) -> Terms:
        rarest = math.log(1 + (papers - 0.5) / 1.5) if papers else 0.0
        found = self._corpus.weights(text)
        if not rarest:
            return dict.fromkeys(found, 1.0)
        return {term: LEAST_WEIGHT + (1 - LEAST_WEIGHT) * min(1.0, idf / rarest) for term, idf in found.items()}


@dataclass(frozen=True, slots=True)
class Claim:
    """A cleaned sentence, without markers, that wants support. `names` are its names, each with the terms it is found by."""

    text: str
    terms: Terms
    names: tuple[tuple[str, frozenset[str]], ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """A paper as claims are held against it. `sentences` are the terms of each sentence; `titular` terms of title, category and
    keywords, which speak for every sentence; `own` terms of authors, venue and year, which no abstract repeats."""

    found: IndexedPaper
    sentences: tuple[Terms, ...]
    titular: frozenset[str]
    own: frozenset[str]
    numbers: frozenset[Decimal]


@dataclass(frozen=True, slots=True)
class Cited:
    """A paper that a sentence cites, at its place (from 1) among those retrieved, with the sentence's cosine to each of its
    sentences."""

    place: int
    reading: Reading
    cosines: Vectors


@dataclass(frozen=True, slots=True)
class Features:
    """Each in [0, 1] but the cosines, which lie in [-1, 1].

    recall: weight of the claim's terms held around the sentence nearest in meaning; words: best TF-IDF cosine with a sentence;
    meaning, meaning_top3: best embedding cosine with a sentence, mean of the best three; missing_names: names of the claim that
    the paper does not hold, three counting as 1; pairs: share of the claim's neighbouring terms that neighbour in a sentence.
    """

    recall: float
    words: float
    meaning: float
    meaning_top3: float
    missing_names: float
    pairs: float


def read_claim(text: str, vocabulary: Vocabulary) -> Claim:
    """`text` is cleaned and holds no markers."""
    names = tuple((name, frozenset(vocabulary.terms(name))) for name in names_in(text) if name[0].isalpha())
    return Claim(text, vocabulary.terms(text), names)


def read_paper(found: IndexedPaper, vocabulary: Vocabulary) -> Reading:
    """What a claim is held against."""
    paper = found.paper
    titular = " ".join(filter(None, (paper.title, paper.category, *paper.keywords)))
    numbers = held_values(" ".join(filter(None, (found.text, titular, paper.venue, str(paper.year or "")))))
    return Reading(
        found=found,
        sentences=tuple(vocabulary.terms(sentence.text) for sentence in found.sentences),
        titular=frozenset(vocabulary.terms(titular)),
        own=frozenset(vocabulary.terms(own_words(paper))),
        numbers=numbers,
    )


def own_words(paper: Paper) -> str:
    """Words by which a sentence names the paper rather than says something of it."""
    return " ".join(filter(None, (*paper.authors, paper.venue, str(paper.year or ""), "et al. and colleagues authors abstract")))


def compare(claim: Claim, readings: Sequence[Reading], cosines: Sequence[Vectors]) -> Features:
    """The claim against several papers together: what each bears out adds up. `cosines[i]` has one entry for each sentence of
    `readings[i]`, the claim's cosine to it."""
    own = frozenset().union(*(reading.own for reading in readings))
    wanted = {term: weight for term, weight in claim.terms.items() if term not in own} or claim.terms
    held = frozenset[str]().union(*map(terms_near, readings, cosines))
    ranked = np.sort(np.concatenate([*cosines, np.zeros(1)]))[::-1]
    return Features(
        recall=weight_held(wanted, held) / sum(wanted.values()) if wanted else 0.0,
        words=max((word_cosine(wanted, terms) for reading in readings for terms in reading.sentences), default=0.0),
        meaning=float(ranked[0]),
        meaning_top3=float(ranked[:3].mean()),
        missing_names=min(3, len(missing_names(claim, readings))) / 3,
        pairs=share_of_pairs(wanted, readings),
    )


def terms_near(reading: Reading, cosines: Vectors) -> frozenset[str]:
    """The terms of the sentence nearest in meaning and of its neighbours, with the title's."""
    nearest = int(cosines.argmax()) if len(cosines) else 0
    return held_terms(reading, max(0, nearest - REACH), nearest + REACH + 1)


def held_terms(reading: Reading, start: int, end: int) -> frozenset[str]:
    """The terms of sentences `start:end`, with the title's."""
    return reading.titular.union(*reading.sentences[start:end])


def weight_held(wanted: Terms, held: Iterable[str]) -> float:
    """How much of the wanted weight is held."""
    held = frozenset(held)
    return sum(weight for term, weight in wanted.items() if term in held)


def word_cosine(one: Terms, other: Terms) -> float:
    """Cosine of two texts by their weighted terms, each counted once; 0 with an empty one."""
    shared = sum(weight * weight for term, weight in one.items() if term in other)
    return shared / (length(one) * length(other)) if shared else 0.0


def length(terms: Terms) -> float:
    """The Euclidean length of the weights."""
    return math.sqrt(sum(weight * weight for weight in terms.values()))


def share_of_pairs(wanted: Terms, readings: Sequence[Reading]) -> float:
    """How many of the neighbouring terms are neighbours in some sentence; 0 for a claim of one term."""
    pairs = list(pairwise(wanted))
    held = {pair for reading in readings for terms in reading.sentences for pair in pairwise(terms)}
    return sum(pair in held for pair in pairs) / len(pairs) if pairs else 0.0


def missing_names(claim: Claim, readings: Sequence[Reading]) -> tuple[str, ...]:
    """The names in the claim that stand in none of the papers."""
    parts = (terms for reading in readings for terms in (reading.own, reading.titular, *reading.sentences))
    held = frozenset[str]().union(*parts)
    return tuple(name for name, terms in claim.names if not all(is_held(term, held) for term in terms))


def is_held(term: str, held: frozenset[str]) -> bool:
    """Whether a term stands there, in the singular or in the plural (`CNN` for `CNNs`: a stemmer leaves short names alone)."""
    return term in held or f"{term}s" in held or (term.endswith("s") and term[:-1] in held)


@dataclass(frozen=True, slots=True)
class Model:
    """The fitted weights. From probability `ok` on, a sentence is borne out; below `mismatch` its abstract is a wrong one. It is
    cited anew to a paper that bears it out with probability `anew`."""

    name: str
    weights: tuple[float, ...]
    intercept: float
    ok: float
    mismatch: float
    anew: float = 0.0

    def probability(self, features: DataclassInstance) -> float:
        """That the abstract is a right one for the claim, in [0, 1]; `features` are of the class that the model was read for."""
        logit = self.intercept + sum(w * x for w, x in zip(self.weights, astuple(features), strict=True))
        return 1 / (1 + math.exp(-logit))


def read_model(path: Path = WEIGHTS_FILE, features: type[DataclassInstance] = Features) -> Model:
    """The model as fitted, a weight for each field of `features`; its name is `local@` and 8 hex digits of the file's SHA-256."""
    content = path.read_bytes()
    fitted = json.loads(content)
    weights = tuple(float(fitted["weights"][field.name]) for field in fields(features))
    return Model(
        name=f"local@{hashlib.sha256(content).hexdigest()[:8]}",
        weights=weights,
        intercept=float(fitted["intercept"]),
        ok=float(fitted["ok"]),
        mismatch=float(fitted["mismatch"]),
        anew=float(fitted.get("anew", 0.0)),
    )
