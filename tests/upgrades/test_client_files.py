"""Files of clients that every release has edited: they are recognised, updated and restored."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.forked_processes import ROOT, run
from tests.upgrades.client_snapshot import Snapshot, create_root, restore_snapshot, take_snapshot
from tests.upgrades.golden_release import RELEASES, ClientFiles, GoldenRelease, golden_releases
from tests.upgrades.make_release import write_program
from tests.upgrades.release_content import CLIENT_FILES

FILES_OF_OTHERS = ("home", "project")


class UpgradedUser:
    """A user who has upgraded from a release: its files, and today's program at the same path."""

    def __init__(self, release: GoldenRelease, folder: Path) -> None:
        self.root = create_root(folder)
        self.files: ClientFiles = release.clients()
        restore_snapshot(self.root, self.files.after)
        release.write_database(self.root / "data" / "default.db")
        self.program = write_program(self.root, ROOT)

    def run(self, *arguments: str, status: int = 0, installed: bool = True) -> str:
        """Run a command in the folder of the project. `installed`: with the program at its old path."""
        environment = {
            "HOME": str(self.root / "home"),
            "PATH": "/nowhere",
            "LANG": "C.UTF-8",
            "DITTYBAG_HOME": str(self.root / "data"),
            "DITTYBAG_AUTO_BACKUP": "off",
            "INSTALLED_PROGRAM": str(self.program),
        }
        module = "tests.upgrades.installed_program" if installed else "dittybag"
        result = run(module, *arguments, cwd=self.root / "project", env=environment)
        assert result.returncode == status, result
        return result.stdout

    def findings(self, topic: str, *, installed: bool = True) -> list[dict[str, Any]]:
        found = json.loads(self.run("doctor", "--json", installed=installed))["data"]["findings"]
        return [finding for finding in found if finding["topic"] == topic]

    def outdated(self) -> set[tuple[str, str]]:
        """The entries and hooks that the list of clients shows as outdated: client and scope."""
        clients = json.loads(self.run("connect", "--json"))["data"]["clients"]
        assert {client["state"] for client in clients} == {"connected"}
        return {(client["client"], client["scope"]) for client in clients if client["outdated"]}

    def snapshot(self) -> Snapshot:
        return take_snapshot(self.root, FILES_OF_OTHERS, ignored="^$")

    def remove_all(self) -> None:
        self.run("connect", *CLIENT_FILES, "--remove")
        self.run("connect", "cursor", "claude-code", "--scope", "project", "--remove")
        if any(name.startswith("data/publish/") for name in self.files.after):
            self.run("publish", "review", "greet", "--to", "claude-code", "--remove")
            self.run("publish", "review", "--to", "gemini", "--user", "--remove")
            self.run("publish", "greet", "--to", "agents-md", "--remove")


@pytest.fixture(params=golden_releases("clients.json"), ids=lambda release: release.name)
def user(request: pytest.FixtureRequest, tmp_path: Path) -> UpgradedUser:
    return UpgradedUser(request.param, tmp_path)


def test_removing_restores_the_files_as_they_were_before_the_release(user: UpgradedUser) -> None:
    user.remove_all()
    assert user.snapshot() == user.files.before
    assert list((user.root / "data" / "connect").glob("*.json")) == []
    assert list((user.root / "data").glob("publish/*.json")) == []


def test_the_doctor_names_outdated_entries_and_its_commands_update_them(user: UpgradedUser) -> None:
    entries = [file.text for name, file in user.files.after.items() if not name.startswith("data/")]
    is_outdated = not any('"--profile", "agent"' in text for text in entries)
    expected = {(client, "user") for client in CLIENT_FILES} | {
        ("cursor", "project"),
        ("claude-code", "project"),
    }
    assert user.outdated() == (expected if is_outdated else set())
    fixes = [finding["fix"] for finding in user.findings("clients") if finding["level"] != "ok"]
    assert len(fixes) == (len(expected) if is_outdated else 0)
    user.run("prompt", "list")
    assert {finding["level"] for finding in user.findings("published files")} <= {"ok"}
    if not is_outdated:
        return
    for fix in fixes:
        command = shlex.split(fix.removesuffix(" updates it"))
        assert command[0] == "dittybag"
        user.run(*command[1:])
    assert user.outdated() == set()
    assert [finding["level"] for finding in user.findings("clients")] == ["ok"]
    assert (
        '"--project", "website", "--profile", "agent"'
        in (user.root / "project" / ".cursor" / "mcp.json").read_text()
    )
    user.remove_all()
    assert user.snapshot() == user.files.before


@pytest.mark.parametrize("name", ["0.1.0-schema-4", "0.1.0"])
def test_the_doctor_names_entries_whose_program_or_database_is_gone(name: str, tmp_path: Path) -> None:
    user = UpgradedUser(GoldenRelease(RELEASES / name), tmp_path)
    (user.root / "data" / "default.db").unlink()
    broken = [finding for finding in user.findings("clients") if finding["level"] == "warning"]
    (finding,) = broken
    assert "the project 'website' does not exist in" in finding["message"]
    assert finding["fix"].startswith("dittybag connect cursor --scope project replaces it")
    user.program.unlink()
    broken = [
        finding["message"]
        for finding in user.findings("clients", installed=False)
        if finding["level"] == "warning" and "the entry" in finding["message"]
    ]
    assert len(broken) == len(CLIENT_FILES) + 2
    assert all(f"the program {user.program} does not exist" in message for message in broken)


def test_the_doctor_names_entries_that_start_another_installation(tmp_path: Path) -> None:
    user = UpgradedUser(GoldenRelease(RELEASES / "0.2.0"), tmp_path)
    before = user.program
    user.program = before.with_name("dittybag-of-another-installer") / "dittybag"
    user.program.parent.mkdir()
    user.program.symlink_to(before)
    notes = [finding for finding in user.findings("clients") if finding["level"] == "note"]
    assert len(notes) == len(CLIENT_FILES) + 2
    reason = f"it starts another installation of Dittybag, {before}"
    assert all(note["message"].endswith(f"is outdated: {reason}") for note in notes)
    (codex,) = [note for note in notes if note["message"].startswith("Codex: ")]
    assert codex["fix"] == "dittybag connect codex updates it"
    user.run("connect", "codex")
    assert f'"{user.program}"' in (user.root / "home" / ".codex" / "config.toml").read_text()
    notes = [finding for finding in user.findings("clients") if finding["level"] == "note"]
    assert len(notes) == len(CLIENT_FILES) + 1


def test_the_doctor_names_hooks_of_an_older_version(tmp_path: Path) -> None:
    user = UpgradedUser(GoldenRelease(RELEASES / "0.2.0"), tmp_path)
    hooks = user.root / "home" / ".codex" / "hooks.json"
    today = hooks.read_text()
    older = today.replace(" --actor codex-mcp-client", "")
    for file in (hooks, *(user.root / "data" / "connect").glob("hooks.*.json")):
        file.write_text(file.read_text().replace(" --actor codex-mcp-client", ""))
    (note,) = [finding for finding in user.findings("clients") if finding["level"] == "note"]
    assert note["message"] == "Codex: an older version of Dittybag wrote the hooks"
    assert note["fix"] == "dittybag connect codex --hooks updates them"
    user.run("connect", "codex", "--hooks")
    assert hooks.read_text() == today
    # An edited hook is the user's.
    hooks.write_text(older.replace('"timeout": 10', '"timeout": 20'))
    assert [finding["level"] for finding in user.findings("clients")] == ["ok"]
