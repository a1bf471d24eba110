"""What each question adds to each measure. The question is the unit: `eval/figures.py` puts the parts together.

Rules for all: an abstention holds no claims, so it is never counted as faithful; claims and points a judge was given and did not
return count against the answer (never out of the denominator) and are missing from `scored`; a question that ended in an error
counts as a failure wherever success is counted; what cannot be told at all is left undefined, neither 0 nor 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import ir_measures
from ir_measures import RR, Qrel, R, ScoredDoc, nDCG

from eval.question_set import Question
from eval.runs import AnswerRow, ClaimVerdict, Judgement, PaperRow, QuoteRow, Record, Run, SentenceRow
from rag.markers import only_of_papers, without_markers

ENOUGH_POINTS = 0.5
"""Share of its points from which an answer counts as correct."""

UNJUDGED = ClaimVerdict(claim=-1, word="unjudged")


@dataclass(frozen=True, slots=True)
class Part:
    """What a question adds: `total` of `count`; `scored` of `asked` could be told. Zero counts add nothing."""

    total: float = 0.0
    count: float = 0.0
    scored: int = 0
    asked: int = 0


NOTHING = Part()


def share(hits: int, of: int, scored: int | None = None) -> Part:
    """`hits` of `of`, of which `scored` (by default all) could be told."""
    return Part(hits, of, of if scored is None else scored, of)


def yes(fact: bool | None) -> Part:
    """One yes or no; None is "asked but could not be told, so no"."""
    return Part(float(bool(fact)), 1, int(fact is not None), 1)


@dataclass(frozen=True)
class Seen:
    """A question with what came of it; `record` is None while it was not asked."""

    question: Question
    record: Record | None
    judgement: Judgement | None

    @property
    def answer(self) -> AnswerRow | None:
        return self.record.answer if self.record else None

    @property
    def is_answered(self) -> bool:
        return self.answer is not None and self.answer.status == "answered"

    @property
    def is_correct(self) -> bool | None:
        """Answered from a gold paper with ENOUGH_POINTS of the points and nothing forbidden; None without an answer or judge."""
        if self.answer is None or (self.is_answered and self.judgement is None):
            return None
        if not self.is_answered or not self.question.is_answerable:
            return False
        assert self.judgement is not None
        points = self.judgement.points
        told = sum(one is True for one in points) >= ENOUGH_POINTS * len(self.question.points)
        cited = {citation.paper.pid for citation in self.answer.citations}
        return told and bool(cited & self.right) and True not in self.judgement.must_not

    @property
    def confidence(self) -> float | None:
        """The fused score of the best paper: what the engine itself decides by. In [0, 1]."""
        return self.answer.papers[0].score if self.answer and self.answer.papers else None

    @cached_property
    def right(self) -> frozenset[str]:
        return frozenset((*self.question.gold, *self.question.also))

    @cached_property
    def shown(self) -> list[str]:
        return [scored.paper.pid for scored in self.answer.papers] if self.answer else []

    @cached_property
    def claims(self) -> list[tuple[int, SentenceRow]]:
        return claims_of(self.answer) if self.answer else []

    @cached_property
    def verdicts(self) -> list[tuple[SentenceRow, ClaimVerdict]]:
        """Every claim submitted, with the judge's word on it, or `unjudged`."""
        said = {one.claim: one for one in self.judgement.claims} if self.judgement else {}
        return [(sentence, said.get(place, UNJUDGED)) for place, sentence in self.claims]


def claims_of(answer: AnswerRow) -> list[tuple[int, SentenceRow]]:
    """The sentences that claim something: all with a word in them, of an answer that does not abstain. By place from 0."""
    if answer.status != "answered":
        return []
    return [
        (place, sentence)
        for place, sentence in enumerate(answer.sentences)
        if any(char.isalnum() for char in without_markers(sentence.text))
    ]


def seen_of(run: Run) -> list[Seen]:
    """Every question of a run, in the set's order."""
    return [Seen(one, run.records.get(one.id), run.judgements.get(one.id)) for one in run.questions]


# Faithfulness and citations


def faithfulness(seen: Seen) -> Part:
    """Supported claims / claims submitted to the judge (Min et al., 2023, FActScore; sentences are the claims). "Partly" is not
    supported; a claim the judge did not return is in the denominator."""
    judged = sum(verdict.word != "unjudged" for _, verdict in seen.verdicts)
    return share(sum(verdict.word == "supported" for _, verdict in seen.verdicts), len(seen.verdicts), judged)


def contradiction_rate(seen: Seen) -> Part:
    """Claims that a cited abstract contradicts / claims judged (the C class of natural language inference: Bowman et al., 2015).
    Undefined under a judge that is blind to negation."""
    if seen.judgement is None or seen.judgement.judge.startswith("local"):
        return Part(asked=len(seen.verdicts))
    judged = sum(verdict.word != "unjudged" for _, verdict in seen.verdicts)
    return Part(sum(v.word == "contradicted" for _, v in seen.verdicts), judged, judged, len(seen.verdicts))


