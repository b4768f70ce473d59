"""Signing in and out, keyboard navigation, unknown pages and the live state."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.cli_runner import dittybag
from tests.e2e.conftest import SCREENS, BrowserWindows, PageCheck, Screen
from tests.e2e.web_server_process import WebServerProcess


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_the_sign_in_page_says_how_to_sign_in(
    server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck, screen: Screen
) -> None:
    page = windows.open(server, "/", screen, signed_in=False)
    assert page.url == f"{server.origin}/sign-in"
    assert page.get_by_role("button", name="Print a new link").is_visible()
    check_page(page, f"sign-in-{screen.name}")


def test_a_new_link_is_printed_on_request(server: WebServerProcess, windows: BrowserWindows) -> None:
    page = windows.open(server, signed_in=False)
    server.clear_log()
    page.get_by_role("button", name="Print a new link").click()
    page.get_by_text("The newest link is in the terminal of the server").wait_for()
    page.goto(server.wait_for(r"(\S+key=\S+) \(works once\)"))
    page.wait_for_url(f"{server.origin}/p/default")


def test_a_user_signs_in_with_a_token_and_out_again(
    tmp_path: Path, windows: BrowserWindows, check_page: PageCheck
) -> None:
    dittybag(tmp_path, "user", "add", "ann")
    created = dittybag(tmp_path, "token", "create", "--user", "ann", "--scope", "write", "--json")
    with WebServerProcess(tmp_path, "--auth", "tokens") as server:
        page = windows.open(server, signed_in=False)
        page.get_by_label("Token").fill("dittybag_wrong")
        page.get_by_role("button", name="Sign in").click()
        assert page.get_by_role("alert").inner_text() == "This token is not valid"
        windows.problems.clear()
        check_page(page, "sign-in-with-a-token")
        page.get_by_label("Token").fill(find_token(created.stdout))
        page.keyboard.press("Enter")
        page.wait_for_url(f"{server.origin}/p/default")
        page.locator("summary", has_text="ann").click()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_text("You are signed out").wait_for()
        page.goto(f"{server.origin}/p/default")
        assert page.url == f"{server.origin}/sign-in"


def find_token(text: str) -> str:
    found = re.search(r"dittybag_[\w-]{49}", text)
    assert found is not None
    return found[0]


def test_keyboard_shortcuts_open_every_section(server: WebServerProcess, windows: BrowserWindows) -> None:
    page = windows.open(server)
    for key, name in zip(
        "prtac,", ("Prompts", "Resources", "Tasks", "Activity", "Connect", "Settings"), strict=True
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


def test_an_unknown_page_is_reported(
    server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck
) -> None:
    page = windows.open(server, "/p/default/nothing")
    assert page.get_by_role("heading", level=1).inner_text() == "This page does not exist"
    check_page(page, "no-such-page")
    windows.problems.clear()


def test_a_page_shows_that_live_updates_are_on(server: WebServerProcess, windows: BrowserWindows) -> None:
    page = windows.open(server)
    page.get_by_text("Live", exact=True).wait_for()
