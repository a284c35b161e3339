"""A real Chromium, pages of a live server, and what must never happen on one of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright
from pytest_django.live_server_helper import LiveServer

from tests.support.cast import Cast, cast

os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # Playwright keeps an event loop in this thread

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HERE = Path(__file__).resolve().parent
SCREENSHOTS = HERE.parents[1] / "test-results"
AXE = (HERE / "vendor" / "axe-4.14.1.min.js").read_text()
AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
AXE_RUN = """async tags => (await axe.run(document, {runOnly: tags})).violations
  .map(v => `${v.id}: ${v.nodes.map(n => n.html.slice(0, 160)).join(' | ')}`)"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.browser)


@dataclass
class Desk:
    """One person's window. `complaints` are console errors, broken policies and uncaught exceptions."""

    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        self.page.goto(self.address + path)

    def sign_in(self, username: str) -> None:
        self.page.fill("#id_username", username)
        self.page.fill("#id_password", f"{username}-secret")
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(lambda url: "/sign-in/" not in url)

    def shot(self, name: str) -> None:
        SCREENSHOTS.mkdir(exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    def axe(self) -> list[str]:
        """Violations of WCAG 2.2 AA and best practice on what is shown now."""
        session = self.page.context.new_cdp_session(self.page)
        session.send("Runtime.evaluate", {"expression": AXE})  # as a debugger: the page's policy stays on
        found: list[str] = self.page.evaluate(AXE_RUN, AXE_TAGS)
        return found

    def sticks_out(self) -> int:
        """By how many pixels the page is wider than its window."""
        found: int = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return found


OpenDesk = Callable[..., Desk]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a module's tests: its event loop must not outlive them."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        browser = _launch(playwright, CHROMIUM)
        yield browser
        browser.close()


def _launch(playwright: Playwright, program: str) -> Browser:
    return playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))


@pytest.fixture
def people(transactional_db: None) -> Cast:
    return cast()


@pytest.fixture
def open_desk(chromium: Browser, live_server: LiveServer) -> Iterator[OpenDesk]:
    """A new window; keyword arguments are those of a Playwright context."""
    desks: list[Desk] = []

    def open_one(**options: Any) -> Desk:
        context = chromium.new_context(
            viewport=options.pop("viewport", {"width": 1280, "height": 800}), **options
        )
        context.set_default_timeout(10_000)
        desk = Desk(context.new_page(), live_server.url)
        desk.page.on("console", lambda said: _complain(desk, said.type, said.text))
        desk.page.on("pageerror", lambda error: desk.complaints.append(f"uncaught: {error}"))
        desks.append(desk)
        return desk

    yield open_one
    for desk in desks:
        desk.page.context.close()


def _complain(desk: Desk, kind: str, text: str) -> None:
    if kind in ("error", "warning"):
        desk.complaints.append(f"{kind}: {text}")