def unborne_rate(seen: Seen) -> Part:
    """Claims that no paper shown bears out, cited or not / claims: what was invented."""
    judged = sum(verdict.word != "unjudged" for _, verdict in seen.verdicts)
    nowhere = sum(v.word not in ("supported", "partly", "unjudged") and not v.elsewhere for _, v in seen.verdicts)
    return Part(nowhere, judged, judged, len(seen.verdicts))


def citation_recall(seen: Seen) -> Part:
    """Claims that their own citations together bear out / claims; one without a citation is not borne out, whatever the sentence
    before it cites (Gao et al., 2023, ALCE, section 4.3)."""
    judged = sum(verdict.word != "unjudged" for _, verdict in seen.verdicts)
    return share(sum(is_recalled(*pair) for pair in seen.verdicts), len(seen.verdicts), judged)


def is_recalled(sentence: SentenceRow, verdict: ClaimVerdict) -> bool:
    return verdict.word == "supported" and bool(sentence.markers)


def citation_precision(seen: Seen) -> Part:
    """Relevant citations / citations. A citation is relevant if its claim is recalled and it either bears the claim out alone or
    cannot be left out: without it the rest would not (Gao et al., 2023, ALCE, section 4.3, the leave-one-out rule)."""
    hits = citations = scored = 0
    for sentence, verdict in seen.verdicts:
        citations += len(sentence.markers)
        scored += len(sentence.markers) if verdict.word != "unjudged" else 0
        if is_recalled(sentence, verdict):
            hits += sum(marker in verdict.alone or marker in verdict.needed for marker in sentence.markers)
    return share(hits, citations, scored)


def misattribution_rate(seen: Seen) -> Part:
    """Cited claims that their citations do not bear out while another paper shown does / cited claims: true, but of the wrong
    paper (the "citation error" of Liu et al., 2023, Evaluating Verifiability)."""
    cited = [verdict for sentence, verdict in seen.verdicts if sentence.markers]
    judged = [verdict for verdict in cited if verdict.word != "unjudged"]
    return Part(sum(v.word != "supported" and bool(v.elsewhere) for v in judged), len(judged), len(judged), len(cited))


def uncited_claim_rate(seen: Seen) -> Part:
    """Claims without a citation / claims. No judge is needed."""
    return share(sum(not sentence.markers for _, sentence in seen.claims), len(seen.claims))


def marker_validity(seen: Seen) -> Part:
    """Markers that stand for a citation / markers the generator wrote, those removed included. Markers are read from the text
    again, in every form (`[1, 2]`, `[1-3]`, `【1】`), by line and list item too."""
    if seen.answer is None:
        return NOTHING
    found = good = 0
    known = {citation.marker for citation in seen.answer.citations}
    for sentence in seen.answer.sentences:
        read = only_of_papers(sentence.text, len(seen.answer.citations))
        found += len(read.markers) + read.removed
        good += len(set(read.markers) & known & set(sentence.markers))
    return share(good, found + seen.answer.invalid_markers)


def quotes_verbatim(seen: Seen) -> Part:
    """Quotes that are the words at their offsets of the abstract / quotes, of citations and of evidence. No judge is needed."""
    if seen.answer is None:
        return NOTHING
    papers = {citation.marker: citation.paper for citation in seen.answer.citations}
    evidence = [one for sentence in seen.answer.sentences for one in sentence.evidence]
    quotes: list[QuoteRow] = [*seen.answer.citations, *evidence]
    return share(sum(is_verbatim(one, papers.get(one.marker)) for one in quotes), len(quotes))


def is_verbatim(one: QuoteRow, paper: PaperRow | None) -> bool:
    return paper is not None and bool(one.quote.strip()) and paper.abstract[one.start : one.end] == one.quote


# Correctness


def points_covered(seen: Seen) -> Part:
    """Points of the reference answer that the answer tells / points, over answerable questions; an abstention tells none
    (nugget recall: Voorhees, 2003, TREC QA)."""
    points = len(seen.question.points)
    if not seen.question.is_answerable or not points or seen.record is None:
        return NOTHING
    if seen.is_answered and seen.judgement is None:
        return share(0, points, 0)
    told = list(seen.judgement.points[:points]) if seen.judgement and seen.is_answered else [False] * points
    scored = sum(one is not None for one in told) if seen.answer else 0
    return share(sum(one is True for one in told), points, scored)


