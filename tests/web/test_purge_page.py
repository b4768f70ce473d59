"""Purging in the web UI: for the owner of the machine and for admins, after a confirmation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.cli.cli_runner import data, dittybag
from tests.e2e.web_server_process import WebServerProcess
from tests.web.browser_client import BrowserClient, BrowserResponse, new_token

SECRET = "qzxjvqkzwx"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A prompt of two versions, a resource, and a task of ann."""
    dittybag(tmp_path, "prompt", "add", "review", f"First {SECRET}")
    dittybag(tmp_path, "prompt", "edit", "review", "Second")
    (tmp_path / "note.md").write_text(SECRET)
    dittybag(tmp_path, "resource", "add", str(tmp_path / "note.md"), "--name", "note")
    (tmp_path / "note.md").unlink()
    dittybag(tmp_path, "task", "add", f"Task {SECRET}")
    return tmp_path


@pytest.fixture
def server(home: Path) -> Iterator[WebServerProcess]:
    with WebServerProcess(home) as server:
        yield server


@pytest.fixture
def owner(server: WebServerProcess) -> BrowserClient:
    return BrowserClient.sign_in(server)


@pytest.fixture
def prompt(home: Path) -> str:
    return str(data(dittybag(home, "prompt", "show", "review", "--json"))["id"])


def confirm(client: BrowserClient, address: str) -> BrowserResponse:
    """Open the Purge page, and send its form as it is."""
    page = client.get(address)
    assert page.status == 200, page.text
    form = re.search(r'<form method="post" action="([^"]*/purge)".*?</form>', unescape(page.text), re.DOTALL)
    assert form is not None, page.text
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form[0]))
    return client.post(form[1], fields)


def purge_link(page: BrowserResponse) -> str:
    link = re.search(r'href="(/p/default/purge\?[^"]*)"', unescape(page.text))
    assert link is not None
    return link[1]


def files_with(home: Path, text: str) -> list[str]:
    return [file.name for file in home.glob("*.db*") if text.encode() in file.read_bytes()]


def test_the_menu_of_a_prompt_leads_to_its_purge(home: Path, owner: BrowserClient, prompt: str) -> None:
    history = owner.get(f"/p/default/prompts/{prompt}/history")
    link = purge_link(history)
    page = owner.get(link)
    assert "Delete and purge prompt <b" in page.text
    assert "2 versions" in page.text
    response = confirm(owner, link)
    assert (response.status, response.headers["location"]) == (303, "/p/default/activity")
    feed = owner.get("/p/default/activity")
    assert "Purged 2 versions for good" in feed.text
    assert "(purged)" in feed.text
    for address in (f"/prompts/{prompt}", f"/prompts/{prompt}/history", f"/prompts/{prompt}/history/2"):
        assert owner.get(f"/p/default{address}").status == 404
    assert "was purged by" in owner.get(f"/p/default/prompts/{prompt}/history").text
    change = owner.get("/p/default/activity/2")
    assert change.status == 200
    assert "The content was purged by" in change.text
    assert "Undo this change" not in change.text
    undone = owner.post("/p/default/undo", {"form_secret": owner.secret, "seq": "2", "seen": "99"})
    assert undone.status == 404
    assert "was purged by" in undone.text


def test_the_history_is_purged_and_the_current_version_stays(
    home: Path, owner: BrowserClient, prompt: str
) -> None:
    link = f"/p/default/purge?kind=prompt&id={prompt}"
    assert f"{link}&keep=current" in unescape(owner.get(link).text)
    assert confirm(owner, f"{link}&keep=current").status == 303
    history = owner.get(f"/p/default/prompts/{prompt}/history").text
    assert history.count(">purged<") == 1
    assert "Restore version 1" not in history
    assert "Second" in owner.get(f"/p/default/prompts/{prompt}").text
    assert "There is nothing to purge" in owner.get(f"{link}&keep=current").text


