"""The task pages, used with a mouse, a keyboard and a touch screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.conftest import SCREENS, BrowserWindows, PageCheck, Screen
from tests.e2e.web_server_process import WebServerProcess

PHONE = next(screen for screen in SCREENS if screen.width < 500)
TASKS = "/p/default/tasks"
BY_PRIORITY = TASKS + "?by=priority"
LETTER_COUNT = 53


def day(offset: int) -> str:
    return (datetime.now().astimezone().date() + timedelta(offset)).isoformat()


@pytest.fixture(scope="module")
def task_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServerProcess]:
    """A server with open, overdue and completed tasks."""
    with WebServerProcess(tmp_path_factory.mktemp("home")) as server:
        for fields in _task_fields():
            task = server.call("task_create", **fields)
            if fields["title"].startswith("Done"):
                server.call("task_complete", task_id=task["id"])
        yield server


def _task_fields() -> Iterator[dict[str, Any]]:
    yield {
        "title": "Renew the certificate",
        "priority": 5,
        "project": "ops",
        "energy": "light",
        "due_date": day(-3),
    }
    yield {
        "title": "Write the launch post",
        "priority": 4,
        "project": "website",
        "energy": "deep",
        "due_date": day(0),
        "notes": "Three **short** paragraphs.\n\n<script>document.title = 'owned'</script>",
    }
    yield {"title": "Tidy the backlog", "priority": 2, "due_date": day(4)}
    yield {"title": "Learn to juggle", "priority": 1, "due_date": day(20), "time_estimate": "1 month"}
    yield {"title": "Done: pay the bill", "project": "ops"}
    yield {"title": "Done: book a room", "priority": 4, "project": "website"}
    for number in range(LETTER_COUNT):
        yield {"title": f"Answer letter {number}", "project": "letters", "energy": "light"}


def column(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=re.compile(f"^{re.escape(name)}"))


def card(container: Page | Locator, title: str) -> Locator:
    page = container if isinstance(container, Page) else container.page
    return container.locator("[data-task]").filter(has=page.get_by_role("link", name=title, exact=True))


def choose(page: Page, name: str, option: str) -> None:
    """Select a filter option, and wait until the address has it."""
    with page.expect_navigation():
        page.get_by_role("combobox", name=name, exact=True).select_option(option)


def title_of(card: Locator) -> Locator:
    return card.locator("[data-item]")


def find_task(server: WebServerProcess, title: str) -> dict[str, Any]:
    """Return the only task that matches, as agents see it."""
    [task] = server.call("task_search", query=title)["tasks"]
    assert isinstance(task, dict)
    return task


def add_task(server: WebServerProcess, title: str, **fields: Any) -> int:
    task_id = server.call("task_create", title=title, **fields)["id"]
    assert isinstance(task_id, int)
    return task_id


def status_message(page: Page) -> Locator:
    return page.get_by_role("status").locator("div", has=page.get_by_role("button"))


def wait_until_live(page: Page) -> None:
    """Wait until live updates are on."""
    expect(page.locator("#live-state")).to_have_attribute("data-state", "on")


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_task_pages_are_accessible_on_every_screen(
    task_server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck, screen: Screen
) -> None:
    page = windows.open(task_server, TASKS, screen)
    page.get_by_label("New task").press_sequentially("Fix login !5 @work due fri")
    expect(page.locator("#quick-add-preview")).to_contain_text("!5 Critical")
    check_page(page, f"board-{screen.name}")
    for name, query in (
        ("done", "?view=list&status=done"),
        ("nothing", "?text=nowhere&by=project"),
    ):
        page.goto(task_server.origin + TASKS + query)
        check_page(page, f"{name}-{screen.name}")
    page.goto(f"{task_server.origin}{TASKS}/{find_task(task_server, 'Write the launch post')['id']}")
    assert page.title() == "Write the launch post · Dittybag"
    expect(page.locator(".prose strong")).to_have_text("short")
    check_page(page, f"task-{screen.name}")


def test_quick_add_creates_a_task_and_undo_deletes_it(
    task_server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(task_server, BY_PRIORITY)
    page.keyboard.press("n")
    page.keyboard.type('Call the bank !5 @"Big money" due tomorrow')
    preview = page.locator("#quick-add-preview")
    expect(preview).to_contain_text("Call the bank")
    for words in ("!5 Critical", "Big money", f"Due tomorrow · {day(1)}"):
        expect(preview).to_contain_text(words)
    page.keyboard.press("Enter")
    new = card(column(page, "5 · Critical"), "Call the bank")
    expect(new).to_contain_text("Due tomorrow")
    expect(page.get_by_label("New task")).to_have_value("")
    task = find_task(task_server, "Call the bank")
    assert [task[name] for name in ("priority", "project", "due_date")] == [5, "Big money", day(1)]
    page.get_by_label("New task").blur()
    page.keyboard.press("u")
    expect(new).to_have_count(0)
    assert task_server.call("task_search", query="Call the bank")["tasks"] == []
    page.get_by_role("button", name="Redo").click()
    expect(new).to_be_visible()
    # Invalid input is not saved and stays in the field.
    page.get_by_label("New task").fill("x" * 501)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(preview).to_contain_text("Title must be between 1 and 500 characters")
    expect(page.get_by_label("New task")).to_have_value("x" * 501)
    windows.problems.clear()


def test_dragging_a_card_changes_its_task(task_server: WebServerProcess, windows: BrowserWindows) -> None:
    task_id = add_task(task_server, "Drag me", priority=2)
    page = windows.open(task_server, BY_PRIORITY)
    card(page, "Drag me").drag_to(column(page, "4 · High"))
    expect(card(column(page, "4 · High"), "Drag me")).to_be_visible()
    expect(status_message(page)).to_contain_text("‘Drag me’ now has priority 4")
    assert find_task(task_server, "Drag me")["priority"] == 4
    page.get_by_role("button", name="Undo").click()
    expect(card(column(page, "2 · Low"), "Drag me")).to_be_visible()
    choose(page, "Columns", "By project")
    card(column(page, "No project"), "Drag me").drag_to(column(page, "ops"))
    expect(card(column(page, "ops"), "Drag me")).to_be_visible()
    assert task_server.call("task_get", task_id=task_id)["project"] == "ops"
    # A late undo does not revert the changes of others.
    task_server.call("task_update", task_id=task_id, project="elsewhere")
    expect(card(column(page, "elsewhere"), "Drag me")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#toast")).to_contain_text("changed again in the meantime")
    assert task_server.call("task_get", task_id=task_id)["project"] == "elsewhere"
    windows.problems.clear()


def test_every_action_has_a_keyboard_shortcut(task_server: WebServerProcess, windows: BrowserWindows) -> None:
    for name in ("Key one", "Key two", "Key three"):
        add_task(task_server, name, priority=1, notes="keys")
    page = windows.open(task_server, BY_PRIORITY + "&text=keys")
    page.keyboard.press("j")
    expect(title_of(card(page, "Key one"))).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("4")
    expect(card(column(page, "4 · High"), "Key two")).to_be_visible()
    expect(title_of(card(page, "Key two"))).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(title_of(card(page, "Key one"))).to_be_focused()
    page.keyboard.press("c")
    expect(card(page, "Key one")).to_have_count(0)
    expect(title_of(card(page, "Key three"))).to_be_focused()
    assert find_task(task_server, "Key one")["completed"] is True
    page.keyboard.press("m")
    expect(page.get_by_role("dialog", name="Key three")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    expect(card(page, "Key one")).to_be_visible()
    title_of(card(page, "Key three")).focus()
    page.keyboard.press("d")
    expect(card(page, "Key three")).to_have_count(0)
    page.keyboard.press("u")
    expect(card(page, "Key three")).to_be_visible()
    page.keyboard.press("?")
    shortcuts = page.get_by_role("dialog", name="Keyboard shortcuts")
    for words in ("Complete", "Set the priority", "Move", "Delete", "Undo", "Next and previous column"):
        expect(shortcuts).to_contain_text(words)
    page.keyboard.press("Escape")
    title_of(card(page, "Key three")).focus()
    page.keyboard.press("e")
    expect(page.get_by_role("heading", name="Key three")).to_be_visible()
    # Cancelling returns to the filtered board.
    page.get_by_role("link", name="Cancel").click()
    expect(title_of(card(page, "Key two"))).to_be_visible()
    assert page.url.endswith("&text=keys")


def test_all_fields_are_edited_and_errors_are_shown_at_their_fields(
    task_server: WebServerProcess, windows: BrowserWindows
) -> None:
    task_id = add_task(task_server, "Rough", notes="old", project="garden")
    page = windows.open(task_server, f"{TASKS}/{task_id}")
    page.get_by_label("Title").fill("Smooth")
    page.get_by_label("Project").select_option("garden")
    page.get_by_label("Priority").select_option("1 · Someday")
    page.locator("main").get_by_text("More", exact=True).click()
    page.get_by_label("Energy").select_option("Deep")
    page.get_by_label("Time estimate").fill("½ day")
    page.get_by_label("Due", exact=True).fill("the day after")
    page.get_by_role("textbox", name="Notes").fill("\nTwo\nlines")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Due must be a date")
    expect(page.get_by_label("Due", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Title")).to_have_value("Smooth")
    windows.problems.clear()
    page.get_by_label("Due", exact=True).fill("in 3 days")
    page.get_by_role("button", name="Save").click()
    expect(status_message(page)).to_contain_text("Saved ‘Smooth’")
    task = task_server.call("task_get", task_id=task_id)
    assert {name: task[name] for name in _FIELDS} == {
        "title": "Smooth",
        "project": "garden",
        "priority": 1,
        "energy": "deep",
        "time_estimate": "½ day",
        "due_date": day(3),
        "notes": "\nTwo\nlines",
    }
    page.goto(f"{task_server.origin}{TASKS}/{task_id}")
    page.get_by_label("Pick a date").fill(day(9))
    expect(page.get_by_label("Due", exact=True)).to_have_value(day(9))
    page.get_by_label("Project").select_option("None")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/tasks")
    task = task_server.call("task_get", task_id=task_id)
    assert (task["due_date"], task["project"], task["notes"]) == (day(9), None, "\nTwo\nlines")


_FIELDS = ("title", "project", "priority", "energy", "time_estimate", "due_date", "notes")


def test_concurrent_changes_by_an_agent_are_not_overwritten(
    task_server: WebServerProcess, windows: BrowserWindows
) -> None:
    task_id = add_task(task_server, "Shared")
    page = windows.open(task_server, f"{TASKS}/{task_id}")
    wait_until_live(page)
    page.get_by_role("textbox", name="Notes").fill("Mine")
    task_server.call("task_update", task_id=task_id, notes="Theirs")
    expect(page.get_by_text("claude-code changed this task while you were editing it")).to_be_visible()
    expect(page.get_by_role("textbox", name="Notes")).to_have_value("Mine")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="claude-code saved first")).to_be_visible()
    expect(page.get_by_role("region", name="Notes").locator(".removed")).to_have_text("removed: Theirs")
    expect(page.get_by_role("region", name="Notes").locator(".added")).to_have_text("added: Mine")
    assert task_server.call("task_get", task_id=task_id)["notes"] == "Theirs"
    page.get_by_role("button", name="Overwrite with my version").first.click()
    expect(status_message(page)).to_be_visible()
    assert task_server.call("task_get", task_id=task_id)["notes"] == "Mine"
    # Unsaved input survives the deletion of the task.
    page.goto(f"{task_server.origin}{TASKS}/{task_id}")
    page.get_by_role("textbox", name="Notes").fill("Even more")
    task_server.call("task_delete", task_id=task_id)
    expect(page.get_by_text("claude-code deleted this task while you were editing it")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Restore task").click()
    expect(status_message(page)).to_be_visible()
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/tasks")
    assert task_server.call("task_get", task_id=task_id)["notes"] == "Even more"
    windows.problems.clear()


def test_a_deletion_is_undone(task_server: WebServerProcess, windows: BrowserWindows) -> None:
    task_id = add_task(task_server, "Delete me")
    page = windows.open(task_server, f"{TASKS}/{task_id}")
    page.get_by_role("button", name="Delete").click()
    expect(status_message(page)).to_contain_text("Deleted ‘Delete me’")
    assert "notice" not in page.url
    page.get_by_role("button", name="Undo").click()
    expect(status_message(page)).to_contain_text("Restored “Delete me”")
    assert task_server.call("task_get", task_id=task_id)["title"] == "Delete me"


def test_filters_are_in_the_url_and_lists_are_paged(
    task_server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(task_server, BY_PRIORITY + "&project=letters")
    letters = column(page, "3 · Normal")
    expect(letters.locator("[data-task]")).to_have_count(20)
    letters.get_by_role("link", name=f"and {LETTER_COUNT - 20} more").click()
    page.wait_for_url("**view=list**")
    expect(page.locator("[data-task]")).to_have_count(50)
    page.get_by_role("link", name="Next").click()
    expect(page.locator("[data-task]")).to_have_count(LETTER_COUNT - 50)
    page.goto(task_server.origin + BY_PRIORITY)
    choose(page, "Due", "Overdue")
    expect(page.locator("[data-task]")).to_have_count(1)
    expect(card(page, "Renew the certificate")).to_contain_text("Overdue: 3 days ago")
    choose(page, "Due", "Due within a week")
    expect(card(page, "Write the launch post")).to_contain_text("Due today")
    expect(card(page, "Tidy the backlog")).to_be_visible()
    expect(card(page, "Learn to juggle")).to_have_count(0)
    page.get_by_role("link", name="Clear").click()
    expect(card(page, "Learn to juggle")).to_contain_text("in 20 days")
    choose(page, "Status", "Done")
    card(page, "Done: pay the bill").get_by_role("button", name="Reopen").click()
    expect(status_message(page)).to_contain_text("Reopened ‘Done: pay the bill’")
    page.get_by_role("button", name="Undo").click()
    expect(card(page, "Done: pay the bill")).to_be_visible()
    assert find_task(task_server, "pay the bill")["completed"] is True


def test_the_essentials_work_without_javascript(
    task_server: WebServerProcess, windows: BrowserWindows, browser: Browser
) -> None:
    cookies = windows.open(task_server, TASKS).context.cookies()
    context = browser.new_context(java_script_enabled=False)
    context.add_cookies(cookies)  # type: ignore[arg-type]  # Playwright has two types for cookies
    page = context.new_page()
    page.goto(f"{task_server.origin}{BY_PRIORITY}&text=scripts")
    page.get_by_label("New task").fill("No scripts !4 due today")
    page.get_by_role("button", name="Add", exact=True).click()
    assert page.get_by_label("Filter tasks").input_value() == "scripts"
    card(column(page, "4 · High"), "No scripts").get_by_role("button", name="Complete").click()
    assert find_task(task_server, "No scripts")["completed"] is True
    page.get_by_role("button", name="Undo").click()
    assert find_task(task_server, "No scripts")["completed"] is False
    context.close()


def test_a_read_only_server_offers_no_edits(task_server: WebServerProcess, windows: BrowserWindows) -> None:
    with WebServerProcess(task_server.home, "--read-only") as server:
        page = windows.open(server, TASKS + "?text=juggle")
        expect(card(page, "Learn to juggle")).to_be_visible()
        assert page.locator("main button:not([data-copy-text])").count() == 0
        title_of(card(page, "Learn to juggle")).focus()
        page.keyboard.press("x")
        page.keyboard.press("e")
        expect(page.get_by_role("heading", name="Learn to juggle")).to_be_visible()
        assert page.locator("main button").count() == 0
    assert find_task(task_server, "Learn to juggle")["completed"] is False


def test_a_filter_finds_tasks_without_a_project_and_words_in_any_order(
    task_server: WebServerProcess, windows: BrowserWindows
) -> None:
    task_server.call("task_create", title="R\u00e9server un caf\u00e9", notes="Demain matin")
    task_server.call("task_create", title="Cafe\u0301 r\u00e9server", project="ops")
    page = windows.open(task_server, TASKS + "?view=list&text=cafe++RESERVER")
    expect(page.locator("[data-item]")).to_have_count(2)
    page.get_by_label("Project").focus()
    expect(page.locator("#project-suggestions option").first).to_have_attribute("value", "(no project)")
    page.get_by_label("Project").fill("(no project)")
    page.get_by_label("Project").press("Enter")
    expect(page.locator("[data-item]")).to_have_text(["R\u00e9server un caf\u00e9"])
