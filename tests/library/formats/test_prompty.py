"""The Prompty format."""

from __future__ import annotations

import pytest

from dittybag.domain.prompts import Argument
from dittybag.library.formats.format_readers import read
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from tests.library.formats.parse_helpers import argument_names, parse_one, problems_of, render


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
def test_mustache_is_translated(template: str) -> None:
    content = (
        f"---\n{template}\ninputs: {{first-name: Ann}}\n---\nuser:\n{{{{first-name}}}} {{{{&b}}}} {{% x %}}"
    )
    parsed = parse_one("prompty", "a.prompty", content)
    assert argument_names(parsed) == ["first_name", "b"]
    assert render(parsed, b="<B>") == "user:\nAnn <B> {% x %}"


def test_mustache_that_cannot_be_translated_is_an_error() -> None:
    content = "---\ntemplate: mustache\n---\nuser:\n{{> part}}"
    assert read("prompty", "a.prompty", content).prompts == ()
    ((level, line, _),) = problems_of("prompty", "a.prompty", content)
    assert (level, line) == ("error", 5)


def test_an_input_with_an_unusable_name_is_ignored() -> None:
    content = "---\ninputs:\n  first-name: Ann\n---\nText"
    assert problems_of("prompty", "a.prompty", content) == [
        ("warning", 3, "Argument 'first-name' is ignored: its name cannot be used in a template")
    ]


def test_a_prompty_without_a_description_is_described_by_its_first_line() -> None:
    assert parse_one("prompty", "a.prompty", "system:\n# Be kind\n").description == "Be kind"
