"""Nothing that a file can hold breaks a reader."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.library.formats import FORMATS, ParsedFile, read
from dittybag.library.formats.argument_declarations import is_usable_name
from dittybag.library.formats.escaping import escape, string_literal
from tests.library.formats.rendering import ENVIRONMENT

FILES = {
    "twig": "twig.toml",
    "markdown": "a.md",
    "claude-command": "commands/a.md",
    "skill": "a/SKILL.md",
    "fabric": "a/system.md",
    "dotprompt": "a.prompt",
    "prompty": "a.prompty",
    "llm-template": "a.yaml",
}
#: What the formats are made of, so that chance puts together texts that nearly are something.
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
            "@index",
            "#if x",
            "/if",
            "else",
            "#each x",
            "/each",
            "this",
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
            "schema",
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
            "role",
            '"system"',
            "history",
            "json",
            "media url=",
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
            "~}}",
            "{{~",
            "{{{",
            "}}}",
            "{{!",
            "--}}",
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
def test_any_text_is_read(format: str, content: str) -> None:
    reading = read(format, FILES[format], content)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(reading), type=ParsedFile) == reading
    assert reading.prompts or reading.problems or format == "twig"
    for problem in reading.problems:
        assert problem.file == FILES[format]
        assert problem.line is None or 1 <= problem.line <= content.count("\n") + 1
    for draft in reading.prompts:
        assert 0 < len(draft.key) <= 200
        arguments = [argument.name for argument in draft.arguments]
        assert len(arguments) == len(set(arguments)) <= 50
        assert set(draft.defaults) <= {argument.name for argument in draft.arguments if not argument.required}
        assert format == "twig" or all(map(is_usable_name, arguments))
        for line in (draft.title, draft.description, *(argument.description for argument in draft.arguments)):
            assert line is None or (line.strip() and len(line) <= 4000 and line.splitlines() == [line])
        if draft.template and format not in ("twig", "markdown", "prompty") and "{{" not in content.lower():
            assert draft.text is not None
            ENVIRONMENT.render_str(draft.text)


@pytest.mark.parametrize("format", ["claude-command", "skill", "fabric", "dotprompt", "llm-template"])
@given(pieces=st.lists(PIECES, max_size=40))
def test_what_is_translated_is_a_template(format: str, pieces: list[str]) -> None:
    body = "".join(pieces)
    content = f"prompt: |\n {body.replace(chr(10), ' ')}" if format == "llm-template" else f"x {body}"
    for draft in read(format, FILES[format], content).prompts:
        if draft.template:
            assert draft.text is not None
            ENVIRONMENT.render_str(draft.text)


@given(st.text(st.sampled_from("{}%#-+ x\n\r\t\\'\"~")) | st.text())
def test_a_literal_comes_out_as_written(text: str) -> None:
    assert ENVIRONMENT.render_str(escape(text)) == text
    assert ENVIRONMENT.render_str(f"{{{{ x }}}}{escape(text)}{{{{ x }}}}", x="") == text
    assert ENVIRONMENT.render_str(f"{escape(text)}{{% if x %}}y{{% endif %}}", x="") == text
    assert ENVIRONMENT.render_str(f"{{{{ {string_literal(text)} }}}}") == text


@pytest.mark.parametrize("format", ["markdown", "skill"])
@given(text=st.text(min_size=1).filter(lambda text: text.strip()))
def test_a_text_that_declares_nothing_comes_out_as_written(format: str, text: str) -> None:
    text = text.replace("$ARGUMENTS", "").replace("---", "").removeprefix("\ufeff") + "."
    (draft,) = read(format, FILES[format], text).prompts
    assert (draft.text, draft.template) == (text, False)


def test_an_unknown_format_is_an_error() -> None:
    (problem,) = read("docx", "a.docx", "text").problems
    assert problem.message == "Unknown format 'docx'"


@pytest.mark.parametrize("file", ["", "/", ".md", "x" * 300 + ".md", "a\x00.md", "a\ud800.md"])
@pytest.mark.parametrize("format", sorted(set(FORMATS) - {"twig", "skill"}))
def test_a_path_that_makes_no_name_is_an_error(format: str, file: str) -> None:
    reading = read(
        format, file if format != "fabric" else f"{file.removesuffix('.md')}/system.md", "prompt: text"
    )
    assert reading.prompts == () or file == ".md"
    assert [problem.level for problem in reading.problems] == ["error"] or file == ".md"
