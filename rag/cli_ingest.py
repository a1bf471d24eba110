"""`ingest` and `demo`: papers in, with progress and an acknowledgement for each batch that can no longer be lost."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from rag.build import Library, open_library
from rag.cli_ask import TOP_N, ask_one
from rag.cli_options import DONE_IN_PART, Data, Json, settings_of
from rag.cli_render import console, render_report
from rag.errors import InputError
from rag.ingest import Step, count_papers, files
from rag.questions import Asked
from rag.readers import FORMATS
from rag.settings import Settings
from rag.types import IngestReport
from rag.wire import report_to_json, to_line

SAMPLES = Path(__file__).parent / "samples" / "papers.txt"
SAMPLE_QUESTION = "Can a group of small models replace one large model in medicine?"


def ingest(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help="Files or folders; .gz is unpacked.")],
    format: Annotated[str, typer.Option("--format", help=" | ".join(FORMATS))] = "auto",
    as_json: Json = False,
    data: Data = None,
) -> None:
    """Add papers to the library. The same papers again change nothing."""
    if format not in FORMATS:
        raise typer.BadParameter(f"choose one of {', '.join(FORMATS)}", param_hint="--format")
    with open_library(settings_of(data)) as library:
        report = take(library, paths, format)
    if as_json:
        typer.echo(to_line(report_to_json(report)))
    else:
        console().print(render_report(report))
    if report.rejected:
        if not (report.added or report.merged or report.unchanged):
            raise InputError(f"nothing could be taken; the first reason is: {report.rejected[0].reason}")
        raise typer.Exit(DONE_IN_PART)


def take(library: Library, paths: Sequence[Path], format: str = "auto") -> IngestReport:
    """Ingests and shows how far it is."""
    with progress(lambda: count_papers(files(paths, format))) as on_step:
        return library.ingest(files(paths, format), on_step=on_step)


def acknowledge(step: Step) -> None:
    """One line for the papers of one transaction."""
    commit = step.commit
    typer.echo(f"committed {commit.added + commit.merged + commit.unchanged} revision {commit.revision}", err=True)


class Rate(ProgressColumn):
    """Papers a second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.0f} papers/s" if task.speed else "")


@contextmanager
def progress(count: Callable[[], int | None]) -> Iterator[Callable[[Step], None]]:
    """A function to call with each step: it draws a bar on a terminal, elsewhere prints `committed N revision R`, on stderr.
    `count` tells how many papers there will be, None if nobody knows; it is asked on a terminal only, since it takes time."""
    out = console(stderr=True)
    if not out.is_terminal:
        yield acknowledge
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=out) as bar:
        task = bar.add_task("Counting", total=None)
        bar.update(task, total=count())

        def on_step(step: Step) -> None:
            bar.update(task, description=f"Revision {step.commit.revision}", completed=step.papers)

        bar.update(task, description="Reading")
        yield on_step


def demo(as_json: Json = False, data: Data = None) -> None:
    """Try it: sample papers in a library of their own, a question answered, and what to type next."""
    settings = demo_settings(settings_of(data))
    out = console()
    with open_library(settings) as library:
        report = take(library, [SAMPLES])
        if not as_json:
            out.print(render_report(report))
            out.print(Text(f"\n> {SAMPLE_QUESTION}\n", style="bold"))
        asyncio.run(ask_one(library, Asked(SAMPLE_QUESTION), TOP_N, as_json))
    if not as_json:
        out.print(Text(f"\n{next_steps(settings.data)}"), soft_wrap=True)


def demo_settings(settings: Settings) -> Settings:
    """A data folder beside the real one, and nothing shared with it."""
    folder = settings.data.with_name(f"{settings.data.name}-demo")
    return settings.model_copy(update={"data": folder, "database_url": "", "chroma_url": ""})


def next_steps(folder: Path) -> str:
    """What to type next, as the person can type it here."""
    me = command_name()
    return f"""What to type next
  {me} ask "your question" --data {shlex.quote(str(folder))}
      asks these sample papers something else
  {me} ingest FILE
      takes your own papers; then: {me} ask "your question"
  {me} serve
      opens a page for the browser, and an HTTP API that chat programs can use
  {me} doctor
      tells what is configured, what works and what is missing

To have an LLM write the answers, in place of sentences out of the papers:
  export OPENAI_API_KEY=…
or with Ollama (vLLM and others alike):
  export FOOTNOTE_LLM_BASE_URL=http://localhost:11434/v1
  export FOOTNOTE_LLM_MODEL=llama3.1"""


def command_name() -> str:
    """`footnote` where that finds this very program, else the path from here."""
    here = Path(sys.argv[0]).resolve()
    found = shutil.which("footnote")
    return "footnote" if found and Path(found).resolve() == here else os.path.relpath(here)
