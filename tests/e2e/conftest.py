"""A real browser at the pages of a real server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import Struct
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from tests.e2e.sample_home import fill
from tests.e2e.web_server_process import Served
from tests.interop.environments import AXE
from tests.programs import CHROMIUM


class Look(Struct, frozen=True):
    """How wide a window is, and which colours it prefers."""

    width: int
    scheme: str

    @property
    def name(self) -> str:
        return f"{self.width}-{self.scheme}"


#: A phone and a desk, by day and by night.
LOOKS: Final = tuple(Look(width, scheme) for width in (375, 1440) for scheme in ("light", "dark"))
DESK: Final = Look(1440, "light")

#: Where screenshots are kept, if somebody wants them.
_PICTURES: Final = os.environ.get("DITTYBAG_TEST_PICTURES")


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """It is closed after the last test here: as long as it is there, this thread runs no other loop."""
    program = CHROMIUM.required()
    with sync_playwright() as playwright:
        # Chromium's sandbox does not work for root, nor in most containers.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a sample in it, for all tests of a module."""
    home = tmp_path_factory.mktemp("home")
    fill(home)
    with Served(home) as served:
        yield served


class Visits:
    """Browser windows that were signed in; whatever goes wrong in one of them fails the test."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self._cookies: dict[str, Any] = {}
        self.problems: list[str] = []

    def open(self, served: Served, path: str = "/", look: Look = DESK, *, known: bool = True) -> Page:
        """A page of the server in a window of its own. `known`: whether the window is signed in."""
        context = self._browser.new_context(
            viewport={"width": look.width, "height": 812 if look.width < 500 else 900},
            color_scheme="dark" if look.scheme == "dark" else "light",
            has_touch=look.width < 500,
            reduced_motion="reduce",
        )
        self._contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        if known:
            if served.origin not in self._cookies:
                page.goto(served.new_link())
                page.wait_for_url(f"{served.origin}/p/**")
                self._cookies[served.origin] = context.cookies()
            context.add_cookies(self._cookies[served.origin])
        page.goto(served.origin + path)
        return page

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def visits(browser: Browser) -> Iterator[Visits]:
    visits = Visits(browser)
    yield visits
    visits.close()
    assert visits.problems == []


#: Says that there is no barrier on a page, and keeps a picture of it under a name.
Checked = Callable[[Page, str], None]


@pytest.fixture(scope="session")
def checked() -> Checked:
    """Looks for barriers with axe-core, and for things that stick out at the side."""
    source = (AXE.home / "node_modules" / "axe-core" / "axe.min.js").read_text()

    def check(page: Page, name: str) -> None:
        if _PICTURES:
            Path(_PICTURES).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=Path(_PICTURES) / f"{name}.png", full_page=True)
        # What the tester evaluates is not bound by the policy of the page.
        page.evaluate(source + ";0")
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        barriers = [
            f"{item['id']}: {item['help']}: {[node['html'][:200] for node in item['nodes'][:3]]}"
            for item in found["violations"]
        ]
        assert barriers == [], name
        widths = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        needed, there = page.evaluate(widths)
        assert needed <= there, f"{name} is {needed - there} pixels wider than its window"

    return check
