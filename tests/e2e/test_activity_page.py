"""The activity page: the feed, the diff of a change, and undo."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from dittybag.assembly.workspace_session import with_workspace
from dittybag.config import environment_with_home, settings
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from tests.e2e.conftest import SCREENS, BrowserWindows, PageCheck, Screen
from tests.e2e.sample_home import PROJECT
from tests.e2e.web_server_process import WebServerProcess

FEED = "/p/default/activity"


def _entries(page: Page) -> Locator:
    return page.locator("#feed > .change")


def _newest_entry(page: Page) -> Locator:
    return _entries(page).first


@pytest.fixture(scope="module")
def create_prompt(server: WebServerProcess) -> Callable[[str], Any]:
    """Return a function that creates a prompt as an agent does."""
    return lambda name: server.call("create_prompt", name=name, content="One\nTwo\nThree")


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_the_feed_is_accessible_on_every_screen(
    server: WebServerProcess,
    windows: BrowserWindows,
    check_page: PageCheck,
    screen: Screen,
    create_prompt: Callable[[str], Any],
) -> None:
    name = f"accessible-{screen.name}"
    create_prompt(name)
    server.call("update_prompt", name=name, content="One\n2\nThree\nFour", client="cursor")
    page = windows.open(server, f"{FEED}?where=all", screen)
    _toggle(_newest_entry(page))
    expect(_newest_entry(page).locator("table.diff")).to_be_visible()
    check_page(page, f"activity-{screen.name}")
    _check_diff(page, _newest_entry(page).locator("table.diff"), screen)
    _newest_entry(page).get_by_role("link", name="Open this change").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    check_page(page, f"change-{screen.name}")
    _check_diff(page, page.locator("table.diff"), screen)


def _toggle(entry: Locator) -> None:
    entry.get_by_role("button", name="What changed").click()


def _check_diff(page: Page, diff: Locator, screen: Screen) -> None:
    """Check that a diff shows every line once, on any screen."""
    removed, added = (diff.locator(f"td.{kind}").first for kind in ("removed", "added"))
    expect(removed).to_contain_text("Two")
    expect(added).to_contain_text("2")
    before, after = removed.bounding_box(), added.bounding_box()
    assert before is not None
    assert after is not None
    assert after["x"] + after["width"] <= screen.width
    assert after["y"] >= before["y"] + before["height"] - 1
    shown = diff.locator("td:not(.hunk)").all_inner_texts()
    assert [text.split(":")[-1].strip() for text in shown] == ["One", "Two", "2", "Three", "Four"]


def test_new_changes_appear_at_the_top_without_reloading(
    server: WebServerProcess, windows: BrowserWindows, create_prompt: Callable[[str], Any]
) -> None:
    page = windows.open(server, FEED)
    filtered = windows.open(server, f"{FEED}?kind=task")
    for window in (page, filtered):
        window.get_by_text("Live", exact=True).wait_for()
    shown = _entries(page).count()
    opened = page.locator(f"[data-seq='{_newest_entry(page).get_attribute('data-seq')}']")
    _toggle(opened)
    server.call("create_prompt", name="new-one", content="x", client="codex")
    expect(_newest_entry(page)).to_contain_text("codex created prompt new-one")
    assert "fresh" in (_newest_entry(page).get_attribute("class") or "")
    server.dittybag("task", "add", "Water the plants")
    expect(_newest_entry(page)).to_contain_text("created task Water the plants")
    expect(_newest_entry(filtered)).to_contain_text("created task Water the plants")
    assert filtered.locator("#feed > li", has_text="prompt").count() == 0
    # No entry appears twice, and open details stay open.
    assert _entries(page).count() == shown + 2
    expect(opened.locator(".change-more")).to_be_visible()
    # All of them are of today, and have one heading.
    assert page.locator(".feed-day").all_inner_texts().count("Today") == 1
    _newest_entry(page).get_by_role("link", name="Water the plants").click()
    page.wait_for_url(re.compile(r"/p/default/tasks/\d+$"))


def test_a_large_batch_is_one_row_with_its_true_number(
    server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(server, FEED)
    page.get_by_text("Live", exact=True).wait_for()
    shown = _entries(page).count()
    table = "".join(f"many-{number},Text\n" for number in range(1000))
    (server.home / "many.csv").write_text("name,content\n" + table)
    server.dittybag("import", str(server.home / "many.csv"), "-p", "default")
    expect(_newest_entry(page)).to_contain_text("created 1,000 prompts")
    expect(_entries(page)).to_have_count(shown + 1)
    _toggle(_newest_entry(page))
    changes = _newest_entry(page).locator(".batch-changes li")
    expect(changes.last).to_have_text("and 950 more changes")
    expect(changes.first).to_have_text("Created prompt many-0")
    page.goto(f"{server.origin}{FEED}?text=many-99")
    expect(page.locator(".change-text")).to_contain_text(["created 1,000 prompts"])


def test_the_feed_is_filtered_by_actor_kind_project_and_name(
    server: WebServerProcess, windows: BrowserWindows, create_prompt: Callable[[str], Any]
) -> None:
    create_prompt("narrow-one")
    server.call("create_prompt", name="narrow-two", content="x", client="zed")
    page = windows.open(server, FEED)
    page.get_by_label("Who").select_option("zed")
    page.wait_for_url(re.compile(r"actor=zed"))
    expect(page.locator(".change-text")).to_have_text(["zed created prompt narrow-two"])
    page.get_by_role("link", name="Clear filters").click()
    page.get_by_label("Filter activity").fill("NARROW-")
    expect(_entries(page)).to_have_count(2)
    page.get_by_label("What").select_option("Tasks")
    expect(page.get_by_text("No matching changes")).to_be_visible()
    page.get_by_role("link", name="Clear filters").click()
    # The sample resources are in another project.
    assert page.get_by_role("link", name="api-docs").count() == 0
    page.get_by_label("Where").select_option("All projects")
    page.wait_for_url(re.compile(r"where=all"))
    page.get_by_label("What").select_option("Resources")
    link = page.get_by_role("link", name="api-docs")
    expect(link).to_be_visible()
    assert link.get_attribute("href") == f"/p/{PROJECT}/resources/view?uri=file%3A%2F%2F%2Fdocs%2Fapi.md"


def test_an_undo_shows_its_effect_and_can_itself_be_undone(
    server: WebServerProcess, windows: BrowserWindows, create_prompt: Callable[[str], Any]
) -> None:
    create_prompt("precious")
    server.call("update_prompt", name="precious", content="Spoilt")
    server.call("update_prompt", name="precious", content="Spoilt again", client="cursor")

    def content() -> Any:
        return server.call("use_prompt", ref="precious")["messages"][0]["text"]

    page = windows.open(server, f"{FEED}?text=precious")
    # Another change would be overwritten, so its effects are shown first.
    _entries(page).nth(1).get_by_role("button", name="Undo").click()
    expect(page.locator("#undo")).to_contain_text("Revert prompt precious")
    expect(page.locator("#undo .warning")).to_contain_text("cursor changed prompt precious")
    # Another client changes the prompt first.
    server.call("update_prompt", name="precious", content="Once more", client="zed")
    page.get_by_role("button", name="Undo and overwrite").click()
    expect(page.locator(".note")).to_contain_text("changed again in the meantime")
    expect(page.locator("#undo .warning")).to_contain_text("zed changed prompt precious")
    assert content() == "Once more"
    page.get_by_role("button", name="Undo and overwrite").click()
    expect(page.locator(".note")).to_have_text("Reverted “precious”")
    expect(_newest_entry(page)).to_contain_text("via web reverted prompt precious")
    assert content() == "One\nTwo\nThree"
    page.get_by_role("button", name="Redo").click()
    expect(page.get_by_role("button", name="Undo", exact=True)).to_be_visible()
    assert content() == "Once more"


def test_a_batch_is_undone_as_a_whole(server: WebServerProcess, windows: BrowserWindows) -> None:
    server.dittybag("project", "create", "doomed")
    server.dittybag("prompt", "add", "leaf", "-p", "doomed", stdin="x")
    server.dittybag("project", "delete", "doomed")
    page = windows.open(server, f"{FEED}?where=all")
    expect(_newest_entry(page)).to_contain_text("deleted 1 project and 1 prompt")
    _newest_entry(page).get_by_role("link", name="deleted 1 project").click()
    expect(page.locator("#undo")).to_contain_text("2 changes were made in one batch")
    assert page.locator("#undo li").all_inner_texts() == [
        "Restore project doomed",
        "Restore prompt leaf",
    ]
    # Nothing else would be overwritten, so the feed undoes it at once.
    page.go_back()
    _newest_entry(page).get_by_role("button", name="Undo").click()
    expect(page.locator(".note")).to_have_text("2 items restored to how they were")
    page.goto(f"{server.origin}/p/doomed/prompts")
    expect(page.get_by_role("link", name="leaf")).to_be_visible()
    page.goto(f"{server.origin}{FEED}/1")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("cannot be renamed or deleted")
    windows.problems.clear()


def test_a_change_is_shown_field_by_field(server: WebServerProcess, windows: BrowserWindows) -> None:
    notes = "<img src=x onerror=alert(1)>"
    server.dittybag("task", "edit", "1", "--priority", "2", "--notes", notes, "--due", "2026-12-24T14:00")
    # The task belongs to the project.
    page = windows.open(server, f"/p/{PROJECT}/activity?kind=task")
    expect(_newest_entry(page)).to_contain_text("changed task Hash passwords with argon2")
    _toggle(_newest_entry(page))
    parts = _newest_entry(page).locator(".part-name")
    expect(parts).to_have_text(["Priority", "Due", "Notes"])
    expect(_newest_entry(page).locator("table.diff").nth(1)).to_contain_text("24 Dec 2026, 14:00")
    expect(_newest_entry(page).locator("table.diff").last).to_contain_text("<img src=x onerror=alert(1)>")
    page.goto(f"{server.origin}/p/{PROJECT}/activity?text=logo")
    _toggle(_newest_entry(page))
    expect(_newest_entry(page).locator("table.diff").last).to_contain_text("bytes with the SHA-256")


async def _create_accounts(workspace: Workspace) -> dict[str, str]:
    """Create Anna and Bert, and return their tokens; only Bert is a member of the project `secret`."""
    secret = await workspace.projects.create("secret", actor="demo")
    await workspace.prompts.create(Caller(secret.id, "demo"), name="hidden", content="x")
    default = await workspace.projects.find("default")
    await workspace.prompts.create(Caller(default.id, "demo"), name="shared", content="x")
    accounts = workspace.accounts
    tokens = {}
    for name in ("anna", "bert"):
        await accounts.add_user(name, actor="demo")
        tokens[name] = (await accounts.create_token(name, "write", actor="demo")).text
    await accounts.share("secret", "bert", "read", actor="demo")
    return tokens


def test_a_token_shows_only_visible_projects_and_own_tasks(
    tmp_path_factory: pytest.TempPathFactory, windows: BrowserWindows
) -> None:
    home = tmp_path_factory.mktemp("tokens")
    # Playwright already runs an event loop in this thread.
    with ThreadPoolExecutor(1) as executor:
        chosen = settings(environment_with_home(str(home)))
        tokens = executor.submit(with_workspace, chosen, _create_accounts).result()
    with WebServerProcess(home, "--auth", "tokens") as server:
        server.call("task_create", token=tokens["bert"], title="Bert's task")
        server.call("task_create", token=tokens["anna"], title="Anna's task")
        page = windows.open(server, "/", signed_in=False)
        page.get_by_label("Token").fill(tokens["anna"])
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/p/default")
        page.goto(f"{server.origin}{FEED}?where=all")
        text = page.locator("#feed").inner_text()
        assert "Anna's task" in text
        assert "shared" in text
        assert "Bert's task" not in text
        assert "hidden" not in text
        assert page.get_by_label("Where").count() == 0
        page.locator("#projects-menu summary").click()
        expect(page.locator("#project-list a")).to_have_count(1)
        assert page.get_by_label("New project").count() == 0
        for path in ("/p/secret", "/p/secret/activity", f"{FEED}/3"):
            response = page.goto(server.origin + path)
            assert response is not None
            assert response.status == 404, path
        windows.problems.clear()
