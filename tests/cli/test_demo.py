"""`dittybag demo`, which leaves the user's data unchanged."""

from __future__ import annotations

import os
import re
from html import unescape
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor, build_opener

from msgspec import Struct

from dittybag.assembly.workspace_session import with_workspace
from dittybag.cli.sample_workspace import PROJECT, fill_demo
from dittybag.config import environment_with_home, settings
from tests.cli.cli_runner import data, dittybag
from tests.cli.pseudo_terminal import run_in_terminal, strip_colours
from tests.web.browser_client import BrowserClient


class DemoServer(Struct, frozen=True):
    """The server of a running demo."""

    port: int


def test_without_a_terminal_two_clients_share_a_prompt_and_undo_it(tmp_path: Path) -> None:
    result = dittybag(tmp_path / "home", "demo")
    assert result.stderr == ""
    served, saved, read, undone, untouched = result.stdout.splitlines()
    assert re.search(r"auth-module at http://127\.0\.0\.1:\d+/mcp\.$", served)
    assert saved == "claude-code saves a prompt: release-notes"
    assert read == "cursor reads it: Write release notes for version 2.0."
    assert undone.startswith("claude-code undoes it, which leaves code-review, ")
    assert "release-notes" not in undone
    assert untouched.startswith("Your own data was not touched.")
    # The user's data folder was not created.
    assert not (tmp_path / "home").exists()


def test_on_a_terminal_the_demo_serves_the_web_ui_until_interrupted(tmp_path: Path) -> None:
    def visit(screen: str) -> str:
        found = re.search(r"http://127\.0\.0\.1:\d+/sign-in\?key=[\w-]+", strip_colours(screen))
        assert found is not None
        browser = build_opener(HTTPCookieProcessor(CookieJar()))
        site, _, key = found[0].partition("/sign-in?")
        with browser.open(f"{site}/sign-in", key.encode(), timeout=10) as welcome:
            assert welcome.status == 200
        with browser.open(site, timeout=10) as first:
            assert first.url.endswith(f"/p/{PROJECT}")
        return "\x03"

    screen = run_in_terminal(
        tmp_path / "home", "demo", "--no-browser", answers=[("Press Ctrl-C to stop", visit)]
    )
    assert "Open this link in your browser" in strip_colours(screen)
    assert list(tmp_path.iterdir()) == []


def test_the_demo_never_writes_to_the_files_of_a_client(tmp_path: Path) -> None:
    user_home = tmp_path / "user"
    (user_home / ".cursor").mkdir(parents=True)
    before = '{"mcpServers": {"mine": {"command": "x"}}}'
    (user_home / ".cursor" / "mcp.json").write_text(before)

    def visit(screen: str) -> str:
        found = re.search(r"http://127\.0\.0\.1:(\d+)/sign-in(\?key=[\w-]+)", strip_colours(screen))
        assert found is not None
        browser = BrowserClient(DemoServer(int(found[1])))
        assert browser.open_link(found[2]).status == 200
        page = unescape(browser.get(f"/p/{PROJECT}/connect").text)
        assert "This is the demo, which ends with Ctrl-C" in page
        assert f'"url": "http://127.0.0.1:{found[1]}/mcp"' in page
        assert "Manual setup: local (stdio)" not in page
        assert "/connect/cursor" not in page
        secret = {"form_secret": browser.secret_of(f"/p/{PROJECT}")}
        refused = browser.post(f"/p/{PROJECT}/connect/cursor", secret)
        assert refused.status == 409
        assert "This is the demo" in refused.text
        return "\x03"

    variables = {"HOME": str(user_home), "XDG_CONFIG_HOME": str(user_home / ".config")}
    run_in_terminal(
        tmp_path / "home",
        *("demo", "--no-browser"),
        answers=[("Press Ctrl-C to stop", visit)],
        variables=variables,
    )
    files = [str(file.relative_to(user_home)) for file in user_home.rglob("*") if file.is_file()]
    assert files == [".cursor/mcp.json"]
    assert (user_home / ".cursor" / "mcp.json").read_text() == before


def test_the_sample_has_the_work_of_a_person_and_an_agent(tmp_path: Path) -> None:
    with_workspace(settings(environment_with_home(os.fspath(tmp_path))), fill_demo)

    def listed(*words: str) -> list[dict[str, Any]]:
        (items,) = (value for value in data(dittybag(tmp_path, *words, "--json")).values() if value)
        return list(items)

    tasks = listed("task", "list", "-p", PROJECT, "--include-done")
    assert {task["status"] for task in tasks} == {"todo", "doing", "review", "done"}
    assert [task["title"] for task in tasks if task["claim"]] == ["Hash passwords with argon2"]
    assert any(task["parent"] and task["blocked_by"] and task["labels"] for task in tasks)
    assert len(listed("pin", "--list", "-p", PROJECT)) == 3
    changes = listed("history", "-p", PROJECT, "--limit", "100")
    assert 35 <= len(changes) <= 45
    assert {change["actor"] for change in changes} == {"ann via web", "claude-code"}
