"""`dittybag search`, over prompts, libraries, resources and tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cli_runner import data, dittybag


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


def test_everything_is_searched_in_any_case_and_form(home: Path) -> None:
    found = data(dittybag(home, "search", "ErroR", "--json"))
    assert {(hit["kind"], hit["ref"], hit["title"]) for hit in found["hits"]} == {
        ("prompt", "review", "review"),
        ("library_prompt", "team:find", "team:find"),
        ("resource", "dittybag://resources/note.txt", "note.txt"),
        ("task", "task:1", "Fix the errors"),
    }
    assert (found["total"], found["suggestion"]) == (4, None)
    assert data(dittybag(home, "search", "STRASSE", "--json"))["total"] == 1


def test_a_result_has_a_time_an_actor_and_a_passage(home: Path) -> None:
    (hit,) = data(dittybag(home, "search", "fixing", "--kind", "task", "--json"))["hits"]
    assert hit["at"].startswith("20")
    assert hit["actor"]
    assert hit["id"] == 1
    (hit,) = data(dittybag(home, "search", "pleased", "--json"))["hits"]
    assert (hit["at"], hit["actor"], hit["passage"]) == (None, None, "Find all errors, please.")


def test_a_library_is_searched_by_name_description_and_text(home: Path) -> None:
    for query in ("team", "finding thing", '"all errors, please"', '"m:f"'):
        found = data(dittybag(home, "search", query, "--kind", "library", "--json"))
        assert [hit["ref"] for hit in found["hits"]] == ["team:find"]


def test_a_changed_library_is_searched_again(home: Path) -> None:
    (home / "libraries" / "team" / "prompts" / "find.md").write_text("Something new")
    assert data(dittybag(home, "search", "something", "--json"))["total"] == 1
    assert data(dittybag(home, "search", "please", "--json"))["total"] == 0


def test_results_are_limited_by_kind_and_number(home: Path) -> None:
    found = data(dittybag(home, "search", "errors", "--kind", "task", "--kind", "prompt", "--json"))
    assert sorted(hit["kind"] for hit in found["hits"]) == ["prompt", "task"]
    for number in range(3):
        dittybag(home, "task", "add", f"errors {number}")
    found = data(dittybag(home, "search", "errors", "--kind", "task", "--limit", "2", "--json"))
    assert (len(found["hits"]), found["total"]) == (2, 4)


def test_another_project_is_searched(home: Path) -> None:
    found = data(dittybag(home, "search", "errors", "--kind", "prompt", "-p", "other", "--json"))
    assert [hit["title"] for hit in found["hits"]] == ["elsewhere"]


def test_text_output(home: Path) -> None:
    result = dittybag(home, "search", "errors")
    assert "prompt  review" in result.stdout
    assert "  Find all errors, please." in result.stdout
    assert result.stderr == "4 results\n"
    empty = dittybag(home, "search", "nosuchword")
    assert (empty.stdout, empty.stderr) == ("", "No results\n")


def test_the_nearest_spelling_is_offered(home: Path) -> None:
    misspelt = dittybag(home, "search", "erorrs")
    assert (misspelt.stdout, misspelt.stderr) == ("", "No results\nhint: did you mean: errors\n")
    found = data(dittybag(home, "search", "plaese", "--json"))
    assert found == {"hits": [], "total": 0, "suggestion": "please"}


def test_results_show_what_other_commands_take(home: Path) -> None:
    dittybag(home, "prompt", "add", "titled", "Other errors.", "--title", "A long title")
    lines = dittybag(home, "search", "errors").stdout.splitlines()
    assert {line for line in lines if not line.startswith(" ")} == {
        "prompt  titled  A long title",
        "prompt  review",
        "resource  dittybag://resources/note.txt  note.txt",
        "task  1  Fix the errors",
        "library  team:find",
    }
    for command in (
        ("prompt", "show", "titled"),
        ("resource", "show", "dittybag://resources/note.txt"),
        ("task", "show", "1"),
        ("library", "show", "team:find"),
    ):
        assert "rrors" in dittybag(home, *command).stdout.lower()


def test_the_summary_counts_what_is_shown(home: Path) -> None:
    for number in range(3):
        dittybag(home, "task", "add", f"errors {number}")
    cut = dittybag(home, "search", "errors", "--kind", "task", "--kind", "prompt", "--limit", "2")
    assert cut.stderr == "2 of 5 results\nhint: to see more, raise --limit\n"
