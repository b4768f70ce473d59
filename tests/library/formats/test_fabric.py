"""The Fabric pattern format."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.domain.prompts import Argument
from dittybag.library.formats.format_readers import read
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from tests.library.formats.parse_helpers import argument_names, parse_one, render


def pattern(text: str) -> ParsedPrompt:
    return parse_one("fabric", "data/patterns/sum/system.md", text)


def test_a_pattern_takes_an_input() -> None:
    parsed = pattern("# IDENTITY and PURPOSE\n\nYou sum {% up %}.\n\n# INPUT:\n")
    assert parsed.key == "sum"
    assert parsed.description == "You sum {% up %}."
    assert parsed.arguments == (Argument(name="input", description="The text to apply the pattern to"),)
    assert render(parsed) == "# IDENTITY and PURPOSE\n\nYou sum {% up %}.\n\n# INPUT:\n"


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n\r\n"])
def test_the_input_is_appended_after_a_blank_line(end: str) -> None:
    expected = "INPUT:" + (end if end == "\r\n\r\n" else "\n\n") + "text"
    assert render(pattern(f"INPUT:{end}"), input="text") == expected


def test_the_input_replaces_its_placeholder() -> None:
    assert render(pattern("Sum up {{input}} now"), input="this") == "Sum up this now"


def test_variables_are_optional_arguments() -> None:
    parsed = pattern(
        "In {{lang_code}}, {{ lang_code }} and {{range}}: {{plugin:text:upper x}} {{{a}}} {{#if}}"
    )
    assert argument_names(parsed) == ["input", "lang_code", "range_", "a"]
    assert (
        render(parsed, lang_code="de", range_="r", a="A")
        == "In de, de and r: {{plugin:text:upper x}} {A} {{#if}}"
    )


def test_a_pattern_with_only_a_heading_is_described_by_it() -> None:
    assert pattern("# Sum up\n").description == "Sum up"


def test_variables_beyond_the_limit_are_kept_as_text() -> None:
    parsed_file = read("fabric", "p/system.md", "".join(f"{{{{a{n}}}}}" for n in range(60)))
    assert len(parsed_file.prompts[0].arguments) == 50
    assert render(parsed_file.prompts[0]) == "".join(f"{{{{a{n}}}}}" for n in range(49, 60))
    assert [problem.level for problem in parsed_file.problems] == ["warning"]


@given(st.text(st.sampled_from("{}%#:- a\n\r\\'\"")))
def test_everything_else_is_kept_verbatim(text: str) -> None:
    text = f"x{text}".replace("{{a", "{{:a").replace("{{ ", "{{: ")
    parsed = read("fabric", "p/system.md", text).prompts[0]
    if argument_names(parsed) == ["input"]:
        assert render(parsed) == text
