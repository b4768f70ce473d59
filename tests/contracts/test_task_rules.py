"""Tasks: order, defaults, search and statistics."""

from __future__ import annotations

import pytest

from tests.contracts.contract_replay import (
    Json,
    ServerUnderTest,
    StartServer,
)


def ids(tasks: list[Json]) -> list[int]:
    return [task["id"] for task in tasks]


def test_tasks_are_sorted_by_priority_and_then_by_age(server: ServerUnderTest) -> None:
    for priority in (3, 5, 1, 5, 3):
        server.text("task_create", title="Same", notes="Same", priority=priority)
    order = [2, 4, 1, 5, 3]
    assert ids(server.data("task_list")) == order
    assert ids(server.data("task_search", query="same")) == order
    assert ids(server.data("task_list", limit=2, offset=1)) == order[1:3]
    assert ids(server.data("task_list", offset=5)) == []
    server.text("task_update", task_id=3, priority=4)
    assert ids(server.data("task_list")) == [2, 4, 3, 1, 5]


def test_completed_tasks_are_listed_only_on_request_and_always_searched(server: ServerUnderTest) -> None:
    for title in ("Open", "Done"):
        server.text("task_create", title=title, project="Home", priority=2)
    done = server.data("task_complete", task_id=2)
    assert done["completed_at"] == done["updated_at"]
    assert ids(server.data("task_list")) == [1]
    assert ids(server.data("task_list", show_completed=True)) == [1, 2]
    assert ids(server.data("task_list", project="Home", priority=2, show_completed=True)) == [1, 2]
    assert ids(server.data("task_list", priority=3, show_completed=True)) == []
    assert ids(server.data("task_search", query="done")) == [2]


def test_a_task_search_covers_the_given_fields(server: ServerUnderTest) -> None:
    server.text("task_create", title="Buy MILK", notes="At the shop")
    server.text("task_create", title="Call home", notes="About 100% milk_")
    found = {
        fields: ids(server.data("task_search", query="milk", fields=fields))
        for fields in ("title", "notes", "both")
    }
    assert found == {"title": [1], "notes": [2], "both": [1, 2]}
    assert ids(server.data("task_search", query="milk")) == [1, 2]
    for query, expected in {"%": [2], "k_": [2], "_": [2], '"': [], "NOT milk": [], "0% MILK_": [2]}.items():
        assert ids(server.data("task_search", query=query)) == expected, query


def test_a_new_task_has_the_contracts_defaults(server: ServerUnderTest) -> None:
    task = server.data("task_create", title="A task")
    assert task | {"created_at": "", "updated_at": ""} == {
        "id": 1,
        "user_id": "dev-user",
        "title": "A task",
        "project": None,
        "priority": 3,
        "energy": "medium",
        "time_estimate": "1hr",
        "notes": None,
        "due_date": None,
        "completed": False,
        "completed_at": None,
        "created_at": "",
        "updated_at": "",
    }
    assert task["created_at"] == task["updated_at"]


def test_texts_of_a_task_may_have_any_characters(server: ServerUnderTest) -> None:
    odd = "  first\n\tsecond\r\n\x1b[1m\x7f\u2028 "
    texts = {"title": odd, "project": odd, "time_estimate": odd, "notes": odd}
    created = server.data("task_create", **texts)
    assert created | texts == created
    assert server.data("task_get", task_id=1) == created
    assert server.data("task_list", project=odd) == [created]
    blank = server.data("task_create", title=" ", project="\n")
    assert (blank["title"], blank["project"]) == (" ", "\n")
    assert odd in server.data("task_stats")["by_project"]


def test_notes_have_up_to_a_mebibyte(server: ServerUnderTest) -> None:
    notes = "ä" * 2**19
    assert server.data("task_create", title="Long", notes=notes)["notes"] == notes
    assert server.data("task_update", task_id=1, notes=notes)["notes"] == notes
    assert server.data("task_get", task_id=1)["notes"] == notes
    refused = server.call("task_update", task_id=1, notes=notes + "x")
    assert refused["isError"]
    assert "Notes must be at most 1048576 bytes, but have 1048577" in refused["content"][0]["text"]


