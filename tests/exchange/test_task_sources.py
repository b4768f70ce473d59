"""Tasks of other programs become drafts with states, edges and notes; hostile files are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.domain.errors import DittybagError, Invalid, SourceFailed, SourceNotFound, UnknownFormat
from dittybag.domain.imports import TASK_FORMATS
from dittybag.domain.task_drafts import TaskDraft
from dittybag.domain.tasks import Comment, problems
from dittybag.exchange import task_input, task_sources
from dittybag.exchange.source_detection import detect_format
from dittybag.exchange.task_sources import TasksRead
from dittybag.services.entity_writes import given_fields

JANUARY = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z."""
HOUR = 3_600_000_000

Read = Callable[..., TasksRead]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes a file and reads its tasks. Data that is not text is written as JSON."""

    def write_and_read(content: Any, name: str = "tasks.txt", format: str | None = None) -> TasksRead:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        found = read_tasks(str(path), format)
        require_valid(found)
        return found

    return write_and_read


def read_tasks(path: str, format: str | None = None) -> TasksRead:
    """Read tasks in a format, or in the detected one."""
    chosen = format or detect_format(path)
    if chosen not in TASK_FORMATS:
        raise UnknownFormat(path, f"it has no tasks, but is {chosen}")
    return task_sources.read_tasks(path, chosen)


def require_valid(found: TasksRead) -> None:
    """Check that whatever the source has, the values and edges of the drafts are valid."""
    keys = {draft.key for draft in found.drafts}
    assert len(keys) == len({draft.source for draft in found.drafts}) == len(found.drafts)
    for draft in found.drafts:
        fields = given_fields(draft)
        assert not problems(**fields | {"links": (*draft.links, draft.source)})
        assert keys.issuperset(draft.blocked_by)
        assert draft.parent is None or draft.parent in keys


def only(found: TasksRead) -> TaskDraft:
    (draft,) = found.drafts
    return draft


def by_key(found: TasksRead) -> dict[str, TaskDraft]:
    return {draft.key: draft for draft in found.drafts}


def lines(*items: dict[str, Any]) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


# CSV


CSV = """\
ID;Title;Notes;Priority;Due;State;Assignee;Tags;Parent;Depends on;Estimate;Created;Completed;Project;Sprint
A-1;Design;"First, line
second";high;2026-02-01;Closed;ann;ui, ux;;;2hr;2026-01-01;2026-01-01T01:00:00Z;web;7
A-2;Build;;P0;;In Progress;;;A-1;;;;;web;7
A-3;Ship;;2;2026-03-01 17:00;;;;;"A-2, A-1";;;;web;7
"""


def test_a_csv_file_becomes_tasks(read: Read) -> None:
    found = read(CSV, "plan.csv")
    assert found.format == "task-csv"
    assert found.drafts == [
        TaskDraft(
            key="A-1",
            source="csv:plan.csv:A-1",
            title="Design",
            notes="First, line\nsecond",
            priority=4,
            due_date="2026-02-01",
            status="done",
            assignee="ann",
            labels=("ui", "ux"),
            time_estimate="2hr",
            created_at=JANUARY,
            completed_at=JANUARY + HOUR,
        ),
        TaskDraft(
            key="A-2", source="csv:plan.csv:A-2", title="Build", priority=5, status="doing", parent="A-1"
        ),
        TaskDraft(
            key="A-3",
            source="csv:plan.csv:A-3",
            title="Ship",
            priority=2,
            due_date="2026-03-01T17:00",
            blocked_by=("A-2", "A-1"),
        ),
    ]
    assert found.notes == [
        "the column project was left out; use --project",
        "the column 'sprint' is unknown and was left out",
    ]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("title", ["title", "Task", " SUMMARY "])
def test_a_csv_file_needs_only_titles(read: Read, separator: str, title: str) -> None:
    found = read(f"\ufeff{title}{separator}status\r\nOne{separator}todo\r\n\r\nTwo{separator}done\r\n")
    assert [(draft.title, draft.status) for draft in found.drafts] == [("One", "todo"), ("Two", "done")]


def test_the_first_column_may_be_empty(read: Read) -> None:
    assert only(read("\n\ttitle\tstatus\n\tOne\tdone\n")).title == "One"


def test_rows_without_ids_keep_their_source_when_other_rows_or_values_change(read: Read) -> None:
    first = {draft.title: draft.source for draft in read("title,status\nA,todo\nB,todo\nB,todo\n").drafts}
    later = read("title,status\nNew,todo\nB,done\nA,done\nB,todo\n")
    assert len({draft.source for draft in later.drafts}) == 4
    assert first["A"] in [draft.source for draft in later.drafts if draft.title == "A"]
    assert first["B"] in [draft.source for draft in later.drafts if draft.title == "B"]


def test_rows_may_name_each_other_by_title(read: Read) -> None:
    one, two, three = read("title,parent,blocked_by\nOne,,\nTwo,One,\nThree,One,Two; Four\n").drafts
    assert (two.parent, three.parent, three.blocked_by) == (one.key, one.key, (two.key,))


@pytest.mark.parametrize(
    ("header", "cells", "status"),
    [
        ("title,completed", "A,yes", "done"),
        ("title,completed", "A,2026-01-01", "done"),
        ("title,completed", "A,no", "todo"),
        ("title,completed", "A,", "todo"),
        ("title,done", "A,x", "done"),
        ("title,status,completed", "A,doing,yes", "doing"),
        ("title,status,completed", "A,cancelled,2026-01-01", "dropped"),
    ],
)
def test_a_csv_file_may_say_only_whether_a_task_is_completed(
    read: Read, header: str, cells: str, status: str
) -> None:
    assert only(read(f"{header}\n{cells}\n")).status == status


# task-master


def master_task(id: int | str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "title": f"Task {id}", "status": "pending", "dependencies": [], **fields}


def test_a_file_of_task_master_becomes_tasks_and_parts(read: Read) -> None:
    parts = [
        master_task(1, status="done", description="D"),
        # Short ids are of the same task, unless only a task has the id.
        master_task(2, dependencies=[1, "2.1", 3], acceptanceCriteria=["A", "B"]),
    ]
    found = read(
        {
            "tasks": [
                master_task(
                    1,
                    priority="high",
                    description="Text",
                    details="More",
                    testStrategy="Run it",
                    subtasks=parts,
                ),
                master_task(2, dependencies=[1], subtasks=[master_task(1, priority="low")]),
                master_task("3", status="review", updatedAt="2026-01-01T00:00:00.000Z"),
            ],
            "metadata": {"version": 1},
        }
    )
    assert found.format == "task-master"
    drafts = by_key(found)
    assert list(drafts) == ["1", "1.1", "1.2", "2", "2.1", "3"]
    assert drafts["1"].notes == "Text\n\n## Details\n\nMore\n\n## Test strategy\n\nRun it"
    assert drafts["1.2"].notes == "## Acceptance criteria\n\n- A\n- B"
    assert drafts["1.2"].source == "task-master:1.2"
    assert {key: draft.parent for key, draft in drafts.items() if draft.parent} == {
        "1.1": "1",
        "1.2": "1",
        "2.1": "2",
    }
    assert drafts["1.2"].blocked_by == ("1.1", "2.1", "3")
    assert drafts["2"].blocked_by == ("1",)
    # Parts without a priority have that of the whole.
    assert [draft.priority for draft in found.drafts] == [4, 4, 4, 3, 2, 3]
    assert drafts["3"].status == "review"
    assert found.notes == []


def test_each_tag_of_task_master_has_its_own_numbers(read: Read) -> None:
    found = read(
        {
            "master": {"tasks": [master_task(1)], "metadata": {"created": "2026-01-01"}},
            "feature": {"tasks": [master_task(1), master_task(2, dependencies=[1])]},
            "empty": {"tasks": []},
        }
    )
    drafts = by_key(found)
    assert list(drafts) == ["1", "feature:1", "feature:2"]
    assert drafts["feature:2"].blocked_by == ("feature:1",)
    assert (drafts["feature:2"].labels, drafts["feature:2"].source) == (("feature",), "task-master:feature:2")
    assert found.notes == ["the tasks of each tag except master have the tag as a label"]


@pytest.mark.parametrize(
    ("word", "status", "labels"),
    [
        ("pending", "todo", ()),
        ("in-progress", "doing", ()),
        ("review", "review", ()),
        ("done", "done", ()),
        ("completed", "done", ()),
        ("cancelled", "dropped", ()),
        ("deferred", "todo", ("deferred",)),
        ("blocked", "todo", ("blocked",)),
        ("strange", "todo", ("strange",)),
    ],
)
def test_states_of_task_master(read: Read, word: str, status: str, labels: tuple[str, ...]) -> None:
    found = read({"tasks": [master_task(1, status=word)]})
    assert (only(found).status, only(found).labels) == (status, labels)
    assert bool(found.notes) == bool(labels)


def test_a_dependency_of_a_part_on_its_whole_is_left_out(read: Read) -> None:
    found = read({"tasks": [master_task(5, subtasks=[master_task(1, dependencies=[5])])]})
    assert by_key(found)["5.1"].blocked_by == ()
    assert found.notes == ["dependency on '5', which it is a part of, was left out (5.1)"]


# beads


def issue(id: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "title": f"Issue {id}", "status": "open", "priority": 2, "issue_type": "task", **fields}


def edge(id: str, to: str, type: str) -> dict[str, Any]:
    return {"issue_id": id, "depends_on_id": to, "type": type, "created_at": "2026-01-01T00:00:00Z"}


def test_an_export_of_beads_becomes_tasks(read: Read) -> None:
    found = read(
        lines(
            issue("bd-1", issue_type="epic", priority=0),
            issue(
                "bd-2",
                _type="issue",
                description="Text",
                design="Sketch",
                acceptance_criteria="It works",
                notes="Later",
                status="closed",
                priority=4,
                issue_type="bug",
                assignee="ann",
                estimated_minutes=90,
                created_at="2026-01-01T00:00:00.123456789Z",
                updated_at="2026-01-02T00:00:00Z",
                closed_at="2026-01-01T01:00:00+00:00",
                close_reason="Fixed",
                due_at="2026-02-01T00:00:00Z",
                external_ref="gh-9",
                labels=["ui"],
                dependencies=[
                    edge("bd-2", "bd-1", "parent-child"),
                    edge("bd-2", "bd-3", "blocks"),
                    edge("bd-2", "bd-4", "related"),
                    edge("bd-2", "bd-9", "discovered-from"),
                ],
                comments=[
                    {"id": 1, "author": "bob", "text": "Second", "created_at": "2026-01-01T00:30:00Z"},
                    {"id": 2, "author": "ann", "text": "First", "created_at": "2026-01-01T00:10:00Z"},
                ],
                dependency_count=2,
            ),
            issue("bd-3", status="in_progress", priority=1),
            issue("bd-4", status="blocked", priority=3),
        ),
        "issues.jsonl",
    )
    assert found.format == "beads"
    drafts = by_key(found)
    assert drafts["bd-2"] == TaskDraft(
        key="bd-2",
        source="beads:bd-2",
        title="Issue bd-2",
        notes="Text\n\n## Design\n\nSketch\n\n## Acceptance criteria\n\nIt works\n\n## Notes\n\nLater\n\n"
        "## Related issues\n\n- related: bd-4\n- discovered-from: bd-9",
        priority=1,
        time_estimate="90min",
        due_date="2026-02-01T00:00:00Z",
        status="done",
        created_at=JANUARY + 123_456,
        completed_at=JANUARY + HOUR,
        assignee="ann",
        labels=("ui", "bug"),
        links=("gh-9",),
        comments=(
            Comment(JANUARY + HOUR // 6, "ann", "First"),
            Comment(JANUARY + HOUR // 2, "bob", "Second"),
            Comment(JANUARY + HOUR, "ann", "Closed: Fixed"),
        ),
        parent="bd-1",
        blocked_by=("bd-3",),
    )
    assert [draft.priority for draft in found.drafts] == [5, 1, 4, 2]
    assert [draft.status for draft in found.drafts] == ["todo", "done", "doing", "todo"]
    assert [draft.labels for draft in found.drafts] == [("epic",), ("ui", "bug"), (), ("blocked",)]


@pytest.mark.parametrize("wrap", [list, lambda issues: {"issues": issues, "meta": {"count": 2}}])
def test_output_of_bd_is_read(read: Read, wrap: Callable[[Any], Any]) -> None:
    shown = {**issue("bd-1"), "dependency_type": "blocks"}
    found = read(wrap([issue("bd-1"), issue("bd-2", parent="bd-1"), issue("bd-3", dependencies=[shown])]))
    assert found.format == "beads"
    assert by_key(found)["bd-2"].parent == "bd-1"
    assert by_key(found)["bd-3"].blocked_by == ("bd-1",)


def test_what_is_not_an_issue_of_beads_is_left_out(read: Read) -> None:
    found = read(
        lines(
            issue("bd-1"),
            {"_type": "memory", "key": "k", "value": "v"},
            issue("bd-2", status="tombstone"),
            issue("bd-3", is_template=True),
        )
    )
    assert only(found).key == "bd-1"
    assert found.notes == [
        "records of the type 'memory' were left out",
        "deleted issues were left out (bd-2)",
        "templates were left out (bd-3)",
    ]


# GitHub

URL = "https://github.com/octo/demo/issues/"


def github(number: int, **fields: Any) -> dict[str, Any]:
    return {"number": number, "title": f"Issue {number}", "url": f"{URL}{number}", **fields}


def test_the_output_of_gh_becomes_tasks(read: Read) -> None:
    moment = "2026-01-01T00:00:00Z"
    closed = {"state": "CLOSED", "closedAt": "2026-01-01T01:00:00Z"}
    found = read(
        [
            github(
                3,
                body="- [ ] #1\n",
                state="OPEN",
                stateReason="REOPENED",
                labels=[{"id": "x", "name": "bug", "color": "ff0000"}],
                assignees=[{"login": "ann"}, {"login": "bob"}],
                milestone={"number": 1, "title": "v1", "dueOn": None},
                comments=[{"author": {"login": "bob"}, "body": "Hm", "createdAt": moment, "url": "x"}],
                createdAt=moment,
                parent={"number": 1, "url": URL + "1", "title": "Issue 1"},
                blockedBy={"nodes": [{"number": 2}], "totalCount": 1},
            ),
            github(2, **closed, stateReason="NOT_PLANNED"),
            github(1, **closed, stateReason="COMPLETED", subIssues=[{"number": 2}]),
        ]
    )
    assert found.format == "github"
    first, second, third = URL + "1", URL + "2", URL + "3"
    assert found.drafts == [
        TaskDraft(key=first, source=first, title="Issue 1", status="done", completed_at=JANUARY + HOUR),
        TaskDraft(key=second, source=second, title="Issue 2", status="dropped", parent=first),
        TaskDraft(
            key=third,
            source=third,
            title="Issue 3",
            notes="- [ ] #1",
            created_at=JANUARY,
            assignee="ann",
            labels=("bug", "v1"),
            comments=(Comment(JANUARY, "bob", "Hm"),),
            parent=first,
            blocked_by=(second,),
        ),
    ]
    assert found.notes == ["only the first assignee was imported (#3)"]


def test_the_list_of_the_rest_api_becomes_tasks(read: Read) -> None:
    api = "https://api.github.com/repos/octo/demo/issues/"

    def item(number: int, **fields: Any) -> dict[str, Any]:
        common = {"id": 7, "node_id": "x", "state": "open", "labels": [], "assignees": [], "comments": 0}
        return github(number, **common | {"url": f"{api}{number}", "html_url": f"{URL}{number}"} | fields)

    found = read(
        [
            item(
                2,
                body=None,
                labels=["plain", {"name": "named"}],
                assignee={"login": "ann"},
                comments=3,
                created_at="2026-01-01T00:00:00Z",
                parent_issue_url=api + "1",
                issue_dependencies_summary={"blocked_by": 1, "total_blocked_by": 1},
                type={"id": 1, "name": "Bug"},
            ),
            item(1, state="closed", state_reason="duplicate", closed_at="2026-01-01T00:00:00Z"),
            item(3, pull_request={"url": "x"}),
        ]
    )
    first, second = found.drafts
    assert (first.source, first.status, first.completed_at) == (URL + "1", "dropped", None)
    assert (second.parent, second.created_at) == (first.key, JANUARY)
    assert second.labels == ("plain", "named", "Bug")
    assert found.notes == [
        "the file has only the number of comments, not the comments (#2)",
        "the file has only the number of dependencies; gh issue list --json has them (#2)",
        "pull requests were left out (#3)",
    ]


def test_one_issue_of_github_and_lines_of_issues_are_read(read: Read) -> None:
    issues = [{"number": 1, "title": "A"}, {"number": 2, "title": "B", "blockedBy": [{"number": 1}]}]
    assert only(read(issues[0])).source == "github:1"
    found = read(lines(*issues))
    assert (found.format, found.drafts[1].blocked_by) == ("github", ("github:1",))


# Backlog.md


@pytest.fixture
def backlog(tmp_path: Path) -> Callable[..., None]:
    """Writes a file of Backlog.md."""

    def write(path: str, head: str, body: str = "") -> None:
        file = tmp_path / "project" / "backlog" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\n{head}\n---\n{body}")

    return write


BODY = """
## Description

