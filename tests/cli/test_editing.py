"""Editing prompts, tasks and resources in an editor, with their fields as front matter."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.cli.cli_runner import data, dittybag
from tests.cli.pseudo_terminal import run_in_terminal, strip_colours
from tests.cli.test_prompt import draft_files, fake_editor


def test_the_fields_and_the_content_of_a_prompt_are_edited_as_one_file(tmp_path: Path) -> None:
    dittybag(tmp_path, "prompt", "add", "greet", "Say {{ phrase }}.", "-t", "fun", "--title", 'A "title"')
    seen = tmp_path / "seen"
    editor = fake_editor(
        tmp_path,
        f'cp "$1" {seen}; sed -i "s/^title:.*/title: Greeting/; s/^tags:.*/tags: [fun, short]/;'
        " s/^description:.*/description: Says something/; s/required: true/required: false/;"
        ' s/^Say/Shout/" "$1"',
    )
    result = dittybag(tmp_path, "prompt", "edit", "greet", variables=editor)
    assert result.stdout == "Updated prompt 'greet'\n"
    assert seen.read_text() == (
        '---\nname: greet\ntitle: "A \\"title\\""\ndescription: ""\ntags: [fun]\n'
        "arguments:\n  - name: phrase\n    required: true\n---\nSay {{ phrase }}."
    )
    stored = data(dittybag(tmp_path, "prompt", "show", "greet", "--json"))
    assert (stored["title"], stored["description"]) == ("Greeting", "Says something")
    assert (stored["tags"], stored["content"]) == (["fun", "short"], "Shout {{ phrase }}.")
    assert [(item["name"], item["required"]) for item in stored["arguments"]] == [("phrase", False)]
    assert stored["version"] == 2
    assert draft_files(tmp_path) == []


def test_the_editor_opens_again_with_the_error_until_the_text_can_be_stored(tmp_path: Path) -> None:
    dittybag(tmp_path, "prompt", "add", "x", "Old")
    dittybag(tmp_path, "prompt", "add", "taken", "Text")
    # First a field that does not exist, then a name that another prompt has, then a correct file.
    script = f"""
        cat "$1" >> {tmp_path}/seen; echo >> {tmp_path}/seen
        case $(grep -c "dittybag: error" {tmp_path}/seen) in
            0) sed -i 's/^title:.*/titel: New/; s/^Old/New text/' "$1" ;;
            1) sed -i 's/^titel:.*/title: New/; s/^name:.*/name: taken/' "$1" ;;
            *) sed -i 's/^name:.*/name: y/' "$1" ;;
        esac
    """
    result = dittybag(tmp_path, "prompt", "edit", "x", variables=fake_editor(tmp_path, script))
    assert result.stdout == "Updated prompt 'y'\n"
    errors = [line for line in (tmp_path / "seen").read_text().splitlines() if "dittybag: error" in line]
    assert errors == [
        "# dittybag: error: 'titel' is not a field; the fields are name, title, description, tags, arguments",
        "# dittybag: error: Prompt 'taken' already exists in project 'default'",
    ]
    stored = data(dittybag(tmp_path, "prompt", "show", "y", "--json"))
    assert (stored["title"], stored["content"]) == ("New", "New text")
    assert draft_files(tmp_path) == []


def test_a_text_that_is_given_up_is_kept_and_can_be_continued(tmp_path: Path) -> None:
    dittybag(tmp_path, "prompt", "add", "x", "Old")
    broken = fake_editor(tmp_path, "sed -i 's/^tags:.*/tags: [a b]/; s/^Old/New/' \"$1\"")
    result = dittybag(tmp_path, "prompt", "edit", "x", variables=broken, status=1)
    [kept] = draft_files(tmp_path)
    assert result.stderr.splitlines()[-1] == f"hint: your text is in {kept}"
    assert data(dittybag(tmp_path, "prompt", "show", "x", "--json"))["version"] == 1
    repair = fake_editor(tmp_path, "sed -i 's/^tags:.*/tags: [a]/' \"$1\"")
    dittybag(tmp_path, "prompt", "edit", "x", "--draft", str(kept), variables=repair)
    stored = data(dittybag(tmp_path, "prompt", "show", "x", "--json"))
    assert (stored["tags"], stored["content"]) == (["a"], "New")
    # Front matter without a beginning is not taken for content.
    headless = fake_editor(tmp_path, 'sed -i 1d "$1"')
    refused = dittybag(tmp_path, "prompt", "edit", "x", variables=headless, status=1)
    assert "the front matter has no beginning" in refused.stderr


def test_a_new_prompt_is_written_into_a_template(tmp_path: Path) -> None:
    fill = fake_editor(
        tmp_path,
        'sed -i "s/^name:.*/name: hello/; s/^tags:.*/tags: [new]/" "$1"; echo "Hi {{ who }}" >> "$1"',
    )
    screen = strip_colours(run_in_terminal(tmp_path, "prompt", "add", variables=fill))
    assert screen.splitlines()[0] == "Added prompt 'hello'"
    stored = data(dittybag(tmp_path, "prompt", "show", "hello", "--json"))
    assert (stored["content"], stored["tags"]) == ("Hi {{ who }}", ["new"])
    assert [(item["name"], item["required"]) for item in stored["arguments"]] == [("who", True)]
    unchanged = fake_editor(tmp_path, "true")
    run_in_terminal(tmp_path, "prompt", "add", variables=unchanged, status=1)
    # Without a terminal, a name is required.
    assert "NAME" in dittybag(tmp_path, "prompt", "add", status=2).stderr


def test_a_task_is_edited_with_its_fields(tmp_path: Path) -> None:
    dittybag(tmp_path, "task", "add", "Write", "tests", "-n", "Some notes", "-l", "home")
    other = f"'{sys.executable}' -m dittybag task update 1 --energy deep"
    first = fake_editor(
        tmp_path,
        'grep -q "dittybag: error" "$1" && sed -i "s/^due:.*/due: 2030-01-02/" "$1" && exit;'
        ' sed -i "s/^title:.*/title: Write docs/; s/^due:.*/due: someday/; s/^labels:.*/labels: []/;'
        ' s/^priority:.*/priority: 5/; s/^Some notes/Other notes/" "$1"',
    )
    assert "Updated task 1" in dittybag(tmp_path, "task", "edit", "1", variables=first).stdout
    stored = data(dittybag(tmp_path, "task", "show", "1", "--json"))
    assert (stored["title"], stored["priority"], stored["due_date"]) == ("Write docs", 5, "2030-01-02")
    assert (stored["notes"], stored["labels"], stored["energy"]) == ("Other notes", [], "medium")
    same = dittybag(tmp_path, "task", "edit", "1", variables=fake_editor(tmp_path, "true"))
    assert same.stdout == "Task 1 is unchanged\n"
    # Somebody else changes the task while the editor is open.
    busy = fake_editor(tmp_path, f'sed -i "s/^energy:.*/energy: light/" "$1"; {other} > /dev/null')
    conflict = dittybag(tmp_path, "task", "edit", "1", "--fence", "0", variables=busy, status=4)
    assert {"-energy: deep", "+energy: light"} <= set(conflict.stderr.splitlines())
    assert data(dittybag(tmp_path, "task", "show", "1", "--json"))["energy"] == "deep"


def test_the_text_of_a_resource_is_edited(tmp_path: Path) -> None:
    dittybag(tmp_path, "resource", "add", "-", "--name", "api.json", stdin='{"a": 1}\n')
    editor = fake_editor(tmp_path, f'echo "$1" > {tmp_path}/path; sed -i "s/1/2/" "$1"')
    result = dittybag(tmp_path, "resource", "edit", "api.json", variables=editor)
    assert result.stdout == "Updated resource 'api.json' (9 bytes)\n"
    assert dittybag(tmp_path, "resource", "show", "api.json").stdout == '{"a": 2}\n'
    assert (tmp_path / "path").read_text().endswith("/api.json\n")
    (tmp_path / "binary").write_bytes(b"\0\1")
    dittybag(tmp_path, "resource", "add", str(tmp_path / "binary"))
    assert "is binary" in dittybag(tmp_path, "resource", "edit", "binary", status=1).stderr
