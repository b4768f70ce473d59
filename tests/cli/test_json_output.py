"""Every command that has `--json` prints the envelope and the members that its reference page names."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from typing import Any, Final

import click
import msgspec
import pytest

from dittybag.cli.commands import dittybag as group
from dittybag.cli.error_output import ExitStatus
from dittybag.cli.strict_options import JSON
from tests.cli.command_reference import iterate_commands, root_context
from tests.forked_processes import run
from tests.stdio_server_process import ROOT

REFERENCE: Final = ROOT / "docs" / "reference" / "json.md"

#: Commands, one on each line, in the order in which they run. Files that they read are in `FILES`.
SCRIPT: Final = """
project create website
prompt add code-review "Review this {{ language }} change." -t review -a "language?: of the change" -t strict
prompt add greet Hello
prompt list
prompt show code-review
prompt edit greet --title Greeting --description "Says hello"
prompt render code-review language=Python
resource add api.md --title API --description "All calls"
resource add notes.txt
resource list
resource show api.md
resource edit api.md --title "The API"
task add "Write the tests" -p website -P 4 -d 2026-02-19 --notes "Start with login" -l tests
task add Publish -p website --blocked-by 1
task add Announce -p website --parent 2
task list
task graph -p website
task next -p website --as ann
task renew 1 --fence {fence}
task edit 1 -P 5 --comment "Nearly there"
task show 1
task release 1 --fence {fence}
task done 1
import tasks.csv
task add "Buy tea"
task delete 4
tag list
tag rename strict exact
library new team
library list
library show team
library check team
library add prompts --name files --link
library update
library remove files
project link --project website
project list
user add ann
project share website ann
project show website
project unshare website ann --open
project unlink
project rename website site
pin greet
prime -p default --actor bob
unpin greet
workspaces
search review
history
history 3 --diff
undo --yes
restore 3
token create --user ann --scope read --expires 30d
token revoke 1
token list --include-revoked
user disable ann
user list
user enable ann
export all.json
import all.json --dry-run
copy --from {database} --to copy.db
backup create backup.db
backup list
backup restore backup.db --db other.db
doctor
connect cursor
open --stop
prompt delete greet
resource delete notes.txt
project delete site
purge greet --yes
"""

FILES: Final = {
    "api.md": "# API\n",
    "notes.txt": "Buy tea\n",
    "tasks.csv": "title\nTidy up\n",
    "prompts/commit.md": "Write a commit message.\n",
}


def command_name(line: str) -> str:
    """Return the words of a command without its arguments, with the option that makes it print JSON."""
    words = line.split()
    is_group = isinstance(group.get_command(root_context(), words[0]), click.Group)
    mode = [word for word in words[1:] if word in ("--diff", "--stop")]
    return " ".join([*words[: 2 if is_group else 1], *mode])


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each command printed, by its name."""
    folder = tmp_path_factory.mktemp("json")
    for name, text in FILES.items():
        (folder / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "work" / name).write_text(text)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DITTYBAG_")}
    own = {"HOME": str(folder), "DITTYBAG_HOME": str(folder / "data"), "DITTYBAG_ACTOR": "ann"}
    fence, found = 0, {}
    for line in SCRIPT.strip().splitlines():
        values = {"{fence}": str(fence), "{database}": str(folder / "data" / "default.db")}
        words = [values.get(word, word) for word in shlex.split(line)]
        done = run("dittybag", *words, "--json", env=inherited | own, cwd=folder / "work")
        if words[0] == "prime":
            continue
        assert done.stdout.count("\n") == 1, (line, done)
        found[command_name(line)] = msgspec.json.decode(done.stdout)
        if words[:2] == ["task", "next"]:
            fence = found["task next"]["data"]["fence"]
    return found


def rows(heading: str) -> dict[str, str]:
    """Return the table below a heading of the page: its first column, and its second."""
    section = REFERENCE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^\| (.+?) \| (.+) \|$", section, re.MULTILINE)
    return {first.strip("`"): second for first, second in found[1:]}


def members(text: str, objects: Mapping[str, str]) -> set[str]:
    """Return the members that a cell names, with those of the object that it begins with."""
    named = set(re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", text)))
    kind = re.match(r"an? ([a-z ]+?)(?: with |$)", text)
    return named | members(objects[kind[1]], objects) if kind else named


def test_every_command_prints_the_members_that_the_page_names(printed: dict[str, Any]) -> None:
    objects, commands = rows("Objects"), rows("Commands")
    for name, envelope in printed.items():
        assert envelope.keys() == {"ok", "data"}, name
        assert envelope["ok"] is True
        assert set(envelope["data"]) == members(commands[name], objects), name
        for member, kind in re.findall(r"`(\w+)` \((?:an? )?([a-z ]+)\)", commands[name]):
            value = envelope["data"][member]
            sample = value[0] if isinstance(value, list) else value
            singular = kind if kind in objects else re.sub("(ie)?s$", lambda end: "y" if end[1] else "", kind)
            assert set(sample) == members(objects[singular], objects), (name, member)


def test_the_page_has_every_command_that_prints_json(printed: dict[str, Any]) -> None:
    with_json = {
        ctx.command_path.partition(" ")[2]
        for command, ctx in iterate_commands(group, root_context())
        if not isinstance(command, click.Group) and JSON in command.params
    }
    assert {name.partition(" --")[0] for name in rows("Commands")} == with_json
    assert {name.partition(" --")[0] for name in printed} | {"prime"} == with_json


def test_the_page_has_every_exit_status() -> None:
    assert {int(status) for status in rows("Exit status")} == {status.value for status in ExitStatus}
