"""The page around the answers: conversations, the library, keys, themes, keyboard, screen readers, phones."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from rag.identity import read_record
from rag.ingest import Source
from rag.types import IngestReport, RawPaper
from tests.api.fakes import FakeLibrary, fake_library
from tests.web.conftest import OpenSite, Site
from tests.web.papers import change, cited

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
FITS = "element => element.scrollWidth <= element.clientWidth"
NEW = {"title": "Slow snails", "abstract": "Snails are slow when it is dry.", "authors": ["Shell, Bo"], "year": 2022}


def upload(page: Page, *files: tuple[str, object]) -> None:
    """Chooses files in the dialog and sends them."""
    page.get_by_role("button", name="Add papers").first.click()
    payload = [{"name": name, "mimeType": "text/plain", "buffer": json.dumps(content).encode()} for name, content in files]
    page.get_by_label("Files").set_input_files(payload)  # type: ignore[arg-type]  # Playwright's own TypedDict
    page.get_by_role("button", name="Add", exact=True).click()


def give_key(page: Page, key: str) -> None:
    """Types a key into the dialog that asks for one."""
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_role("button", name="Use this key").click()


def test_the_page_may_run_nothing_but_its_own_files(site: Site) -> None:
    response = site.page.goto(site.url)
    assert response is not None
    policy = response.header_value("content-security-policy") or ""
    assert "default-src 'none'" in policy and "script-src 'self';" in policy and "style-src 'self';" in policy
    assert "unsafe" not in policy
    asset = site.page.request.get(f"{site.url}/static/app.js")
    assert asset.headers["cache-control"] == "no-cache" and asset.headers["content-type"].startswith("text/javascript")


def test_a_follow_up_knows_what_was_said(site: Site, library: FakeLibrary) -> None:
    for question in ("What do otters do?", "Why?", "And crows?"):
        site.answered(question)
    turns = [(turn.role, turn.content) for turn in library.engine.asked[-1].history if turn.role == "user"]
    assert turns == [("user", "What do otters do?"), ("user", "Why?")]
    expect(site.page.locator(".exchange")).to_have_count(3)


def test_past_conversations_are_listed_opened_and_deleted(site: Site, library: FakeLibrary) -> None:
    page = site.page
    site.answered("What do otters do?")
    site.answered("Why?")
    page.get_by_role("link", name="New conversation").click()
    expect(page.locator(".exchange")).to_have_count(0)
    expect(page.get_by_label("Your question")).to_be_focused()
    site.answered("What do crows do?")
    links = page.locator("#conversation-list a")
    expect(links.locator(".title")).to_have_text(["What do crows do?", "What do otters do?"])
    links.nth(1).click()
    expect(page.locator(".question")).to_have_text(["What do otters do?", "Why?"])
    expect(page.locator(".sentence")).to_have_count(4)
    expect(links.nth(1)).to_have_attribute("aria-current", "page")
    page.reload()
    expect(page.locator(".question")).to_have_text(["What do otters do?", "Why?"])
    site.answered("And then?")
    assert [turn.content for turn in library.engine.asked[-1].history if turn.role == "user"] == ["What do otters do?", "Why?"]
    page.go_back()
    expect(page.locator(".question")).to_have_text(["What do crows do?"])
    page.go_forward()
    page.get_by_role("button", name="Delete What do otters do?").click()
    page.get_by_role("button", name="Keep").click()
    expect(links).to_have_count(2)
    page.get_by_role("button", name="Delete What do otters do?").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(links.locator(".title")).to_have_text(["What do crows do?"])
    expect(page.locator(".exchange")).to_have_count(0)
    assert [one.title for one in library.journal.conversations("local")[0]] == ["What do crows do?"]


def test_an_answer_whose_paper_has_gone_says_so(site: Site, library: FakeLibrary) -> None:
    site.answered("What do otters do?")
    library.catalogue.remove([library.catalogue.list()[0].paper_id])
    site.page.reload()
    expect(site.page.locator(".exchange .notice")).to_contain_text("A paper cited here has changed or gone since")


def test_a_conversation_that_is_gone_says_so(site: Site) -> None:
    site.refused = {404}
    site.page.goto(f"{site.url}/#c/nothing")
    expect(site.page.get_by_role("alert")).to_contain_text("conversation")


def test_papers_are_added_and_the_report_is_shown(site: Site, library: FakeLibrary) -> None:
    page = site.page
    upload(page, ("papers.json", [NEW, {"title": "Nothing"}]))
    report = page.locator("#upload-report")
    expect(report).to_contain_text("1 paper added.")
    expect(report).to_contain_text(re.compile(r"papers\.json, .*: .*abstract"))
    expect(page.locator("#upload-progress")).to_be_hidden()
    expect(page.locator("#shelf")).to_have_text("4 papers")
    site.check_accessibility()
    assert any("Snails" in paper.abstract for paper in library.catalogue.list())


def test_the_progress_of_an_upload_is_shown(site: Site) -> None:
    page = site.page
    held: list[Route] = []
    page.route("**/api/v1/papers", lambda route: held.append(route))
    upload(page, ("papers.json", [NEW]))
    bar = page.get_by_role("progressbar")
    expect(bar).to_be_visible()
    expect(page.get_by_role("button", name="Add", exact=True)).to_be_disabled()
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Add papers").first.click()
    expect(page.get_by_role("button", name="Add", exact=True)).to_be_enabled()
    held[0].abort()


@dataclass
class SlowToTake(FakeLibrary):
    """Papers are taken once `go` is set."""

    go: threading.Event = field(default_factory=threading.Event)

    def ingest(self, sources: Iterable[Source]) -> IngestReport:
        """As a large upload."""
        self.go.wait(20)
        return super().ingest(sources)


def test_papers_that_were_sent_are_taken_though_the_dialog_is_closed(open_site: OpenSite, library: FakeLibrary) -> None:
    slow = SlowToTake(library.catalogue, library.journal, library.engine, library.retriever)
    page = open_site(use=slow).open()
    upload(page, ("papers.json", [NEW]))
    expect(page.locator("#upload-stage")).to_contain_text("go on when this is closed")
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Add papers").first.click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    slow.go.set()
    expect(page.locator("#shelf")).to_have_text("4 papers")
    expect(page.locator("#live")).to_contain_text("1 paper added.")


def test_more_than_the_server_takes_is_not_even_sent(site: Site) -> None:
    site.page.get_by_role("button", name="Add papers").first.click()
    site.page.get_by_label("Files").evaluate(
        """input => {
            const files = new DataTransfer();
            files.items.add(new File([new ArrayBuffer(100 * 2 ** 20)], "all.json"));
            input.files = files.files;
        }"""
    )
    site.page.get_by_role("button", name="Add", exact=True).click()
    expect(site.page.locator("#upload-report")).to_contain_text("More than 99 MB at once")


def test_an_upload_of_which_nothing_can_be_taken_lists_why(site: Site) -> None:
    site.refused = {422}
    upload(site.page, ("papers.json", [{"title": "Nothing"}]))
    report = site.page.locator("#upload-report")
    expect(report).to_contain_text("No paper could be read from this upload.")
    expect(report.locator("li")).to_contain_text("abstract")


def test_adding_papers_asks_for_an_admin_key_where_one_is_needed(open_site: OpenSite, library: FakeLibrary) -> None:
    site = open_site(admin_keys="the-admin-key")
    site.refused = {403}
    page = site.open()
    upload(page, ("papers.json", [NEW]))
    expect(page.get_by_role("dialog", name="An admin key is needed")).to_be_visible()
    give_key(page, "a-wrong-key")
    expect(page.get_by_role("dialog", name="An admin key is needed")).to_be_visible()
    give_key(page, "the-admin-key")
    expect(page.locator("#upload-report")).to_contain_text("1 paper added.")


def test_a_key_is_asked_for_once_and_kept_for_the_tab(open_site: OpenSite) -> None:
    site = open_site(api_keys="the-user-key")
    site.refused = {401}
    page = site.open()
    dialog = page.get_by_role("dialog", name="A key is needed")
    expect(dialog).to_contain_text("This server answers only with a key")
    site.check_accessibility()
    give_key(page, "a-wrong-key")
    expect(dialog).to_contain_text("This key is not one of this server's keys.")
    give_key(page, "the-user-key")
    expect(dialog).to_be_hidden()
    site.answered("What do otters do?")
    page.reload()
    expect(page.locator(".sentence")).to_have_count(2)
    expect(dialog).to_be_hidden()
    assert page.evaluate("[localStorage.length, Object.values(sessionStorage)]") == [0, ["the-user-key"]]


def test_without_a_key_the_question_is_not_answered_and_says_why(open_site: OpenSite) -> None:
    site = open_site(api_keys="the-user-key")
    site.refused = {401}
    page = site.open()
    page.get_by_role("button", name="Cancel").click()
    site.ask("What do otters do?")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".trouble")).to_contain_text("A key is needed")


def test_an_empty_library_says_what_to_do(open_site: OpenSite, tmp_path: Path) -> None:
    empty = fake_library(tmp_path / "empty", ())
    site = open_site(use=empty)
    page = site.open()
    expect(page.locator("#state")).to_contain_text("The library is empty.")
    expect(page.locator("#state code")).to_have_text("footnote ingest FILE_OR_FOLDER")
    site.check_accessibility()
    page.locator("#state").get_by_role("button", name="Add papers").click()
    page.get_by_label("Files").set_input_files({"name": "a.json", "mimeType": "text/plain", "buffer": json.dumps([NEW]).encode()})
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#shelf")).to_have_text("1 paper")
    expect(page.locator("#state")).to_be_empty()
    empty.catalogue.database.close()


def test_a_server_that_is_not_ready_is_waited_for(open_site: OpenSite, library: FakeLibrary) -> None:
    library.waiting_for = "The index is being rebuilt."
    site = open_site()
    site.refused = {503}
    site.page.goto(site.url)
    expect(site.page.locator("#state")).to_contain_text("The index is being rebuilt.")
    library.waiting_for = None
    expect(site.page.locator("#shelf")).to_have_text("3 papers")
    expect(site.page.locator("#state")).to_be_empty()


def test_a_link_to_a_paper_opens_its_abstract(site: Site, library: FakeLibrary) -> None:
    site.open(f"/?paper={library.catalogue.list()[1].paper_id}")
    expect(site.page.locator("#source .abstract")).to_contain_text("Crows remember faces")
    site.refused = {404}
    site.open("/?paper=nothing-here")
    expect(site.page.get_by_role("alert")).to_contain_text("nothing-here")


@pytest.mark.parametrize("wanted", ["light", "dark"])
def test_the_theme_follows_the_system_until_it_is_chosen(open_site: OpenSite, wanted: str) -> None:
    site = open_site(color_scheme=wanted)
    page = site.open()

    def is_dark() -> bool:
        red = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]")
        return int(red) < 128

    assert is_dark() == (wanted == "dark")
    button = page.get_by_role("button", name="Theme")
    seen = []
    for _ in range(3):
        button.click()
        seen.append((page.locator("#theme-name").inner_text(), is_dark()))
    assert seen == [("light", False), ("dark", True), ("auto", wanted == "dark")]
    button.click()
    page.reload()
    expect(page.locator("#theme-name")).to_have_text("light")
    assert not is_dark()


def test_everything_is_reached_by_keyboard(open_site: OpenSite) -> None:
    site = open_site(viewport={"width": 900, "height": 700})
    page = site.open()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the question")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Your question")).to_be_focused()
    page.keyboard.type("What do otters do?")
    page.keyboard.press("Enter")
    page.locator(".tools").wait_for()
    expect(page.get_by_label("Your question")).to_be_focused()
    marker = page.locator(".marker").first
    for _ in range(40):
        page.keyboard.press("Shift+Tab")
        if marker.evaluate("element => element === document.activeElement"):
            break
    outline = marker.evaluate("element => getComputedStyle(element).outlineStyle + getComputedStyle(element).outlineWidth")
    assert outline == "solid3px", "focus is seen"
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("#source").get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("Enter")
    expect(marker).to_be_focused()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_rule_of_accessibility_is_broken(open_site: OpenSite, library: FakeLibrary, theme: str) -> None:
    site = open_site(color_scheme=theme)
    page = site.open()
    site.check_accessibility()
    otters, crows, moss = library.catalogue.list()
    library.engine.change = change(
        cited("They sort [1]. ", otters, "Otters sort"),
        cited("5 years [2]. ", crows, "for 5 years", marker=2, support="number_mismatch"),
        cited("It grows on $n^2$ stones [3].", moss, "$n^2$ stones", marker=3, support="weak"),
        notice="One thing.",
    )
    answer = site.answered("What do otters do?")
    answer.get_by_role("button", name="Not helpful").click()
    answer.locator(".comment").wait_for()
    page.locator("#filters summary").click()
    site.check_accessibility()
    answer.locator(".support").nth(1).click()
    page.locator("mark").wait_for()
    site.check_accessibility()
    library.engine.faults = {2: RuntimeError("a fault of ours")}
    page.locator("#filters summary").click()
    site.ask("And now?")
    page.locator(".trouble").wait_for()
    site.check_accessibility()


def test_landmarks_and_headings_tell_where_one_is(site: Site) -> None:
    page = site.page
    site.answered("What do otters do?")
    for role, name in (
        ("banner", None),
        ("navigation", "Conversations"),
        ("main", None),
        ("form", "Ask"),
        ("log", "What happens"),
    ):
        expect(page.get_by_role(role, name=name)).to_have_count(1)  # type: ignore[arg-type]  # a literal in fact
    expect(page.get_by_role("heading", level=1)).to_have_text("Footnote")
    expect(page.get_by_role("heading", level=2, name="What do otters do?")).to_be_visible()
    expect(page.get_by_role("article", name="What do otters do?")).to_be_visible()


def test_the_page_is_as_wide_as_the_smallest_phone(open_site: OpenSite) -> None:
    site = open_site(**{**PHONE, "viewport": {"width": 320, "height": 560}})
    page = site.open()
    site.check_width()
    for name in ("Conversations", "Add papers", "Theme: auto"):
        expect(page.get_by_role("button", name=name)).to_be_in_viewport(ratio=1)


def test_a_phones_keyboard_does_not_cover_the_answer(open_site: OpenSite) -> None:
    site = open_site(**PHONE)
    site.open()
    site.answered("What do otters do?")
    expect(site.page.get_by_label("Your question")).not_to_be_focused()


def test_a_phone_never_scrolls_sideways(open_site: OpenSite, library: FakeLibrary) -> None:
    long = "x" * 300
    raw = RawPaper(
        abstract=f"Long {long}. $${'a+' * 80}b$$ It ends.", where="9", title=long, authors=(long,), venue=long, year=2024
    )
    library.catalogue.commit([read_record(raw)])
    paper = library.catalogue.list()[3]
    library.engine.change = change(cited(f"{long} [1].", paper, long, support="mismatch"), notice=long)
    site = open_site(**PHONE)
    page = site.open()
    site.check_width()
    answer = site.answered(long)
    site.check_width()
    page.locator("#filters summary").click()
    page.get_by_label("Venue", exact=True).fill(long)
    page.keyboard.press("Enter")
    site.check_width()
    assert page.locator(".fields").evaluate(FITS)
    page.locator("#filters summary").click()
    answer.get_by_role("button", name="Helpful", exact=True).click()
    answer.locator(".comment").wait_for()
    site.check_width()
    answer.locator(".marker").click()
    page.locator("mark").wait_for()
    page.locator("#source math").wait_for()
    site.check_width()
    assert page.locator("#source").evaluate(FITS)
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Conversations").click()
    expect(page.get_by_role("link", name="New conversation")).to_be_visible()
    site.check_width()
    site.check_accessibility()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="New conversation")).to_be_hidden()
    expect(page.get_by_role("button", name="Conversations")).to_be_focused()
    upload(page, ("p.json", [{"title": long}, NEW]))
    expect(page.locator("#upload-report")).to_contain_text("1 paper added.")
    site.check_width()
