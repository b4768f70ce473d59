"""The prompt pages, used while agents work in the same project."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Dialog, Locator, Page, expect

from tests.e2e.conftest import SCREENS, BrowserWindows, PageCheck
from tests.e2e.sample_home import PROJECT, fill_home
from tests.e2e.web_server_process import WebServerProcess

LIST = "/p/default/prompts"
TEMPLATE = "Explain this {{ language }} error:\n\n{{ error }}"
ARGUMENTS: list[dict[str, Any]] = [
    {"name": "error", "description": "The message", "required": True},
    {"name": "language", "choices": ["Python", "SQL"]},
]


def open_prompt(windows: BrowserWindows, server: WebServerProcess, name: str, rest: str = "") -> Page:
    """Open the page of a prompt in a new window."""
    page = windows.open(server, f"{LIST}?q={name}")
    page.locator("a[data-item]").first.click()
    page.wait_for_url(re.compile(r"/prompts/[0-9a-f-]{36}$"))
    if rest:
        page.goto(page.url + rest)
    return page


def expect_status(windows: BrowserWindows, status: int) -> None:
    """Check that the only problem the browser logged is a response with this status."""
    assert [str(status) in problem for problem in windows.problems] == [True]
    windows.problems.clear()


def prompt_links(page: Page) -> Locator:
    return page.locator("#prompt-list a[data-item]")


def save(page: Page) -> None:
    page.get_by_role("button", name=re.compile("^Save")).click()


def check_on_every_screen(page: Page, check_page: PageCheck, name: str) -> None:
    """Check a page on one screen after the other without reloading it."""
    for screen in SCREENS:
        page.set_viewport_size({"width": screen.width, "height": 900})
        page.emulate_media(color_scheme="dark" if screen.scheme == "dark" else "light")
        check_page(page, f"{name}-{screen.name}")


def test_prompt_pages_are_accessible_on_every_screen(
    server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck
) -> None:
    name = "accessible"
    text = "# How\n\nSay **what** went wrong in `code`:\n\n- first {{ error }}\n- then {{ language }}\n"
    server.call("create_prompt", name=name, content=text, description="Explains errors", arguments=ARGUMENTS)
    server.call(
        "update_prompt", name=name, content=text.replace("then", "after that"), tags=["errors", "plain"]
    )
    page = windows.open(server, f"/p/{PROJECT}/prompts", own=True)
    check_on_every_screen(page, check_page, "list")
    page.goto(f"{server.origin}{LIST}?tab=libraries")
    expect(page.locator("#libraries a[data-item]").last).to_have_text("team:commit")
    check_on_every_screen(page, check_page, "libraries")
    page.goto(f"{server.origin}{LIST}?q={name}")
    page.goto(server.origin + (prompt_links(page).first.get_attribute("href") or ""))
    link = page.url
    page.get_by_label("error").fill("TypeError: x")
    expect(page.locator("#result-text")).to_contain_text("first TypeError: x")
    check_on_every_screen(page, check_page, "prompt")
    page.goto(link + "?tab=template")
    check_on_every_screen(page, check_page, "template")
    page.goto(link + "/history")
    check_on_every_screen(page, check_page, "history")
    page.locator("a[data-item]").first.click()
    expect(page.locator(".diff .added").first).to_be_visible()
    check_on_every_screen(page, check_page, "compare")
    page.goto(link + "/edit")
    page.get_by_label("Tags", exact=True).fill("not a tag!")
    page.get_by_label("Name").nth(1).fill("1st")
    save(page)
    expect(page.locator("#problem-tags")).to_be_visible()
    check_on_every_screen(page, check_page, "problems")
    expect_status(windows, 422)
    page.goto(link + "/edit")
    page.locator("#draft-offer").get_by_role("button", name="Discard draft").click()
    server.call("update_prompt", name=name, content=text.replace("what", "plainly what"))
    page.locator(".warning", has_text="claude-code").wait_for()
    page.get_by_role("textbox", name="Content").fill(text.replace("what", "exactly what"))
    save(page)
    expect(page.get_by_role("heading", name=re.compile("saved first"))).to_be_visible()
    check_on_every_screen(page, check_page, "conflict")
    expect_status(windows, 409)
    server.call("delete_prompt", name=name)
    page.get_by_role("link", name="Use their version").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    check_on_every_screen(page, check_page, "deleted")
    expect_status(windows, 404)


def test_a_prompt_is_created_rendered_and_copied(server: WebServerProcess, windows: BrowserWindows) -> None:
    server.call("create_prompt", name="tagged", content="x")
    server.call("update_prompt", name="tagged", tags=["writing"])
    page = windows.open(server, LIST, own=True)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.keyboard.press("n")
    expect(page.get_by_label("Title")).to_be_focused()
    page.keyboard.type("Release notes")
    page.get_by_label("Name", exact=True).fill("no spaces, please")
    page.get_by_label("Tags", exact=True).fill("news, wri")
    page.get_by_role("button", name="writing", exact=True).click()
    expect(page.get_by_label("Tags", exact=True)).to_have_value("news, writing")
    page.get_by_role("textbox", name="Content").fill(
        "\n\n# News of {{ version }}\n\n<script>alert(1)</script> {% if %}"
    )
    expect(page.locator("#preview h1")).to_have_text("News of {{ version }}")
    assert page.locator("#preview script").count() == 0
    page.get_by_role("button", name="Add an argument").click()
    page.keyboard.type("version")
    page.get_by_label("Choices").fill("1.0\n2.0 <b>")
    page.get_by_label("Required").check()
    expect(page.locator("#preview .problems")).to_contain_text("line 5")
    page.get_by_role("button", name="Add an argument").click()
    with page.expect_response("**/prompts/preview"):
        page.get_by_role("button", name="Remove").nth(1).click()
    expect(page.locator("[data-argument]")).to_have_count(1)

    save(page)
    expect(page.get_by_role("alert")).to_contain_text("contains invalid characters")
    expect(page.get_by_label("Name", exact=True).first).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#problem-name")).to_contain_text("no spaces, please")
    expect_status(windows, 422)
    # The form keeps all input.
    expect(page.get_by_label("Title")).to_have_value("Release notes")
    expect(page.get_by_role("textbox", name="Content")).to_have_value(
        re.compile(r"^\n\n# News of .*\{% if %\}$", re.DOTALL)
    )
    expect(page.get_by_label("Choices")).to_have_value("1.0\n2.0 <b>")
    expect(page.get_by_label("Required")).to_be_checked()
    page.locator("#field-name").fill("")
    page.locator("#field-content").fill("\n\n# News of {{ version }}\n\n<script>alert(1)</script>")
    page.keyboard.press("Control+Enter")

    expect(page.get_by_role("heading", name="Release notes", level=1)).to_be_visible()
    expect(page.locator(".note")).to_have_text("Prompt saved")
    expect(page.locator(".facts code")).to_have_text("release-notes")
    expect(page.locator("#result")).to_contain_text("Fill in version to see the result")
    expect(page.locator("#result .variable")).to_have_text("{{ version }}")
    page.get_by_label("version").fill("2.0 <b>")
    expect(page.locator("#result-text")).to_have_text("# News of 2.0 <b>\n\n<script>alert(1)</script>")
    expect(page.get_by_text(re.compile("about [0-9]+ tokens"))).to_be_visible()
    expect(page.locator(".message")).to_contain_text('"text": "\\n\\n# News of 2.0 <b>\\n\\n<script>')
    page.get_by_role("button", name="Copy result").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert (
        page.evaluate("navigator.clipboard.readText()")
        == "\n\n# News of 2.0 <b>\n\n<script>alert(1)</script>"
    )
    page.locator("h1").first.click()
    page.keyboard.press("y")
    expect(page.get_by_role("button", name="Copied")).to_have_count(2)
    assert page.evaluate("navigator.clipboard.readText()").startswith("\n\n# News of {{ version }}")
    page.get_by_role("link", name="Template", exact=True).click()
    expect(page.locator("#source-text .variable")).to_have_text("{{ version }}")
    page.get_by_role("link", name="Rendered", exact=True).click()
    expect(page.locator(".prose h1")).to_have_text("News of {{ version }}")
    page.get_by_role("link", name="Use", exact=True).click()
    # An agent saves an invalid template; the page shows the line.
    server.call("update_prompt", name="release-notes", content="One\n{{ version | nonsense }}")
    page.get_by_label("version").fill("3")
    expect(page.locator("#result .problems")).to_contain_text("version must be one of 1.0, 2.0 <b>; not '3'")
    page.get_by_label("version").fill("1.0")
    expect(page.locator("#result .problems")).to_contain_text("line 2")
    expect(page.locator("#result .problems pre")).to_have_text("{{ version | nonsense }}")


def test_the_list_is_filtered_sorted_and_updated_live(
    server: WebServerProcess, windows: BrowserWindows
) -> None:
    for name, tags in (("zebra", ["animal", "striped"]), ("ant", ["animal"]), ("bee", ["animal", "striped"])):
        server.call("create_prompt", name=name, content=f"About the {name}, an animal-thing")
        server.call("update_prompt", name=name, tags=tags)
    page = windows.open(server, LIST)
    page.get_by_label("Filter prompts").fill("animal-THING")
    expect(prompt_links(page)).to_have_text(["bee", "ant", "zebra"])
    page.get_by_label("Sort").select_option("name")
    expect(prompt_links(page)).to_have_text(["ant", "bee", "zebra"])
    page.locator(".facets").get_by_role("link", name="striped").click()
    expect(prompt_links(page)).to_have_text(["bee", "zebra"])
    page.get_by_label("Tag", exact=True).fill("Animal")
    page.keyboard.press("Enter")
    expect(page.locator(".chip", has_text="Tag")).to_have_count(2)
    expect(prompt_links(page)).to_have_text(["bee", "zebra"])
    page.get_by_text("Live", exact=True).wait_for()
    server.call("create_prompt", name="cat", content="an animal-thing")
    server.call("update_prompt", name="cat", tags=["animal", "striped"])
    expect(prompt_links(page)).to_have_text(["bee", "cat", "zebra"], timeout=1000)
    page.get_by_role("heading", name="Prompts").click()
    for _ in range(2):
        page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="cat", level=1)).to_be_visible()
    page.goto(f"{server.origin}{LIST}?q=nobody-wrote-this")
    page.get_by_role("link", name="Show all prompts").click()
    expect(prompt_links(page).first).to_be_visible()


def test_a_long_list_is_paged(server: WebServerProcess, windows: BrowserWindows) -> None:
    for number in range(51):
        server.call("create_prompt", name=f"page-{number:02}", content="paged")
    page = windows.open(server, f"{LIST}?q=paged&order=name")
    expect(prompt_links(page)).to_have_count(50)
    page.get_by_role("link", name="Next").click()
    expect(prompt_links(page)).to_have_text(["page-50"])
    page.get_by_role("link", name="Previous").click()
    expect(prompt_links(page).first).to_have_text("page-00")


def test_conflicting_edits_are_shown_and_resolved(server: WebServerProcess, windows: BrowserWindows) -> None:
    server.call("create_prompt", name="shared", content="First line\nSecond line", arguments=ARGUMENTS)
    page = open_prompt(windows, server, "shared", "/edit")
    page.get_by_text("Live", exact=True).wait_for()
    page.get_by_role("textbox", name="Content").fill("First line\nMy second line")
    page.locator("#field-description").fill("Mine")
    server.call("update_prompt", name="shared", content="First line of theirs\nSecond line")
    notice = page.locator(".warning", has_text="claude-code changed this prompt while you were editing it")
    expect(notice).to_be_visible(timeout=1000)
    expect(page.get_by_role("textbox", name="Content")).to_have_value("First line\nMy second line")

    save(page)
    expect(page.get_by_role("heading", name="claude-code saved first")).to_be_visible()
    expect_status(windows, 409)
    between = page.get_by_role("region", name="Content").first
    expect(between.locator(".removed")).to_have_text(
        ["removed: First line of theirs", "removed: Second line"]
    )
    expect(between.locator(".added")).to_have_text(["added: First line", "added: My second line"])
    page.get_by_text("Their changes since you started").click()
    expect(page.locator("details.theirs .added")).to_have_text(["added: First line of theirs"])
    expect(page.get_by_role("textbox", name="Content")).to_have_value("First line\nMy second line")
    # The agent writes again before the conflict is resolved.
    server.call("update_prompt", name="shared", tags=["again"])
    page.locator(".warning", has_text="claude-code changed").wait_for()
    page.get_by_role("textbox", name="Content").fill("First line of ours\nMy second line")
    page.get_by_role("button", name="Overwrite with my version").first.click()
    expect(page.get_by_role("region", name="Tags")).to_be_visible()
    expect_status(windows, 409)
    page.get_by_role("button", name="Overwrite with my version").first.click()
    expect(page.locator(".note")).to_have_text("Changes saved")
    expect(page.locator("#source-text")).to_have_text("First line of ours\nMy second line")
    expect(page.locator(".facts .tag")).to_have_count(0)

    page.get_by_role("link", name="History").click()
    expect(page.locator(".version a[data-item]")).to_have_text([f"Version {n}" for n in (4, 3, 2, 1)])
    expect(page.locator(".version").first).to_contain_text("description, tags, content")
    expect(page.locator(".version").nth(1)).to_contain_text("by claude-code")
    page.get_by_role("link", name="Compare version 1 with the current version").click()
    expect(page.get_by_role("region", name="Content").locator(".removed")).to_have_count(2)
    page.get_by_role("link", name="Compare with the previous version").click()
    expect(page.get_by_role("heading", name="The first version")).to_be_visible()
    page.get_by_role("link", name="All versions").click()
    page.get_by_role("button", name="Restore version 2").click()
    expect(page.locator(".note")).to_contain_text("Restored version 2")
    expect(page.locator("#source-text")).to_have_text("First line of theirs\nSecond line")
    expect(page.locator(".facts")).to_contain_text("Version 5")


def test_saving_without_changes_keeps_the_version_and_the_line_endings(
    server: WebServerProcess, windows: BrowserWindows
) -> None:
    odd = "\n \nOne\r\nTwo\rThree\n"
    server.call("create_prompt", name="odd-line-endings", content=odd, description=" spaced ")
    page = open_prompt(windows, server, "odd-line-endings", "/edit")
    save(page)
    expect(page.locator(".note")).to_have_text("No changes to save")
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Title").fill("Odd line endings")
    save(page)
    expect(page.locator(".facts")).to_contain_text("Version 2")
    stored = server.dittybag("prompt", "show", "odd-line-endings", "--json")
    assert r'"\n \nOne\r\nTwo\rThree\n"' in stored
    assert '" spaced "' in stored


def test_a_draft_survives_navigation_and_deletion_of_the_prompt(
    server: WebServerProcess, windows: BrowserWindows
) -> None:
    server.call("create_prompt", name="fragile", content="Old", arguments=ARGUMENTS)
    page = open_prompt(windows, server, "fragile", "/edit")
    form = page.url
    page.get_by_role("textbox", name="Content").fill("Hard work")
    page.get_by_label("Required").nth(1).check()
    page.goto(server.origin + LIST)
    page.goto(form)
    expect(page.get_by_role("textbox", name="Content")).to_have_value("Old")
    page.get_by_role("button", name="Restore draft").click()
    expect(page.get_by_role("textbox", name="Content")).to_have_value("Hard work")
    expect(page.get_by_label("Required").nth(1)).to_be_checked()
    expect(page.get_by_label("Choices").nth(1)).to_have_value("Python\nSQL")
    server.call("delete_prompt", name="fragile")
    expect(page.locator(".warning", has_text="claude-code deleted this prompt")).to_be_visible(timeout=1000)
    save(page)
    expect(page.get_by_role("alert")).to_contain_text("was deleted while you were editing it")
    expect_status(windows, 409)
    save(page)
    expect(page.locator(".note")).to_have_text("Prompt saved")
    expect(page.locator("#source-text")).to_have_text("Hard work")
    page.goto(f"{server.origin}{LIST}/new")
    expect(page.locator("#draft-offer")).to_be_hidden()


def test_a_deletion_is_shown_in_other_windows_and_undone(
    server: WebServerProcess, windows: BrowserWindows
) -> None:
    server.call("create_prompt", name="doomed", content="Keep me")
    page, other = (open_prompt(windows, server, "doomed") for _ in range(2))
    other.get_by_text("Live", exact=True).wait_for()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".note")).to_have_text("Deleted “doomed”")
    doomed = prompt_links(page).filter(has_text="doomed")
    expect(doomed).to_have_count(0)
    expect(other.locator("#prompt .warning")).to_contain_text("“doomed” was deleted", timeout=1000)
    page.get_by_role("button", name="Undo").press("Enter")
    expect(page.locator(".note")).to_have_text("Restored “doomed”")
    expect(page.get_by_role("button", name="Redo")).to_be_focused()
    expect(doomed).to_have_count(1)
    page.keyboard.press("u")
    expect(doomed).to_have_count(0)
    page.reload()
    expect(page.locator("#toast")).to_be_empty()


def test_the_page_of_a_prompt_shows_how_to_use_it(server: WebServerProcess, windows: BrowserWindows) -> None:
    hostile = "<b onclick=x>The 'message'\" {{ error }}"
    arguments = [{"name": "error", "description": hostile, "required": True}, {"name": "tone"}]
    text = "Explain {{ error|trim }} in {{ language }}{% if tone %}, {{ tone }}{% endif %} <i>"
    created = server.call("create_prompt", name="how", content=text, arguments=arguments)
    page = windows.open(server, f"{LIST}/{created['id']}?tab=template")
    head = page.locator("main .facts, main h1")
    expect(head).to_have_count(2)
    on_template = head.all_inner_texts()
    expect(page.locator("#source-text")).to_have_text(text)
    marks = page.locator("#source-text .variable")
    expect(marks).to_have_text(["{{ error|trim }}", "{{ language }}", "{{ tone }}"])
    expect(marks.first).to_have_attribute("title", f"error (required): {hostile}")
    expect(page.locator("#source-text .unknown")).to_have_text("{{ language }}")

    page.get_by_role("link", name="Use", exact=True).click()
    page.get_by_label("error").fill("it's\n$HOME")
    command = page.locator("#command-shell")
    expect(command).to_have_text("""dittybag prompt render how error='it'"'"'s\n$HOME'""")
    page.get_by_label("tone").fill("calm & kind")
    expect(command).to_contain_text("tone='calm & kind'")
    expect(page.locator("#command-slash")).to_have_text("/how")
    assert head.all_inner_texts() == on_template
    page.get_by_role("link", name="History").click()
    page.get_by_role("heading", name="Versions").wait_for()
    assert head.all_inner_texts() == on_template
    page.get_by_role("link", name="Use", exact=True).click()
    expect(page.get_by_label("tone")).to_have_value("calm & kind")
    expect(page.locator("#result-text")).to_contain_text("calm & kind")

    page.get_by_role("button", name="Make it an argument").click()
    expect(page.locator(".note")).to_have_text("The variable {{ language }} is now an argument")
    expect(page.get_by_label("language")).to_be_visible()
    expect(page.get_by_role("button", name="Make it an argument")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Make it an argument")).to_be_visible()


def test_unsaved_changes_are_shown_and_guarded(server: WebServerProcess, windows: BrowserWindows) -> None:
    created = server.call("create_prompt", name="guarded", content="Text\n" * 60)
    page = windows.open(server, f"{LIST}/{created['id']}/edit", own=True)
    questions: list[str] = []

    def stay(dialog: Dialog) -> None:
        questions.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    bar = page.locator(".save-bar")
    expect(bar).to_be_in_viewport(ratio=1)
    title = page.get_by_label("Title")
    original = title.input_value()
    title.fill("Other")
    expect(bar).to_contain_text("Unsaved changes")
    page.get_by_role("button", name="Add an argument").click()
    title.fill(original)
    expect(bar).not_to_contain_text("Unsaved changes")
    title.fill("Other")
    page.get_by_role("link", name="Cancel").click()
    expect(title).to_have_value("Other")
    assert questions == ["beforeunload"]
    page.keyboard.press("Control+s")
    expect(page.get_by_role("heading", name="Other")).to_be_visible()
    page.get_by_role("link", name="Edit").click()
    expect(title).to_have_value("Other")
    page.get_by_role("link", name="Cancel").click()
    expect(page.get_by_role("heading", name="Other", exact=True)).to_be_visible()
    assert questions == ["beforeunload"]


def test_a_toast_stays_while_it_is_used_and_refuses_to_overwrite(
    server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck
) -> None:
    created = server.call("create_prompt", name="brief", content="Text")
    page = windows.open(server, f"{LIST}/{created['id']}/edit", own=True)
    page.clock.install()
    page.get_by_label("Content").fill("Other text")
    save(page)
    toast = page.locator("#toast")
    expect(toast).to_contain_text("Changes saved")
    check_page(page, "a prompt with a toast")
    page.get_by_role("button", name="Undo").hover()
    page.clock.fast_forward(30_000)
    expect(toast).to_contain_text("Changes saved")
    server.call("update_prompt", name="brief", content="Theirs")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("alert")).to_contain_text("This was changed again in the meantime")
    expect_status(windows, 409)
    page.get_by_role("button", name="Dismiss").click()
    expect(toast).to_be_empty()
    expect(page.locator("#content")).to_be_focused()
    page.get_by_role("button", name="Delete").click()
    expect(toast).to_contain_text("Deleted")
    page.mouse.move(5, 5)
    page.clock.fast_forward(9_000)
    expect(toast).to_contain_text("Deleted")
    page.clock.fast_forward(10_000)
    expect(toast).to_be_empty()


@pytest.fixture
def read_only_server(tmp_path: Path) -> Iterator[WebServerProcess]:
    fill_home(tmp_path)
    with WebServerProcess(tmp_path, "--read-only", "--project", "auth-module") as server:
        yield server


def test_a_read_only_server_renders_prompts_but_offers_no_edits(
    read_only_server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(read_only_server, "/p/auth-module/prompts?q=error")
    expect(page.get_by_role("link", name="New prompt")).to_have_count(0)
    prompt_links(page).first.click()
    page.get_by_label("error").fill("no such table")
    expect(page.locator("#result-text")).to_contain_text("no such table")
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)
    page.goto(page.url.partition("?")[0] + "/edit")
    expect(page.get_by_role("heading", name="You can read this project, but not change it")).to_be_visible()
    expect_status(windows, 403)


def test_a_title_that_is_blank_or_has_line_breaks_is_shown_and_survives_an_edit(
    server: WebServerProcess, windows: BrowserWindows
) -> None:
    for title in ("Odd\r\ntitle\twith breaks", " \n"):
        added = server.call("add_prompt", title=title, content="Before", tags=["odd-title"])
        page = windows.open(server, f"{LIST}?tag=odd-title")
        link = prompt_links(page).first
        expect(link).to_have_text("Odd title with breaks" if title.strip() else "prompt")
        link.click()
        expect(page.get_by_role("heading", level=1)).to_have_text(
            "Odd title with breaks" if title.strip() else "prompt"
        )
        page.goto(page.url.partition("?")[0] + "/edit")
        page.get_by_role("textbox", name="Content").fill("After")
        save(page)
        page.wait_for_url(re.compile(r"/prompts/[0-9a-f-]{36}"))
        stored = server.call("get_prompt", id=added["id"])
        assert (stored["title"], stored["content"]) == (title, "After")
    page = windows.open(server, "/p/default/search?q=After")
    expect(page.get_by_role("link", name="(blank title)")).to_be_visible()
