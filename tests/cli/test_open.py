"""`dittybag open`: the web UI of a workspace, on a server that runs already or one in the background."""

from __future__ import annotations

import http.client
import os
import re
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from msgspec import Struct

from dittybag.cli.open_ import PAGES
from dittybag.web.routes import ROUTES
from tests.cli.cli_runner import data, dittybag
from tests.cli.pseudo_terminal import run_in_terminal
from tests.e2e.web_server_process import WebServerProcess
from tests.postgres_servers import PostgresServer
from tests.web.browser_client import BrowserClient

#: Without a display, no browser is started.
NO_DISPLAY = {"BROWSER": "", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
LINK = re.compile(r"http://127\.0\.0\.1:\d+/sign-in\?key=[\w-]{22}")


def open_page(home: Path, *arguments: str) -> Any:
    return data(dittybag(home, "open", *arguments, "--json", variables=NO_DISPLAY))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "home"
    dittybag(home, "prompt", "add", "greet", "Hello")
    dittybag(home, "task", "add", "Call the bank")
    yield home
    dittybag(home, "open", "--stop")


class OpenedServer(Struct, frozen=True):
    """The server of an opened link."""

    origin: str

    @property
    def port(self) -> int:
        return int(self.origin.rpartition(":")[2])


def sign_in(link: str) -> tuple[BrowserClient, str]:
    """Open a link in a new browser; return it and the page that it is sent to."""
    browser = BrowserClient(OpenedServer("/".join(link.split("/")[:3])))
    response = browser.open_link(link)
    assert response.status == 200
    found = re.search(r'content="0;url=([^"]+)"', response.text)
    assert found is not None
    return browser, unescape(found[1])


def is_listening(link: str) -> bool:
    parts = urlsplit(link)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    try:
        connection.request("GET", "/healthz")
    except ConnectionRefusedError:
        return False
    finally:
        connection.close()
    return True


def test_a_server_is_started_used_again_and_stopped(home: Path) -> None:
    printed = dittybag(home, "open", variables=NO_DISPLAY)
    link = printed.stdout.rstrip("\n")
    assert LINK.fullmatch(link)
    assert len(link) < 80
    assert "it ends after an hour without visits" in printed.stderr
    browser, page = sign_in(link)
    address = link.partition("/sign-in")[0]
    assert page == "/p/default"
    assert browser.get(page).status == 200
    assert BrowserClient(browser.server).open_link(link).status == 403

    for arguments, path in (
        (("tasks",), "/p/default/tasks"),
        (("1",), "/p/default/tasks/1"),
        (("prompts/greet",), r"/p/default/prompts/[0-9a-f-]{36}"),
        (("libraries",), r"/p/default/prompts\?tab=libraries"),
        (("libraries/team",), "/p/default/libraries/view?name=team"),
    ):
        again = open_page(home, *arguments, "--no-browser")
        assert (again["started"], again["opened"]) == (False, False)
        assert again["address"] == address
        visitor, sent_to = sign_in(again["link"])
        assert path == sent_to or re.fullmatch(path, sent_to)
        assert ("Call the bank" in visitor.get(sent_to).text) == ("/tasks" in path)

    (run_file,) = (home / "servers").glob("*.json")
    assert stat.S_IMODE(run_file.stat().st_mode) == 0o600
    assert stat.S_IMODE((home / "servers").stat().st_mode) == 0o700
    (log,) = (home / "servers").glob("*.log")
    assert "key=" not in log.read_text()
    sign_in_page = BrowserClient(browser.server).get("/sign-in").text
    assert "dittybag open" in sign_in_page
    assert "Print a new link" not in sign_in_page

    assert data(dittybag(home, "open", "--stop", "--json"))["stopped"] == [address]
    assert not is_listening(link)
    assert list((home / "servers").glob("*.json")) == []
    assert "no server runs in the background" in dittybag(home, "open", "--stop").stderr


def test_a_server_of_a_terminal_is_used_and_one_that_was_killed_is_forgotten(home: Path) -> None:
    with WebServerProcess(home) as server:
        opened = open_page(home)
        assert (opened["address"], opened["started"]) == (server.origin, False)
        assert sign_in(opened["link"])[1] == "/p/default"
        same = open_page(home, "--db", str(home / "default.db"))
        assert same["address"] == server.origin
        refused = dittybag(home, "open", "--workspace", "none", status=3)
        assert "There is no Dittybag database at" in refused.stderr
        assert "was started by dittybag serve; stop it there" in dittybag(home, "open", "--stop").stderr
        os.kill(opened["pid"], signal.SIGKILL)
        server.process.wait(20)
        assert len(list((home / "servers").glob("*.json"))) == 1
        assert open_page(home)["started"] is True
        assert len(list((home / "servers").glob("*.json"))) == 1


def test_a_workspace_on_postgres_is_opened_without_showing_its_password(
    tmp_path: Path, shared_postgres: PostgresServer
) -> None:
    shared_postgres.sql("CREATE DATABASE opened")
    url = shared_postgres.url("opened", password="s3cret")
    dittybag(tmp_path, "task", "add", "Call the bank", "--db", url)
    try:
        opened = open_page(tmp_path, "1", "--db", url)
        browser, page = sign_in(opened["link"])
        assert "Call the bank" in browser.get(page).text
        assert b"s3cret" not in Path(f"/proc/{opened['pid']}/cmdline").read_bytes()
        for file in (tmp_path / "servers").iterdir():
            assert "s3cret" not in file.read_text()
        assert open_page(tmp_path, "--db", url)["pid"] == opened["pid"]
    finally:
        stopped = data(dittybag(tmp_path, "open", "--stop", "--db", url, "--json"))
    assert stopped["stopped"] == [opened["address"]]


def test_a_link_is_given_only_to_whoever_knows_the_secret_of_the_server(home: Path) -> None:
    with WebServerProcess(home) as server:
        client = BrowserClient(server)
        for secret in ("", "0" * 64, "é"):
            assert client.post("/sign-in/link", x_owner_secret=secret).status == 403
        (run_file,) = (home / "servers").glob("*.json")
        known = re.search('"secret":"([^"]+)"', run_file.read_text())
        assert known is not None
        foreign = client.post("/sign-in/link", x_owner_secret=known[1], origin="http://example.org")
        assert foreign.status == 403
        for page in ("//example.org", "https://example.org/", "/p/\\example.org", "/static/x"):
            response = client.post("/sign-in/link", {"page": page}, x_owner_secret=known[1])
            assert response.status == 400


def test_a_server_that_requires_tokens_gives_no_link(home: Path) -> None:
    with WebServerProcess(home, "--auth", "tokens") as server:
        opened = open_page(home, "tasks")
        assert opened["link"] == f"{server.origin}/p/default/tasks"
        assert opened["needs_token"] is True


def test_a_server_exits_when_it_has_no_visits(tmp_path: Path) -> None:
    begun = time.monotonic()
    served = dittybag(tmp_path, "serve", "--http", "127.0.0.1:0", "--until-idle", "1s")
    assert time.monotonic() - begun >= 1
    assert "key=" not in served.stderr
    refused = dittybag(tmp_path, "serve", "--http", "--until-idle", "soon", status=2)
    assert "--until-idle must be a time such as 90s, 15m or 2h" in refused.stderr
    assert "requires --http" in dittybag(tmp_path, "serve", "--until-idle", "1h", status=2).stderr


def test_the_browser_is_opened_and_serve_offers_to_open_it(home: Path, tmp_path: Path) -> None:
    visited = tmp_path / "visited"
    os.mkfifo(visited)
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{visited}"\n')
    browser.chmod(0o755)
    variables = {"BROWSER": f"{browser} %s"}
    with subprocess.Popen(["cat", str(visited)], stdout=subprocess.PIPE, text=True) as reader:
        assert "http" in dittybag(home, "open", variables=variables).stdout
        assert reader.stdout is not None
        assert LINK.fullmatch(reader.stdout.read().strip())

    def stop(screen: str) -> str:
        with visited.open() as opened:
            assert LINK.fullmatch(opened.read().strip())
        return "\x03"

    run_in_terminal(
        home,
        "serve",
        "--http",
        "127.0.0.1:0",
        answers=[("Press Enter to open the web UI in your browser.\r\n", "\n"), ("\r\n\r\n", stop)],
        variables=variables,
    )
    quiet = run_in_terminal(
        home, "serve", "--http", "127.0.0.1:0", answers=[("works once", "\x03")], variables=NO_DISPLAY
    )
    assert "Press Enter" not in quiet


def test_pages_are_those_of_the_web_ui(tmp_path: Path) -> None:
    patterns = {route.pattern for route in ROUTES if route.method == "GET"}
    assert {f"/{page}" for page in PAGES if page not in ("home", "libraries")} <= patterns
    assert "settings" in PAGES
    assert "did you mean tasks?" in dittybag(tmp_path, "open", "taks", status=2).stderr
    assert "There is no page 'tasks/x'" in dittybag(tmp_path, "open", "tasks/x", status=2).stderr
    assert "--stop cannot be used" in dittybag(tmp_path, "open", "tasks", "--stop", status=2).stderr
