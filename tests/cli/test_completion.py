"""`dittybag completion`: completion scripts and completions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dittybag.cli.completion import serve_command
from dittybag.cli.serve import USAGE, parse_options
from dittybag.contracts.profiles import PROFILES
from dittybag.contracts.tool_specs import TOOLSETS
from tests.cli.cli_runner import dittybag
from tests.stdio_server_process import ROOT

SHELLS = ("bash", "zsh", "fish")


def completed(home: Path, line: str) -> list[str]:
    """Return the completions that bash offers for the last word of a line."""
    words = line.split(" ")
    variables = {
        "_DITTYBAG_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = dittybag(home, variables=variables)
    assert done.stderr == ""
    return [item.partition(",")[2] for item in done.stdout.splitlines() if item]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_printed_that_the_shell_understands(tmp_path: Path, shell: str) -> None:
    script = dittybag(tmp_path, "completion", shell).stdout
    assert "_DITTYBAG_COMPLETE" in script
    assert f"{shell}_complete" in script
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    subprocess.run([shell, "-n"], input=script, text=True, timeout=30, check=True)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_shell_is_named(tmp_path: Path) -> None:
    done = dittybag(tmp_path, "completion", "csh", status=2)
    assert "'bash', 'zsh', 'fish'" in done.stderr
    assert done.stdout == ""


def test_a_real_bash_completes_commands_and_options(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    program = tmp_path / "dittybag"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dittybag "$@"\n')
    program.chmod(0o755)
    script = """
        eval "$(dittybag completion bash)"
        complete -p dittybag >&2
        for line in "dittybag back" "dittybag doctor --f" "dittybag completion z" "dittybag serve --read"; do
            COMP_WORDS=($line); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); COMPREPLY=()
            _dittybag_completion dittybag
            echo "${COMPREPLY[*]}"
        done
    """
    done = subprocess.run(
        [bash, "--noprofile", "--norc", "-c", script],
        cwd=ROOT,
        env={
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "DITTYBAG_HOME": str(tmp_path / "home"),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "_dittybag_completion" in done.stderr
    assert done.stdout.splitlines() == ["backup", "--fix", "zsh", "--read-only"]


def test_commands_complete_without_being_imported_or_run(tmp_path: Path) -> None:
    assert completed(tmp_path, "dittybag do") == ["doctor"]
    assert {"backup", "doctor", "completion", "serve", "project"} <= set(completed(tmp_path, "dittybag "))
    assert list(tmp_path.iterdir()) == []


def test_the_options_of_serve_complete_too(tmp_path: Path) -> None:
    assert set(completed(tmp_path, "dittybag serve --")) == {
        *re.findall(r"--[a-z-]+(?= )", usage_options()),
        "--help",
    }
    assert completed(tmp_path, "dittybag serve --profile ") == list(PROFILES)
    assert completed(tmp_path, "dittybag serve --profile prompt") == ["prompt-store"]
    assert completed(tmp_path, "dittybag serve --toolsets tasks,s") == ["tasks,search"]
    assert completed(tmp_path, "dittybag serve --toolsets ") == list(TOOLSETS)


def usage_options() -> str:
    return "\n".join(line for line in USAGE.splitlines() if line.startswith("  -"))


def test_the_options_that_shells_know_are_those_that_serve_takes() -> None:
    for option in serve_command.params:
        (name,) = option.opts
        flags = parse_options([name] if option.is_flag else [name, "value"])  # type: ignore[attr-defined]
        assert list(flags) == [name.removeprefix("--").replace("-", "_")]
    assert {option.opts[0] for option in serve_command.params} == set(
        re.findall(r"--[a-z-]+(?= )", usage_options())
    ) - {"--help"}


def test_projects_and_workspaces_complete_and_nothing_is_made_for_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert completed(home, "dittybag serve --project ") == []
    assert completed(home, "dittybag serve --workspace ") == []
    assert not home.exists()
    dittybag(home, "project", "create", "website")
    dittybag(home, "project", "create", "webshop", "--workspace", "other")
    assert completed(home, "dittybag serve --project we") == ["website"]
    assert completed(home, "dittybag serve --workspace other --project we") == ["webshop"]
    assert completed(home, "dittybag serve --workspace ") == ["default", "other"]
    assert completed(home, f"dittybag serve --db {home}/other.db --project we") == ["webshop"]
    (home / "default.db").write_text("no database")
    assert completed(home, "dittybag serve --project we") == []
