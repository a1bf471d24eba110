"""An answer on the page: as it comes, its footnotes, its support, what can be done with it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

from api.errors import ApiError
from rag.errors import LLMUnavailable
from rag.types import AnswerSentence, Filters, RawPaper, Support
from tests.api.fakes import FakeLibrary, fake_library
from tests.web.conftest import OpenSite, Site
from tests.web.papers import HARD, HOSTILE, change, cited

OTTERS = "Otters sort"


def test_sentences_appear_one_by_one_and_are_announced(site: Site, library: FakeLibrary) -> None:
    library.engine.pauses = {2: 1.5}
    site.ask("What do otters do?")
    page = site.page
    expect(page.locator(".sentence")).to_have_count(1)
    expect(page.locator("#live")).to_contain_text("About Otters sor.")
    expect(page.locator(".progress")).to_be_visible()
    expect(page.locator(".sentence")).to_have_count(2)
    expect(page.locator("#live")).to_contain_text("The answer is complete, with 2 footnotes.")
    expect(page.locator(".progress")).to_have_count(0)
    assert page.locator("#live").get_attribute("aria-live") == "polite"


def test_a_footnote_opens_the_abstract_with_the_quoted_words_marked(site: Site, library: FakeLibrary) -> None:
    page = site.page
    answer = site.answered("What do otters do?")
    expect(answer.locator(".footnotes li")).to_have_count(2)
    expect(answer.locator(".footnotes li").first).to_contain_text(
        "Lutz, Ada, Brook, Tim. Pebble choice in otters. Journal of Small Things, 2021."
    )
    marker = answer.get_by_role("button", name="Footnote 2: 周欣 et al., 2019", exact=True)
    marker.click()
    panel = page.get_by_role("complementary")
    expect(panel).to_be_focused()
    expect(panel.locator("mark")).to_have_text("Crows reme")
    expect(panel.locator(".abstract")).to_have_text(library.catalogue.list()[1].abstract)
    expect(panel.get_by_role("link", name="Read the paper")).to_have_attribute("href", "https://example.org/crows?id=7")
    expect(marker).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(marker).to_be_focused()


def test_hundreds_of_authors_do_not_hide_the_abstract(open_site: OpenSite, tmp_path: Path) -> None:
    many = tuple(f"Author {number}" for number in range(1, 301))
    (tmp_path / "many").mkdir()
    library = fake_library(tmp_path / "many", (RawPaper(abstract="Otters sort pebbles.", where="1", authors=many),))
    site = open_site(use=library)
    site.open()
    site.answered("What do otters do?").locator(".marker").click()
    panel = site.page.locator("#source")
    expect(panel.locator("mark")).to_be_in_viewport()
    expect(panel.get_by_text("Author 300")).to_be_hidden()
    site.check_accessibility()
    panel.get_by_text("and 288 more").click()
    expect(panel.get_by_text("Author 300")).to_be_visible()


def test_all_words_quoted_for_a_footnote_are_marked_from_the_list(site: Site, library: FakeLibrary) -> None:
    paper = library.catalogue.list()[0]
    library.engine.change = change(
        cited("They sort [1]. ", paper, "Otters sort pebbles"), cited("A year [1].", paper, "for a year")
    )
    answer = site.answered("What do otters do?")
    answer.get_by_role("button", name="Abstract of footnote 1").click()
    expect(site.page.locator("mark")).to_have_text(["Otters sort pebbles", "for a year"])


def test_what_a_paper_says_is_text_and_never_markup(open_site: OpenSite, tmp_path: Path) -> None:
    library = fake_library(tmp_path / "hard", HARD)
    hostile, _ = library.catalogue.list()
    library.engine.change = change(cited(f"{HOSTILE} [1].", hostile, HOSTILE), notice=HOSTILE, generator=HOSTILE)
    site = open_site(use=library)
    page = site.open()
    answer = site.answered(HOSTILE)
    answer.locator(".marker").click()
    expect(page.locator("mark")).to_have_text(HOSTILE)
    page.locator(".others summary").click()
    for shown in (
        answer.locator(".question"),
        answer.locator(".sentence"),
        answer.locator(".notice"),
        page.locator("#source h3"),
    ):
        expect(shown).to_contain_text(HOSTILE)
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, body script").count() == 0
    assert page.locator("#source a").count() == 0, "a javascript: address is no link"
    library.catalogue.database.close()


def test_formulas_are_drawn_and_quotes_keep_their_places(open_site: OpenSite, tmp_path: Path) -> None:
    library = fake_library(tmp_path / "hard", HARD)
    bound = library.catalogue.list()[1]
    library.engine.change = change(cited("𝒳 is $n^2$ [1].", bound, "A bound of $O(\\sqrt{n})$ holds"))
    site = open_site(use=library)
    page = site.open()
    answer = site.answered("Which bound?")
    expect(answer.locator(".sentence math")).to_have_text("n2")
    expect(answer.locator(".sentence")).to_have_text("𝒳 is n2.1")
    answer.locator(".marker").click()
    expect(page.locator("mark math msqrt")).to_have_text("n")
    expect(page.locator("mark")).to_have_text("A bound of O(n) holds")
    expect(page.locator(".abstract")).to_have_text(
        "𝒳 is a space. A bound of O(n) holds for n<10, and it costs $5 to $9. It is tight."
    )
    expect(page.locator("#source h3 msqrt")).to_have_text("n")
    assert page.locator(".abstract math").first.evaluate("element => element.getBoundingClientRect().height") > 10
    library.catalogue.database.close()


@pytest.mark.parametrize(
    ("support", "word", "full"),
    [
        ("ok", "", 3),
        ("weak", "weak support", 2),
        ("mismatch", "source may not say this", 1),
        ("number_mismatch", "number not in source", 1),
    ],
)
def test_support_is_told_in_words_and_bars(site: Site, library: FakeLibrary, support: Support, word: str, full: int) -> None:
    library.engine.change = change(cited("They sort [1].", library.catalogue.list()[0], OTTERS, support=support))
    answer = site.answered("What do otters do?")
    button = answer.locator(".support")
    expect(button).to_have_text(word)
    expect(button.locator(".full")).to_have_count(full)
    button.click()
    expect(site.page.locator(".check")).to_contain_text(f"said the {support} check")
    expect(site.page.locator(".check .claim")).to_have_text("They sort.")
    expect(site.page.locator("mark")).to_have_text(OTTERS)


def test_a_sentence_without_source_says_so(site: Site, library: FakeLibrary) -> None:
    bare = AnswerSentence("It is so.", (), "abstract", (), "uncited", "cites nothing", 0.0)
    pair = cited("They sort [1]. ", library.catalogue.list()[0], OTTERS)
    library.engine.change = {**change(pair), "sentences": (pair[0], bare), "text": "They sort [1]. It is so."}
    answer = site.answered("What do otters do?")
    expect(answer.locator(".support").nth(1)).to_have_text("no source")
    expect(answer.locator(".summary").first).to_have_text("1 of 2 sentences borne out by the quoted words; 1 without a source.")


def test_filters_are_sent_told_and_can_be_changed(site: Site, library: FakeLibrary) -> None:
    page = site.page
    page.locator("#filters summary").click()
    expect(page.locator("#venues-known option[value='Bird Letters']")).to_have_count(1)
    page.get_by_label("from").fill("2019")
    page.get_by_label("Venue", exact=True).fill("Bird Letters")
    page.keyboard.press("Enter")
    page.get_by_label("Area", exact=True).fill("Zoology")
    expect(page.locator("#venues-chips")).to_contain_text("Bird Letters")
    library.engine.change = {"filters": Filters(year_min=2020, venues=("Bird Letters",))}
    answer = site.answered("What do crows do?")
    assert library.engine.asked[-1].filters == Filters(year_min=2019, venues=("Bird Letters",), categories=("Zoology",))
    expect(answer.locator(".echo")).to_contain_text("Only papers from 2020, in Bird Letters.")
    answer.get_by_role("button", name="Edit filters").click()
    expect(page.get_by_label("from")).to_have_value("2020")
    expect(page.get_by_label("Your question")).to_have_value("What do crows do?")
    page.get_by_role("button", name="Remove Venue Bird Letters").click()
    site.answered("And now?")
    assert library.engine.asked[-1].filters == Filters(year_min=2020)
    page.locator("#filters summary").click()
    page.get_by_role("button", name="Clear all filters").click()
    site.answered("And now?")
    assert library.engine.asked[-1].filters == Filters()


def test_an_answer_is_copied_as_markdown(open_site: OpenSite, library: FakeLibrary) -> None:
    site = open_site(permissions=["clipboard-read", "clipboard-write"])
    site.open()
    otters, crows, _ = library.catalogue.list()
    library.engine.change = change(
        cited("They *sort* [1]. ", otters, OTTERS),
        cited("5 years [2].", crows, "for 5 years", marker=2, support="number_mismatch"),
    )
    answer = site.answered("What_now?")
    answer.get_by_role("button", name="Copy as Markdown").click()
    expect(answer.locator(".said")).to_have_text("Copied")
    assert site.page.evaluate("navigator.clipboard.readText()") == (
        "**What\\_now?**\n\n"
        "They \\*sort\\*[^1]. 5 years[^2]. *(⚠ said the number\\_mismatch check)*\n\n"
        "[^1]: Lutz, Ada, Brook, Tim. Pebble choice in otters. Journal of Small Things, 2021. “Otters sort” "
        "<https://doi.org/10.5555/otter.1>\n"
        "[^2]: 周欣, Wang et al. Long memory in crows. Bird Letters, 2019. “for 5 years” <https://example.org/crows?id=7>\n"
    )


def test_where_the_clipboard_is_barred_the_text_is_shown_to_be_copied(site: Site) -> None:
    answer = site.answered("What do otters do?")
    site.page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not over HTTP')) }")
    answer.get_by_role("button", name="Copy as Markdown").click()
    dialog = site.page.get_by_role("dialog")
    expect(dialog.get_by_label("Text", exact=True)).to_have_value(re.compile(r"About Otters sor\[\^1\]"))
    dialog.get_by_role("button", name="Done").click()
    expect(dialog).to_be_hidden()


def test_bibtex_of_an_answer_holds_what_it_cites(site: Site) -> None:
    answer = site.answered("What do otters do?")
    with site.page.expect_download() as started:
        answer.get_by_role("button", name="BibTeX").click()
    path = started.value.path()
    assert started.value.suggested_filename.endswith(".bib")
    assert "10.5555/otter.1" in path.read_text() and "Long memory in crows" in path.read_text()


def test_thumbs_and_a_comment_are_kept(site: Site, library: FakeLibrary) -> None:
    answer = site.answered("What do otters do?")
    down = answer.get_by_role("button", name="Not helpful")
    down.click()
    expect(answer.locator(".said")).to_have_text("Thank you, kept.")
    expect(down).to_have_attribute("aria-pressed", "true")
    answer.get_by_label("A comment on this answer").fill("Which otters?")
    site.page.keyboard.press("Enter")
    expect(answer.locator(".comment")).to_be_hidden()
    conversation = library.journal.conversations("local")[0][0]
    (kept,) = library.journal.answers("local", conversation.conversation_id)
    (feedback,) = library.journal.feedback("local", kept.answer_id)
    assert (feedback.verdict, feedback.comment) == ("down", "Which otters?")


def test_a_question_for_the_full_text_is_told_apart(site: Site, library: FakeLibrary) -> None:
    library.engine.change = {"status": "needs_full_text"}
    answer = site.answered("Which learning rate did they use?")
    expect(answer.locator(".status")).to_have_text("The abstracts do not say; the full text may")


def test_where_nothing_says_so_the_nearest_papers_are_shown_and_no_support(site: Site, library: FakeLibrary) -> None:
    said = AnswerSentence("Nothing here says so.", (), "metadata", (), "uncited", "", 0.0)
    library.engine.change = {"status": "not_in_corpus", "sentences": (said,), "citations": (), "text": said.text}
    answer = site.answered("What is the boiling point of ethanol?")
    expect(answer.locator(".support")).to_have_count(0)
    answer.get_by_role("button", name="Pebble choice in otters").click()
    expect(site.page.locator("#source .abstract")).to_contain_text("Otters sort pebbles by weight.")


def test_a_notice_and_the_want_of_a_language_model_are_told(site: Site, library: FakeLibrary) -> None:
    library.engine.change = {"notice": "The language model gave no answer; these are the papers' own sentences."}
    answer = site.answered("What do otters do?")
    expect(answer.locator(".notice")).to_have_text("The language model gave no answer; these are the papers' own sentences.")
    expect(answer.locator(".below")).to_contain_text("no language model wrote this")


def test_a_slow_answer_says_that_it_goes_on_and_can_be_stopped(site: Site, library: FakeLibrary) -> None:
    page = site.page
    page.clock.install()
    library.engine.pauses = {1: 60}
    site.ask("What do otters do?")
    expect(page.locator(".progress")).to_have_text("Reading 2 papers…")
    page.clock.run_for(8_100)
    expect(page.locator(".progress")).to_contain_text("Still working")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".exchange .notice")).to_contain_text("Stopped")
    expect(page.get_by_label("Your question")).to_be_focused()
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_visible()
    for _ in range(100):
        if library.engine.stopped_at is not None:
            break
        page.wait_for_timeout(20)
    assert library.engine.stopped_at is not None, "the server went on for nobody"


def test_an_answer_that_breaks_off_keeps_its_checked_sentences_and_is_asked_again(site: Site, library: FakeLibrary) -> None:
    library.engine.faults = {2: LLMUnavailable("it went away", told="The language model went away; try again.")}
    site.ask("What do otters do?")
    trouble = site.page.locator(".trouble")
    expect(trouble).to_contain_text("The answer broke off. The language model went away; try again.")
    expect(trouble.get_by_role("alert")).to_be_visible()
    expect(site.page.locator(".sentence")).to_have_count(1)
    library.engine.faults = {}
    trouble.get_by_role("button", name="Ask again").click()
    site.page.locator(".tools").wait_for()
    expect(site.page.locator(".sentence")).to_have_count(2)
    expect(trouble).to_have_count(0)


def test_too_many_questions_are_told_when_to_come_back(site: Site, library: FakeLibrary) -> None:
    site.refused = {429}
    library.engine.faults = {0: ApiError(429, "too_many_answers", "64 answers are being made already.", retry_after=2)}
    site.ask("What do otters do?")
    again = site.page.get_by_role("button", name="Ask again")
    expect(again).to_be_disabled()
    expect(site.page.locator(".trouble")).to_contain_text("Too many questions at once. 64 answers are being made already.")
    expect(site.page.locator(".trouble")).to_contain_text(re.compile(r"possible in \d s"))
    library.engine.faults = {}
    expect(again).to_be_enabled()
    again.click()
    site.page.locator(".tools").wait_for()


def test_a_server_that_is_gone_is_told(site: Site) -> None:
    site.page.route("**/api/v1/conversations", lambda route: route.abort())
    site.ask("What do otters do?")
    expect(site.page.locator(".trouble")).to_contain_text("The server cannot be reached.")
    site.faults = [fault for fault in site.faults if "ERR_FAILED" not in fault]


def test_a_question_that_is_refused_says_why(site: Site) -> None:
    site.refused = {422}
    site.page.locator("#filters summary").click()
    site.page.get_by_label("from").fill("99999")
    site.ask("What do otters do?")
    expect(site.page.locator(".trouble")).to_contain_text("year_min")


def test_enter_while_composing_a_word_sends_nothing(site: Site, library: FakeLibrary) -> None:
    box = site.page.get_by_label("Your question")
    box.fill("水獭")
    box.dispatch_event("keydown", {"key": "Enter", "isComposing": True, "bubbles": True})
    box.dispatch_event("keydown", {"key": "Enter", "shiftKey": True, "bubbles": True})
    expect(box).to_have_value("水獭")
    assert library.engine.asked == []
    answer = site.answered("水獭做什么？")
    expect(answer.locator(".question")).to_have_attribute("lang", "zh")


def test_paragraphs_stand_apart_and_words_between_double_stars_are_strong(site: Site, library: FakeLibrary) -> None:
    otters = library.catalogue.list()[0]
    library.engine.change = change(
        cited("They **sort** by A* [1].\n\n", otters, OTTERS), cited("So <b>there</b> [1].", otters, OTTERS)
    )
    answer = site.answered("Which?")
    expect(answer.locator(".sentence strong")).to_have_text("sort")
    expect(answer.locator(".sentence")).to_have_text(["They sort by A*.1", "So <b>there</b>.1"])
    boxes = [answer.locator(".marker").nth(n).bounding_box() for n in (0, 1)]
    assert boxes[0] and boxes[1] and boxes[1]["y"] - boxes[0]["y"] > 35, "an empty line between the paragraphs"


def test_a_list_keeps_its_items_apart_and_markers_stand_behind_the_stop(site: Site, library: FakeLibrary) -> None:
    otters, crows, _ = library.catalogue.list()
    first = cited("- First [1].\n", otters, OTTERS)
    second, crow = cited("- Second, with [9] of its own [2][1]？", crows, "Crows", marker=2)
    library.engine.change = change(first, (replace(second, markers=(2, 1)), crow))
    answer = site.answered("Which?")
    expect(answer.locator(".sentence.item")).to_have_count(2)
    assert answer.locator(".item").first.inner_text() == "First.1"
    expect(answer.locator(".item").nth(1)).to_have_text("Second, with [9] of its own？21")
    expect(answer.locator(".glue").first).to_have_text("First.1")
