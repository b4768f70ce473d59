"""The library pages: problems, prompts and the preview."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import SCREENS, BrowserWindows, PageCheck, Screen
from tests.e2e.web_server_process import WebServerProcess

LIBRARIES = "/p/default/libraries"
TAB = "/p/default/prompts?tab=libraries"

BROKEN = "First line\n{{ language | nofilter }}\n"


def write_library_file(home: Path, library: str, file: str, text: str) -> None:
    path = home / "libraries" / library / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(scope="module", autouse=True)
def libraries(server: WebServerProcess) -> None:
    """Add a broken library to the one of the sample."""
    write_library_file(
        server.home, "broken", "good.md", "# Hello\n\nSome *words* <script>alert(1)</script>.\n"
    )
    write_library_file(server.home, "broken", "twig.toml", '[prompts.wrong]\ndescription = "Wrong"\n')
    write_library_file(server.home, "broken", "prompts/wrong.md", BROKEN)


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_library_pages_are_accessible_on_every_screen(
    server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck, screen: Screen
) -> None:
    page = windows.open(server, TAB, screen)
    page.get_by_text("is unknown").wait_for()
    check_page(page, f"libraries-{screen.name}")
    page.goto(f"{server.origin}{LIBRARIES}/view?name=broken")
    check_page(page, f"library-{screen.name}")
    page.goto(f"{server.origin}{LIBRARIES}/prompt?name=team:commit")
    check_page(page, f"prompt-{screen.name}")


def test_the_list_follows_the_files_on_disk(server: WebServerProcess, windows: BrowserWindows) -> None:
    page = windows.open(server, TAB)
    libraries = page.locator("#libraries")
    expect(libraries.locator("#library-row-team")).to_contain_text("no problems")
    broken = libraries.locator("#library-row-broken")
    expect(broken).to_contain_text("2 errors")
    expect(broken.locator("code").first).to_have_text("prompts/wrong.md:2")
    expect(broken).to_contain_text("filter nofilter is unknown")
    expect(page.locator("#command-add")).to_have_text("dittybag library add SOURCE")

    # The library is fixed, and another one is added.
    write_library_file(server.home, "broken", "prompts/wrong.md", "All is well\n")
    expect(broken).to_contain_text("no problems")
    write_library_file(server.home, "fresh", "twig.toml", '[prompts.one]\ndescription = "One"\n')
    write_library_file(server.home, "fresh", "prompts/one.md", "One\n")
    expect(libraries.get_by_role("link", name="fresh", exact=True)).to_be_visible()
    write_library_file(server.home, "broken", "prompts/wrong.md", BROKEN)
    expect(broken).to_contain_text("2 errors")

    page.get_by_label("Filter libraries").fill("nothing like that")
    expect(page.get_by_text("No library and no prompt of one matches the filter.")).to_be_visible()
    page.get_by_label("Filter libraries").fill("team")
    page.get_by_role("link", name="team", exact=True).click()
    expect(page.get_by_role("heading", name="team")).to_be_visible()
    page.get_by_label("Filter prompts").fill("nothing like that")
    expect(page.get_by_text("No matching prompts.")).to_be_visible()
    page.get_by_label("Filter prompts").fill("MESSAGE")
    page.get_by_role("link", name="commit").click()
    expect(page.get_by_role("heading", name="team:commit")).to_be_visible()
    expect(page.locator(".facts")).to_contain_text("/libraries/team/prompts/commit.md")


def test_a_prompt_is_rendered_while_typing(server: WebServerProcess, windows: BrowserWindows) -> None:
    page = windows.open(server, f"{LIBRARIES}/prompt?name=team:commit")
    result = page.locator("#result")
    expect(result).to_contain_text("Fill in diff to see the result")
    expect(result.locator(".variable")).to_have_text(["{{ ticket }}", "{{ diff }}"])
    page.get_by_label("diff").fill("{{ 7 * 7 }} <b>\n+ more")
    expect(result).to_contain_text("at most 72 characters.")
    expect(result).to_contain_text("{{ 7 * 7 }} <b>\n+ more")
    page.get_by_label("ticket").fill("ABC-1")
    expect(result).to_contain_text("Begin with ABC-1.")
    expect(page.locator("#command-shell")).to_contain_text("dittybag prompt render team:commit diff=")
    page.get_by_role("link", name="Template", exact=True).click()
    expect(page.locator("#source-text")).to_contain_text("{%- if ticket %}")
    page.get_by_role("link", name="Use", exact=True).click()
    expect(page.get_by_label("ticket")).to_have_value("ABC-1")

    page.goto(f"{server.origin}{LIBRARIES}/prompt?name=broken:wrong")
    expect(result.get_by_role("alert")).to_contain_text("line 2): filter nofilter is unknown")
    write_library_file(server.home, "broken", "prompts/wrong.md", "All is well\n")
    expect(result).to_contain_text("All is well")
    expect(page.locator("#source-text")).to_contain_text("All is well")
    write_library_file(server.home, "broken", "prompts/wrong.md", BROKEN)


def test_a_library_is_updated_from_its_source(
    server: WebServerProcess, windows: BrowserWindows, tmp_path: Path
) -> None:
    source = tmp_path / "shared"
    source.mkdir()
    (source / "first.md").write_text("Text\n")
    server.dittybag("library", "add", str(source))
    page = windows.open(server, TAB)
    page.get_by_role("link", name="shared", exact=True).click()
    expect(page.get_by_role("link", name="first")).to_be_visible()
    (source / "second.md").write_text("Text\n")
    page.get_by_role("button", name="Update").click()
    expect(page.locator(".note")).to_have_text("Updated shared")
    expect(page.get_by_role("link", name="second")).to_be_visible()
    page.goto(f"{server.origin}{TAB}")
    page.get_by_role("button", name="Update all").click()
    expect(page.locator(".note")).to_have_text("Updated 1 library")
    write_library_file(server.home, "shared", "first.md", "Edited here\n")
    page.get_by_role("button", name="Update all").click()
    expect(page.locator(".note")).to_have_text(
        "Library 'shared' was edited by hand; dittybag library update shared --overwrite moves yours away "
        "and updates it"
    )
    shutil.rmtree(source)
    page.get_by_role("button", name="Update all").click()
    expect(page.locator(".note")).to_contain_text("shared: ")


def test_unknown_names_are_reported(server: WebServerProcess, windows: BrowserWindows) -> None:
    page = windows.open(server, f"{LIBRARIES}/prompt?name=team:nothing")
    expect(page.get_by_role("heading", name="Prompt not found: team:nothing")).to_be_visible()
    page.goto(f"{server.origin}{LIBRARIES}/view?name=nothing")
    expect(page.get_by_role("heading", name="Library 'nothing' does not exist")).to_be_visible()
    windows.problems.clear()


@pytest.fixture(scope="module")
def read_only_server(server: WebServerProcess) -> Iterator[WebServerProcess]:
    """A read-only server on the same data."""
    with WebServerProcess(server.home, "--read-only") as read_only_server:
        yield read_only_server


def test_a_read_only_server_previews_prompts_but_offers_no_edits(
    read_only_server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(read_only_server, f"{LIBRARIES}/prompt?name=team:commit")
    page.get_by_label("diff").fill("words")
    expect(page.locator("#result")).to_contain_text("at most 72 characters.")
    page.goto(f"{read_only_server.origin}/p/auth-module/resources/view?uri=file:///docs/api.md")
    expect(page.get_by_role("link", name="Download")).to_be_visible()
    assert page.get_by_role("link", name="Edit").count() == 0
    assert page.get_by_role("button", name="Delete").count() == 0
    assert page.locator("[data-replace]").count() == 0
