"""Variables in the content of a prompt that declares no arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_runner import data, dittybag

FOUND = "note: the variable {{ name }} is now an argument; --verbatim keeps it as text\n"


def arguments(home: Path, name: str) -> list[tuple[str, bool]]:
    shown: dict[str, Any] = data(dittybag(home, "prompt", "show", name, "--json"))
    return [(argument["name"], argument["required"]) for argument in shown["arguments"]]


def test_variables_of_a_new_prompt_become_its_arguments(tmp_path: Path) -> None:
    added = dittybag(tmp_path, "prompt", "add", "t", "Hello {{ name }}!")
    assert (added.stdout, added.stderr) == ("Added prompt 't'\n", FOUND)
    assert dittybag(tmp_path, "prompt", "render", "t", "name=Bob").stdout == "Hello Bob!"
    several = dittybag(tmp_path, "prompt", "add", "u", "{{ b }} {{ a }}{{b}} {{ c | upper }}")
    assert several.stderr == (
        "note: the variables {{ b }}, {{ a }} and {{ c }} are now arguments; --verbatim keeps them as text\n"
    )
    assert arguments(tmp_path, "u") == [("b", True), ("a", True), ("c", True)]


def test_variables_that_may_be_missing_are_optional(tmp_path: Path) -> None:
    content = (
        "{{ a }} {{ b | default('x') }}{% if c %} {{ c }}{% endif %}{% for d in [1] %}{{ d }}{% endfor %}"
    )
    dittybag(tmp_path, "prompt", "add", "t", content)
    assert arguments(tmp_path, "t") == [("a", True), ("b", False), ("c", False)]
    assert dittybag(tmp_path, "prompt", "render", "t", "a=1").stdout == "1 x1"


def test_verbatim_keeps_variables_as_text(tmp_path: Path) -> None:
    added = dittybag(tmp_path, "prompt", "add", "t", "Hello {{ name }}!", "--verbatim")
    assert added.stderr == ""
    assert arguments(tmp_path, "t") == []
    assert dittybag(tmp_path, "prompt", "render", "t").stdout == "Hello {{ name }}!"
    # It was a choice, which a change of the text does not revoke.
    assert dittybag(tmp_path, "prompt", "edit", "t", "Hi {{ name }}!").stderr == ""
    assert dittybag(tmp_path, "prompt", "render", "t").stdout == "Hi {{ name }}!"
    dittybag(tmp_path, "prompt", "edit", "t", "-a", "name")
    assert dittybag(tmp_path, "prompt", "render", "t", "name=Bob").stdout == "Hi Bob!"
    dittybag(tmp_path, "prompt", "edit", "t", "Bye {{ name }}!", "--verbatim")
    assert dittybag(tmp_path, "prompt", "render", "t").stdout == "Bye {{ name }}!"
    conflict = dittybag(tmp_path, "prompt", "add", "u", "{{ a }}", "--verbatim", "-a", "a", status=2)
    assert "--verbatim cannot be used together with --argument" in conflict.stderr


@pytest.mark.parametrize(
    "content",
    [
        "Use ${{ secrets.TOKEN }} in the workflow",
        "{{#if x}} of another engine {{/if}}",
        "{% raw %}{{ name }}{% endraw %}",
        "{{ unfinished",
        "{{ '{{ quoted }}' }}",
        "{% if x %}",
        "a" * 70_000 + "{{ b.c }}",
    ],
)
def test_other_braces_are_kept_as_text(tmp_path: Path, content: str) -> None:
    added = dittybag(tmp_path, "prompt", "add", "t", "-", stdin=content)
    assert added.stderr == ""
    assert dittybag(tmp_path, "prompt", "render", "t").stdout == content


def test_found_arguments_follow_the_content(tmp_path: Path) -> None:
    dittybag(tmp_path, "prompt", "add", "t", "No variables")
    assert dittybag(tmp_path, "prompt", "edit", "t", "Hello {{ name }}").stderr == FOUND
    updated = dittybag(tmp_path, "prompt", "edit", "t", "Hello {{ name }} and {{ friend }}")
    assert updated.stderr == FOUND.replace("name", "friend")
    # Only the title changes.
    assert dittybag(tmp_path, "prompt", "edit", "t", "--title", "T").stderr == ""
    assert arguments(tmp_path, "t") == [("name", True), ("friend", True)]
    assert dittybag(tmp_path, "prompt", "edit", "t", "Nobody").stderr == ""
    assert arguments(tmp_path, "t") == []


def test_other_variables_join_declared_arguments_and_are_named(tmp_path: Path) -> None:
    added = dittybag(tmp_path, "prompt", "add", "t", "{{ a }} {{ b }}", "-a", "a?: First")
    assert added.stderr == FOUND.replace("name", "b")
    updated = dittybag(tmp_path, "prompt", "edit", "t", "{{ a }}, {{ b }}, {{ c | default('x') }}")
    assert updated.stderr == FOUND.replace("name", "c")
    assert arguments(tmp_path, "t") == [("a", False), ("b", True), ("c", False)]
    declared = dittybag(tmp_path, "prompt", "edit", "t", "-a", "a: First")
    assert "{{ b }} and {{ c }} are now arguments" in declared.stderr
    refused = dittybag(tmp_path, "prompt", "render", "t", "a=1", "b=2", "see=3", status=1)
    assert "'see' is not an argument of 't'; its arguments are a, b, c" in refused.stderr


def test_variables_of_imported_files_become_arguments(tmp_path: Path) -> None:
    table = tmp_path / "prompts.csv"
    table.write_text("act,prompt\nPoet,Write about {{ topic }}\nPlain,Nothing\n")
    imported = dittybag(tmp_path, "import", str(table))
    assert imported.stderr == "Notes:\n  line 2: the variable {{ topic }} is now an argument\n"
    assert dittybag(tmp_path, "prompt", "render", "Poet", "topic=rain").stdout == "Write about rain"
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "greet.md").write_text("Hello {{ name }}")
    (folder / "farewell.md").write_text("---\narguments: [who]\n---\nBye {{ who }}")
    result = data(dittybag(tmp_path, "import", str(folder), "--json"))
    assert result["notes"] == ["greet.md: the variable {{ name }} is now an argument"]
    assert dittybag(tmp_path, "prompt", "render", "greet", "name=Bob").stdout == "Hello Bob"
    for source in (table, folder):
        kept = data(dittybag(tmp_path, "import", str(source), "--verbatim", "--workspace", "v", "--json"))
        assert kept["notes"] == []
    assert dittybag(tmp_path, "prompt", "render", "greet", "--workspace", "v").stdout == "Hello {{ name }}"


def test_an_import_of_an_export_is_exact(tmp_path: Path) -> None:
    dittybag(tmp_path, "prompt", "add", "t", "Hello {{ name }}", "--verbatim")
    for target in ("all.json", "folder"):
        dittybag(tmp_path, "export", str(tmp_path / target))
        imported = dittybag(tmp_path, "import", str(tmp_path / target), "--workspace", target)
        assert imported.stderr == ""
        shown = data(dittybag(tmp_path, "prompt", "show", "t", "--workspace", target, "--json"))
        assert shown["arguments"] == []
