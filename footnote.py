"""The command `footnote`: joins the command lines of `rag`, `api` and `eval`, each loaded when it is asked for.

Exit codes: 0 done; 1 it could not be done; 2 wrong usage; 3 done in part; 130 interrupted; 141 the reader of a pipe has gone.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO

import typer
from typer.core import TyperGroup
from typer.main import get_command

from rag.errors import FootnoteError

if TYPE_CHECKING:
    from rag.doctor import Finding
    from rag.settings import Settings

READER_GONE = 141
"""128 + SIGPIPE, what other Unix commands end with in `footnote papers list | head`."""


class Rooms(TyperGroup):
    """The commands of `rag`, then those of `api`, then `eval` as one command with its own."""

    def list_commands(self, ctx: Any) -> list[str]:  # Any: typer keeps the types it has from click private
        return [*room("rag.cli").commands, *room("api.cli").commands, "eval"]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # Any: as above
        if cmd_name == "eval":
            return room("eval.cli")
        for module in ("rag.cli", "api.cli"):
            self.commands.update(room(module).commands)  # also what a mistyped name is compared with
            if cmd_name in self.commands:
                return self.commands[cmd_name]
        return None

    def invoke(self, ctx: Any) -> Any:  # Any: as above
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(READER_GONE) from error


def room(module: str) -> TyperGroup:
    """The command line of `rag`, `api` or `eval`."""
    group = get_command(importlib.import_module(module).app)
    assert isinstance(group, TyperGroup)
    return group


def explain(error: Exception) -> str:
    """What went wrong, in one line that says what to do."""
    if isinstance(error, FootnoteError):
        said = str(error)
    elif isinstance(error, OSError):
        said = f"{error.filename or 'input or output'}: {error.strerror or error}"
    else:
        said = f"a fault of Footnote's own ({type(error).__name__}: {error}); please report what --debug shows"
    return " ".join(said.split())


app = typer.Typer(cls=Rooms, no_args_is_help=True, pretty_exceptions_enable=False)


def examine_doors(settings: Settings) -> Iterator[Finding]:
    """What `footnote doctor` tells of `api`."""
    yield from importlib.import_module("api.doctor").examine(settings)


@app.callback()
def footnote(
    context: typer.Context,
    data: Annotated[Path | None, typer.Option("--data", help="The data folder (FOOTNOTE_DATA).")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,  # read by main
) -> None:
    """Answers questions from a shelf of paper abstracts; every sentence carries the papers it rests on and their exact words."""
    if data is not None:
        os.environ["FOOTNOTE_DATA"] = str(data)  # settings are read from the environment, by child processes too
    context.obj = examine_doors


def one_line(message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None) -> str:
    """A warning as a person reads it, without the place in the code."""
    return f"footnote: {message}\n"


def speak_utf8(*streams: TextIO) -> None:
    """JSON is UTF-8 whatever the locale says, and no odd byte may end a command."""
    for stream in streams:
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line (by default this process's) and ends the process with its exit code."""
    warnings.formatwarning = one_line
    speak_utf8(sys.stdin, sys.stdout, sys.stderr)
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        app(words)
    except Exception as error:
        if "--debug" in words:
            raise
        typer.echo(f"footnote: {explain(error)}", err=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
