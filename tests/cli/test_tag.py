"""`dittybag tag`: the tags of prompts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cli_runner import data, dittybag


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
