"""What a stranger installs works: every command that the README names, on every supported Python.

`make test` installs the wheel with the running Python. `make dist` installs both files with every supported
Python of this machine.
"""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Final

import pytest

import dittybag
from tests.package.distributions import Distributions
from tests.package.installation import SUPPORTED, Installation, find_python
from tests.programs import skip_unless_ci
from tests.stdio_server_process import ROOT

_RUNNING: Final = f"{sys.version_info[0]}.{sys.version_info[1]}"
_EVERYWHERE: Final = bool(os.environ.get("INSTALLS"))
_USERS_OF_EXTRAS: Final = "dittybag.identity.token_verifier, dittybag.storage.postgres.postgres_store"
CASES: Final = (
    [(version, kind) for version in SUPPORTED for kind in ("wheel", "sdist")]
    if _EVERYWHERE
    else [(_RUNNING, "wheel")]
)


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_an_installation_works_and_leaves_only_data(
    version: str, kind: str, distributions: Distributions, tmp_path: Path
) -> None:
    python = find_python(version)
    if python is None:
        skip_unless_ci(f"this machine has no Python {version}")
    file: Path = getattr(distributions, kind)
    installed = Installation(tmp_path, python, f"dittybag[postgres,oauth] @ {file.as_uri()}")
    assert installed.run("--version") == f"dittybag {dittybag.__version__}\n"
    assert "cursor reads it" in installed.run("demo")
    assert not installed.files()
    check_stdio(installed)
    check_connect(installed)
    check_web(installed)
    installed.run_python(f"import asyncpg, cryptography, jwt, {_USERS_OF_EXTRAS}")
    assert installed.run("doctor").endswith("\n0 errors, 0 warnings\n")
    assert installed.files()
    installed.uninstall()
    assert not installed.program.exists()
    assert not list(installed.prefix.glob("lib/python*/site-packages/dittybag*"))
    assert all(name.startswith(".local/share/dittybag/") for name in installed.files()), installed.files()


def test_the_lowest_declared_versions_work(tmp_path: Path) -> None:
    installed = Installation(tmp_path, sys.executable, f"{ROOT}[postgres,oauth]", lowest=True)
    text = installed.work / "greeting.md"
    text.write_text("Hello {{ name }}")
    check_stdio(installed)
    check_web(installed)
    for command in (
        ["prompt", "list", "--project", "work"],
        ["prompt", "render", "greeting", "name=Ada", "--project", "work"],
        ["prompt", "add", "welcome", "--file", str(text)],
        ["resource", "add", str(text)],
        ["task", "add", "Buy milk"],
        ["task", "done", "1"],
        ["search", "milk"],
        ["history"],
        ["undo", "--yes"],
        ["export", "copy.json"],
        ["connect", "cursor", "--dry-run"],
    ):
        assert installed.run(*command), command
    installed.run_python(f"import asyncpg, cryptography, jwt, {_USERS_OF_EXTRAS}")
    assert "0 errors" in installed.run("doctor")


def check_stdio(installed: Installation) -> None:
    requests = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": {"name": "save_prompt", "arguments": _PROMPT}},
    ]
    frames = "".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in requests)
    printed = installed.run("serve", "--project", "auto", "--profile", "agent", stdin=frames)
    answers = {answer["id"]: answer for line in printed.splitlines() if "id" in (answer := json.loads(line))}
    assert answers[1]["result"]["serverInfo"]["name"] == "dittybag"
    assert len(answers[2]["result"]["tools"]) == 16
    assert not answers[3]["result"].get("isError"), answers[3]


_PROMPT: Final = {"name": "greeting", "content": "Hello {{ name }}"}


def check_connect(installed: Installation) -> None:
    file = installed.home / ".claude.json"
    installed.run("connect", "claude-code")
    entry = json.loads(file.read_text())["mcpServers"]["dittybag"]
    assert entry["command"] == str(installed.program)
    installed.run("connect", "claude-code", "--remove")
    assert not file.exists() or "dittybag" not in file.read_text()


def check_web(installed: Installation) -> None:
    """Sign in with the link that the server prints; the pages have styles and contents."""
    server = subprocess.Popen(
        [str(installed.program), "serve", "--http", "127.0.0.1:0"],
        cwd=installed.work,
        env=installed.environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with server:
        try:
            assert server.stderr is not None
            link = next(
                found[0] for line in server.stderr if (found := re.search(r"http://\S+sign-in\S*", line))
            )
            origin, _, key = link.partition("/sign-in?key=")
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            form = urllib.request.Request(f"{origin}/sign-in", f"key={key}".encode(), {"Origin": origin})
            assert "Welcome" in browser.open(form, timeout=20).read().decode()
            page = html.unescape(browser.open(origin, timeout=20).read().decode())
            style = re.search(r'href="(/[^"]+\.css[^"]*)"', page)
            assert style is not None
            assert browser.open(origin + style[1], timeout=20).status == 200
            assert "greeting" in browser.open(f"{origin}/p/work/prompts", timeout=20).read().decode()
        finally:
            server.terminate()
