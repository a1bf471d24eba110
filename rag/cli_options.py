"""The options that commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rag.build import Library
from rag.settings import Settings, read_settings
from rag.types import Filters

DONE_IN_PART = 3
"""Exit code: some inputs were taken, some not, each of these with its reason."""

Data = Annotated[Path | None, typer.Option("--data", metavar="DIR", help="The data folder (FOOTNOTE_DATA).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
YearMin = Annotated[int | None, typer.Option("--year-min", metavar="YEAR", help="Only papers of this year or later.")]
YearMax = Annotated[int | None, typer.Option("--year-max", metavar="YEAR", help="Only papers of this year or earlier.")]
Venue = Annotated[list[str] | None, typer.Option("--venue", help="Only papers of this venue; may be repeated.")]
Category = Annotated[list[str] | None, typer.Option("--category", help="Only this category or area; may be repeated.")]
Author = Annotated[list[str] | None, typer.Option("--author", help="Only papers by this author; may be repeated.")]


def settings_of(data: Path | None) -> Settings:
    """The settings, with the data folder a person named on the command line before all else."""
    return read_settings() if data is None else read_settings(data=data)


def filters_of(
    year_min: int | None,
    year_max: int | None,
    venues: Sequence[str] | None,
    categories: Sequence[str] | None,
    authors: Sequence[str] | None,
) -> Filters:
    """Filters from what was given on the command line."""
    return Filters(year_min, year_max, tuple(venues or ()), tuple(categories or ()), tuple(authors or ()))


def hint_if_empty(library: Library) -> None:
    """Tells a newcomer on stderr why nothing can be found."""
    if not library.catalogue.count():
        typer.echo(f"The library in {library.settings.data} is empty; fill it with: footnote ingest FILE", err=True)
