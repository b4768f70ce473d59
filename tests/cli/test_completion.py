"""`dittybag completion`: the scripts and the completions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dittybag.cli.serve import USAGE, parse_options
from dittybag.cli.serve_completion import serve_command
from dittybag.contracts.profiles import PROFILES
from dittybag.contracts.tool_specs import TOOLSETS
from tests import programs
from tests.cli.cli_runner import dittybag
from tests.stdio_server_process import ROOT

SHELLS = ("bash", "zsh", "fish")


def completions(home: Path, line: str) -> list[str]:
    """Return the completions that bash offers for the last word of a line."""
    words = line.split(" ")
    variables = {
        "_DITTYBAG_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    result = dittybag(home, variables=variables)
    assert result.stderr == ""
    return [item.partition(",")[2] for item in result.stdout.splitlines() if item]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_valid_in_its_shell(tmp_path: Path, shell: str) -> None:
    script = dittybag(tmp_path, "completion", shell).stdout
    assert "_DITTYBAG_COMPLETE" in script
    assert f"{shell}_complete" in script
    subprocess.run([programs.SHELLS[shell].require(), "-n"], input=script, text=True, timeout=30, check=True)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_shell_is_rejected(tmp_path: Path) -> None:
    result = dittybag(tmp_path, "completion", "csh", status=2)
    assert "'bash', 'zsh', 'fish'" in result.stderr
    assert result.stdout == ""


def test_a_real_bash_completes_commands_and_options(tmp_path: Path) -> None:
    bash = programs.SHELLS["bash"].require()
    program = tmp_path / "dittybag"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dittybag "$@"\n')
    program.chmod(0o755)
    script = """
        eval "$(dittybag completion bash)"
        complete -p dittybag >&2
        for line in "dittybag back" "dittybag doctor --f" "dittybag completion z" \
                    "dittybag serve --read-o"; do
            COMP_WORDS=($line); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); COMPREPLY=()
            _dittybag_completion dittybag
            echo "${COMPREPLY[*]}"
        done
    """
    result = subprocess.run(
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
    assert "_dittybag_completion" in result.stderr
    assert result.stdout.splitlines() == ["backup", "--fix", "zsh", "--read-only"]


def test_commands_complete_without_creating_files(tmp_path: Path) -> None:
    assert completions(tmp_path, "dittybag do") == ["doctor"]
    assert {"backup", "doctor", "completion", "serve", "project"} <= set(completions(tmp_path, "dittybag "))
    assert list(tmp_path.iterdir()) == []


def test_the_options_of_serve_complete(tmp_path: Path) -> None:
    assert set(completions(tmp_path, "dittybag serve --")) == {
        *re.findall(r"--[a-z-]+(?= )", usage_options()),
        "--help",
    }
    assert completions(tmp_path, "dittybag serve --profile ") == list(PROFILES)
    assert completions(tmp_path, "dittybag serve --profile prompt") == ["prompt-store"]
    assert completions(tmp_path, "dittybag serve --toolsets tasks,s") == ["tasks,search"]
    assert completions(tmp_path, "dittybag serve --toolsets ") == list(TOOLSETS)


def usage_options() -> str:
    return "\n".join(line for line in USAGE.splitlines() if line.startswith("  -"))


def test_completed_options_are_those_that_serve_accepts() -> None:
    for option in serve_command.params:
        (name,) = option.opts
        flags = parse_options([name] if option.is_flag else [name, "value"])  # type: ignore[attr-defined]
        assert list(flags) == [name.removeprefix("--").replace("-", "_")]
    assert {option.opts[0] for option in serve_command.params} == set(
        re.findall(r"--[a-z-]+(?= )", usage_options())
    ) - {"--help"}


def test_projects_and_workspaces_complete_without_creating_a_database(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert completions(home, "dittybag serve --project ") == []
    assert completions(home, "dittybag serve --workspace ") == []
    assert not home.exists()
    dittybag(home, "project", "create", "website")
    dittybag(home, "project", "create", "webshop", "--workspace", "other")
    assert completions(home, "dittybag serve --project we") == ["website"]
    assert completions(home, "dittybag serve --workspace other --project we") == ["webshop"]
    assert completions(home, "dittybag serve --workspace ") == ["default", "other"]
    assert completions(home, f"dittybag serve --db {home}/other.db --project we") == ["webshop"]
    (home / "default.db").write_text("no database")
    assert completions(home, "dittybag serve --project we") == []
