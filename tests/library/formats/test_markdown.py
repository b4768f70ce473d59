"""The Markdown format."""

from __future__ import annotations

import pytest

from dittybag.domain.prompts import Argument
from dittybag.library.formats.format_detection import detect_formats
from dittybag.library.formats.format_readers import read
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from tests.library.formats.parse_helpers import (
    argument_names,
    message_sources,
    parse_one,
    problems_of,
    render,
)


def test_a_text_without_front_matter_is_used_verbatim() -> None:
    text = "# Review\n\nUse `${{ github.ref }}` and {% raw %}.\n"
    assert parse_one("markdown", "git/review.md", text) == ParsedPrompt(
        key="git.review", description="Review", text=text, file="git/review.md"
    )


def test_front_matter_describes_the_text_below_it() -> None:
    content = "---\nname: n\ntitle: A title\ndescription: What it does\ntags: [a]\n---\n\nText {{ x }}\n"
    assert parse_one("markdown", "a.md", content) == ParsedPrompt(
        key="a",
        title="A title",
        description="What it does",
        text="\nText {{ x }}\n",
        file="a.md",
        lines_before=6,
    )


@pytest.mark.parametrize("word", ["arguments", "args", "variables", "inputs", "parameters"])
def test_a_text_that_declares_arguments_is_a_template(word: str) -> None:
    parsed = parse_one("markdown", "a.md", f"---\n{word}: [who]\n---\nHello {{{{ who }}}}!")
    assert parsed.template
    assert render(parsed, who="Ann") == "Hello Ann!"


@pytest.mark.parametrize(
    ("declaration", "arguments", "defaults"),
    [
        ("[a, b]", (Argument(name="a"), Argument(name="b")), {}),
        ("a b", (Argument(name="a"), Argument(name="b")), {}),
        (
            "\n  - {name: a, description: An a, required: true}\n  - {name: b, default: 5, required: true}",
            (Argument(name="a", description="An a", required=True), Argument(name="b")),
            {"b": "5"},
        ),
        ("\n  a: An a\n  b:", (Argument(name="a", description="An a"), Argument(name="b")), {}),
        ("\n  - a: An a\n  - b", (Argument(name="a", description="An a"), Argument(name="b")), {}),
        (
            "\n  a: {description: An a, choices: [x, y, x]}\n  b: {enum: [1, true]}\n  c: {options: []}",
            (
                Argument(name="a", description="An a", choices=("x", "y")),
                Argument(name="b", choices=("1", "true")),
                Argument(name="c"),
            ),
            {},
        ),
        ("\n  a: {default: [1, {b: null}]}", (Argument(name="a"),), {"a": '["1", {"b": null}]'}),
        ('\n  a: {default: ""}', (Argument(name="a"),), {"a": ""}),
        ("\n  a: {default: null}", (Argument(name="a"),), {}),
    ],
)
def test_arguments_are_declared_in_many_ways(
    declaration: str, arguments: tuple[Argument, ...], defaults: dict[str, str]
) -> None:
    parsed = parse_one("markdown", "a.md", f"---\narguments: {declaration}\n---\nText")
    assert parsed.arguments == arguments
    assert parsed.defaults == defaults


@pytest.mark.parametrize(
    ("declaration", "line", "message"),
    [
        ("[a-b, ok]", 2, "Argument 'a-b' is ignored: its name cannot be used in a template"),
        ("[not, ok]", 2, "Argument 'not' is ignored: its name cannot be used in a template"),
        ("[ok, ok]", 2, "Argument 'ok' is declared twice; the first declaration is used"),
        ("\n  - ok\n  - {description: x, type: y}", 4, "An argument has no name; it is ignored"),
        ("\n  - ok\n  - [x]", 4, "An argument is not a name or a table with a name; it is ignored"),
        ("\n  ok: {required: perhaps}", 3, "Argument 'ok': 'required' must be true or false"),
    ],
)
def test_an_invalid_argument_is_a_warning(declaration: str, line: int, message: str) -> None:
    content = f"---\narguments: {declaration}\n---\nText"
    assert problems_of("markdown", "a.md", content) == [("warning", line, message)]
    assert argument_names(read("markdown", "a.md", content).prompts[0]) == ["ok"]


