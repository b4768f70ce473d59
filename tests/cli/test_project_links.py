"""`dittybag project link`, `unlink`, `show` and `list`: the links from folders to projects."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import pytest

from tests.cli.cli_runner import data, failure
from tests.folders.folder_client import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_folder_is_linked_to_the_project_with_its_name(machine: Machine) -> None:
    top = machine.repository("website")
    pages = machine.folder("website", "pages")
    linked = machine.command(pages, "project", "link").stdout
    assert linked == f"Linked {top} to project 'website'\n"
    assert machine.projects() == {"website": [str(top)]}
    # Again, nothing changes.
    assert machine.command(pages, "project", "link").stdout == linked
    assert machine.projects() == {"website": [str(top)]}


def test_a_folder_is_linked_to_any_project(machine: Machine) -> None:
    one, two = machine.folder("one"), machine.folder("two")
    machine.command(machine.path, "project", "create", "shared")
    for folder in (one, two):
        result = machine.command(
            machine.path, "project", "link", str(folder), "--project", "shared", "--json"
        )
        assert data(result) == {"folder": str(folder), "project": "shared"}
    assert machine.projects() == {"shared": [str(one), str(two)]}
    listed = machine.command(machine.path, "project", "list").stdout.split("\n")
    assert listed[0].split() == ["project", "prompts", "resources", "tasks", "folders"]
    assert f"{one}, {two}" in listed[2]


def test_a_folder_is_linked_to_one_project_at_a_time(machine: Machine) -> None:
    top = machine.repository("website")
    machine.command(machine.path, "project", "create", "other")
    machine.command(top, "project", "link")
    machine.command(top, "project", "link", "-p", "other")
    assert machine.projects() == {"website": [], "other": [str(top)]}


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (("link", "-p", "nope"), 3, "Project 'nope' does not exist"),
        (("link", "nowhere"), 2, "does not exist"),
        (("link", "/"), 1, "The home folder and / cannot be linked to a project"),
        (("link", "~"), 1, "The home folder and / cannot be linked to a project"),
        (("unlink",), 3, "is not linked to a project"),
        (("unlink", "nowhere"), 3, "is not linked to a project"),
        (("show", "nope"), 3, "Project 'nope' does not exist"),
    ],
)
def test_what_cannot_be_linked_is_refused(
    machine: Machine, arguments: tuple[str, ...], status: int, problem: str
) -> None:
    given = [str(machine.home) if argument == "~" else argument for argument in arguments]
    error = failure(machine.command(machine.folder("website"), "project", *given, "--json", status=status))
    assert problem in error["message"]
    assert machine.projects() == {}


def test_a_folder_is_unlinked_also_after_it_was_deleted(machine: Machine) -> None:
    folder = machine.folder("website")
    machine.command(folder, "project", "link")
    folder.rmdir()
    unlinked = machine.command(machine.path, "project", "unlink", str(folder)).stdout
    assert unlinked == f"Unlinked {folder}\n"
    assert machine.projects() == {"website": []}


def test_the_project_of_a_folder_is_shown(machine: Machine) -> None:
    top = machine.repository("website")
    result = machine.command(top, "project", "show")
    assert result.stdout.split("\n")[0] == "Project:   website"
    assert "does not exist yet" in result.stderr
    assert "is not linked" not in result.stderr
    machine.command(top, "prompt", "add", "a", "x", "-p", "auto")
    shown = data(machine.command(top, "project", "show", "--json"))
    assert {name: shown[name] for name in ("name", "prompts", "exists", "folders")} == {
        "name": "website",
        "prompts": 1,
        "exists": True,
        "folders": [str(top)],
    }
    assert data(machine.command(machine.path, "project", "show", "default", "--json"))["folders"] == []
    assert "Folder:    " in machine.command(machine.path, "project", "show", "website").stdout


def test_a_project_with_the_name_of_the_folder_that_is_not_linked_is_mentioned(machine: Machine) -> None:
    top = machine.repository("src", "website")
    machine.command(machine.path, "project", "create", "website")
    result = machine.command(top, "project", "show")
    assert result.stdout.startswith("Project:   src-website\n")
    assert "project 'website' exists, but is not linked to this folder" in result.stderr


def test_the_file_of_links_is_private(machine: Machine) -> None:
    machine.command(machine.folder("website"), "project", "link")
    (file,) = (machine.data / "project-links").glob("*.json")
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_links_that_are_made_at_the_same_time_are_all_kept(machine: Machine) -> None:
    folders = [machine.folder(f"folder{number}") for number in range(6)]
    machine.command(machine.path, "project", "create", "shared")

    def link(folder: Path) -> None:
        machine.command(folder, "project", "link", "-p", "shared")

    threads = [Thread(target=link, args=(folder,)) for folder in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(machine.projects()["shared"]) == [str(folder) for folder in folders]


def test_a_link_can_be_made_through_a_symbolic_link(machine: Machine) -> None:
    top = machine.repository("website")
    (machine.path / "shortcut").symlink_to(top)
    machine.command(machine.path, "project", "link", "shortcut")
    assert machine.projects() == {"website": [str(top)]}
