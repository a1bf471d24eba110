"""Step 5 with an LLM: its answer as it streams, cut into sentences with markers."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace

from rag.citations import MarkerFilter
from rag.errors import LLMUnavailable
from rag.fields import says_fields_only
from rag.markers import without_markers
from rag.prompts import answer_prompt, load_prompt
from rag.protocols import LLM
from rag.types import Decided, DraftDone, Drafted, Piece, Retrieved, Turn, Usage

ABSTAINS = re.compile(r"\bNOT_IN_PAPERS\b")
NEEDS_MORE = re.compile(r"\bNEEDS_FULL_TEXT\b[\W_]*(?:papers?\W*)?(?P<place>\d+)?", re.IGNORECASE)

OPENER = re.compile(
    r"\W*(?:yes|no|not quite|not really|partly|是|是的|有|有的|没有|可以|不|不是|能|不能|会|不会|对)\W*$", re.IGNORECASE
)
"""A sentence that only says yes or no rests on what the next one rests on: the two are one."""

CUT_OFF = "The model's answer was cut off at its length limit; what is shown ends with its last whole sentence."


class OpenAIGenerator:
    """Drafts answers with a chat model, told to keep to the papers; whether it did is for the next step to check."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    @property
    def name(self) -> str:
        return self._llm.model

    @property
    def prompt_version(self) -> str:
        return load_prompt("answer").version

    async def generate(
        self, question: str, *, standalone: str, papers: Sequence[Retrieved], history: Sequence[Turn] = ()
    ) -> AsyncGenerator[Piece, None]:
        """One decision, the sentences as they end, the end; markers are places (from 1) in `papers`. Without papers nothing is
        asked. Sentences without a marker at the start wait for the first one with a marker, since a decision may follow them.

        Raises LLMUnavailable, LLMRefused.
        """
        if not papers:
            yield Decided("not_in_corpus")
            yield DraftDone()
            return
        draft = Draft(papers)
        async with aclosing(self._llm.stream(*answer_prompt(question, standalone, papers, history))) as deltas:
            async for delta in deltas:
                for piece in draft.take(delta.text):
                    yield piece
                if delta.usage is not None:
                    draft.usage, draft.cut = delta.usage, delta.cut
        for piece in draft.finish():
            yield piece
        if draft.decided is None:
            raise LLMUnavailable(f"{self.name} gave no whole sentence{' before it was cut off' if draft.cut else ''}.")
        yield draft.done()


class Draft:
    """An answer on its way in: sentences, and what they decide."""

    def __init__(self, papers: Sequence[Retrieved]) -> None:
        self._papers = papers
        self._sentences = MarkerFilter(len(papers))
        self._waiting: list[Drafted] = []
        self.decided: Decided | None = None
        self._opener = ""
        self.usage = Usage()
        self.cut = False

    def take(self, text: str) -> Iterator[Piece]:
        """The pieces that `text` completes."""
        for sentence in self._sentences.feed(text):
            yield from self._next(sentence)

    def finish(self) -> Iterator[Piece]:
        """The pieces left at the end."""
        for sentence in self._sentences.finish(cut=self.cut):
            yield from self._next(sentence)
        if self._waiting:
            yield from self._decide(Decided("answered"))

    def done(self) -> DraftDone:
        is_short = self.cut and self.decided == Decided("answered")
        return DraftDone(self.usage, self._sentences.removed, CUT_OFF if is_short else None)

    def _next(self, sentence: Drafted) -> Iterator[Piece]:
        if not sentence.markers and OPENER.match(sentence.text):
            self._opener += sentence.text
            return
        sentence, self._opener = replace(sentence, text=self._opener + sentence.text), ""
        abstains = self._abstention(sentence)
        if self.decided is None and abstains:
            self._waiting.clear()
            yield from self._decide(abstains)
        elif self.decided is None:
            self._waiting.append(self._with_basis(sentence))
            if sentence.markers:
                yield from self._decide(Decided("answered"))
        elif self.decided.status == "answered" and not abstains:
            yield self._with_basis(sentence)

    def _with_basis(self, sentence: Drafted) -> Drafted:
        """What only tells of authors, years and venues rests on the catalogue."""
        cited = [self._papers[place - 1].found for place in sentence.markers]
        if cited and says_fields_only(without_markers(sentence.text), cited):
            return replace(sentence, basis="metadata")
        return sentence

    def _decide(self, decided: Decided) -> Iterator[Piece]:
        self.decided = decided
        yield decided
        yield from self._waiting
        self._waiting.clear()

    def _abstention(self, sentence: Drafted) -> Decided | None:
        """What a status word in the sentence decides; the best paper is meant where it names none of the list."""
        if ABSTAINS.search(sentence.text):
            return Decided("not_in_corpus")
        needs_more = NEEDS_MORE.search(sentence.text)
        if needs_more is None:
            return None
        named = int(needs_more["place"] or 0)
        return Decided("needs_full_text", sentence.markers or ((named,) if 1 <= named <= len(self._papers) else (1,)))
