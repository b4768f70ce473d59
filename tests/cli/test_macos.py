"""Commands in a process that lacks what only Linux has, and finds its files where macOS has them."""

from __future__ import annotations

import os
import plistlib
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from dittybag.cli.serve import parse_options
from tests.fleet.server_fleet import wait_until
from tests.library.source_fixtures import read_files, write_files
from tests.stdio_server_process import ROOT

#: Imported when Python starts. The platform is renamed as soon as the package is imported: until then, Python
#: itself needs the real one.
MACOS = """
import builtins, os, select, socket, stat, sys, types

vars(select).pop("epoll", None)
vars(socket).pop("TCP_USER_TIMEOUT", None)
import selectors

class KqueueSelector(selectors.PollSelector):
    # As macOS: it watches files, but does not report their end.
    def select(self, timeout=None):
        return [(key, mask) for key, mask in super().select(timeout) if not self.is_read(key.fd)]

    def is_read(self, descriptor):
        status = os.fstat(descriptor)
        return stat.S_ISREG(status.st_mode) and os.lseek(descriptor, 0, os.SEEK_CUR) >= status.st_size

    def fileno(self):
        raise ValueError("poll does not handle all descriptors")

selectors.DefaultSelector = KqueueSelector
for attribute in [*dir(os)]:
    if attribute.startswith(("sched_", "memfd_", "eventfd", "pidfd_", "posix_fadvise", "pipe2", "splice")):
        delattr(os, attribute)

sys.modules["_scproxy"] = types.SimpleNamespace(_get_proxy_settings=dict, _get_proxies=dict)
real_open = builtins.open

def open_without_proc(file, *arguments, **options):
    if str(file).startswith("/proc/"):
        raise FileNotFoundError(2, "No such file or directory", file)
    return real_open(file, *arguments, **options)

builtins.open = open_without_proc

class Renaming:
    def find_spec(self, name, path=None, target=None):
        if name == "dittybag":
            sys.platform = "darwin"

sys.meta_path.insert(0, Renaming())
"""
INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
LIST_PROMPTS = b'{"jsonrpc":"2.0","id":2,"method":"prompts/list"}\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(MACOS)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def run(home: Path, *arguments: str, stdin: bytes = b"", **variables: str) -> bytes:
    """Run a command on a Mac whose user has this home folder; return its output."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DITTYBAG_")}
    environment = inherited | {"HOME": str(home), "PYTHONPATH": str(home.parent / "site")} | variables
    command = [sys.executable, "-m", "dittybag", *arguments]
    result = subprocess.run(
        command, input=stdin, capture_output=True, check=False, timeout=60, env=environment, cwd=home
    )
    assert result.returncode == 0, result
    assert b"Traceback" not in result.stderr
    return result.stdout


def test_data_is_stored_where_applications_and_the_shell_find_it(home: Path) -> None:
    run(home, "task", "add", "x", XDG_DATA_HOME=str(home / "xdg"))
    assert (home / "Library" / "Application Support" / "dittybag" / "default.db").is_file()
    assert not (home / "xdg").exists()


def test_the_usual_commands_work(home: Path) -> None:
    run(home, "prompt", "add", "hello", "Hello {{ name }}")
    run(home, "pin", "hello")
    assert run(home, "prompt", "render", "hello", "name=Ann") == b"Hello Ann"
    # On a busy machine, the command may reach its deadline and print nothing.
    wait_until(lambda: b"hello" in run(home, "prime", "-p", "default"), "the pack has the prompt")
    findings = msgspec.json.decode(run(home, "doctor", "--json"))["data"]["findings"]
    assert {finding["level"] for finding in findings} <= {"ok", "note"}, findings
    run(home, "backup", "create", str(home / "backup.db"))
    assert run(home, "connect", "vscode", "--dry-run").decode().count("Library/Application Support/Code") > 0


@pytest.mark.parametrize("is_file", [False, True], ids=["a pipe", "a file"])
def test_a_server_answers_on_standard_input(home: Path, is_file: bool) -> None:
    requests = INITIALIZE + LIST_PROMPTS
    if is_file:
        (home / "requests").write_bytes(requests)
        command = 'exec "$0" -m dittybag serve < requests'
        environment = os.environ | {"HOME": str(home), "PYTHONPATH": str(home.parent / "site")}
        output = subprocess.run(
            ["sh", "-c", command, sys.executable],
            capture_output=True, check=True, timeout=60, env=environment, cwd=home,
        ).stdout  # fmt: skip
    else:
        output = run(home, "serve", stdin=requests)
    assert [msgspec.json.decode(line)["id"] for line in output.splitlines()] == [1, 2]


def test_a_library_is_added_and_updated(home: Path) -> None:
    source = write_files(home / "source", {"a.md": "one", "deep/b.md": "two"})
    run(home, "library", "add", str(source), "--name", "lib")
    write_files(source, {"a.md": "new"})
    run(home, "library", "update", "lib")
    library = home / "Library" / "Application Support" / "dittybag" / "libraries" / "lib"
    assert read_files(library) == {"a.md": "new", "deep/b.md": "two"}


def test_the_launch_agent_of_the_guide_starts_a_server() -> None:
    page = (ROOT / "docs" / "operate" / "platforms.md").read_text()
    agent = plistlib.loads(page.partition("```xml\n")[2].partition("```")[0].encode())
    program, command, *options = agent["ProgramArguments"]
    assert Path(program).name == "dittybag"
    assert (command, parse_options(options)) == ("serve", {"http": "127.0.0.1:8765"})
    assert agent["RunAtLoad"] is agent["KeepAlive"] is True
