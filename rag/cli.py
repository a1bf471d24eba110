"""The commands that need nothing but a library: papers in, answers out."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from rag.build import open_library
from rag.cli_ask import ask
from rag.cli_chat import chat
from rag.cli_doctor import doctor
from rag.cli_ingest import demo, ingest, progress
from rag.cli_options import Author, Category, Data, Json, Venue, YearMax, YearMin, filters_of, hint_if_empty, settings_of
from rag.cli_papers import app as papers
from rag.cli_render import console, render_found
from rag.types import ScoredPaper
from rag.wire import scored_to_json, to_line

app = typer.Typer()
app.command()(demo)
app.command()(ingest)
app.command()(ask)
app.command()(chat)
app.command()(doctor)


@app.command()
def search(
    question: Annotated[list[str], typer.Argument(metavar="QUESTION", help="What the papers should be about.")],
    top_k: Annotated[int, typer.Option("-k", "--top-k", min=1, help="How many papers.")] = 10,
    year_min: YearMin = None,
    year_max: YearMax = None,
    venue: Venue = None,
    category: Category = None,
    author: Author = None,
    as_json: Json = False,
    data: Data = None,
) -> None:
    """Find papers, best first, each with its sentence nearest to the question."""
    filters = filters_of(year_min, year_max, venue, category, author)
    with open_library(settings_of(data)) as library:
        hint_if_empty(library)
        found = library.retriever.find(" ".join(question), top_k=top_k, filters=filters)
        nothing = library.relaxation(filters) if filters and not found else "No paper was found."
    if as_json:
        for one in found:
            typer.echo(to_line(scored_to_json(ScoredPaper(one.paper, one.score))))
    else:
        console().print(render_found(found) if found else nothing)


@app.command()
def reindex(as_json: Json = False, data: Data = None) -> None:
    """Make the indexes anew from the catalogue; only papers without vectors are embedded. They mend themselves anyway."""
    started = time.perf_counter()
    with open_library(settings_of(data)) as library:
        with progress(None) as shown:
            library.reindex(shown.on_step)
        papers = library.catalogue.count()
    seconds = round(time.perf_counter() - started, 3)
    if as_json:
        typer.echo(to_line({"papers": papers, "seconds": seconds}))
    else:
        typer.echo(f"{papers:,} papers indexed anew in {seconds:.1f} s")


app.add_typer(papers, name="papers")
