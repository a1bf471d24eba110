"""Step 7 with an LLM: a second reader for what the local tier lets pass, blind to neither negation nor direction.

A sentence is borne out only by words that really stand in the abstract: a verdict whose quotation is not found there counts for
no more than `weak`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import BaseModel, ValidationError

from rag.errors import LLMUnavailable
from rag.markers import tidied
from rag.prompts import VERIFY_SCHEMA, load_prompt, verify_prompt
from rag.protocols import LLM, Verifier
from rag.text import clean
from rag.types import Drafted, Evidence, Retrieved, Support, Usage, Verdict

MAX_TOKENS = 800
TRIES = 2
"""A verdict that is not as asked for is asked for once more."""

SUPPORT: dict[str, Support] = {"supported": "ok", "partly": "weak", "not_stated": "mismatch", "contradicted": "mismatch"}
SCORES = {"supported": 1.0, "partly": 0.5, "not_stated": 0.1, "contradicted": 0.0}


class Judged(BaseModel):
    """One entry of the JSON object that prompts/verify asks for."""

    sentence: int
    verdict: Literal["supported", "partly", "contradicted", "not_stated"]
    paper: int | None = None
    quote: str = ""
    reason: str = ""


class Judgement(BaseModel):
    """The JSON object that prompts/verify asks for."""

    verdicts: list[Judged]


class LLMVerifier:
    """The local verifier first; what it lets pass is read by an LLM. Raises LLMUnavailable, LLMRefused."""

    def __init__(self, llm: LLM, local: Verifier) -> None:
        self._llm = llm
        self._local = local

    @property
    def name(self) -> str:
        """`llm:<model>@<digest of its prompt>`."""
        return f"llm:{self._llm.model}@{load_prompt('verify').version.partition('@')[2]}"

    async def verify(self, drafted: Drafted, papers: Sequence[Retrieved]) -> Verdict:
        """`drafted.markers` are places (from 1) in `papers`."""
        found = await self._local.verify(drafted, papers)
        if drafted.basis == "metadata" or found.score == 1.0 or found.support in ("number_mismatch", "uncited"):
            return found
        if found.support == "mismatch":
            read, usage = await self._read(drafted, papers)
            return replace(rescued(found, read, drafted.markers, papers), usage=usage)
        read, usage = await self._read(cited(drafted, tuple(evidence.marker for evidence in found.evidence)), papers)
        return replace(judged(found, read, papers), usage=usage)

    async def _read(self, drafted: Drafted, papers: Sequence[Retrieved]) -> tuple[Judged, Usage]:
        """What the LLM reads, and what all tries cost."""
        spent = Usage()
        for _ in range(TRIES):
            text, usage = await self._llm.complete(
                *verify_prompt([drafted], papers), json_schema=VERIFY_SCHEMA, max_tokens=MAX_TOKENS
            )
            spent += usage
            try:
                (verdict,) = Judgement.model_validate(json.loads(text)).verdicts
            except (ValidationError, ValueError):
                continue
            return verdict, spent
        raise LLMUnavailable(f"{self._llm.model} gave no verdict on a sentence.")


def cited(drafted: Drafted, places: tuple[int, ...]) -> Drafted:
    """The sentence as the local tier left it: citing `places`."""
    kept = tidied(drafted.text, lambda place: place if place in places else None).text
    return replace(drafted, text=kept, markers=places)


def judged(found: Verdict, read: Judged, papers: Sequence[Retrieved]) -> Verdict:
    """The verdict of both readers: the LLM's word, with its quotation where that is found in a paper the sentence cites."""
    evidence = tuple(quotation(one, read, papers) for one in found.evidence)
    support = SUPPORT[read.verdict]
    if support == "ok" and evidence == found.evidence and not stands_in(read.quote, papers, found):
        return replace(
            found, support="weak", reason="the reader's quotation does not stand in the abstract", score=SCORES["partly"]
        )
    return Verdict(support, () if support == "mismatch" else evidence, one_line(read), SCORES[read.verdict])


def rescued(found: Verdict, read: Judged, places: Sequence[int], papers: Sequence[Retrieved]) -> Verdict:
    """What the local tier found nothing for, and the LLM quotes words for: those words are its evidence."""
    for place in places:
        abstract = papers[place - 1].paper.abstract
        span = find_quote(abstract, read.quote)
        if SUPPORT[read.verdict] != "mismatch" and span and read.paper in (None, place):
            score = SCORES[read.verdict]
            evidence = Evidence(place, *span, abstract[slice(*span)], score)
            return Verdict(SUPPORT[read.verdict], (evidence,), one_line(read), score)
    return found


def one_line(read: Judged) -> str:
    """The LLM's reason."""
    return " ".join(read.reason.split())[:200] or read.verdict.replace("_", " ")


def quotation(evidence: Evidence, read: Judged, papers: Sequence[Retrieved]) -> Evidence:
    """The LLM's quotation in place of the local tier's, where it stands in the same paper."""
    span = find_quote(papers[evidence.marker - 1].paper.abstract, read.quote)
    if span is None or (read.paper is not None and read.paper != evidence.marker):
        return evidence
    start, end = span
    return replace(evidence, start=start, end=end, quote=papers[evidence.marker - 1].paper.abstract[start:end])


def stands_in(quote: str, papers: Sequence[Retrieved], found: Verdict) -> bool:
    """Whether a quotation stands in one of the papers that are cited."""
    return any(find_quote(papers[one.marker - 1].paper.abstract, quote) for one in found.evidence)


def find_quote(abstract: str, quote: str) -> tuple[int, int] | None:
    """Where the words of `quote` stand in the abstract as read, as verbatim offsets; white space, case and punctuation aside
    (models change quotation marks and dashes)."""
    words = re.findall(r"\w+", quote)
    if not words:
        return None
    reading = clean(abstract)
    match = re.search(r"\b" + r"\W+".join(words) + r"\b", reading.text, re.IGNORECASE)
    return reading.span(*match.span()) if match else None
