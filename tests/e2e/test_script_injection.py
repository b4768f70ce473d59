"""Script injection: payloads in every text field of every kind of entity must not run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import NamedTuple
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Dialog, Page

from dittybag.assembly.workspace_session import with_workspace
from dittybag.config import environment_with_home, settings
from dittybag.domain.pins import MAX_PINS
from dittybag.domain.prompts import Argument
from dittybag.services.caller import Caller
from dittybag.services.task_queue import ClaimRequest
from dittybag.services.workspace import Workspace
from tests.e2e.conftest import BrowserWindows, IdleWindows
from tests.e2e.web_server_process import WebServerProcess
from tests.e2e.xss_payloads import PAYLOADS
from tests.repetitions import repetitions

#: Types of the resources; the preview depends on the type.
MIME_TYPES = (
    "text/plain", "text/markdown", "text/html", "image/svg+xml", "application/json", "text/csv",
    "text/x-python", "image/png", "application/pdf", "application/xhtml+xml", "text/xml",
    "application/octet-stream",
)  # fmt: skip


#: Lists show all entities. Of the pages of one entity each, every fifth is visited, or all of them: five has
#: no common divisor with the number of types, nor with that of the pages with a payload in the URL, so every
#: type and every such page is among them.
VISITED = repetitions(5, 1)


def one_line(text: str) -> str:
    return " ".join(text.split()).replace("\u2028", " ")


def uri_of(number: int, line: str) -> str:
    """Return a URI; every fifth one would run as the target of a link."""
    if number % 5 == 0:
        return f"javascript:pwned({number})//{number}"
    return f"x:{number}/{quote(line, safe=chr(39) + '()=/:')}"[:500]


async def create_hostile_entities(workspace: Workspace) -> None:
    """Create an entity of every kind per payload, with the payload in every field that accepts it."""
    project = await workspace.projects.find("default")
    before: list[int] = []
    for number, payload in enumerate(PAYLOADS):
        # Clients choose the actor, too.
        caller = Caller(project.id, one_line(payload)[:100])
        line = one_line(payload)
        arguments = [Argument(name="value", description=line, choices=(line,))]
        # With arguments, the content must be a valid template, which not every payload is.
        is_template = "{" not in payload
        await workspace.prompts.create(
            caller,
            title=f"{line} {number}"[:250],
            description=line,
            content=payload,
            arguments=arguments if is_template else (),
        )
        if not is_template:
            await workspace.prompts.create(
                caller, name=f"template-{number}", content="{{ value }}", arguments=arguments
            )
        await workspace.resources.create(
            caller,
            name=f"resource-{number}",
            title=line[:200],
            description=line,
            uri=uri_of(number, line),
            mime_type=MIME_TYPES[number % len(MIME_TYPES)],
            content=payload.encode(),
        )
        await _create_task(workspace, caller, number, payload, before)
        await workspace.projects.create(f"{line[:80]} {number}", actor=line[:90])
    # Every fourth item is pinned, and the list has at most 50.
    for number in range(0, len(PAYLOADS), 4):
        caller = Caller(project.id, one_line(PAYLOADS[number])[:100])
        for reference in (f"resource-{number}", f"task:{number + 1}"):
            if len(await workspace.pins.all(caller)) < MAX_PINS:
                await workspace.pins.add(caller, reference, None)


async def _create_task(
    workspace: Workspace, caller: Caller, number: int, payload: str, before: list[int]
) -> None:
    """Create a task with the payload in every field. Some wait for others, and some are claimed."""
    line = one_line(payload)
    task = await workspace.tasks.create(
        caller,
        title=line[:200],
        notes=payload,
        project=line[:90],
        labels=[line[:50]],
        # URLs that browsers run, with and without other payloads in them.
        links=[
            line,
            f"javascript:pwned({number})",
            f"JavaScript:pwned({number})//https://x.example",
            "file:///x",
        ],
        assignee=line[:200],
        comment=payload,
        blocked_by=before[-1:] if number % 3 == 1 else (),
        parent=before[-1] if number % 3 == 2 else None,
    )
    before.append(task.id)
    if number % 3 != 1:
        # It has no open blockers.
        await workspace.task_queue.claim(caller, task.id, ClaimRequest())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServerProcess]:
    home = tmp_path_factory.mktemp("home")
    for number, payload in enumerate(PAYLOADS):
        folder = home / "libraries" / "hostile"
        folder.mkdir(parents=True, exist_ok=True)
        description = payload.replace("\n", " ").replace("'", "''")
        (folder / f"prompt-{number}.md").write_text(
            f"---\ndescription: '{description}'\n---\n{payload}\n", encoding="utf-8"
        )
    with ThreadPoolExecutor(1) as executor:
        executor.submit(
            with_workspace, settings(environment_with_home(os.fspath(home))), create_hostile_entities
        ).result()
    with WebServerProcess(home) as server:
        yield server


class WatchedPage(NamedTuple):
    """A page, and what payloads did on it."""

    page: Page
    violations: list[object]
    windows: BrowserWindows


@pytest.fixture(scope="module")
def watched_page(
    server: WebServerProcess, browser: Browser, idle_windows: IdleWindows
) -> Iterator[WatchedPage]:
    windows = BrowserWindows(browser, idle_windows)
    page = windows.open(server, own=True)
    violations: list[object] = []
    page.expose_function("pwned", lambda number: violations.append(number))  # noqa: PLW0108  # it must be a Python function
    page.on("dialog", lambda dialog: _dismiss(dialog, violations))
    page.on("request", lambda request: _record_foreign_request(request.url, server.origin, violations))
    page.on("popup", lambda popup: violations.append(popup.url))
    yield WatchedPage(page, violations, windows)
    windows.close()


@pytest.fixture
def page(watched_page: WatchedPage) -> Iterator[Page]:
    """A page; the test fails if a payload runs on it or makes it contact another host."""
    watched_page.violations.clear()
    watched_page.windows.problems.clear()
    yield watched_page.page
    # Wait for the listeners of everything that has happened so far.
    watched_page.page.evaluate("0")
    assert watched_page.violations == []
    assert watched_page.windows.problems == []


def _dismiss(dialog: Dialog, violations: list[object]) -> None:
    # The web UI itself asks before it discards unsaved input.
    if dialog.type != "beforeunload":
        violations.append(dialog.message)
    dialog.dismiss()


def _record_foreign_request(url: str, origin: str, violations: list[object]) -> None:
    if not url.startswith((origin + "/", "data:image/", "blob:")):
        violations.append(url)


def visit_linked_pages(page: Page, server: WebServerProcess, list_path: str, pattern: str) -> int:
    """Trigger events on all pages of a list and on pages linked from it; return the number of links."""
    links: dict[str, None] = {}
    next_url: str | None = server.origin + list_path
    while next_url is not None:
        page.goto(next_url, wait_until="load")
        trigger_events(page)
        found = page.eval_on_selector_all("a[href]", "links => links.map(link => link.getAttribute('href'))")
        links.update(dict.fromkeys(link for link in found if re.search(pattern, link)))
        next_link = page.locator('nav.pager a[rel="next"]')
        next_url = server.origin + str(next_link.get_attribute("href")) if next_link.count() else None
    for link in list(links)[::VISITED]:
        page.goto(server.origin + link, wait_until="load")
        trigger_events(page)
    return len(links)


#: Dispatches focus and hover events, and returns links that are not web or mail links.
_TRIGGER_EVENTS = r"""() => {
  for (const element of document.querySelectorAll('main *')) {
    for (const kind of ['mouseover', 'mouseenter', 'pointerover', 'focus', 'toggle', 'error', 'load']) {
      element.dispatchEvent(new Event(kind));
    }
  }
  // The link of a picture has another type.
  return [...document.querySelectorAll('a[href]')]
    .map(link => link.href.baseVal === undefined ? link.href : new URL(link.href.baseVal, location).href)
    .filter(address => !/^(https?|mailto):/.test(address))
    // Links that install Dittybag in a client.
    .filter(address => !/^(cursor:\/\/anysphere\.cursor-deeplink\/mcp|vscode:mcp)\/install\?/.test(address));
}"""


def trigger_events(page: Page) -> None:
    assert page.evaluate(_TRIGGER_EVENTS) == [], page.url


@pytest.mark.parametrize(
    ("list_path", "pattern"),
    [
        ("/p/default/prompts", r"/prompts/[0-9a-f-]{36}$"),
        ("/p/default/resources", r"/resources/view\?uri="),
        ("/p/default/tasks?view=list", r"/tasks/\d+$"),
        ("/p/default/libraries/view?name=hostile", r"/libraries/prompt\?name="),
    ],
    ids=["prompts", "resources", "tasks", "libraries"],
)
def test_no_payload_runs_on_the_page_of_an_entity(
    page: Page, server: WebServerProcess, list_path: str, pattern: str
) -> None:
    assert visit_linked_pages(page, server, list_path, pattern) >= len(PAYLOADS) // 2


@pytest.mark.parametrize(
    "path",
    [
        "", "/activity", "/activity?kind=task", "/activity?kind=resource", "/activity?kind=project",
        "/settings", "/connect", "/prompts?tab=libraries", "/tasks", "/tasks?by=project",
        "/tasks?by=priority",
        "/tasks/graph", "/tasks/graph?task=2", "/search?q=pwned", "/search?kind=task&q=script",
        "/search?q=%3Cscript%3Epwned(0)%3C/script%3E", "/context?query=pwned&budget=50000&agent=-",
        "/context/items?pin=pwned", "/tasks/2/context?budget=50000&agent=-", "/tasks/6/context",
    ],
)  # fmt: skip
def test_no_payload_runs_on_other_pages(page: Page, server: WebServerProcess, path: str) -> None:
    page.goto(f"{server.origin}/p/default{path}", wait_until="load")
    trigger_events(page)


def test_no_payload_runs_from_a_url(page: Page, server: WebServerProcess, watched_page: WatchedPage) -> None:
    paths = (
        "/search?q=", "/prompts?q=", "/prompts?tag=", "/tasks?project=", "/tasks?label=", "/tasks?assignee=",
        "/tasks/graph?project=", "/activity?actor=", "/context?query=", "/context?agent=",
        "/context?budget=",
    )  # fmt: skip
    for payload, path in list(zip(PAYLOADS, cycle(paths), strict=False))[::VISITED]:
        page.goto(f"{server.origin}/p/default{path}{quote(payload, safe='')}", wait_until="load")
        assert page.evaluate(_TRIGGER_EVENTS) == []
    # Some URLs return an error status, which the browser logs.
    problems = watched_page.windows.problems
    problems[:] = [problem for problem in problems if "status of 4" not in problem]


def test_no_payload_runs_in_the_search_dropdown(page: Page, server: WebServerProcess) -> None:
    page.goto(f"{server.origin}/p/default", wait_until="load")
    page.locator("#find").fill("pwned")
    page.locator("#search-dropdown a").first.wait_for()
    trigger_events(page)
