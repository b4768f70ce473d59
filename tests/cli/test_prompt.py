"""`dittybag prompt`, on a terminal and in scripts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.cli_runner import data, dittybag, output_bytes
from tests.cli.pseudo_terminal import run_in_terminal, strip_colours

ODD_TEXT = "1\r\n2\t\x01\u2028 \"'`;-- %_\\ 👩‍👩‍👧 שלום \ufeff\uffff e\u0301 ß\n\n"
MANIFEST = """\
[prompts.review]
description = "Review code"

[[prompts.review.arguments]]
name = "code"
required = true
"""


def prompt_content(home: Path, name: str) -> str:
    text: str = data(dittybag(home, "prompt", "show", name, "--json"))["content"]
    return text


def test_a_prompt_is_added_shown_listed_updated_and_deleted(tmp_path: Path) -> None:
    result = dittybag(tmp_path, "prompt", "add", "greet", "Say hello.", "-t", "Fun", "--title", "Greeting")
    assert result.stdout == "Added prompt 'greet'\n"
    assert dittybag(tmp_path, "prompt", "show", "greet").stdout == "Say hello."
    listed = dittybag(tmp_path, "prompt", "list").stdout.splitlines()
    assert listed[0].split() == ["name", "title", "tags", "updated"]
    assert re.fullmatch(r"greet  Greeting  fun   \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", listed[1])
    result = dittybag(tmp_path, "prompt", "edit", "greet", "Say hello twice.", "--name", "hello")
    assert result.stdout == "Updated prompt 'hello'\n"
    assert dittybag(tmp_path, "prompt", "show", "hello").stdout == "Say hello twice."
    deleted = dittybag(tmp_path, "prompt", "delete", "hello")
    assert (deleted.stdout, deleted.stderr) == (
        "Deleted prompt 'hello'\n",
        "hint: to restore it, run: dittybag undo\n",
    )
    dittybag(tmp_path, "prompt", "show", "hello", status=3)
    empty = dittybag(tmp_path, "prompt", "list")
    assert (empty.stdout, empty.stderr.splitlines()[0]) == ("", "No prompts yet")


def test_options_set_the_fields_of_a_prompt(tmp_path: Path) -> None:
    about = ("--description", "For people", "-t", "b", "-t", "a")
    arguments = ("-a", "error", "-a", "language? : Where it is from: SQL, Go ")
    add = ("prompt", "add", "explain", "Explain {{ error }}", *about, *arguments, "--json")
    added = data(dittybag(tmp_path, *add))
    assert (added["title"], added["description"], added["tags"]) == ("explain", "For people", ["b", "a"])
    assert added["arguments"] == [
        {"name": "error", "description": None, "required": True, "choices": []},
        {"name": "language", "description": "Where it is from: SQL, Go", "required": False, "choices": []},
    ]
    assert data(dittybag(tmp_path, "prompt", "show", "explain", "--json")) == added
    changed = data(dittybag(tmp_path, "prompt", "edit", "explain", "--tag", "", "--verbatim", "--json"))
    assert (changed["tags"], changed["arguments"], changed["version"]) == ([], [], 2)


def test_content_from_a_file_or_standard_input_is_stored_byte_for_byte(tmp_path: Path) -> None:
    file = tmp_path / "odd.md"
    file.write_bytes(ODD_TEXT.encode())
    for name, arguments in {"a": ("--file", str(file)), "b": (), "c": ("-",), "d": ("-f", "-")}.items():
        output_bytes(tmp_path, "prompt", "add", name, *arguments, stdin=ODD_TEXT.encode())
        assert output_bytes(tmp_path, "prompt", "show", name) == ODD_TEXT.encode()


def test_a_prompt_is_found_by_name_id_or_title(tmp_path: Path) -> None:
    prompt_id = data(dittybag(tmp_path, "prompt", "add", "one", "1", "--title", "Number One", "--json"))["id"]
    # A name takes precedence over a title.
    dittybag(tmp_path, "prompt", "add", "two", "2", "--title", "one")
    for reference, says in {
        "one": "1",
        prompt_id: "1",
        prompt_id.upper(): "1",
        "Number One": "1",
        "two": "2",
    }.items():
        assert dittybag(tmp_path, "prompt", "show", reference).stdout == says


def test_lists_are_filtered_and_limited(tmp_path: Path) -> None:
    for name, text, tag in [("a", "red fish", "x"), ("b", "blue fish", "y"), ("c", "red bird", "x")]:
        dittybag(tmp_path, "prompt", "add", name, text, "-t", tag)

    def names(*arguments: str) -> list[str]:
        found = data(dittybag(tmp_path, "prompt", "list", *arguments, "--json"))
        return [prompt["name"] for prompt in found["prompts"]]

    assert names() == ["c", "b", "a"]
    assert names("--tag", "X") == ["c", "a"]
    assert names("-t", "x", "-t", "y") == ["c", "b", "a"]
    assert names("--search", "FISH") == ["b", "a"]
    assert names("--search", "fish", "--tag", "x") == ["a"]
    assert names("--search", "fish", "--tag", "nobody") == []
    assert names("--limit", "2") == ["c", "b"]
    assert names("--limit", "1", "--all") == ["c", "b", "a"]
    cut = dittybag(tmp_path, "prompt", "list", "--limit", "1")
    assert (len(cut.stdout.splitlines()), cut.stderr) == (2, "Showing 1 of 3; use --all to see the rest\n")
    none = dittybag(tmp_path, "prompt", "list", "--search", "cow")
    assert (none.stdout, none.stderr) == ("", "No matching prompts\n")


def test_projects_and_workspaces_are_separate(tmp_path: Path) -> None:
    dittybag(tmp_path, "project", "create", "auth")
    dittybag(tmp_path, "prompt", "add", "a", "in auth", "-p", "auth")
    dittybag(tmp_path, "prompt", "add", "a", "elsewhere", "--workspace", "work")
    assert dittybag(tmp_path, "prompt", "show", "a", "--project", "auth").stdout == "in auth"
    assert dittybag(tmp_path, "prompt", "show", "a", "--db", str(tmp_path / "work.db")).stdout == "elsewhere"
    dittybag(tmp_path, "prompt", "show", "a", status=3)


def test_several_prompts_are_deleted_together_or_not_at_all(tmp_path: Path) -> None:
    for name in "abc":
        dittybag(tmp_path, "prompt", "add", name, name)
    dittybag(tmp_path, "prompt", "delete", "a", "nope", status=3)
    assert prompt_content(tmp_path, "a") == "a"
    result = dittybag(tmp_path, "prompt", "delete", "a", "b", "a")
    assert result.stdout == "Deleted prompt 'a'\nDeleted prompt 'b'\n"
    assert "to restore them" in result.stderr


# Rendering


def test_stored_prompts_are_rendered(tmp_path: Path) -> None:
    add = ("prompt", "add", "explain", "Explain this {{ language }} error: {{ error }}\n")
    dittybag(tmp_path, *add, "-a", "error: The message", "-a", "language?")
    dittybag(tmp_path, "prompt", "add", "plain", "Just {{ this }}", "--verbatim")
    rendered = dittybag(tmp_path, "prompt", "render", "explain", "error=a=b {{ x }}", "language=SQL")
    assert rendered.stdout == "Explain this SQL error: a=b {{ x }}\n"
    assert dittybag(tmp_path, "prompt", "render", "plain").stdout == "Just {{ this }}"
    values = tmp_path / "values.json"
    values.write_text('{"error": {"line": 3}, "language": "Go"}')
    rendered = dittybag(
        tmp_path, "prompt", "render", "explain", "language=C", "--args-json", str(values), "--json"
    )
    expected = 'Explain this C error: {"line":3}\n'
    messages = [{"role": "user", "text": expected}]
    assert data(rendered) == {"name": "explain", "text": expected, "messages": messages}
    piped = dittybag(tmp_path, "prompt", "render", "explain", "--args-json", "-", stdin='{"error": "e"}')
    assert piped.stdout == "Explain this  error: e\n"
    missing = dittybag(tmp_path, "prompt", "render", "explain", "language=C", status=2)
    assert missing.stderr.splitlines()[0] == "error: Missing required argument: error"
    assert missing.stdout == ""


@pytest.mark.parametrize("values", ["[1]", "{", '{"error": "\\ud800"}', "[" * 100_000, "\xff"])
def test_arguments_that_are_not_a_json_object_are_rejected(tmp_path: Path, values: str) -> None:
    dittybag(tmp_path, "prompt", "add", "explain", "{{ error }}", "-a", "error")
    result = dittybag(tmp_path, "prompt", "render", "explain", "--args-json", "-", stdin=values, status=2)
    assert "The arguments are not a JSON object" in result.stderr
    assert "Traceback" not in result.stderr


def test_null_counts_as_absent(tmp_path: Path) -> None:
    dittybag(tmp_path, "prompt", "add", "explain", "[{{ error }}{{ more }}]", "-a", "error", "-a", "more?")
    render = ("prompt", "render", "explain", "--args-json", "-")
    assert dittybag(tmp_path, *render, stdin='{"error": "", "more": null}').stdout == "[]"
    missing = dittybag(tmp_path, *render, stdin='{"error": null}', status=2)
    assert missing.stderr.splitlines()[0] == "error: Missing required argument: error"


CHAT = "--role system\nBe {{ mood }}.\n\n--role user\nHello\n"


def test_a_prompt_with_roles_is_rendered_with_role_lines(tmp_path: Path) -> None:
    dittybag(tmp_path, "prompt", "add", "chat", stdin=CHAT)
    dittybag(tmp_path, "prompt", "add", "plain", "--verbatim", stdin=CHAT)
    folder = tmp_path / "libraries" / "team"
    folder.mkdir(parents=True)
    (folder / "chat.prompty").write_text("system:\nBe kind.\n\nuser:\nHello\n\nassistant:\nHi\n")
    expected = "--role system\nBe kind.\n\n--role user\nHello"
    assert dittybag(tmp_path, "prompt", "render", "chat", "mood=kind").stdout == expected
    assert dittybag(tmp_path, "prompt", "render", "plain").stdout == CHAT.rstrip()
    rendered = dittybag(tmp_path, "prompt", "render", "team:chat")
    assert rendered.stdout == f"{expected}\n\n--role assistant\nHi"
    assert data(dittybag(tmp_path, "prompt", "render", "team:chat", "--json"))["messages"] == [
        {"role": "system", "text": "Be kind."},
        {"role": "user", "text": "Hello"},
        {"role": "assistant", "text": "Hi"},
    ]
    # What is printed can be stored again.
    dittybag(tmp_path, "prompt", "add", "again", stdin=rendered.stdout)
    assert dittybag(tmp_path, "prompt", "render", "again").stdout == rendered.stdout


def test_library_prompts_are_rendered(tmp_path: Path) -> None:
    folder = tmp_path / "libraries" / "team"
    (folder / "prompts").mkdir(parents=True)
    (folder / "twig.toml").write_text(MANIFEST)
    (folder / "prompts" / "review.md").write_text("Review this:\n{{ code }}\n")
    rendered = dittybag(tmp_path, "prompt", "render", "team:review", "code=x = 1")
    assert rendered.stdout == "Review this:\nx = 1\n"
    missing = dittybag(tmp_path, "prompt", "render", "team:review", status=2)
    assert "Missing required argument: code" in missing.stderr
    near = dittybag(tmp_path, "prompt", "render", "team:revue", status=3)
    assert "hint: did you mean team:review?" in near.stderr
    screen = run_in_terminal(tmp_path, "prompt", "render", "team:review", answers=[("code", "y = 2\n")])
    assert strip_colours(screen).endswith("Review this:\ny = 2\n")


def test_a_terminal_prompts_for_missing_arguments(tmp_path: Path) -> None:
    add = ("prompt", "add", "explain", "{{ language }}: {{ error }}.", "-a", "error: The \x1b[31mmessage")
    dittybag(tmp_path, *add, "-a", "language: Where from")
    answers = [
        ("Enter error (The  [31mmessage): ", "it fell\n"),
        ("Enter language (Where from): ", "\nGo\n"),
    ]
    rendered = tmp_path / "rendered"
    with rendered.open("wb") as stdout:
        screen = run_in_terminal(
            tmp_path, "prompt", "render", "explain", answers=answers, stdout=stdout.fileno()
        )
    assert "\x1b" not in screen
    assert rendered.read_text() == "Go: it fell."
    stopped = run_in_terminal(tmp_path, "prompt", "render", "explain", answers=[("error", "\x04")], status=1)
    assert "error: Interrupted" in strip_colours(stopped)


# On a terminal


def test_a_terminal_shows_a_header_but_no_control_characters(tmp_path: Path) -> None:
    text = (
        "# Head\n\nSay **hello** to {{ name }} in `code`, <b>not</b> \x1b]0;bad\x07\x9b1m.\n"
        "```\n# code\n```\n- one"
    )
    file = tmp_path / "text.md"
    file.write_text(text)
    add = ("prompt", "add", "greet", "--file", str(file), "-t", "fun", "--title", "Greeting")
    dittybag(tmp_path, *add, "-a", "name?: Who", "--description", "Says \x1b[5mhello")
    screen = run_in_terminal(tmp_path, "prompt", "show", "greet")
    assert "\x1b[1mgreet\x1b[0m  Greeting\n" in screen
    # Only control characters are replaced.
    assert text.replace("\x1b", "�").replace("\x07", "�").replace("\x9b", "�") in strip_colours(screen)
    for line in ("tags: fun", "argument: name (optional): Who", "updated just now, version 1"):
        assert line in strip_colours(screen)
    for sequence in ("\x1b]", "\x07", "\x9b", "\x1b[5m"):
        assert sequence not in screen
    raw = run_in_terminal(tmp_path, "prompt", "show", "greet", "--raw")
    assert raw.startswith("# Head\n\nSay **hello**")
    assert "\x1b" not in raw
    colourless = run_in_terminal(tmp_path, "prompt", "show", "greet", variables={"NO_COLOR": "1"})
    assert "\x1b" not in colourless
    assert colourless == strip_colours(screen)
    listed = run_in_terminal(tmp_path, "prompt", "list")
    line = strip_colours(listed).splitlines()[1]
    assert line.startswith("greet  Greeting  fun   just now  Says  [5mhello")


def test_long_hostile_lines_are_shown_without_delay(tmp_path: Path) -> None:
    file = tmp_path / "text.md"
    lines = ["{{" * 900, "<a" * 900, "**a" * 600, "[" * 1900, "`" * 1999, "a" * 500_000, "1" * 1900]
    file.write_text("\n".join(lines))
    dittybag(tmp_path, "prompt", "add", "long", "--file", str(file))
    assert "a" * 500_000 in run_in_terminal(tmp_path, "prompt", "show", "long")


def test_titles_with_line_breaks_and_control_characters_stay_on_one_line(tmp_path: Path) -> None:
    for name, title in (("odd", "Two\n\tlines\x1b[31m"), ("blank", " \n")):
        dittybag(tmp_path, "prompt", "add", name, "Say hello.", "--title", title)
        shown = data(dittybag(tmp_path, "prompt", "show", name, "--json"))
        assert shown["title"] == title
        assert dittybag(tmp_path, "prompt", "show", title).stdout == "Say hello."
    rows = dittybag(tmp_path, "prompt", "list").stdout.splitlines()
    assert re.fullmatch(r"blank +\S+Z", rows[1])
    assert re.fullmatch(r"odd +Two  lines \[31m +\S+Z", rows[2])
    changes = dittybag(tmp_path, "history").stdout.splitlines()
    assert len(changes) == 4
    assert "prompt blank" in changes[1]
    assert "prompt Two  lines [31m" in changes[2]
    found = dittybag(tmp_path, "search", "hello").stdout
    assert "\x1b[31m" not in found
    taken = dittybag(tmp_path, "prompt", "add", "third", "x", "--title", "Two\n\tlines\x1b[31m", status=4)
    assert "\x1b" not in taken.stderr
