"""The Prompty format."""

from __future__ import annotations

import pytest

from dittybag.domain.prompts import Argument
from dittybag.domain.role_marks import RoleMark
from dittybag.library.formats.format_readers import read
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from tests.library.formats.parse_helpers import (
    argument_names,
    message_sources,
    parse_one,
    problems_of,
    render,
)


def test_a_prompty_declares_its_inputs() -> None:
    content = (
        "---\nname: Chat\ndescription: Talks\nmodel:\n  api: chat\ninputs:\n"
        "  question:\n    type: string\n    description: What to ask\n    sample: Why?\n"
        "  tone: kind\n  limit: {type: number, default: 3}\n  extra: {required: false}\n"
        "sample:\n  question: Why?\n  context: [a]\n---\nsystem:\nBe {{tone}}.\n\nuser:\n{{ question }}\n"
    )
    parsed = parse_one("prompty", "chat.prompty", content)
    assert parsed == ParsedPrompt(
        key="chat",
        title="Chat",
        description="Talks",
        arguments=(
            Argument(name="question", description="What to ask", required=True),
            Argument(name="tone"),
            Argument(name="limit"),
            Argument(name="extra"),
            Argument(name="context"),
        ),
        defaults={"tone": "kind", "limit": "3"},
        text="system:\nBe {{tone}}.\n\nuser:\n{{ question }}\n",
        template=True,
        file="chat.prompty",
        lines_before=17,
        roles=(RoleMark(0, 8, "system"), RoleMark(20, 28, "user"), RoleMark(42, 43, "user")),
    )
    assert render(parsed, question="Why?") == "system:\nBe kind.\n\nuser:\nWhy?\n"


@pytest.mark.parametrize(
    "inputs",
    [
        "inputs:\n  - name: a\n    kind: string\n    example: x\n  - name: b\n    default: 1",
        "inputSchema:\n  properties:\n    a: {kind: string}\n    b: {default: 1}",
        "inputs:\n  a:\n  b: 1",
    ],
)
def test_inputs_are_declared_in_many_ways(inputs: str) -> None:
    parsed = parse_one("prompty", "a.prompty", f"---\n{inputs}\n---\nText")
    assert argument_names(parsed) == ["a!", "b"]
    assert parsed.defaults == {"b": "1"}


@pytest.mark.parametrize(
    "template",
    ["template: mustache", "template:\n  type: mustache", "template:\n  format:\n    kind: mustache"],
)
def test_a_template_of_another_engine_is_an_error(template: str) -> None:
    content = f"---\n{template}\n---\nuser:\n{{{{a}}}}"
    assert read("prompty", "a.prompty", content).prompts == ()
    message = "Mustache templates are not read; write the template in Jinja"
    ((level, _, text),) = problems_of("prompty", "a.prompty", content)
    assert (level, text) == ("error", message)


def test_an_input_with_an_unusable_name_is_ignored() -> None:
    content = "---\ninputs:\n  first-name: Ann\n---\nText"
    assert problems_of("prompty", "a.prompty", content) == [
        ("warning", 3, "Argument 'first-name' is ignored: its name cannot be used in a template")
    ]


def test_a_prompty_without_a_description_is_described_by_its_first_line() -> None:
    assert parse_one("prompty", "a.prompty", "system:\n# Be kind\n").description == "Be kind"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Text\n", [("user", "Text\n")]),
        ("system:\nA\n\nuser:\nB\n", [("system", "A"), ("user", "B")]),
        ("\nFirst\n\nassistant:\nB", [("system", "First"), ("assistant", "B")]),
        ('# System:\r\nA\r\n  USER[name="x", y=1] : \r\n\r\n B\r\n', [("system", "A"), ("user", " B")]),
        ("developer:\nA\nuser:\n\nuser:\nB", [("system", "A"), ("user", "B")]),
        ("user:\nA\n![thread]\nB\n", [("user", "A"), ("user", "B")]),
        ("user: A\nthe user:\nusers:\n", [("user", "user: A\nthe user:\nusers:\n")]),
    ],
)
def test_a_message_begins_at_a_role_line(body: str, expected: list[tuple[str, str]]) -> None:
    assert message_sources(parse_one("prompty", "a.prompty", f"---\nname: A\n---\n{body}")) == expected


@pytest.mark.parametrize("role", ["function", "tool", "tools"])
def test_a_message_of_a_tool_is_text_with_a_warning(role: str) -> None:
    content = f"---\nname: A\n---\nuser:\nA\n{role.title()}:\nB"
    assert problems_of("prompty", "a.prompty", content) == [
        ("warning", 6, f"'{role}:' is text: MCP has no messages with this role")
    ]
    (parsed,) = read("prompty", "a.prompty", content).prompts
    assert message_sources(parsed) == [("user", f"A\n{role.title()}:\nB")]
