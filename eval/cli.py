"""`footnote eval …`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from eval import cli_calibrate, cli_make, cli_runs

app = typer.Typer(name="eval", no_args_is_help=True, help="Measure retrieval and answers.", pretty_exceptions_enable=False)


@app.callback()
def evaluation() -> None:
    """Measure retrieval and answers."""


@app.command()
def retrieval(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="corpus.jsonl[.gz], queries.jsonl and qrels.jsonl.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    by_query: Annotated[bool, typer.Option("--by-query", help="Each query's measures too.")] = False,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Keep the library made, to be faster next time.")
    ] = None,
) -> None:
    """Rank a retrieval set's queries and measure the rankings."""
    from eval.datasets import read_retrieval_set
    from eval.retrieval import evaluate

    dataset = read_retrieval_set(folder)
    with tempfile.TemporaryDirectory() as temporary:
        result = evaluate(dataset, keep or Path(temporary))
    details = {"by_query": result.by_query} if by_query else {}
    if as_json:
        counts = {"queries": result.queries, "documents": result.documents, "seconds": result.seconds}
        typer.echo(json.dumps({**result.measures, **counts, **details}))
        return
    for name, value in result.measures.items():
        typer.echo(f"{name:8} {value:.4f}")
    for query_id, values in result.by_query.items() if by_query else ():
        typer.echo(f"{query_id}  " + "  ".join(f"{name} {value:.3f}" for name, value in values.items()))


for command in (
    cli_runs.questions,
    cli_runs.gate,
    cli_runs.report,
    cli_runs.compare,
    cli_calibrate.calibrate,
    cli_make.make_questions,
):
    app.command()(command)
