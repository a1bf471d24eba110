"""What a person sees in a terminal."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from rag.cli_render import brief, console, render_answer, render_found, render_paper, render_report, visible
from rag.types import (
    Answer,
    AnswerSentence,
    Citation,
    Evidence,
    Filters,
    IndexedPaper,
    IngestReport,
    Paper,
    Rejected,
    Retrieved,
    ScoredPaper,
    Sentence,
)

SNOW = Paper(
    "p-0000001",
    "Snow is white. It melts in spring.",
    title="On snow",
    authors=("Ada Frost", "Bo Melt", "Cy Ice", "Di Hail", "Ed Sleet"),
    venue="ICML",
    year=2024,
    doi="10.1/snow",
)
RAIN = Paper("p-0000002", "Rain is wet.", authors=("周欣",), category="Weather · Water")


def sentence(text: str, *evidence: Evidence, support: str = "ok", reason: str = "") -> AnswerSentence:
    markers = tuple(one.marker for one in evidence)
    return AnswerSentence(text, markers, "abstract", evidence, support, reason, 0.9)  # type: ignore[arg-type]  # a Support


FIRST, SECOND, THIRD = (
    Evidence(1, 0, 14, "Snow is white.", 0.9),
    Evidence(1, 15, 34, "It melts in spring.", 0.9),
    Evidence(2, 0, 12, "Rain is wet.", 0.9),
)
ANSWER = Answer(
    answer_id="a-1",
    question="q",
    standalone_question="q",
    status="answered",
    text="Snow is white [1]. It melts [1]. Rain is wet [2].",
    sentences=(sentence("Snow is white [1]. ", FIRST), sentence("It melts [1]. ", SECOND), sentence("Rain is wet [2].", THIRD)),
    citations=(Citation(1, SNOW, "Snow is white.", 0, 14), Citation(2, RAIN, "Rain is wet.", 0, 12)),
    papers=(ScoredPaper(SNOW, 0.9), ScoredPaper(RAIN, 0.4)),
    generator="extractive",
    prompt_version=None,
    verifier="local@1",
    filters=Filters(),
    revision=1,
)


def shown(what: RenderableType, *, width: int = 80, colour: bool = False) -> str:
    drawn = Console(file=io.StringIO(), width=width, force_terminal=colour, highlight=False, markup=False)
    drawn.print(what)
    assert isinstance(drawn.file, io.StringIO)
    return "\n".join(line.rstrip() for line in drawn.file.getvalue().splitlines())


def test_an_answer_is_followed_by_who_where_when_link_and_quoted_words() -> None:
    assert shown(render_answer(ANSWER)) == (
        "Snow is white [1]. It melts [1]. Rain is wet [2].\n"
        "\n"
        "[1]  On snow\n"
        "     Ada Frost, Bo Melt, Cy Ice, Di Hail et al. (2024)\n"
        "     ICML\n"
        "     https://doi.org/10.1/snow\n"
        "     “Snow is white.”\n"
        "     “It melts in spring.”\n"
        "[2]  周欣\n"
        "     Weather · Water\n"
        "     footnote papers show p-0000002\n"
        "     “Rain is wet.”"
    )


def test_markers_are_coloured_on_a_terminal_only() -> None:
    assert "\x1b[1;36m[1]\x1b[0m" in shown(render_answer(ANSWER), colour=True)
    assert "\x1b" not in shown(render_answer(ANSWER))


def test_a_sentence_its_source_does_not_bear_out_is_warned_of() -> None:
    doubtful = sentence("Snow is 3 m deep [1].", FIRST, support="number_mismatch", reason="3 is not in the abstract")
    assert "! “Snow is 3 m deep.”: 3 is not in the abstract" in shown(render_answer(replace(ANSWER, sentences=(doubtful,))))
    assert "!" not in shown(render_answer(ANSWER))


def test_an_abstention_names_the_nearest_papers() -> None:
    said = (sentence("Not in these papers. "), sentence("The nearest are: Frost et al. (“On snow”)."))
    abstained = replace(ANSWER, status="not_in_corpus", text="".join(one.text for one in said), sentences=said, citations=())
    text = shown(render_answer(abstained))
    assert text.startswith("Not in these papers.\n\nNearest papers\np-0000001  Frost et al., 2024")
    assert text.count("Frost") == 1
    assert "Nearest papers" not in shown(render_answer(ANSWER))


def test_a_reply_that_names_no_paper_stands_alone() -> None:
    reply = replace(ANSWER, status="not_in_corpus", text="You are welcome.", sentences=(), citations=(), papers=())
    assert shown(render_answer(reply)) == "You are welcome."


def test_quoted_words_and_titles_are_shown_without_their_markup() -> None:
    quote = r"Snow is **white** at $10^{-3}$ for $\alpha \leq 2$ &amp; stays \emph{so}."
    paper = replace(SNOW, title=r"On {S}now at $\alpha$", abstract=quote)
    evidence = Evidence(1, 0, len(quote), quote, 0.9)
    answer = replace(ANSWER, citations=(Citation(1, paper, quote, 0, len(quote)),), sentences=(sentence("So [1].", evidence),))
    text = shown(render_answer(answer), width=100)
    assert "“Snow is white at 10^-3 for α ≤ 2 & stays so.”" in text and "On Snow at α\n" in text
    found = IndexedPaper(paper, quote, (Sentence(0, len(quote), quote),))
    assert "Snow is white at 10^-3" in shown(render_found([Retrieved(found, 0.8, 0.5, 0.5, (0.7,))]), width=100)
    assert "“On Snow" not in shown(brief(paper)) and "On Snow at α" in shown(brief(paper))


def test_lines_are_not_filled_up_where_they_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    kept = io.StringIO()
    monkeypatch.setattr("sys.stdout", kept)
    console().print(render_answer(ANSWER), end="")
    console().print("x  y")
    assert "\n[1]  On snow\n" in kept.getvalue() and kept.getvalue().endswith("x  y\n")
    assert all(line == line.rstrip() for line in kept.getvalue().splitlines())


def test_a_list_item_hangs_from_its_dash() -> None:
    text = shown(render_answer(replace(ANSWER, text="Two:\n- " + "snow " * 6 + "[1].\n- Rain [2].", citations=())), width=20)
    assert text.startswith("Two:\n- snow snow snow\n  snow snow snow\n  [1].\n- Rain [2].")


def test_a_notice_closes_the_answer() -> None:
    assert shown(render_answer(replace(ANSWER, notice="No LLM is configured."))).endswith("\n\nNo LLM is configured.")


@pytest.mark.parametrize("text", ["\x1b[31mred", "\x1b]0;title\x07", "a\x9bb", "ab\u202ecd", "a\rb"])
def test_nothing_from_outside_can_command_the_terminal(text: str) -> None:
    paper = replace(SNOW, title=text, abstract=text, authors=(text,), venue=text, year=None, doi=None, url=text)
    answer = replace(ANSWER, text=text, notice=text, citations=(Citation(1, paper, text, 0, 1),))
    found = Retrieved(IndexedPaper(paper, text, (Sentence(0, len(text), text),)), 0.5, 0.5, 0.5, (0.5,))
    report = IngestReport(0, 0, 0, (), (Rejected(text, text, text),), 1, True, {})
    for what in (render_answer(answer), render_paper(paper), brief(paper), render_found([found]), render_report(report)):
        assert not set(shown(what)) & set("\x1b\x07\x9b\u202e\r")


def test_chinese_is_folded_and_never_cut_off() -> None:
    abstract = "我们提出一种方法" * 20 + "在两个真实数据集上误差降低了百分之十二。"
    paper = Paper("p-0000003", abstract, title=abstract, authors=("Doe, Jane", "周欣"), keywords=(abstract,))
    evidence = Evidence(1, 0, len(abstract), abstract, 0.9)
    citation = Citation(1, paper, abstract, 0, len(abstract))
    for text in (f"{abstract} [1]。", f"- 周欣: {abstract} [1]"):
        answer = replace(ANSWER, text=text, sentences=(sentence(text, evidence),), citations=(citation,))
        assert "".join(shown(render_answer(answer)).split()).count("误差降低了百分之十二") == 3
    assert "".join(shown(render_paper(paper)).split()).count("误差降低了百分之十二") == 3
    assert "Jane Doe, 周欣" in shown(render_answer(answer))


def test_square_brackets_are_text_and_not_markup() -> None:
    assert "[red]x[/red]" in shown(render_paper(replace(SNOW, abstract="[red]x[/red]")))


def test_line_breaks_and_tabs_stay_visible() -> None:
    assert visible("a\n\tb") == "a\n\tb"


def test_a_paper_in_brief_stays_on_one_line_however_wide_its_letters() -> None:
    assert shown(brief(replace(RAIN, abstract="雨" * 200)), width=60).count("\n") == 0


def test_search_shows_the_sentence_nearest_to_the_question() -> None:
    sentences = (Sentence(0, 14, "Snow is white."), Sentence(15, 34, "It melts in spring."))
    text = shown(render_found([Retrieved(IndexedPaper(SNOW, SNOW.abstract, sentences), 0.81, 0.5, 0.5, (0.1, 0.7))]))
    assert "1. 0.81  On snow" in text
    assert "“It melts in spring.”" in text
    assert "Snow is white" not in text


def test_a_report_gives_reasons_and_says_when_the_indexes_lag_behind() -> None:
    rejected = tuple(Rejected("a.json", f"line {line}", "no abstract") for line in range(30))
    text = shown(render_report(IngestReport(2, 1, 0, (Rejected("b.md", "", "no papers"),), rejected, 7, False, {})))
    assert "3 records: 2 added, 1 merged into one known; revision 7" in text
    assert "not caught up" in text
    assert "  b.md: no papers" in text
    assert "Rejected 30:\n  a.json, line 0: no abstract" in text
    assert "… and 10 more" in text