def test_resources_and_tasks_are_purged_from_the_files(home: Path, owner: BrowserClient) -> None:
    uri = data(dittybag(home, "resource", "list", "--json"))["resources"][0]["uri"]
    history = owner.get(f"/p/default/resources/view?uri={quote(uri, safe='')}&tab=history")
    assert confirm(owner, purge_link(history)).status == 303
    assert confirm(owner, purge_link(owner.get("/p/default/tasks/1"))).status == 303
    assert owner.get("/p/default/tasks/1").status == 404
    prompt = data(dittybag(home, "prompt", "show", "review", "--json"))["id"]
    assert confirm(owner, f"/p/default/purge?kind=prompt&id={prompt}&keep=current").status == 303
    assert files_with(home, SECRET) == []


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 404),
        ("kind=task&id=x", 404),
        ("kind=book&id=1", 404),
        ("kind=task&id=77", 404),
        ("kind=project&id=1", 409),
        ("change=999999", 404),
    ],
)
def test_invalid_selections_are_refused(owner: BrowserClient, query: str, status: int) -> None:
    assert owner.get(f"/p/default/purge?{query}").status == status


def test_a_deleted_item_is_purged_by_one_of_its_changes(
    home: Path, owner: BrowserClient, prompt: str
) -> None:
    dittybag(home, "prompt", "delete", "review")
    assert 'action="&#x2f;p&#x2f;default&#x2f;purge"' in owner.get("/p/default/settings/data").text
    link = re.search(r"/activity/(\d+)", unescape(owner.get("/p/default/activity").text))
    assert link is not None
    assert confirm(owner, f"/p/default/purge?change={link[1]}").status == 303
    assert files_with(home, f"First {SECRET}") == []


# Permissions


@pytest.fixture
def token_server(home: Path) -> Iterator[WebServerProcess]:
    for name in ("ann", "bob"):
        dittybag(home, "user", "add", name)
    with WebServerProcess(home, "--auth", "tokens") as server:
        yield server


def check_that_nothing_is_purged(client: BrowserClient, prompt: str) -> None:
    assert "/purge" not in client.get(f"/p/default/prompts/{prompt}/history").text
    assert client.get(f"/p/default/purge?kind=prompt&id={prompt}").status == 403
    fields = {"form_secret": client.secret, "kind": "prompt", "id": prompt}
    assert client.post("/p/default/purge", fields).status == 403
    assert client.get(f"/p/default/prompts/{prompt}").status == 200


@pytest.mark.parametrize("scope", ["read", "write"])
def test_only_admins_see_and_use_the_purge_page(
    home: Path, token_server: WebServerProcess, prompt: str, scope: str
) -> None:
    client = BrowserClient.sign_in(token_server, new_token(home, "ann", scope))
    check_that_nothing_is_purged(client, prompt)


def test_an_admin_purges_what_they_can_change_and_nothing_else(
    home: Path, token_server: WebServerProcess, prompt: str
) -> None:
    dittybag(home, "project", "create", "hidden")
    dittybag(home, "prompt", "add", "plan", "Text", "-p", "hidden")
    hidden = data(dittybag(home, "prompt", "show", "plan", "-p", "hidden", "--json"))["id"]
    client = BrowserClient.sign_in(token_server, new_token(home, "ann", "admin"))
    # Somebody else's task, and an entity of another project.
    for query in ("kind=task&id=1", f"kind=prompt&id={hidden}"):
        missing = query.replace(hidden, "0" * 36).replace("id=1", "id=77")
        foreign, unknown = (client.get(f"/p/default/purge?{item}") for item in (query, missing))
        assert (foreign.status, unknown.status) == (404, 404), query
    assert confirm(client, f"/p/default/purge?kind=prompt&id={prompt}").status == 303
    dittybag(home, "prompt", "show", "review", status=3)
    dittybag(home, "prompt", "show", "plan", "-p", "hidden")
    assert data(dittybag(home, "history", prompt, "--json"))["changes"][0]["purged"]["by"] == "ann via web"


def test_a_read_only_server_purges_nothing(home: Path, prompt: str) -> None:
    with WebServerProcess(home, "--read-only") as server:
        check_that_nothing_is_purged(BrowserClient.sign_in(server), prompt)
