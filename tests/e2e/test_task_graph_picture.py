"""The picture of a graph of tasks in a page of the web UI, under its style sheet and security policy."""

from __future__ import annotations

import pytest

from dittybag.web.task_graph_svg import draw_graph
from tests.domain.task_graphs import NOW, graph_of
from tests.e2e.conftest import SCREENS, BrowserWindows, PageCheck, Screen
from tests.e2e.web_server_process import WebServerProcess
from tests.e2e.xss_payloads import PAYLOADS

GRAPH = graph_of(
    {
        1: [],
        2: [1],
        3: [2],
        4: [2],
        5: [3, 4],
        6: [5],
        7: [],
        8: [5, 7],
        9: [],
        **{10 + n: [] for n in range(9)},
    },
    {9: 8},
    {
        1: {"title": "Design the schema", "status": "done"},
        2: {"title": "Write the migration for both databases, with triggers", "status": "doing"},
        3: {"title": "Import from other trackers", "status": "review", "assignee": "ann"},
        7: {"title": "Dropped", "status": "dropped"},
        **{10 + number: {"title": payload} for number, payload in enumerate(PAYLOADS[:9])},
    },
)


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_the_picture_is_accessible_and_scrolls_in_its_own_box(
    server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck, screen: Screen
) -> None:
    page = windows.open(server, "/p/default/tasks", screen)
    picture = draw_graph(GRAPH, NOW, lambda task: f"/p/default/tasks/{task}", selected=4)
    page.evaluate(
        """svg => {
            const box = document.createElement("div");
            box.className = "scroll task-graph-box";
            box.tabIndex = 0;
            box.setAttribute("role", "region");
            box.setAttribute("aria-label", "Graph of tasks");
            box.innerHTML = svg;
            document.querySelector("main").prepend(box);
        }""",
        picture.svg,
    )
    # Axe checks the contrast of texts, and the names of links.
    check_page(page, f"task-graph-{screen.name}")
    assert page.evaluate(
        "(box => box.scrollWidth > box.clientWidth)(document.querySelector('.task-graph-box'))"
    )
    # The first task in the order of work is the first link, and the keyboard reaches it.
    page.locator(".task-graph-box").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "/p/default/tasks/1"
    assert page.locator("a.graph-task").count() == len(GRAPH.tasks)
    # Titles stay inside their boxes.
    overflows = """[...document.querySelectorAll(".graph-task")].filter(task => {
        const box = task.querySelector(".graph-box").getBoundingClientRect();
        return [...task.querySelectorAll("text")].some(
            text => text.getBoundingClientRect().right > box.right
                || text.getBoundingClientRect().bottom > box.bottom);
    }).map(task => task.textContent)"""
    assert page.evaluate(overflows) == []
