"""`ingest` and `demo`: papers in, with progress and an acknowledgement for each batch that can no longer be lost."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from rag.build import Library, open_library
from rag.cli_ask import TOP_N, ask_one
from rag.cli_options import DONE_IN_PART, Data, Json, settings_of
from rag.cli_render import console, render_report
from rag.errors import InputError
from rag.ingest import Step, bytes_in, files
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
    taken = report.added + report.merged + report.unchanged
    one_reason = not taken and len(report.rejected) == 1
    if as_json:
        typer.echo(to_line(report_to_json(report)))
    elif not one_reason:
        console().print(render_report(report))
    if report.rejected and not taken:
        reason = report.rejected[0].reason if one_reason else "the reasons are listed above"
        raise InputError(f"nothing could be taken: {reason}")
    if report.rejected:
        raise typer.Exit(DONE_IN_PART)


def take(library: Library, paths: Sequence[Path], format: str = "auto") -> IngestReport:
    """Ingests and shows how far it is."""
    with progress(bytes_in(paths)) as shown:
        return library.ingest(files(paths, format, shown.watch), on_step=shown.on_step)


def acknowledge(step: Step) -> None:
    """One line for the papers of one transaction."""
    commit = step.commit
    typer.echo(f"committed {commit.added + commit.merged + commit.unchanged} revision {commit.revision}", err=True)


@dataclass(frozen=True)
class Shown:
    """How far an ingest is: to be called with each step, and to be put in front of each file."""

    on_step: Callable[[Step], None] = acknowledge
    watch: Callable[[BinaryIO], BinaryIO] = lambda stream: stream


@contextmanager
def progress(size: int | None) -> Iterator[Shown]:
    """Draws a bar on a terminal, elsewhere prints `committed N revision R`, on stderr. `size` is what there is to read, in bytes
    (None: nothing): nobody knows how many papers that is before it was read, and the bar moves when papers are safe."""
    out = console(stderr=True)
    if not out.is_terminal:
        yield Shown()
        return
    papers = TextColumn("{task.fields[papers]:,} papers, {task.fields[rate]:.0f}/s")
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), papers, TimeRemainingColumn())
    with Progress(*columns, console=out, speed_estimate_period=600) as bar:
        task = bar.add_task("Reading", total=size, papers=0, rate=0.0)
        read = bar.add_task("", total=size or 0, visible=False)

        def on_step(step: Step) -> None:
            completed = bar.tasks[read].completed
            rate = step.papers / step.seconds if step.seconds else 0.0
            bar.update(task, description=f"Revision {step.commit.revision}", completed=completed, papers=step.papers, rate=rate)

        yield Shown(on_step, lambda stream: bar.wrap_file(stream, task_id=read))


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
