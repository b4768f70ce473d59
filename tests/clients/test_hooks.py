"""Hooks in the configuration files of clients: installed, updated, and removed to the byte."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dittybag.clients.client_errors import ClientEntryForeign, ClientFileRefused
from dittybag.clients.connector import ConfigTarget, Launch, connect, disconnect
from dittybag.clients.hook_output import HOOK_OUTPUTS, hook_output
from dittybag.clients.hooks import (
    HooksResult,
    HookTarget,
    created_paths,
    hook_command,
    hooks_status,
    install_hooks,
    remove_hooks,
)
from dittybag.clients.known_clients import CLIENTS, SCOPES, ConfigScope, LocalMachine
from dittybag.clients.known_hooks import HOOKS

CLIENT_SCOPES: list[tuple[str, ConfigScope]] = [(name, scope) for name in HOOKS for scope in SCOPES]
#: Files of others: `EVENT` is the first event, `HOOK` a hook of another program.
OTHERS = {
    "one line": '{"a":1,"hooks":{"EVENT":[HOOK]},"z":[1, 2] }',
    "comments": '// mine\r\n{\r\n\t"hooks": {\r\n\t\t"EVENT": [\r\n\t\t\tHOOK, // keep\r\n\t\t],\r\n\t}}',
    "other event": '{\n    "model": "x",\n    "hooks": {\n        "Stop": [HOOK]\n    }\n}\n',
    "empty array": '{"version": 1, "hooks": {"EVENT": []}}\n',
    "empty hooks": '{\n  "hooks": {}\n}',
    "no hooks": '{\n  "permissions": {"allow": ["Bash"]}\n}\n',
    "only a comment": "// nothing yet\n",
    "empty": "",
}
PROGRAM = "/opt/ditty bag/bin/dittybag"
LAUNCH = Launch(PROGRAM, (), ("serve", "--project", "auto", "--profile", "agent"))
MOVED = Launch(
    "/usr/bin/python3",
    ("-m", "dittybag"),
    ("serve", "--db", "/srv/it's.db", "--project", "site", "--profile", "agent"),
    {"DITTYBAG_HOME": "/srv/bag"},
)


class HookFile:
    """The file with the hooks of a client, on an empty machine."""

    def __init__(self, folder: Path, client: str, scope: ConfigScope = "user") -> None:
        self.machine = LocalMachine({}, "linux", folder / "home", folder / "work")
        self.home = str(folder / "dittybag")
        target = HookTarget.resolve(CLIENTS[client], scope, self.machine)
        assert target is not None
        self.target, self.file, self.hooks = target, target.file, target.hooks
        self.event = next(iter(self.hooks.events))
        self.other = json.dumps(self.hooks.value("say dittybag | prime"))

    def write(self, text: str) -> bytes:
        text = text.replace("EVENT", self.event).replace("HOOK", self.other)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(text.encode())
        return text.encode()

    def command(self, launch: Launch = LAUNCH) -> str:
        return hook_command(launch, self.hooks, "linux")

    def install(self, launch: Launch = LAUNCH, *, dry_run: bool = False) -> HooksResult:
        return install_hooks(self.target, self.command(launch), self.home, dry_run=dry_run)

    def remove(self) -> HooksResult:
        return remove_hooks(self.target, self.home)

    def commands(self) -> list[str]:
        """All commands in the file, without comments and trailing commas."""
        text = self.file.read_text()
        lines = [line.partition("//")[0] for line in text.splitlines()]
        found: list[str] = []

        def collect(value: Any) -> None:
            if isinstance(value, dict):
                found.extend([value["command"]] if "command" in value else ())
                value = list(value.values())
            if isinstance(value, list):
                for part in value:
                    collect(part)

        compact = "".join("".join(lines).split("\t")).replace(",]", "]").replace(",}", "}")
        collect(json.loads(compact))
        return found


@pytest.mark.parametrize(("client", "scope"), CLIENT_SCOPES)
def test_files_are_created_and_removed(tmp_path: Path, client: str, scope: ConfigScope) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    file = HookFile(tmp_path, client, scope)
    assert hooks_status(file.target).state == "absent"
    assert file.remove().state == "absent"
    preview = file.install(dry_run=True)
    assert not file.file.exists()
    assert preview.diff.count('"command": ') == len(file.hooks.events)
    assert file.install().state == "installed"
    assert file.file.read_text() == preview.text
    assert json.loads(preview.text) == {
        **file.hooks.header,
        "hooks": {event: [file.hooks.value(file.command())] for event in file.hooks.events},
    }
    assert hooks_status(file.target).state == "installed"
    if scope == "user":
        assert file.file in created_paths(CLIENTS[client], file.machine, file.home)
        assert not CLIENTS[client].is_installed(
            file.machine, created_paths(CLIENTS[client], file.machine, file.home)
        )
    assert (file.install().state, file.install(MOVED).state) == ("unchanged", "updated")
    assert file.commands() == [file.command(MOVED)] * len(file.hooks.events)
    assert file.remove().state == "removed"
    assert [path for name in ("home", "work") for path in (tmp_path / name).iterdir()] == []


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("client", HOOKS)
def test_hooks_of_others_stay_the_same_to_the_byte(tmp_path: Path, client: str, others: str) -> None:
    file = HookFile(tmp_path, client)
    before = file.write(OTHERS[others])
    result = file.install()
    assert result.state == "installed"
    assert (result.backup is not None and Path(result.backup).read_bytes()) == before
    installed = file.file.read_bytes()
    for word in (b"keep", b"mine", b"say dittybag"):
        assert installed.count(word) == before.count(word)
    assert installed.count(b"bin/dittybag' prime") == len(file.hooks.events)
    assert file.install().state == "unchanged"
    assert file.file.read_bytes() == installed
    assert file.install(MOVED).state == "updated"
    assert file.remove().state == "removed"
    assert file.file.read_bytes() == before
    assert file.remove().state == "absent"


@pytest.mark.parametrize("others", ["comments", "other event", "no hooks", "empty"])
@pytest.mark.parametrize("client", HOOKS)
def test_edits_in_between_are_kept(tmp_path: Path, client: str, others: str) -> None:
    """Somebody adds a hook before ours and a setting at the start of the file."""
    file = HookFile(tmp_path, client)
    before = file.write(OTHERS[others]).decode()
    file.install()
    text = file.file.read_bytes().decode()
    addition = '{"new": {"x": [1]}, // new\n'
    file.file.write_bytes(text.replace("{", addition, 1).encode())
    assert file.remove().state == "removed"
    after = file.file.read_bytes().decode()
    if "{" in before:
        assert after == before.replace("{", addition, 1)
    else:
        assert json.loads(after.replace("// new", "").replace("// nothing yet", "")) == {
            "new": {"x": [1]},
            **file.hooks.header,
        }


@pytest.mark.parametrize("client", HOOKS)
def test_files_of_any_formatting_are_restored(tmp_path: Path, client: str) -> None:
    file = HookFile(tmp_path, client)
    random = Random(client)
    for _ in range(25):
        text = _random_file(random, file)
        before = file.write(text)
        assert file.install().state in ("installed", "unchanged"), text
        if random.random() < 0.5:
            file.install(MOVED)
        addition = random.choice(["", '"added": {"hooks": []}, /* } */\t', "// [\n"])
        installed = file.file.read_bytes().decode()
        file.file.write_bytes(installed.replace("{", "{" + addition, 1).encode())
        assert file.remove().state == "removed", text
        assert file.file.read_bytes() == before.replace(b"{", b"{" + addition.encode(), 1), text


def _random_file(random: Random, file: HookFile) -> str:
    """A file with hooks of others, in the style of somebody who formats by hand."""

    def gap() -> str:
        return random.choice(["", "", " ", "\n", "\r\n\t", "\n    ", " /* [, */ ", " // ]}\n"])

    def joined(parts: list[str], brackets: str) -> str:
        comma = "," if parts and random.random() < 0.3 else ""
        inside = ",".join(f"{gap()}{part}{gap()}" for part in parts)
        return f"{brackets[0]}{inside}{comma}{gap()}{brackets[1]}"

    def other() -> str:
        return random.choice(["HOOK", '{"hooks": []}', '{"command": ["dittybag", "prime"]}', "null"])

    names = random.sample([*file.hooks.events, "Stop", "hooks", "é"], k=random.randint(0, 3))
    events = [f'"{name}"{gap()}:{gap()}' + joined([other()] * random.randint(0, 3), "[]") for name in names]
    members = [f'"hooks": {joined(events, "{}")}'] if random.random() < 0.8 else []
    members += random.sample(['"model": "x"', '"a": [1, {"hooks": 2}]', '"b": {}'], k=random.randint(0, 3))
    random.shuffle(members)
    return gap() + joined(members, "{}") + random.choice(["", "\n"])


@pytest.mark.parametrize("client", HOOKS)
def test_a_hook_that_somebody_changed_is_updated_and_removed(tmp_path: Path, client: str) -> None:
    file = HookFile(tmp_path, client)
    file.write(OTHERS["one line"])
    file.install()
    text = file.file.read_text()
    changed = f'"timeout": {file.hooks.timeout}'
    at = text.rindex(changed)
    file.file.write_text(text[:at] + '"timeout": 77' + text[at + len(changed) :])
    assert file.install().state == "unchanged"
    assert file.install(MOVED).state == "updated"
    assert '"timeout": 77' in file.file.read_text()
    file.remove()
    assert json.loads(file.file.read_text()) == {
        "a": 1,
        "hooks": {file.event: [json.loads(file.other)]},
        "z": [1, 2],
    }


def test_a_group_with_commands_of_others_is_not_removed(tmp_path: Path) -> None:
    file = HookFile(tmp_path, "claude-code")
    group = file.hooks.value(file.command())
    group["hooks"].append({"type": "command", "command": "say hello"})
    file.write(json.dumps({"hooks": {"SessionStart": [group]}}))
    assert hooks_status(file.target).state == "partial"
    assert file.install().state == "updated"
    with pytest.raises(ClientFileRefused, match="in a group with other commands"):
        file.install(MOVED)
    with pytest.raises(ClientEntryForeign, match="in a group with other commands"):
        file.remove()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"hooks": []}', "'hooks' is not an object"),
        ('{"hooks": {"SessionStart": {}}}', "'SessionStart' of 'hooks' is not an array"),
        ('{"hooks": {"SessionStart": [}}', "not valid JSON"),
        ('{"hooks": {}, "hooks": {}}', "occurs more than once"),
    ],
)
def test_files_that_cannot_be_edited_safely_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    file = HookFile(tmp_path, "codex")
    before = file.write(text)
    with pytest.raises(ClientFileRefused, match=problem):
        file.install()
    assert file.file.read_bytes() == before
    assert hooks_status(file.target).state == "unreadable"


def test_the_entry_and_the_hooks_of_one_file_are_removed_in_any_order(tmp_path: Path) -> None:
    for order in ("entry first", "hooks first"):
        file = HookFile(tmp_path / order, "gemini")
        before = file.write('{\n  "theme": "Atom"\n}\n')
        target = ConfigTarget.resolve(CLIENTS["gemini"], "user", file.machine, "dittybag")
        assert target is not None
        assert target.file == file.file
        connect(target, LAUNCH, file.home)
        file.install()
        if order == "entry first":
            disconnect(target, file.home)
            file.remove()
            assert json.loads(file.file.read_bytes()) == json.loads(before)
        else:
            file.remove()
            disconnect(target, file.home)
            assert file.file.read_bytes() == before


def test_commands_work_in_a_shell_and_are_recognised(tmp_path: Path) -> None:
    hooks = HOOKS["claude-code"]
    assert hook_command(LAUNCH, hooks, "linux") == f"'{PROGRAM}' prime --actor claude-code"
    moved = hook_command(MOVED, HOOKS["gemini"], "linux")
    assert moved == (
        "env DITTYBAG_HOME=/srv/bag /usr/bin/python3 -m dittybag prime "
        """--db '/srv/it'"'"'s.db' --project site --actor gemini-cli-mcp-client --format hook"""
    )
    windows = hook_command(
        Launch(r"C:\Program Files\dittybag.exe", (), LAUNCH.arguments), HOOKS["cursor"], "win32"
    )
    assert windows == r'"C:\Program Files\dittybag.exe" prime --actor cursor-vscode --format cursor'
    file = HookFile(tmp_path, "claude-code")
    servers: list[Any] = []
    for command in (moved, windows, r"C:\bin\dittybag.exe prime"):
        file.write(json.dumps({"hooks": {"SessionStart": [hooks.value(command)]}}))
        assert hooks_status(file.target, servers.append).state == "partial"
    assert servers[0]["args"][:7] == ["-m", "dittybag", "serve", "--db", "/srv/it's.db", "--project", "site"]
    assert servers[0]["command"] == "/usr/bin/python3"
    assert servers[0]["env"] == {"DITTYBAG_HOME": "/srv/bag"}
    for other in ("prime", "echo prime", "dittybag serve", "dittybag 'prime", "env A=1 prime", 5):
        file.write(json.dumps({"hooks": {"SessionStart": [{"hooks": [{"command": other}]}, "x"]}}))
        assert hooks_status(file.target).state == "absent"


def test_output_has_the_form_that_the_client_reads() -> None:
    text = 'Tasks: "a"\n✓'
    printed = {output: hook_output(text, output) for output in HOOK_OUTPUTS}
    assert printed["text"] == text
    assert json.loads(printed["cursor"]) == {"additional_context": text}
    assert json.loads(printed["hook"]) == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}
    }
    assert {hook_output("", output) for output in HOOK_OUTPUTS} == {""}
