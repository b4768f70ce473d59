"""The Claude Code command format."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.domain.prompts import Argument
from dittybag.library.formats.format_readers import read
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from tests.library.formats.parse_helpers import argument_names, parse_one, render


def command(body: str, front: str = "") -> ParsedPrompt:
    return parse_one("claude-command", "commands/c.md", f"---\n{front}\n---\n{body}" if front else body)


def test_all_arguments_are_one_text() -> None:
    parsed = command("Fix issue $ARGUMENTS.\n", 'description: Fix\nargument-hint: "[issue]"')
    assert parsed == ParsedPrompt(
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
    assert argument_names(command(body, front)) == expected


def test_dollar_zero_is_the_first_argument_if_it_is_used() -> None:
    assert render(command("$0, $1"), arg1="a", arg2="b") == "a, b"
    assert render(command("$1, $2"), arg1="a", arg2="b") == "a, b"
    assert render(command("$ARGUMENTS[1], $1"), arg1="a", arg2="b") == "b, a"


def test_declared_arguments_keep_their_descriptions_and_defaults() -> None:
    parsed = command(
        "Fix $issue", "arguments:\n  - {name: issue, description: Which, required: true, default: 7}"
    )
    assert parsed.arguments == (Argument(name="issue", description="Which"),)
    assert render(parsed) == "Fix 7"


def test_declared_names_take_precedence_over_the_hint() -> None:
    parsed = command("$issue $1 $ARGUMENTS[1]", "arguments: [issue, branch]\nargument-hint: '[x] [y]'")
    assert render(parsed, issue="7", branch="main") == "7 7 main"


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
def test_other_dollar_signs_are_kept_verbatim(text: str) -> None:
    parsed = command(text)
    assert (parsed.text, parsed.template, parsed.arguments) == (text, False, ())
    with_argument = command(f"$ARGUMENTS\n{text}")
    assert argument_names(with_argument) == ["arguments"]
    assert render(with_argument, arguments="x") == f"x\n{text}"


def test_inline_code_has_arguments_if_the_hint_or_the_text_names_them() -> None:
    parsed = command("!`gh pr view $1`", "argument-hint: '[number]'")
    assert render(parsed, number="7") == "!`gh pr view 7`"
    assert render(parsed) == "!`gh pr view $1`"
    assert render(command("Pull request $1: `gh pr view $1`"), arg1="7") == "Pull request 7: `gh pr view 7`"


def test_a_fenced_block_has_arguments_only_if_the_text_uses_them() -> None:
    script = "```sh\nload $1\nawk '{ print $1 }'\n```\n"
    parsed = command(script, "argument-hint: '[number]'")
    assert argument_names(parsed) == ["arguments"]
    assert render(parsed) == script
    parsed = command(f"Look at $1.\n{script}", "argument-hint: '[number]'")
    assert render(parsed, number="7") == "Look at 7.\n```sh\nload 7\nawk '{ print $1 }'\n```\n"
    assert render(parsed) == f"Look at .\n{script}"


def test_arguments_are_replaced_in_code_too() -> None:
    assert render(command("```\ngh issue view $ARGUMENTS\n```"), arguments="7") == "```\ngh issue view 7\n```"


def test_a_hint_without_placeholders_appends_the_arguments() -> None:
    parsed = command("Review the {{ code }}.\n", "argument-hint: '[path]'")
    assert parsed.arguments == (Argument(name="arguments", description="[path]"),)
    assert render(parsed, arguments="src") == "Review the {{ code }}.\n\nARGUMENTS: src"
    assert render(parsed) == "Review the {{ code }}.\n"
    parsed = command("Review.", "arguments: [path, depth]")
    assert render(parsed, depth="2") == "Review.\n\nARGUMENTS:\ndepth: 2"


def test_a_command_without_arguments_is_verbatim() -> None:
    parsed = command("Run {{ it }}.\r\n", "allowed-tools: Bash(git add:*), Read")
    assert (parsed.text, parsed.template) == ("Run {{ it }}.\r\n", False)


def test_a_hint_that_is_not_valid_yaml_is_parsed() -> None:
    parsed_file = read("claude-command", "commands/c.md", "---\nargument-hint: [a] [b]\n---\n$1 $2")
    assert argument_names(parsed_file.prompts[0]) == ["a", "b"]
    assert [(problem.level, problem.line) for problem in parsed_file.problems] == [("warning", 2)]


@given(st.text(st.sampled_from("{}%#$A`~ \n\r\\-")), st.text(st.sampled_from("{}%#- \n\r\\'\"")))
def test_text_around_arguments_is_rendered_verbatim(before: str, after: str) -> None:
    parsed = read("claude-command", "commands/c.md", f"x{before} $ARGUMENTS{after}").prompts[0]
    assert render(parsed, arguments="{{ y }}") == f"x{before} {{{{ y }}}}{after}"
