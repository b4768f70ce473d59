"""Editing the texts of prompts, resources and tasks in an editor."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.cli_runner import data, dittybag
from tests.cli.pseudo_terminal import run_in_terminal, strip_colours


def fake_editor(folder: Path, script: str) -> dict[str, str]:
    """Write an editor that runs a shell script on the file `$1`; return the variables that select it."""
    file = folder / "editor"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    # Temporary files go where the test can find them.
    temporary = folder / "drafts"
    temporary.mkdir(exist_ok=True)
    return {"EDITOR": str(file), "TMPDIR": str(temporary)}


def draft_files(folder: Path) -> list[Path]:
    return [file for file in (folder / "drafts").rglob("*") if file.is_file()]


def edit(home: Path, *command: str, script: str, status: int = 0) -> str:
    """Run a command in a terminal with an editor that runs a shell script; return its output."""
    return strip_colours(
        run_in_terminal(home, *command, variables=fake_editor(home, script), status=status, columns=500)
    )


def show(home: Path, kind: str, name: str) -> dict[str, object]:
    shown: dict[str, object] = data(dittybag(home, kind, "show", name, "--json"))
    return shown


#: A command that edits, the command that adds what it edits, and where its text is.
EDITED = [
    (("prompt", "edit", "x"), ("prompt", "add", "x", "-"), "content", "x.md"),
    (("resource", "edit", "x.sql"), ("resource", "add", "-", "--name", "x.sql"), "text", "x.sql"),
    (("task", "edit", "1"), ("task", "add", "A", "-n", "-"), "notes", "task-1.md"),
]


@pytest.mark.parametrize(("command", "add", "field", "file"), EDITED, ids=["prompt", "resource", "task"])
def test_the_text_is_edited_and_nothing_else(
    tmp_path: Path, command: tuple[str, ...], add: tuple[str, ...], field: str, file: str
) -> None:
    dittybag(tmp_path, *add, stdin="one\r\ntwo")
    kind, _, name = command
    # A newline that the editor adds is not a change.
    assert "is unchanged\n" in edit(tmp_path, *command, script='printf "\\n" >> "$1"')
    before = show(tmp_path, kind, name)
    script = f'echo " more" >> "$1"; echo "$1" > {tmp_path}/path'
    assert edit(tmp_path, *command, script=script).startswith("Updated ")
    after = show(tmp_path, kind, name)
    assert after[field] == "one\r\ntwo more"
    changed = {key for key, value in after.items() if value != before[key]} - {"updated_at"}
    assert changed - {"size", "sha256"} == {field, "version"}
    assert (tmp_path / "path").read_text().endswith(f"/{file}\n")
    assert draft_files(tmp_path) == []


@pytest.mark.parametrize(("command", "add", "field", "file"), EDITED, ids=["prompt", "resource", "task"])
def test_a_concurrent_change_is_not_overwritten(
    tmp_path: Path, command: tuple[str, ...], add: tuple[str, ...], field: str, file: str
) -> None:
    dittybag(tmp_path, *add, stdin="Old")
    content = {"prompt": ("Theirs",), "resource": ("-",), "task": ("--notes", "Theirs")}[command[0]]
    other = f"'{sys.executable}' -m dittybag {' '.join((*command, *content))}"
    busy = f'printf Mine > "$1"; printf Theirs | {other} > /dev/null'
    lines = edit(tmp_path, *command, script=busy, status=4).splitlines()
    [kept] = draft_files(tmp_path)
    assert lines[:5] == ["--- as it is stored now", "+++ your text", "@@ -1 +1 @@", "-Theirs", "+Mine"]
    assert lines[5].endswith("was changed by someone else; read it again")
    assert lines[6] == f"hint: your text is in {kept}"
    assert show(tmp_path, command[0], command[2])[field] == "Theirs"
    # The hint stores the text.
    resume = lines[7].removeprefix("hint: to store it, run: dittybag ")
    words, _, stdin = resume.partition(" < ")
    dittybag(tmp_path, *words.split(), stdin=Path(stdin).read_text() if stdin else "")
    assert show(tmp_path, command[0], command[2])[field] == "Mine"


@pytest.mark.parametrize(("command", "add", "field", "file"), EDITED, ids=["prompt", "resource", "task"])
def test_without_a_terminal_an_editor_is_refused(
    tmp_path: Path, command: tuple[str, ...], add: tuple[str, ...], field: str, file: str
) -> None:
    dittybag(tmp_path, *add, stdin="Old")
    never = fake_editor(tmp_path, f"touch {tmp_path}/opened")
    refused = dittybag(tmp_path, *command, variables=never, status=2)
    assert refused.stderr.startswith(
        "error: No option was given, and there is no terminal for an editor\nhint: give "
    )
    assert not (tmp_path / "opened").exists()


def test_a_new_prompt_is_written_in_the_editor(tmp_path: Path) -> None:
    script = f'stat -c "%a" "$1" "$(dirname "$1")" > {tmp_path}/modes; printf "Hi\\n{{{{ who }}}}\\n" > "$1"'
    screen = edit(tmp_path, "prompt", "add", "greet", "-t", "fun", script=script)
    assert screen.startswith("Added prompt 'greet'\nnote: the variable {{ who }} is now an argument")
    stored = show(tmp_path, "prompt", "greet")
    assert (stored["content"], stored["tags"]) == ("Hi\n{{ who }}", ["fun"])
    assert (tmp_path / "modes").read_text().split() == ["600", "700"]
    assert draft_files(tmp_path) == []
    # VISUAL takes precedence over EDITOR, and may have arguments.
    visual = fake_editor(tmp_path, "false") | {"VISUAL": "sed -i s/who/all/"}
    run_in_terminal(tmp_path, "prompt", "edit", "greet", variables=visual)
    stored = show(tmp_path, "prompt", "greet")
    assert (stored["content"], stored["arguments"]) == (
        "Hi\n{{ all }}",
        [{"name": "all", "description": None, "required": True, "choices": []}],
    )


def test_an_empty_file_or_a_failing_editor_stores_nothing(tmp_path: Path) -> None:
    add = ("prompt", "add", "x")
    empty = edit(tmp_path, *add, script='printf " \\n" > "$1"', status=1)
    assert empty == "error: The text is empty; the prompt was not added\n"
    assert draft_files(tmp_path) == []
    screen = edit(tmp_path, *add, script='echo half > "$1"; exit 3', status=1)
    [kept] = draft_files(tmp_path)
    assert screen.startswith("error: The editor failed: ")
    assert f"hint: your text is in {kept}\n" in screen
    assert kept.read_text() == "half\n"
    for command in ("no-such-editor", "'"):
        variables = {"EDITOR": command, "TMPDIR": str(tmp_path / "drafts")}
        screen = run_in_terminal(tmp_path, *add, variables=variables, status=1)
        assert "error: The editor failed: " in strip_colours(screen)
        assert draft_files(tmp_path) == [kept]
    dittybag(tmp_path, "prompt", "show", "x", status=3)


def test_invalid_input_is_rejected_before_the_editor_opens(tmp_path: Path) -> None:
    dittybag(tmp_path, "prompt", "add", "there", "Words")
    never = f"touch {tmp_path}/opened"
    taken = edit(tmp_path, "prompt", "add", "there", script=never, status=4)
    assert taken == "error: Prompt 'there' already exists in project 'default'\n"
    bad = edit(tmp_path, "prompt", "add", "a b", "-t", "!", script=never, status=1)
    assert "contains invalid characters" in bad
    (tmp_path / "binary").write_bytes(b"\0\1")
    dittybag(tmp_path, "resource", "add", str(tmp_path / "binary"))
    assert "is binary" in edit(tmp_path, "resource", "edit", "binary", script=never, status=1)
    assert not (tmp_path / "opened").exists()


def test_text_that_cannot_be_stored_is_kept_in_a_file(tmp_path: Path) -> None:
    dittybag(tmp_path, "prompt", "add", "x", "Words")
    nul = edit(tmp_path, "prompt", "edit", "x", script="printf 'a\\0b' > \"$1\"", status=1)
    assert "Content must not contain NUL characters" in nul
    [kept] = draft_files(tmp_path)
    assert f"hint: your text is in {kept}\n" in nul
    gone = f'echo Mine > "$1"; "{sys.executable}" -m dittybag prompt delete x > /dev/null'
    assert " does not exist" in edit(tmp_path, "prompt", "edit", "x", script=gone, status=3)
    assert len(draft_files(tmp_path)) == 2
