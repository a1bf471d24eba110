"""How answers, papers and reports look in a terminal. Every text from outside passes `visible` and never rich's markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import set_cell_size
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from rag.abstain import NEAREST
from rag.text import clean
from rag.types import Answer, AnswerSentence, Citation, IngestReport, Paper, Rejected, Retrieved, cut

WIDEST = 100
"""Columns; longer lines are hard to read however wide the terminal."""

UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters (a terminal obeys them) and those that turn the reading direction."""

MARKER = re.compile(r"\[\d+\]")
PADDING = re.compile(r"[ ]+(?=\n|\Z)")
SHOWN_AUTHORS = 4
SHOWN_REASONS = 20


class PipeConsole(Console):
    """A console that tells its caller when the reader has gone (`footnote … | head`), rather than ending the process, and that
    leaves the blanks out with which rich fills lines up where they are not drawn but kept."""

    def print(self, *objects: Any, **options: Any) -> None:  # Any: what rich's own takes
        if self.is_terminal:
            super().print(*objects, **options)
            return
        with self.capture() as printed:
            super().print(*objects, **options)
        self.file.write(PADDING.sub("", printed.get()))
        self.file.flush()

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Colours only on a terminal and without NO_COLOR (rich sees to both); never wider than can be read well."""
    made = PipeConsole(stderr=stderr, highlight=False, markup=False, emoji=False)
    made.width = min(made.width, WIDEST)
    return made


def visible(text: str) -> str:
    """`text` without what a terminal would obey rather than show."""
    return UNSEEN.sub("", text)


def readable(text: str) -> str:
    """A title or a quotation in one line, without TeX, HTML or Markdown, and nothing that a terminal would obey."""
    return visible(clean(text).text)


def render_answer(answer: Answer) -> Group:
    """The answer, its footnotes and its warnings; when it abstains, that it does, and the nearest papers with their ids in place
    of the sentence that names them."""
    parts: list[RenderableType] = [*paragraphs(answer.text), *footnotes(answer)]
    if answer.status == "not_in_corpus" and answer.papers:
        nearest = [brief(scored.paper) for scored in answer.papers[:NEAREST]]
        parts = [*paragraphs(answer.sentences[0].text), "", Text("Nearest papers", style="bold"), *nearest]
    warnings = list(support_warnings(answer.sentences))
    if warnings:
        parts += ["", *warnings]
    if answer.notice:
        parts += ["", Text(visible(answer.notice), style="yellow")]
    return Group(*parts)


def paragraphs(text: str) -> Iterator[RenderableType]:
    """The answer's lines; a list item hangs from its dash."""
    for line in text.strip().splitlines():
        if line.startswith("- "):
            item = two_columns(1)
            item.add_row("-", marked(line[2:]))
            yield item
        else:
            yield marked(line)


def two_columns(gap: int, width: int | None = None) -> Table:
    """A label and what belongs to it, folded: a column of Chinese, which has no blanks, would else be cut off."""
    grid = Table.grid(padding=(0, gap))
    grid.add_column(no_wrap=True, width=width)
    grid.add_column(overflow="fold")
    return grid


def marked(text: str) -> Text:
    """Answer text with its markers set off."""
    shown = Text(visible(text))
    shown.highlight_regex(MARKER, "bold cyan")
    return shown


def footnotes(answer: Answer) -> list[RenderableType]:
    """What each marker stands for, below an empty line; nothing without markers."""
    notes: list[RenderableType] = [footnote(citation, answer) for citation in answer.citations]
    return ["", *notes] if notes else []


def footnote(citation: Citation, answer: Answer) -> RenderableType:
    """`[1] who · where · when`, the link, and each passage quoted from this paper."""
    body = Group(headline(citation.paper), *(quotation(quote) for quote in quotes_of(citation, answer)))
    grid = two_columns(1, width=4)
    grid.add_row(Text(f"[{citation.marker}]", style="bold cyan"), body)
    return grid


def quotes_of(citation: Citation, answer: Answer) -> list[str]:
    """What is quoted from the paper behind this marker, in order, the citation's own words first, nothing twice."""
    evidence = [one.quote for sentence in answer.sentences for one in sentence.evidence if one.marker == citation.marker]
    return list(dict.fromkeys([citation.quote, *evidence]))


def quotation(quote: str) -> Text:
    """The quoted words as they read: formulas and emphasis without their markup (`--json` gives them as they stand)."""
    return Text(f"“{readable(quote)}”", style="italic", overflow="fold")


def headline(paper: Paper) -> Text:
    """Title, who and when, where, link: a line each, as far as known."""
    line = Text()
    if paper.title:
        line.append(readable(paper.title) + "\n", style="bold")
    line.append(visible(who(paper)) + (f" ({paper.year})" if paper.year else "") + "\n")
    where = " — ".join(place for place in (paper.venue, paper.category) if place)
    if where:
        line.append(visible(where) + "\n", style="dim")
    return line.append(visible(link(paper)), style="blue")


