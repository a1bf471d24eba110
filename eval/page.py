"""A run's report as one HTML page that needs nothing else. Every text from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from eval import plots
from eval.figures import Figure
from eval.measures import Seen
from eval.report import CIRCULAR_NOTE, corrected_in_words, figure_cells, number, reference
from eval.runs import ClaimVerdict, SentenceRow
from eval.summary import QualityRow, Summary

KINDS = ("litqa_accuracy", "points_covered", "gold_in_top_5", "first_citation_gold")
"""Measures drawn by kind of question."""

STYLE = Path(__file__).with_name("report.css")


def to_html(summary: Summary) -> str:
    """The whole page."""
    sections = [
        heading(summary),
        findings(summary),
        section("Figures", figures(summary.leading)),
        section("Circular figures", f"<p>{escape(CIRCULAR_NOTE)}</p>" + figures(summary.circular)) if summary.circular else "",
        section("When to trust an answer", curves(summary)),
        section("By kind of question", '<div class="side">' + "".join(by_kind(summary)) + "</div>"),
        section("How good the judge is", judge(summary)),
        section("The worst answers", "".join(map(case, summary.worst)) or "<p>None is worth mending.</p>"),
        section("What the measures are", definitions(summary)),
        section("How the run was made", made(summary)),
    ]
    style = STYLE.read_text(encoding="utf8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<link rel="icon" href="data:,"><title>{escape(summary.run)}</title><style>{style}</style></head>\n<body>\n<main>\n'
        + "\n".join(sections)
        + "\n</main>\n</body></html>\n"
    )


def section(name: str, content: str) -> str:
    return f"<section><h2>{escape(name)}</h2>{content}</section>"


def heading(summary: Summary) -> str:
    """What was asked, of what, and who judged."""
    manifest = summary.manifest
    said = (
        f"{summary.asked} of {summary.questions} questions of {manifest.question_set}, asked of {manifest.papers} papers"
        + (f", {manifest.distractors} of them distractors" if manifest.distractors else "")
        + f". Generator {manifest.models.get('generator', '')}; judge {summary.judge or 'none'}; commit {manifest.commit}."
    )
    return f"<header><h1>{escape(summary.run)}</h1><p>{escape(said)}</p></header>"


def findings(summary: Summary) -> str:
    """Faults by name, or that none was found."""
    if not summary.findings:
        return section("Findings", "<p>No fault beyond chance.</p>")
    items = (f'<li><span class="finding">{escape(one.name)}</span> {escape(one.why)}</li>' for one in summary.findings)
    return section("Findings", f"<ul>{''.join(items)}</ul>")


def figures(of: Sequence[Figure]) -> str:
    """Plot and table."""
    shares = [one for one in of if one.unit and not one.name.startswith(("latency", "tokens"))]
    rows = [[*figure_cells(one), f"{one.better} is better"] for one in of]
    return (
        f'<div class="side"><figure>{plots.intervals(shares)}</figure>'
        + table(["measure", "value", "95 % interval", "scored of all", ""], rows, numbers=(1, 2, 3))
        + "</div>"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Cells are text, not HTML."""
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = "".join(
        "<tr>"
        + "".join(f"<td{' class=n' if place in numbers else ''}>{escape(cell)}</td>" for place, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def curves(summary: Summary) -> str:
    """Risk–coverage and reliability."""
    return (
        '<div class="side">'
        f"<figure>{plots.risk_coverage(summary.risk_coverage)}<figcaption>The surest answers first.</figcaption></figure>"
        f"<figure>{plots.reliability(summary.reliability)}<figcaption>Equally full bins, Wilson intervals.</figcaption></figure>"
        "</div>"
    )


def by_kind(summary: Summary) -> Iterable[str]:
    """Bars of KINDS."""
    for name in KINDS:
        if summary.figures[name].by_kind:
            yield f"<figure>{plots.bars(summary.figures[name])}<figcaption>{escape(name)}</figcaption></figure>"


def judge(summary: Summary) -> str:
    """Confusion and kinds on each labelled set, and the corrected estimate."""
    if not summary.quality:
        return "<p>No judge was asked.</p>"
    parts = [quality(one) for one in summary.quality]
    if summary.corrected:
        parts.append(f"<p>{escape(corrected_in_words(summary))}</p>")
    return "".join(parts)


def quality(one: QualityRow) -> str:
    """One labelled set."""
    words = sorted({word for row in one.confusion.values() for word in row})
    said = f"balanced accuracy {number(one.balanced_accuracy)}, κ {number(one.kappa)}, AUROC {number(one.auroc)}, "
    confusion = table(
        ["label", *words],
        [[label, *(str(row.get(word, 0)) for word in words)] for label, row in one.confusion.items()],
        numbers=range(1, len(words) + 1),
    )
    kinds = table(
        ["kind of claim", "claims", "told rightly", "AUROC against supported"],
        [
            [kind, str(of.judged), f"{of.right:.2f}", "" if of.auroc is None else f"{of.auroc:.3f}"]
            for kind, of in one.by_kind.items()
        ],
        numbers=(1, 2, 3),
    )
    return (
        f"<h3>{escape(one.name)}, by {escape(one.judge)}</h3><p>{escape(said)}{one.judged} of {one.labelled} claims.</p>"
        f'<div class="side">{confusion}{kinds}</div>'
    )


def case(seen: Seen) -> str:
    """Question, answer, quote and verdict side by side."""
    head = f"<h3>{escape(seen.question.question)}</h3>"
    wanted = f'<p class="faint">{escape(f"{seen.question.id}, {seen.question.sort}. {reference(seen.question)}")}</p>'
    if seen.record and seen.record.error:
        body = f'<p class="finding">{escape(seen.record.error.code)}: {escape(seen.record.error.message)}</p>'
    elif seen.verdicts:
        rows = "".join(claim(sentence, verdict) for sentence, verdict in seen.verdicts)
        body = (
            '<div class="wide"><table><thead><tr><th scope="col">answer</th><th scope="col">quote</th>'
            f'<th scope="col">verdict</th></tr></thead><tbody>{rows}</tbody></table></div>{points(seen)}'
        )
    else:
        said = f"{seen.answer.status}: {seen.answer.text}" if seen.answer else "no answer"
        body = f"<p>{escape(said)}</p>"
    return f'<div class="case">{head}{wanted}{body}</div>'


def claim(sentence: SentenceRow, verdict: ClaimVerdict) -> str:
    """One row."""
    quotes = (
        "<br>".join(f"[{one.marker}] <q>{escape(one.quote)}</q>" for one in sentence.evidence)
        or '<span class="faint">none</span>'
    )
    word = f'<strong class="{verdict.word}">{verdict.word.replace("_", " ")}</strong> {escape(verdict.reason)}'
    return f"<tr><td>{escape(sentence.text)}</td><td>{quotes}</td><td>{word}</td></tr>"


def points(seen: Seen) -> str:
    """Which points the answer tells."""
    told = seen.judgement.points if seen.judgement else ()
    words = {True: "told", False: "not told", None: "not judged"}
    items = [
        f"<li>{escape(point)}: {words[told[place] if place < len(told) else None]}</li>"
        for place, point in enumerate(seen.question.points)
    ]
    return f"<ul>{''.join(items)}</ul>" if items else ""


def definitions(summary: Summary) -> str:
    """Formula and source of each measure."""
    items = (f"<dt><strong>{escape(one.name)}</strong></dt><dd>{escape(one.about)}</dd>" for one in summary.figures.values())
    return f"<dl>{''.join(items)}</dl>"


def made(summary: Summary) -> str:
    """The manifest."""
    manifest, here = summary.manifest, summary.manifest.machine
    rows = [
        ["commit", manifest.commit],
        ["code", manifest.code_digest],
        ["question set", f"{manifest.question_set}, {manifest.set_digest}"],
        ["papers", f"{manifest.papers}, {manifest.papers_digest}"],
        *([name, value] for name, value in (manifest.models | manifest.settings | manifest.prompts).items()),
        ["papers shown", str(manifest.top_n)],
        ["machine", f"{here.cpu}, {here.cores} cores, {here.system}, Python {here.python}"],
    ]
    return table(["", ""], rows)
