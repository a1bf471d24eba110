"""A summary as text for a terminal, as JSON, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from eval.figures import Figure
from eval.gate import in_words
from eval.measures import Seen
from eval.question_set import Question
from eval.summary import Summary

CIRCULAR_NOTE = (
    "The local judge is the engine's own verifier, and these answers are sentences copied from the papers: these figures are "
    "circular. They show that nothing was broken on the way, not that the answers are right; go by correctness, retrieval, "
    "marker validity and abstention."
)


def to_json(summary: Summary) -> dict[str, object]:
    """Everything but the worst answers' texts, ready for `json.dumps`."""
    return {
        "run": summary.run,
        "manifest": summary.manifest.model_dump(mode="json"),
        "judge": summary.judge or None,
        "circular": [one.name for one in summary.circular],
        "asked": summary.asked,
        "questions": summary.questions,
        "figures": {name: figure_json(one) for name, one in summary.figures.items()},
        "findings": [asdict(one) for one in summary.findings],
        "risk_coverage": [asdict(one) for one in summary.risk_coverage],
        "reliability": [asdict(one) for one in summary.reliability],
        "judge_quality": [one.model_dump(mode="json") for one in summary.quality],
        "corrected": asdict(summary.corrected) if summary.corrected else None,
        "worst": [one.question.id for one in summary.worst],
    }


def figure_json(figure: Figure) -> dict[str, object]:
    """An undefined value is the word, neither 0 nor null."""
    return {
        "value": "undefined" if figure.value is None else round(figure.value, 6),
        "low": round(figure.interval.low, 6) if figure.interval else None,
        "high": round(figure.interval.high, 6) if figure.interval else None,
        "n_scored": figure.scored,
        "n_total": figure.asked,
        "unit": figure.unit,
        "better": figure.better,
        "by_kind": {kind: {"value": value, "n": n} for kind, (value, n) in figure.by_kind.items()},
    }


def to_text(summary: Summary) -> str:
    """For a terminal."""
    lines = [f"{summary.run}: {summary.asked} of {summary.questions} questions asked, judge {summary.judge or 'none'}"]
    lines += [f"{one.name:22} {in_words(one)}" for one in summary.leading]
    if summary.circular:
        lines += ["", CIRCULAR_NOTE, *(f"{one.name:22} {in_words(one)}" for one in summary.circular)]
    for one in summary.quality:
        lines.append(
            f"judge on {one.name}: {quality_in_words(one.balanced_accuracy, one.kappa, one.auroc, one.judged, one.labelled)}"
        )
    if summary.corrected:
        lines.append(corrected_in_words(summary))
    lines += [f"FOUND: {finding.name} ({finding.why})" for finding in summary.findings]
    return "\n".join(lines)


def quality_in_words(accuracy: float | None, kappa: float | None, auroc: float | None, judged: int, labelled: int) -> str:
    """`balanced accuracy 0.740, κ 0.470, AUROC 0.790, 603/603 claims`."""
    named = (("balanced accuracy", accuracy), ("κ", kappa), ("AUROC", auroc))
    return ", ".join(f"{name} {'undefined' if value is None else f'{value:.3f}'}" for name, value in named) + (
        f", {judged}/{labelled} claims"
    )


def corrected_in_words(summary: Summary) -> str:
    """The raw estimate and the corrected one."""
    found = summary.corrected
    assert found is not None
    return (
        f"faithfulness as people would find it: {found.estimate:.3f} [{found.interval.low:.3f}, {found.interval.high:.3f}] "
        f"by {found.labels} labels; the judge alone says {found.raw:.3f}"
    )


def to_markdown(summary: Summary) -> str:
    """A report to keep with a change."""
    manifest = summary.manifest
    parts = [
        f"# {summary.run}",
        f"{summary.asked} of {summary.questions} questions of {manifest.question_set} over {manifest.papers} papers. "
        f"Judge: {summary.judge or 'none'}. Commit {manifest.commit}. {manifest.machine.cores} cores, {manifest.machine.cpu}.",
    ]
    if summary.findings:
        parts.append("\n".join(f"- **{one.name}**: {one.why}" for one in summary.findings))
    parts.append(figures_table(summary.leading))
    if summary.circular:
        parts += [CIRCULAR_NOTE, figures_table(summary.circular)]
    parts.append("## By kind\n\n" + kinds_table(summary))
    if summary.quality:
        parts.append("## The judge\n\n" + quality_table(summary))
    if summary.corrected:
        parts.append(corrected_in_words(summary))
    parts.append("## Worst answers\n\n" + "\n\n".join(map(worst_in_markdown, summary.worst)))
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; bars in cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def figures_table(figures: Iterable[Figure]) -> str:
    return table(["measure", "value", "95 % interval", "scored"], map(figure_cells, figures))


def figure_cells(one: Figure) -> list[str]:
    """Name, value, interval, scored of asked."""
    digits = 0 if one.value is not None and one.value > 1 else 3
    return [
        one.name,
        "undefined" if one.value is None else f"{one.value:.{digits}f}",
        f"{one.interval.low:.{digits}f}–{one.interval.high:.{digits}f}" if one.interval else "",
        f"{one.scored}/{one.asked} {one.unit}",
    ]


BY_KIND = (
    "litqa_accuracy",
    "points_covered",
    "gold_first",
    "gold_in_top_5",
    "first_citation_gold",
    "over_refusal",
    "abstention_recall",
)


def kinds_table(summary: Summary) -> str:
    kinds = sorted({kind for name in BY_KIND for kind in summary.figures[name].by_kind})
    return table(["kind", *BY_KIND], [[kind, *(kind_cell(summary.figures[name], kind) for name in BY_KIND)] for kind in kinds])


def kind_cell(figure: Figure, kind: str) -> str:
    """`0.86 (50)`."""
    value, count = figure.by_kind.get(kind, (None, 0))
    return "" if value is None else f"{value:.2f} ({count})"


def quality_table(summary: Summary) -> str:
    rows = [
        [one.name, f"{one.judged}/{one.labelled}", *(number(value) for value in (one.balanced_accuracy, one.kappa, one.auroc))]
        for one in summary.quality
    ]
    kinds = [
        [f"{one.name}: {kind}", f"{of.judged}", f"{of.right:.3f}", "", "" if of.auroc is None else f"{of.auroc:.3f}"]
        for one in summary.quality
        for kind, of in one.by_kind.items()
    ]
    return table(["labelled set", "claims", "balanced accuracy (of a kind: told rightly)", "κ", "AUROC"], [*rows, *kinds])


def number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def worst_in_markdown(seen: Seen) -> str:
    """Question, reference, answer and each claim with its quote and verdict."""
    lines = [f"### {seen.question.id} ({seen.question.sort})", f"**{seen.question.question}**", reference(seen.question)]
    if seen.record and seen.record.error:
        lines.append(f"Error: {seen.record.error.code}: {seen.record.error.message}")
    if seen.answer:
        lines.append(f"_{seen.answer.status}_: {seen.answer.text.strip()}")
    for sentence, verdict in seen.verdicts:
        quotes = " … ".join(one.quote for one in sentence.evidence) or "no quote"
        lines.append(f"- {verdict.word}: {sentence.text.strip()}\n  - “{quotes}” {verdict.reason}")
    return "\n\n".join(lines[:4]) + ("\n\n" + "\n".join(lines[4:]) if lines[4:] else "")


def reference(question: Question) -> str:
    """What was wanted."""
    wanted = "; ".join(question.points) or "no points given"
    return f"Wanted: {wanted}" + (f" (gold {', '.join(question.gold)})" if question.gold else "")
