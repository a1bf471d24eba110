"""How good a judge is: its words on labelled claims. A small set of our own is always there; others are files of
`{claim, evidence, label, kind, split?}`, label being supported, unsupported or contradicted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats  # type: ignore[import-untyped]  # ships no types

from eval.answers import read_cached, write_cached
from eval.datasets import rows
from eval.judges import Judge, LocalJudge, judgement_key
from eval.question_set import Question
from eval.runs import AnswerRow, CitationRow, ClaimVerdict, Judgement, PaperRow, ScoredRow, SentenceRow, digest_of
from eval.stats import Interval, balanced_accuracy, cohen_kappa, wilson
from rag.errors import FootnoteError
from rag.text import split_sentences

CANARIES = Path(__file__).with_name("canaries.jsonl")

AT_ONCE = 4

A_LIBRARY = 50
"""Texts from which a labelled set is a library of its own to the local judge, as its papers would be around a claim."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A claim whose label is known. `kind` tells what was done to it, or `human`."""

    claim: str
    evidence: str
    label: str
    kind: str

    @property
    def is_supported(self) -> bool:
        return self.label == "supported"


@dataclass(frozen=True, slots=True)
class OfKind:
    """How many claims of a kind were judged, the share called rightly supported or not with its Wilson interval, and for a kind
    of error the AUROC against all supported claims."""

    judged: int
    right: float
    interval: Interval | None
    auroc: float | None


@dataclass(frozen=True, slots=True)
class Quality:
    """A judge on one labelled set. `confusion[label][word]` counts; measures take "supported" against all else, over the
    claims judged; `auroc` where the judge gives scores. None is undefined."""

    judge: str
    name: str
    labelled: int
    judged: int
    confusion: dict[str, dict[str, int]]
    by_kind: dict[str, OfKind]
    balanced_accuracy: float | None
    kappa: float | None
    auroc: float | None


async def measure_judge(judge: Judge, files: Sequence[Path], cache: Path) -> list[Quality]:
    """On our own canaries, then on each file, or on the dev split of it if it has one. Raises InputError."""
    return [await quality(judge, file, cache) for file in (CANARIES, *files)]


async def quality(judge: Judge, file: Path, cache: Path) -> Quality:
    """Raises InputError."""
    labelled = read_labelled(file)
    texts = {one.evidence for one in labelled}
    if isinstance(judge, LocalJudge) and len(texts) >= A_LIBRARY:
        judge = judge.among(sorted(texts))
    gate, library = asyncio.Semaphore(AT_ONCE), digest_of(sorted(texts))

    async def said(one: Labelled) -> ClaimVerdict:
        async with gate:
            return await word_on(judge, one, cache, library)

    verdicts = await asyncio.gather(*map(said, labelled))
    return compared(judge.name, file.name.split(".")[0], labelled, verdicts)


def read_labelled(file: Path) -> list[Labelled]:
    """The claims of a file; of one with splits, those for development only. Raises InputError."""
    found = [(row.get("split", "dev"), row) for row in rows(file, "claim", "evidence", "label")]
    splits = {split for split, _ in found}
    keep = "dev" if "dev" in splits else "test"
    return [
        Labelled(str(row["claim"]), str(row["evidence"]), str(row["label"]), str(row.get("kind", "")))
        for split, row in found
        if split == keep
    ]


async def word_on(judge: Judge, one: Labelled, cache: Path, library: str) -> ClaimVerdict:
    """The judge's verdict on a claim that cites its evidence; `unjudged` where it failed."""
    question, answer = Question(id="claim", question="Is it so?", kind="unanswerable"), as_answer(one)
    key = judgement_key(judge.name, question, answer, library)
    kept = read_cached(cache, key, Judgement)
    if kept is None:
        try:
            kept = await judge.judge(question, answer)
        except FootnoteError as error:
            return ClaimVerdict(claim=0, word="unjudged", reason=str(error))
        write_cached(cache, key, kept)
    return kept.claims[0] if kept.claims else ClaimVerdict(claim=0, word="unjudged")


def as_answer(one: Labelled) -> AnswerRow:
    """An answer of this one claim, which cites a paper whose abstract is the evidence."""
    paper = PaperRow(paper_id="evidence", abstract=one.evidence, cite_as="The paper")
    first = next(iter(split_sentences(one.evidence)), None)
    start, end = (first.start, first.end) if first else (0, len(one.evidence))
    claim = one.claim.strip().rstrip(".") + " [1]."
    return AnswerRow(
        status="answered",
        text=claim,
        sentences=(SentenceRow(text=claim, markers=(1,)),),
        citations=(CitationRow(marker=1, paper=paper, quote=one.evidence[start:end], start=start, end=end),),
        papers=(ScoredRow(paper=paper, score=1.0),),
    )


def compared(judge: str, name: str, labelled: Sequence[Labelled], verdicts: Sequence[ClaimVerdict]) -> Quality:
    """The judge's words against the labels. Claims without a word are counted and not scored."""
    pairs = [(one, verdict) for one, verdict in zip(labelled, verdicts, strict=True) if verdict.word != "unjudged"]
    labels = [one.is_supported for one, _ in pairs]
    words = [verdict.word == "supported" for _, verdict in pairs]
    return Quality(
        judge=judge,
        name=name,
        labelled=len(labelled),
        judged=len(pairs),
        confusion=confusion(zip(labelled, verdicts, strict=True)),
        by_kind={kind: of_kind(kind, pairs) for kind in sorted({one.kind for one, _ in pairs})},
        balanced_accuracy=balanced_accuracy(labels, words),
        kappa=cohen_kappa(labels, words) if pairs else None,
        auroc=auroc(pairs),
    )


def confusion(pairs: Iterable[tuple[Labelled, ClaimVerdict]]) -> dict[str, dict[str, int]]:
    """label → word → how many, `unjudged` among the words."""
    table: dict[str, Counter[str]] = {}
    for one, verdict in pairs:
        table.setdefault(one.label, Counter())[verdict.word] += 1
    return {label: dict(sorted(words.items())) for label, words in sorted(table.items())}


def of_kind(kind: str, pairs: Sequence[tuple[Labelled, ClaimVerdict]]) -> OfKind:
    """How many of a kind are told rightly."""
    right = [one.is_supported == (verdict.word == "supported") for one, verdict in pairs if one.kind == kind]
    against = [pair for pair in pairs if pair[0].is_supported or pair[0].kind == kind]
    only_errors = not any(one.is_supported for one, _ in pairs if one.kind == kind)
    return OfKind(
        len(right),
        round(sum(right) / len(right), 4),
        wilson(sum(right), len(right)),
        auroc(against) if only_errors else None,
    )


def auroc(pairs: Sequence[tuple[Labelled, ClaimVerdict]]) -> float | None:
    """Area under the ROC curve of the judge's scores, ties half: U / (n₁ n₀) (Mann and Whitney, 1947). None without both labels
    and all scores."""
    right = [verdict.score for one, verdict in pairs if one.is_supported and verdict.score is not None]
    wrong = [verdict.score for one, verdict in pairs if not one.is_supported and verdict.score is not None]
    if not right or not wrong or len(right) + len(wrong) < len(pairs):
        return None
    ranks = stats.rankdata(np.array([*right, *wrong]))
    above = float(ranks[: len(right)].sum()) - len(right) * (len(right) + 1) / 2
    return round(above / (len(right) * len(wrong)), 4)
