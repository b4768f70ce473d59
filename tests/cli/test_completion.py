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

from dittybag.cli.commands import dittybag as group
from dittybag.cli.name_completion import completed_parameters
from dittybag.cli.serve import OPTIONS, parse_options
from dittybag.cli.serve_command import serve_command
from dittybag.contracts.profiles import PROFILES
from dittybag.contracts.tool_specs import TOOLSETS
from tests import programs
from tests.cli.cli_runner import dittybag
from tests.cli.command_reference import iterate_commands, root_context
from tests.postgres_servers import PostgresServer
from tests.stdio_server_process import ROOT

SHELLS = ("bash", "zsh", "fish")


#: A name that every shell must quote.
ODD_NAME = "my pro$ject's"


def completions(home: Path, line: str, **variables: str) -> list[str]:
    """Return the completions of the last word of a line."""
    return [name for name, _ in described_completions(home, *line.split(" ")[1:], **variables)]


def described_completions(home: Path, *words: str, **variables: str) -> list[tuple[str, str]]:
    """Return the completions of the last word, with their descriptions, as zsh gets them."""
    result = dittybag(home, "--", *words, variables={"_DITTYBAG_COMPLETE": "zsh", **variables})
    assert result.stderr == ""
    kind, *lines = result.stdout.splitlines()
    return list(zip(lines[::2], lines[1::2], strict=True)) if kind == "names" else [(kind, "")]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_valid_in_its_shell(tmp_path: Path, shell: str) -> None:
    script = dittybag(tmp_path, "completion", shell).stdout
    assert f"_DITTYBAG_COMPLETE={shell}" in script
    subprocess.run([programs.SHELLS[shell].require(), "-n"], input=script, text=True, timeout=30, check=True)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_shell_is_rejected(tmp_path: Path) -> None:
    result = dittybag(tmp_path, "completion", "csh", status=2)
    assert "'bash', 'zsh', 'fish'" in result.stderr
    assert result.stdout == ""


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
    "zsh": 'eval "$(dittybag completion zsh)"',
    "fish": "dittybag completion fish | source",
}


#: What the bash of macOS, version 3.2, lacks.
OLD_BASH = """
enable -n compopt
complete() {
    case " $* " in
        *" nosort "*) echo "complete: nosort: invalid option name" >&2; return 2 ;;
        *) builtin complete "$@" ;;
    esac
}
"""


def test_the_bash_of_macos_completes_names_and_files(tmp_path: Path) -> None:
    home = tmp_path / "home"
    dittybag(home, "project", "create", ODD_NAME)
    (tmp_path / "a file.txt").write_text("")
    terminal = ShellTerminal("bash", tmp_path, home)
    try:
        (tmp_path / "old_bash").write_text(OLD_BASH)
        shown = terminal.type(
            f". {tmp_path}/old_bash; {LOAD_SCRIPT['bash']}\rcd {tmp_path}; echo rea''dy\r", "ready"
        )
        assert "invalid option" not in shown
        terminal.type("dittybag prompt list -p my\t", "ject")
        shown = terminal.type("\x15dittybag import a\t", "txt")
        shown += terminal.type("; echo do''ne\r", "done")
        assert "not found" not in shown
    finally:
        terminal.close()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_real_shell_completes_and_quotes_names(tmp_path: Path, shell: str) -> None:
    home = tmp_path / "home"
    dittybag(home, "project", "create", ODD_NAME)
    dittybag(home, "prompt", "add", "greet", "Say {{ phrase }} to {{ who }}")
    library = home / "libraries" / "team"
    library.mkdir(parents=True)
    (library / "commit.md").write_text("---\narguments: [{name: branch}]\n---\nMessage for {{ branch }}.")
    terminal = ShellTerminal(shell, tmp_path, home)
    try:
        terminal.type(f"{LOAD_SCRIPT[shell]}\recho rea''dy\r", "ready")
        # Unquoted, after a quoted space, in an open quote, and after the equals sign of an option.
        for start in ("-p my", "-p my\\ pr", '-p "my', "--project=my"):
            terminal.type(f"dittybag prompt list {start}\t", "ject")
            arguments = f"<-p><{ODD_NAME}>" if start.startswith("-p") else f"<--project={ODD_NAME}>"
            terminal.type("\r", f"<prompt><list>{arguments}")
        # A colon and an equals sign, which are the ends of words in bash.
        terminal.type("dittybag prompt render te\t", "am:")
        terminal.type("com\t", "mit")
        terminal.type("bra\t", "nch=")
        terminal.type("main\r", "<prompt><render><team:commit><branch=main>")
        # Arguments that are given are left out.
        terminal.type("dittybag prompt render greet phrase=hello \t", "who=")
        terminal.type("me\r", "<prompt><render><greet><phrase=hello><who=me>")
    finally:
        terminal.close()


