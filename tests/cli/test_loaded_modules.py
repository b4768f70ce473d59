"""What commands and servers import, because start-up time is mostly the time of imports."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.stdio_server_process import ROOT

#: Runs a command, then prints the modules that it has imported, and whether garbage is rarely collected, as
#: during a start.
PROGRAM = """
import gc, sys
from dittybag.__main__ import main
status = main()
rare = ["rare-collections"] if gc.get_threshold()[0] > 10_000 else []
print("MODULES", *sys.modules, *rare, file=sys.stderr)
sys.exit(status)
"""
INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
LIST_PROMPTS = b'{"jsonrpc":"2.0","id":2,"method":"prompts/list"}\n'

#: Slow to import, and needed by few commands.
HEAVY = {"anyascii", "asyncpg", "importlib.metadata", "jwt", "markdown_it", "minijinja", "pygments"}
HEAVY |= {"ssl", "uvicorn", "uvloop", "watchfiles", "yaml", "http", "email", "json", "urllib.parse"}
HEAVY |= {"typing_extensions"}
#: Loaded by msgspec, `logging` and asyncio otherwise.
RARELY_USED = {"inspect", "platform", "subprocess", "textwrap", "tokenize"}

ENGINE = {"dittybag.contracts", "dittybag.http", "dittybag.web", "dittybag.protocol.server"}
OTHERS = {"dittybag.clients", "dittybag.exchange", "dittybag.identity", "dittybag.library"}


@contextmanager
def start(home: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", PROGRAM, *arguments]
    environment = {**os.environ, "DITTYBAG_HOME": str(home)}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
    ) as process:
        yield process


def loaded(process: subprocess.Popen[bytes], stdin: bytes = b"") -> set[str]:
    """Wait for the end of a process and return the modules that it has imported."""
    _, errors = process.communicate(stdin, timeout=60)
    assert process.returncode == 0, errors
    return set(errors.decode().rpartition("MODULES ")[2].split())


def require_not_loaded(modules: set[str], *names: str) -> None:
    assert sorted(modules & set(names)) == []


def require_at_most(count: int, modules: set[str]) -> None:
    """Check the number of our own modules."""
    own = sorted(name for name in modules if name.startswith("dittybag"))
    assert len(own) <= count, own


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        # Tasks are listed with their claims and with what they wait for.
        ("task list", 97),
        ("prompt list", 91),
        ("resource list", 91),
        # Projects are listed with the folders that are linked to them.
        ("project list", 92),
        ("history", 91),
    ],
)
def test_a_data_command_loads_only_the_store_and_the_services(
    tmp_path: Path, arguments: str, count: int
) -> None:
    with start(tmp_path, "task", "add", "x") as process:
        loaded(process)
    with start(tmp_path, *arguments.split()) as process:
        modules = loaded(process)
    require_not_loaded(modules, *HEAVY, *ENGINE, *OTHERS)
    require_at_most(count, modules)


@pytest.mark.parametrize(("words", "count"), [((), 20), (("library", "add"), 30)])
def test_help_loads_no_store(tmp_path: Path, words: tuple[str, ...], count: int) -> None:
    with start(tmp_path, *words, "--help") as process:
        modules = loaded(process)
    assert not modules & (
        HEAVY | ENGINE | OTHERS | {"apsw", "asyncio", "dittybag.storage", "dittybag.services"}
    )
    require_at_most(count, modules)


@pytest.mark.parametrize(("project", "count"), [((), 166), (("--project", "auto"), 172)], ids=["", "auto"])
def test_a_server_on_stdio_loads_no_command_line_and_no_http(
    tmp_path: Path, project: tuple[str, ...], count: int
) -> None:
    with start(tmp_path, "serve", *project) as process:
        modules = loaded(process, INITIALIZE + LIST_PROMPTS)
    require_not_loaded(modules, *HEAVY, *RARELY_USED)
    require_not_loaded(modules, "click", "dittybag.cli.commands", "dittybag.http", "dittybag.web")
    require_not_loaded(modules, "dittybag.clients", "dittybag.exchange", "dittybag.identity")
    require_not_loaded(modules, "rare-collections")
    # The profile `all` has the tools for shared tasks, which renew claims and release them at the end.
    require_at_most(count, modules)


def test_a_server_on_http_loads_the_web_ui_with_its_first_page(tmp_path: Path) -> None:
    with start(tmp_path, "serve", "--http", "127.0.0.1:0") as process:
        assert process.stderr is not None
        address = process.stderr.readline().decode().split()[4]
        request = urllib.request.Request(address, INITIALIZE, method="POST")
        request.add_header("Content-Type", "application/json")
        request.add_header("Accept", "application/json, text/event-stream")
        with urllib.request.urlopen(request, timeout=20) as response:
            assert b"serverInfo" in response.read()
        process.send_signal(signal.SIGTERM)
        modules = loaded(process)
    require_not_loaded(modules, "asyncpg", "jwt", "markdown_it", "minijinja", "pygments", "yaml")
    require_not_loaded(modules, "dittybag.cli.commands", "dittybag.clients", "dittybag.exchange")
    require_not_loaded(modules, "dittybag.identity", "dittybag.web.app", "rare-collections")
    # A session is stored, so there is a writer, which maintains the file and may start its backup. `dittybag
    # open` finds its run file.
    require_at_most(199, modules)


def test_package_modules_hold_no_logic() -> None:
    packages = list((ROOT / "src").rglob("__init__.py"))
    assert len(packages) > 15
    for file in packages:
        # The package itself also has the version.
        allowed = 2 if file.parent.name == "dittybag" else 1
        assert len(ast.parse(file.read_text()).body) <= allowed, f"{file} holds more than a docstring"
