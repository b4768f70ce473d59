"""What all pages share: signing in, the frame, keys, news."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.cli_runner import dittybag
from tests.e2e.conftest import LOOKS, Checked, Look, Visits
from tests.e2e.web_server_process import Served


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
def test_the_sign_in_page_tells_what_to_do(
    served: Served, visits: Visits, checked: Checked, look: Look
) -> None:
    page = visits.open(served, "/", look, known=False)
    assert page.url == f"{served.origin}/sign-in"
    assert page.get_by_role("button", name="Print a new link").is_visible()
    checked(page, f"sign-in-{look.name}")


def test_a_link_works_once(served: Served, visits: Visits) -> None:
    link = served.new_link()
    page = visits.open(served, known=False)
    page.goto(link)
    page.wait_for_url(f"{served.origin}/p/default")
    assert "key=" not in page.evaluate("performance.getEntriesByType('navigation')[0].name")
    other = visits.open(served, known=False)
    other.goto(link)
    assert other.get_by_role("alert").inner_text() == "This link has expired or was already used"
    visits.problems.clear()


def test_the_terminal_shows_another_link_when_a_browser_asks_for_one(served: Served, visits: Visits) -> None:
    page = visits.open(served, known=False)
    served.forget_log()
    page.get_by_role("button", name="Print a new link").click()
    page.get_by_text("The server printed a new link in its terminal").wait_for()
    page.goto(served.wait_for(r"(\S+key=\S+) \(link works once\)"))
    page.wait_for_url(f"{served.origin}/p/default")


def test_one_signs_in_with_a_token_and_out_again(tmp_path: Path, visits: Visits, checked: Checked) -> None:
    dittybag(tmp_path, "user", "add", "ann")
    made = dittybag(tmp_path, "token", "create", "--user", "ann", "--scope", "write", "--json")
    with Served(tmp_path, "--auth", "tokens") as served:
        page = visits.open(served, known=False)
        page.get_by_label("Token").fill("dittybag_wrong")
        page.get_by_role("button", name="Sign in").click()
        assert page.get_by_role("alert").inner_text() == "This token is not valid"
        visits.problems.clear()
        checked(page, "sign-in-with-a-token")
        page.get_by_label("Token").fill(token_in(made.stdout))
        page.keyboard.press("Enter")
        page.wait_for_url(f"{served.origin}/p/default")
        page.locator("summary", has_text="ann").click()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_text("You are signed out").wait_for()
        page.goto(f"{served.origin}/p/default")
        assert page.url == f"{served.origin}/sign-in"


def token_in(text: str) -> str:
    found = re.search(r"dittybag_[\w-]{49}", text)
    assert found is not None
    return found[0]


def test_keys_lead_everywhere(served: Served, visits: Visits) -> None:
    page = visits.open(served)
    for key, name in zip(
        "plrtac", ("Prompts", "Libraries", "Resources", "Tasks", "Activity", "Connect"), strict=True
    ):
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(f"**/{name.lower()}")
        assert page.get_by_role("heading", level=1).inner_text() == name
    page.keyboard.press("?")
    assert page.get_by_role("dialog", name="Keyboard shortcuts").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"


def test_the_page_of_nothing_says_so(served: Served, visits: Visits, checked: Checked) -> None:
    page = visits.open(served, "/p/default/nothing")
    assert page.get_by_role("heading", level=1).inner_text() == "This page does not exist"
    checked(page, "no-such-page")
    visits.problems.clear()


def test_the_page_says_that_it_is_live(served: Served, visits: Visits) -> None:
    page = visits.open(served)
    page.get_by_text("Live", exact=True).wait_for()
