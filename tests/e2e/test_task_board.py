"""The board of shared tasks and the page of a task, used with a mouse, a keyboard and a touch screen."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Dialog, Locator, Page, expect

from tests.e2e.conftest import SCREENS, BrowserWindows, PageCheck, Screen
from tests.e2e.shared_tasks import AGENT, BOARD, PROJECT, SharedTasks
from tests.e2e.web_server_process import WebServerProcess

PHONE = next(screen for screen in SCREENS if screen.width < 500)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> SharedTasks:
    """Shared tasks, changed by another process than the server."""
    tasks = SharedTasks(tmp_path_factory.mktemp("home"))
    tasks.fill()
    return tasks


@pytest.fixture(scope="module")
def board_server(tasks: SharedTasks) -> Iterator[WebServerProcess]:
    with WebServerProcess(tasks.home) as server:
        yield server


def column(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=re.compile(rf"^{name} \d"))


def card(container: Page | Locator, title: str) -> Locator:
    page = container if isinstance(container, Page) else container.page
    return container.locator("[data-task]").filter(has=page.get_by_role("link", name=title, exact=True))


def notice(page: Page) -> Locator:
    return page.locator("#toast")


def wait_until_live(page: Page) -> None:
    expect(page.locator("#live-state")).to_have_attribute("data-state", "on")


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_board_task_and_menu_are_accessible_on_every_screen(
    tasks: SharedTasks,
    board_server: WebServerProcess,
    windows: BrowserWindows,
    check_page: PageCheck,
    screen: Screen,
) -> None:
    page = windows.open(board_server, BOARD, screen)
    for name in ("Ready", "Doing", "Blocked", "Review", "Done"):
        expect(column(page, name)).to_be_visible()
    check_page(page, f"status-board-{screen.name}")
    page.get_by_role("button", name="Move or delete Build the form").click()
    expect(page.get_by_role("dialog", name="Build the form")).to_be_visible()
    check_page(page, f"card-menu-{screen.name}")
    for name in ("form", "launch"):
        page.goto(f"{board_server.origin}{BOARD}/{tasks.ids[name]}")
        check_page(page, f"shared-task-{name}-{screen.name}")


def test_cards_show_what_a_team_needs(
    tasks: SharedTasks, board_server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(board_server, BOARD)
    held = card(column(page, "Doing"), "Build the form")
    expect(held.locator(".holder.agent")).to_contain_text(re.compile(rf"{AGENT}\s+agent\s+1\d min left"))
    expect(held).to_contain_text("frontend")
    expect(held).to_contain_text("1 comments")
    # All tasks of the board belong to one project.
    expect(page.locator(".project-tag")).to_have_count(0)
    person = card(column(page, "Doing"), "Find out why the login test is flaky")
    expect(person.locator(".holder.person")).to_contain_text(re.compile(r"ann\s+person\s+1 h left"))
    blocked = card(column(page, "Blocked"), "Launch the new sign-up page")
    expect(blocked).to_contain_text("waits for 4")
    expect(blocked).to_contain_text("1 of 5 parts done")
    expect(card(column(page, "Blocked"), "Measure 1,000 sign-ups a minute")).to_be_visible()
    expect(card(column(page, "Review"), "Write the welcome mail")).to_contain_text("Assigned to ann")
    expect(card(column(page, "Ready"), "Write the migration")).to_be_visible()
    expect(card(column(page, "Done"), "Design the schema of accounts")).to_be_visible()


def test_filters_select_by_project_label_assignee_and_text(
    board_server: WebServerProcess, windows: BrowserWindows
) -> None:
    for query, titles in (
        ("label=database", ["Write the migration"]),
        (f"assignee={AGENT}", ["Build the form"]),
        ("text=welcome", ["Write the welcome mail"]),
        (f"project={PROJECT}&label=tests", ["Find out why the login test is flaky"]),
        ("project=elsewhere", []),
    ):
        page = windows.open(board_server, f"{BOARD}?{query}")
        expect(page.locator("[data-item]")).to_have_text(titles)
    page = windows.open(board_server, BOARD)
    page.get_by_label("Label").fill("database")
    page.get_by_label("Label").press("Enter")
    page.wait_for_url("**label=database**")
    expect(page.locator("[data-item]")).to_have_count(1)


def test_dragging_a_card_sets_its_status_and_can_be_undone(
    tasks: SharedTasks, board_server: WebServerProcess, windows: BrowserWindows
) -> None:
    number = tasks.add("Drag me along")
    page = windows.open(board_server, BOARD)
    for name, status, words in (
        ("Doing", "doing", "‘Drag me along’ is now in progress"),
        ("Review", "review", "‘Drag me along’ is now in review"),
        ("Ready", "todo", "‘Drag me along’ is now to do"),
        ("Done", "done", "Completed ‘Drag me along’"),
    ):
        drag(page, "Drag me along", name)
        expect(card(column(page, name), "Drag me along")).to_be_visible()
        expect(notice(page)).to_contain_text(words)
        assert tasks.get(number).status == status
    page.get_by_role("button", name="Undo").click()
    expect(card(column(page, "Ready"), "Drag me along")).to_be_visible()
    assert tasks.get(number).status == "todo"
    # Nobody can drag a task out of the blocked ones,
    drag(page, "Translate the texts", "Ready")
    expect(notice(page)).to_contain_text("‘Translate the texts’ waits for 2 open tasks")
    expect(card(column(page, "Blocked"), "Translate the texts")).to_be_visible()
    # nor into them.
    expect(page.locator(".column:not([data-column]) h2").first).to_contain_text("Blocked")
    drag(page, "Drag me along", "Blocked")
    expect(card(column(page, "Ready"), "Drag me along")).to_be_visible()
    assert tasks.get(number).status == "todo"
    windows.problems.clear()


def drag(page: Page, title: str, name: str) -> None:
    """Drag a card to the head of a column, on a new page: Chromium ignores a drag soon after another one."""
    page.goto(page.url)
    card(page, title).drag_to(column(page, name).get_by_role("heading", name=name))


def test_a_move_after_a_change_by_somebody_else_is_refused(
    tasks: SharedTasks, board_server: WebServerProcess, windows: BrowserWindows
) -> None:
    number = tasks.add("Contested")
    page = windows.open(board_server, BOARD)
    # The change arrives while the menu is open, which therefore still shows the old version.
    wait_until_live(page)
    page.get_by_role("button", name="Move or delete Contested").click()
    tasks.update(number, priority=1)
    page.get_by_role("dialog", name="Contested").get_by_role("button", name="Review").click()
    expect(page.get_by_role("alert")).to_contain_text(
        f"{AGENT} changed ‘Contested’ in the meantime, so it was not moved"
    )
    assert tasks.get(number).status == "todo"
    expect(card(column(page, "Ready"), "Contested")).to_contain_text("!1")
    windows.problems.clear()


def test_a_card_of_an_outdated_page_is_not_dropped(
    tasks: SharedTasks, board_server: WebServerProcess, windows: BrowserWindows
) -> None:
    number = tasks.add("Stale")
    page = windows.open(board_server, BOARD, own=True)
    # The page does not learn of the change.
    page.route("**/live", lambda route: route.abort())
    page.reload()
    tasks.update(number, title="Fresh")
    card(page, "Stale").drag_to(column(page, "Done").get_by_role("heading", name="Done"))
    expect(page.get_by_role("alert")).to_contain_text(f"{AGENT} changed ‘Fresh’ in the meantime")
    assert tasks.get(number).status == "todo"
    # The board is refreshed nevertheless.
    expect(card(column(page, "Ready"), "Fresh")).to_be_visible()
    windows.problems.clear()


def test_the_menu_works_by_touch_and_by_keyboard(
    tasks: SharedTasks, board_server: WebServerProcess, windows: BrowserWindows
) -> None:
    number = tasks.add("Move me gently")
    phone = windows.open(board_server, BOARD + "?text=gently", PHONE)
    phone.get_by_role("button", name="Move or delete Move me gently").tap()
    menu = phone.get_by_role("dialog", name="Move me gently")
    expect(menu.get_by_role("button", name="Ready")).to_be_disabled()
    menu.get_by_role("button", name="Review").tap()
    expect(card(column(phone, "Review"), "Move me gently")).to_be_visible()
    page = windows.open(board_server, BOARD + "?text=gently")
    page.keyboard.press("j")
    page.keyboard.press("m")
    expect(page.get_by_role("dialog").get_by_role("button", name="Ready")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(card(column(page, "Doing"), "Move me gently")).to_be_visible()
    assert tasks.get(number).status == "doing"
    page.keyboard.press("u")
    expect(card(column(page, "Review"), "Move me gently")).to_be_visible()


def test_a_card_is_moved_without_javascript(
    tasks: SharedTasks, board_server: WebServerProcess, windows: BrowserWindows, browser: Browser
) -> None:
    number = tasks.add("Plain old form")
    cookies = windows.open(board_server, BOARD).context.cookies()
    context = browser.new_context(java_script_enabled=False)
    context.add_cookies(cookies)  # type: ignore[arg-type]  # Playwright has two types for cookies
    page = context.new_page()
    page.goto(f"{board_server.origin}{BOARD}?text=plain")
    page.get_by_role("button", name="Move or delete Plain old form").click()
    page.get_by_role("dialog", name="Plain old form").get_by_role("button", name="Doing").click()
    assert page.get_by_label("Filter tasks").input_value() == "plain"
    expect(card(column(page, "Doing"), "Plain old form")).to_be_visible()
    assert tasks.get(number).status == "doing"
    page.get_by_role("button", name="Undo").click()
    assert tasks.get(number).status == "todo"
    # The version in the page is no longer the current one.
    page.goto(f"{board_server.origin}{BOARD}?text=plain")
    tasks.update(number, priority=2)
    page.get_by_role("button", name="Move or delete Plain old form").click()
    page.get_by_role("dialog", name="Plain old form").get_by_role("button", name="Done").click()
    expect(page.get_by_role("heading", name="in the meantime")).to_be_visible()
    assert tasks.get(number).status == "todo"
    page.goto(f"{board_server.origin}{BOARD}/{number}")
    page.get_by_label("Add a comment").fill("No script needed")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator("#comments")).to_contain_text("No script needed")
    context.close()


def test_a_claim_by_another_process_appears_within_a_second_and_lapses_on_the_page(
    tasks: SharedTasks, board_server: WebServerProcess, windows: BrowserWindows
) -> None:
    number = tasks.add("Claim me")
    page = windows.open(board_server, BOARD)
    elsewhere = windows.open(board_server, "/p/default/tasks")
    for open_page in (page, elsewhere):
        wait_until_live(open_page)
    tasks.claim(number, "cursor", seconds=3)
    for open_page in (page, elsewhere):
        claimed = card(column(open_page, "Doing"), "Claim me")
        expect(claimed.locator(".holder.agent")).to_contain_text("cursor", timeout=1000)
    # Nothing is logged when a claim lapses: the page notices by itself.
    claimed = card(column(page, "Doing"), "Claim me")
    expect(claimed.locator(".left")).to_have_text(re.compile(r"^[1-3] s left$"))
    expect(claimed.locator(".holder")).to_contain_text("lapsed: ready again")


def test_the_board_waits_while_a_menu_is_open(
    tasks: SharedTasks, board_server: WebServerProcess, windows: BrowserWindows
) -> None:
    tasks.add("Patient")
    page = windows.open(board_server, BOARD)
    wait_until_live(page)
    page.get_by_role("button", name="Move or delete Patient").click()
    with page.expect_response(lambda response: response.url.endswith(BOARD)):
        tasks.add("Impatient")
    expect(page.get_by_role("dialog", name="Patient")).to_be_visible()
    expect(card(page, "Impatient")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(card(page, "Impatient")).to_be_visible()


def test_a_person_takes_a_task_away_from_an_agent(
    tasks: SharedTasks, board_server: WebServerProcess, windows: BrowserWindows
) -> None:
    number = tasks.add("Taken")
    page = windows.open(board_server, f"{BOARD}/{number}")
    wait_until_live(page)
    expect(page.get_by_role("button", name="Take away")).to_have_count(0)
    claimed = tasks.claim(number)
    claim = page.get_by_role("region", name="Claim")
    expect(claim).to_contain_text(AGENT)
    expect(claim).to_contain_text("agent")
    page.get_by_role("button", name="Take away").click()
    expect(notice(page)).to_contain_text("‘Taken’ is to do again, and nobody holds it")
    assert page.url.endswith(f"/{number}")
    expect(page.get_by_role("button", name="Take away")).to_have_count(0)
    task = tasks.get(number)
    assert (task.status, task.assignee) == ("todo", None)
    assert tasks.refusal(number, claimed.claim.fence) == "ClaimLost"
    # A claim that has ended does not come back.
    page.get_by_role("button", name="Undo").click()
    expect(notice(page)).to_contain_text("Reverted")
    expect(page.locator(".head .badge").nth(1)).to_have_text("To do")
    assert tasks.get(number).assignee is None


def test_comments_are_added_and_appear_live(
    tasks: SharedTasks, board_server: WebServerProcess, windows: BrowserWindows
) -> None:
    number = tasks.add("Discuss")
    page = windows.open(board_server, f"{BOARD}/{number}")
    page.get_by_label("Add a comment").fill("First\n<b>second</b> line")
    page.get_by_role("button", name="Comment", exact=True).click()
    comments = page.locator("#comments")
    expect(comments.locator(".comment-text")).to_have_text("First\n<b>second</b> line")
    expect(comments.locator(".actor")).to_have_text(re.compile(" via web$"))
    expect(comments).to_contain_text("just now")
    wait_until_live(page)
    page.get_by_label("Add a comment").fill("Half a thou")
    tasks.update(number, comment="From the agent")
    expect(comments.locator(".comment-text")).to_have_count(2, timeout=1000)
    expect(page.get_by_label("Add a comment")).to_have_value("Half a thou")
    page.get_by_label("Add a comment").fill("   ")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.get_by_role("alert").first).to_contain_text("A comment must not be empty")
    expect(page.get_by_label("Add a comment")).to_have_attribute("aria-invalid", "true")
    windows.problems.clear()


def test_a_comment_does_not_discard_what_was_typed_into_the_form(
    tasks: SharedTasks, board_server: WebServerProcess, windows: BrowserWindows
) -> None:
    number = tasks.add("Half done")
    page = windows.open(board_server, f"{BOARD}/{number}", own=True)
    page.locator("#field-notes").fill("Not saved yet")
    page.get_by_label("Add a comment").fill("Hello")
    questions: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        questions.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", dismiss)
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator("#field-notes")).to_have_value("Not saved yet")
    assert questions == ["beforeunload"]
    assert tasks.get(number).comments == ()
    page.locator("#field-notes").press("Control+Enter")
    page.remove_listener("dialog", dismiss)
    page.once("dialog", lambda dialog: dialog.accept())
    expect(notice(page)).to_contain_text("Saved ‘Half done’")
    assert tasks.get(number).notes == "Not saved yet"


def test_a_link_to_a_prompt_leads_to_its_page(
    board_server: WebServerProcess, windows: BrowserWindows
) -> None:
    board_server.call("create_prompt", name="greeting", content="Hello")
    number = board_server.call("task_create", title="Say hello")["id"]
    page = windows.open(board_server, f"/p/default/tasks/{number}")
    page.locator("main").get_by_text("More", exact=True).click()
    page.locator("#field-links").fill("greeting\ngreetings")
    page.get_by_role("button", name="Save").click()
    page.goto(f"{board_server.origin}/p/default/tasks/{number}")
    links = page.get_by_role("region", name="Links")
    expect(links.get_by_role("listitem")).to_have_text(["greeting", "greetings"])
    links.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("greeting")


def test_all_fields_of_a_shared_task_are_edited(
    tasks: SharedTasks, board_server: WebServerProcess, windows: BrowserWindows
) -> None:
    first, parent = tasks.add("Comes first"), tasks.add("Comprises all")
    number = tasks.add("Edit me", project="old free text")
    page = windows.open(board_server, f"{BOARD}/{number}")
    options = page.get_by_label("Project").locator("option").all_inner_texts()
    assert options == ["None", "default", PROJECT, "old free text"]
    page.get_by_label("Project").select_option(PROJECT)
    page.get_by_label("Status").select_option("Review")
    page.get_by_label("Assignee").fill("ann")
    page.get_by_label("Labels").fill("one, two words, one")
    page.get_by_label("Blocked by").fill(f"#{first}")
    page.get_by_label("Part of").fill(str(parent))
    page.locator("main").get_by_text("More", exact=True).click()
    page.get_by_label("Links").fill("https://example.com/a,b\nfile:///notes")
    page.get_by_role("button", name="Save").click()
    expect(notice(page)).to_contain_text("Saved ‘Edit me’")
    task = tasks.get(number)
    assert (task.project, task.status, task.assignee) == (PROJECT, "review", "ann")
    assert task.project_id is not None
    assert (task.labels, task.blocked_by, task.parent) == (("one", "two words"), (first,), parent)
    assert task.links == ("https://example.com/a,b", "file:///notes")
    page.goto(f"{board_server.origin}{BOARD}/{number}")
    expect(page.locator("#field-links")).to_have_value("https://example.com/a,b\nfile:///notes")
    related = page.get_by_role("region", name="Related tasks")
    expect(related.get_by_role("link", name="Comes first")).to_be_visible()
    expect(related.get_by_role("link", name="Comprises all")).to_be_visible()
    links = page.get_by_role("region", name="Links")
    expect(links.get_by_role("link")).to_have_count(1)
    expect(links.get_by_role("link")).to_have_attribute("rel", "noopener noreferrer nofollow")
    page.goto(f"{board_server.origin}{BOARD}/{parent}")
    expect(page.get_by_role("region", name="Parts")).to_contain_text("0 of 1 done")
    page.goto(f"{board_server.origin}{BOARD}/{first}")
    expect(related.get_by_role("link", name="Edit me")).to_be_visible()


def test_errors_with_edges_are_shown_at_their_fields(
    tasks: SharedTasks, board_server: WebServerProcess, windows: BrowserWindows
) -> None:
    first = tasks.add("Chicken")
    second = tasks.add("Egg", blocked_by=[first])
    page = windows.open(board_server, f"{BOARD}/{first}")
    for field, text, message in (
        ("Blocked by", str(second), f"task {second} 'Egg'"),
        ("Blocked by", "987654", "task 987654 does not exist"),
        ("Blocked by", "soon", "'soon' is not the number of a task"),
        ("Part of", "987654", "task 987654 does not exist"),
        ("Part of", str(first), f"task {first} 'Chicken'"),
    ):
        page.goto(f"{board_server.origin}{BOARD}/{first}")
        page.get_by_label(field).fill(text)
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_label(field)).to_have_attribute("aria-invalid", "true")
        name = "blocked_by" if field == "Blocked by" else "parent"
        expect(page.locator(f"#problem-{name}")).to_contain_text(message)
        expect(page.get_by_label(field)).to_have_value(text)
    assert tasks.get(first).blocked_by == ()
    windows.problems.clear()


def test_quick_add_says_which_project_a_task_belongs_to(
    tasks: SharedTasks, board_server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(board_server, "/p/default/tasks")
    preview = page.locator("#quick-add-preview")
    page.get_by_label("New task").fill("Somewhere @nowhere")
    expect(preview).to_contain_text("not a project: only you see the task")
    page.get_by_label("New task").fill("Nobody else's")
    expect(preview).to_contain_text("Nobody else's")
    expect(preview).not_to_contain_text("shared")
    page.get_by_label("New task").fill(f"For everybody @{PROJECT}")
    expect(preview).to_contain_text("shared with its members")
    page.keyboard.press("Enter")
    expect(card(column(page, "Ready"), "For everybody").locator(".shared")).to_have_text(PROJECT)
    page.goto(board_server.origin + BOARD)
    page.get_by_label("New task").fill("Of this project")
    expect(preview).to_contain_text("shared with its members")


def test_search_and_activity_show_the_state_of_tasks(
    tasks: SharedTasks, board_server: WebServerProcess, windows: BrowserWindows
) -> None:
    number = tasks.add("Sought-after thing", labels=["rare"])
    tasks.claim(number)
    page = windows.open(board_server, f"/p/{PROJECT}/search?q=sought-after")
    expect(page.locator(".rows .badge")).to_have_text(["Doing", PROJECT, f"assigned to {AGENT}", "rare"])
    page.goto(f"{board_server.origin}/p/{PROJECT}/activity")
    change = page.locator(".change").filter(has_text="Sought-after thing").first
    expect(change).to_contain_text(f"to do → doing, assigned to {AGENT}")
    expect(change.locator(".mark.agent")).to_be_visible()
    change.get_by_text("What changed").click()
    expect(change.get_by_role("region", name="Status, before and after")).to_contain_text("added: doing")


def test_a_dropped_task_leaves_the_board_and_is_counted_as_dropped(
    tasks: SharedTasks, board_server: WebServerProcess, windows: BrowserWindows
) -> None:
    number = tasks.add("Think again")
    page = windows.open(board_server, BOARD + "?view=list&text=again")
    page.get_by_role("button", name="Move or delete Think again").click()
    page.get_by_role("dialog", name="Think again").get_by_role("button", name="Dropped").click()
    expect(notice(page)).to_contain_text("‘Think again’ is now dropped")
    expect(page.locator("[data-task]")).to_have_count(0)
    page.goto(f"{board_server.origin}{BOARD}?text=again")
    expect(page.locator("[data-task]")).to_have_count(0)
    page.goto(f"{board_server.origin}{BOARD}?view=list&status=dropped")
    page.get_by_role("button", name="Reopen Think again").click()
    expect(notice(page)).to_contain_text("‘Think again’ is now to do")
    assert tasks.get(number).status == "todo"
