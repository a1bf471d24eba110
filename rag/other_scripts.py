"""How near a sentence in another script is to an English abstract, by a model that reads both (`footnote[multilingual]`).

Its cosines all lie in .7 to .9, so what tells is the margin: how much nearer the sentence is to the papers it cites than to the
others retrieved with them (AUROC of right against wrong abstracts .99; of the best cosine alone .93). Weights and thresholds are
fitted by `eval/fit_other_scripts.py` on Chinese sentences and kept in `other_scripts_weights.json`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from rag.match import NAME
from rag.passages import texts_to_embed
from rag.protocols import Embedder
from rag.scripts import is_latin
from rag.similarity import Cited, Claim, Model, Reading, Vocabulary, missing_names, read_model, read_paper
from rag.types import IndexedPaper, VectorBlock, Vectors

WEIGHTS_FILE = Path(__file__).with_name("other_scripts_weights.json")

RIVALS = 3
"""Other papers, the nearest by whole abstract, that a sentence is held against too; with 7 the same share of wrong abstracts is
told, for twice the sentences to embed."""

TYPICAL_RIVAL = 0.834
"""Cosine of a sentence with the nearest sentence of its nearest rival, the median over the sentences fitted on: the least that a
right paper has to beat, where the rivals have nothing to do with the sentence or there are none."""

REMEMBERED = 256
"""Papers whose sentences' vectors are kept at hand, 3 MB."""

_ACRONYM = re.compile(r"[A-Z]{2,6}s?")

Stored = Callable[[Sequence[str], str], VectorBlock]
"""The vectors of papers, by their ids, that the catalogue holds of a model."""


def in_other_script(text: str) -> bool:
    """Whether the words of a sentence that are no names are in another script: `Latte 在 Open-Sora 上的 LPIPS 为 0.05` is."""
    return not is_latin(NAME.sub(" ", text))


@dataclass(frozen=True, slots=True)
class Nearness:
    """margin: best cosine with a sentence of the papers cited, minus the best with a sentence of their rivals, at least
    TYPICAL_RIVAL; held_names, missing_names: names of the claim that the papers hold or do not hold, three counting as 1."""

    margin: float
    held_names: float
    missing_names: float


class OtherScripts:
    """Holds sentences in other scripts against papers. The model is loaded at the first one. Safe for many threads."""

    def __init__(self, load: Callable[[], Embedder], stored: Stored, *, model: Model | None = None) -> None:
        self._embedder = cache(load)
        self._stored = stored
        self._sentences = lru_cache(REMEMBERED)(self._embedded)
        self.model = model or read_model(WEIGHTS_FILE, Nearness)

    def gate(self, claim: Claim, papers: Sequence[IndexedPaper], cited: Sequence[int], vocabulary: Vocabulary) -> ScriptGate:
        """For a claim that cites these places (from 1) of `papers`. Only sentences of the cited papers and of those nearest by
        whole abstract are embedded, about 20 ms each, and each but once."""
        embedder = self._embedder()
        vector = embedder.embed_question(claim.text)
        wholes = self._wholes(papers, embedder.model) @ vector
        nearest = np.argsort(-wholes, kind="stable") + 1
        rivals = [int(place) for place in nearest if place not in cited][:RIVALS]
        held = {place: self._held(place, papers[place - 1], vector, vocabulary) for place in (*cited, *rivals)}
        return ScriptGate(self.model, claim, held, rivals)

    def _held(self, place: int, paper: IndexedPaper, vector: Vectors, vocabulary: Vocabulary) -> Cited:
        rows = self._sentences(tuple(sentence.text for sentence in paper.sentences))
        return Cited(place, read_paper(paper, vocabulary), np.asarray(rows @ vector, dtype=np.float32))

    def _embedded(self, sentences: tuple[str, ...]) -> Vectors:
        return self._embedder().embed_texts(sentences)

    def _wholes(self, papers: Sequence[IndexedPaper], model: str) -> Vectors:
        block = self._stored([found.paper.paper_id for found in papers], model)
        rows = {paper_id: block.vectors[start] for paper_id, start in zip(block.paper_ids, block.starts, strict=True)}
        unknown = {found.paper.paper_id: texts_to_embed(found)[0] for found in papers if found.paper.paper_id not in rows}
        rows.update(zip(unknown, self._embedder().embed_texts(list(unknown.values())), strict=True))
        wholes = [rows[found.paper.paper_id] for found in papers]
        return np.array(wholes, dtype=np.float32).reshape(-1, self._embedder().dimension)


class ScriptGate:
    """One claim in another script, with its cosines to the papers it cites and to their `rivals`, which may be cited anew."""

    is_foreign = False

    def __init__(self, model: Model, claim: Claim, held: dict[int, Cited], rivals: Sequence[int]) -> None:
        self.model = model
        self.rivals = rivals
        self._claim = claim
        self._held = held

    def hold(self, place: int) -> Cited:
        """A paper that is cited or a rival."""
        return self._held[place]

    def score(self, cited: Sequence[Cited]) -> float:
        """That these papers are right ones for the claim, in [0, 1]."""
        return self.model.probability(self.nearness(cited))

    def nearness(self, cited: Sequence[Cited]) -> Nearness:
        """The features."""
        missing = len(self.unknown([one.reading for one in cited]))
        held = len(self._claim.names) - missing
        margin = max(map(_nearest, cited)) - max(TYPICAL_RIVAL, self.rival(cited))
        return Nearness(margin, min(3, held) / 3, min(3, missing) / 3)

    def rival(self, cited: Sequence[Cited]) -> float:
        """The best cosine with a sentence of another paper; 0 without one."""
        places = [one.place for one in cited]
        return max((_nearest(one) for place, one in self._held.items() if place not in places), default=0.0)

    def unknown(self, readings: Sequence[Reading]) -> tuple[str, ...]:
        """The names that the papers neither hold nor spell out."""
        text = " ".join(reading.found.text for reading in readings)
        return tuple(name for name in missing_names(self._claim, readings) if not is_spelled_out(name, text))

    def span(self, cited: Cited) -> tuple[int, int]:
        """The one sentence nearest in meaning."""
        nearest = int(cited.cosines.argmax())
        return nearest, nearest + 1


def _nearest(cited: Cited) -> float:
    return float(cited.cosines.max(initial=0.0))


def is_spelled_out(name: str, text: str) -> bool:
    """Whether words in a row begin with the letters of an acronym: `Kullback-Leibler` for KL, `large language models` for LLM."""
    letters = name.rstrip("s")
    words = r"\w*[\s-]+".join(letters)
    return _ACRONYM.fullmatch(name) is not None and re.search(rf"\b{words}", text, re.IGNORECASE) is not None
