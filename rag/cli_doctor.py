"""`doctor`."""

from __future__ import annotations

from dataclasses import asdict

import typer
from rich.text import Text

from rag.cli_options import Data, Json, settings_of
from rag.cli_render import console, visible
from rag.doctor import Finding, examine
from rag.errors import FootnoteError
from rag.wire import to_line

SIGNS = {"works": ("✓", "green"), "off": ("·", "dim"), "broken": ("✗", "red")}


def doctor(as_json: Json = False, data: Data = None) -> None:
    """Tell what is configured, what works, what is missing and what to do next."""
    out, broken = console(), 0
    for finding in examine(settings_of(data)):
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
