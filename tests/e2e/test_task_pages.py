"""The pages of tasks, as somebody at a desk and somebody with a phone use them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Locator, Page, expect

from tests.e2e.conftest import LOOKS, Checked, Look, Visits
from tests.e2e.web_server_process import Served

PHONE = next(look for look in LOOKS if look.width < 500)
TASKS = "/p/default/tasks"
LETTERS = 53


def day(distance: int) -> str:
    return (datetime.now().astimezone().date() + timedelta(distance)).isoformat()


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with tasks of all kinds."""
    with Served(tmp_path_factory.mktemp("home")) as served:
        for fields in _tasks():
            added = served.call("task_create", **fields)
            if fields["title"].startswith("Done"):
                served.call("task_complete", task_id=added["id"])
        yield served


def _tasks() -> Iterator[dict[str, Any]]:
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
    for number in range(LETTERS):
        yield {"title": f"Answer letter {number}", "project": "letters", "energy": "light"}


def column(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=re.compile(f"^{re.escape(name)}"))


def card(place: Page | Locator, title: str) -> Locator:
    page = place if isinstance(place, Page) else place.page
    return place.locator("[data-task]").filter(has=page.get_by_role("link", name=title, exact=True))


def choose(page: Page, name: str, option: str) -> None:
    """Choose what to show; the page is loaded again."""
    with page.expect_navigation():
        page.get_by_role("combobox", name=name, exact=True).select_option(option)


def title_of(card: Locator) -> Locator:
    return card.locator("[data-item]")


def stored(served: Served, title: str) -> dict[str, Any]:
    """A task as agents see it; there must be one."""
    [found] = served.call("task_search", query=title)["tasks"]
    assert isinstance(found, dict)
    return found


def added(served: Served, title: str, **fields: Any) -> int:
    number = served.call("task_create", title=title, **fields)["id"]
    assert isinstance(number, int)
    return number


def said(page: Page) -> Locator:
    return page.get_by_role("status").locator("div", has=page.get_by_role("button"))


def is_live(page: Page) -> None:
    """Wait until news come in."""
    expect(page.locator("#live-state")).to_have_attribute("data-state", "on")


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
def test_every_view_is_good_to_look_at(board: Served, visits: Visits, checked: Checked, look: Look) -> None:
    page = visits.open(board, TASKS, look)
    page.get_by_label("New task").press_sequentially("Fix login !5 @work #deep ~2hr due fri")
    expect(page.locator("#quick-add-preview")).to_contain_text("!5 Critical")
    checked(page, f"board-{look.name}")
    for name, query in (
        ("done", "?view=list&done=1"),
        ("stats", "?view=stats"),
        ("nothing", "?text=nowhere&by=project"),
    ):
        page.goto(board.origin + TASKS + query)
        checked(page, f"{name}-{look.name}")
    page.goto(f"{board.origin}{TASKS}/{stored(board, 'Write the launch post')['id']}")
    assert page.title() == "Write the launch post · Dittybag"
    expect(page.locator(".prose strong")).to_have_text("short")
    checked(page, f"task-{look.name}")


def test_a_line_becomes_a_task_and_undo_takes_it_away(board: Served, visits: Visits) -> None:
    page = visits.open(board, TASKS)
    page.keyboard.press("n")
    page.keyboard.type('Call the bank !5 @"Big money" due tomorrow #light ~15min')
    understood = page.locator("#quick-add-preview")
    expect(understood).to_contain_text("Call the bank")
    for words in ("!5 Critical", "Big money", f"Due tomorrow · {day(1)}", "light", "15min"):
        expect(understood).to_contain_text(words)
    page.keyboard.press("Enter")
    new = card(column(page, "5 · Critical"), "Call the bank")
    expect(new).to_contain_text("Due tomorrow")
    expect(page.get_by_label("New task")).to_have_value("")
    task = stored(board, "Call the bank")
    assert [task[name] for name in ("priority", "project", "energy", "time_estimate", "due_date")] == [
        5,
        "Big money",
        "light",
        "15min",
        day(1),
    ]
    page.get_by_label("New task").blur()
    page.keyboard.press("u")
    expect(new).to_have_count(0)
    assert board.call("task_search", query="Call the bank")["tasks"] == []
    page.get_by_role("button", name="Redo").click()
    expect(new).to_be_visible()
    # What cannot be a task is not sent away, and what was typed stays.
    page.get_by_label("New task").fill("x" * 501)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(understood).to_contain_text("Title must be between 1 and 500 characters")
    expect(page.get_by_label("New task")).to_have_value("x" * 501)
    visits.problems.clear()


