"""The template format of the `llm` command."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.domain.prompts import Argument
from dittybag.library.formats.format_readers import read
from dittybag.library.formats.parsed_prompt import ParsedFile, ParsedPrompt
from tests.library.formats.parse_helpers import argument_names, parse_one, problems_of, render


def test_a_template_has_a_system_text_and_a_prompt() -> None:
    content = (
        "model: x\nsystem: |\n  You are $role {{ x }}\nprompt: |\n  ${verb}: $input for $$5\n"
        "defaults:\n  role: terse\n"
    )
    parsed = parse_one("llm-template", "sum.yaml", content)
    assert parsed == ParsedPrompt(
        key="sum",
        description="You are $role {{ x }}",
        arguments=(
            Argument(name="role"),
            Argument(name="verb", required=True),
            Argument(name="input", required=True),
        ),
        defaults={"role": "terse"},
        text='You are {{ role }} {{ "{" }}{ x }}\n\n{{ verb }}: {{ input }} for $5\n',
        template=True,
        file="sum.yaml",
    )
    assert render(parsed, verb="Sum", input="it") == "You are terse {{ x }}\n\nSum: it for $5\n"


@pytest.mark.parametrize("content", ["system: You sum up\n", "prompt: You sum up\n"])
def test_a_template_without_input_gets_it_at_the_end(content: str) -> None:
    parsed = parse_one("llm-template", "sum.yaml", content)
    assert argument_names(parsed) == ["input"]
    assert render(parsed) == "You sum up"
    assert render(parsed, input="this") == "You sum up\n\nthis"


def test_reserved_names_are_changed() -> None:
    parsed = parse_one("llm-template", "a.yml", "prompt: $range of $input")
    assert render(parsed, range_="7", input="x") == "7 of x"


@pytest.mark.parametrize(
    ("content", "level", "line", "message"),
    [
        ("services:\n  a: b\n", "warning", None, "'prompt' or 'system' is missing"),
        ("a: 1\nprompt:\n  - x\n", "warning", 3, "'prompt' or 'system' has no text"),
        ("prompt: ' '\n", "warning", 1, "has no text"),
        ("just a string", "warning", None, "not a mapping"),
        ("- a\n- b", "warning", None, "not a mapping"),
        ("# nothing\n", "warning", None, "not a mapping"),
        ("a: {{ x }}\nb: c: d\n", "warning", 1, "not valid YAML"),
        ("model: x\nprompt: a: b\n", "error", 2, "not valid YAML"),
        ("prompt: &a x\nsystem: *a\n", "error", 1, "anchors and aliases"),
        ("prompt: x\n---\nprompt: y\n", "error", 2, "more than one document"),
        ("prompt: " + "[" * 1000, "error", 1, "nested more than"),
        ("prompt: x\x01", "error", 1, "a character that YAML does not allow"),
    ],
)
def test_other_yaml_files_are_skipped_with_a_reason(
    content: str, level: str, line: int | None, message: str
) -> None:
    parsed_file = read("llm-template", "a.yaml", content)
    assert parsed_file.prompts == ()
    (problem,) = parsed_file.problems
    assert (problem.level, problem.line) == (level, line)
    assert message in problem.message


def test_a_dollar_sign_alone_is_a_warning() -> None:
    assert problems_of("llm-template", "a.yaml", "model: x\nprompt: $5 or $ for $input $") == [
        ("warning", 2, "A '$' is not followed by a name; write '$$' for a dollar sign")
    ]
    parsed = read("llm-template", "a.yaml", "prompt: $5 or $ for $input $").prompts[0]
    assert render(parsed, input="x") == "$5 or $ for x $"


def test_the_input_has_no_default() -> None:
    assert argument_names(parse_one("llm-template", "a.yaml", "prompt: $input\ndefaults: {input: x}")) == [
        "input!"
    ]


def test_defaults_are_a_mapping() -> None:
    assert problems_of("llm-template", "a.yaml", "prompt: $a\ndefaults: 3") == [
        ("warning", 2, "'defaults' must be a mapping from names to values")
    ]
    assert problems_of("llm-template", "a.yaml", "prompt: $a\ndefaults:\n  a:") == [
        ("warning", 3, "The default of 'a' has no value")
    ]


def test_an_empty_file_is_not_a_template() -> None:
    assert read("llm-template", "a.yaml", "\n") != ParsedFile()


@given(st.text(st.sampled_from('${}%#ab_ \n"\\'), min_size=1))
def test_rendering_matches_string_template(text: str) -> None:
    template = string.Template(f"x {text}")
    try:
        expected = template.substitute(
            dict.fromkeys(template.get_identifiers(), "<v>") if template.is_valid() else {}
        )
    except (ValueError, KeyError):
        return
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    parsed = parse_one("llm-template", "a.yaml", f'prompt: "x {quoted}"')
    values = {name: "<v>" for name in argument_names(parsed) if name.endswith("!")}
    assert render(parsed, **{name[:-1]: value for name, value in values.items()}) == expected
