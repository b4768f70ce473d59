"""Fabric's patterns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.domain.prompts import Argument
from dittybag.library.formats import ParsedPrompt, read
from tests.library.formats.rendering import names, only, rendered


def pattern(text: str) -> ParsedPrompt:
    return only("fabric", "data/patterns/sum/system.md", text)


def test_a_pattern_takes_an_input() -> None:
    draft = pattern("# IDENTITY and PURPOSE\n\nYou sum {% up %}.\n\n# INPUT:\n")
    assert draft.key == "sum"
    assert draft.description == "You sum {% up %}."
    assert draft.arguments == (Argument(name="input", description="The text to apply the pattern to"),)
    assert rendered(draft) == "# IDENTITY and PURPOSE\n\nYou sum {% up %}.\n\n# INPUT:\n"


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n\r\n"])
def test_there_is_a_blank_line_before_the_input(end: str) -> None:
    expected = "INPUT:" + (end if end == "\r\n\r\n" else "\n\n") + "text"
    assert rendered(pattern(f"INPUT:{end}"), input="text") == expected


def test_the_input_may_have_its_place() -> None:
    assert rendered(pattern("Sum up {{input}} now"), input="this") == "Sum up this now"


def test_variables_are_optional_arguments() -> None:
    draft = pattern(
        "In {{lang_code}}, {{ lang_code }} and {{range}}: {{plugin:text:upper x}} {{{a}}} {{#if}}"
    )
    assert names(draft) == ["input", "lang_code", "range_", "a"]
    assert (
        rendered(draft, lang_code="de", range_="r", a="A")
        == "In de, de and r: {{plugin:text:upper x}} {A} {{#if}}"
    )


def test_a_pattern_with_only_a_heading_is_described_by_it() -> None:
    assert pattern("# Sum up\n").description == "Sum up"


def test_too_many_variables_come_out_as_they_are_written() -> None:
    reading = read("fabric", "p/system.md", "".join(f"{{{{a{n}}}}}" for n in range(60)))
    assert len(reading.prompts[0].arguments) == 50
    assert rendered(reading.prompts[0]) == "".join(f"{{{{a{n}}}}}" for n in range(49, 60))
    assert [problem.level for problem in reading.problems] == ["warning"]


@given(st.text(st.sampled_from("{}%#:- a\n\r\\'\"")))
def test_everything_else_comes_out_as_written(text: str) -> None:
    text = f"x{text}".replace("{{a", "{{:a").replace("{{ ", "{{: ")
    draft = read("fabric", "p/system.md", text).prompts[0]
    if names(draft) == ["input"]:
        assert rendered(draft) == text