def test_what_an_agent_adds_is_there_within_a_second(board: Served, visits: Visits) -> None:
    pages = [visits.open(board, TASKS + query) for query in ("", "?view=list&sort=newest")]
    for page in pages:
        is_live(page)
        page.get_by_label("New task").fill("Half a thou")
    added(board, "From an agent <b>", priority=5)
    for page in pages:
        expect(card(page, "From an agent <b>")).to_be_visible(timeout=1000)
        expect(page.get_by_label("New task")).to_have_value("Half a thou")


def test_dragging_a_card_changes_its_task(board: Served, visits: Visits) -> None:
    number = added(board, "Drag me", priority=2)
    page = visits.open(board, TASKS)
    card(page, "Drag me").drag_to(column(page, "4 · High"))
    expect(card(column(page, "4 · High"), "Drag me")).to_be_visible()
    expect(said(page)).to_contain_text("‘Drag me’ now has priority 4")
    assert stored(board, "Drag me")["priority"] == 4
    page.get_by_role("button", name="Undo").click()
    expect(card(column(page, "2 · Low"), "Drag me")).to_be_visible()
    choose(page, "Columns", "By project")
    card(column(page, "No project"), "Drag me").drag_to(column(page, "ops"))
    expect(card(column(page, "ops"), "Drag me")).to_be_visible()
    assert board.call("task_get", task_id=number)["project"] == "ops"
    # Whoever undoes too late does not take back what others did.
    board.call("task_update", task_id=number, project="elsewhere")
    expect(card(column(page, "elsewhere"), "Drag me")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#task-notice")).to_contain_text("changed again in the meantime")
    assert board.call("task_get", task_id=number)["project"] == "elsewhere"
    visits.problems.clear()


def test_fingers_move_and_delete_by_a_menu(board: Served, visits: Visits) -> None:
    added(board, "Poke me", energy="medium")
    page = visits.open(board, TASKS + "?by=energy&text=Poke", PHONE)
    page.get_by_role("button", name="Move or delete Poke me").tap()
    menu = page.get_by_role("dialog", name="Poke me")
    expect(menu.get_by_role("button", name="Medium")).to_be_disabled()
    menu.get_by_role("button", name="Deep").tap()
    expect(card(column(page, "Deep"), "Poke me")).to_be_visible()
    assert stored(board, "Poke me")["energy"] == "deep"
    questions: list[str] = []

    def agree(dialog: Dialog) -> None:
        questions.append(dialog.message)
        dialog.accept()

    page.on("dialog", agree)
    page.get_by_role("button", name="Move or delete Poke me").tap()
    menu.get_by_role("button", name="Delete").tap()
    expect(card(page, "Poke me")).to_have_count(0)
    assert questions == ["Delete ‘Poke me’?"]
    page.get_by_role("button", name="Undo").tap()
    expect(card(column(page, "Deep"), "Poke me")).to_be_visible()


def test_keys_do_everything(board: Served, visits: Visits) -> None:
    for name in ("Key one", "Key two", "Key three"):
        added(board, name, priority=1, notes="keys")
    page = visits.open(board, TASKS + "?text=keys")
    page.keyboard.press("j")
    expect(title_of(card(page, "Key one"))).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("4")
    expect(card(column(page, "4 · High"), "Key two")).to_be_visible()
    expect(title_of(card(page, "Key two"))).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(title_of(card(page, "Key one"))).to_be_focused()
    page.keyboard.press("x")
    expect(card(page, "Key one")).to_have_count(0)
    expect(title_of(card(page, "Key three"))).to_be_focused()
    assert stored(board, "Key one")["completed"] is True
    page.keyboard.press("m")
    expect(page.get_by_role("dialog", name="Key three")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    expect(card(page, "Key one")).to_be_visible()
    title_of(card(page, "Key three")).focus()
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.keyboard.press("d")
    expect(card(page, "Key three")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text(
        "Complete or reopen the task"
    )
    page.keyboard.press("Escape")
    title_of(card(page, "Key three")).focus()
    page.keyboard.press("e")
    expect(page.get_by_role("heading", name="Key three")).to_be_visible()
    # And back to where it was.
    page.get_by_role("link", name="Cancel").click()
    expect(title_of(card(page, "Key two"))).to_be_visible()
    assert page.url.endswith("?text=keys")


def test_all_fields_are_edited_and_mistakes_are_shown_where_they_are(board: Served, visits: Visits) -> None:
    number = added(board, "Rough", notes="old")
    page = visits.open(board, f"{TASKS}/{number}")
    page.get_by_label("Title").fill("Smooth")
    page.get_by_label("Project").fill("garden")
    page.get_by_label("Priority").select_option("1 · Someday")
    page.get_by_label("Energy").select_option("Deep")
    page.get_by_label("Time estimate").fill("½ day")
    page.get_by_label("Due", exact=True).fill("the day after")
    page.get_by_role("textbox", name="Notes").fill("\nTwo\nlines")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Due must be a date")
    expect(page.get_by_label("Due", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Title")).to_have_value("Smooth")
    visits.problems.clear()
    page.get_by_label("Due", exact=True).fill("in 3 days")
    page.get_by_role("button", name="Save").click()
    expect(said(page)).to_contain_text("Saved ‘Smooth’")
    task = board.call("task_get", task_id=number)
    assert {name: task[name] for name in _FIELDS} == {
        "title": "Smooth",
        "project": "garden",
        "priority": 1,
        "energy": "deep",
        "time_estimate": "½ day",
        "due_date": day(3),
        "notes": "\nTwo\nlines",
    }
    page.goto(f"{board.origin}{TASKS}/{number}")
    page.get_by_label("Pick a date").fill(day(9))
    expect(page.get_by_label("Due", exact=True)).to_have_value(day(9))
    page.get_by_label("Project").fill("")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/tasks")
    task = board.call("task_get", task_id=number)
    assert (task["due_date"], task["project"], task["notes"]) == (day(9), None, "\nTwo\nlines")


_FIELDS = ("title", "project", "priority", "energy", "time_estimate", "due_date", "notes")


def test_nobody_overwrites_what_an_agent_has_changed_meanwhile(board: Served, visits: Visits) -> None:
    number = added(board, "Shared")
    page = visits.open(board, f"{TASKS}/{number}")
    is_live(page)
    page.get_by_role("textbox", name="Notes").fill("Mine")
    board.call("task_update", task_id=number, notes="Theirs")
    expect(page.get_by_text("This task was changed while you were editing it")).to_be_visible()
    expect(page.get_by_role("textbox", name="Notes")).to_have_value("Mine")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name="Notes")).to_have_text(re.compile(r"Notes\s*Theirs\s*Mine"))
    assert board.call("task_get", task_id=number)["notes"] == "Theirs"
    page.get_by_role("button", name="Overwrite with my version").click()
    expect(said(page)).to_be_visible()
    assert board.call("task_get", task_id=number)["notes"] == "Mine"
    # Nor is anything lost with a task that goes away.
    page.goto(f"{board.origin}{TASKS}/{number}")
    page.get_by_role("textbox", name="Notes").fill("Even more")
    board.call("task_delete", task_id=number)
    expect(page.get_by_text("This task was deleted while you were editing it")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Restore task").click()
    expect(said(page)).to_be_visible()
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/tasks")
    assert board.call("task_get", task_id=number)["notes"] == "Even more"
    visits.problems.clear()


def test_a_task_is_deleted_after_a_question_and_comes_back(board: Served, visits: Visits) -> None:
    number = added(board, "Delete me")
    page = visits.open(board, f"{TASKS}/{number}")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete").click()
    expect(said(page)).to_contain_text("Deleted ‘Delete me’")
    assert "notice" not in page.url
    page.get_by_role("button", name="Undo").click()
    expect(said(page)).to_contain_text("Restored ‘Delete me’")
    assert board.call("task_get", task_id=number)["title"] == "Delete me"


def test_filters_are_in_the_address_and_lists_have_pages(board: Served, visits: Visits) -> None:
    page = visits.open(board, TASKS + "?project=letters")
    letters = column(page, "3 · Normal")
    expect(letters.locator("[data-task]")).to_have_count(20)
    letters.get_by_role("link", name=f"and {LETTERS - 20} more").click()
    page.wait_for_url("**view=list**")
    expect(page.locator("[data-task]")).to_have_count(50)
    page.get_by_role("link", name="Next").click()
    expect(page.locator("[data-task]")).to_have_count(LETTERS - 50)
    page.goto(board.origin + TASKS)
    choose(page, "Due", "Overdue")
    expect(page.locator("[data-task]")).to_have_count(1)
    expect(card(page, "Renew the certificate")).to_contain_text("Overdue: 3 days ago")
    choose(page, "Due", "Due within a week")
    expect(card(page, "Write the launch post")).to_contain_text("Due today")
    expect(card(page, "Tidy the backlog")).to_be_visible()
    expect(card(page, "Learn to juggle")).to_have_count(0)
    choose(page, "Energy", "Deep")
    expect(page.locator("[data-task]")).to_have_count(1)
    page.get_by_role("link", name="Clear").click()
    expect(card(page, "Learn to juggle")).to_contain_text("in 20 days")
    choose(page, "Status", "Done")
    card(page, "Done: pay the bill").get_by_role("button", name="Reopen").click()
    expect(said(page)).to_contain_text("Reopened ‘Done: pay the bill’")
    page.get_by_role("button", name="Undo").click()
    expect(card(page, "Done: pay the bill")).to_be_visible()
    assert stored(board, "pay the bill")["completed"] is True


def test_charts_count_what_there_is(served: Served, visits: Visits) -> None:
    done = added(served, "Chart", project="charts", priority=5)
    served.call("task_complete", task_id=done)
    numbers = served.call("task_stats")
    page = visits.open(served, TASKS + "?view=stats")
    is_live(page)
    tiles = page.locator(".tile b")
    expected = [numbers["total"] - 1, 1, f"{100 // numbers['total']} %", 1]
    expect(tiles).to_have_text([str(number) for number in expected])
    expect(page.get_by_role("region", name="By priority").get_by_role("listitem").first).to_contain_text(
        f"1 of {numbers['by_priority']['5']}"
    )
    expect(page.locator(".days .bar-mark")).to_have_count(1)
    added(served, "Another", project="charts")
    charts = page.get_by_role("region", name="By project").get_by_role("listitem").filter(has_text="charts")
    expect(charts).to_contain_text("1 of 2", timeout=1000)
    charts.get_by_role("link").click()
    expect(page.locator("[data-task]")).to_have_count(1)


def test_the_essentials_work_without_scripts(board: Served, visits: Visits, browser: Browser) -> None:
    known = visits.open(board, TASKS).context.cookies()
    context = browser.new_context(java_script_enabled=False)
    context.add_cookies(known)  # type: ignore[arg-type]  # what one context gives, another takes
    page = context.new_page()
    page.goto(f"{board.origin}{TASKS}?text=scripts")
    page.get_by_label("New task").fill("No scripts !4 due today")
    page.get_by_role("button", name="Add", exact=True).click()
    assert page.get_by_label("Contains").input_value() == "scripts"
    card(column(page, "4 · High"), "No scripts").get_by_role("button", name="Complete").click()
    assert stored(board, "No scripts")["completed"] is True
    page.get_by_role("button", name="Undo").click()
    assert stored(board, "No scripts")["completed"] is False
    context.close()


def test_whoever_may_only_read_is_offered_nothing_else(board: Served, visits: Visits) -> None:
    with Served(board.home, "--read-only") as served:
        page = visits.open(served, TASKS + "?text=juggle")
        expect(card(page, "Learn to juggle")).to_be_visible()
        assert page.locator("main button").all_inner_texts() == ["Apply"]
        title_of(card(page, "Learn to juggle")).focus()
        page.keyboard.press("x")
        page.keyboard.press("e")
        expect(page.get_by_role("heading", name="Learn to juggle")).to_be_visible()
        assert page.locator("main button").count() == 0
    assert stored(board, "Learn to juggle")["completed"] is False
