"""Dotprompt's files: `NAME.prompt` with front matter and a Handlebars template.

`input.schema` (Picoschema or JSON Schema) declares the arguments, `input.default` gives values for them;
variables that no schema declares are optional arguments, because a prompt without a schema takes any. A
list is given as lines of text. `{{role "system"}}` becomes a line `system:`, `{{history}}` nothing,
`{{media url=x}}` the address. Partials (`_NAME.prompt`) are files of their own: a prompt that includes one
is reported, as is all else that cannot be translated. Comment lines may stand above the front matter, where
licences are put.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.errors import clip
from dittybag.domain.prompts import MAX_ARGUMENTS, Argument
from dittybag.library.formats.argument_declarations import DeclaredArgument, Signature, choices, signature
from dittybag.library.formats.diagnostics import Diagnostics
from dittybag.library.formats.front_matter import FrontMatterDocument
from dittybag.library.formats.handlebars import Translation, translated
from dittybag.library.formats.handlebars_lexer import Untranslatable
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.formats.summary_text import described, first_line, titled
from dittybag.library.formats.yaml_nodes import YamlNode, argument_text, text_of

#: `name?(array, the names)`
_PICO: Final = re.compile(r"([^?( ]+) ?(\?)? ?(?:\(([^)]*)\))?")
#: Tags that stand for nothing a reader would miss.
_TAG: Final = re.compile(r"\{\{[{~]*\s*(?:[#/^!>~]|role\s|else\b|history\b|section\s)[^{}]{0,500}\}\}+")
_PER_LINE: Final = "one per line"


class _Field(Struct, frozen=True):
    """A field of an input schema."""

    wanted: DeclaredArgument
    kind: str = ""


def draft(file: str, key: str, document: FrontMatterDocument, notes: Diagnostics) -> ParsedPrompt | None:
    """The prompt in a `.prompt` file; None if it cannot be translated."""
    fields = list(_fields(document, notes))
    flags = {field.wanted.written for field in fields if field.kind == "boolean"}
    found = signature((field.wanted for field in fields), notes, rename=True)
    done = translated(document.body, found.names, flags=flags)
    if isinstance(done, Untranslatable):
        notes.error(f"This cannot be read: {done.message}", done.line + document.lines_before)
        return None
    return handlebars_draft(file, key, document, (found, done), notes)


def handlebars_draft(
    file: str,
    key: str,
    document: FrontMatterDocument,
    parts: tuple[Signature, Translation],
    notes: Diagnostics,
) -> ParsedPrompt:
    """A prompt whose text has been translated from Handlebars."""
    found, done = parts
    for line, path in done.members[:10]:
        shown = clip(path, 60)
        notes.warning(
            f"'{shown}' is empty: arguments are texts here, without members", line + document.lines_before
        )
    said = document.text("description")
    return ParsedPrompt(
        key=key,
        title=titled(document.text("title") or document.text("name")),
        description=described(said) or first_line(_TAG.sub("", document.body[:8000])),
        arguments=_with_used(found, done, notes),
        defaults=found.defaults,
        text=done.text if done.changed else document.body,
        template=done.changed,
        file=file,
        lines_before=document.lines_before,
    )


def _with_used(found: Signature, done: Translation, notes: Diagnostics) -> tuple[Argument, ...]:
    lists = {done.names[name] for name in done.lists}
    declared = tuple(
        Argument(
            name=argument.name,
            description=_per_line(argument.description) if argument.name in lists else argument.description,
            required=argument.required,
            choices=argument.choices,
        )
        for argument in found.arguments
    )
    names = {argument.name for argument in declared}
    others = tuple(
        Argument(name=name, description=_per_line(None) if name in lists else None)
        for name in done.names.values()
        if name not in names
    )
    if len(declared) + len(others) > MAX_ARGUMENTS:
        notes.warning(f"It uses more than {MAX_ARGUMENTS} arguments; the others are always empty")
    return (*declared, *others)[:MAX_ARGUMENTS]


def _per_line(description: str | None) -> str:
    return described(f"{description} ({_PER_LINE})") or "" if description else _PER_LINE.capitalize()


def _fields(document: FrontMatterDocument, notes: Diagnostics) -> Iterator[_Field]:
    given = document.fields.get("input")
    if given is None:
        return
    if not isinstance(given.value, dict):
        notes.warning("'input' must be a mapping with 'schema' or 'default'", given.line)
        return
    schema, defaults = given.value.get("schema"), given.value.get("default")
    values = defaults.value if defaults is not None and isinstance(defaults.value, dict) else {}
    declared = _schema_fields(schema) if schema is not None else {}
    for name, field in declared.items():
        yield _Field(replace(field.wanted, default=_default(values.get(name))), field.kind)
    for name, value in values.items():
        if name not in declared:
            yield _Field(DeclaredArgument(written=name, default=_default(value), line=value.line))


def _default(node: YamlNode | None) -> str | None:
    """A list is given as lines, as the template goes through it."""
    if (
        node is not None
        and isinstance(node.value, list)
        and all(isinstance(item.value, str) for item in node.value)
    ):
        return "\n".join(text_of(item) or "" for item in node.value)
    return argument_text(node)


def _schema_fields(schema: YamlNode) -> dict[str, _Field]:
    """None are known of a schema that has only a name."""
    if not isinstance(schema.value, dict):
        return {}
    properties = schema.value.get("properties")
    if properties is not None and isinstance(properties.value, dict):
        needed = schema.value.get("required")
        listed = needed.value if needed is not None and isinstance(needed.value, list) else []
        required = {text_of(item) for item in listed}
        return {
            name: _json_field(name, node, required=name in required)
            for name, node in properties.value.items()
        }
    fields = {}
    for written, node in schema.value.items():
        if (field := _pico_field(written, node)) is not None:
            fields[field.wanted.written] = field
    return fields


def _json_field(name: str, node: YamlNode, *, required: bool) -> _Field:
    if not isinstance(node.value, dict):
        return _typed(DeclaredArgument(written=name, required=required, line=node.line), text_of(node) or "")
    wanted = DeclaredArgument(
        written=name,
        description=text_of(node.value.get("description")),
        required=required,
        choices=choices(node.value.get("enum")),
        line=node.line,
    )
    return _typed(wanted, text_of(node.value.get("type")) or "")


def _pico_field(written: str, node: YamlNode) -> _Field | None:
    """`name?: type, description` or `name?(type, description): what is in it`."""
    found = _PICO.fullmatch(" ".join(written[:500].split()))
    if found is None:
        return None
    kind, _, about = (found[3] if found[3] is not None else text_of(node) or "").partition(",")
    wanted = DeclaredArgument(
        written=found[1],
        description=about.strip() or None,
        required=not found[2],
        choices=choices(node) if kind.strip() == "enum" else (),
        line=node.line,
    )
    return _typed(wanted, kind.strip())


def _typed(wanted: DeclaredArgument, kind: str) -> _Field:
    kind = kind.strip().lower()
    if kind == "boolean":
        return _Field(replace(wanted, choices=wanted.choices or ("true", "false")), kind)
    return _Field(wanted, kind)
