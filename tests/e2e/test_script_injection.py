"""Text that would run on a careless page, in every field of every kind: none of it runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from urllib.parse import quote

import pytest
from playwright.sync_api import Dialog, Page

from dittybag.assembly import with_workspace
from dittybag.config import settings
from dittybag.domain.prompts import Argument
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from tests.e2e.conftest import Visits
from tests.e2e.xss_payloads import PAYLOADS
from tests.e2e.web_server_process import Served

#: By kind, for documents: what a page makes of them depends on it.
MIME_TYPES = (
    "text/plain", "text/markdown", "text/html", "image/svg+xml", "application/json", "text/csv",
    "text/x-python", "image/png", "application/pdf", "application/xhtml+xml", "text/xml",
    "application/octet-stream",
)  # fmt: skip


def one_line(text: str) -> str:
    return " ".join(text.split()).replace("\u2028", " ")


def uri_of(number: int, line: str) -> str:
    """Every fifth would run if a page made a link of it."""
    if number % 5 == 0:
        return f"javascript:pwned({number})//{number}"
    return f"x:{number}/{quote(line, safe=chr(39) + '()=/:')}"[:500]


async def fill(workspace: Workspace) -> None:
    """One thing of every kind for each payload, with the payload in every field that takes it."""
    project = await workspace.projects.find("default")
    for number, payload in enumerate(PAYLOADS):
        # The actor is a text of a client's, too.
        caller = Caller(project.id, one_line(payload)[:100])
        line = one_line(payload)
        arguments = [Argument(name="value", description=line, choices=(line,))]
        # With arguments the content is a template, and not every text is one.
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
            name=f"document-{number}",
            title=line[:200],
            description=line,
            uri=uri_of(number, line),
            mime_type=MIME_TYPES[number % len(MIME_TYPES)],
            content=payload.encode(),
        )
        await workspace.tasks.create(caller, title=line[:200], notes=payload, project=line[:90])
        await workspace.projects.create(f"{line[:80]} {number}", actor=line[:90])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("home")
    for number, payload in enumerate(PAYLOADS):
        folder = home / "libraries" / "hostile"
        folder.mkdir(parents=True, exist_ok=True)
        described = payload.replace("\n", " ").replace("'", "''")
        (folder / f"prompt-{number}.md").write_text(
            f"---\ndescription: '{described}'\n---\n{payload}\n", encoding="utf-8"
        )
    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(with_workspace, settings({"DITTYBAG_HOME": os.fspath(home)}), fill).result()
    with Served(home) as served:
        yield served


@pytest.fixture
def page(served: Served, visits: Visits) -> Iterator[Page]:
    """A page on which nothing may run, and from which nothing may be fetched elsewhere."""
    page = visits.open(served)
    ran: list[object] = []
    page.expose_function("pwned", lambda number: ran.append(number))  # noqa: PLW0108  # it must be a Python function
    page.on("dialog", lambda dialog: _dismissed(dialog, ran))
    page.on("request", lambda request: _note_foreign(request.url, served.origin, ran))
    page.on("popup", lambda popup: ran.append(popup.url))
    yield page
    assert ran == []


def _dismissed(dialog: Dialog, ran: list[object]) -> None:
    # Leaving a form may be asked about; that is the page's own doing.
    if dialog.type != "beforeunload":
        ran.append(dialog.message)
    dialog.dismiss()


def _note_foreign(url: str, origin: str, ran: list[object]) -> None:
    if not url.startswith((origin + "/", "data:image/", "blob:")):
        ran.append(url)


def visit_all(page: Page, served: Served, listed: str, pattern: str) -> int:
    """Open every page that a list leads to, on all of its pages, and touch what is there; how many."""
    links: dict[str, None] = {}
    following: str | None = served.origin + listed
    while following is not None:
        page.goto(following, wait_until="load")
        touch(page)
        found = page.eval_on_selector_all("a[href]", "links => links.map(link => link.getAttribute('href'))")
        links.update(dict.fromkeys(link for link in found if re.search(pattern, link)))
        later = page.locator('nav.pager a[rel="next"]')
        following = served.origin + str(later.get_attribute("href")) if later.count() else None
    for link in links:
        page.goto(served.origin + link, wait_until="load")
        touch(page)
    return len(links)


#: What a person does with hands: focus, hover, click on links that stored text made.
_TOUCH = """() => {
  for (const element of document.querySelectorAll('main *')) {
    for (const kind of ['mouseover', 'mouseenter', 'pointerover', 'focus', 'toggle', 'error', 'load']) {
      element.dispatchEvent(new Event(kind));
    }
  }
  return [...document.querySelectorAll('a[href]')].map(link => link.href)
    .filter(address => !/^(https?|mailto):/.test(address));
}"""


def touch(page: Page) -> None:
    assert page.evaluate(_TOUCH) == [], page.url


@pytest.mark.parametrize(
    ("listed", "pattern"),
    [
        ("/p/default/prompts", r"/prompts/[0-9a-f-]{36}$"),
        ("/p/default/resources", r"/resources/view\?uri="),
        ("/p/default/tasks?view=list", r"/tasks/\d+$"),
        ("/p/default/libraries/view?name=hostile", r"/libraries/prompt\?name="),
    ],
    ids=["prompts", "resources", "tasks", "libraries"],
)
def test_nothing_runs_on_the_page_of_anything(page: Page, served: Served, listed: str, pattern: str) -> None:
    assert visit_all(page, served, listed, pattern) >= len(PAYLOADS) // 2


@pytest.mark.parametrize(
    "path",
    [
        "", "/activity", "/activity?kind=task", "/activity?kind=resource", "/activity?kind=project",
        "/projects", "/connect", "/libraries", "/tasks", "/tasks?by=project", "/search?q=pwned",
        "/search?q=%3Cscript%3Epwned(0)%3C/script%3E",
    ],
)  # fmt: skip
def test_nothing_runs_on_other_pages(page: Page, served: Served, path: str) -> None:
    page.goto(f"{served.origin}/p/default{path}", wait_until="load")
    touch(page)


def test_nothing_runs_that_is_in_an_address(page: Page, served: Served, visits: Visits) -> None:
    paths = ("/search?q=", "/prompts?q=", "/prompts?tag=", "/tasks?project=", "/activity?actor=")
    for payload, path in zip(PAYLOADS, cycle(paths), strict=False):
        page.goto(f"{served.origin}/p/default{path}{quote(payload, safe='')}", wait_until="load")
        assert page.evaluate(_TOUCH) == []
    # An address can be one of nothing, and the browser notes that.
    visits.problems[:] = [problem for problem in visits.problems if "status of 4" not in problem]


def test_nothing_runs_that_is_found_as_one_types(page: Page, served: Served) -> None:
    page.goto(f"{served.origin}/p/default", wait_until="load")
    page.locator("#find").fill("pwned")
    page.locator("#search-dropdown a").first.wait_for()
    touch(page)
