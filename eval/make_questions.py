"""New held-out questions from papers, by an LLM.

A question is kept only if the words it rests on stand in the paper, if it cannot be answered without the paper, and if none of it
stands in a prompt or another text that a model is shown.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from eval.judges import LocalJudge
from eval.question_set import Question, pid
from rag.errors import LLMRefused, LLMUnavailable
from rag.prompts import FOLDER, inert, load_prompt, papers_block
from rag.protocols import LLM
from rag.text import clean
from rag.types import Paper
from rag.verify_llm import find_quote

AT_ONCE = 4
MAX_TOKENS = 1_500
LEAKED_WORDS = 8
"""So many words in a row, also elsewhere, are a leak: the usual n-gram test for contamination (Brown et al., 2020, with 13 for
longer texts)."""

NOT_BY_ITSELF = re.compile(r"\b(?:this|the) (?:paper|study|abstract|authors?|work|article)\b|\bthe proposed\b", re.IGNORECASE)

Split = Literal["dev", "test"]


class Draft(BaseModel):
    """One entry of the JSON object that prompts/make_questions asks for."""

    question: str = Field(min_length=10)
    note: Literal["specific", "conceptual"]
    answer: str = Field(min_length=1)
    points: list[str] = Field(min_length=1, max_length=5)
    evidence: list[str] = Field(min_length=1)


@dataclass
class Made:
    """The questions kept, by split, and how many were dropped for what reason."""

    kept: dict[Split, list[Question]] = field(default_factory=lambda: {"dev": [], "test": []})
    dropped: Counter[str] = field(default_factory=Counter)


class QuestionMaker:
    """Asks the LLM, and believes nothing it says. `texts` are what questions must not leak into or from."""

    def __init__(self, llm: LLM, judge: LocalJudge, texts: Iterable[str], per_paper: int = 2) -> None:
        self._llm = llm
        self._judge = judge
        self._shown = frozenset(run for text in texts for run in runs_of_words(text))
        self._per_paper = per_paper

    async def make(self, papers: Sequence[Paper], on_done: Callable[[], None] = lambda: None) -> Made:
        """A paper whose LLM call fails is counted, and the others go on."""
        made, gate = Made(), asyncio.Semaphore(AT_ONCE)

        async def one(paper: Paper) -> None:
            async with gate:
                try:
                    await self._from(paper, made)
                except (LLMUnavailable, LLMRefused) as error:
                    made.dropped[f"the LLM failed on a paper ({type(error).__name__})"] += 1
                on_done()

        await asyncio.gather(*map(one, papers))
        for questions in made.kept.values():
            questions.sort(key=lambda question: question.id)
        return made

    async def _from(self, paper: Paper, made: Made) -> None:
        prompt = load_prompt("make_questions").filled(
            papers=papers_block([(1, paper, clean(paper.abstract).text)]), count=str(self._per_paper)
        )
        text, _ = await self._llm.complete(*prompt, json_schema=SCHEMA, max_tokens=MAX_TOKENS)
        for number, draft in enumerate(read_drafts(text, made.dropped)[: self._per_paper], start=1):
            reason = fault_of(draft, paper, self._shown) or await self._known_without(draft)
            if reason:
                made.dropped[reason] += 1
            else:
                name = pid(paper.abstract)
                made.kept[split_of(name)].append(as_question(draft, name, number))

    async def _known_without(self, draft: Draft) -> str:
        """A question whose points the LLM tells without the paper tests its memory, not the system."""
        text, _ = await self._llm.complete(*load_prompt("closed_book").filled(question=inert(draft.question)))
        return "answered without the paper" if all(self._judge.tells(text, point) for point in draft.points) else ""


def read_drafts(text: str, dropped: Counter[str]) -> list[Draft]:
    """The entries that are as asked for; the others are counted."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    rows = found.get("questions") if isinstance(found, dict) else None
    drafts = []
    for row in rows if isinstance(rows, list) else [None]:
        try:
            drafts.append(Draft.model_validate(row))
        except ValidationError:
            dropped["not in the form asked for"] += 1
    return drafts


def fault_of(draft: Draft, paper: Paper, shown: frozenset[str]) -> str:
    """Why a draft cannot be kept, as far as the paper tells; nothing if it can."""
    if not all(find_quote(paper.abstract, quote) for quote in draft.evidence):
        return "evidence not verbatim in the paper"
    if NOT_BY_ITSELF.search(draft.question):
        return "does not stand by itself"
    if shared(draft.question, clean(paper.abstract).text):
        return "in the abstract's own words"
    if any(run in shown for text in (draft.question, *draft.points, *draft.evidence) for run in runs_of_words(text)):
        return "leaks into a prompt or example"
    return ""


def as_question(draft: Draft, name: str, number: int) -> Question:
    """A line of a question set."""
    return Question(
        id=f"made-{name}-{number}", question=draft.question.strip(), gold=(name,), points=tuple(draft.points), note=draft.note
    )


def split_of(name: str) -> Split:
    """By the paper, so that no paper is in both: half of all by the hash of its pid."""
    return "dev" if hashlib.sha256(name.encode()).digest()[0] % 2 == 0 else "test"


def runs_of_words(text: str, length: int = LEAKED_WORDS) -> set[str]:
    """Every run of `length` words, lower case."""
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[start : start + length]) for start in range(len(words) - length + 1)}


def shared(text: str, other: str) -> bool:
    """Whether a run of LEAKED_WORDS words stands in both."""
    return bool(runs_of_words(text) & runs_of_words(other))


def shown_texts(more: Iterable[Path] = ()) -> list[str]:
    """Everything a model is shown or that was tuned on: all prompts, and the files of `more`."""
    files = [*sorted(FOLDER.rglob("*.md")), *more]
    return [file.read_text(encoding="utf8") for file in files]


def leaks(questions: Iterable[Question], texts: Iterable[str]) -> list[str]:
    """Ids of questions of which a run of words stands in one of the texts."""
    known = frozenset(run for text in texts for run in runs_of_words(text))
    return [one.id for one in questions if any(known & runs_of_words(text) for text in (one.question, *one.points))]


def drawn(papers: Sequence[Paper], count: int | None, seed: int) -> list[Paper]:
    """All papers, or `count` of them drawn by the seed."""
    if count is None or count >= len(papers):
        return list(papers)
    return random.Random(seed).sample(list(papers), count)


_TEXTS = {"type": "array", "items": {"type": "string"}}
_DRAFT = {
    "question": {"type": "string"},
    "note": {"type": "string", "enum": ["specific", "conceptual"]},
    "answer": {"type": "string"},
    "points": _TEXTS,
    "evidence": _TEXTS,
}
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "questions": {
            "type": "array",
            "items": {"type": "object", "properties": _DRAFT, "required": list(_DRAFT), "additionalProperties": False},
        }
    },
    "required": ["questions"],
    "additionalProperties": False,
}
