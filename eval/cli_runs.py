"""`footnote eval questions`, `gate`, `report` and `compare`: making runs and reading them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rag.cli_options import Data, Json, settings_of
from rag.errors import InputError

if TYPE_CHECKING:
    from eval.gate import Held
    from eval.shelves import Distractors
    from eval.summary import Summary

DONE_IN_PART = 3

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
Least = Annotated[list[str] | None, typer.Option("--min", metavar="NAME=VALUE", help="A measure's lowest value; repeatable.")]
Most = Annotated[list[str] | None, typer.Option("--max", metavar="NAME=VALUE", help="A measure's highest value; repeatable.")]
Baseline = Annotated[Path | None, typer.Option(metavar="FILE", help="Figures the run may not be worse than, beyond chance.")]
WhoJudged = Annotated[str | None, typer.Option("--judge", metavar="NAME", help="Whose words; by default the last judge's.")]


def questions(
    file: Annotated[Path, typer.Argument(metavar="SET", help="Questions, a JSON object a line.")],
    out: Annotated[Path | None, typer.Option("--out", metavar="RUN", help="The run's folder; an unfinished one goes on.")] = None,
    papers: Annotated[list[Path] | None, typer.Option("--papers", help="Ask a library made of these files.")] = None,
    data: Data = None,
    judge: Annotated[Literal["local", "llm", "none"], typer.Option(help="Who judges the answers.")] = "local",
    judge_model: Annotated[str, typer.Option(help="The judge's LLM, if not the one that answers.")] = "",
    judge_url: Annotated[str, typer.Option(help="That LLM's server.")] = "",
    judge_key: Annotated[str, typer.Option(envvar="EVAL_JUDGE_API_KEY", help="The key for it.", show_envvar=True)] = "",
    distractors: Annotated[int, typer.Option(min=0, help="Put so many other papers among those of --papers.")] = 0,
    distractors_from: Annotated[Path | None, typer.Option(metavar="FILE", help="Where the other papers are.")] = None,
    until: Annotated[Literal["done", "decided"], typer.Option(help="decided: stop once --min and --max are decided.")] = "done",
    least: Least = None,
    most: Most = None,
    baseline: Baseline = None,
    seed: Annotated[int, typer.Option(help="Draws the distractors, and the order with --until decided.")] = 0,
    max_tokens: Annotated[int | None, typer.Option(min=0, help="Stop once so many tokens are used.")] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="Stop once so much is paid, by --price-in and --price-out.")
    ] = None,
    price_in: Annotated[float, typer.Option(min=0, help="Of a million prompt tokens.")] = 0.0,
    price_out: Annotated[float, typer.Option(min=0, help="Of a million completion tokens.")] = 0.0,
    at_once: Annotated[int, typer.Option(min=1, max=64, help="Questions asked at the same time.")] = 4,
    labels: Annotated[list[Path] | None, typer.Option(help="Hold the judge against these labelled claims too.")] = None,
    as_json: Json = False,
) -> None:
    """Ask every question of a set, judge the answers and print the figures. Run again, it does only what is left."""
    from eval.answers import Limits
    from eval.driver import JudgeChoice, Plan, ask_set
    from eval.gate import hold, hold_baseline, read_baseline, read_bounds
    from eval.summary import summary_of
    from rag.cli_ask import progress_bar

    if (max_cost is not None) and not (price_in or price_out):
        raise InputError("--max-cost needs --price-in and --price-out.")
    plan = Plan(
        file=file,
        out=out,
        papers=tuple(papers or ()),
        distractors=drawn(distractors, distractors_from, seed),
        judge=JudgeChoice(judge, judge_model, judge_url, judge_key),
        limits=Limits(max_tokens, max_cost, price_in, price_out),
        bounds=tuple(read_bounds(least or (), most or ())),
        until_decided=until == "decided",
        at_once=at_once,
        seed=seed,
        labels=tuple(labels or ()),
    )
    before = read_baseline(baseline) if baseline else {}
    finished = ask_set(settings_of(data), plan, progress=progress_bar)
    summary = summary_of(finished.run)
    show(summary, finished.run.folder, as_json)
    for name in summary.manifest.missing_gold:
        typer.echo(f"footnote: no paper here is {name}, which a question has for gold", err=True)
    if finished.stopped:
        typer.echo(f"footnote: {finished.stopped}; {summary.asked} of {summary.questions} questions were asked", err=True)
    held = finished.deciding.held() if finished.deciding else hold(summary.figures, plan.bounds)
    settle([*held, *hold_baseline(summary.figures, before)], as_json)
    in_part = summary.asked < summary.questions and not finished.deciding
    if in_part or summary.figures["error_rate"].value:
        raise typer.Exit(DONE_IN_PART)


def drawn(count: int, file: Path | None, seed: int) -> Distractors | None:
    """Raises InputError unless both or neither are given."""
    from eval.shelves import Distractors

    if bool(count) != bool(file):
        raise InputError("--distractors says how many, --distractors-from where from: give both.")
    return Distractors(count, file, seed) if file else None


def show(summary: Summary, folder: Path, as_json: bool) -> None:
    """Prints the figures and leaves them beside the run."""
    from eval.report import to_json, to_text
    from eval.runs import replace_file

    replace_file(folder / "summary.json", json.dumps(to_json(summary), indent=1, ensure_ascii=False) + "\n")
    typer.echo(json.dumps(to_json(summary), ensure_ascii=False) if as_json else to_text(summary))
    typer.echo(f"The run is in {folder}; a page of it: footnote eval report {folder}", err=True)


def settle(held: Sequence[Held], as_json: bool = False) -> None:
    """Says which bounds hold; ends with 1 if one does not."""
    for one in held:
        typer.echo(f"{'holds' if one.holds else 'FAILS'}: {one.bound} ({one.said})", err=as_json)
    if not all(one.holds for one in held):
        raise typer.Exit(1)


def gate(
    folder: RunFolder,
    least: Least = None,
    most: Most = None,
    baseline: Baseline = None,
    judge: WhoJudged = None,
    as_json: Json = False,
) -> None:
    """Hold a run's figures to bounds; ends with 1 if one fails. An undefined figure, and an unfinished run, fail."""
    from dataclasses import asdict

    from eval.gate import Held, hold, hold_baseline, read_baseline, read_bounds
    from eval.runs import read_run
    from eval.summary import summary_of

    bounds = read_bounds(least or (), most or ())
    if not bounds and baseline is None:
        raise InputError("a gate needs a bound: --min faithfulness=0.9, or --baseline FILE")
    summary = summary_of(read_run(folder, judge))
    held = [*hold(summary.figures, bounds), *hold_baseline(summary.figures, read_baseline(baseline) if baseline else {})]
    if summary.asked < summary.questions:
        held.append(Held("every question asked", False, f"{summary.asked} of {summary.questions}; ask the rest first"))
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in held], ensure_ascii=False))
    settle(held, as_json)


def report(folder: RunFolder, judge: WhoJudged = None, as_json: Json = False) -> None:
    """Write a run's report: report.html (one page, nothing else needed), report.md and summary.json, in its folder."""
    from eval.page import to_html
    from eval.report import to_json, to_markdown
    from eval.runs import read_run, replace_file
    from eval.summary import summary_of

    summary = summary_of(read_run(folder, judge))
    replace_file(folder / "report.html", to_html(summary))
    replace_file(folder / "report.md", to_markdown(summary))
    replace_file(folder / "summary.json", json.dumps(to_json(summary), indent=1, ensure_ascii=False) + "\n")
    typer.echo(json.dumps(to_json(summary), ensure_ascii=False) if as_json else str(folder / "report.html"))


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="The folder of a run.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The folder of another, of the same questions.")],
    as_json: Json = False,
) -> None:
    """Say in which measures run B differs from run A beyond chance, question by question."""
    from eval.compare import compared, to_json, to_text
    from eval.runs import read_run

    found = compared(read_run(a), read_run(b))
    typer.echo(json.dumps(to_json(found), ensure_ascii=False) if as_json else to_text(found))
