"""Step 5 without an LLM: the papers' own sentences that answer the question, in reading order, each with its marker."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from rag.decide import CLEAR_LEAD, Signals, decide, decide_by_meaning, is_hopeless, signals
from rag.field_answers import from_fields
from rag.intent import Intent, intent_of
from rag.markers import in_round_brackets
from rag.match import Match, Weigh, match, meaning_coverage, places_by_author, places_holding, places_named, role
from rag.pointing import is_meant, means_several, places_in
from rag.protocols import Embedder
from rag.scripts import is_latin
from rag.types import Decided, DraftDone, Drafted, Piece, Retrieved, Status, Turn, Vectors
from rag.word_vectors import WordVectors

AT_ONCE = 2
"""Drafts made at the same time; each takes tens of milliseconds of one core, which would hold up all else on the event loop."""

MOST_SENTENCES = 4
"""Sentences taken from one paper for an explanation."""

WORTH_ADDING = 0.65
"""A further sentence must score at least this share of the best one."""

SAME = 0.9
"""Cosine from which two sentences say the same."""

RIVAL = 0.9
"""A second paper is quoted when it, and its best sentence, score at least this share of what the first one does."""

LISTED = 0.72
"""A paper is listed when its fused score is at least this share of the best one's: on the 52 questions of the dev set and
`eval/lists.jsonl` that ask for papers, precision .77 and recall .78; no model of more signals did better, cross-validated."""

MOST_LISTED = 6

LISTED_ROLE = 0.4
"""What it counts for, in a list, that a sentence tells what its paper does: a list on a topic is not one of its introductions.
Of 103 papers listed .25 chose another sentence for 7, and in 6 of them the one chosen now tells more."""

COMPARED, MEANING_SHARE = 3, 0.2
"""How many papers are compared word by word, and what that counts for beside the fused score: ranking the 49 conceptual dev
questions apart from the engine it helped 2 or 3 of them; end to end the gain is within the noise."""


class ExtractiveGenerator:
    """Drafts answers out of the abstracts' own sentences; needs no LLM and no network."""

    name = "extractive"
    prompt_version = None

    def __init__(self, weigh: Weigh, embedder: Embedder, words: WordVectors) -> None:
        """`embedder` made the papers' vectors; `words` compares single words."""
        self._weigh = weigh
        self._embedder = embedder
        self._words = words
        self._threads: CapacityLimiter | None = None

    async def generate(
        self, question: str, *, standalone: str, papers: Sequence[Retrieved], history: Sequence[Turn] = ()
    ) -> AsyncGenerator[Piece, None]:
        """One decision, the sentences, the end; markers are places (from 1) in `papers`."""
        if self._threads is None:
            self._threads = CapacityLimiter(AT_ONCE)
        meant = is_meant(question, history, papers)
        for piece in await run_sync(lambda: list(self.draft(question, standalone, papers, meant=meant)), limiter=self._threads):
            yield piece

    def draft(self, question: str, standalone: str, papers: Sequence[Retrieved], *, meant: bool = False) -> Iterator[Piece]:
        """The same, without waiting. `meant` tells that the question points at the best paper: it is not asked whether it is on
        the topic."""
        intent = intent_of(question)
        by_author = places_by_author(question, papers)
        if is_hopeless(papers) and not by_author and not meant:
            yield Decided("not_in_corpus")
        elif intent in ("explain", "list", "count"):
            yield from self._from_sentences(question, standalone, papers, by_author, meant)
        else:
            yield from self._from_fields(question, standalone, papers, intent, sure=bool(by_author) or meant)
        yield DraftDone()

    def _from_fields(
        self, question: str, standalone: str, papers: Sequence[Retrieved], intent: Intent, *, sure: bool
    ) -> Iterator[Piece]:
        named = places_named(question, papers, self._weigh)
        if not (named or sure) and self._decided(question, standalone, papers) == "not_in_corpus":
            yield Decided("not_in_corpus")
            return
        every = range(len(papers)) if sure else worth_listing(papers, range(len(papers)))
        several = every if means_several(question) else [0]
        yield from from_fields([(place + 1, papers[place]) for place in named or several], intent, question)

    def _from_sentences(
        self, question: str, standalone: str, papers: Sequence[Retrieved], by_author: Sequence[int], meant: bool
    ) -> Iterator[Piece]:
        wants_one = intent_of(question) == "explain"
        named = places_named(question, papers, self._weigh)
        order = list(dict.fromkeys([*named, *by_meaning(standalone, papers, self._weigh, self._words)]))
        certain = by_author or (meant and not wants_one)
        ranked = [papers[place] for place in order]
        status = "answered" if certain else self._decided(question, standalone, ranked, several=len(named) > 1)
        holders: list[int] = []
        if status == "not_in_corpus" and (meant or named):  # the paper is there; a list is of all that hold the name
            status = "needs_full_text" if meant or wants_one else "answered"
            holders = [place for places in places_holding(question, papers, self._weigh) for place in places]
        yield Decided(status, (order[0] + 1,) if status == "needs_full_text" else ())
        if status != "answered":
            return
        held = cache(lambda place: self._focused(question, standalone, papers[place]))
        if by_author:
            chosen = by_author[:MOST_LISTED]
        elif not wants_one or len(places_in(question)) > 1:
            chosen = holders or (order if meant else worth_listing(papers, order))
        else:
            chosen = named if len(named) > 1 else rivals(held, order)
        if len(chosen) == 1:
            yield from quoted(held(chosen[0]), chosen[0] + 1)
        else:
            yield from (listed(held(place), place + 1) for place in chosen)

    def _decided(self, question: str, standalone: str, papers: Sequence[Retrieved], *, several: bool = False) -> Status:
        """`several` tells that the question names more papers than one: no abstract compares them, but each tells something."""
        if not is_latin(question):
            return decide_by_meaning(papers)
        best = match(standalone, papers[0], self._weigh)
        one_paper = intent_of(question) == "explain" and question == standalone and not several
        return decide(self._signals(standalone, papers, best), one_paper=one_paper)

    def _signals(self, question: str, papers: Sequence[Retrieved], best: Match) -> Signals:
        return signals(question, papers, best, lambda found: meaning_coverage(question, found, self._weigh, self._words))

    def _focused(self, question: str, standalone: str, paper: Retrieved) -> Match:
        """The paper held against the question's own words: what a follow-up carries along found the paper, not the sentence."""
        if question == standalone or not is_latin(question):
            return match(question, paper, self._weigh)
        return match(question, refocused(paper, self._embedder.embed_question(question)), self._weigh)


