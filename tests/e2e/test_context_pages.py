"""Pins and context packs in a browser, while agents work in the same project."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import SCREENS, BrowserWindows, PageCheck, Screen
from tests.e2e.web_server_process import WebServerProcess

HOME = "/p/default"
CONTEXT = f"{HOME}/context"
TASK = 2
#: Tags, line ends that HTML does not keep, and a fence.
NOTES = "<b onclick=pwned()>bold</b>\r\nnext\rlast\n\n```\n" + "Sign and retry. " * 40


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServerProcess]:
    with WebServerProcess(tmp_path_factory.mktemp("home")) as server:
        server.call("task_create", title="Choose a queue", notes="The one we have")
        server.call("task_create", title="Retry webhooks", notes=NOTES)
        server.call("create_prompt", name="style", content="Write short sentences.")
        server.call("create_prompt", name="webhook-review", content="Review how a webhook retries. " * 30)
        server.call("create_resource", name="guide", uri="file:///guide.md", content="Webhooks are signed.")
        yield server


@pytest.fixture(autouse=True)
def unpinned(server: WebServerProcess) -> Iterator[None]:
    yield
    for ref in ("style", "webhook-review", "file:///guide.md", "task:1", "task:2"):
        server.dittybag("unpin", ref)


def pins(page: Page) -> Locator:
    return page.locator("#pins .pin-text > :first-child")


def toast(page: Page) -> Locator:
    return page.locator("#toast [data-note]")


def pack(page: Page) -> Locator:
    return page.locator("#pack-text")


def tokens(page: Page) -> Locator:
    return page.locator("#pack-title")


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_the_pages_are_accessible_on_every_screen(
    server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck, screen: Screen
) -> None:
    page = windows.open(server, CONTEXT, screen)
    expect(page.get_by_text("Nothing is pinned.")).to_be_visible()
    check_page(page, f"context-empty-{screen.name}")
    for ref in ("style", "task:1", "file:///guide.md"):
        server.dittybag("pin", ref)
    # While a region is refreshed, it is pale.
    expect(pins(page)).to_have_count(3)
    page.goto(f"{server.origin}{CONTEXT}?query=webhook&budget=250")
    expect(page.get_by_role("heading", name="Left out because of the budget")).to_be_visible()
    check_page(page, f"context-{screen.name}")
    page.goto(f"{server.origin}{HOME}/tasks/{TASK}/context")
    expect(page.get_by_role("link", name="Context", exact=True).last).to_have_attribute(
        "aria-current", "page"
    )
    check_page(page, f"task-context-{screen.name}")


def test_items_are_pinned_by_typing_and_unpinned(server: WebServerProcess, windows: BrowserWindows) -> None:
    page = windows.open(server, CONTEXT)
    page.keyboard.press("n")
    field = page.get_by_label("Pin an item")
    expect(field).to_be_focused()
    field.press_sequentially("webh")
    option = page.locator('#pin-items option[value="webhook-review"]')
    expect(option).to_have_text("Prompt: webhook-review")
    field.fill("webhook-review")
    field.press("Enter")
    expect(toast(page)).to_have_text("Pinned “webhook-review”")
    expect(pins(page)).to_have_text(["webhook-review"])
    expect(field).to_have_value("")
    expect(page.locator(".pack-items")).to_contain_text("Pinned prompt")

    field.fill("no such thing")
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("There is nothing called 'no such thing'")
    expect(field).to_have_value("no such thing")
    assert [problem for problem in windows.problems if "404" not in problem] == []
    windows.problems.clear()

    # Others pin, rename and delete.
    server.dittybag("pin", "task:1")
    expect(pins(page)).to_have_text(["webhook-review", "Choose a queue"])
    server.call("create_prompt", name="doomed", content="Text")
    server.dittybag("pin", "doomed")
    expect(pins(page)).to_have_text(["webhook-review", "Choose a queue", "doomed"])
    server.dittybag("prompt", "delete", "doomed")
    expect(page.get_by_text("deleted, or not visible to you")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Unpin prompt:")).click()
    expect(pins(page)).to_have_text(["webhook-review", "Choose a queue"])

    # The order is as it was after undo.
    page.get_by_role("button", name="Unpin webhook-review").click()
    expect(pins(page)).to_have_text(["Choose a queue"])
    page.keyboard.press("u")
    expect(toast(page)).to_have_text("Restored the pins of “default”")
    expect(pins(page)).to_have_text(["webhook-review", "Choose a queue"])


@pytest.mark.parametrize(
    ("path", "name"),
    [("/prompts?q=style", "style"), ("/resources", "guide"), ("/tasks?view=list", "Choose a queue")],
    ids=["prompt", "resource", "task"],
)
def test_a_row_and_the_page_of_an_item_pin_it(
    server: WebServerProcess, windows: BrowserWindows, path: str, name: str
) -> None:
    page = windows.open(server, HOME + path)
    item = page.locator("a[data-item]", has_text=re.compile(f"^{name}$"))
    row = page.locator("[data-list] li").filter(has=item)
    row.hover()
    row.locator(".dots").click()
    row.get_by_role("button", name="Pin", exact=True).click()
    expect(toast(page)).to_have_text(f"Pinned “{name}”")
    expect(row.locator(".pin-mark")).to_be_visible()
    # By key, on the row that has the focus.
    item.focus()
    page.keyboard.press("Shift+P")
    expect(toast(page)).to_have_text(f"Unpinned “{name}”")
    expect(row.locator(".pin-mark")).to_have_count(0)

    item.click()
    button = page.locator("#pin-button")
    expect(button).to_have_text("Pin")
    page.keyboard.press("Shift+P")
    expect(toast(page)).to_have_text(f"Pinned “{name}”")
    expect(button).to_have_text("Unpin")
    page.keyboard.press("u")
    expect(button).to_have_text("Pin")
    # The palette knows the command by its name.
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Command or search").fill("pin this")
    page.get_by_role("option", name=re.compile("^Pin this")).click()
    expect(button).to_have_text("Unpin")


def test_pinning_keeps_what_is_typed_into_the_form_of_a_task(
    server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(server, f"{HOME}/tasks/1")
    page.get_by_label("Title").fill("Choose another queue")
    page.locator("#pin-button").click()
    expect(page.locator("#pin-button")).to_have_text("Unpin")
    expect(page.get_by_label("Title")).to_have_value("Choose another queue")
    expect(page.locator("[data-save-state]")).to_have_text("Unsaved changes")
    # The page still asks before it is left.
    page.once("dialog", lambda dialog: dialog.dismiss())
    with page.expect_event("dialog"):
        page.get_by_role("link", name="Context", exact=True).last.click(no_wait_after=True)
    expect(page.get_by_label("Title")).to_have_value("Choose another queue")
    page.once("dialog", lambda dialog: dialog.accept())
    page.goto(server.origin + CONTEXT)


def test_the_pack_of_a_task_follows_the_budget_the_agent_and_changes(
    server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(server, f"{HOME}/tasks/{TASK}", own=True)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("navigation", name="About this task").get_by_role("link", name="Context").click()
    expect(tokens(page)).to_contain_text("of 2,000 tokens")
    expect(pack(page)).to_contain_text("<b onclick=pwned()>bold</b>")
    assert pack(page).locator("*").count() == 0
    # A typed budget, and one of the usual ones.
    page.get_by_label("Budget in tokens").fill("300")
    expect(tokens(page)).to_contain_text("of 300 tokens")
    expect(page).to_have_url(re.compile(r"budget=300&agent="))
    expect(pack(page)).to_contain_text("; read task:2 for the rest)")
    page.get_by_role("link", name="8,000").click()
    expect(tokens(page)).to_contain_text("of 8,000 tokens")
    expect(page.get_by_label("Budget in tokens")).to_have_value("8000")
    expect(page.get_by_role("link", name="8,000")).to_have_attribute("aria-current", "true")

    # The changes of others depend on the agent.
    page.get_by_label("Agent").select_option("-")
    expect(page.get_by_text("has the changes of everybody")).to_be_visible()
    # What changes appears, with the budget and the agent that were chosen.
    server.call("update_prompt", name="style", content="Write very short sentences.")
    expect(pack(page)).to_contain_text("claude-code changed prompt style")
    expect(tokens(page)).to_contain_text("of 8,000 tokens")
    expect(page.get_by_label("Agent")).to_have_value("-")

    # The copy has every character.
    page.keyboard.press("y")
    expect(page.locator("#pack-copy")).to_have_text("Copied")
    name = "dittybag://packs/task/2"
    arguments = {"task": TASK, "budget": 8000}
    result = server.request("tools/call", "context", {"name": "context", "arguments": arguments}, "stranger")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == result["content"][0]["text"]
    assert NOTES.strip() in copied
    expect(page.get_by_text(name)).to_be_visible()


def test_an_open_pack_says_that_its_task_was_deleted(
    server: WebServerProcess, windows: BrowserWindows
) -> None:
    number = server.call("task_create", title="Short life")["id"]
    page = windows.open(server, f"{HOME}/tasks/{number}/context")
    expect(pack(page)).to_contain_text("Short life")
    server.call("task_delete", task_id=number)
    expect(page.get_by_text(f"Task {number} was deleted, so there is no pack for it.")).to_be_visible()


def test_a_live_update_leaves_an_open_menu_alone(server: WebServerProcess, windows: BrowserWindows) -> None:
    page = windows.open(server, f"{HOME}/resources")
    page.get_by_text("Live", exact=True).wait_for()
    row = page.locator("[data-list] li").first
    row.hover()
    row.locator(".dots").click()
    with page.expect_response(lambda response: response.url.endswith("/resources")):
        server.call("create_resource", name="later", uri="file:///later", content="x")
    expect(row.get_by_role("button", name="Pin", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="later", exact=True)).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="later", exact=True)).to_be_visible()
