"""The pages of prompt libraries: how they are doing, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import LOOKS, Checked, Look, Visits
from tests.e2e.web_server_process import Served

HERE = "/p/default/libraries"

BROKEN = "First line\n{{ language | nofilter }}\n"


def write(home: Path, library: str, file: str, text: str) -> None:
    path = home / "libraries" / library / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(scope="module", autouse=True)
def libraries(served: Served) -> None:
    """A library with something wrong in it beside the one of the sample."""
    write(served.home, "broken", "good.md", "# Hello\n\nSome *words* <script>alert(1)</script>.\n")
    write(served.home, "broken", "twig.toml", '[prompts.wrong]\ndescription = "Wrong"\n')
    write(served.home, "broken", "prompts/wrong.md", BROKEN)


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
def test_every_view_is_without_barriers(served: Served, visits: Visits, checked: Checked, look: Look) -> None:
    page = visits.open(served, HERE, look)
    page.get_by_text("is unknown").wait_for()
    checked(page, f"libraries-{look.name}")
    page.goto(f"{served.origin}{HERE}/view?name=broken")
    checked(page, f"library-{look.name}")
    page.goto(f"{served.origin}{HERE}/prompt?name=team:commit")
    checked(page, f"prompt-{look.name}")


def test_libraries_are_shown_as_they_are_on_disk(served: Served, visits: Visits) -> None:
    page = visits.open(served, HERE)
    libraries = page.locator("#libraries")
    expect(libraries.get_by_role("listitem").filter(has_text="team")).to_contain_text("no problems")
    broken = libraries.locator(".list > li").filter(has_text="broken")
    expect(broken).to_contain_text("2 errors")
    expect(broken.locator("code").first).to_have_text("prompts/wrong.md:2")
    expect(broken).to_contain_text("filter nofilter is unknown")
    expect(page.locator("#command-add")).to_have_text("dittybag library add SOURCE")

    # Somebody mends it, and somebody else adds a library.
    write(served.home, "broken", "prompts/wrong.md", "All is well\n")
    expect(broken).to_contain_text("no problems")
    write(served.home, "fresh", "twig.toml", '[prompts.one]\ndescription = "One"\n')
    write(served.home, "fresh", "prompts/one.md", "One\n")
    expect(libraries.get_by_role("link", name="fresh")).to_be_visible()
    write(served.home, "broken", "prompts/wrong.md", BROKEN)
    expect(broken).to_contain_text("2 errors")

    page.get_by_role("link", name="team").click()
    expect(page.get_by_role("heading", name="team")).to_be_visible()
    page.get_by_label("Filter prompts").fill("nothing like that")
    expect(page.get_by_text("No matching prompts.")).to_be_visible()
    page.get_by_label("Filter prompts").fill("MESSAGE")
    page.get_by_role("link", name="commit").click()
    expect(page.get_by_role("heading", name="team:commit")).to_be_visible()
    expect(page.locator(".traits")).to_contain_text("prompts/commit.md")


def test_a_prompt_says_what_it_says_as_one_types(served: Served, visits: Visits) -> None:
    page = visits.open(served, f"{HERE}/prompt?name=team:commit")
    result = page.locator("#result")
    expect(result).to_contain_text("Still needed: diff")
    page.get_by_label("diff").fill("{{ 7 * 7 }} <b>\n+ more")
    expect(result).to_contain_text("at most 72 characters.")
    expect(result).to_contain_text("{{ 7 * 7 }} <b>\n+ more")
    page.get_by_label("ticket").fill("ABC-1")
    expect(result).to_contain_text("Begin with ABC-1.")
    page.get_by_role("link", name="Source", exact=True).click()
    expect(page.locator("#source")).to_contain_text("{%- if ticket %}")
    assert page.get_by_label("ticket").input_value() == "ABC-1"

    page.goto(f"{served.origin}{HERE}/prompt?name=broken:wrong")
    expect(result.get_by_role("alert")).to_contain_text("Line 2 filter nofilter is unknown")
    write(served.home, "broken", "prompts/wrong.md", "All is well\n")
    expect(result).to_contain_text("All is well")
    expect(page.locator("#prompt .card")).to_contain_text("All is well")
    write(served.home, "broken", "prompts/wrong.md", BROKEN)


def test_what_is_not_there_is_said(served: Served, visits: Visits) -> None:
    page = visits.open(served, f"{HERE}/prompt?name=team:nothing")
    expect(page.get_by_role("heading", name="Prompt not found: team:nothing")).to_be_visible()
    page.goto(f"{served.origin}{HERE}/view?name=nothing")
    expect(page.get_by_role("heading", name="Library 'nothing' does not exist")).to_be_visible()
    visits.problems.clear()


@pytest.fixture(scope="module")
def display(served: Served) -> Iterator[Served]:
    """A server on the same data that only shows things."""
    with Served(served.home, "--read-only") as display:
        yield display


def test_a_server_that_only_shows_things_still_tries_prompts(display: Served, visits: Visits) -> None:
    page = visits.open(display, f"{HERE}/prompt?name=team:commit")
    page.get_by_label("diff").fill("words")
    expect(page.locator("#result")).to_contain_text("at most 72 characters.")
    page.goto(f"{display.origin}/p/auth-module/resources/view?uri=file:///docs/api.md")
    expect(page.get_by_role("link", name="Download")).to_be_visible()
    assert page.get_by_role("link", name="Edit").count() == 0
    assert page.get_by_role("button", name="Delete").count() == 0
    assert page.locator("[data-replace]").count() == 0
