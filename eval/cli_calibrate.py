"""`footnote eval calibrate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from rag.cli_options import Data, Json, settings_of


def calibrate(
    file: Annotated[Path, typer.Argument(metavar="SET", help="Questions, a JSON object a line.")],
    papers: Annotated[list[Path], typer.Option("--papers", help="The papers they are about.")],
    refuse: Annotated[float, typer.Option(min=0, max=1, help="Share of answerable questions each threshold may refuse.")] = 0.05,
    wrong_at_most: Annotated[
        float | None, typer.Option(help="Keep what is fitted, and only raise where abstaining begins to bound wrong answers.")
    ] = None,
    support: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Fit the support thresholds too, on labelled claims in this folder.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Thresholds to write; by default the engine's own.")] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Fit when to abstain, and write the numbers that the engine uses, with the curve they were chosen from."""
    from eval.conformal import run_module
    from rag.decide import CALIBRATION

    target = out or CALIBRATION
    if wrong_at_most is not None:
        bound_wrong_answers(file, papers, wrong_at_most, target, data, as_json)
        return
    typer.echo(
        run_module(
            "eval.calibrate_abstention",
            file,
            *papers,
            "--refuse-relevant",
            str(refuse),
            "--refuse-answered",
            str(refuse),
            "--out",
            target,
        ),
        nl=False,
    )
    if support is not None:
        typer.echo(run_module("eval.fit_verifier", support), nl=False)


def bound_wrong_answers(file: Path, papers: list[Path], level: float, target: Path, data: Path | None, as_json: bool) -> None:
    """Asks the set, finds the threshold on half of it, and tells how it does on the other half."""
    from dataclasses import asdict

    from eval.conformal import bounded, write_threshold
    from eval.driver import Plan, ask_set
    from eval.measures import seen_of
    from rag.cli_ask import progress_bar
    from rag.decide import CALIBRATION

    finished = ask_set(settings_of(data), Plan(file, papers=tuple(papers)), progress=progress_bar)
    found = bounded(seen_of(finished.run), level)
    write_threshold(found, CALIBRATION, target)
    if as_json:
        typer.echo(json.dumps(asdict(found)))
        return
    typer.echo(f"Abstaining below {found.threshold:.2f} keeps wrong answers to {level:.0%} of those given.")
    for name, half in (("Found on", found.fitted), ("Tried on", found.tested)):
        risk = "undefined" if half.risk is None else f"{half.risk:.3f}"
        typer.echo(f"{name} {half.answered} answers: {half.given} given, {half.wrong} wrong, {risk}.")
    if not found.holds:
        typer.echo("The tried half does not bear the bound out.", err=True)
        raise typer.Exit(1)
