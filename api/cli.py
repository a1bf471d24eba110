"""The commands that serve."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag.cli_options import Data, settings_of

app = typer.Typer()


@app.callback()
def commands() -> None:
    """Makes a group of the commands, however few there are."""


@app.command()
def serve(
    host: Annotated[str, typer.Option("--host", help="Address to listen at; beyond loopback keys must be set.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen at; 0 chooses a free one.")] = 8000,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes; more than one needs FOOTNOTE_CHROMA_URL.")] = 1,
    data: Data = None,
) -> None:
    """Serve questions over HTTP: the page, the API, and OpenAI's chat API for other front ends."""
    from api import serve as serving

    serving.serve(settings_of(data), host, port, workers)


@app.command()
def slack(data: Data = None) -> None:
    """Answer in Slack over Socket Mode, which needs no address that Slack can reach."""
    from api import slack as socket_mode

    socket_mode.serve(settings_of(data))


@app.command()
def keys(
    file: Annotated[Path, typer.Option("--file", help="Where to keep their digests; Compose reads it.")] = Path(".env"),
) -> None:
    """Make a key and an admin key: their digests go into a file, they themselves are shown once."""
    from api.keys import make_keys

    made = make_keys(file)
    typer.echo(f"Key:       {made.user}\nAdmin key: {made.admin}")
    typer.echo(f"Keep them: {file} holds only their digests.", err=True)