def must_not_violations(seen: Seen) -> Part:
    """Forbidden statements that the answer makes / forbidden statements that could be told of. An abstention makes none."""
    forbidden = len(seen.question.must_not)
    if not forbidden or seen.answer is None:
        return Part(asked=forbidden)
    said = seen.judgement.must_not if seen.judgement and seen.is_answered else (None if seen.is_answered else False,) * forbidden
    told = [one for one in said if one is not None]
    return Part(sum(told), len(told), len(told), forbidden)


def litqa_precision(seen: Seen) -> Part:
    """Correct answers / answers given (Skarlinski et al., 2024, LitQA2). To answer what the papers do not tell is not correct;
    questions with a false premise are left out. See `Seen.is_correct`."""
    if seen.question.has_false_premise or (seen.answer is not None and not seen.is_answered):
        return NOTHING
    return yes(seen.is_correct) if seen.is_answered else NOTHING


def litqa_accuracy(seen: Seen) -> Part:
    """Correct answers / answerable questions, errors and refusals counted as not correct (Skarlinski et al., 2024, LitQA2)."""
    return yes(seen.is_correct) if seen.question.is_answerable and seen.record else NOTHING


# Abstention


def abstains(seen: Seen) -> bool | None:
    """`not_in_corpus` and `needs_full_text` both abstain; None without an answer."""
    return None if seen.answer is None else not seen.is_answered


def abstention_recall(seen: Seen) -> Part:
    """Unanswerable questions that were abstained from / unanswerable questions, those with a false premise left out."""
    if seen.question.is_answerable or seen.question.has_false_premise or seen.record is None:
        return NOTHING
    return yes(abstains(seen))


def abstention_precision(seen: Seen) -> Part:
    """Abstentions from unanswerable questions / abstentions, questions with a false premise left out."""
    if seen.question.has_false_premise or not abstains(seen):
        return NOTHING
    return yes(not seen.question.is_answerable)


def over_refusal(seen: Seen) -> Part:
    """Answerable questions that were abstained from / answerable questions."""
    if not seen.question.is_answerable or seen.record is None:
        return NOTHING
    refused = abstains(seen)
    return Part(float(bool(refused)), float(refused is not None), int(refused is not None), 1)


# Retrieval


def gold_in_top(seen: Seen, k: int) -> Part:
    """Of one gold paper: whether it or one as good is among the first `k` shown. Of several: the share of them that is."""
    if not seen.question.is_answerable or seen.record is None:
        return NOTHING
    top = set(seen.shown[:k])
    gold = seen.question.gold
    hit = sum(one in top for one in gold) / len(gold) if len(gold) > 1 else float(bool(seen.right & top))
    return Part(hit, 1, int(seen.answer is not None), 1)


def gold_first(seen: Seen) -> Part:
    """Whether the first paper shown is gold or as good."""
    if not seen.question.is_answerable or seen.record is None:
        return NOTHING
    return yes(None if seen.answer is None else bool(seen.shown) and seen.shown[0] in seen.right)


def first_citation_gold(seen: Seen) -> Part:
    """Whether the first citation is of a gold paper or one as good; an abstention cites none."""
    if not seen.question.is_answerable or seen.record is None:
        return NOTHING
    if seen.answer is None:
        return yes(None)
    cited = [citation.paper.pid for citation in seen.answer.citations] if seen.is_answered else []
    return yes(bool(cited) and cited[0] in seen.right)


def ranked(measure: ir_measures.Measure) -> Callable[[Seen], Part]:
    """A TREC measure of the papers shown (a paper not shown counts as not found), by ir-measures; gold grades 1, `also` is left
    out of the ranking, since not finding it is no fault and finding it none either."""

    def of(seen: Seen) -> Part:
        if not seen.question.is_answerable or seen.record is None:
            return NOTHING
        if seen.answer is None:
            return yes(None)
        gold = [Qrel("q", one, 1) for one in seen.question.gold]
        counted = [one for one in dict.fromkeys(seen.shown) if one in seen.question.gold or one not in seen.right]
        run = [ScoredDoc("q", one, float(-place)) for place, one in enumerate(counted)]
        return Part(float(ir_measures.calc_aggregate([measure], gold, run)[measure]) if run else 0.0, 1, 1, 1)

    of.__doc__ = f"{measure} of the papers shown, by ir-measures (trec_eval's definition)."
    return of


def error_rate(seen: Seen) -> Part:
    """Questions that ended in an error / questions asked."""
    return yes(seen.record.error is not None) if seen.record else NOTHING


def llm_failure_rate(seen: Seen) -> Part:
    """Answers on the way to which an LLM failed and the papers' own sentences stood in / answers."""
    return yes(bool(seen.record.failures)) if seen.record and seen.record.answer else NOTHING


NDCG_10, RECALL_5, RECALL_10, RR_10 = (ranked(measure) for measure in (nDCG @ 10, R @ 5, R @ 10, RR @ 10))