def test_an_empty_time_estimate_is_absent(server: ServerUnderTest) -> None:
    assert server.data("task_create", title="A", time_estimate="")["time_estimate"] == "1hr"
    server.data("task_update", task_id=1, time_estimate="2hr")
    assert server.data("task_update", task_id=1, time_estimate="")["time_estimate"] == "2hr"


def test_statistics_without_tasks_are_zero(server: ServerUnderTest) -> None:
    stats = server.data("task_stats")
    assert list(stats) == ["by_project", "by_priority", "by_status", "total", "completed", "completion_rate"]
    assert stats["by_project"] == {}
    assert (stats["total"], stats["completed"], stats["completion_rate"]) == (0, 0, 0)


@pytest.fixture
def server_with_tasks(server: ServerUnderTest) -> ServerUnderTest:
    """A server with three tasks, one of them completed, one without a project."""
    server.text("task_create", title="One", project="Home", priority=5)
    server.text("task_create", title="Two", project="Home")
    server.text("task_create", title="Three")
    server.text("task_complete", task_id=3)
    return server


def test_statistics_count_all_tasks(server_with_tasks: ServerUnderTest) -> None:
    stats = server_with_tasks.data("task_stats")
    assert list(stats) == ["by_project", "by_priority", "by_status", "total", "completed", "completion_rate"]
    assert stats["by_project"] == {"Home": 2, "(no project)": 1}
    assert {priority: count for priority, count in stats["by_priority"].items() if count} == {"3": 2, "5": 1}
    assert stats["by_status"] == {"pending": 2, "completed": 1}
    assert (stats["total"], stats["completed"], stats["completion_rate"]) == (3, 1, 33.33)


def test_a_project_called_no_project_is_counted_together_with_none(
    server_with_tasks: ServerUnderTest,
) -> None:
    server_with_tasks.text("task_create", title="Four", project="(no project)")
    assert server_with_tasks.data("task_stats")["by_project"] == {"Home": 2, "(no project)": 2}


@pytest.mark.parametrize("group", ["project", "priority", "status"])
def test_statistics_can_be_limited_to_one_group(server_with_tasks: ServerUnderTest, group: str) -> None:
    stats, everything = (
        server_with_tasks.data("task_stats", group_by=group),
        server_with_tasks.data("task_stats"),
    )
    assert list(stats) == [f"by_{group}", "total", "completed", "completion_rate"]
    assert stats.items() <= everything.items()


def test_the_completion_rate_is_a_percentage_with_two_decimals(server_with_tasks: ServerUnderTest) -> None:
    rates = [server_with_tasks.data("task_stats")["completion_rate"]]
    for task in (1, 2):
        server_with_tasks.text("task_complete", task_id=task)
        rates.append(server_with_tasks.data("task_stats")["completion_rate"])
    assert rates == [33.33, 66.67, 100]


def test_all_groups_can_be_requested_by_name(server_with_tasks: ServerUnderTest) -> None:
    assert server_with_tasks.text("task_stats", group_by="all") == server_with_tasks.text("task_stats")


@pytest.mark.parametrize("profile", ["tasks", "all"])
def test_null_clears_a_due_date_and_leaves_other_fields_alone(serve: StartServer, profile: str) -> None:
    server = serve(profile)
    server.text("task_create", title="Due", due_date="2026-03-01", notes="Kept", project="Kept")
    cleared = server.data("task_update", task_id=1, due_date=None, notes=None, project=None)
    assert (cleared["due_date"], cleared["notes"], cleared["project"]) == (None, "Kept", "Kept")
    assert server.data("task_create", title="None", due_date=None)["due_date"] is None
    assert server.refusal("task_update", task_id=1, notes=None).startswith(
        "Validation error: Nothing to update"
    )


@pytest.mark.parametrize("profile", ["tasks", "all"])
def test_tasks_without_a_project_can_be_listed(serve: StartServer, profile: str) -> None:
    server = serve(profile)
    server.text("task_create", title="One", project="Home", priority=5)
    server.text("task_create", title="Two")
    server.text("task_create", title="Three", project="(no project)", priority=4)
    assert ids(server.data("task_list", project="(no project)")) == [3, 2]
    assert ids(server.data("task_list", project="(no project)", priority=3)) == [2]
    assert ids(server.data("task_list", project="")) == [1, 3, 2]
    assert server.data("task_stats")["by_project"] == {"(no project)": 2, "Home": 1}