def who(paper: Paper) -> str:
    """The first authors by name: `A, B, C, D et al.`"""
    names = ", ".join(map(name_in_order, paper.authors[:SHOWN_AUTHORS]))
    more = paper.authors_truncated or len(paper.authors) > SHOWN_AUTHORS
    return f"{names} et al." if names and more else names or "Unknown authors"


def name_in_order(author: str) -> str:
    """`Doe, Jane`, as BibTeX has it, as `Jane Doe`, so that a list of authors can be read."""
    family, comma, given = author.partition(", ")
    return f"{given} {family}" if comma and ", " not in given else author


def link(paper: Paper) -> str:
    """The paper's address; without one, what shows it here."""
    return paper.url or paper.doi_url or f"footnote papers show {paper.paper_id}"


def support_warnings(sentences: Sequence[AnswerSentence]) -> Iterator[Text]:
    """One line for each sentence that its source may not bear out."""
    for sentence in sentences:
        if sentence.support == "ok":
            continue
        what = cut(re.sub(rf"\s*{MARKER.pattern}", "", " ".join(sentence.text.split())).strip(), 60)
        reason = sentence.reason or sentence.support.replace("_", " ")
        yield Text(f"! “{visible(what)}”: {visible(reason)}", style="yellow")


def brief(paper: Paper) -> Group:
    """A paper on one line: id, who and when, and what it is about."""
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(paper.paper_id, style="cyan").append("  ")
    line.append(set_cell_size(visible(paper.cite_as), 28) + "  ").append(gist(paper), style="dim")
    return Group(line)  # printed bare, a text would be wrapped all the same


def gist(paper: Paper) -> str:
    """A line that tells what a paper is about: its title, or how its abstract begins."""
    return readable(paper.title or paper.abstract[:200])


def render_paper(paper: Paper) -> Group:
    """All that is known of one paper."""
    authors = ", ".join(paper.authors) + (" et al." if paper.authors_truncated else "")
    facts = [
        ("id", paper.paper_id),
        ("authors", authors),
        ("category", paper.category),
        ("venue", paper.venue),
        ("year", str(paper.year or "")),
        ("doi", paper.doi),
        ("link", paper.url),
        ("keywords", ", ".join(paper.keywords)),
    ]
    grid = two_columns(2)
    for name, value in facts:
        if value:
            grid.add_row(Text(name, style="dim"), Text(visible(value)))
    title = [Text(visible(paper.title), style="bold")] if paper.title else []
    return Group(*title, grid, "", Text(visible(paper.abstract)))


def render_found(found: Sequence[Retrieved]) -> Group:
    """Search results, best first: score, headline, and the sentence nearest to the question."""
    return Group(*(hit(rank, one) for rank, one in enumerate(found, start=1)))


def hit(rank: int, one: Retrieved) -> RenderableType:
    parts: list[RenderableType] = [headline(one.paper)]
    sentence = best_sentence(one)
    if sentence:
        parts.append(quotation(sentence))
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, width=4, justify="right")
    grid.add_column(no_wrap=True, width=5)
    grid.add_column(overflow="fold")
    grid.add_row(Text(f"{rank}."), Text(f"{one.score:.2f}", style="dim"), Group(*parts, ""))
    return grid


def best_sentence(one: Retrieved) -> str:
    """The verbatim sentence nearest to the question, or nothing where sentences were not scored."""
    if not one.sentence_scores:
        return ""
    best = max(range(len(one.sentence_scores)), key=one.sentence_scores.__getitem__)
    sentence = one.found.sentences[best]
    return one.paper.abstract[sentence.start : sentence.end]


def render_report(report: IngestReport) -> Group:
    """What an ingest did, and the reason for everything it could not take."""
    line = Text(f"{counted(report)}; revision {report.revision}", style="bold")
    slow = "" if report.indexed else "The indexes have not caught up yet; any footnote command brings them up to date."
    parts: list[RenderableType] = [line, *([Text(slow, style="yellow")] if slow else [])]
    parts += refusals("Skipped", report.skipped, "dim")
    parts += refusals("Rejected", report.rejected, "red")
    return Group(*parts)


def counted(report: IngestReport) -> str:
    """`100 records: 99 added, 1 known already`: what became of each record that could be read."""
    records = report.added + report.merged + report.unchanged
    merged = f", {report.merged:,} merged into one known" if report.merged else ""
    unchanged = f", {report.unchanged:,} known already" if report.unchanged else ""
    return f"{f'{records:,} records: ' if records > report.added else ''}{report.added:,} added{merged}{unchanged}"


def refusals(title: str, refused: Sequence[Rejected], style: str) -> list[RenderableType]:
    """The first reasons one a line, and how many more there are."""
    if not refused:
        return []
    lines = [Text(f"  {visible(refusal(one))}") for one in refused[:SHOWN_REASONS]]
    rest = len(refused) - SHOWN_REASONS
    more = [Text(f"  … and {rest} more (--json lists them all)")] if rest > 0 else []
    return [Text(f"{title} {len(refused)}:", style=style), *lines, *more]


def refusal(one: Rejected) -> str:
    """Where and why, the file named once."""
    place = f"{one.source}, {one.where}" if one.where else one.source
    return one.reason if one.reason.startswith(place) else f"{place}: {one.reason}"
