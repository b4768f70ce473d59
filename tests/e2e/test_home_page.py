"""The home page, the search box and the project menu."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import SCREENS, BrowserWindows, PageCheck, Screen
from tests.e2e.sample_home import PROJECT
from tests.e2e.web_server_process import WebServerProcess

HOME = f"/p/{PROJECT}"


def _count(page: Page, name: str) -> str:
    return page.locator(f"#count-{name} b").inner_text()


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_home_is_accessible_on_every_screen(
    server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck, screen: Screen
) -> None:
    page = windows.open(server, HOME, screen)
    expect(page.get_by_role("heading", level=1)).to_have_text(PROJECT)
    check_page(page, f"home-{screen.name}")
    page.get_by_label("Search everything").type("pass")
    expect(page.locator("#search-dropdown a").first).to_be_visible()
    check_page(page, f"dropdown-{screen.name}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Results for “pass”")
    check_page(page, f"search-{screen.name}")
    page.locator("#projects-menu summary").click()
    expect(page.locator("#project-list a").first).to_be_visible()
    check_page(page, f"projects-{screen.name}")


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_an_empty_project_says_what_to_do_next(
    empty_server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck, screen: Screen
) -> None:
    page = windows.open(empty_server, "/p/default", screen)
    for name, path in (
        ("Add a prompt", "/prompts/new"),
        ("Connect a client", "/connect"),
        ("Add a library", "/prompts?tab=libraries"),
        ("Add resources", "/resources"),
    ):
        link = page.get_by_role("link", name=name)
        assert link.get_attribute("href") == f"/p/default{path}"
    check_page(page, f"empty-{screen.name}")


@pytest.fixture(scope="module")
def empty_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServerProcess]:
    """A server with an empty workspace."""
    with WebServerProcess(tmp_path_factory.mktemp("empty")) as server:
        yield server


def test_home_counts_entities(server: WebServerProcess, windows: BrowserWindows) -> None:
    page = windows.open(server, HOME)
    assert [_count(page, name) for name in ("prompts", "libraries", "resources", "tasks")] == [
        "5",
        "1",
        "3",
        "3",
    ]
    page.get_by_role("link", name="open tasks").click()
    page.wait_for_url("**/tasks")


def test_changes_by_an_agent_appear_without_reloading(
    server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(server, "/p/default")
    page.get_by_text("Live", exact=True).wait_for()
    before = int(_count(page, "prompts"))
    server.call("create_prompt", name="from-an-agent", content="Hello")
    expect(page.locator("#count-prompts b")).to_have_text(str(before + 1))
    newest = page.locator("#changes .change").first
    expect(newest).to_contain_text("claude-code created prompt from-an-agent")
    newest.get_by_role("link", name="from-an-agent").click()
    page.wait_for_url("**/p/default/prompts/*")
    expect(page.get_by_role("heading", level=1)).to_contain_text("from-an-agent")


def test_the_search_box_works_with_the_keyboard_alone(
    server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(server, HOME)
    page.keyboard.press("/")
    page.keyboard.type("COMMIT")
    dropdown = page.locator("#search-dropdown")
    expect(dropdown.locator("li")).to_have_count(3)
    kinds = dropdown.locator(".result-kind").all_inner_texts()
    assert sorted(kinds) == ["Library prompt", "Prompt", "Prompt"]
    assert dropdown.locator("mark").first.inner_text().lower() == "commit"
    for _ in range(kinds.index("Library prompt") + 1):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/libraries/prompt?name=team%3Acommit")
    page.go_back()
    box = page.get_by_label("Search everything")
    box.fill("argon2")
    dropdown.get_by_role("link", name="Hash passwords with argon2").click()
    page.wait_for_url("**/tasks/1")
    page.goto(f"{server.origin}{HOME}/search?q=password")
    page.get_by_role("link", name="Tasks", exact=True).last.click()
    page.wait_for_url("**/search?q=password&kind=task")
    expect(page.locator("a[data-item]", has_text="Hash passwords with argon2")).to_be_visible()
    box.fill("pasword hashng")
    expect(dropdown).to_contain_text("Did you mean")
    box.fill("xyzzyq <b>")
    expect(dropdown).to_have_text("No results for “xyzzyq <b>”.")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=2)).to_have_text("No results for “xyzzyq <b>”")


def test_the_project_menu_keeps_the_section(server: WebServerProcess, windows: BrowserWindows) -> None:
    page = windows.open(server, f"{HOME}/prompts?q=x")
    page.locator("#projects-menu summary").click()
    items = page.locator("#project-list a")
    expect(items.first).to_be_visible()
    current = page.locator("#project-list a[aria-current]")
    assert current.inner_text().splitlines() == [PROJECT, "5 prompts, 3 resources, 2 tasks"]
    page.get_by_role("link", name="default").click()
    page.wait_for_url("**/p/default/prompts")


def test_a_project_is_created_in_settings(server: WebServerProcess, windows: BrowserWindows) -> None:
    page = windows.open(server, HOME)

    def create(name: str) -> None:
        page.locator("#projects-menu summary").click()
        page.locator("#projects-menu").get_by_role("link", name="New project").click()
        page.get_by_label("New project").fill(name)
        page.get_by_role("button", name="Create").click()

    create("garden & <co>")
    page.wait_for_url("**/p/garden%20%26%20%3Cco%3E")
    expect(page.get_by_role("heading", level=1)).to_have_text("garden & <co>")
    expect(page.locator(".note")).to_have_text("Created project “garden & <co>”")
    create(PROJECT)
    expect(page.get_by_role("alert")).to_contain_text(f"Project '{PROJECT}' already exists")
    assert page.locator("#field-name").input_value() == PROJECT
    windows.problems.clear()
