"""`dittybag demo`, which does not touch the data of the user."""

from __future__ import annotations

import re
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

from tests.cli.cli_runner import data, dittybag
from tests.cli.pseudo_terminal import at_terminal, plain


def test_the_tour_shows_a_real_session_and_what_to_do_next(tmp_path: Path) -> None:
    done = dittybag(tmp_path / "home", "demo")
    assert done.stderr == ""
    for number in range(1, 10):
        assert f"\n{number}. " in done.stdout
    assert "claude mcp add dittybag -- " in done.stdout
    assert '"mcpServers"' in done.stdout
    # The data folder of the user was not created.
    assert not (tmp_path / "home").exists()


def test_where_there_is_no_terminal_it_is_the_tour(tmp_path: Path) -> None:
    assert dittybag(tmp_path, "demo", "--once").stdout.count("\n9. ") == 1
    assert dittybag(tmp_path, "demo").stdout.count("\n9. ") == 1


def test_at_a_terminal_it_shows_the_pages_until_it_is_ended(tmp_path: Path) -> None:
    def visit(screen: str) -> str:
        found = re.search(r"http://127\.0\.0\.1:\d+/sign-in\?key=[\w-]+", plain(screen))
        assert found is not None
        browser = build_opener(HTTPCookieProcessor(CookieJar()))
        with browser.open(found[0], timeout=10) as welcome:
            assert welcome.status == 200
        with browser.open(found[0].partition("/sign-in")[0], timeout=10) as first:
            assert first.url.endswith("/p/auth-module")
        return "\x03"

    screen = at_terminal(tmp_path / "home", "demo", "--no-browser", answers=[("Press Ctrl-C to stop", visit)])
    assert "Open this link in your browser" in plain(screen)
    assert list(tmp_path.iterdir()) == []


def test_a_narrow_terminal_gets_one_column(tmp_path: Path) -> None:
    text = dittybag(tmp_path, "demo", variables={"COLUMNS": "60", "FORCE_COLOR": "1"}).stdout
    assert "-> initialize" in text
    assert not any("-> " in line and "<- " in line for line in text.splitlines())


def test_the_exchanges_as_json(tmp_path: Path) -> None:
    exchanges = data(dittybag(tmp_path, "demo", "--json"))["exchanges"]
    assert [step["request"]["method"] for step in exchanges[:2]] == ["initialize", "prompts/list"]
    refused = [step for step in exchanges if step["answer"]["result"].get("isError")]
    assert [step["request"]["params"]["name"] for step in refused] == ["create_prompt"]


def test_the_sample_can_be_kept_and_overwrites_nothing(tmp_path: Path) -> None:
    kept = tmp_path / "sample.db"
    assert str(kept) in dittybag(tmp_path, "demo", "--keep", str(kept)).stdout.replace("\n", "")
    listed = data(dittybag(tmp_path, "project", "list", "--db", str(kept), "--json"))["projects"]
    sample = {project["name"]: project for project in listed}["auth-module"]
    assert (sample["prompts"], sample["resources"]) == (5, 3)
    before = kept.read_bytes()
    assert "already exists" in dittybag(tmp_path, "demo", "--keep", str(kept), status=2).stderr
    assert kept.read_bytes() == before
