"""Step 1 with an LLM, asked where the rules are weak: follow-ups, and questions that do not read as English."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence

from pydantic import BaseModel, Field, ValidationError

from rag.counting import NOT_BY_TOPIC
from rag.errors import LLMRefused, LLMUnavailable
from rag.filters import Names, merge_filters
from rag.follow_up import papers_named
from rag.intent import Intent, Understood
from rag.prompts import STANDALONE_SCHEMA, standalone_prompt
from rag.protocols import LLM
from rag.spelling import reads_as_english
from rag.types import Filters, Turn, Usage
from rag.understand import understand

log = logging.getLogger("footnote.understand")

MAX_TOKENS = 600

PATIENCE = 20.0
"""Seconds for a reading; after that the rules' must do, since the answer itself is still to be waited for."""


class Standalone(BaseModel):
    """The JSON object that prompts/standalone asks for."""

    question: str = Field(min_length=1, max_length=4000)
    topic: str = Field(min_length=1, max_length=4000)
    year_min: int | None = None
    year_max: int | None = None
    venues: list[str] = []
    categories: list[str] = []
    authors: list[str] = []
    asks_for: Intent = "explain"
    other_papers: bool = False


class LLMUnderstanding:
    """Reads questions with an LLM where that helps; by rules elsewhere, and when the LLM fails (the failure is logged: the answer
    that follows meets the same LLM and tells of it)."""

    def __init__(self, llm: LLM, patience: float = PATIENCE) -> None:
        self._llm = llm
        self._patience = patience

    async def understand(self, question: str, history: Sequence[Turn], filters: Filters, names: Names) -> Understood:
        """`filters` were given beside the question and win over those in its words."""
        by_rules = understand(question, history, filters, names)
        if by_rules.counts or not by_rules.search_text or (not history and reads_as_english(question)):
            return by_rules
        try:
            async with asyncio.timeout(self._patience):
                text, usage = await self._llm.complete(
                    *standalone_prompt(question, history, names), json_schema=STANDALONE_SCHEMA, max_tokens=MAX_TOKENS
                )
            read = Standalone.model_validate(json.loads(text))
        except (LLMUnavailable, LLMRefused, ValidationError, ValueError, TimeoutError) as error:
            log.warning("The question was read by rules: %s", error or "the LLM took too long")
            return by_rules
        return understood(question, history, filters, names, read, usage, by_rules)


def understood(
    question: str,
    history: Sequence[Turn],
    filters: Filters,
    names: Names,
    read: Standalone,
    usage: Usage,
    by_rules: Understood,
) -> Understood:
    """What the LLM read, held to what there is: venues and categories that the library does not have set no filter. The papers
    that the rules see pointed at (`the second one`) are the ones meant: the LLM does not see which was cited second."""
    said = Filters(
        year_min=read.year_min if names.has_years else None,
        year_max=read.year_max if names.has_years else None,
        venues=tuple(venue for venue in read.venues if venue in names.venues),
        categories=tuple(category for category in read.categories if category in names.categories),
        authors=tuple(read.authors) if read.asks_for in ("list", "count") else (),
        paper_ids=by_rules.filters.paper_ids,
    )
    return Understood(
        question=question,
        standalone=read.question,
        search_text=read.topic,
        filters=merge_filters(said, filters),
        intent=read.asks_for,
        exclude=papers_named(history) if read.other_papers else (),
        usage=usage,
        notice=by_rules.notice or (NOT_BY_TOPIC if read.asks_for == "count" else None),
    )
