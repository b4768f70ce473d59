"""What all lists share: the filter bar, rows, the theme, and the frame on phones and wide screens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec import Struct
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import DESKTOP, SCREENS, BrowserWindows, PageCheck
from tests.e2e.sample_home import PROJECT
from tests.e2e.web_server_process import WebServerProcess

HOME: Final = f"/p/{PROJECT}"
PHONE: Final = SCREENS[0]


class ListPage(Struct, frozen=True):
    """A page with a filter bar: what to type and what is left then, and another filter."""

    path: str
    results: str
    field: str
    typed: str
    left: str
    gone: str
    #: The label of another filter, its value and its chip.
    other: tuple[str, str, str]
    #: The query parameter of the text.
    parameter: str = "q"


LISTS: Final = (
    ListPage(
        "/prompts",
        "#prompt-list",
        "Filter prompts",
        "attack the",
        "Threat Model",
        "explain-error",
        ("Tag", "security", "Tag: security"),
    ),
    ListPage(
        "/resources",
        "#resources",
        "Filter resources",
        "schem",
        "schema",
        "api-docs",
        ("Type", "application/sql", "Type: application/sql"),
    ),
    ListPage(
        "/tasks?view=list",
        "#tasks",
        "Filter tasks",
        "argon",
        "Hash passwords with argon2",
        "Ask about password rules",
        ("Priority", "5", "Priority: 5 · Critical"),
        "text",
    ),
    ListPage(
        "/tasks",
        "#tasks",
        "Filter tasks",
        "argon",
        "Hash passwords with argon2",
        "Ask about password rules",
        ("Project", PROJECT, f"Project: {PROJECT}"),
        "text",
    ),
    ListPage(
        "/activity",
        "#activity",
        "Filter activity",
        "schem",
        "schema",
        "api-docs",
        ("What", "resource", "What: Resources"),
        "text",
    ),
)


FONT_SIZES: Final = """() => {
    const hasText = element => [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    const shown = [...document.querySelectorAll("body *")].filter(element => element.checkVisibility());
    const sizes = shown.filter(hasText).map(element => parseFloat(getComputedStyle(element).fontSize));
    return [...new Set(sizes.map(Math.round))].sort();
}"""


def choose(page: Page, label: str, value: str) -> None:
    field = page.locator("[data-filters]").get_by_label(label, exact=True)
    if field.evaluate("element => element.localName") == "select":
        field.select_option(value)
    else:
        field.fill(value)
        field.press("Enter")


def row_heights(page: Page) -> list[float]:
    heights = page.locator(".rows > li, .feed > .change").evaluate_all(
        "rows => rows.map(row => row.getBoundingClientRect().height)"
    )
    assert heights
    return list(heights)


def query_of(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query, keep_blank_values=True)


def test_results_follow_the_filter_bar_and_the_address_follows_the_results(
    server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck
) -> None:
    page = windows.open(server, HOME)
    for item in LISTS:
        page.goto(server.origin + HOME + item.path)
        first_query = query_of(page)
        entries = page.evaluate("() => { window.isSamePage = true; return history.length; }")
        results, field = page.locator(item.results), page.get_by_label(item.field, exact=True)
        expect(results).to_contain_text(item.gone)
        field.press_sequentially(item.typed)
        expect(results).not_to_contain_text(item.gone)
        expect(results).to_contain_text(item.left)
        expect(field).to_be_focused()
        expect(field).to_have_value(item.typed)
        expect(page).to_have_url(re.compile(rf"[?&]{item.parameter}="))
        assert query_of(page) == {**first_query, item.parameter: [item.typed]}
        choose(page, *item.other[:2])
        chips = results.locator(".chip")
        expect(chips).to_have_count(2)
        expect(chips.filter(has_text=item.other[2])).to_be_visible()
        assert page.evaluate("() => [window.isSamePage, history.length]") == [True, entries]
        # The address is the whole state.
        page.reload()
        expect(field).to_have_value(item.typed)
        expect(chips).to_have_count(2)
        expect(results).to_contain_text(item.left)
        if item is LISTS[0]:
            check_page(page, "filters-in-use")
        chips.filter(has_text=item.typed).click()
        expect(chips).to_have_count(1)
        expect(field).to_have_value("")
        assert item.parameter not in query_of(page)
        results.get_by_role("link", name="Clear").click()
        expect(chips).to_have_count(0)
        expect(results).to_contain_text(item.gone)
        assert query_of(page) == first_query


def test_filters_follow_live_updates_and_lead_back_from_a_task(
    server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(server, f"{HOME}/tasks?view=list")
    expect(page.locator("#live-state")).to_have_attribute("data-state", "on")
    page.get_by_label("Filter tasks").fill("heron")
    expect(page.get_by_text("No matching tasks")).to_be_visible()
    server.call("task_create", title="Count herons")
    server.call("task_create", title="Count storks")
    expect(page.locator("#tasks [data-item]")).to_have_text(["Count herons"])
    page.locator("#tasks [data-item]").click()
    page.get_by_role("link", name="Cancel").click()
    expect(page.get_by_label("Filter tasks")).to_have_value("heron")


@pytest.fixture
def page_without_scripts(
    server: WebServerProcess, windows: BrowserWindows, browser: Browser
) -> Iterator[Page]:
    cookies = windows.open(server, HOME).context.cookies()
    context = browser.new_context(java_script_enabled=False)
    context.add_cookies(cookies)  # type: ignore[arg-type]  # Playwright has two types for cookies
    yield context.new_page()
    context.close()


def test_filters_work_without_javascript(server: WebServerProcess, page_without_scripts: Page) -> None:
    page = page_without_scripts
    for item in LISTS:
        page.goto(server.origin + HOME + item.path)
        page.get_by_label(item.field, exact=True).fill(item.typed)
        page.get_by_role("button", name="Apply").click()
        results = page.locator(item.results)
        expect(results).not_to_contain_text(item.gone)
        expect(results).to_contain_text(item.left)
        results.locator(".chip", has_text=item.typed).click()
        expect(results).to_contain_text(item.gone)
        assert ("view=list" in page.url) == ("view=list" in item.path)


def test_rows_take_one_line_and_text_has_three_sizes(
    server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(server, f"{HOME}/prompts")
    paths = [
        "/prompts",
        "/prompts?tab=libraries",
        "/resources",
        "/tasks?view=list",
        "/activity",
    ]
    for path in [*paths, "/search?q=error"]:
        page.goto(server.origin + HOME + path)
        heights = row_heights(page)
        assert all(32 <= height <= 36 for height in heights), (path, heights)
        assert page.evaluate(FONT_SIZES) == [12, 14, 18], path
    page.goto(server.origin + HOME)
    assert page.evaluate(FONT_SIZES) == [12, 14, 18]
    for form in (".quick", ".filter-line"):
        page.goto(f"{server.origin}{HOME}/tasks?view=list")
        assert page.locator(form).evaluate("element => element.getBoundingClientRect().height") < 40


def test_the_theme_is_chosen_in_the_menu_and_kept(
    server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck
) -> None:
    page = windows.open(server, f"{HOME}/prompts")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.locator("#projects-menu > summary").click()
    page.get_by_role("group", name="Theme").get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    dark = page.evaluate(background)
    assert dark != light
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    check_page(page, "menu")
    page.reload()
    assert page.evaluate(background) == dark
    # The first bytes of a page say which theme it has, so that nothing flashes.
    assert '<html lang="en" data-theme="dark"' in page.request.get(page.url).text()
    page.locator("#projects-menu > summary").click()
    page.get_by_role("group", name="Theme").get_by_role("button", name="Auto").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "auto")
    assert page.evaluate(background) == light


def test_phones_have_one_header_row_and_five_items_in_the_bar(
    server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck
) -> None:
    page = windows.open(server, f"{HOME}/prompts", PHONE)
    header = page.get_by_role("banner").bounding_box()
    assert header is not None
    assert header["height"] <= 60
    bar = page.get_by_role("navigation", name="Main")
    items = bar.locator("> ul > li").locator("visible=true")
    expect(items).to_have_text(["Home", "Prompts", "Tasks", "Activity", "More"], use_inner_text=True)
    for target in (*items.all(), *page.locator(".rows > li").all()):
        box = target.bounding_box()
        assert box is not None
        assert box["height"] >= 40
    bar.get_by_text("More").click()
    expect(bar.locator(".menu-body a")).to_contain_text(["Resources", "Context", "Connect", "Settings"])
    check_page(page, "more-sections")
    bar.get_by_role("link", name="Resources").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Resources")
    # The whole row is the link.
    page.locator(".rows > li").first.click(position={"x": 200, "y": 40})
    page.wait_for_url("**/resources/view**")
    page.locator("#projects-menu > summary").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    check_page(page, "menu-on-a-phone")


def test_wide_screens_give_their_width_to_the_board(
    server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(server, f"{HOME}/tasks")
    try:
        page.set_viewport_size({"width": 2560, "height": 1200})
        board = page.locator(".board").bounding_box()
        assert board is not None
        assert board["width"] > 2200
        page.goto(f"{server.origin}{HOME}/prompts")
        rows = page.locator(".rows").bounding_box()
        assert rows is not None
        assert rows["width"] < 1450
    finally:
        page.set_viewport_size({"width": DESKTOP.width, "height": 900})