def test_bash_lists_numbers_of_tasks_with_their_titles(tmp_path: Path) -> None:
    (tmp_path / "tasks.csv").write_text("title\n" + "".join(f"Task {number}\n" for number in range(1, 13)))
    dittybag(tmp_path, "task", "import", str(tmp_path / "tasks.csv"))
    asked = {"_DITTYBAG_COMPLETE": "bash"}
    breaks = " \t\n\"'@><=;|&(:"
    listed = dittybag(tmp_path, "--", "dittybag task done 1", breaks, "63", variables=asked).stdout
    assert listed.splitlines() == ["names", "1   (Task 1)", "10  (Task 10)", "11  (Task 11)", "12  (Task 12)"]
    inserted = dittybag(tmp_path, "--", "dittybag task done 1", breaks, "9", variables=asked).stdout
    assert inserted.splitlines() == ["names", "1", "10", "11", "12"]


def test_every_completed_parameter_exists() -> None:
    known = {
        " ".join((*ctx.command_path.split()[1:], parameter.name or ""))
        for command, ctx in iterate_commands(group, root_context())
        for parameter in command.params
    }
    assert set(completed_parameters()) - known == set()


def test_stored_names_complete(tmp_path: Path) -> None:
    home = tmp_path / "home"
    dittybag(home, "project", "create", "website")
    library = home / "libraries" / "team"
    library.mkdir(parents=True)
    (library / "commit.md").write_text("Text")
    dittybag(home, "prompt", "add", "greet", "Hi {{ tone }}", "-t", "fun", "--title", "A greeting")
    dittybag(home, "prompt", "add", "deploy", "Deploy", "-p", "website", "-t", "ops")
    dittybag(home, "resource", "add", "-", "--name", "api.md", stdin="x")
    for title in ("One", "Two", "Three"):
        dittybag(home, "task", "add", title, "-l", "home", "--assignee", "ann")
    dittybag(home, "task", "done", "2")
    dittybag(home, "user", "add", "ben")

    def of(*words: str, **variables: str) -> list[str]:
        return [name for name, _ in described_completions(home, *words, **variables)]

    assert described_completions(home, "prompt", "show", "") == [("greet", "A greeting")]
    assert of("prompt", "show", "x") == []
    # Options before the word, the environment and the folder select the project.
    assert of("prompt", "show", "-p", "website", "") == ["deploy"]
    assert of("prompt", "show", "", DITTYBAG_PROJECT="website") == ["deploy"]
    assert of("prompt", "render", "") == ["greet", "team:"]
    assert of("prompt", "render", "team:") == ["team:commit"]
    assert of("library", "show", "") == ["team"]
    assert of("prompt", "list", "--tag", "") == ["fun"]
    assert of("resource", "show", "") == ["api.md"]
    assert of("resource", "show", "dittybag://") == ["dittybag://resources/api.md"]
    assert described_completions(home, "task", "done", "") == [("3", "Three"), ("1", "One")]
    assert of("task", "done", "3", "") == ["1"]
    assert of("task", "show", "2") == ["2"]
    assert described_completions(home, "task", "show", "t") == [("Three", "task 3")]
    assert of("task", "add", "x", "--label", "") == ["home"]
    assert of("history", "--actor", "", DITTYBAG_ACTOR="x") != []
    assert of("project", "share", "website", "") == ["ben"]
    assert of("connect", "claude-") == ["claude-code", "claude-desktop"]
    assert of("prompt", "add", "x", "--file", "") == ["files"]
    assert of("project", "link", "") == ["folders"]
    assert of("task", "done", "", "--workspace", "other") == []


