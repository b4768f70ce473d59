"""Fixtures for the web UI: a real server and a real browser with signed-in windows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin
from weakref import WeakKeyDictionary

import pytest
from msgspec import Struct
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, expect, sync_playwright

from tests.e2e.sample_home import fill_home
from tests.e2e.web_server_process import WebServerProcess
from tests.interop.environments import AXE
from tests.programs import CHROMIUM
from tests.repetitions import IS_FULL


class Screen(Struct, frozen=True):
    """The width of a window and its preferred colour scheme."""

    width: int
    scheme: str

    @property
    def name(self) -> str:
        return f"{self.width}-{self.scheme}"


DESKTOP: Final = Screen(1440, "light")
#: A phone in dark mode and a desktop in light mode; `make torture` also checks the other two pairs.
SCREENS: Final = (
    Screen(375, "dark"),
    DESKTOP,
    *((Screen(375, "light"), Screen(1440, "dark")) if IS_FULL else ()),
)

#: Where to save screenshots; they are not saved if it is unset.
_PICTURES: Final = os.environ.get("DITTYBAG_TEST_PICTURES")


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A browser, closed after the tests of the package, because it occupies the event loop of this thread."""
    program = CHROMIUM.require()
    with sync_playwright() as playwright:
        # Chromium's sandbox does not work for root, nor in most containers.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServerProcess]:
    """A server with the sample workspace, shared by the tests of a module."""
    home = tmp_path_factory.mktemp("home")
    fill_home(home)
    with WebServerProcess(home) as server:
        yield server


class IdleWindows(Struct):
    """What tests leave to the next ones. A new window costs as much as seven pages in an existing one."""

    #: Windows that no test uses.
    pages: dict[Screen, list[Page]]
    #: Cookies of signed-in windows.
    cookies: WeakKeyDictionary[WebServerProcess, Any]


@pytest.fixture(scope="package")
def idle_windows(browser: Browser) -> IdleWindows:
    return IdleWindows({screen: [] for screen in SCREENS}, WeakKeyDictionary())


class BrowserWindows:
    """Signed-in browser windows; errors and warnings in any of them fail the test."""

    def __init__(self, browser: Browser, idle: IdleWindows) -> None:
        self._browser = browser
        self._idle = idle
        self._own: list[Page] = []
        self._reusable: list[tuple[Screen, Page]] = []
        self.problems: list[str] = []

    def open(
        self,
        server: WebServerProcess,
        path: str = "/",
        screen: Screen = DESKTOP,
        *,
        signed_in: bool = True,
        own: bool = False,
    ) -> Page:
        """Open a page of the server in a window without cookies other than those of a session.

        `own`: the test adds listeners, permissions or settings, so no other test must use the window.
        """
        idle = self._idle.pages[screen]
        page = self._new_window(screen) if own or not idle else idle.pop()
        if own:
            self._own.append(page)
        else:
            self._reusable.append((screen, page))
        page.on("console", self._record_console_message)
        page.on("pageerror", self._record_error)
        if signed_in:
            cookies = self._idle.cookies
            if server not in cookies:
                page.goto(server.new_link())
                page.wait_for_url(f"{server.origin}/p/**")
                cookies[server] = page.context.cookies()
            page.context.add_cookies(cookies[server])
        page.goto(server.origin + path)
        return page

    def _new_window(self, screen: Screen) -> Page:
        context = self._browser.new_context(
            viewport={"width": screen.width, "height": 812 if screen.width < 500 else 900},
            color_scheme="dark" if screen.scheme == "dark" else "light",
            has_touch=screen.width < 500,
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.set_default_timeout(10_000)
        return page

    def _record_console_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def _record_error(self, error: Error) -> None:
        self.problems.append(str(error))

    def close(self) -> None:
        for page in self._own:
            page.context.close()
        for screen, page in self._reusable:
            page.remove_listener("console", self._record_console_message)
            page.remove_listener("pageerror", self._record_error)
            if _forget(page):
                self._idle.pages[screen].append(page)
            else:
                page.context.close()


def _forget(page: Page) -> bool:
    """Leave the page and delete what it has stored. Returns whether that succeeded."""
    if len(page.context.pages) > 1:
        return False
    try:
        # Not about:blank, which belongs to another process.
        page.goto(urljoin(page.url, "/healthz"))
        page.evaluate("sessionStorage.clear(); localStorage.clear()")
    except Error:
        # The server has stopped, or the browser shows its own page.
        return False
    page.context.clear_cookies()
    return True


@pytest.fixture
def windows(browser: Browser, idle_windows: IdleWindows) -> Iterator[BrowserWindows]:
    windows = BrowserWindows(browser, idle_windows)
    yield windows
    windows.close()
    assert windows.problems == []


#: Checks a page and saves a screenshot under a name.
PageCheck = Callable[[Page, str], None]


@pytest.fixture(scope="session")
def check_page() -> PageCheck:
    """Check the accessibility of a page with axe-core, and that it does not overflow horizontally."""
    source = (AXE.home / "node_modules" / "axe-core" / "axe.min.js").read_text()

    def check(page: Page, name: str) -> None:
        if _PICTURES:
            Path(_PICTURES).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=Path(_PICTURES) / f"{name}.png", full_page=True)
        # The page's content security policy does not apply to code evaluated by Playwright.
        page.evaluate(source + ";0")
        # A region that is refreshed is pale for a moment.
        expect(page.locator(".htmx-request")).to_have_count(0)
        found = page.evaluate(
            "axe.run(document, {resultTypes: ['violations']}).then(report => report.violations)"
        )
        violations = [
            f"{item['id']}: {item['help']}: {[node['html'][:200] for node in item['nodes'][:3]]}"
            for item in found
        ]
        assert violations == [], name
        widths = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        needed, available = page.evaluate(widths)
        assert needed <= available, f"{name} is {needed - available} pixels wider than its window"

    return check
