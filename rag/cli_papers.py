"""`papers list|show|remove|export`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from rag.build import Library, open_library
from rag.catalogue import Catalogue
from rag.cli_options import Author, Category, Data, Json, Venue, YearMax, YearMin, filters_of, settings_of
from rag.cli_render import brief, console, render_paper
from rag.errors import FootnoteError
from rag.export import FORMS, export
from rag.types import Filters, Paper
from rag.wire import paper_to_json, to_line

PAGE = 500

Names = Annotated[list[str], typer.Argument(metavar="PAPER…", help="Ids, DOIs, arXiv ids or other names of papers.")]

app = typer.Typer(no_args_is_help=True, help="List, show, remove or export the papers of the library.")


@app.command("list")
def list_papers(
    year_min: YearMin = None,
    year_max: YearMax = None,
    venue: Venue = None,
    category: Category = None,
    author: Author = None,
    as_json: Json = False,
    data: Data = None,
) -> None:
    """All papers in order of arrival, one a line."""
    filters = filters_of(year_min, year_max, venue, category, author)
    out, nothing = console(), True
    with open_library(settings_of(data)) as library:
        for paper in every_paper(library.catalogue, filters):
            nothing = False
            if as_json:
                typer.echo(to_line(paper_to_json(paper)))
            else:
                out.print(brief(paper))
        if filters and nothing:
            typer.echo(library.relaxation(filters), err=True)


@app.command("show")
def show_papers(papers: Names, as_json: Json = False, data: Data = None) -> None:
    """All that is known of these papers."""
    out = console()
    with open_library(settings_of(data)) as library:
        for paper in named(library, papers):
            if as_json:
                typer.echo(to_line(paper_to_json(paper)))
            else:
                out.print(render_paper(paper), "")


@app.command("remove")
def remove_papers(papers: Names, as_json: Json = False, data: Data = None) -> None:
    """Take these papers out of the library."""
    with open_library(settings_of(data)) as library:
        paper_ids = [library.catalogue.resolve(name) for name in papers]
        commit = library.catalogue.remove(paper_ids)
    if as_json:
        typer.echo(to_line({"removed": commit.removed, "revision": commit.revision}))
    else:
        typer.echo(f"{commit.removed} removed; revision {commit.revision}")


@app.command("export")
def export_papers(
    papers: Annotated[list[str] | None, typer.Argument(metavar="[PAPER…]", help="Only these papers; without any, all.")] = None,
    form: Annotated[str, typer.Option("--format", help=" | ".join(FORMS))] = "bib",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here, not to the terminal.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format jsonl.")] = False,
    data: Data = None,
) -> None:
    """Papers for a reference manager (BibTeX, RIS, CSL-JSON) or a program (JSON Lines)."""
    form = "jsonl" if as_json else form
    if form not in FORMS:
        raise typer.BadParameter(f"choose one of {', '.join(FORMS)}", param_hint="--format")
    with open_library(settings_of(data)) as library:
        chosen = named(library, papers) if papers else every_paper(library.catalogue, Filters())
        pieces = export(chosen, form)
        if output is None:
            sys.stdout.writelines(pieces)
        else:
            write(output, pieces)


def write(output: Path, pieces: Iterator[str]) -> None:
    """Writes a whole file or, when it cannot be made, none."""
    part = output.with_name(output.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.writelines(pieces)
        part.replace(output)
    except OSError as error:
        raise FootnoteError(f"{output}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def every_paper(catalogue: Catalogue, filters: Filters) -> Iterator[Paper]:
    """All papers that pass, page by page, so that a library of any size can be listed."""
    after: str | None = None
    while page := catalogue.list(after=after, limit=PAGE, filters=filters):
        yield from page
        after = page[-1].paper_id


def named(library: Library, names: list[str]) -> list[Paper]:
    """The papers of these names, in order. Raises NotFound for the first that is none's."""
    return library.catalogue.papers([library.catalogue.resolve(name) for name in names])
