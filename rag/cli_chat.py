"""`chat`: questions one after the other, each understood in the light of those before it."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Iterator

import typer

from rag.build import Library, open_library
from rag.cli_ask import TOP_N, TopK, ask_one, failure
from rag.cli_options import (
    DONE_IN_PART,
    Author,
    Category,
    Data,
    Json,
    Venue,
    YearMax,
    YearMin,
    filters_of,
    hint_if_empty,
    settings_of,
)
from rag.errors import FootnoteError
from rag.questions import Asked
from rag.types import Answer, Filters, Turn, unique

WELCOME = "Ask about your papers. /new starts afresh, /quit or Ctrl-D ends."


def chat(
    top_k: TopK = TOP_N,
    year_min: YearMin = None,
    year_max: YearMax = None,
    venue: Venue = None,
    category: Category = None,
    author: Author = None,
    as_json: Json = False,
    data: Data = None,
) -> None:
    """Ask and ask further; with --json, a question a line comes from stdin and an answer a line goes out."""
    filters = filters_of(year_min, year_max, venue, category, author)
    with open_library(settings_of(data)) as library:
        hint_if_empty(library)
        if converse(library, filters, top_k, as_json) and not sys.stdin.isatty():
            raise typer.Exit(DONE_IN_PART)


def converse(library: Library, filters: Filters, top_n: int, as_json: bool) -> int:
    """Answers until there are no more questions; returns how many could not be answered."""
    history: tuple[Turn, ...] = ()
    failed = 0
    with asyncio.Runner() as runner:  # questions are read outside it, where Ctrl-C interrupts at once
        for number, question in enumerate(questions(), start=1):
            if question == "/new":
                history = ()
                continue
            try:
                answer = runner.run(ask_one(library, Asked(question, history, filters), top_n, as_json))
            except FootnoteError as error:
                failed += 1
                failure(error, number, as_json)
            else:
                history += turns_of(answer)
    return failed


def turns_of(answer: Answer) -> tuple[Turn, Turn]:
    """A question and its answer as the next question sees them."""
    cited = unique([citation.paper.paper_id for citation in answer.citations])
    return Turn("user", answer.question), Turn("assistant", answer.text, cited)


def questions() -> Iterator[str]:
    """What a person types, or the lines of stdin; ends at its end or at /quit."""
    if sys.stdin.isatty():
        typer.echo(WELCOME, err=True)
        if importlib.util.find_spec("readline"):
            importlib.import_module("readline")  # gives `input` line editing and recall
    while (question := next_question()) not in {None, "/quit"}:
        if question:
            yield question


def next_question() -> str | None:
    """One line without the white space around it; None at the end."""
    try:
        return input("\n> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return None
