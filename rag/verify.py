"""Step 7: does the cited text bear each sentence out? The local tier: exact checks and a similarity gate.

It never says "verified": it tells a wrong abstract from a right one, and a number that is not there, but is blind to negation
and direction. A verifier that reads, such as an LLM, sits behind the same `Verifier` protocol.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from rag.evidence import quotation, quote
from rag.fields import check_fields
from rag.gates import Gate, WordGate
from rag.markers import without_markers
from rag.numbers import missing_numbers, swapped_numbers
from rag.other_scripts import OtherScripts, in_other_script
from rag.protocols import Embedder
from rag.scripts import is_latin, set_apart
from rag.similarity import Cited, Claim, Corpus, Model, Reading, Vocabulary, read_claim, read_model, read_paper
from rag.text import clean
from rag.types import Drafted, IndexedPaper, Retrieved, Support, Vectors, Verdict

AT_ONCE = 2
"""Sentences checked at the same time; each takes a few milliseconds of one core."""

NO_IDEA = 0.5
"""The score of a sentence whose words cannot be compared."""

UNCITED_TERMS = 4
"""Content words from which a sentence without a marker is taken for a claim that a paper may bear out."""

UNCITED_CHARACTERS = 8
"""The same for Chinese, Japanese and Korean, which words are not counted in."""

LOOKED_FOR = "in another language than the abstract: only its numbers and names were looked for"

_LIST_ITEM = re.compile(r"^\s*(?:[-*•+]|\d{1,2}[.)])\s+")
_TELLING_NAME = re.compile(r".[A-Z0-9]")
"""A capital or digit within: `SWE-Bench`, not the first word of a title or a proper noun that may be written otherwise."""


class LocalVerifier:
    """Checks sentences by words and by the embedding model that the gate was fitted with. Safe for many threads.

    Vectors that papers carry are taken for that model's unless `vectors_of` names another: then sentences are embedded here.
    """

    def __init__(
        self,
        embedder: Embedder,
        corpus: Corpus,
        *,
        model: Model | None = None,
        vectors_of: str | None = None,
        other_scripts: OtherScripts | None = None,
    ) -> None:
        """Without `other_scripts`, of a sentence in another script only numbers and names are looked for."""
        self._embedder = embedder
        self._has_vectors = vectors_of in (None, embedder.model)
        self._vocabulary = Vocabulary(corpus)
        self._model = model or read_model()
        self._other_scripts = other_scripts
        self._threads: CapacityLimiter | None = None
        self.name = f"{self._model.name}{other_scripts.model.name.replace('local@', '+') if other_scripts else ''}"

    async def verify(self, drafted: Drafted, papers: Sequence[Retrieved]) -> Verdict:
        """`drafted.markers` are places (from 1) in `papers`; places out of range count for nothing. A sentence that its papers do
        not bear out is cited anew where another of `papers` does."""
        if self._threads is None:
            self._threads = CapacityLimiter(AT_ONCE)
        return await run_sync(self.check, drafted, [retrieved.found for retrieved in papers], limiter=self._threads)

    def check(self, drafted: Drafted, papers: Sequence[IndexedPaper]) -> Verdict:
        """The same, at once."""
        cited = [(place, papers[place - 1]) for place in drafted.markers if 1 <= place <= len(papers)]
        text = clean(_LIST_ITEM.sub("", without_markers(drafted.text))).text
        if drafted.basis == "metadata":
            return check_fields(text, cited)
        if quoted := quotation(text, cited):
            return Verdict("ok", quoted, "the abstract's own words", 1.0)
        claim = read_claim(set_apart(text), self._vocabulary)
        gate = self._gate(claim, papers, [place for place, _ in cited])
        verdict = judge(claim, gate, [gate.hold(place) for place, _ in cited])
        return verdict if verdict.support == "ok" else cited_anew(claim, gate) or verdict

    def _gate(self, claim: Claim, papers: Sequence[IndexedPaper], cited: Sequence[int]) -> Gate:
        if self._other_scripts and in_other_script(claim.text):
            return self._other_scripts.gate(claim, papers, cited, self._vocabulary)
        vector = self._embedder.embed_question(claim.text)

        def hold(place: int) -> Cited:
            paper = papers[place - 1]
            rows = paper.vectors[1:] if paper.vectors is not None and self._has_vectors else self._embedded(paper)
            return Cited(place, read_paper(paper, self._vocabulary), np.asarray(rows @ vector, dtype=np.float32))

        return WordGate(self._model, claim, hold, [place for place in range(1, len(papers) + 1) if place not in cited])

    def _embedded(self, paper: IndexedPaper) -> Vectors:
        return self._embedder.embed_texts([sentence.text for sentence in paper.sentences])


def judge(claim: Claim, gate: Gate, cited: Sequence[Cited]) -> Verdict:
    """What the gate, the numbers and the names say of a claim that cites these papers."""
    if not cited:
        return Verdict("uncited", (), "no paper is cited", 0.0)
    alone = {one.place: gate.score([one]) for one in cited}
    score = max(gate.score(cited), *alone.values())
    readings = [one.reading for one in cited]
    if score < gate.model.ok and gate.is_foreign:
        support, reason = of_foreign(claim, gate, readings)
        score = NO_IDEA if support == "weak" else score
    else:
        support, reason = of_near(claim, gate, readings, score)
    evidence = (quote(one.place, one.reading.found, *gate.span(one), alone[one.place]) for one in cited if one.reading.sentences)
    return Verdict(support, () if support == "mismatch" else tuple(evidence), reason, score)


def cited_anew(claim: Claim, gate: Gate) -> Verdict | None:
    """The verdict with the paper that supports the claim best, if one does."""
    if len(claim.terms) < UNCITED_TERMS and sum(char >= "\u3040" for char in claim.text) < UNCITED_CHARACTERS:
        return None
    verdicts = (judge(claim, gate, [gate.hold(place)]) for place in gate.rivals)
    borne_out = (one for one in verdicts if one.support == "ok" and one.score >= gate.model.anew)
    best = max(borne_out, key=lambda one: one.score, default=None)
    return best and Verdict("ok", best.evidence, "cited anew: this paper's words are nearest", best.score)


def of_near(claim: Claim, gate: Gate, readings: Sequence[Reading], score: float) -> tuple[Support, str]:
    """The word on a claim that the gate can tell of, and why."""
    abstract = abstract_of(readings)
    if score < gate.model.mismatch:
        return "mismatch", f"nothing in {abstract} comes near this"
    if wrong := wrong_numbers(claim.text, readings):
        return "number_mismatch", f"{wrong} in {abstract}"
    telling = [name for name in gate.unknown(readings) if _TELLING_NAME.search(name)]
    if telling:
        return "weak", f"near the abstract, but {', '.join(telling)} does not stand in it"
    if score < gate.model.ok:
        return "weak", "near the abstract in words and meaning, but not near enough to be sure"
    return "ok", "near the abstract in words and meaning"


def of_foreign(claim: Claim, gate: Gate, readings: Sequence[Reading]) -> tuple[Support, str]:
    """The word on a claim in a language that the gate does not read, and why."""
    abstract, latin = abstract_of(readings), is_latin(claim.text)
    if wrong := wrong_numbers(claim.text, readings):
        return "number_mismatch", f"{wrong} in {abstract}"
    if telling := [name for name in gate.unknown(readings) if _TELLING_NAME.search(name) or not latin]:
        return "mismatch", f"{', '.join(telling)} does not stand in {abstract}"
    return "weak", LOOKED_FOR if latin else f"{LOOKED_FOR}; footnote[multilingual] compares what it says"


def abstract_of(readings: Sequence[Reading]) -> str:
    """How reasons name the papers."""
    return f"the abstract of {' and '.join(reading.found.paper.cite_as for reading in readings)}"


def wrong_numbers(text: str, readings: Sequence[Reading]) -> str:
    """What is wrong with the numbers of a cleaned sentence, if anything is."""
    missing = missing_numbers(text, frozenset().union(*(reading.numbers for reading in readings)))
    if missing:
        return f"{', '.join(missing)} does not stand"
    swapped = next(swapped_numbers(text, " ".join(reading.found.text for reading in readings)), None)
    return f"not {swapped[0]} but {swapped[1]} stands with these words" if swapped else ""
