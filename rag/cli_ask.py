"""`ask`: one question, or a file of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.spinner import Spinner
from rich.text import Text

from rag.build import Library, open_library
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
from rag.cli_render import console, paragraphs, render_answer, visible
from rag.errors import FootnoteError, InputError
from rag.questions import Asked, completed, read_question
from rag.types import Answer, AnswerEvent, Filters, PapersFound, SentenceReady
from rag.wire import answer_to_json, to_line

TOP_N = 8

TopK = Annotated[int, typer.Option("--top-k", "-k", min=1, max=100, help="How many papers to find and answer from.")]


def ask(
    question: Annotated[list[str] | None, typer.Argument(metavar="QUESTION", help="What you want to know.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Questions, a JSON object a line; - is stdin.")
    ] = None,
    top_k: TopK = TOP_N,
    year_min: YearMin = None,
    year_max: YearMax = None,
    venue: Venue = None,
    category: Category = None,
    author: Author = None,
    as_json: Json = False,
    data: Data = None,
) -> None:
    """Answer a question from the papers, each sentence with its footnotes."""
    if bool(question) == bool(file):
        raise typer.BadParameter('give a question (footnote ask "…") or a file of questions (--file), one of the two')
    filters = filters_of(year_min, year_max, venue, category, author)
    with open_library(settings_of(data)) as library:
        hint_if_empty(library)
        if file is None:
            asked = Asked(" ".join(question or ()), filters=filters)
            asyncio.run(ask_one(library, asked, top_k, as_json))
        elif failed := asyncio.run(ask_file(library, file, filters, top_k, as_json)):
            typer.echo(f"footnote: not answered: {failed}; their lines say why", err=True)
            raise typer.Exit(DONE_IN_PART)


async def ask_one(library: Library, asked: Asked, top_n: int, as_json: bool) -> Answer:
    """Answers, and prints as it goes on a terminal."""
    out = console()
    if as_json or not out.is_terminal:
        answer = await library.engine.answer(asked.question, history=asked.history, filters=asked.filters, top_n=top_n)
    else:
        async with aclosing(
            library.engine.stream(asked.question, history=asked.history, filters=asked.filters, top_n=top_n)
        ) as events:
            answer = await follow(events, out)
    show(answer, out, as_json)
    return answer


def show(answer: Answer, out: Console, as_json: bool) -> None:
    """One answer: a line of JSON, or as a person reads it."""
    if as_json:
        typer.echo(to_line(answer_to_json(answer)))
    else:
        out.print(render_answer(answer))


async def follow(events: AsyncIterator[AnswerEvent], out: Console) -> Answer:
    """The answer at the end; meanwhile the terminal shows what is being done, then each sentence once it is checked."""
    text = ""
    with Live(Spinner("dots", "Looking for papers"), console=out, transient=True) as live:
        async for event in events:
            if isinstance(event, PapersFound):
                live.update(Spinner("dots", f"Reading {len(event.papers)} papers"))
            elif isinstance(event, SentenceReady):
                text += event.sentence.text
                live.update(Group(*paragraphs(text)))
            else:
                return event.answer
    raise AssertionError("a stream ends with the answer")


async def ask_file(library: Library, file: Path, filters: Filters, top_n: int, as_json: bool) -> int:
    """Answers one line after the other, printing each at once; returns how many could not be answered."""
    failed, out = 0, console()
    with opened_lines(file) as (lines, total), progress_bar(total) as advance:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                failed += not await ask_line(library, number, line, filters, top_n, out, as_json)
            advance()
    return failed


async def ask_line(library: Library, number: int, line: bytes, filters: Filters, top_n: int, out: Console, as_json: bool) -> bool:
    """Prints the answer to one line of a file, or why there is none; the line's own filters come before the command's."""
    try:
        asked = read_question(line)
        filters = completed(asked.filters, filters)
        answer = await library.engine.answer(asked.question, history=asked.history, filters=filters, top_n=top_n)
    except FootnoteError as error:
        failure(error, number, as_json)
        return False
    if not as_json:
        out.print(Text(f"\n> {visible(asked.question)}\n", style="bold"))
    show(answer, out, as_json)
    return True


def failure(error: FootnoteError, number: int, as_json: bool) -> None:
    """Says in place of an answer why there is none."""
    if as_json:
        typer.echo(to_line({"error": {"code": code_of(error), "message": str(error)}, "line": number}))
    else:
        typer.echo(f"Question {number}: {visible(str(error))}")


def code_of(error: FootnoteError) -> str:
    """`LLMUnavailable` → `llm_unavailable`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", type(error).__name__).lower()


@contextmanager
def opened_lines(file: Path) -> Iterator[tuple[BinaryIO, int | None]]:
    """A file's lines, and how many they are (None for stdin and pipes, which can be read only once)."""
    if str(file) == "-":
        yield typer.get_binary_stream("stdin"), None
        return
    try:
        stream = file.open("rb")
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from error
    with stream:
        yield stream, count_lines(stream) if stream.seekable() else None


def count_lines(stream: BinaryIO) -> int:
    """How many lines there are; the stream is at its beginning again afterwards."""
    total = sum(1 for _ in stream)
    stream.seek(0)
    return total


@contextmanager
def progress_bar(total: int | None) -> Iterator[Callable[[], None]]:
    """A function to call after each question; draws on stderr when that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    out = console(stderr=True)
    with Progress(*columns, console=out, disable=not out.is_terminal) as bar:
        task = bar.add_task("Questions", total=total)
        yield lambda: bar.advance(task)
