"""Step 6, second half: checked sentences become one text, markers 1..n in order of first use, with what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag.markers import tidied
from rag.types import AnswerSentence, Citation, Drafted, Evidence, Retrieved, SentenceReady, Verdict


class Composition:
    """An answer as it grows, sentence by sentence."""

    def __init__(self, papers: Sequence[Retrieved]) -> None:
        self._papers = papers
        self._markers: dict[int, int] = {}
        self.sentences: list[AnswerSentence] = []
        self.citations: list[Citation] = []

    @property
    def text(self) -> str:
        """The sentences put together."""
        return "".join(sentence.text for sentence in self.sentences)

    def clear(self) -> None:
        """Forgets every sentence: another generator begins anew."""
        self._markers.clear()
        self.sentences.clear()
        self.citations.clear()

    def add(self, drafted: Drafted, verdict: Verdict) -> SentenceReady:
        """Takes a checked sentence; its evidence names papers by their place (from 1) among those retrieved."""
        places = [evidence.marker for evidence in verdict.evidence]
        marked = with_markers(drafted.text, [place for place in places if place not in drafted.markers])
        text = tidied(marked, lambda place: self._marker(place) if place in places else None).text
        evidence = tuple(sorted((self._renumbered(one) for one in verdict.evidence), key=lambda one: one.marker))
        known = len(self.citations)
        self.citations += [self._citation(one) for one in evidence if one.marker > known]
        sentence = AnswerSentence(
            text=text,
            markers=tuple(one.marker for one in evidence),
            basis=drafted.basis,
            evidence=evidence,
            support=verdict.support,
            reason=verdict.reason,
            score=verdict.score,
        )
        self.sentences.append(sentence)
        return SentenceReady(sentence, tuple(self.citations[known:]))

    def _marker(self, place: int) -> int:
        return self._markers.setdefault(place, len(self._markers) + 1)

    def _renumbered(self, evidence: Evidence) -> Evidence:
        return replace(evidence, marker=self._marker(evidence.marker))

    def _citation(self, evidence: Evidence) -> Citation:
        place = next(place for place, marker in self._markers.items() if marker == evidence.marker)
        paper = self._papers[place - 1].paper
        return Citation(evidence.marker, paper, evidence.quote, evidence.start, evidence.end)


def with_markers(sentence: str, places: Sequence[int]) -> str:
    """The sentence with markers for `places` at its end, its trailing white space kept."""
    words = sentence.rstrip()
    return words + "".join(f"[{place}]" for place in places) + sentence[len(words) :]
