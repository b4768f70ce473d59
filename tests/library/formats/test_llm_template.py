"""Templates of the `llm` command."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.domain.prompts import Argument
from dittybag.library.formats import ParsedFile, ParsedPrompt, read
from tests.library.formats.rendering import names, only, rendered, told


def test_a_template_has_a_system_text_and_a_prompt() -> None:
    content = (
        "model: x\nsystem: |\n  You are $role {{ x }}\nprompt: |\n  ${verb}: $input for $$5\n"
        "defaults:\n  role: terse\n"
    )
    draft = only("llm-template", "sum.yaml", content)
    assert draft == ParsedPrompt(
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
    assert rendered(draft, verb="Sum", input="it") == "You are terse {{ x }}\n\nSum: it for $5\n"


@pytest.mark.parametrize("content", ["system: You sum up\n", "prompt: You sum up\n"])
def test_a_template_without_a_place_for_the_input_gets_it_at_the_end(content: str) -> None:
    draft = only("llm-template", "sum.yaml", content)
    assert names(draft) == ["input"]
    assert rendered(draft) == "You sum up"
    assert rendered(draft, input="this") == "You sum up\n\nthis"


def test_names_that_mean_something_else_are_changed() -> None:
    draft = only("llm-template", "a.yml", "prompt: $range of $input")
    assert rendered(draft, range_="7", input="x") == "7 of x"


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
def test_what_is_no_template_is_left_alone_with_a_reason(
    content: str, level: str, line: int | None, message: str
) -> None:
    reading = read("llm-template", "a.yaml", content)
    assert reading.prompts == ()
    (problem,) = reading.problems
    assert (problem.level, problem.line) == (level, line)
    assert message in problem.message


def test_a_dollar_sign_alone_is_a_warning() -> None:
    assert told("llm-template", "a.yaml", "model: x\nprompt: $5 or $ for $input $") == [
        ("warning", 2, "A '$' is not followed by a name; write '$$' for a dollar sign")
    ]
    draft = read("llm-template", "a.yaml", "prompt: $5 or $ for $input $").prompts[0]
    assert rendered(draft, input="x") == "$5 or $ for x $"


def test_the_input_has_no_default() -> None:
    assert names(only("llm-template", "a.yaml", "prompt: $input\ndefaults: {input: x}")) == ["input!"]


def test_defaults_are_a_mapping() -> None:
    assert told("llm-template", "a.yaml", "prompt: $a\ndefaults: 3") == [
        ("warning", 2, "'defaults' must be a mapping from names to values")
    ]
    assert told("llm-template", "a.yaml", "prompt: $a\ndefaults:\n  a:") == [
        ("warning", 3, "The default of 'a' has no value")
    ]


def test_an_empty_file_is_no_template() -> None:
    assert read("llm-template", "a.yaml", "\n") != ParsedFile()


@given(st.text(st.sampled_from('${}%#ab_ \n"\\'), min_size=1))
def test_it_renders_as_python_does(text: str) -> None:
    template = string.Template(f"x {text}")
    try:
        expected = template.substitute(
            dict.fromkeys(template.get_identifiers(), "<v>") if template.is_valid() else {}
        )
    except (ValueError, KeyError):
        return
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    draft = only("llm-template", "a.yaml", f'prompt: "x {quoted}"')
    values = {name: "<v>" for name in names(draft) if name.endswith("!")}
    assert rendered(draft, **{name[:-1]: value for name, value in values.items()}) == expected
