"""Step 1 with an LLM: follow-ups are made standalone from the conversation, and other languages are put into English."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag.errors import LLMRefused, LLMUnavailable
from rag.filters import Names, merge_filters, no_years_notice
from rag.prompts import STANDALONE_SCHEMA, standalone_prompt
from rag.protocols import LLM
from rag.types import Filters, Turn, Usage
from rag.understand import Intent, Understood, papers_named, understand

PATIENCE = 20.0
"""Seconds; after that the rules' reading must do, since the answer itself is still to be waited for."""

MOST_TOKENS = 500

log = logging.getLogger(__name__)


class Reading(BaseModel):
    """What the model read in a question: an object of STANDALONE_SCHEMA."""

    model_config = ConfigDict(extra="ignore")

    question: str = Field(min_length=1, max_length=4_000)
    topic: str = Field(default="", max_length=4_000)
    year_min: int | None = Field(default=None, ge=1000, le=2999)
    year_max: int | None = Field(default=None, ge=1000, le=2999)
    venues: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    asks_for: Intent = "explain"
    other_papers: bool = False


class LLMUnderstanding:
    """Asks the LLM where the rules' reading may fall short; where it gives none, the rules' reading stands."""

    def __init__(self, llm: LLM, patience: float = PATIENCE) -> None:
        self._llm = llm
        self._patience = patience

    async def understand(self, question: str, history: Sequence[Turn], filters: Filters, names: Names) -> Understood:
        """`filters` were given beside the question and win over those in its words. Raises nothing of the LLM's."""
        by_rules = understand(question, history, filters, names)
        if not history and is_english(question):
            return by_rules
        try:
            reading, usage = await self._read(question, history, names)
        except (LLMUnavailable, LLMRefused, ValidationError, TimeoutError) as error:
            log.warning("question understood by rules alone: %s", error or type(error).__name__)
            return by_rules
        return understood(reading, by_rules, history, filters, names, usage)

    async def _read(self, question: str, history: Sequence[Turn], names: Names) -> tuple[Reading, Usage]:
        system, user = standalone_prompt(question, history, names)
        async with asyncio.timeout(self._patience):
            text, usage = await self._llm.complete(system, user, json_schema=STANDALONE_SCHEMA, max_tokens=MOST_TOKENS)
        return Reading.model_validate_json(text), usage


def understood(
    reading: Reading, by_rules: Understood, history: Sequence[Turn], filters: Filters, names: Names, usage: Usage
) -> Understood:
    """The model's reading; of venues and categories only such as there are."""
    said = Filters(
        year_min=reading.year_min,
        year_max=reading.year_max,
        venues=known(reading.venues, names.venues),
        categories=known(reading.categories, names.categories),
        authors=tuple(author for author in reading.authors if author.strip()),
    )
    notice = no_years_notice(said, names)
    if notice:
        said = replace(said, year_min=None, year_max=None)
    return Understood(
        question=by_rules.question,
        standalone=reading.question,
        search_text=reading.topic.strip() or reading.question,
        filters=merge_filters(said, filters),
        intent=reading.asks_for,
        exclude=papers_named(history) if reading.other_papers else (),
        usage=usage,
        notice=notice,
    )


def known(given: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Those of `names` that were given, in whatever case."""
    wanted = {name.strip().casefold() for name in given}
    return tuple(name for name in names if name.casefold() in wanted)


ENGLISH = re.compile(
    r"\b(?:the|of|is|are|were|what|which|how|does|did|and|for|with|that|this|who|why|when|where|there|from|any|can|by)\b",
    re.IGNORECASE,
)
OTHER_SCRIPT = re.compile(r"[^\W\d_\u0000-\u024f]{2,}")


def is_english(question: str) -> bool:
    """Whether it holds an English function word and no word in another script, but for a Greek letter."""
    return ENGLISH.search(question) is not None and OTHER_SCRIPT.search(question) is None