def test_names_complete_on_postgresql(tmp_path: Path, shared_postgres: PostgresServer) -> None:
    database = {"DITTYBAG_DATABASE_URL": shared_postgres.url(schema="completed_names")}
    dittybag(tmp_path, "prompt", "add", "greet", "Hi {{ who }}", "-t", "fun", variables=database)
    for title in ("One", "Two"):
        dittybag(tmp_path, "task", "add", title, "-l", "home", variables=database)
    dittybag(tmp_path, "user", "add", "ben", variables=database)
    for line, expected in (
        ("prompt show g", ["greet"]),
        ("prompt render greet ", ["who="]),
        ("prompt list --tag ", ["fun"]),
        ("resource show ", []),
        ("task done ", ["2", "1"]),
        ("task done 2", ["2"]),
        ("task done o", ["One"]),
        ("task add x --label ", ["home"]),
        ("user disable ", ["ben"]),
        ("project show ", ["default"]),
    ):
        assert completions(tmp_path, f"dittybag {line}", **database) == expected, line
    assert "dittybag" in completions(tmp_path, "dittybag history --actor ", **database)


def test_commands_complete_without_creating_files(tmp_path: Path) -> None:
    assert completions(tmp_path, "dittybag do") == ["doctor"]
    assert {"backup", "doctor", "completion", "serve", "project"} <= set(completions(tmp_path, "dittybag "))
    assert list(tmp_path.iterdir()) == []


def test_the_options_of_serve_complete(tmp_path: Path) -> None:
    assert set(completions(tmp_path, "dittybag serve --")) == {
        *(name for name, _, _ in OPTIONS),
        *("--project", "--workspace", "--db", "--help"),
    }
    assert completions(tmp_path, "dittybag serve --profile ") == list(PROFILES)
    assert completions(tmp_path, "dittybag serve --profile prompt") == ["prompt-store"]
    assert completions(tmp_path, "dittybag serve --toolsets tasks,s") == ["tasks,search"]
    assert completions(tmp_path, "dittybag serve --toolsets ") == list(TOOLSETS)


def test_completed_options_are_those_that_serve_accepts() -> None:
    for option in serve_command.params:
        name = option.opts[-1]
        flags = parse_options([name] if option.is_flag else [name, "value"])  # type: ignore[attr-defined]
        assert list(flags) == [name.removeprefix("--").replace("-", "_")]
    assert {name for name, _, _ in OPTIONS} < {option.opts[-1] for option in serve_command.params}


def test_projects_and_workspaces_complete_without_creating_a_database(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert dittybag(home, "--", "serve", "-", variables={"_DITTYBAG_COMPLETE": "zsh"}).stdout != ""
    assert completions(home, "dittybag serve --workspace ") == []
    assert not home.exists()
    dittybag(home, "project", "create", "website")
    dittybag(home, "project", "create", "webshop", "--workspace", "other")
    assert completions(home, "dittybag serve --project we") == ["website"]
    assert completions(home, "dittybag serve --workspace other --project we") == ["webshop"]
    assert completions(home, "dittybag serve --workspace ") == ["default", "other"]
    assert completions(home, f"dittybag serve --db {home}/other.db --project we") == ["webshop"]
    (home / "default.db").write_text("no database")
    # An error prints nothing, not even the kind of completion.
    broken = dittybag(
        home, "--", "serve", "--project", "we", variables={"_DITTYBAG_COMPLETE": "zsh"}, status=1
    )
    assert broken.stdout + broken.stderr == ""
