"""`dittybag import`, with tasks of other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_runner import data, dittybag, failure
from tests.cli.pseudo_terminal import run_in_terminal, strip_colours

BEADS = [
    {"id": "bd-1", "title": "Epic", "status": "open", "priority": 1, "issue_type": "epic"},
    {
        "id": "bd-2",
        "title": "Build",
        "status": "in_progress",
        "priority": 0,
        "assignee": "ann",
        "dependencies": [{"issue_id": "bd-2", "depends_on_id": "bd-1", "type": "parent-child"}],
    },
    {
        "id": "bd-3",
        "title": "Ship",
        "status": "open",
        "priority": 2,
        "dependencies": [
            {"issue_id": "bd-3", "depends_on_id": "bd-2", "type": "blocks"},
            {"issue_id": "bd-3", "depends_on_id": "bd-99", "type": "blocks"},
        ],
    },
    {"id": "bd-4", "title": "Old", "status": "closed", "priority": 2, "closed_at": "2026-01-01T00:00:00Z"},
]


def write_beads(folder: Path, issues: list[dict[str, Any]] = BEADS) -> str:
    path = folder / "issues.jsonl"
    path.write_text("".join(json.dumps(issue) + "\n" for issue in issues))
    return str(path)


def shown_tasks(home: Path) -> list[dict[str, Any]]:
    return [
        data(dittybag(home, "task", "show", str(task["id"]), "--json"))
        for task in sorted(
            data(dittybag(home, "task", "list", "--include-done", "--json"))["tasks"],
            key=lambda task: task["id"],
        )
    ]


def test_tasks_are_imported_once_and_one_undo_removes_them(tmp_path: Path) -> None:
    source = write_beads(tmp_path)
    preview = dittybag(tmp_path, "import", source, "--dry-run")
    assert preview.stdout == "Would import 4 tasks\n"
    assert not list(tmp_path.rglob("*.db"))

    first = dittybag(tmp_path, "import", source)
    assert first.stdout == "Imported 4 tasks\n"
    assert first.stderr == (
        "Notes:\n  dependency on 'bd-99', which is not in the source, was left out (bd-3)\n"
    )
    epic, build, ship, old = tasks = shown_tasks(tmp_path)
    assert [task["title"] for task in tasks] == ["Epic", "Build", "Ship", "Old"]
    assert (build["parent"], ship["blocked_by"]) == (epic["id"], [build["id"]])
    assert [task["priority"] for task in tasks] == [4, 5, 3, 3]
    assert (build["status"], build["assignee"], build["links"]) == ("doing", "ann", ["beads:bd-2"])
    assert old["completed_at"] == "2026-01-01T00:00:00Z"

    second = dittybag(tmp_path, "import", source)
    assert second.stdout == "Imported nothing\nSkipped 4 tasks\n"
    assert shown_tasks(tmp_path) == tasks

    dittybag(tmp_path, "undo", "--yes")
    assert shown_tasks(tmp_path) == []


def test_a_later_import_adds_what_is_new(tmp_path: Path) -> None:
    dittybag(tmp_path, "import", write_beads(tmp_path, BEADS[:2]))
    dittybag(tmp_path, "task", "edit", "2", "--title", "Renamed")
    later = dittybag(tmp_path, "import", write_beads(tmp_path))
    assert later.stdout == "Imported 2 tasks\nSkipped 2 tasks\n"
    _, renamed, ship, _ = shown_tasks(tmp_path)
    assert (renamed["title"], ship["blocked_by"]) == ("Renamed", [2])


def test_json_output_has_the_counts_and_notes(tmp_path: Path) -> None:
    source = write_beads(tmp_path)
    for arguments, created, known in ((["--dry-run"], 4, 0), ([], 4, 0), ([], 0, 4)):
        result = data(dittybag(tmp_path, "import", source, "--json", *arguments))
        assert (result["format"], result["dry_run"]) == ("beads", bool(arguments))
        assert (result["imported"]["tasks"], result["skipped"]["tasks"]) == (created, known)
        assert result["notes"] == ["dependency on 'bd-99', which is not in the source, was left out (bd-3)"]


def test_tasks_are_imported_into_a_project(tmp_path: Path) -> None:
    source = write_beads(tmp_path)
    refused = dittybag(tmp_path, "import", source, "-p", "team", status=3)
    assert refused.stderr.startswith("error: Project 'team' does not exist\n")
    dittybag(tmp_path, "project", "create", "team")
    assert dittybag(tmp_path, "import", source, "-p", "team").stdout == "Imported 4 tasks\n"
    assert {task["project"] for task in shown_tasks(tmp_path)} == {"team"}
    # Those of another project are other tasks.
    assert dittybag(tmp_path, "import", source).stdout == "Imported 4 tasks\n"
    for project in ([], ["-p", "team"]):
        assert dittybag(tmp_path, "import", source, *project).stdout.startswith("Imported nothing")


def test_standard_input_is_read(tmp_path: Path) -> None:
    issues = [
        {"number": 2, "title": "Two", "state": "OPEN", "url": "https://github.com/o/r/issues/2"},
        {"number": 1, "title": "One", "state": "CLOSED", "url": "https://github.com/o/r/issues/1"},
    ]
    result = dittybag(tmp_path, "import", "-", stdin=json.dumps(issues))
    assert result.stdout == "Imported 2 tasks\n"
    one, two = shown_tasks(tmp_path)
    assert (one["title"], two["links"]) == ("One", ["https://github.com/o/r/issues/2"])


def test_a_project_folder_is_searched(tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    (folder / "backlog/tasks").mkdir(parents=True)
    (folder / "backlog/tasks/task-1 - A.md").write_text(
        "---\nid: TASK-1\ntitle: A\nstatus: To Do\n---\nText\n"
    )
    assert dittybag(tmp_path, "import", str(folder)).stdout == "Imported 1 task\n"
    (task,) = shown_tasks(tmp_path)
    assert (task["notes"], task["links"]) == ("Text", ["backlog:task-1"])


def test_a_cycle_is_named_and_nothing_is_imported(tmp_path: Path) -> None:
    source = tmp_path / "plan.csv"
    source.write_text("id,title,blocked_by\n1,One,3\n2,Two,1\n3,Three,2\n4,Four,\n")
    for extra in ([], ["--dry-run"]):
        refused = dittybag(tmp_path, "import", str(source), *extra, status=4)
        assert refused.stderr == (
            "error: These tasks would wait for each other: 1 'One' → 3 'Three' → 2 'Two' → 1 'One'\n"
            "hint: remove one of these dependencies from the source, then import it again\n"
        )
    error = failure(dittybag(tmp_path, "import", str(source), "--json", status=4))
    assert error["code"] == "TASK_CYCLE"
    assert shown_tasks(tmp_path) == []


def test_unusable_sources_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("Just a text")
    unknown = dittybag(tmp_path, "import", str(text), status=1)
    assert unknown.stderr.startswith(f"error: {text} cannot be imported: unknown format\n")
    assert "hint: --as task-csv: a CSV file of tasks" in unknown.stderr
    assert dittybag(tmp_path, "import", str(tmp_path / "missing"), status=3).stderr == (
        f"error: {tmp_path}/missing: no such file or folder\n"
    )
    empty = tmp_path / "empty.csv"
    empty.write_text("title\n")
    assert dittybag(tmp_path, "import", str(empty)).stdout == "Imported nothing\n"
    broken = tmp_path / "backlog/tasks"
    broken.mkdir(parents=True)
    for number in range(3):
        (broken / f"task-{number}.md").write_text("---\ntitle: [\n---\n")
    assert dittybag(tmp_path, "import", str(tmp_path), status=1).stderr.startswith(
        "error: Nothing was imported:\n  tasks/task-0.md: the fields are not valid YAML"
    )


@pytest.mark.parametrize("format", ["task-csv", "task-master", "beads", "backlog", "github"])
def test_the_format_can_be_given(tmp_path: Path, format: str) -> None:
    source = write_beads(tmp_path)
    status = 0 if format == "beads" else 1
    dittybag(tmp_path, "import", source, "--as", format, status=status)


def test_tasks_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    source = tmp_path / "evil.csv"
    source.write_text("title,blocked_by,\x1b]0;owned\x07\nA,\x1b[31mred,x\n")
    result = dittybag(tmp_path, "import", str(source))
    assert "\x1b" not in result.stdout + result.stderr


def test_progress_is_shown_on_a_terminal(tmp_path: Path) -> None:
    output = strip_colours(run_in_terminal(tmp_path, "import", write_beads(tmp_path)))
    assert "Importing tasks" in output
    assert "Imported 4 tasks" in output


def test_options_for_prompts_are_refused_for_tasks(tmp_path: Path) -> None:
    for option in (["--on-conflict", "replace"], ["--verbatim"]):
        refused = dittybag(tmp_path, "import", write_beads(tmp_path), *option, status=2)
        assert "have no effect on tasks" in refused.stderr


def test_prompts_and_tasks_are_told_apart(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts"
    (prompts / "tasks").mkdir(parents=True)
    (prompts / "tasks" / "review.md").write_text("Review this.")
    assert dittybag(tmp_path, "import", str(prompts)).stdout == "Imported 1 prompt\n"
    table = tmp_path / "table.csv"
    table.write_text("title,content,notes\nA,B,C\n")
    assert dittybag(tmp_path, "import", str(table)).stdout == "Imported 1 prompt\n"
    assert dittybag(tmp_path, "import", str(table), "--as", "task-csv").stdout == "Imported 1 task\n"
    (prompts / "tasks.json").write_text('{"tasks": []}')
    (prompts / ".beads").mkdir()
    (prompts / ".beads" / "issues.jsonl").write_text("")
    refused = dittybag(tmp_path, "import", str(prompts), status=1)
    assert "it has tasks of task-master and beads; choose one with --as" in refused.stderr
