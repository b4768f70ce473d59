"""The page with the graph of tasks, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import SCREENS, BrowserWindows, PageCheck, Screen
from tests.e2e.shared_tasks import AGENT, BOARD, PROJECT, SharedTasks
from tests.e2e.web_server_process import WebServerProcess

GRAPH = f"{BOARD}/graph"


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> SharedTasks:
    """Shared tasks, changed by another process than the server."""
    tasks = SharedTasks(tmp_path_factory.mktemp("home"))
    tasks.fill()
    return tasks


@pytest.fixture(scope="module")
def graph_server(tasks: SharedTasks) -> Iterator[WebServerProcess]:
    with WebServerProcess(tasks.home) as server:
        yield server


def drawn(page: Page) -> set[int]:
    """Return the numbers of the tasks in the picture."""
    links = page.locator("a.graph-task").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    return {int(link.rpartition("/")[2]) for link in links}


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_the_graph_is_accessible_on_every_screen(
    tasks: SharedTasks,
    graph_server: WebServerProcess,
    windows: BrowserWindows,
    check_page: PageCheck,
    screen: Screen,
) -> None:
    page = windows.open(graph_server, GRAPH, screen)
    page.get_by_text("Show as a list").click()
    check_page(page, f"task-graph-page-{screen.name}")
    # The picture scrolls in its own box; `check_page` checks that the page does not.
    box = page.get_by_role("region", name="Graph of tasks")
    is_wider = box.evaluate("box => box.scrollWidth > box.clientWidth")
    assert is_wider == (screen.width < 500)
    page.goto(f"{graph_server.origin}{GRAPH}?task={tasks.ids['form']}")
    check_page(page, f"task-graph-around-{screen.name}")
    page.goto(f"{graph_server.origin}{GRAPH}?project=nowhere")
    expect(page.get_by_role("heading", name="No tasks here")).to_be_visible()


def test_the_picture_and_the_list_show_what_waits_for_what(
    tasks: SharedTasks, graph_server: WebServerProcess, windows: BrowserWindows
) -> None:
    ids = tasks.ids
    page = windows.open(graph_server, GRAPH)
    assert drawn(page) == set(ids.values()) - {ids["schema"]}
    page.get_by_text("Show as a list").click()
    items = page.locator(".graph-list li")
    texts = items.filter(has=page.get_by_role("link", name="Translate the texts"))
    expect(texts).to_contain_text("waits for 2")
    expect(texts).to_contain_text(f"{ids['migration']} Write the migration")
    expect(texts).to_contain_text(f"{ids['form']} Build the form")
    expect(items.filter(has=page.get_by_role("link", name="Build the form"))).to_contain_text(AGENT)
    page.get_by_role("combobox", name="Tasks").select_option("All")
    page.wait_for_url("**ended=1**")
    assert drawn(page) == set(ids.values())
    page.get_by_label("Project").fill("(no project)")
    page.get_by_label("Project").press("Enter")
    page.wait_for_url(re.compile("project="))
    expect(page.locator("a.graph-task")).to_have_count(0)
    page.goto(f"{graph_server.origin}{GRAPH}?project={PROJECT}")
    page.locator("a.graph-task").filter(has_text="Build the form").click()
    expect(page.get_by_role("heading", name="Build the form")).to_be_visible()


def test_a_task_links_to_the_graph_around_it(
    tasks: SharedTasks, graph_server: WebServerProcess, windows: BrowserWindows
) -> None:
    ids = tasks.ids
    page = windows.open(graph_server, f"{BOARD}/{ids['load']}")
    page.get_by_role("link", name="Show the graph around this task").click()
    assert drawn(page) == {ids["load"], ids["migration"], ids["schema"]}
    expect(page.locator(".graph-task.selected")).to_contain_text("Measure 1,000 sign-ups")
    page.get_by_role("link", name="Show all tasks").click()
    expect(page.locator("a.graph-task")).to_have_count(len(ids) - 1)


def test_the_picture_changes_when_a_claim_is_made_and_when_it_lapses(
    tasks: SharedTasks, graph_server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(graph_server, GRAPH)
    expect(page.locator("#live-state")).to_have_attribute("data-state", "on")
    number = tasks.add("Draw me")
    drawing = page.locator(".graph-task").filter(has_text="Draw me")
    expect(drawing).to_have_class(re.compile(r"\bready\b"), timeout=1000)
    tasks.claim(number, "cursor", seconds=2)
    expect(drawing).to_have_class(re.compile(r"\bdoing\b"), timeout=1000)
    expect(drawing).to_contain_text("cursor")
    # Nothing is logged when a claim lapses.
    expect(drawing).to_have_class(re.compile(r"\bready\b"))
