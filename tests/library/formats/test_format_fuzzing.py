"""No content of a file makes a parser fail."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.library.formats.argument_declarations import is_usable_name
from dittybag.library.formats.escaping import escape, string_literal
from dittybag.library.formats.format_readers import FORMATS, read
from dittybag.library.formats.parsed_prompt import ParsedFile
from tests.library.formats.parse_helpers import ENVIRONMENT

FILES = {
    "twig": "twig.toml",
    "markdown": "a.md",
    "claude-command": "commands/a.md",
    "skill": "a/SKILL.md",
    "fabric": "a/system.md",
    "prompty": "a.prompty",
    "llm-template": "a.yaml",
}
#: Fragments of the formats, so that random texts are nearly valid.
PIECES = st.sampled_from(
    [
        *(
            "---",
            "\n",
            "\r\n",
            " ",
            "  ",
            "\t",
            ":",
            ": ",
            "- ",
            "[",
            "]",
            "{",
            "}",
            "{{",
            "}}",
            "{%",
            "%}",
            "{#",
        ),
        *(
            "#}",
            "&a",
            "*a",
            "|",
            ">",
            "?",
            "!",
            "'",
            '"',
            "\\",
            "`",
            "```",
            "~",
            "$",
            "$1",
            "$0",
            "$ARGUMENTS",
        ),
        *(
            "$ARGUMENTS[0]",
            "$input",
            "${x}",
            "$$",
            "@a",
        ),
        *(
            "../",
            "=",
            ",",
            ".",
            "x",
            "name",
            "title",
            "description",
            "arguments",
            "argument-hint",
            "required",
        ),
        *(
            "default",
            "input",
            "inputs",
            "sample",
            "template",
            "mustache",
            "prompt",
            "system",
            "true",
        ),
        *(
            "[prompts.a]",
            "[[prompts.a.arguments]]",
            "prompts",
        ),
        *(
            "\ufeff",
            "\0",
            "\x85",
            "\u2028",
            "é",
            "名",
            "\U0001f600",
            "1",
            "-}}",
            "{{-",
        ),
    ]
)
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(PIECES, max_size=40).map("".join),
    st.lists(PIECES, max_size=30).map(
        lambda pieces: f"---\n{''.join(pieces)}\n---\nbody {''.join(pieces[:5])}"
    ),
)


@pytest.mark.parametrize("format", FORMATS)
@given(content=TEXTS)
def test_any_text_is_parsed(format: str, content: str) -> None:
    parsed_file = read(format, FILES[format], content)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(parsed_file), type=ParsedFile) == parsed_file
    assert parsed_file.prompts or parsed_file.problems or format == "twig"
    for problem in parsed_file.problems:
        assert problem.file == FILES[format]
        assert problem.line is None or 1 <= problem.line <= content.count("\n") + 1
    for parsed in parsed_file.prompts:
        assert 0 < len(parsed.key) <= 200
        arguments = [argument.name for argument in parsed.arguments]
        assert len(arguments) == len(set(arguments)) <= 50
        assert set(parsed.defaults) <= {
            argument.name for argument in parsed.arguments if not argument.required
        }
        assert format == "twig" or all(map(is_usable_name, arguments))
        for line in (
            parsed.title,
            parsed.description,
            *(argument.description for argument in parsed.arguments),
        ):
            assert line is None or (line.strip() and len(line) <= 4000 and line.splitlines() == [line])
        if parsed.template and format not in ("twig", "markdown", "prompty") and "{{" not in content.lower():
            assert parsed.text is not None
            ENVIRONMENT.render_str(parsed.text)


@pytest.mark.parametrize("format", ["claude-command", "skill", "fabric", "llm-template"])
@given(pieces=st.lists(PIECES, max_size=40))
def test_a_translated_text_is_a_template(format: str, pieces: list[str]) -> None:
    body = "".join(pieces)
    content = f"prompt: |\n {body.replace(chr(10), ' ')}" if format == "llm-template" else f"x {body}"
    for parsed in read(format, FILES[format], content).prompts:
        if parsed.template:
            assert parsed.text is not None
            ENVIRONMENT.render_str(parsed.text)


@given(st.text(st.sampled_from("{}%#-+ x\n\r\t\\'\"~")) | st.text())
def test_escaped_text_is_rendered_verbatim(text: str) -> None:
    assert ENVIRONMENT.render_str(escape(text)) == text
    assert ENVIRONMENT.render_str(f"{{{{ x }}}}{escape(text)}{{{{ x }}}}", x="") == text
    assert ENVIRONMENT.render_str(f"{escape(text)}{{% if x %}}y{{% endif %}}", x="") == text
    assert ENVIRONMENT.render_str(f"{{{{ {string_literal(text)} }}}}") == text


@pytest.mark.parametrize("format", ["markdown", "skill"])
@given(text=st.text(min_size=1).filter(lambda text: text.strip()))
def test_a_text_without_declared_arguments_is_used_verbatim(format: str, text: str) -> None:
    text = text.replace("$ARGUMENTS", "").replace("---", "").removeprefix("\ufeff") + "."
    (parsed,) = read(format, FILES[format], text).prompts
    assert (parsed.text, parsed.template) == (text, False)


def test_an_unknown_format_is_an_error() -> None:
    (problem,) = read("docx", "a.docx", "text").problems
    assert problem.message == "Unknown format 'docx'"


@pytest.mark.parametrize("file", ["", "/", ".md", "x" * 300 + ".md", "a\x00.md", "a\ud800.md"])
@pytest.mark.parametrize("format", sorted(set(FORMATS) - {"twig", "skill"}))
def test_a_path_without_a_valid_key_is_an_error(format: str, file: str) -> None:
    parsed_file = read(
        format, file if format != "fabric" else f"{file.removesuffix('.md')}/system.md", "prompt: text"
    )
    assert parsed_file.prompts == () or file == ".md"
    assert [problem.level for problem in parsed_file.problems] == ["error"] or file == ".md"
