"""`dittybag completion`: the scripts and the completions."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from dittybag.cli.serve import OPTIONS, parse_options
from dittybag.cli.serve_command import serve_command
from dittybag.contracts.profiles import PROFILES
from tests import programs
from tests.cli.cli_runner import dittybag
from tests.postgres_servers import PostgresServer
from tests.stdio_server_process import ROOT

SHELLS = ("bash", "zsh", "fish")


def completions(home: Path, line: str, **variables: str) -> list[str]:
    """Return the completions of the last word of a line."""
    asked = {
        "_DITTYBAG_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }
    result = dittybag(home, variables={**asked, **variables})
    assert result.stderr == ""
    return [line.partition(",")[2] for line in result.stdout.splitlines() if line]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_valid_in_its_shell(tmp_path: Path, shell: str) -> None:
    script = dittybag(tmp_path, "completion", shell).stdout
    assert f"_DITTYBAG_COMPLETE={shell}_complete" in script
    subprocess.run([programs.SHELLS[shell].require(), "-n"], input=script, text=True, timeout=30, check=True)
    assert list(tmp_path.iterdir()) == []


class ShellTerminal:
    """A shell in a pseudo-terminal, in which `dittybag` prints its arguments instead of running a command."""

    def __init__(self, shell: str, folder: Path, home: Path) -> None:
        program = folder / "dittybag"
        program.write_text(
            f'''#!/bin/sh
            if [ -n "$_DITTYBAG_COMPLETE" ] || [ "$1" = completion ]; then
                exec "{sys.executable}" -m dittybag "$@"
            fi
            printf "<%s>" "$@"
            '''
        )
        program.chmod(0o755)
        options = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
        controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
        self._controller = controller
        self._process = subprocess.Popen(
            [programs.SHELLS[shell].require(), *options, "-i"],
            cwd=ROOT,
            env={
                **os.environ,
                "PATH": f"{folder}:{os.environ['PATH']}",
                "DITTYBAG_HOME": str(home),
                "HOME": str(folder),
                "TERM": "dumb",
                "LC_ALL": "C.UTF-8",
            },
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # one thread
        )
        os.close(terminal)

    def type(self, keys: str, until: str) -> str:
        """Type keys, wait until the shell has printed a text, and return what it has printed."""
        os.write(self._controller, keys.encode())
        screen = b""
        while until.encode() not in screen:
            assert select.select([self._controller], [], [], 30)[0], screen
            screen += os.read(self._controller, 1 << 16)
        return screen.decode(errors="replace")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._controller)


LOAD_SCRIPT = {
    "bash": 'eval "$(dittybag completion bash)"',
    "zsh": 'autoload -Uz compinit && compinit -D && eval "$(dittybag completion zsh)"',
    "fish": "dittybag completion fish | source",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_real_shell_completes_a_name(tmp_path: Path, shell: str) -> None:
    home = tmp_path / "home"
    dittybag(home, "prompt", "add", "greeting", "Hello")
    terminal = ShellTerminal(shell, tmp_path, home)
    try:
        terminal.type(f"{LOAD_SCRIPT[shell]}\recho rea''dy\r", "ready")
        terminal.type("dittybag prompt show gre\t", "ting")
        terminal.type("\r", "<prompt><show><greeting>")
    finally:
        terminal.close()


def test_stored_names_complete(tmp_path: Path) -> None:
    home = tmp_path / "home"
    dittybag(home, "project", "create", "website")
    library = home / "libraries" / "team"
    library.mkdir(parents=True)
    (library / "commit.md").write_text("Text")
    dittybag(home, "prompt", "add", "greet", "Hello")
    dittybag(home, "prompt", "add", "deploy", "Deploy", "-p", "website")
    dittybag(home, "resource", "add", "-", "--name", "api.md", stdin="x")
    for title in ("One", "Two", "Three"):
        dittybag(home, "task", "add", title)
    dittybag(home, "task", "done", "2")

    def of(line: str, **variables: str) -> list[str]:
        return completions(home, f"dittybag {line}", **variables)

    assert of("prompt show ") == ["greet"]
    assert of("prompt show x") == []
    # Options before the word, the environment and the folder select the project.
    assert of("prompt show -p website ") == ["deploy"]
    assert of("prompt show ", DITTYBAG_PROJECT="website") == ["deploy"]
    assert of("prompt render ") == ["greet", "team:"]
    assert of("prompt render team:") == ["team:commit"]
    assert of("library show ") == ["team"]
    assert of("resource show ") == ["api.md"]
    assert of("resource show dittybag://") == ["dittybag://resources/api.md"]
    assert set(of("task done ")) == {"1", "3"}
    assert of("task done 3") == ["3"]
    assert of("pin g") == ["greet"]
    assert of("project show w") == ["website"]
    assert of("prompt list -p w") == ["website"]
    assert of("connect claude-") == ["claude-code", "claude-desktop"]
    assert of("task done --workspace other ") == []


def test_names_complete_on_postgresql(tmp_path: Path, shared_postgres: PostgresServer) -> None:
    database = {"DITTYBAG_DATABASE_URL": shared_postgres.url(schema="completed_names")}
    dittybag(tmp_path, "prompt", "add", "greet", "Hello", variables=database)
    assert completions(tmp_path, "dittybag prompt show g", **database) == ["greet"]
    assert completions(tmp_path, "dittybag project show ", **database) == ["default"]


def test_commands_complete_without_creating_files(tmp_path: Path) -> None:
    assert completions(tmp_path, "dittybag do") == ["doctor"]
    assert {"backup", "doctor", "completion", "serve", "project"} <= set(completions(tmp_path, "dittybag "))
    assert completions(tmp_path, "dittybag prompt show ") == []
    assert list(tmp_path.iterdir()) == []


def test_the_options_of_serve_complete(tmp_path: Path) -> None:
    assert {name for name, _, _ in OPTIONS} <= set(completions(tmp_path, "dittybag serve --"))
    assert completions(tmp_path, "dittybag serve --profile ") == list(PROFILES)
    assert completions(tmp_path, "dittybag serve --workspace ") == []


def test_completed_options_are_those_that_serve_accepts() -> None:
    for option in serve_command.params:
        name = option.opts[-1]
        flags = parse_options([name] if option.is_flag else [name, "value"])  # type: ignore[attr-defined]
        assert list(flags) == [name.removeprefix("--").replace("-", "_")]
    assert {name for name, _, _ in OPTIONS} < {option.opts[-1] for option in serve_command.params}


def test_a_database_that_cannot_be_read_completes_nothing(tmp_path: Path) -> None:
    (tmp_path / "default.db").write_text("no database")
    assert completions(tmp_path, "dittybag serve --project we") == []
