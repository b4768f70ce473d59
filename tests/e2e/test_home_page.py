"""Home, the search box, and the menu of projects."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import LOOKS, Checked, Look, Visits
from tests.e2e.sample_home import PROJECT
from tests.e2e.web_server_process import Served

HOME = f"/p/{PROJECT}"


def _tile(page: Page, name: str) -> str:
    return page.locator(f"#tile-{name} b").inner_text()


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
def test_home_is_good_to_look_at(served: Served, visits: Visits, checked: Checked, look: Look) -> None:
    page = visits.open(served, HOME, look)
    expect(page.get_by_role("heading", level=1)).to_have_text(PROJECT)
    checked(page, f"home-{look.name}")
    page.get_by_label("Search everything").type("pass")
    expect(page.locator("#search-dropdown a").first).to_be_visible()
    checked(page, f"found-{look.name}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Results for “pass”")
    checked(page, f"search-{look.name}")
    page.locator("#projects-menu summary").click()
    expect(page.locator("#project-list a").first).to_be_visible()
    checked(page, f"projects-{look.name}")


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
def test_an_empty_project_says_what_to_do_next(
    bare: Served, visits: Visits, checked: Checked, look: Look
) -> None:
    page = visits.open(bare, "/p/default", look)
    for name, address in (
        ("Add a prompt", "/prompts/new"),
        ("Connect a client", "/connect"),
        ("Add a library", "/libraries"),
        ("Add resources", "/resources"),
    ):
        link = page.get_by_role("link", name=name)
        assert link.get_attribute("href") == f"/p/default{address}"
    checked(page, f"empty-{look.name}")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with nothing in it."""
    with Served(tmp_path_factory.mktemp("bare")) as served:
        yield served


def test_home_counts_what_is_in_the_bag_and_who_put_it_there(served: Served, visits: Visits) -> None:
    page = visits.open(served, HOME)
    assert [_tile(page, name) for name in ("prompts", "libraries", "resources", "tasks")] == [
        "5",
        "1",
        "3",
        "3",
    ]
    page.get_by_text("Show as a table").click()
    today = page.locator(".usage-table tbody tr").first
    # Five prompts, three resources, three tasks and the project itself; nobody did it at a page.
    assert today.locator("td").all_inner_texts() == ["0", "12"]
    assert page.locator(".usage-chart .bar-mark").count() == 1
    page.get_by_role("link", name="open tasks").click()
    page.wait_for_url("**/tasks")


def test_what_an_agent_does_shows_up_by_itself(served: Served, visits: Visits) -> None:
    page = visits.open(served, "/p/default")
    page.get_by_text("Live", exact=True).wait_for()
    before = int(_tile(page, "prompts"))
    served.call("create_prompt", name="from-afar", content="Hello")
    expect(page.locator("#tile-prompts b")).to_have_text(str(before + 1))
    newest = page.locator(".recent").first
    expect(newest).to_contain_text("claude-code created prompt from-afar")
    page.locator(".edited a", has_text="from-afar").click()
    page.wait_for_url("**/p/default/prompts/*")
    expect(page.get_by_role("heading", level=1)).to_contain_text("from-afar")


def test_the_search_box_finds_everything_by_keys_alone(served: Served, visits: Visits) -> None:
    page = visits.open(served, HOME)
    page.keyboard.press("/")
    page.keyboard.type("COMMIT")
    found = page.locator("#search-dropdown")
    expect(found.locator("section")).to_have_count(2)
    assert found.locator(".result-title").all_inner_texts() == ["PROMPTS", "LIBRARY PROMPTS"]
    assert found.locator("mark").first.inner_text() == "Commit"
    # Two prompts come first.
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/libraries/prompt?name=team%3Acommit")
    page.go_back()
    box = page.get_by_label("Search everything")
    box.fill("argon2")
    found.get_by_role("link", name="Hash passwords with argon2").click()
    page.wait_for_url("**/tasks/1")
    page.goto(f"{served.origin}{HOME}/search?q=password")
    page.get_by_role("link", name="All matching tasks").click()
    page.wait_for_url("**/tasks?text=password")
    box.fill("no such thing <b>")
    expect(found).to_have_text("No results for “no such thing <b>”.")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=2)).to_have_text("No results for “no such thing <b>”")


def test_a_search_is_for_text_and_marks_it(served: Served, visits: Visits) -> None:
    served.dittybag("prompt", "add", "street", "--title", "Straße 100% İo\\o", stdin="x")
    page = visits.open(served, "/p/default")
    for query, marks in (
        ("STRASSE", ["Straße"]),
        ("%", ["%"]),
        ("İ", ["İ"]),
        ("\\", ["\\"]),
        ("o", ["o", "o"]),
        ("_a", None),
    ):
        page.goto(f"{served.origin}/p/default/search?q={quote(query)}")
        title = page.locator("a[data-item]", has_text="Straße")
        assert title.count() == (marks is not None), query
        assert title.locator("mark").all_inner_texts() == (marks or []), query


def test_the_menu_changes_the_project_and_stays_in_the_section(served: Served, visits: Visits) -> None:
    page = visits.open(served, f"{HOME}/prompts?q=x")
    page.locator("#projects-menu summary").click()
    items = page.locator("#project-list a")
    expect(items.first).to_be_visible()
    current = page.locator("#project-list a[aria-current]")
    assert current.inner_text().splitlines() == [PROJECT, "5 prompts, 3 resources, 2 tasks"]
    page.get_by_role("link", name="default").click()
    page.wait_for_url("**/p/default/prompts")


def test_a_new_project_is_made_in_the_menu(served: Served, visits: Visits) -> None:
    page = visits.open(served, HOME)

    def make(name: str) -> None:
        page.locator("#projects-menu summary").click()
        page.locator("#projects-menu").get_by_label("New project").fill(name)
        page.locator("#projects-menu").get_by_role("button", name="Create").click()

    make("garden & <co>")
    page.wait_for_url("**/p/garden%20%26%20%3Cco%3E")
    expect(page.get_by_role("heading", level=1)).to_have_text("garden & <co>")
    expect(page.locator(".note")).to_have_text("Created project “garden & <co>”")
    make(PROJECT)
    expect(page.get_by_role("alert")).to_contain_text(f"Project '{PROJECT}' already exists")
    assert page.locator("#content #field-name").input_value() == PROJECT
    visits.problems.clear()


def test_many_projects_are_filtered(served: Served, visits: Visits) -> None:
    served.dittybag("project", "create", "filtered-one")
    page = visits.open(served, f"{HOME}/projects?filter=FILTERED")
    expect(page.locator("#content #project-list a")).to_have_count(1)
