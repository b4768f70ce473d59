"""Generates docs/reference/json.md from the output of real commands: `python -m tests.cli.json_reference`.

A new home folder gets sample data, and every command that has `--json` runs in it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec

from dittybag.cli.error_output import ExitStatus
from tests.contracts.contract_replay import TIME, UUID
from tests.forked_processes import run
from tests.stdio_server_process import ROOT

REFERENCE: Path = ROOT / "docs" / "reference" / "json.md"

#: The part of the page above this line is not generated.
MARKER = "<!-- Generated below this line by: python -m tests.cli.json_reference -->\n"

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

#: The objects that several commands print: the members of the first one that a command prints.
KINDS: Final = {
    "project": ("project list", "projects"),
    "prompt": ("prompt show code-review", ""),
    "argument": ("prompt show code-review", "arguments"),
    "listed prompt": ("prompt list", "prompts"),
    "resource": ("resource list", "resources"),
    "task": ("task done 1", "tasks"),
    "comment": ("task show 1", "comments"),
    "change": ("history", "changes"),
    "hit": ("search review", "hits"),
    "library": ("library list", "libraries"),
    "user": ("user list", "users"),
    "token": ("token list --include-revoked", "tokens"),
}

#: What members mean, by kind and name; those of the kind `""` mean the same everywhere.
MEANINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "": {
        "id": "never given to another one, even after a deletion",
        "name": "the name, unique in its project or workspace",
        "title": "the title for people",
        "description": "what it is for",
        "created_at": "when it was created",
        "updated_at": "when it was last changed",
        "version": "1 when it is new, and one more with each change",
        "tags": "its tags",
        "project": "the name of its project",
        "actor": "who made the change",
        "kind": "`project`, `prompt`, `resource` or `task`",
        "prompts": "how many prompts it has",
    },
    "project": {
        "resources": "how many resources it has",
        "tasks": "how many tasks belong to it",
        "folders": "the folders of this machine that are linked to it",
    },
    "prompt": {"content": "the text or template", "arguments": "[arguments](#argument), in order"},
    "argument": {
        "name": "its name in the template",
        "required": "whether it must have a value",
        "choices": "the values that clients suggest",
    },
    "listed prompt": {"snippet": "the beginning of the text"},
    "resource": {
        "uri": "its URI, unique in its project",
        "mime_type": "the type of the content",
        "sha256": "the SHA-256 of the content, in hexadecimal",
        "size": "the size of the content in bytes",
    },
    "task": {
        "project": "the name of its project, or any text",
        "priority": "1 to 5; 5 is the highest",
        "energy": "`light`, `medium` or `deep`",
        "time_estimate": "any text, such as `1hr`",
        "notes": "Markdown",
        "due_date": "a date, or a date with a time",
        "completed_at": "when it was done",
        "status": "`todo`, `doing`, `review`, `done` or `dropped`",
        "blocked_by": "the ids of the tasks that must end before it",
        "parent": "the id of the task that it is a part of",
        "assignee": "who works on it or should",
        "labels": "its labels",
        "links": "names of prompts, URIs of resources, and URLs",
        "comments": "[comments](#comment), oldest first",
        "completed": "whether `status` is `done`",
        "overdue": "whether it is due and open",
        "shared": "whether it belongs to a project and its members",
    },
    "comment": {"at": "when it was written", "author": "who wrote it", "text": "the text"},
    "change": {
        "change": "its number; numbers increase in the order of commits",
        "batch": "the number of the first change of the same command or call",
        "at": "when it was made",
        "action": "`create`, `update` or `delete`",
        "id": "the id of what was changed",
        "name": "the name of what was changed",
        "purged": "who [purged](../guides/purge.md) its content, and when",
    },
    "hit": {
        "kind": "`prompt`, `library`, `resource` or `task`",
        "ref": "what commands and tools call it",
        "at": "when it was last changed",
        "actor": "who changed it last",
        "passage": "the part of the text that matches best",
        "id": "its id",
    },
    "library": {
        "name": "the name, unique in the data folder",
        "folder": "where its files are",
        "from": "where it came from",
        "formats": "how many prompts it has in each format",
        "problems": "how many problems `library check` reports",
    },
    "user": {"name": "the name; never given to another user", "disabled_at": "when the user was disabled"},
    "token": {
        "id": "its number",
        "user": "whose token it is",
        "scope": "`read`, `write` or `admin`",
        "label": "what its creator called it",
        "hint": "its last characters",
        "expires_at": "when it stops working",
        "revoked_at": "when it was revoked",
        "used_at": "when it was last used",
        "state": "`active`, `expired` or `revoked`",
    },
}

#: Types of members that have no value, or always one, in the sample.
TYPES: Final = {
    ("change", "purged"): "object or null",
    ("hit", "actor"): "string or null",
    ("hit", "at"): "time or null",
    ("hit", "id"): "string, integer or null",
    ("token", "used_at"): "time or null",
}

#: What each exit status means.
STATUS_MEANINGS: Final = {
    ExitStatus.OK: "success",
    ExitStatus.REFUSED: "refused: the request is not valid or not allowed",
    ExitStatus.USAGE: "usage: an unknown command or option, or a value or variable that is not valid",
    ExitStatus.NOT_FOUND: "not found",
    ExitStatus.CONFLICT: "conflict: a name is in use, somebody holds the task, or someone else made a change",
    ExitStatus.STORAGE: "the database cannot be read or written",
    ExitStatus.NONE_READY: "`dittybag task next`: no task was ready, or became ready in time",
}

#: Values that are not the same in every run: paths, sizes, secrets.
_VARIABLE: Final = re.compile(r"/(?:[\w.-]+/)+(?=(?:data|work)\b)")

FILES: Final = {
    "api.md": "# API\n",
    "notes.txt": "Buy tea\n",
    "tasks.csv": "title\nTidy up\n",
    "prompts/commit.md": "Write a commit message.\n",
}


class Output(NamedTuple):
    """What a command printed, as JSON."""

    command: str
    envelope: Any
    status: int


def run_script(folder: Path) -> Iterator[Output]:
    """Run all commands in a new folder."""
    for name, text in FILES.items():
        (folder / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "work" / name).write_text(text)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DITTYBAG_")}
    environment = inherited | {
        "HOME": str(folder),
        "DITTYBAG_HOME": str(folder / "data"),
        "DITTYBAG_AUTO_BACKUP": "off",
        "DITTYBAG_ACTOR": "ann",
        "editOR": "true",
    }
    fence = 0
    for line in SCRIPT.strip().splitlines():
        values = {"{fence}": str(fence), "{database}": str(folder / "data" / "default.db")}
        words = [values.get(word, word) for word in shlex.split(line)]
        done = run("dittybag", *words, "--json", env=environment, cwd=folder / "work")
        printed = done.stdout or done.stderr
        last = printed.splitlines()[-1] if printed else ""
        envelope: Any = msgspec.json.decode(last) if last.startswith("{") else None
        if words[:2] == ["task", "next"]:
            fence = envelope["data"]["fence"]
        yield Output(line, envelope, done.returncode)


def with_example_ids(text: str) -> str:
    """Replace ids and times, which differ from run to run."""
    numbers: dict[str, str] = {}

    def example_id(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], f"550e8400-e29b-41d4-a716-{len(numbers):012}")

    # The message about an invalid due date contains a time.
    recorded = re.compile(
        rf"(?P<until>until(?:\\?\":\\?\"| ))?(?:(?<=\")|(?<= )){TIME.pattern}(?=\\?\"|, until | unless|\\.)"
    )
    text = recorded.sub(_example_time, UUID.sub(example_id, text))
    # The items of a context pack have the minute.
    return re.sub(r"(?<=[( ])\d{4}-\d\d-\d\dT\d\d:\d\dZ(?= )", "2026-02-19T10:30Z", text)


def _example_time(match: re.Match[str]) -> str:
    return f"{match['until']}2026-02-19T11:30:00Z" if match["until"] else "2026-02-19T10:30:00Z"


def render_page() -> str:
    """Return the reference page."""
    with TemporaryDirectory() as folder:
        outputs = list(run_script(Path(folder)))
    by_command = {output.command: output.envelope for output in outputs}
    samples = {
        kind: _sample(by_command[command]["data"], member) for kind, (command, member) in KINDS.items()
    }
    types = _types(outputs, {frozenset(sample): kind for kind, sample in samples.items()})
    parts = [REFERENCE.read_text().partition(MARKER)[0] + MARKER, "## Exit status\n"]
    parts += ["| exit status | meaning |\n|---|---|"]
    parts += [f"| {status.value} | {meaning} |" for status, meaning in STATUS_MEANINGS.items()]
    parts.append("\n## Objects\n")
    for kind, sample in samples.items():
        parts += [f"### {kind.capitalize()}\n", "| member | type | meaning |\n|---|---|---|"]
        parts += [
            f"| `{name}` | {TYPES.get((kind, name)) or types[kind][name]} | {_meaning(kind, name)} |"
            for name in sample
        ]
        example = msgspec.json.format(msgspec.json.encode(sample), indent=1).decode()
        parts += ["", f"```json\n{_masked(example)}\n```\n"]
    parts += ["## Commands\n", "| command | `data` |\n|---|---|"]
    kinds = {frozenset(sample): kind for kind, sample in samples.items()}
    rows = {command_name(output.command): _describe(output.envelope, kinds) for output in outputs}
    parts += [f"| `{name}` | {rows[name]} |" for name in sorted(rows)]
    return "\n".join(parts).rstrip("\n") + "\n"


def command_name(line: str) -> str:
    """Return the words of a command without its arguments."""
    first, *others = line.split()
    name = f"{first} {others[0]}" if first in GROUPS else first
    return f"{name} {others[-1]}" if name in MODES and others else name


#: Commands that print JSON only with an option, or another object without it.
MODES: Final = ("history", "open")


#: Commands that have commands of their own.
GROUPS: Final = ("project", "prompt", "resource", "task", "tag", "library", "backup", "user", "token")


def _sample(data: Any, member: str) -> dict[str, Any]:
    found: dict[str, Any] = data[member][-1] if member else data
    return found


def _types(outputs: list[Output], kinds: Mapping[frozenset[str], str]) -> dict[str, dict[str, str]]:
    """Return the types of the members of each kind, in all objects of the kind that were printed."""
    found: dict[str, dict[str, set[str]]] = {kind: {} for kind in kinds.values()}

    def visit(value: Any) -> None:
        if isinstance(value, list):
            for item in value:
                visit(item)
        elif isinstance(value, dict):
            if (kind := kinds.get(frozenset(value))) is not None:
                for name, member in value.items():
                    found[kind].setdefault(name, set()).add(_type(member))
            for member in value.values():
                visit(member)

    for output in outputs:
        visit(output.envelope)
    order = ["string", "time", "integer", "boolean", "array", "object", "null"]
    return {
        kind: {name: " or ".join(sorted(types, key=order.index)) for name, types in members.items()}
        for kind, members in found.items()
    }


def _type(value: Any) -> str:
    if isinstance(value, str):
        return "time" if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", value) else "string"
    names = {bool: "boolean", int: "integer", list: "array", dict: "object", type(None): "null"}
    return names[type(value)]


def _meaning(kind: str, name: str) -> str:
    return MEANINGS[kind].get(name) or MEANINGS[""][name]


def _masked(text: str) -> str:
    text = re.sub(r'"hint": "[^"]+"', '"hint": "Qk3fA"', text)
    return with_example_ids(re.sub(_VARIABLE, "/home/ann/", text))


def _describe(envelope: Any, kinds: Mapping[frozenset[str], str]) -> str:
    """Return what the data of a command is: one of the kinds, or its members."""
    if envelope is None:
        return "prints text, not JSON"
    assert envelope["ok"] is True, envelope
    return _described(envelope["data"], kinds)


def _described(data: Any, kinds: Mapping[frozenset[str], str]) -> str:
    if (kind := kinds.get(frozenset(data))) is not None:
        return f"a [{kind}](#{kind.replace(' ', '-')})"
    # An object that has all members of a kind, and more.
    wider = [(keys, kind) for keys, kind in kinds.items() if len(keys) > 5 and keys < data.keys()]
    if wider:
        keys, kind = max(wider, key=lambda found: len(found[0]))
        more = ", ".join(_member(name, value, kinds) for name, value in data.items() if name not in keys)
        return f"a [{kind}](#{kind.replace(' ', '-')}) with {more}"
    return ", ".join(_member(name, value, kinds) for name, value in data.items())


def _member(name: str, value: Any, kinds: Mapping[frozenset[str], str]) -> str:
    sample = value[0] if isinstance(value, list) and value else value
    if isinstance(sample, dict) and (kind := kinds.get(frozenset(sample))) is not None:
        article = "" if isinstance(value, list) else "a "
        plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
        shown = plural if isinstance(value, list) else kind
        return f"`{name}` ({article}[{shown}](#{kind.replace(' ', '-')}))"
    return f"`{name}`"


if __name__ == "__main__":
    REFERENCE.write_text(render_page())
