"""`footnote eval make-questions`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from rag.cli_options import Data, settings_of
from rag.errors import InputError


def make_questions(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="Where dev.jsonl and test.jsonl are written.")],
    papers: Annotated[list[Path], typer.Option("--papers", help="Files of papers to ask about.")],
    count: Annotated[int | None, typer.Option(min=1, help="Draw so many papers; by default all.")] = None,
    per_paper: Annotated[int, typer.Option(min=1, max=10, help="Questions to ask for, a paper.")] = 2,
    unlike: Annotated[list[Path] | None, typer.Option(help="Also keep clear of the text of these files.")] = None,
    seed: Annotated[int, typer.Option(help="Draws the papers.")] = 0,
    data: Data = None,
) -> None:
    """Write new held-out questions from papers with an LLM: each checked against its paper and against the LLM's own memory."""
    from eval.judges import LocalJudge
    from eval.make_questions import QuestionMaker, drawn, shown_texts
    from eval.runs import replace_file
    from eval.shelves import open_papers
    from rag.build import make_llm
    from rag.cli_ask import progress_bar

    settings = settings_of(data)
    llm = make_llm(settings)
    if llm is None:
        raise InputError("make-questions wants an LLM: set FOOTNOTE_LLM_MODEL (and FOOTNOTE_LLM_BASE_URL), or OPENAI_API_KEY.")
    with open_papers(settings, papers, None, lambda step: None) as library:
        judge = LocalJudge(library.embedder, library.indexes.keyword)
        chosen = drawn(library.catalogue.list(limit=1_000_000), count, seed)
        maker = QuestionMaker(llm, judge, shown_texts(unlike or ()), per_paper)
        with progress_bar(len(chosen)) as advance:
            made = asyncio.run(maker.make(chosen, advance))
    out.mkdir(parents=True, exist_ok=True)
    for split, questions in made.kept.items():
        replace_file(out / f"{split}.jsonl", "".join(one.model_dump_json(exclude_defaults=True) + "\n" for one in questions))
        typer.echo(f"{out / split}.jsonl: {len(questions)} questions")
    for reason, number in made.dropped.most_common():
        typer.echo(f"dropped {number}: {reason}")
