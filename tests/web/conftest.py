"""The page in a real headless Chromium, over a real server with a fake library.

The browser lives for this folder's tests only: Playwright's sync API keeps an event loop running, which async tests cannot share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it ships no annotations
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, sync_playwright
from pydantic import SecretStr

from api.app import create_app
from api.security import read_keys
from rag.settings import Settings
from tests.api.fakes import FakeLibrary, fake_library, served

CHROMIUM = Path("/usr/bin/chromium")
WAIT_MS = 20_000


@dataclass
class Site:
    """The page, open in a tab. `refused` statuses are expected, all else in the console makes the test fail."""

    page: Page
    url: str
    refused: set[int] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Notes whatever goes wrong, and every request that leaves for elsewhere."""
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(f"uncaught: {error}"))
        self.page.on("request", lambda request: self._asked(request.url))

    def _said(self, message: ConsoleMessage) -> None:
        expected = any(f"status of {status} " in message.text for status in self.refused)
        if message.type in ("error", "warning") and not expected:
            self.faults.append(f"{message.type}: {message.text}")

    def _asked(self, url: str) -> None:
        if not url.startswith((self.url, "blob:", "data:")):
            self.faults.append(f"asked {url}")

    def open(self, path: str = "/") -> Page:
        """Goes there and waits for the page to be ready."""
        self.page.goto(self.url + path)
        self.page.locator("#shelf:not(:empty)").wait_for(state="attached")
        return self.page

    def ask(self, question: str) -> None:
        """Types a question and presses Enter."""
        self.page.get_by_label("Your question").fill(question)
        self.page.keyboard.press("Enter")

    def answered(self, question: str) -> Locator:
        """Asks and waits for the whole answer."""
        before = self.page.locator(".exchange").count()
        self.ask(question)
        exchange = self.page.locator(".exchange").nth(before)
        exchange.locator(".tools").wait_for()
        return exchange

    def check_accessibility(self) -> None:
        """No violation of any rule axe-core knows."""
        self.page.wait_for_timeout(50)  # colours are measured: let what has just opened be painted
        results = Axe().run(self.page)
        assert results.violations_count == 0, results.generate_report()

    def check_width(self) -> None:
        """Nothing sticks out to the right, which would make a phone's page wider than the phone."""
        assert self.page.viewport_size
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.page.viewport_size["width"]


OpenSite = Callable[..., Site]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip("needs Chromium: apt-get install chromium fonts-noto-cjk")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        yield launched
        launched.close()


@pytest.fixture
def library(tmp_path: Path) -> Iterator[FakeLibrary]:
    made = fake_library(tmp_path)
    yield made
    made.catalogue.database.close()


@pytest.fixture
def open_site(browser: Browser, library: FakeLibrary) -> Iterator[OpenSite]:
    """Serves the library with the keys given and opens a tab of its own on it; other options are the tab's."""
    sites: list[Site] = []
    with ExitStack() as stack:

        def make(*, api_keys: str = "", admin_keys: str = "", use: FakeLibrary = library, **tab: object) -> Site:
            settings = Settings(api_keys=SecretStr(api_keys), admin_keys=SecretStr(admin_keys))
            url = stack.enter_context(served(create_app(use, settings, read_keys(settings, "127.0.0.1"))))
            context = browser.new_context(base_url=url, **tab)  # type: ignore[arg-type]  # Playwright's own options
            stack.callback(context.close)
            context.set_default_timeout(WAIT_MS)
            site = Site(context.new_page(), url)
            site.watch()
            sites.append(site)
            return site

        yield make
    assert [fault for site in sites for fault in site.faults] == []


@pytest.fixture
def site(open_site: OpenSite) -> Site:
    """The page over three papers, on a loopback without keys."""
    made = open_site()
    made.open()
    return made
