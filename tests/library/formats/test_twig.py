"""The `twig.toml` format."""

from __future__ import annotations

import pytest

from dittybag.domain.prompts import Argument
from dittybag.library.formats.format_readers import read
from dittybag.library.formats.parsed_prompt import ParsedFile, ParsedPrompt
from tests.library.formats.parse_helpers import problems_of

LIBRARY = """\
# A library
[library]
name = "anything"

[prompts.code_review]
description = "Review code"

[[prompts.code_review.arguments]]
name = "code_snippet"
description = "Code to review"
required = true

[[prompts.code_review.arguments]]
name = "language"

[prompts."two words"]
"""


def test_a_library_lists_its_prompts() -> None:
    assert read("twig", "twig.toml", LIBRARY) == ParsedFile(
        prompts=(
            ParsedPrompt(
                key="code_review",
                description="Review code",
                arguments=(
                    Argument(name="code_snippet", description="Code to review", required=True),
                    Argument(name="language"),
                ),
                template=True,
                file="prompts/code_review.md",
            ),
            ParsedPrompt(key="two words", template=True, file="prompts/two words.md"),
        )
    )


@pytest.mark.parametrize("content", ["title = 1\n", "[prompts]\n", "\ufeff[prompts]\r\n"])
def test_a_library_may_have_no_prompts(content: str) -> None:
    assert read("twig", "twig.toml", content) == ParsedFile()


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("[prompts.a]\ndescription = \n", 2, "Not valid TOML: "),
        ("[prompts.a]\nx = 1\nx = 2\n", 3, "Not valid TOML: duplicate key"),
        ("prompts = 3", None, "'prompts' must be a table"),
        ("[[prompts]]", None, "'prompts' must be a table"),
        ("a = " + "[" * 5000, 1, "Not valid TOML: "),
    ],
)
def test_an_invalid_manifest_has_one_error(content: str, line: int | None, message: str) -> None:
    ((level, at, text),) = problems_of("twig", "twig.toml", content)
    assert (level, at) == ("error", line)
    assert text.startswith(message)
    assert " at line " not in text
    assert read("twig", "twig.toml", content).prompts == ()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[prompts.bad]\ndescription = 3", "Prompt 'bad': 'description' must be text"),
        ("[prompts.bad]\narguments = 3", "Prompt 'bad': 'arguments' must be tables"),
        ("[prompts.bad]\narguments = ['x']", "Prompt 'bad': 'arguments' must be tables"),
        ("[[prompts.bad.arguments]]\nrequired = true", "Prompt 'bad': argument 1 has no 'name'"),
        ("[[prompts.bad.arguments]]\nname = ' '", "Prompt 'bad': argument 1 has no 'name'"),
        ("[[prompts.bad.arguments]]\nname = 3", "Prompt 'bad': argument 1 has no 'name'"),
        (
            "[[prompts.bad.arguments]]\nname = 'x'\nrequired = 'yes'",
            "Prompt 'bad': argument 'x': 'required' must be true or false",
        ),
        (
            "[[prompts.bad.arguments]]\nname = 'x'\ndescription = []",
            "Prompt 'bad': argument 'x': 'description' must be text",
        ),
        (
            "[[prompts.bad.arguments]]\nname = 'x'\n[[prompts.bad.arguments]]\nname = 'x'",
            "Prompt 'bad': argument 'x' is declared twice",
        ),
        ("[prompts.'../bad']", "Prompt '../bad': its name must be a valid file name"),
        ("[prompts.'.bad']", "Prompt '.bad': its name must be"),
        ("[prompts.'a:b']", "Prompt 'a:b': its name must be"),
        ("[prompts.'a\\b']", "Prompt 'a\\b': its name must be"),
        ('[prompts."a\\u0000b"]', "Prompt 'a\0b': its name must be"),
        ('[prompts."a\\nb"]', "Prompt 'a\nb': its name must be"),
        ("[prompts.'']", "Prompt '': its name must be"),
        (f"[prompts.{'x' * 201}]", f"Prompt '{'x' * 60}...': its name must be"),
    ],
)
def test_an_invalid_prompt_is_skipped_without_affecting_the_others(table: str, message: str) -> None:
    content = f"[prompts.good]\n\n# the next is wrong\n{table}\n\n[prompts.other]\n"
    parsed_file = read("twig", "twig.toml", content)
    assert [parsed.key for parsed in parsed_file.prompts] == ["good", "other"]
    (problem,) = parsed_file.problems
    assert (problem.level, problem.line, problem.file) == ("error", 4, "twig.toml")
    assert problem.message.startswith(message)


def test_too_many_arguments_are_an_error() -> None:
    listed = "".join(f"[[prompts.a.arguments]]\nname = 'x{number}'\n" for number in range(51))
    ((level, line, message),) = problems_of("twig", "twig.toml", listed)
    assert (level, line) == ("error", 1)
    assert "51 arguments" in message


@pytest.mark.parametrize("name", ["issue-number", "2nd", "not", "x" * 101])
def test_an_argument_with_an_unusable_name_is_a_warning(name: str) -> None:
    content = f"[prompts.a]\n[[prompts.a.arguments]]\nname = '{name}'\n"
    ((level, line, message),) = problems_of("twig", "twig.toml", content)
    assert (level, line) == ("warning", 1)
    assert "its name cannot be used in a template" in message
    assert read("twig", "twig.toml", content).prompts[0].arguments == (Argument(name=name),)


def test_unknown_fields_are_warned_about() -> None:
    content = (
        "[prompts.a]\ndescripton = 'x'\n[[prompts.a.arguments]]\nname = 'x'\nrequird = true\n[other]\nx = 1\n"
    )
    assert problems_of("twig", "twig.toml", content) == [
        ("warning", 1, f"Prompt 'a': {message}")
        for message in (
            "'descripton' is not a known field (typo?); known fields: arguments, description",
            "argument 'x': 'requird' is not a known field (typo?); known fields: description, name, required",
        )
    ]


def test_a_prompt_without_a_header_has_no_line() -> None:
    assert problems_of("twig", "twig.toml", "prompts = { a = { description = 1 } }") == [
        ("error", None, "Prompt 'a': 'description' must be text")
    ]


def test_a_description_is_kept_as_written_up_to_its_maximum_length() -> None:
    content = (
        '[prompts.a]\ndescription = """\nOne\n  two\t\n\\u0007three"""\n[prompts.b]\ndescription = "%s"\n'
    )
    first, second = read("twig", "twig.toml", content % ("x" * 5000)).prompts
    assert first.description == "One\n  two\t\n\x07three"
    assert second.description == "x" * 4000


def test_at_most_a_hundred_problems_are_reported() -> None:
    content = "".join(f"[prompts.a{number}]\ndescription = 1\n" for number in range(150))
    problems = read("twig", "twig.toml", content).problems
    assert len(problems) == 101
    assert problems[-1].message == "And 50 more problems"
    assert problems[-1].level == "error"
