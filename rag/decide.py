"""Step 3: is there evidence for an answer? If not, the answer is that there is none.

Two logistic models, fitted by `eval/calibrate_abstention.py` on questions whose paper, or whose paper's telling sentence, was
taken away; the curve and the numbers used here are in `rag/abstention.json`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rag.match import WORD, Match
from rag.types import Retrieved, Status

CALIBRATION = Path(__file__).with_name("abstention.json")

RUNNERS_UP = 5
"""How many papers after the best one tell what "no better than the rest" scores."""

ENOUGH_ASKED = 4
"""Content words beside the paper's name from which their absence tells something: `What is WC-penalty?` has none."""

NOTHING_IN_COMMON = 0.15
"""Fused score below which a paper that shares no word with the question is not about it (`Is the moon made of cheese?`)."""

CLEAR_LEAD = 0.1
"""A named paper is the one meant when it leads by so much."""

ASKS_A_NUMBER = re.compile(
    r"\bhow (?:many|much|fast|large|big|long|often|far|high|low|small)\b|\bby how\b|多少|多快|几倍|多大"
    r"|\b(?:what|which)(?:'s| is| are| was| were)? (?:the |its |their )?(?:\w+ ){0,2}"
    r"(?:percentage|percent|share|fraction|accuracy|score|speed-?up|gain|rate|rank|number|size|cost|concentration|value|factor)\b",
    re.IGNORECASE,
)
NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|dozen|half|twice|double|triple|hundred|thousand|million|single|both)\b",
    re.IGNORECASE,
)
FULL_TEXT_MATTER = re.compile(
    r"\b(?:learning rates?|batch sizes?|hyper-?parameters?|licen[cs]ed?|github|repositor(?:y|ies)|source code|code available"
    r"|(?:table|figure|fig\.?|section|equation|eq\.?|theorem|lemma|appendix) ?[A-Z]?\d+|appendix|random seeds?|epochs?"
    r"|optimi[sz]ers?|dropout|weight decay|dollars?|usd|p-?values?|confidence intervals?|standard deviations?|perplexity|funding"
    r"|funded|grants?|affiliations?|e-?mail|gpu type|hardware|prompt templates?|page numbers?|baseline numbers?|ablation)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Signals:
    """What the two models see of the best paper: shares and scores in [0, 1], but for `lead`, its fused score over the mean of
    the runners-up, and `length`, ln(1 + words of the question): no paper holds all words of a long question, which scores lower
    for it. `is_named` (and something particular is asked of it), `number_missing` and `full_text_matter` are 0 or 1; `meaning` is
    1 for a paper that is not named."""

    score: float
    sentence: float
    lead: float
    coverage: float
    sentence_coverage: float
    meaning: float
    is_named: float
    missing_names: float
    number_missing: float
    full_text_matter: float
    length: float


def signals(question: str, papers: Sequence[Retrieved], best: Match, meaning: Callable[[Match], float]) -> Signals:
    """`best` is the first of `papers` held against the question; `meaning` gives its meaning coverage if it is named."""
    ranked = sorted(zip(best.found.sentence_scores, best.found.found.sentences, strict=True), key=lambda pair: -pair[0])
    telling = " ".join(sentence.text for _, sentence in ranked[:2])
    runners_up = [paper.score for paper in papers[1 : 1 + RUNNERS_UP]]
    matter = FULL_TEXT_MATTER.search(question)
    return Signals(
        score=best.found.score,
        sentence=max(best.found.sentence_scores, default=0.0),
        lead=best.found.score - (sum(runners_up) / len(runners_up) if runners_up else 0.0),
        coverage=best.coverage,
        sentence_coverage=max(best.sentence_coverage, default=0.0),
        meaning=meaning(best) if best.is_named else 1.0,
        is_named=float(best.is_named and (matter is not None or len(best.asked) >= ENOUGH_ASKED)),
        missing_names=len(best.missing_names) / len(best.names) if best.names else 0.0,
        number_missing=float(bool(ASKS_A_NUMBER.search(question)) and not NUMBER.search(telling)),
        full_text_matter=float(matter is not None and matter.group().casefold() not in best.found.found.text.casefold()),
        length=math.log1p(len(WORD.findall(question))),
    )


@dataclass(frozen=True, slots=True)
class Model:
    """A logistic model: probability = 1 / (1 + exp(-(bias + weights · signals))); evidence enough from `threshold` on."""

    bias: float
    weights: Mapping[str, float]
    threshold: float

    def probability(self, seen: Signals) -> float:
        """In [0, 1]."""
        return 1 / (1 + math.exp(-(self.bias + sum(weight * getattr(seen, name) for name, weight in self.weights.items()))))


@dataclass(frozen=True, slots=True)
class Calibration:
    """`relevant`: is the best paper about the question? `answered`: do its words answer a question that names it?
    `hopeless`: the fused score below which not even an LLM is asked. `other_scripts`: the dense score below which a question in
    another script, whose words say nothing, has no paper (from 10 answerable and 7 other Chinese questions: a coarse number)."""

    relevant: Model
    answered: Model
    hopeless: float
    other_scripts: float


@lru_cache(maxsize=1)
def calibration() -> Calibration:
    """The numbers in `rag/abstention.json`."""
    stored = json.loads(CALIBRATION.read_text(encoding="utf8"))
    return Calibration(
        Model(**stored["relevant"]["model"]), Model(**stored["answered"]["model"]), stored["hopeless"], stored["other_scripts"]
    )


def decide(seen: Signals, *, one_paper: bool = True) -> Status:
    """What can be said from the best paper; `one_paper` tells that the question is about one, not about which there are."""
    fitted = calibration()
    if seen.coverage == 0 and seen.score < NOTHING_IN_COMMON:
        return "not_in_corpus"
    if fitted.relevant.probability(seen) < fitted.relevant.threshold:
        return "not_in_corpus"
    is_meant = seen.is_named and (seen.lead >= CLEAR_LEAD or seen.full_text_matter)
    if one_paper and is_meant and fitted.answered.probability(seen) < fitted.answered.threshold:
        return "needs_full_text"
    return "answered"


def decide_by_meaning(papers: Sequence[Retrieved]) -> Status:
    """What can be said of a question whose words cannot be compared with the papers'."""
    return "answered" if papers[0].dense >= calibration().other_scripts else "not_in_corpus"


def is_hopeless(papers: Sequence[Retrieved]) -> bool:
    """Whether nothing retrieved comes near the question."""
    return not papers or papers[0].score < calibration().hopeless
