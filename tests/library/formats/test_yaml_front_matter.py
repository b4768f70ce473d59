"""Front matter, including invalid YAML."""

from __future__ import annotations

import pytest

from dittybag.library.formats.format_readers import read
from tests.library.formats.parse_helpers import argument_names, parse_one, problems_of


@pytest.mark.parametrize(
    ("content", "text", "lines"),
    [
        ("---\ntitle: x\n---\nbody", "body", 3),
        ("\ufeff---\ntitle: x\n---\nbody", "body", 3),
        ("---\r\ntitle: x\r\n---\r\nbody\r\nmore", "body\r\nmore", 3),
        ("---  \ntitle: x\n---\t\nbody", "body", 3),
        ("---\n---\nbody", "body", 2),
        ("---\n# only a comment\n---\nbody", "body", 3),
        ("---\ntitle: x\n---\n\n\n body \n\n", "\n\n body \n\n", 3),
        ("---\ntitle: x\n---\n---\nbody", "---\nbody", 3),
    ],
)
def test_the_body_starts_after_the_front_matter(content: str, text: str, lines: int) -> None:
    parsed = parse_one("markdown", "a.md", content)
    assert (parsed.text, parsed.lines_before) == (text, lines)


@pytest.mark.parametrize(
    "content",
    [
        "---\ntitle: x\nnever closed",
        "---\nA rule, some text\n---\nand more",
        "---\n- a\n- list\n---\nbody",
        "----\ntitle: x\n----\nbody",
        " ---\ntitle: x\n---\nbody",
        "text\n---\ntitle: x\n---\n",
        "---\n[unclosed\n---\nbody",
    ],
)
def test_text_that_only_looks_like_front_matter_is_text(content: str) -> None:
    parsed = parse_one("markdown", "a.md", content)
    assert (parsed.text, parsed.title, parsed.lines_before) == (content, None, 0)


@pytest.mark.parametrize(
    ("front", "line", "description"),
    [
        ("description: Foo: bar", 2, "Foo: bar"),
        ("title: x\ndescription: Use when: a, b\nmodel: y", 3, "Use when: a, b"),
        ("description: 'it's here'", 2, "it's here"),
        ("description: [a] [b]", 2, "[a] [b]"),
        ("description: *bold* text", 2, "*bold* text"),
        ("description: @someone", 2, "@someone"),
        ("description: &anchor text", 2, "&anchor text"),
        ("description: {{NAME}}", 2, "{{NAME}}"),
        ("description: long: text\n  goes on", 2, "long: text goes on"),
        ("description: tab\n\tfollows: x", 3, "tab follows: x"),
    ],
)
def test_front_matter_that_is_not_yaml_is_read_line_by_line(front: str, line: int, description: str) -> None:
    parsed_file = read("markdown", "a.md", f"---\n{front}\n---\nbody")
    assert parsed_file.prompts[0].description == description
    assert parsed_file.prompts[0].text == "body"
    (problem,) = parsed_file.problems
    assert (problem.level, problem.line) == ("warning", line)
    assert problem.message.startswith("The front matter is not valid YAML (")


def test_one_invalid_field_does_not_affect_the_others() -> None:
    content = "---\ndescription: Foo: bar\narguments:\n  - name: who\n    required: true\n---\n{{ who }}"
    assert argument_names(read("markdown", "a.md", content).prompts[0]) == ["who!"]


def test_yaml_aliases_are_refused() -> None:
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
    content = f"---\na0: &a0 [x]\n{levels}arguments: *a8\n---\nbody"
    parsed_file = read("markdown", "a.md", content)
    assert [argument.name for argument in parsed_file.prompts[0].arguments] == []
    assert "anchors and aliases" in parsed_file.problems[0].message
    assert parsed_file.problems[0].line == 2


@pytest.mark.parametrize(
    "front",
    [
        "a: " + "[" * 30000 + "]" * 30000,
        "a: " + "{b: " * 5000 + "}" * 5000,
        "".join(" " * n + "a:\n" for n in range(200)),
        "? [a, b]\n: c\ntitle: x",
        "? " + " " * 30000 + "x\n: c",
        "title: \x01x",
        "title: x\n--- \nb: c",
        "title: !!python/object/apply:os.system [ls]",
        "<<: {title: x}",
        "title: " + "x" * 60000,
        "x" * 60000 + ": y",
        "arguments: " + "[" + "a, " * 20000 + "]",
        "arguments:\n" + "  - {name: 'a-b'}\n" * 3000,
        "argument-hint: " + "[a" * 20000,
    ],
)
@pytest.mark.parametrize("format", ["markdown", "claude-command", "skill", "prompty"])
def test_unusual_front_matter_does_not_raise(format: str, front: str) -> None:
    parsed_file = read(format, "x/a.md", f"---\n{front}\n---\nbody $1 {{{{x}}}}")
    assert len(parsed_file.prompts) == 1
    assert len(parsed_file.prompts[0].arguments) <= 50


def test_a_problem_has_the_line_of_the_file() -> None:
    assert problems_of("markdown", "a.md", "---\ntitle: x\nb: \x02\n---\nbody")[0][1] == 3
