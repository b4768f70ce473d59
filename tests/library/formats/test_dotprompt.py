"""The dotprompt format, and the translation of Handlebars."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.domain.prompts import Argument
from dittybag.library.formats.format_readers import read
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from tests.library.formats.parse_helpers import (
    argument_names,
    message_sources,
    parse_one,
    problems_of,
    render,
)


def prompt(body: str, front: str = "model: x") -> ParsedPrompt:
    return parse_one("dotprompt", "p.prompt", f"---\n{front}\n---\n{body}")


def test_picoschema_declares_the_arguments() -> None:
    front = (
        "description: Greets\ninput:\n  schema:\n    location: string, where it is\n    style?: string\n"
        "    names?(array, whom to greet): string\n    mood(enum, how): [glad, sad]\n    loud?: boolean\n"
        "    (*): any, the rest\n  default:\n    location: a bar\n    names: [Ann, Bob]"
    )
    parsed = prompt(
        "At {{location}}{{#if style}} in {{style}}{{/if}}:{{#each names}} {{this}}{{/each}}", front
    )
    assert parsed == ParsedPrompt(
        key="p",
        description="Greets",
        arguments=(
            Argument(name="location", description="where it is"),
            Argument(name="style"),
            Argument(name="names", description="whom to greet (one per line)"),
            Argument(name="mood", description="how", required=True, choices=("glad", "sad")),
            Argument(name="loud", choices=("true", "false")),
        ),
        defaults={"location": "a bar", "names": "Ann\nBob"},
        text="At {{ location }}{% if style %} in {{ style }}{% endif %}:"
        '{% for _item1 in (names or "")|lines %} {{ _item1 }}{% endfor %}',
        template=True,
        file="p.prompt",
        lines_before=14,
    )
    assert render(parsed) == "At a bar: Ann Bob"
    assert render(parsed, style="verse", names="Cleo") == "At a bar in verse: Cleo"


def test_json_schema_declares_the_arguments() -> None:
    front = (
        "input:\n  schema:\n    type: object\n    required: [text]\n    properties:\n"
        "      text: {type: string, description: The text}\n      tone: {enum: [a, b]}\n      short: string"
    )
    assert prompt("{{text}}", front).arguments == (
        Argument(name="text", description="The text", required=True),
        Argument(name="tone", choices=("a", "b")),
        Argument(name="short"),
    )


@pytest.mark.parametrize("front", ["model: x", "input:\n  schema: Named", "input: {schema: {}}"])
def test_variables_outside_the_schema_are_optional(front: str) -> None:
    assert argument_names(prompt("{{#if a}}{{b}}{{/if}} {{c-d}} {{#each xs}}{{this}}{{/each}}", front)) == [
        "a",
        "b",
        "c_d",
        "xs",
    ]


def test_comments_may_precede_the_front_matter() -> None:
    parsed = parse_one("dotprompt", "p.prompt", "# Copyright\n#\n\n---\ndescription: Hi\n---\nText")
    assert (parsed.description, parsed.text, parsed.lines_before) == ("Hi", "Text", 6)


def test_a_variant_is_part_of_the_key() -> None:
    assert parse_one("dotprompt", "prompts/foo.formal.prompt", "Text").key == "foo.formal"


def test_a_text_without_tags_is_verbatim() -> None:
    parsed = prompt("{% x %} }} {# y #}\n")
    assert (parsed.text, parsed.template) == ("{% x %} }} {# y #}\n", False)


VALUES = {"x": "X", "y": "Y", "xs": "a\nb\nc", "no": ""}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{x}} {{{x}}} {{&x}} {{ x }}", "X X X X"),
        ("{{missing}}|{{x.y.z}}|{{x.[a b]}}", "||"),
        ("{{#if x}}1{{else}}2{{/if}}{{#if no}}1{{else}}2{{/if}}", "12"),
        ("{{#if no}}1{{else if x}}2{{else}}3{{/if}}", "2"),
        ("{{#unless no}}1{{else}}2{{/unless}}{{#unless x}}1{{^}}2{{/unless}}", "12"),
        ("{{#each xs}}{{@index}}{{this}}{{#unless @last}}, {{/unless}}{{/each}}", "0a, 1b, 2c"),
        ("{{#each xs}}{{#if @first}}>{{/if}}{{.}}{{/each}}", ">abc"),
        ("{{#each no}}1{{else}}{{x}}{{/each}}{{y}}", "XY"),
        ("{{../x}}{{#if x}}{{../x}}{{/if}}", "XX"),
        ("{{#each xs}}{{this}}{{../x}}{{@root.y}} {{/each}}", "aXY bXY cXY "),
        ("{{#each xs as |one n|}}{{n}}{{one}}{{/each}}", "0a1b2c"),
        ("{{#each xs}}{{#each ../xs}}{{@index}}{{/each}};{{/each}}", "012;012;012;"),
        ("{{#with x}}{{this}}{{else}}no{{/with}}{{#with no}}{{this}}{{else}}no{{/with}}", "Xno"),
        ("{{#x}}yes {{y}}{{/x}}{{^x}}no{{/x}}{{^no}}none{{/no}}", "yes Ynone"),
        ("{{#xs}}<{{.}}>{{/xs}}", "<a><b><c>"),
        ('{{#ifEquals x "X"}}1{{else}}2{{/ifEquals}}{{#unlessEquals x y}}3{{/unlessEquals}}', "13"),
        ("a {{! comment }}b{{!-- with }} in it --}} c", "a b c"),
        ("a  {{~x~}}  b", "aXb"),
        ("a\n{{~#if x~}}\n b \n{{~/if~}}\nc", "abc"),
        ("{{json x}}", '"X"'),
        ("{{json x indent=2}}", '"X"'),
        ("{{media url=x}}", "X"),
        ('{{media url="http://h/{{a}}"}}', "http://h/{{a}}"),
        ("\\{{x}} {{x}}", "{{x}} X"),
        ("\\\\{{x}}", "\\X"),
        ('{{"text"}} {{1}} {{true}}', "text 1 True"),
        ("a\n{{#if x}}\nb\n{{/if}}\nc\n", "a\nb\nc\n"),
        ("a\n  {{#if x}}  \n  b\n  {{else}}\n  {{/if}}\nc", "a\n  b\nc"),
        ("{{! first }}\r\na\r\n{{! last }}", "a\r\n"),
        ("a {{#if x}}\nb\n{{/if}} c", "a \nb\n c"),
        ("{{#if x}} {{y}}\n{{/if}}", " Y\n"),
        ('{{role "system"}}\nBe kind.\n{{role "user"}}\n{{x}}\n', "system:\nBe kind.\nuser:\nX\n"),
        ('{{role "system"}} Hello {{history}} there', "system:\nHello  there"),
        ('Hi{{role "model"}}{{x}}', "Hi\nmodel:\nX"),
        ("a\n{{history}}\nb", "a\nb"),
        ('a\n{{section "code"}}\nb', "a\nb"),
        (
            '{{#role "system"}}\nBe kind.\n{{/role}}\n{{#role "user"}}\nHi\n{{/role}}',
            "system:\nBe kind.\nuser:\nHi\n",
        ),
        ("{ {{x}} } {%raw%} {#{{x}}#} {{{x}}}}", "{ X } {%raw%} {#X#} X}"),
        ("}} {{x}}", "}} X"),
    ],
)
def test_handlebars_is_translated_to_jinja(template: str, expected: str) -> None:
    parsed = read("dotprompt", "p.prompt", template).prompts[0]
    declared = {argument.name for argument in parsed.arguments}
    assert render(parsed, **{name: value for name, value in VALUES.items() if name in declared}) == expected


@pytest.mark.parametrize(
    ("template", "line", "message"),
    [
        ("a\n{{> header}}", 2, "partial {{>header}}"),
        ("{{#> layout}}x{{/layout}}", 1, "cannot be translated"),
        ("{{#*inline 'x'}}{{/inline}}", 1, "cannot be translated"),
        ("a\n\n{{add @index 1}}", 3, "the helper 'add' is not supported"),
        ("{{#repeat 3}}x{{/repeat}}", 1, "the helper 'repeat' is not supported"),
        ("{{#if (eq a b)}}{{/if}}", 1, "exactly one value"),
        ("{{#if age >= 18}}{{/if}}", 1, "exactly one value"),
        ("a\n{{#if x}}\nb", 2, "{{#if}} is not closed"),
        ("a\n{{/if}}", 2, "{{/if}} does not close an open block"),
        ("{{#if x}}{{/each}}", 1, "{{/each}} does not close an open block"),
        ("a\n{{else}}", 2, "not inside a block"),
        ("{{#each xs}}{{else if x}}{{/each}}", 1, "cannot be translated here"),
        ("{{#if x}}{{else}}{{else}}{{/if}}", 1, "not inside a block"),
        ("a {{", 1, "not closed"),
        ("a {{x", 1, "not closed"),
        ("a {{{x}}", 1, "not closed"),
        ("{{! a", 1, "comment"),
        ("{{{{raw}}}}{{{{/raw}}}}", 1, "raw blocks"),
        ("{{}}", 1, "cannot be translated"),
        ("{{this}}", 1, "refers to all arguments"),
        ("{{json this}}", 1, "refers to all arguments"),
        ("{{@index}}", 1, "'@index' cannot"),
        ("{{@state.name}}", 1, "'@state.name' cannot"),
        ("{{role}}", 1, "a role must have the form"),
        ("{{role x}}", 1, "a role must have the form"),
        ('{{role "user" x}}', 1, "a role must have the form"),
        ('a\n{{role "tool"}}', 2, "the role 'tool' is not supported; use system, user or model"),
        ("{{media}}", 1, "needs url="),
        ("{{media url=}}", 1, "needs url="),
        ("{{a..b}}", 1, "cannot be translated"),
        ("{{=<% %>=}}", 1, "cannot be translated"),
        ("{{#if x}}" * 60, 1, "nested more than 50"),
    ],
)
def test_an_untranslatable_template_is_an_error_with_its_line(template: str, line: int, message: str) -> None:
    content = f"---\nmodel: x\n---\n{template}"
    assert read("dotprompt", "p.prompt", content).prompts == ()
    ((level, at, text),) = problems_of("dotprompt", "p.prompt", content)
    assert (level, at) == ("error", line + 3)
    assert text.startswith("The template cannot be translated: ")
    assert message in text


def test_members_of_arguments_are_warned_about() -> None:
    content = "---\nmodel: x\n---\n\n{{user.name}}\n{{#each xs}}{{title}}{{/each}}"
    assert problems_of("dotprompt", "p.prompt", content) == [
        ("warning", 5, "'user.name' is always empty: arguments are text and have no members"),
        ("warning", 6, "'title' is always empty: arguments are text and have no members"),
    ]


def test_the_text_false_is_false_for_a_boolean() -> None:
    parsed = prompt("{{#if loud}}!{{else}}.{{/if}}", "input: {schema: {loud?: boolean}}")
    assert [render(parsed, loud=value) for value in ("true", "false", "")] == ["!", ".", "."]


def test_names_that_a_template_cannot_use_are_changed() -> None:
    parsed = prompt("{{first-name}} {{first_name}} {{range}}", "input: {schema: {first-name: string}}")
    assert argument_names(parsed) == ["first_name!", "first_name_2", "range_"]
    assert render(parsed, first_name="a", first_name_2="b", range_="c") == "a b c"


def test_more_than_fifty_variables_are_a_warning() -> None:
    parsed_file = read("dotprompt", "p.prompt", "".join(f"{{{{a{n}}}}}" for n in range(60)))
    assert len(parsed_file.prompts[0].arguments) == 50
    assert [problem.level for problem in parsed_file.problems] == ["warning"]


@pytest.mark.parametrize(
    ("body", "description"),
    [
        ('{{role "system"}}\nTell a joke about {{topic}}.', "Tell a joke about {{topic}}."),
        ("{{! note }}{{#if x}}\nHi", "Hi"),
    ],
)
def test_a_prompt_without_a_description_is_described_by_its_first_line(body: str, description: str) -> None:
    closed = body + "{{/if}}" * body.count("#if")
    assert prompt(closed).description == description


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("Hi\n", [("user", "Hi\n")]),
        ('{{role "system"}}\nBe kind.\n', [("system", "Be kind.")]),
        (
            'Hi\n\n{{role "model"}} {{x}}\n{{role "user"}}\n\n  There\n',
            [("user", "Hi"), ("assistant", "{{ x }}"), ("user", "  There")],
        ),
        ('{{role "system"}}a{{role "user"}}{{role "model"}}b', [("system", "a"), ("assistant", "b")]),
        ("a\n{{history}}\nb", [("user", "a"), ("assistant", "b")]),
        ('a{{history}}{{role "user"}}b', [("user", "a"), ("user", "b")]),
        ('{{#role "system"}}\na\n{{/role}}\nb', [("system", "a"), ("user", "b")]),
        (
            '{{#if x}}{{role "system"}}a{{/if}}',
            [("user", "{% if x %}"), ("system", "a{% endif %}")],
        ),
        (
            "\\{{role 'system'}}\nsystem:\n--role user",
            [("user", '{{ "{" }}{{ "{" }}role \'system\'}}\nsystem:\n--role user')],
        ),
    ],
)
def test_a_message_begins_at_a_role(template: str, expected: list[tuple[str, str]]) -> None:
    assert message_sources(read("dotprompt", "p.prompt", template).prompts[0]) == expected


def test_an_input_that_is_not_a_mapping_is_a_warning() -> None:
    assert problems_of("dotprompt", "p.prompt", "---\nmodel: x\ninput: 3\n---\n{{a}}") == [
        ("warning", 3, "'input' must be a mapping with 'schema' or 'default'")
    ]


@given(st.text(st.sampled_from("{}%#- \n\r'\"ab\\")))
def test_text_around_tags_is_rendered_verbatim(text: str) -> None:
    text = text.replace("{{", "{ ").replace("\\", "|").strip("{")
    parsed = read("dotprompt", "p.prompt", f"x{text} {{{{a}}}} {text}x").prompts[0]
    assert render(parsed, a="{{ b }}") == f"x{text} {{{{ b }}}} {text}x"
