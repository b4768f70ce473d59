"""Claude Code's commands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.domain.prompts import Argument
from dittybag.library.formats import ParsedPrompt, read
from tests.library.formats.rendering import names, only, rendered


def command(body: str, front: str = "") -> ParsedPrompt:
    return only("claude-command", "commands/c.md", f"---\n{front}\n---\n{body}" if front else body)


def test_arguments_are_one_text() -> None:
    draft = command("Fix issue $ARGUMENTS.\n", 'description: Fix\nargument-hint: "[issue]"')
    assert draft == ParsedPrompt(
        key="c",
        description="Fix",
        arguments=(Argument(name="arguments", description="[issue]"),),
        text="Fix issue {{ arguments }}.\n",
        template=True,
        file="commands/c.md",
        lines_before=4,
    )


@pytest.mark.parametrize(
    ("front", "body", "expected"),
    [
        ("argument-hint: '[issue-number] [priority]'", "$1 $2", ["issue_number", "priority"]),
        ("argument-hint: <skill-a> <skill-b>", "$1 $2", ["skill_a", "skill_b"]),
        ("argument-hint: [issue-number]", "$1", ["issue_number"]),
        ("argument-hint: pr priority", "$2 $1", ["priority", "pr"]),
        ("argument-hint: '[PR] [--depth=N | --all]'", "$1 $2", ["pr", "depth"]),
        ("argument-hint: '[a] [a]'", "$1 $2", ["a", "a_2"]),
        ("argument-hint: '[not] [arguments]'", "$1 $2 $ARGUMENTS", ["not_", "arguments", "arguments_2"]),
        ("", "$1 and $2", ["arg1", "arg2"]),
        ("", "$ARGUMENTS[0] and $ARGUMENTS[1]", ["arg1", "arg2"]),
        ("", "$0 and $1", ["arg1", "arg2"]),
        ("arguments: [issue, branch]", "$issue on $branch", ["issue", "branch"]),
        ("arguments: issue branch", "$0 on $1", ["issue", "branch"]),
        ("arguments: [issue-id]", "$issue-id", ["issue_id"]),
        ("arguments: [issue, branch, issue]", "$issue $2", ["issue", "branch"]),
        ("arguments: $TARGET", "Look at $TARGET", ["TARGET"]),
        ("arguments: $ARGUMENTS", "Look at $ARGUMENTS", ["arguments"]),
    ],
)
def test_arguments_have_names(front: str, body: str, expected: list[str]) -> None:
    assert names(command(body, front)) == expected


def test_zero_is_the_first_where_zero_is_used() -> None:
    assert rendered(command("$0, $1"), arg1="a", arg2="b") == "a, b"
    assert rendered(command("$1, $2"), arg1="a", arg2="b") == "a, b"
    assert rendered(command("$ARGUMENTS[1], $1"), arg1="a", arg2="b") == "b, a"


def test_arguments_that_are_declared_keep_their_descriptions_and_defaults() -> None:
    draft = command(
        "Fix $issue", "arguments:\n  - {name: issue, description: Which, required: true, default: 7}"
    )
    assert draft.arguments == (Argument(name="issue", description="Which"),)
    assert rendered(draft) == "Fix 7"


def test_names_that_are_declared_go_before_the_hint() -> None:
    draft = command("$issue $1 $ARGUMENTS[1]", "arguments: [issue, branch]\nargument-hint: '[x] [y]'")
    assert rendered(draft, issue="7", branch="main") == "7 7 main"


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5, at most $10 or $5.00, $1,000 in all.",
        "$1 million, $2 per seat, $3/month, US$1, $1k, $1+",
        "awk '{print $1}' and `awk '{print $2}'`",
        "Run `sed s/x/$1/`",
        "```bash\nfunction f() { echo $1 $2; }\n```",
        "~~~\n$1\n~~~",
        "````\n```\n$1\n````",
        "```\n~~~\n``` x\n$1\n```",
        "`` a ` $1 ``",
        "`` $1 ``",
        "1. Run\n   ```sh\n   echo $1\n   ```\n",
        "$HOME ${ARGUMENTS} $$ARGUMENTS \\$ARGUMENTS $ARGUMENTS_X $argument",
        "!`git status` and @src/main.py",
        "{{ x }} {% if %} {# no #} {{{{",
        "$2 alone",
        "$",
        "unclosed ` $x",
    ],
)
def test_what_is_no_argument_stays_as_written(text: str) -> None:
    draft = command(text)
    assert (draft.text, draft.template, draft.arguments) == (text, False, ())
    with_argument = command(f"$ARGUMENTS\n{text}")
    assert names(with_argument) == ["arguments"]
    assert rendered(with_argument, arguments="x") == f"x\n{text}"


def test_inline_code_has_arguments_if_the_hint_or_the_text_names_them() -> None:
    draft = command("!`gh pr view $1`", "argument-hint: '[number]'")
    assert rendered(draft, number="7") == "!`gh pr view 7`"
    assert rendered(draft) == "!`gh pr view $1`"
    assert rendered(command("Pull request $1: `gh pr view $1`"), arg1="7") == "Pull request 7: `gh pr view 7`"


def test_a_fenced_block_has_arguments_only_if_the_text_around_uses_them() -> None:
    script = "```sh\nload $1\nawk '{ print $1 }'\n```\n"
    draft = command(script, "argument-hint: '[number]'")
    assert names(draft) == ["arguments"]
    assert rendered(draft) == script
    draft = command(f"Look at $1.\n{script}", "argument-hint: '[number]'")
    assert rendered(draft, number="7") == "Look at 7.\n```sh\nload 7\nawk '{ print $1 }'\n```\n"
    assert rendered(draft) == f"Look at .\n{script}"


def test_arguments_are_replaced_in_code_too() -> None:
    assert (
        rendered(command("```\ngh issue view $ARGUMENTS\n```"), arguments="7") == "```\ngh issue view 7\n```"
    )


def test_a_hint_without_a_placeholder_adds_the_arguments_at_the_end() -> None:
    draft = command("Review the {{ code }}.\n", "argument-hint: '[path]'")
    assert draft.arguments == (Argument(name="arguments", description="[path]"),)
    assert rendered(draft, arguments="src") == "Review the {{ code }}.\n\nARGUMENTS: src"
    assert rendered(draft) == "Review the {{ code }}.\n"
    draft = command("Review.", "arguments: [path, depth]")
    assert rendered(draft, depth="2") == "Review.\n\nARGUMENTS:\ndepth: 2"


def test_a_command_without_arguments_is_verbatim() -> None:
    draft = command("Run {{ it }}.\r\n", "allowed-tools: Bash(git add:*), Read")
    assert (draft.text, draft.template) == ("Run {{ it }}.\r\n", False)


def test_a_hint_that_is_not_yaml_is_understood() -> None:
    reading = read("claude-command", "commands/c.md", "---\nargument-hint: [a] [b]\n---\n$1 $2")
    assert names(reading.prompts[0]) == ["a", "b"]
    assert [(problem.level, problem.line) for problem in reading.problems] == [("warning", 2)]


@given(st.text(st.sampled_from("{}%#$A`~ \n\r\\-")), st.text(st.sampled_from("{}%#- \n\r\\'\"")))
def test_text_around_arguments_comes_out_as_written(before: str, after: str) -> None:
    draft = read("claude-command", "commands/c.md", f"x{before} $ARGUMENTS{after}").prompts[0]
    assert rendered(draft, arguments="{{ y }}") == f"x{before} {{{{ y }}}}{after}"
