"""Lists with several selected rows, and the buttons that rows show on hover."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.cli.cli_runner import data, dittybag
from tests.e2e.conftest import SCREENS, BrowserWindows, PageCheck, Screen
from tests.e2e.web_server_process import WebServerProcess


@pytest.fixture(scope="module")
def list_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServerProcess]:
    with WebServerProcess(tmp_path_factory.mktemp("home")) as server:
        server.dittybag("project", "create", "garden")
        for number in range(1, 5):
            server.call("create_prompt", name=f"p{number}", content=f"Text {number}\n")
            server.call("create_resource", name=f"r{number}", uri=f"file:///r{number}", content="Words")
            server.call("task_create", title=f"Task {number}")
        yield server


def names(server: WebServerProcess, kind: str, project: str = "default") -> list[str]:
    listed = data(dittybag(server.home, kind, "list", "--project", project, "--json"))[f"{kind}s"]
    return sorted(str(item["name"]) for item in listed)


def bar(page: Page) -> Locator:
    return page.locator("#selection")


def boxes(page: Page) -> Locator:
    return page.locator("[data-select]")


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def notice(page: Page) -> Locator:
    return page.locator(".toast")


def test_prompts_are_selected_tagged_moved_exported_and_deleted_by_keyboard(
    list_server: WebServerProcess, windows: BrowserWindows, tmp_path: Path
) -> None:
    page = windows.open(list_server, "/p/default/prompts?order=name")
    expect(bar(page)).to_be_hidden()
    press(page, "j", "x", "j", "Shift+J")
    expect(boxes(page).and_(page.locator(":checked"))).to_have_count(3)
    expect(bar(page)).to_contain_text("3 selected")
    press(page, "x", "k")
    expect(bar(page)).to_contain_text("2 selected")
    # The selection survives a live update.
    list_server.call("update_prompt", name="p4", description="Changed by an agent")
    expect(page.get_by_text("Changed by an agent")).to_be_visible()
    expect(bar(page)).to_contain_text("2 selected")
    press(page, "t")
    page.keyboard.type("Fresh")
    press(page, "Enter")
    expect(notice(page)).to_contain_text("2 prompts tagged “Fresh”")
    expect(page.locator("li .tag", has_text="fresh")).to_have_count(2)
    expect(bar(page)).to_be_hidden()
    press(page, "u")
    expect(page.locator("li .tag", has_text="fresh")).to_have_count(0)
    # Redo, and undo again.
    press(page, "u")
    expect(page.locator("li .tag", has_text="fresh")).to_have_count(2)
    press(page, "a")
    expect(bar(page)).to_contain_text("4 selected")
    press(page, "Escape")
    expect(bar(page)).to_be_hidden()
    boxes(page).nth(0).check()
    boxes(page).nth(2).click(modifiers=["Shift"])
    with page.expect_download() as download:
        bar(page).get_by_role("button", name="Export").click()
    file = tmp_path / "prompts.json"
    download.value.save_as(file)
    assert [item["name"] for item in msgspec.json.decode(file.read_bytes())["prompts"]] == ["p1", "p2", "p3"]
    (tmp_path / "other").mkdir()
    dittybag(tmp_path / "other", "import", str(file))
    assert data(dittybag(tmp_path / "other", "prompt", "show", "p2", "--json"))["content"] == "Text 2\n"
    press(page, "m")
    page.keyboard.type("garden")
    press(page, "Enter")
    expect(notice(page)).to_contain_text("3 prompts moved to garden")
    assert (names(list_server, "prompt"), names(list_server, "prompt", "garden")) == (
        ["p4"],
        ["p1", "p2", "p3"],
    )
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("[data-item]")).to_have_count(4)
    assert names(list_server, "prompt", "garden") == []
    press(page, "a", "d")
    expect(notice(page)).to_contain_text("4 prompts deleted")
    expect(page.get_by_text("No prompts yet")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("[data-item]")).to_have_count(4)
    # e edits the focused row, and c creates one.
    press(page, "j", "e")
    page.wait_for_url("**/edit")
    page.goto(f"{list_server.origin}/p/default/prompts")
    press(page, "c")
    page.wait_for_url("**/prompts/new")


def test_tasks_are_completed_prioritised_moved_and_deleted_together(
    list_server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(list_server, "/p/default/tasks?view=list&sort=newest")
    press(page, "j", "x", "Shift+J", "5")
    expect(notice(page)).to_contain_text("2 tasks with priority 5")
    expect(page.get_by_title("Priority 5")).to_have_count(2)
    press(page, "j", "x", "j", "x", "c")
    expect(notice(page)).to_contain_text("2 tasks completed")
    expect(page.locator("[data-item]")).to_have_count(2)
    press(page, "u")
    expect(page.locator("[data-item]")).to_have_count(4)
    press(page, "a", "m")
    page.keyboard.type("garden")
    press(page, "Enter")
    expect(notice(page)).to_contain_text("4 tasks moved to garden")
    moved = list_server.call("task_search", query="Task")["tasks"]
    assert [task["project"] for task in moved] == ["garden"] * 4
    press(page, "a", "d")
    expect(page.locator("[data-item]")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("[data-item]")).to_have_count(4)
    # A refusal changes nothing, and keeps the selection.
    press(page, "a", "m")
    page.keyboard.type("nowhere")
    press(page, "Enter")
    expect(page.get_by_role("alert")).to_contain_text("nowhere")
    expect(bar(page)).to_contain_text("4 selected")
    windows.problems.clear()
    # One row: claim it, copy it, open it.
    title = page.get_by_role("link", name="Task 3", exact=True)
    press(page, "Escape")
    title.focus()
    press(page, "i")
    expect(notice(page).filter(has_text="‘Task 3’ is in progress now")).to_be_visible()
    # The row is updated after the message.
    expect(page.locator('[formaction$="/take-away"]')).to_have_count(1)
    title.focus()
    press(page, "i")
    expect(notice(page).filter(has_text="‘Task 3’ is to do again")).to_be_visible()


@pytest.mark.parametrize(("menu", "field"), [("Tag", "Tag to add or remove"), ("Move", "Move to")])
def test_typing_after_a_click_on_a_menu_goes_into_its_field(
    list_server: WebServerProcess, windows: BrowserWindows, menu: str, field: str
) -> None:
    page = windows.open(list_server, "/p/default/prompts?order=name")
    boxes(page).nth(0).check()
    boxes(page).nth(1).check()
    bar(page).get_by_text(menu, exact=True).first.click()
    expect(page.get_by_label(field)).to_be_focused()
    # Among these letters are the keys that delete, move, tag, edit and undo.
    page.keyboard.type("debug items")
    expect(page.get_by_label(field)).to_have_value("debug items")
    expect(bar(page)).to_contain_text("2 selected")
    assert names(list_server, "prompt") == ["p1", "p2", "p3", "p4"]


def test_keys_do_nothing_while_a_menu_is_open(list_server: WebServerProcess, windows: BrowserWindows) -> None:
    page = windows.open(list_server, "/p/default/tasks?view=list&sort=newest")
    boxes(page).nth(0).check()
    for summary in (bar(page).get_by_text("Priority", exact=True), page.locator("#projects-menu > summary")):
        summary.click()
        expect(page.locator("details.menu[open]")).to_have_count(1)
        press(page, "c", "d", "g", "h")
        expect(bar(page)).to_contain_text("1 selected")
        press(page, "Escape")
        expect(page.locator("details.menu[open]")).to_have_count(0)
    assert page.url.endswith("/tasks?view=list&sort=newest")
    expect(boxes(page)).to_have_count(4)
    press(page, "Escape")
    expect(bar(page)).to_be_hidden()


def test_rows_copy_what_people_paste(list_server: WebServerProcess, windows: BrowserWindows) -> None:
    page = windows.open(list_server, "/p/default/resources?sort=name", own=True)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for path, expected in (
        ("resources?sort=name", "file:///r1"),
        ("prompts?order=name", "Text 1\n"),
        ("tasks?view=list&text=Task+2", "task:2 Task 2"),
    ):
        page.goto(f"{list_server.origin}/p/default/{path}")
        row = page.locator("[data-list] :is(li, tr):has([data-item])").first
        row.hover()
        row.locator(".dots").click()
        button = row.locator("[data-copy-text], [data-copy-from]")
        button.click()
        expect(button).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == expected
        page.evaluate("navigator.clipboard.writeText('')")
        row.get_by_role("button", name="Close").click()
        row.locator("[data-item]").focus()
        press(page, "y")
        page.wait_for_function("async text => await navigator.clipboard.readText() === text", arg=expected)


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_the_bar_of_the_selection_is_accessible_on_every_screen(
    list_server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck, screen: Screen
) -> None:
    page = windows.open(list_server, "/p/default/resources", screen)
    boxes(page).first.check()
    expect(bar(page)).to_be_visible()
    bar(page).get_by_text("Move", exact=True).first.click()
    expect(page.get_by_label("Move to")).to_be_visible()
    check_page(page, f"selection-{screen.name}")
    page.get_by_label("Move to").fill("garden")
    page.get_by_label("Move to").press("Enter")
    expect(notice(page)).to_contain_text("1 resource moved to garden")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("[data-item]")).to_have_count(4)
    page.goto(f"{list_server.origin}/p/default/tasks")
    boxes(page).first.check()
    check_page(page, f"selected-tasks-{screen.name}")