def by_meaning(question: str, papers: Sequence[Retrieved], weigh: Weigh, words: WordVectors) -> list[int]:
    """Places of the papers, best first: where none leads clearly, the first few are compared word by word as well."""
    places = list(range(len(papers)))
    if len(papers) < 2 or papers[0].score - papers[1].score >= CLEAR_LEAD or not is_latin(question):
        return places
    held = [match(question, paper, weigh) for paper in papers[:COMPARED]]
    scores = [one.found.score + MEANING_SHARE * meaning_coverage(question, one, weigh, words) for one in held]
    return sorted(places[: len(held)], key=lambda place: -scores[place]) + places[len(held) :]


def refocused(paper: Retrieved, vector: Vectors) -> Retrieved:
    """The paper with each sentence's score averaged with its cosine to `vector`."""
    if paper.found.vectors is None or len(paper.found.vectors) == 1:
        return paper
    own = np.maximum(paper.found.vectors[1:] @ vector, 0)
    return replace(
        paper, sentence_scores=tuple((float(new) + old) / 2 for new, old in zip(own, paper.sentence_scores, strict=True))
    )


def worth_listing(papers: Sequence[Retrieved], order: Sequence[int]) -> list[int]:
    """Places, of those in `order`, of the papers that come near the best one."""
    return [place for place in order if papers[place].score >= LISTED * papers[0].score][:MOST_LISTED]


def rivals(held: Callable[[int], Match], order: Sequence[int]) -> list[int]:
    """The best paper in `order`, and the second if it might as well be the one meant."""
    first, *rest = order[:2]
    return [first, *(place for place in rest if is_rival(held(first), held(place)))]


def is_rival(best: Match, other: Match) -> bool:
    """Whether the other paper and its best sentence score nearly what the best ones do."""
    tops = [max(one.sentence_scores, default=0.0) for one in (best, other)]
    return other.found.score >= RIVAL * best.found.score and tops[1] >= RIVAL * tops[0]


def quoted(found: Match, place: int) -> Iterator[Drafted]:
    """The paper's best sentences as a paragraph, introduced by its authors."""
    chosen = best_sentences(found)
    for number, index in enumerate(chosen):
        lead = f"{found.found.paper.cite_as}: " if number == 0 else ""
        yield Drafted(f"{lead}{marked(found.found.found.sentences[index].text, place)} ", (place,))


def listed(found: Match, place: int) -> Drafted:
    """The paper as a list item: who, what it is called, and the best sentence on what it does."""
    paper = found.found.paper
    title = f", “{paper.title}”" if paper.title else ""
    sentences = found.found.found.sentences
    scores = [score + LISTED_ROLE * role(one.text) for score, one in zip(found.sentence_scores, sentences, strict=True)]
    text = sentences[scores.index(max(scores))].text if scores else ""
    return Drafted(f"- {paper.cite_as}{title}: {marked(text, place)}\n", (place,))


def marked(sentence: str, place: int) -> str:
    """The sentence with its marker before the full stop; markers of the abstract's own are put in round brackets."""
    text = in_round_brackets(sentence.strip())
    end = text[-1] if text[-1:] in ".?!。！？" else ""
    return f"{text.removesuffix(end)} [{place}]{end}"


def best_sentences(found: Match) -> list[int]:
    """Up to MOST_SENTENCES sentences in reading order: the best one, then those nearly as good that say something else."""
    scores = found.sentence_scores
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    vectors = found.found.found.vectors
    chosen: list[int] = []
    for index in order:
        if len(chosen) == MOST_SENTENCES or (chosen and scores[index] < WORTH_ADDING * scores[order[0]]):
            break
        if vectors is None or all(float(np.dot(vectors[index + 1], vectors[other + 1])) < SAME for other in chosen):
            chosen.append(index)
    return sorted(chosen)
