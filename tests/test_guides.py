"""The code blocks of the documentation are right: commands run, and every block names its language.

`test_code_blocks.py` checks the blocks in other languages.

All `sh` blocks of a page run in order in one shell, in an empty home folder. A block that cannot run there
says why: ```sh not-run="needs a second machine".
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from click.testing import CliRunner

from dittybag.cli.commands import dittybag
from tests.stdio_server_process import ROOT

PAGES: Final = sorted(
    path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
)

#: Pages whose commands another test runs, because it also checks what they do.
TESTED_ELSEWHERE: Final = {"docs/guides/several-agents.md": "tests/cli/test_several_agents.py"}

#: What a page takes for granted: commands that run before its own.
TAKEN_FOR_GRANTED: Final = {
    "docs/guides/agents.md": """
        dittybag prompt add coding-style "Write short functions."
        dittybag task add "Write the tests"
    """,
    "docs/guides/backup.md": "dittybag prompt add code-review 'Review this change.'",
    "docs/guides/chat-prompts.md": "echo '{{ language }}: {{ code }}' > review.md",
    "docs/guides/export.md": "dittybag project create website",
    "docs/guides/import-tasks.md": """
        dittybag project create team
        mkdir -p .beads ~/src/website/backlog/tasks
        printf 'title\\nWrite the tests\\n' > plan.csv
        echo '{"id":"bd-1","title":"Fix the login","status":"open","priority":2}' > .beads/issues.jsonl
        printf -- '---\\nid: task-1\\ntitle: Draw the logo\\n---\\n' > ~/src/website/backlog/tasks/task-1.md
    """,
    "docs/guides/libraries.md": """
        mkdir -p ~/dotfiles/prompts folder
        echo 'Write a commit message.' | tee folder/commit.md > ~/dotfiles/prompts/commit.md
    """,
    "docs/guides/projects.md": "mkdir -p ~/src/website ~/src/site",
    "docs/guides/purge.md": """
        dittybag prompt add code-review 'Review this.'
        dittybag prompt edit code-review --title 'Code review'
        dittybag task add 'Write the tests'
    """,
    "docs/guides/shell.md": "dittybag prompt add code-review 'Review this {{ language }} change.'",
    "docs/guides/users.md": """
        dittybag user add bob
        dittybag project create website
    """,
}

#: What the commands of a page print, besides the outputs that it shows.
RESULTS: Final = {"docs/guides/five-minutes.md": ["/.claude.json"]}

_BLOCK: Final = re.compile(
    r"^(?P<indent> *)(?P<mark>`{3,})(?P<info>[^`\n]*)\n(?P<code>.*?)^ *(?P=mark)$", re.DOTALL | re.MULTILINE
)
_INFO: Final = re.compile(r"[a-z]+(?: not-run=\"[^\"]+\")?")


class Block(NamedTuple):
    """A code block: its first line after the backquotes, and its code."""

    info: str
    code: str


def blocks(page: str) -> Iterator[Block]:
    for match in _BLOCK.finditer((ROOT / page).read_text()):
        yield Block(match["info"], re.sub(f"^{match['indent']}", "", match["code"], flags=re.MULTILINE))


def script(page: str) -> str:
    return "\n".join(block.code for block in blocks(page) if block.info == "sh")


def shown_lines(page: str) -> Iterator[str]:
    """Yield the lines of output blocks: `text` blocks directly after commands that run."""
    text = (ROOT / page).read_text()
    for commands, output in pairwise(_BLOCK.finditer(text)):
        is_output = (commands["info"], output["info"]) == ("sh", "text")
        if is_output and not text[commands.end() : output.start()].strip():
            yield from filter(None, output["code"].splitlines())


def _squeezed(text: str) -> str:
    return re.sub(" +", " ", text)


@pytest.mark.parametrize("page", PAGES)
def test_code_blocks_name_their_language(page: str) -> None:
    for info, code in blocks(page):
        assert re.fullmatch(_INFO, info), f"```{info}\n{code}"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "dittybag"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dittybag "$@"\n')
    path.chmod(0o755)
    (path.parent / "python3").symlink_to(sys.executable)
    return path


@pytest.mark.parametrize("page", [page for page in PAGES if page not in TESTED_ELSEWHERE and script(page)])
def test_the_commands_of_a_page_work(page: str, program: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = home / "work"
    folder.mkdir(parents=True)
    code = f"set -e\n{TAKEN_FOR_GRANTED.get(page, '')}\nset -x\n{script(page)}"
    environment = {
        "PATH": f"{program.parent}:/usr/bin:/bin",
        "HOME": str(home),
        "PYTHONPATH": str(ROOT / "src"),
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        ["sh", "-c", code],
        stdin=subprocess.DEVNULL,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    printed = _squeezed(done.stdout)
    for expected in [*RESULTS.get(page, ()), *shown_lines(page)]:
        assert _squeezed(expected) in printed, (expected, done.stdout)


def not_run(page: str) -> Iterator[list[str]]:
    """Yield the commands of Dittybag in blocks that are not run, without the program's name."""
    for info, code in blocks(page):
        for line in code.replace("\\\n", " ").splitlines() if info.startswith("sh not-run") else ():
            words = shlex.split(line.partition(" | ")[0], comments=True)
            if words[:1] == ["dittybag"]:
                yield words[1:]


@pytest.mark.parametrize("page", [page for page in PAGES if any(not_run(page))])
def test_commands_that_are_not_run_exist(page: str) -> None:
    for words in not_run(page):
        own = words[: words.index("--")] if "--" in words else words
        command = [word for word in own[:2] if not word.startswith("-")]
        shown = CliRunner().invoke(dittybag, [*command, "--help"]).output
        for option in (word.partition("=")[0] for word in own if word.startswith("--")):
            assert re.search(rf"^  (-., )?{option}\b", shown, re.MULTILINE), (words, option)
