"""`dittybag project`: projects and their members."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.cli_runner import dittybag, failure


def test_projects_are_created_listed_renamed_and_deleted(tmp_path: Path) -> None:
    assert dittybag(tmp_path, "project", "create", "auth module").stdout == "Created project 'auth module'\n"
    assert (
        dittybag(tmp_path, "project", "rename", "auth module", "auth").stdout
        == "Renamed project 'auth module' to 'auth'\n"
    )
    assert dittybag(tmp_path, "project", "list").stdout == (
        "project  prompts  resources  tasks\n"
        "default        0          0      0\n"
        "auth           0          0      0\n"
    )
    assert dittybag(tmp_path, "project", "delete", "auth").stdout == "Deleted project 'auth'\n"
    assert "auth" not in dittybag(tmp_path, "project", "list").stdout


# Members


def shown_members(home: Path, project: str) -> list[str]:
    return re.findall(r"^Member: +(.*)$", dittybag(home, "project", "show", project).stdout, re.MULTILINE)


def test_projects_are_shared_and_unshared(tmp_path: Path) -> None:
    dittybag(tmp_path, "project", "create", "auth")
    for name in ("alice", "bob"):
        dittybag(tmp_path, "user", "add", name)
    assert shown_members(tmp_path, "auth") == []
    first = dittybag(tmp_path, "project", "share", "auth", "alice")
    assert first.stdout == "User 'alice' can read and change project 'auth'\n"
    assert first.stderr == "note: project 'auth' is now visible over HTTP to its members only\n"
    second = dittybag(tmp_path, "project", "share", "auth", "bob", "--read")
    assert (second.stdout, second.stderr) == ("User 'bob' can read project 'auth'\n", "")
    assert shown_members(tmp_path, "auth") == ["alice (write)", "bob (read)"]
    dittybag(tmp_path, "project", "share", "auth", "bob")
    assert shown_members(tmp_path, "auth") == ["alice (write)", "bob (write)"]
    removed = dittybag(tmp_path, "project", "unshare", "auth", "bob")
    assert removed.stdout == "Removed user 'bob' from project 'auth'\n"
    last = dittybag(tmp_path, "project", "unshare", "auth", "alice", status=4)
    assert last.stderr == (
        "error: 'alice' is the last member of project 'auth'; without members, everyone can see it\n"
        "hint: use --open to remove the last member\n"
    )
    error = failure(dittybag(tmp_path, "project", "unshare", "auth", "alice", "--json", status=4))
    assert error["code"] == "LAST_MEMBER"
    assert shown_members(tmp_path, "auth") == ["alice (write)"]
    opened = dittybag(tmp_path, "project", "unshare", "auth", "alice", "--open")
    assert opened.stderr == "note: project 'auth' is now visible to all users\n"
