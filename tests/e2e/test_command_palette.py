"""The command palette, and the keys of its commands."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import SCREENS, BrowserWindows, PageCheck, Screen
from tests.e2e.web_server_process import WebServerProcess

PROMPTS = "/p/default/prompts"


@pytest.fixture(scope="module")
def palette_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServerProcess]:
    with WebServerProcess(tmp_path_factory.mktemp("home")) as server:
        for name in ("alpha", "beta"):
            server.call("create_prompt", name=f"{name}-prompt", content=f"Text of {name}")
        server.call("task_create", title="Water the <b>plants</b>")
        server.dittybag("project", "create", "garden")
        yield server


def palette(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Command palette")


def field(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Command or search")


def options(page: Page) -> Locator:
    return palette(page).get_by_role("option")


def use(page: Page, typed: str, wanted: str | re.Pattern[str]) -> None:
    """Open the palette, type something and press Enter when the first option is the wanted one."""
    page.keyboard.press("Control+k")
    field(page).fill(typed)
    expect(options(page).first).to_have_text(wanted)
    page.keyboard.press("Enter")


def test_the_palette_finds_runs_and_remembers_commands(
    palette_server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(palette_server, PROMPTS)
    page.keyboard.press("j")
    first = page.get_by_role("link", name="beta-prompt", exact=True)
    expect(first).to_be_focused()
    page.keyboard.press("Control+k")
    expect(field(page)).to_be_focused()
    # What the focused row offers comes first, each with its key.
    expect(options(page).first).to_have_text(re.compile(r"Copy the text\s*beta-prompt\s*Y"))
    # The focus stays in the dialog, and returns to the row.
    page.keyboard.press("Tab")
    assert page.evaluate(
        "document.activeElement.closest('#palette') || document.activeElement === document.body"
    )
    field(page).focus()
    # Projects and clients arrive later.
    expect(options(page).filter(has_text="garden")).to_have_count(1)
    page.keyboard.press("ArrowUp")
    expect(options(page).last).to_have_attribute("aria-selected", "true")
    assert field(page).get_attribute("aria-activedescendant") == options(page).last.get_attribute("id")
    page.keyboard.press("Escape")
    expect(palette(page)).to_be_hidden()
    expect(first).to_be_focused()
    # Not only beginnings: the characters in their order.
    use(page, "tdark", re.compile(r"Theme: dark"))
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    use(page, "tlight", re.compile(r"Theme: light"))
    page.keyboard.press("Control+k")
    expect(palette(page).get_by_role("group", name="Recent").get_by_role("option")).to_have_text(
        [re.compile("Theme: light"), re.compile("Theme: dark")]
    )
    for words in ("Sign out", "garden", "Claude Code"):
        expect(options(page).filter(has_text=words)).to_have_count(1)
    field(page).fill("zzzz")
    expect(palette(page).get_by_role("status")).to_have_text("Nothing matches.")
    # Entities from the server, whatever they are called.
    field(page).fill("plants")
    expect(palette(page).get_by_role("group", name="Results").get_by_role("option")).to_have_text(
        re.compile("Water the <b>plants</b>\\s*Task")
    )
    field(page).fill("alph")
    expect(options(page).filter(has_text="alpha-prompt")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="alpha-prompt")).to_be_visible()
    # Commands of the page, and keys in two steps.
    use(page, "edit this", re.compile("Edit this prompt"))
    page.wait_for_url("**/edit")
    page.goto(palette_server.origin + PROMPTS)
    page.keyboard.press("g")
    page.keyboard.press("i")
    page.wait_for_url("**/tasks?view=list")
    use(page, "garden", re.compile("garden\\s*Switch to project"))
    page.wait_for_url("**/p/garden/tasks")
    expect(field(page)).to_be_hidden()
    # Not while typing.
    page.get_by_label("New task").focus()
    page.keyboard.type("gp?x")
    expect(page.get_by_label("New task")).to_have_value("gp?x")
    page.keyboard.press("Control+k")
    expect(field(page)).to_be_focused()


def test_a_task_is_claimed_released_and_completed_from_the_palette(
    palette_server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(palette_server, "/p/default/tasks")
    for command, word, result in (
        ("Claim a task", "claim", "in progress"),
        ("Release a task", "release", "to do again"),
        ("Complete a task", "compl", "Completed"),
    ):
        page.keyboard.press("Control+k")
        field(page).fill(word)
        expect(options(page).first).to_contain_text(command)
        page.keyboard.press("Enter")
        expect(field(page)).to_have_attribute("placeholder", re.compile("which task"))
        expect(options(page)).to_have_text(re.compile("Water the"))
        field(page).fill("plants")
        expect(options(page)).to_have_text(re.compile("Water the"))
        page.keyboard.press("Enter")
        expect(page.locator(".toast")).to_contain_text(result)
    page.keyboard.press("u")
    expect(page.get_by_role("link", name=re.compile("Water the"))).to_be_visible()


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_the_palette_and_the_shortcuts_are_accessible_on_every_screen(
    palette_server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck, screen: Screen
) -> None:
    page = windows.open(palette_server, PROMPTS, screen)
    page.get_by_role("button", name="Command palette").click()
    field(page).fill("prompt")
    expect(palette(page).get_by_role("group", name="Results")).to_be_visible()
    check_page(page, f"palette-{screen.name}")
    field(page).fill("shortc")
    options(page).filter(has_text="Show the keyboard shortcuts").click()
    shortcuts = page.get_by_role("dialog", name="Keyboard shortcuts")
    for title in ("General", "Go to", "This page", "Lists", "Selection"):
        expect(shortcuts.get_by_role("heading", name=title)).to_be_visible()
    check_page(page, f"shortcuts-{screen.name}")
