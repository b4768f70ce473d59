"""`dittybag demo`, which leaves the user's data unchanged."""

from __future__ import annotations

import re
from html import unescape
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

from msgspec import Struct

from tests.cli.cli_runner import data, dittybag
from tests.cli.pseudo_terminal import run_in_terminal, strip_colours
from tests.web.browser_client import BrowserClient


class DemoServer(Struct, frozen=True):
    """The server of a running demo."""

    port: int


def test_the_tour_shows_a_real_session_and_what_to_do_next(tmp_path: Path) -> None:
    result = dittybag(tmp_path / "home", "demo")
    assert result.stderr == ""
    for number in range(1, 10):
        assert f"\n{number}. " in result.stdout
    assert "claude mcp add dittybag -- " in result.stdout
    assert '"mcpServers"' in result.stdout
    # The user's data folder was not created.
    assert not (tmp_path / "home").exists()


def test_without_a_terminal_the_demo_prints_the_tour(tmp_path: Path) -> None:
    assert dittybag(tmp_path, "demo", "--once").stdout.count("\n9. ") == 1
    assert dittybag(tmp_path, "demo").stdout.count("\n9. ") == 1


def test_on_a_terminal_the_demo_serves_the_web_ui_until_interrupted(tmp_path: Path) -> None:
    def visit(screen: str) -> str:
        found = re.search(r"http://127\.0\.0\.1:\d+/sign-in\?key=[\w-]+", strip_colours(screen))
        assert found is not None
        browser = build_opener(HTTPCookieProcessor(CookieJar()))
        site, _, key = found[0].partition("/sign-in?")
        with browser.open(f"{site}/sign-in", key.encode(), timeout=10) as welcome:
            assert welcome.status == 200
        with browser.open(site, timeout=10) as first:
            assert first.url.endswith("/p/auth-module")
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
        page = unescape(browser.get("/p/auth-module/connect").text)
        assert "This is the demo, which ends with Ctrl-C" in page
        assert f'"url": "http://127.0.0.1:{found[1]}/mcp"' in page
        assert "Manual setup: local (stdio)" not in page
        assert "/connect/cursor" not in page
        secret = {"form_secret": browser.secret_of("/p/auth-module")}
        refused = browser.post("/p/auth-module/connect/cursor", secret)
        assert refused.status == 409
        assert "This is the demo" in refused.text
        return "\x03"

    variables = {"HOME": str(user_home), "XDG_CONFIG_HOME": str(user_home / ".config")}
    for keep in ((), ("--keep", str(tmp_path / "kept.db"))):
        run_in_terminal(
            tmp_path / "home",
            "demo",
            "--no-browser",
            *keep,
            answers=[("Press Ctrl-C to stop", visit)],
            variables=variables,
        )
        files = [str(file.relative_to(user_home)) for file in user_home.rglob("*") if file.is_file()]
        assert files == [".cursor/mcp.json"]
        assert (user_home / ".cursor" / "mcp.json").read_text() == before


def test_a_narrow_terminal_gets_one_column(tmp_path: Path) -> None:
    text = dittybag(tmp_path, "demo", variables={"COLUMNS": "60", "FORCE_COLOR": "1"}).stdout
    assert "-> initialize" in text
    assert not any("-> " in line and "<- " in line for line in text.splitlines())


def test_json_output_of_the_exchanges(tmp_path: Path) -> None:
    exchanges = data(dittybag(tmp_path, "demo", "--json"))["exchanges"]
    assert [step["request"]["method"] for step in exchanges[:2]] == ["initialize", "prompts/list"]
    refused = [step for step in exchanges if step["answer"]["result"].get("isError")]
    assert [step["request"]["params"]["name"] for step in refused] == ["create_prompt"]


def test_the_sample_can_be_saved_but_overwrites_no_file(tmp_path: Path) -> None:
    kept = tmp_path / "sample.db"
    text = dittybag(tmp_path, "demo", "--keep", str(kept)).stdout
    assert text.endswith(
        f"To open it in your browser, run: dittybag serve --http --db {kept} --project auth-module\n"
    )
    listed = data(dittybag(tmp_path, "project", "list", "--db", str(kept), "--json"))["projects"]
    sample = {project["name"]: project for project in listed}["auth-module"]
    empty = dittybag(tmp_path, "prompt", "list", "--db", str(kept))
    assert empty.stderr.endswith("hint: other projects have prompts: auth-module; use --project NAME\n")
    assert (sample["prompts"], sample["resources"]) == (5, 3)
    before = kept.read_bytes()
    assert "already exists" in dittybag(tmp_path, "demo", "--keep", str(kept), status=2).stderr
    assert kept.read_bytes() == before


def test_the_sample_has_tasks_of_people_and_agents(tmp_path: Path) -> None:
    kept = str(tmp_path / "sample.db")
    run_in_terminal(
        tmp_path / "home",
        *("demo", "--no-browser", "--keep", kept),
        answers=[("Press Ctrl-C to stop", "\x03")],
    )
    listed = data(
        dittybag(tmp_path, "task", "list", "-p", "auth-module", "--include-done", "--db", kept, "--json")
    )
    tasks = listed["tasks"]
    assert {task["status"] for task in tasks} == {"todo", "doing", "review", "done"}
    assert {"ann", "claude-code", "cursor"} <= {task["assignee"] for task in tasks}
    assert [task["claim"]["holder"] for task in tasks if task["claim"]] == ["claude-code"]
    assert any(task["parent"] and task["blocked_by"] and task["labels"] for task in tasks)
    ready = data(dittybag(tmp_path, "task", "list", "--ready", "--db", kept, "--json"))["tasks"]
    assert {task["title"] for task in ready} >= {"Rotate the signing key", "Ask about password rules"}
    assert {task["shared"] for task in ready} == {True, False}
    assert any(task["due_date"] for task in tasks)
    listed = data(
        dittybag(tmp_path, "history", "-p", "auth-module", "--db", kept, "--limit", "500", "--json")
    )
    changes = listed["changes"]
    assert len({change["at"][:10] for change in changes}) > 20
    actors = {"ann via web", "ben via web", "claude-code", "cursor", "codex"}
    assert actors == {change["actor"] for change in changes}
