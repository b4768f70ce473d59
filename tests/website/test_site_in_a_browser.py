"""The site in a real browser: no request to another host, search, colours, and phones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

#: The landing page, a guide with long code, wide tables, and pictures.
PAGES = ("", "guides/several-agents/", "reference/settings/", "reference/commands/", "concepts/tasks/")

OpenWindow = Callable[[int, str], Page]


@pytest.fixture
def open_window(browser: Browser, address: str) -> Iterator[OpenWindow]:
    """Open a window. Console messages, errors and requests to other hosts fail the test."""
    problems: list[str] = []
    contexts = []

    def watch(url: str) -> None:
        if not url.startswith((address, "data:", "blob:")):
            problems.append(f"request to {url}")

    def open_window(width: int, scheme: str) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 812},
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: watch(request.url))
        page.on(
            "response", lambda response: problems.append(response.url) if response.status >= 400 else None
        )
        return page

    yield open_window
    for context in contexts:
        context.close()
    assert problems == []


@pytest.mark.parametrize(("width", "scheme"), [(375, "dark"), (1440, "light")])
def test_pages_fit_into_the_window(open_window: OpenWindow, address: str, width: int, scheme: str) -> None:
    page = open_window(width, scheme)
    for path in PAGES:
        page.goto(address + path)
        # Material wraps tables when its script has run.
        page.wait_for_selector("html.js")
        needed = page.evaluate("document.documentElement.scrollWidth")
        assert needed <= width, path
        assert page.evaluate("getComputedStyle(document.querySelector('h1')).fontSize") == (
            "26px" if width == 375 else "32px"
        )
        outside = page.evaluate(
            "[...document.querySelectorAll('article img')]"
            ".filter(image => image.getBoundingClientRect().right > innerWidth).length"
        )
        assert outside == 0, path


def test_search_finds_a_page(open_window: OpenWindow, address: str) -> None:
    page = open_window(1440, "light")
    page.goto(address)
    page.get_by_role("textbox", name="Search").fill("context pac")
    # The page listens for keys, not for input.
    page.get_by_role("textbox", name="Search").press("k")
    hit = page.locator(".md-search-result__link").filter(has_text="Context packs").first
    # The index is built in the browser.
    expect(hit).to_be_visible(timeout=60_000)
    hit.click()
    page.wait_for_url("**/concepts/context-packs/**")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Context packs")


def test_the_colours_follow_the_system_until_somebody_chooses(open_window: OpenWindow, address: str) -> None:
    page = open_window(1440, "dark")
    page.goto(address)
    body = page.locator("body")
    expect(body).to_have_attribute("data-md-color-scheme", "slate")
    expect(page.locator("article img:visible").first).to_have_attribute(
        "src", "images/home-dark.png#gh-dark-mode-only"
    )
    page.get_by_title("Switch to the light theme").click()
    expect(body).to_have_attribute("data-md-color-scheme", "default")
    expect(page.locator("article img:visible").first).to_have_attribute(
        "src", "images/home.png#gh-light-mode-only"
    )
    page.reload()
    expect(body).to_have_attribute("data-md-color-scheme", "default")


def test_a_command_can_be_copied(open_window: OpenWindow, address: str) -> None:
    page = open_window(1440, "light")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{address}guides/troubleshooting/")
    page.locator("pre").first.hover()
    page.get_by_title("Copy to clipboard").first.click()
    expect(page.locator(".md-dialog")).to_contain_text("Copied to clipboard")
    assert page.evaluate("navigator.clipboard.readText()").strip() == "dittybag doctor"