def test_arguments_beyond_the_limit_are_ignored() -> None:
    content = f"---\narguments: [{', '.join(f'a{n}' for n in range(60))}]\n---\nText"
    assert len(read("markdown", "a.md", content).prompts[0].arguments) == 50
    ((level, _, message),) = problems_of("markdown", "a.md", content)
    assert level == "warning"
    assert "at most 50" in message


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("# Heading #\n\nText", "Heading"),
        ("\n\n**Bold** line  with   room\nmore", "Bold line with room"),
        ("<!-- note -->\n---\n```\n> Quoted", "Quoted"),
        ("- item", "item"),
        ("1. step", "step"),
        ("x" * 300, "x" * 200),
        ("***\n", None),
    ],
)
def test_a_text_without_a_description_is_described_by_its_first_line(
    text: str, description: str | None
) -> None:
    assert parse_one("markdown", "a.md", text).description == description


@pytest.mark.parametrize("file", ["a.md", "commands/a.md"])
@pytest.mark.parametrize(
    "content",
    [
        "---\nargument-hint: who\n---\nHello $ARGUMENTS",
        "---\nallowed-tools: Bash\n---\nHello $ARGUMENTS",
        "Hello $ARGUMENTS",
    ],
)
def test_a_text_with_placeholders_of_commands_is_a_command(file: str, content: str) -> None:
    assert render(parse_one(detect_formats([file])[0][file], file, content), arguments="Ann") == "Hello Ann"


@pytest.mark.parametrize("file", ["a.md", "commands/a.md"])
def test_a_command_with_jinja_expressions_is_a_template(file: str) -> None:
    content = (
        "---\nallowed-tools: Bash\narguments:\n  - {name: who, required: true}\n---\nHello {{ who }}, $5"
    )
    parsed = parse_one(detect_formats([file])[0][file], file, content)
    assert argument_names(parsed) == ["who!"]
    assert render(parsed, who="Ann") == "Hello Ann, $5"


@pytest.mark.parametrize("format", ["markdown", "skill", "prompty", "claude-command"])
@pytest.mark.parametrize("content", ["", " \n", "\ufeff", "---\ntitle: x\n---\n\n"])
def test_a_file_without_text_is_not_a_prompt(format: str, content: str) -> None:
    parsed_file = read(format, "x/a.md", content)
    assert parsed_file.prompts == ()
    assert [problem.level for problem in parsed_file.problems] == ["warning"]


def test_a_title_is_a_line_of_200_characters() -> None:
    parsed = parse_one("markdown", "a.md", f"---\ntitle: |\n  a\n  {'x' * 300}\n---\nText")
    assert parsed.title == "a " + "x" * 198


def test_a_description_that_is_not_text_is_a_warning() -> None:
    content = "---\ntitle: x\ndescription: [a]\n---\nText"
    assert problems_of("markdown", "a.md", content) == [("warning", 3, "'description' must be text")]
    assert read("markdown", "a.md", content).prompts[0].description == "Text"


@pytest.mark.parametrize("front_matter", ["", "---\ntags: [a]\n---\n", "---\nargs: [x]\n---\n\n"])
def test_role_lines_begin_messages_if_the_text_begins_with_one(front_matter: str) -> None:
    text = "--role system\nBe kind.\n\n--role user\n{{ x }}\n"
    parsed = parse_one("markdown", "a.md", front_matter + text)
    assert message_sources(parsed) == [("system", "Be kind."), ("user", "{{ x }}")]
    assert parsed.description == "Be kind."
    parsed = parse_one("markdown", "a.md", f"{front_matter}Text\n{text}")
    assert parsed.roles == ()