<!-- SECTION:DESCRIPTION:BEGIN -->
Text with a [link](https://example.com).
<!-- SECTION:DESCRIPTION:END -->

## Acceptance Criteria
<!-- AC:BEGIN -->
- [x] #1 One
- [ ] #2 Two
<!-- AC:END -->

## Comments

<!-- COMMENTS:BEGIN -->
author: @bob
created: 2026-01-01 01:00
---
A remark:
- with a list
---

author: ann
created: 2026-01-01 00:00
---
Earlier
---
<!-- COMMENTS:END -->

## Final Summary

Good
"""


def test_a_folder_of_backlog_becomes_tasks(tmp_path: Path, backlog: Callable[..., None]) -> None:
    backlog("tasks/readme.md", "title: Not a task")
    backlog("tasks/task-2 - Two.md", "id: TASK-2\ntitle: Two\nstatus: In Progress\nassignee: @Ann Smith")
    backlog(
        "tasks/task-10 - Ten.md",
        "id: task-10\ntitle: 'Ten: the \"last\", @home'\nstatus: To Do\nassignee: [@bob, 'carl']\n"
        "created_date: '2026-01-01 00:00'\nlabels:\n  - ui\n  - \"a: b\"\ndependencies: [TASK-2, task-03]\n"
        "parent_task_id: TASK-1\npriority: high\nmilestone: m-1\ntype: bug\ndue_date: 2026-02-01\n"
        "references:\n  - https://example.com/x\nordinal: 1000",
        BODY,
    )
    backlog(
        "completed/task-1 - One.md",
        "id: TASK-1\ntitle: One\nstatus: Done\nassignee: []\nupdated_date: 2026-01-01\nlabels: []",
    )
    backlog(
        "archive/tasks/task-3 - Three.md", "id: TASK-3\ntitle: Three\nstatus: To Do\nassignee:\n  - @dora"
    )
    backlog("archive/tasks/task-4 - Four.md", "id: TASK-4\ntitle: Four\nstatus: Done")
    backlog("drafts/draft-1 - Idea.md", "id: DRAFT-1\ntitle: Idea\nstatus: Draft")
    project = tmp_path / "project"
    found = read_tasks(str(project))
    assert found == read_tasks(str(project / "backlog"))
    assert found.format == "backlog"
    assert [(draft.key, draft.title, draft.status, draft.assignee) for draft in found.drafts] == [
        ("task-1", "One", "done", None),
        ("task-2", "Two", "doing", "Ann Smith"),
        ("task-3", "Three", "dropped", "dora"),
        ("task-4", "Four", "done", None),
        ("task-10", 'Ten: the "last", @home', "todo", "bob"),
    ]
    assert found.drafts[0].completed_at == JANUARY
    ten = found.drafts[-1]
    assert ten.notes == (
        "## Description\n\nText with a [link](https://example.com).\n\n## Acceptance Criteria\n"
        "- [x] #1 One\n- [ ] #2 Two\n\n\n\n## Final Summary\n\nGood"
    )
    assert ten.comments == (
        Comment(JANUARY, "ann", "Earlier"),
        Comment(JANUARY + HOUR, "@bob", "A remark:\n- with a list"),
    )
    assert (ten.priority, ten.due_date, ten.created_at) == (4, "2026-02-01", JANUARY)
    assert (ten.labels, ten.links) == (("ui", "a: b", "m-1", "bug"), ("https://example.com/x",))
    assert (ten.parent, ten.blocked_by, ten.source) == ("task-1", ("task-2", "task-3"), "backlog:task-10")
    assert found.notes == ["only the first assignee was imported (task-10)", "1 drafts were left out"]


def test_references_survive_a_new_prefix_of_ids(tmp_path: Path, backlog: Callable[..., None]) -> None:
    backlog("tasks/back-7 - A.md", "id: BACK-7\ntitle: A")
    backlog("tasks/back-7.01 - B.md", "id: BACK-7.01\ntitle: B\nparent_task_id: task-7\ndependencies: ['9']")
    backlog("tasks/back-9 - C.md", "id: BACK-9\ntitle: C\ndependencies:\n  - task-7.1\n  - task-8")
    a, b, c = read_tasks(str(tmp_path / "project")).drafts
    assert (b.parent, b.blocked_by, c.blocked_by) == (a.key, (c.key,), (b.key,))


def test_broken_files_of_backlog_are_all_named(tmp_path: Path, backlog: Callable[..., None]) -> None:
    backlog("tasks/task-1 - A.md", "id: task-1\ntitle: A")
    backlog("tasks/task-2 - B.md", "id: task-2\ntitle: [B")
    backlog("tasks/task-3 - C.md", "title: C")
    backlog("tasks/task-4 - D.md", "id: task-4\ntitle: " + "[" * 100_000)
    backlog("tasks/task-5 - E.md", "id: &a task-5\ntitle: *a")
    backlog("tasks/task-6 - F.md", "id: task-6\nx: " + "y" * 600_000)
    with pytest.raises(Invalid) as caught:
        read_tasks(str(tmp_path / "project"))
    messages = [problem.message for problem in caught.value.problems]
    assert [message.split(" - ")[0] for message in messages] == [f"tasks/task-{n}" for n in (2, 3, 4, 5, 6)]
    assert "tasks/task-3 - C.md: it has no id" in messages


def test_large_files_of_backlog_are_refused(tmp_path: Path, backlog: Callable[..., None]) -> None:
    backlog("tasks/task-1 - A.md", "id: task-1\ntitle: A", "x" * 2_100_000)
    with pytest.raises(SourceFailed, match=r"tasks/task-1 - A\.md could not be read: it is larger than"):
        read_tasks(str(tmp_path / "project"))


def test_links_in_a_folder_are_not_followed(tmp_path: Path, backlog: Callable[..., None]) -> None:
    backlog("tasks/task-1 - A.md", "id: task-1\ntitle: A")
    secret = tmp_path / "secret.md"
    secret.write_text("---\nid: task-2\ntitle: Secret\n---\n")
    (tmp_path / "project/backlog/tasks/task-2 - B.md").symlink_to(secret)
    assert only(read_tasks(str(tmp_path / "project"))).title == "A"


# Detection


def test_the_tasks_of_a_project_are_found_in_its_folder(tmp_path: Path, backlog: Callable[..., None]) -> None:
    project = tmp_path / "project"
    (project / ".taskmaster/tasks").mkdir(parents=True)
    (project / ".taskmaster/tasks/tasks.json").write_text(json.dumps({"tasks": [master_task(1)]}))
    assert read_tasks(str(project)).format == "task-master"
    (project / ".beads").mkdir()
    (project / ".beads/issues.jsonl").write_text(lines(issue("bd-1")))
    backlog("tasks/task-1 - A.md", "id: task-1\ntitle: A")
    with pytest.raises(UnknownFormat, match="task-master and beads and backlog; choose one with --as"):
        read_tasks(str(project))
    for name in ("task-master", "beads", "backlog"):
        assert read_tasks(str(project), name).format == name
    assert read_tasks(str(project / ".beads")).format == "beads"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "Just a text\n",
        "a,b\n1,2\n",
        "{}",
        "[]",
        '{"tasks": 5}',
        "[1]",
        '[{"x": 1}]',
        '{"a": {"tasks": {}}}',
    ],
)
def test_unknown_files_are_refused(read: Read, content: str) -> None:
    with pytest.raises((UnknownFormat, SourceFailed)):
        read(content)


@pytest.mark.parametrize("format", ["task-csv", "task-master", "beads", "backlog", "github"])
def test_a_file_of_another_format_is_refused(read: Read, format: str) -> None:
    samples = {
        "task-csv": "title\nA\n",
        "task-master": {"tasks": [master_task(1)]},
        "beads": lines(issue("bd-1"), issue("bd-2")),
        "github": [{"number": 1, "title": "A"}],
    }
    for name, content in samples.items():
        if name != format:
            with pytest.raises(SourceFailed):
                read(content, format=format)


def test_a_missing_source_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound):
        read_tasks(str(tmp_path / "missing"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnknownFormat, match="it has no tasks"):
        read_tasks(str(tmp_path / "empty"))


# Hostile and broken input


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'[{"id": "\xff", "title": "A"}]', r"it is not UTF-8 \(byte 10\)"),
        ("title\nA\n".encode("utf-16"), "it is UTF-16; save it as UTF-8"),
        (b'{"tasks": ' + b"[" * 100_000, "not valid JSON|nested too deeply|unknown format"),
        # Python 3.14 can read this depth.
        (
            b'[{"id": "a", "title": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]",
            "nested too deeply|got `array`",
        ),
        (b'[{"id": "a", "status": "open", "priority": 1' + b"0" * 5_000 + b"}]", "out of range"),
        (b'[{"id": "a", "title": 5, "status": "open"}]', r"got `int` - at `\$\[0\].title`"),
        (b'{"id": "a", "title": "A"}\n{"id": "b", "title": 5}', "line 2: Expected `str . null`"),
        (b'[{"id": "a", "title": "\\ud800"}]', "not valid JSON"),
        (b'[{"id": "a", "labels": [["a"]]}]', "Expected `str`"),
        (b'[{"id": "a"}, {"title": "b"}]', "an issue has no id"),
        (b'title,notes\n"A,open quote\n', "line 2: unexpected end of data"),
        (b"[" + b"{}," * 2_000_001 + b"{}]", "more than 2,000,000 objects"),
        (b'[{"id": "a", "labels": [' + b'"",' * 5_000_001 + b'""]}]', "more than 5,000,000 values"),
        (lines(*(issue(str(n)) for n in range(10_001))).encode(), "more than 10,000 tasks"),
        (json.dumps([issue(str(n)) for n in range(10_001)]).encode(), "more than 10,000 tasks"),
        (b"title\n" + b"A\n" * 10_001, "more than 10,000 tasks"),
        (
            json.dumps({"tasks": [master_task(1, subtasks=[{"id": 1}] * 10_000)]}).encode(),
            "more than 10,000 tasks",
        ),
    ],
)
def test_hostile_files_are_refused_with_a_clear_message(read: Read, content: bytes, problem: str) -> None:
    with pytest.raises(DittybagError, match=problem):
        read(content)


def test_files_over_the_maximum_size_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "large.csv").open("wb") as file:
        file.truncate(task_input.MAX_BYTES + 1)
    with pytest.raises(UnknownFormat, match="it is larger than 50 MB"):
        read_tasks(str(tmp_path / "large.csv"))


def test_braces_in_texts_are_not_objects(read: Read) -> None:
    assert only(read([issue("a", description="{x} " * 2_100_000)])).notes == ("{x} " * 2**18)


def test_values_that_the_rules_refuse_are_adjusted_and_noted(read: Read) -> None:
    found = read(
        lines(
            issue("a", title="T" * 600, description="D"),
            issue("b", title="Two\nlines\x07", description="x\0y", labels=[str(n) for n in range(30)]),
            issue("c", title=" ", description="n" * (2**20 + 1), labels=["l" * 51, "", "twice", "twice"]),
            issue("d", comments=[{"text": str(n), "author": ""} for n in range(201)], due_at="soon"),
            issue("e", comments=[{"text": "c" * 10_001}], created_at="yesterday", assignee="a" * 300),
            issue("f", priority=-5, estimated_minutes=10**12),
            issue("f", priority=99, dependencies=[edge("f", "f" * 300, "blocks")] * 3),
            issue("f", dependencies=[edge("f", "f", "blocks")]),
        )
    )
    a, b, c, d, e, f, f2, f3 = found.drafts
    assert (a.title, a.notes) == ("T" * 500, "T" * 600 + "\n\nD")
    assert (b.title, b.notes, len(b.labels)) == ("Two lines", "xy", 20)
    assert (c.title, len(c.notes or ""), c.labels) == ("(no title)", 2**20, ("l" * 50, "twice"))
    assert (len(d.comments), d.comments[-1].text, d.comments[-1].author, d.due_date) == (
        200,
        "200",
        "unknown",
        None,
    )
    assert (len(e.comments[0].text), e.created_at, len(e.assignee or "")) == (10_000, None, 200)
    assert (f.priority, f.time_estimate, f2.priority) == (5, "1hr", 1)
    assert [f.key, f2.key, f3.key] == ["f", "f#2", "f#3"]
    assert (f2.blocked_by, f3.blocked_by) == ((), ("f",))
    assert found.notes == [
        "the title was shortened to 500 characters; the notes have all of it (a)",
        "line breaks and control characters in the title became spaces (b)",
        "the notes were imported without NUL characters (b)",
        "only the first 20 labels were imported (b)",
        "it has no title (c)",
        "the notes were shortened to 1,048,576 characters (c)",
        f"the label '{'l' * 50}' was shortened to 50 characters (c)",
        "'soon' is not a valid due date and was left out (d)",
        "only the last 200 comments were imported (d)",
        "'yesterday' is not a valid time and was left out (e)",
        "a comment was shortened to 10,000 characters (e)",
        "the id occurs more than once; edges lead to the first task with it (f)",
        f"dependency on '{'f' * 200}', which is not in the source, was left out (f#2)",
    ]


#: Values of any type and any text, in the places where the programs have values.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.sampled_from(
    [
        "id",
        "title",
        "number",
        "status",
        "state",
        "priority",
        "labels",
        "dependencies",
        "subtasks",
        "tasks",
        "issues",
        "comments",
        "parent",
        "blockedBy",
        "depends_on_id",
        "type",
        "nodes",
        "url",
        "closed_at",
        "created_at",
        "estimated_minutes",
        "assignees",
        "due_at",
        "master",
    ]
)
IDS = st.sampled_from(["a", "b", "1", "1.1", 1, 2])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS | IDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | TEXTS, inner, max_size=6),
    max_leaves=20,
)
TABLES = st.lists(st.lists(TEXTS | NAMES, max_size=5).map(",".join), max_size=5).map("\n".join)


def read_or_refuse(name: str, content: str, format: str | None = None) -> None:
    """Read a file. Its drafts must be valid; otherwise it must be refused with an error of our own."""
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode())
        with suppress(DittybagError):
            require_valid(read_tasks(folder if path.suffix == ".md" else str(path), format))


@given(
    content=ANYTHING.map(json.dumps)
    | st.lists(ANYTHING, max_size=3).map(lambda items: "\n".join(map(json.dumps, items)))
    | TABLES.map(lambda table: f"id,title,parent,blocked_by,status,due,created\n{table}")
    | TEXTS,
    format=st.sampled_from([None, "task-csv", "task-master", "beads", "github"]),
)
def test_any_file_is_read_or_refused(content: str, format: str | None) -> None:
    read_or_refuse("any", content, format)


@given(head=ANYTHING.map(json.dumps) | TEXTS, body=TEXTS)
def test_any_file_of_backlog_is_read_or_refused(head: str, body: str) -> None:
    content = f"---\nid: task-1\ntitle: A\nlabels: {head}\nassignee: {head}\n---\n{body}"
    read_or_refuse("tasks/task-1.md", content)


def test_a_task_with_too_many_dependencies_keeps_the_first(read: Read) -> None:
    others = [issue(str(n)) for n in range(120)]
    found = read(lines(*others, issue("x", dependencies=[edge("x", str(n), "blocks") for n in range(120)])))
    assert by_key(found)["x"].blocked_by == tuple(map(str, range(100)))
    assert found.notes == ["only the first 100 dependencies were imported (x)"]


def test_a_long_chain_of_parts_and_many_notes_are_read_in_time(read: Read) -> None:
    def part(number: int) -> dict[str, Any]:
        own, whole = f"k{number}", f"k{number - 1}"
        edges = ((whole, "parent-child"), (f"missing-{number}", "blocks"), (whole, "blocks"))
        return issue(own, dependencies=[edge(own, to, kind) for to, kind in edges])

    found = read(lines(*map(part, range(1, 5_000))))
    assert len(found.drafts) == 4_999
    assert len(found.notes) == 1_000
