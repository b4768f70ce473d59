"""`dittybag tag`: the tags of prompts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.cli_runner import data, dittybag, failure


def tags(home: Path, *arguments: str) -> dict[str, int]:
    found = data(dittybag(home, "tag", "list", *arguments, "--json"))["tags"]
    return {tag["name"]: tag["prompts"] for tag in found}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name, tags_of_prompt in {"a": "xy", "b": "x", "c": ""}.items():
        dittybag(tmp_path, "prompt", "add", name, name, *(f"-t{tag}" for tag in tags_of_prompt))
    return tmp_path


def test_tags_are_listed_with_their_counts(home: Path) -> None:
    assert dittybag(home, "tag", "list").stdout == "tag  prompts\nx          2\ny          1\n"
    assert tags(home) == {"x": 2, "y": 1}


def test_an_empty_list_of_tags_has_a_hint(tmp_path: Path) -> None:
    none = dittybag(tmp_path, "tag", "list")
    assert (none.stdout, none.stderr.splitlines()[0]) == ("", "No tags yet")


def test_tags_are_added_and_removed(home: Path) -> None:
    assert dittybag(home, "tag", "add", "c", "New", "x", "new").stdout == "Prompt 'c' has the tags new, x\n"
    assert dittybag(home, "tag", "add", "c", "NEW").stdout == "Prompt 'c' has the tags new, x (unchanged)\n"
    prompt = data(dittybag(home, "prompt", "show", "c", "--json"))
    assert (prompt["tags"], prompt["version"]) == (["new", "x"], 2)
    report = data(dittybag(home, "tag", "remove", "c", "X", "other", "--json"))
    assert report == {"id": prompt["id"], "name": "c", "tags": ["new"], "changed": True}
    assert dittybag(home, "tag", "remove", "c", "new").stdout == "Prompt 'c' has no tags\n"
    same = data(dittybag(home, "tag", "remove", "c", "new", "--json"))
    assert (same["tags"], same["changed"]) == ([], False)
    assert tags(home) == {"x": 2, "y": 1}


def test_a_tag_is_renamed_on_every_prompt_of_its_project(home: Path) -> None:
    dittybag(home, "project", "create", "other")
    dittybag(home, "prompt", "add", "d", "d", "-t", "x", "-p", "other")
    assert dittybag(home, "tag", "rename", "X", "Z").stdout == "Renamed tag 'x' to 'z' on 2 prompts\n"
    assert tags(home) == {"z": 2, "y": 1}
    assert tags(home, "-p", "other") == {"x": 1}
    assert data(dittybag(home, "prompt", "show", "a", "--json"))["tags"] == ["z", "y"]
    # Rename to an existing tag.
    report = data(dittybag(home, "tag", "rename", "z", "y", "--json"))
    assert report == {"old": "z", "new": "y", "prompts": ["a", "b"]}
    assert tags(home) == {"y": 2}
    assert data(dittybag(home, "prompt", "show", "a", "--json"))["tags"] == ["y"]
    # Rename to the same name: no change.
    version = data(dittybag(home, "prompt", "show", "b", "--json"))["version"]
    dittybag(home, "tag", "rename", "y", "Y")
    assert data(dittybag(home, "prompt", "show", "b", "--json"))["version"] == version


def test_a_tag_is_renamed_in_one_transaction(home: Path) -> None:
    dittybag(home, "tag", "rename", "x", "z")
    second, first = data(dittybag(home, "history", "--limit", "2", "--json"))["changes"]
    # The changes of a batch refer to its first change.
    assert (first["batch"], second["batch"]) == (first["change"], first["change"])


def test_the_prompts_with_a_tag_are_shown(home: Path) -> None:
    lines = dittybag(home, "tag", "show", "X").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["name", "b", "a"]
    shown = data(dittybag(home, "tag", "show", "x", "--limit", "1", "--json"))
    assert ([prompt["name"] for prompt in shown["prompts"]], shown["total"]) == (["b"], 2)
    every = data(dittybag(home, "tag", "show", "x", "--limit", "1", "--all", "--json"))
    assert [prompt["name"] for prompt in every["prompts"]] == ["b", "a"]


def test_errors_are_printed_to_standard_error(home: Path) -> None:
    fifty = [f"t{number}" for number in range(50)]
    for arguments, status, problem in [
        (("add", "a", "not ok"), 1, "Tag 'not ok' contains invalid characters"),
        (("add", "a", *fifty), 1, "At most 50 tags are allowed, not 52"),
        (("add", "nope", "x"), 3, "Prompt 'nope' does not exist"),
        (("add", "a"), 2, "TAG is required"),
        (("remove", "nope", "x"), 3, "Prompt 'nope' does not exist"),
        (("rename", "nope", "x"), 3, "No prompt in project 'default' has the tag 'nope'"),
        (("rename", "x", ""), 1, "Tag '' must be 1-50 characters"),
        (("show", "\udcff"), 2, "not valid UTF-8"),
    ]:
        result = dittybag(home, "tag", *arguments, status=status)
        assert problem in result.stderr
        assert "Traceback" not in result.stderr
        assert result.stdout == ""
    error = failure(dittybag(home, "tag", "show", "xx", "--json", status=3))
    assert (error["code"], error["hints"]) == ("NOT_FOUND", ["did you mean x?"])
    assert tags(home) == {"x": 2, "y": 1}


def test_every_help_page_has_an_example() -> None:
    for name in ("list", "show", "add", "remove", "rename"):
        page = dittybag(Path("/nowhere"), "tag", name, "--help").stdout
        assert re.search(r"Examples?:\n", page)
        assert "--json" in page
