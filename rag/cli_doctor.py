"""`doctor`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import chain

import typer
from rich.text import Text

from rag.cli_options import Data, Json, settings_of
from rag.cli_render import console, visible
from rag.doctor import Finding, examine
from rag.errors import FootnoteError
from rag.settings import Settings
from rag.wire import to_line

Examine = Callable[[Settings], Iterator[Finding]]
SIGNS = {"works": ("✓", "green"), "off": ("·", "dim"), "broken": ("✗", "red")}


def doctor(context: typer.Context, as_json: Json = False, data: Data = None) -> None:
    """Tell what is configured, what works, what is missing and what to do next."""
    out, broken = console(), 0
    beyond: Examine | None = context.obj  # what `footnote.py` knows of and `rag` does not
    settings = settings_of(data)
    for finding in chain(examine(settings), beyond(settings) if beyond else ()):
        broken += finding.state == "broken"
        if as_json:
            typer.echo(to_line(asdict(finding)))
        else:
            out.print(render_finding(finding))
    if broken:
        raise FootnoteError(f"{broken} of these parts do not work")


def render_finding(finding: Finding) -> Text:
    """What was found of one part, and below it what to do."""
    sign, style = SIGNS[finding.state]
    line = Text().append(f"{sign} ", style=style).append(f"{finding.part}: ", style="bold").append(visible(finding.said))
    return line.append(f"\n  → {visible(finding.todo)}", style="yellow") if finding.todo else line
