"""`dittybag task` with `-p`: a project, whose members share the task."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_runner import data, dittybag
from tests.folders.folder_client import Machine


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data folder with the projects `demo` and `site`."""
    for name in ("demo", "site"):
        dittybag(tmp_path, "project", "create", name)
    return tmp_path


def add(home: Path, *arguments: str, **variables: str) -> dict[str, Any]:
    task: dict[str, Any] = data(dittybag(home, "task", "add", *arguments, "--json", variables=variables))
    return task


def titles(home: Path, *arguments: str, **variables: str) -> list[str]:
    found = data(dittybag(home, "task", "list", *arguments, "--json", variables=variables))["tasks"]
    return [task["title"] for task in found]


def belongs_to(task: dict[str, Any]) -> tuple[str | None, bool]:
    return task["project"], task["shared"]


def test_a_task_belongs_to_the_project_of_the_option_or_the_environment(home: Path) -> None:
    assert belongs_to(add(home, "a", "-p", "demo")) == ("demo", True)
    assert belongs_to(add(home, "b", DITTYBAG_PROJECT="site")) == ("site", True)
    assert belongs_to(add(home, "c", "-p", "demo", DITTYBAG_PROJECT="site")) == ("demo", True)
    assert belongs_to(add(home, "d")) == (None, False)
    assert belongs_to(add(home, "e", "-p", "", DITTYBAG_PROJECT="site")) == (None, False)
    assert belongs_to(add(home, "f", "-p", "default")) == ("default", True)


def test_lists_have_the_tasks_of_the_project_or_all_of_them(home: Path) -> None:
    for title, project in [("a", "demo"), ("b", "site"), ("c", "")]:
        add(home, title, "-p", project)
    assert titles(home) == ["a", "b", "c"]
    assert titles(home, "-p", "demo") == ["a"]
    assert titles(home, DITTYBAG_PROJECT="site") == ["b"]
    assert titles(home, "-p", "", DITTYBAG_PROJECT="site") == ["a", "b", "c"]
    assert titles(home, "--no-project") == ["c"]
    graph = dittybag(home, "task", "graph", variables={"DITTYBAG_PROJECT": "site"}).stdout
    assert re.findall(r"<br/>(.*?)\"", graph) == ["b"]


def test_a_task_moves_to_the_project_of_the_option_only(home: Path) -> None:
    add(home, "a", "-p", "demo")

    def update(*arguments: str, **variables: str) -> dict[str, Any]:
        command = ("task", "edit", "1", *arguments, "--json")
        task: dict[str, Any] = data(dittybag(home, *command, variables=variables))
        return task

    assert belongs_to(update("-P", "5", DITTYBAG_PROJECT="site")) == ("demo", True)
    assert belongs_to(update("-p", "site")) == ("site", True)
    assert belongs_to(update("-p", "")) == (None, False)


def test_auto_is_the_project_of_the_folder(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    folder = machine.repository("website")

    def run(*arguments: str) -> Any:
        return data(machine.command(folder, "task", *arguments, "-p", "auto", "--json"))

    assert run("list")["tasks"] == []
    assert belongs_to(run("add", "a")) == ("website", True)
    machine.command(folder, "task", "add", "mine")
    assert [task["title"] for task in run("list")["tasks"]] == ["a"]
    assert belongs_to(run("edit", "2")) == ("website", True)
    assert [task["title"] for task in run("list")["tasks"]] == ["a", "mine"]
