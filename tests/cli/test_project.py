"""`satchel project`, as a person and as a script use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import data, satchel


def test_projects_are_created_listed_renamed_and_deleted(tmp_path: Path) -> None:
    assert satchel(tmp_path, "project", "create", "auth module").stdout == "Created project 'auth module'\n"
    assert (
        satchel(tmp_path, "project", "rename", "auth module", "auth").stdout
        == "Renamed project 'auth module' to 'auth'\n"
    )
    assert satchel(tmp_path, "project", "list").stdout == (
        "project  prompts  resources  tasks\n"
        "default        0          0      0\n"
        "auth           0          0      0\n"
    )
    assert satchel(tmp_path, "project", "delete", "auth").stdout == "Deleted project 'auth'\n"
    assert "auth" not in satchel(tmp_path, "project", "list").stdout


def test_json_for_scripts(tmp_path: Path) -> None:
    assert data(satchel(tmp_path, "project", "create", "auth", "--json")) == {"name": "auth"}
    listed = data(satchel(tmp_path, "project", "list", "--json"))
    assert [project["name"] for project in listed["projects"]] == ["default", "auth"]
    assert set(listed["projects"][0]) == {"name", "prompts", "resources", "tasks", "created_at"}


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (("create", "default"), 4, "Project 'default' already exists"),
        (("create", " x"), 1, "Project name must not begin or end with a blank"),
        (("create", ""), 1, "Project name must be 1-100 characters"),
        (("create", "x" * 101), 1, "Project name must be 1-100 characters"),
        (("create", "a\nb"), 1, "Project name must not contain control characters"),
        (("rename", "nope", "x"), 3, "Project 'nope' does not exist"),
        (("rename", "default", "x"), 4, "it can be neither renamed nor deleted"),
        (("delete", "default"), 4, "it can be neither renamed nor deleted"),
        (("delete", "nope"), 3, "Project 'nope' does not exist"),
        (("create",), 2, "Missing argument 'NAME'"),
        (("create", "x", "--db", "y", "--workspace", "z"), 2, "give either --workspace or --db, not both"),
    ],
)
def test_what_cannot_be_done_is_said_on_standard_error(
    tmp_path: Path, arguments: tuple[str, ...], status: int, problem: str
) -> None:
    done = satchel(tmp_path, "project", *arguments, status=status)
    assert problem in done.stderr
    assert done.stdout == ""


def test_workspaces_are_apart(tmp_path: Path) -> None:
    satchel(tmp_path, "project", "create", "one", "--workspace", "work")
    assert "one" not in satchel(tmp_path, "project", "list").stdout
    assert "one" in satchel(tmp_path, "project", "list", "--db", str(tmp_path / "work.db")).stdout
