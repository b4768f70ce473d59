"""`dittybag search`, over prompts, libraries, resources and tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cli_runner import data, dittybag, failure


@pytest.fixture
def home(tmp_path: Path) -> Path:
    dittybag(tmp_path, "prompt", "add", "review", "Look for Straße and errors.")
    dittybag(tmp_path, "task", "add", "Fix the errors")
    note = tmp_path / "note.txt"
    note.write_text("No ERRORS here")
    dittybag(tmp_path, "resource", "add", str(note))
    dittybag(tmp_path, "project", "create", "other")
    dittybag(tmp_path, "prompt", "add", "elsewhere", "More errors.", "-p", "other")
    folder = tmp_path / "libraries" / "team" / "prompts"
    folder.mkdir(parents=True)
    (folder.parent / "twig.toml").write_text('[prompts.find]\ndescription = "Finds things"\n')
    (folder / "find.md").write_text("Find all errors, please.")
    return tmp_path


def test_everything_is_searched_in_any_case(home: Path) -> None:
    found = data(dittybag(home, "search", "ErrorS", "--json"))
    assert {(hit["kind"], hit["title"]) for hit in found["hits"]} == {
        ("prompt", "review"),
        ("library", "team:find"),
        ("resource", "note.txt"),
        ("task", "Fix the errors"),
    }
    assert found["totals"] == {"prompt": 1, "library": 1, "resource": 1, "task": 1}
    assert data(dittybag(home, "search", "STRASSE", "--json"))["totals"]["prompt"] == 1


def test_a_library_is_searched_by_name_description_and_text(home: Path) -> None:
    for query in ("team:f", "finds THINGS", "all errors, please"):
        found = data(dittybag(home, "search", query, "--kind", "library", "--json"))
        assert [hit["id"] for hit in found["hits"]] == ["team:find"]


def test_results_are_limited_by_kind_and_number(home: Path) -> None:
    found = data(dittybag(home, "search", "errors", "--kind", "task", "--kind", "prompt", "--json"))
    assert sorted(hit["kind"] for hit in found["hits"]) == ["prompt", "task"]
    for number in range(3):
        dittybag(home, "task", "add", f"errors {number}")
    found = data(dittybag(home, "search", "errors", "--kind", "task", "--limit", "2", "--json"))
    assert (len(found["hits"]), found["totals"]["task"]) == (2, 4)


def test_another_project_is_searched(home: Path) -> None:
    found = data(dittybag(home, "search", "errors", "--kind", "prompt", "-p", "other", "--json"))
    assert [hit["title"] for hit in found["hits"]] == ["elsewhere"]
    assert (
        failure(dittybag(home, "search", "x", "-p", "none", "--json", status=3))["code"]
        == "PROJECT_NOT_FOUND"
    )


def test_text_output(home: Path) -> None:
    result = dittybag(home, "search", "errors")
    assert "prompt  review" in result.stdout
    assert "  Find all errors, please." in result.stdout
    assert result.stderr == "1 prompt, 1 resource, 1 task, 1 library prompt\n"
    empty = dittybag(home, "search", "no such words")
    assert (empty.stdout, empty.stderr) == ("", "No results\n")


def test_results_show_what_other_commands_take(home: Path) -> None:
    dittybag(home, "prompt", "add", "titled", "Other errors.", "--title", "A long title")
    lines = dittybag(home, "search", "errors").stdout.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [
        "prompt  titled  A long title",
        "prompt  review",
        "resource  dittybag://resources/note.txt  note.txt",
        "task  1  Fix the errors",
        "library  team:find",
    ]
    for command in (
        ("prompt", "show", "titled"),
        ("resource", "show", "dittybag://resources/note.txt"),
        ("task", "show", "1"),
        ("library", "show", "team:find"),
    ):
        assert "rrors" in dittybag(home, *command).stdout.lower()
    hits = data(dittybag(home, "search", "errors", "--json"))["hits"]
    assert [hit["reference"] for hit in hits] == [
        "titled",
        "review",
        "dittybag://resources/note.txt",
        "1",
        "team:find",
    ]


def test_the_summary_counts_what_is_shown(home: Path) -> None:
    for number in range(3):
        dittybag(home, "task", "add", f"errors {number}")
    cut = dittybag(home, "search", "errors", "--kind", "task", "--kind", "prompt", "--limit", "2")
    assert cut.stderr == "1 prompt, 2 of 4 tasks\nhint: to see more, raise --limit\n"


def test_an_invalid_query_is_rejected(home: Path) -> None:
    assert failure(dittybag(home, "search", "x" * 5000, "--json", status=1))["code"] == "INVALID"
