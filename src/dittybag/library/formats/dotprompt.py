"""Dotprompt files: `NAME.prompt` with front matter and a Handlebars template.

`input.schema` (Picoschema or JSON Schema) declares the arguments, and `input.default` their default values.
Variables that are not in a schema are optional arguments. A list is passed as lines of text. A message
begins at `{{role "system"}}`, which becomes a line `system:` where a prompt is one text. `{{history}}` is
removed, because the history is the client's, and what follows is a message of the model. `{{media url=x}}`
becomes the URL, because nothing is fetched.
Partials (`_NAME.prompt`) are separate files: a prompt that includes one is reported, like everything else
that cannot be translated. Comment lines, such as licence headers, may precede the front matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.errors import clip
from dittybag.domain.prompts import MAX_ARGUMENTS, Argument
from dittybag.library.formats.argument_declarations import (
    DeclaredArgument,
    Signature,
    build_signature,
    parse_choices,
)
from dittybag.library.formats.diagnostics import Diagnostics
from dittybag.library.formats.front_matter import FrontMatterDocument
from dittybag.library.formats.handlebars import Translation, translate
from dittybag.library.formats.handlebars_lexer import Untranslatable
from dittybag.library.formats.markdown import build_prompt
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.formats.summary_text import first_line, normalise_description
from dittybag.yaml_nodes import YamlNode, argument_text, list_of, mapping_of, text_of

#: `name?(array, the names)`
_PICO: Final = re.compile(r"([^?( ]+) ?(\?)? ?(?:\(([^)]*)\))?")
#: Tags that are removed from descriptions.
_TAG: Final = re.compile(r"\{\{[{~]*\s*(?:[#/^!>~]|role\s|else\b|history\b|section\s)[^{}]{0,500}\}\}+")
_PER_LINE: Final = "one per line"


class _SchemaField(Struct, frozen=True):
    """A field of an input schema."""

    argument: DeclaredArgument
    kind: str = ""


def parse(document: FrontMatterDocument, diagnostics: Diagnostics) -> ParsedPrompt | None:
    """Parse a `.prompt` file; None if its template cannot be translated."""
    fields = list(_fields(document, diagnostics))
    flags = {field.argument.source_name for field in fields if field.kind == "boolean"}
    found = build_signature((field.argument for field in fields), diagnostics, rename=True)
    translation = translate(document.body, found.names, flags=flags)
    return build_handlebars_prompt(document, found, translation, diagnostics)


def build_handlebars_prompt(
    document: FrontMatterDocument,
    found: Signature,
    translation: Translation | Untranslatable,
    diagnostics: Diagnostics,
) -> ParsedPrompt | None:
    """Build a prompt from a translated Handlebars template; None if it cannot be translated."""
    if isinstance(translation, Untranslatable):
        diagnostics.error(
            f"The template cannot be translated: {translation.message}",
            translation.line + document.lines_before,
        )
        return None
    for line, path in translation.members[:10]:
        shown = clip(path, 60)
        diagnostics.warning(
            f"'{shown}' is always empty: arguments are text and have no members", line + document.lines_before
        )
    description = normalise_description(document.text("description"))
    return replace(
        build_prompt(document, diagnostics, found, is_template=translation.changed),
        description=description or first_line(_TAG.sub("", document.body[:8000])),
        arguments=_merge_arguments(found, translation, diagnostics),
        text=translation.text if translation.changed else document.body,
        roles=translation.roles,
    )


def _merge_arguments(
    found: Signature, translation: Translation, diagnostics: Diagnostics
) -> tuple[Argument, ...]:
    lists = {translation.names[name] for name in translation.lists}
    declared = tuple(
        replace(argument, description=_per_line(argument.description)) if argument.name in lists else argument
        for argument in found.arguments
    )
    names = {argument.name for argument in declared}
    others = tuple(
        Argument(name=name, description=_per_line(None) if name in lists else None)
        for name in translation.names.values()
        if name not in names
    )
    if len(declared) + len(others) > MAX_ARGUMENTS:
        diagnostics.warning(
            f"The template uses more than {MAX_ARGUMENTS} arguments; the others are always empty"
        )
    return (*declared, *others)[:MAX_ARGUMENTS]


def _per_line(description: str | None) -> str:
    return (
        normalise_description(f"{description} ({_PER_LINE})") or "" if description else _PER_LINE.capitalize()
    )


def _fields(document: FrontMatterDocument, diagnostics: Diagnostics) -> Iterator[_SchemaField]:
    node = document.fields.get("input")
    if node is None:
        return
    if not isinstance(node.value, dict):
        diagnostics.warning("'input' must be a mapping with 'schema' or 'default'", node.line)
        return
    values = mapping_of(node.value.get("default"))
    declared = _schema_fields(mapping_of(node.value.get("schema")))
    for name, field in declared.items():
        yield _SchemaField(replace(field.argument, default=_default(values.get(name))), field.kind)
    for name, value in values.items():
        if name not in declared:
            yield _SchemaField(DeclaredArgument(source_name=name, default=_default(value), line=value.line))


def _default(node: YamlNode | None) -> str | None:
    """The default value as text. A list becomes lines, over which the template loops."""
    if (
        node is not None
        and isinstance(node.value, list)
        and all(isinstance(item.value, str) for item in node.value)
    ):
        return "\n".join(text_of(item) or "" for item in node.value)
    return argument_text(node)


def _schema_fields(schema: dict[str, YamlNode]) -> dict[str, _SchemaField]:
    """The fields of a schema by name; empty if the schema is only a name."""
    properties = schema.get("properties")
    if properties is not None and isinstance(properties.value, dict):
        required = {text_of(item) for item in list_of(schema.get("required"))}
        return {
            name: _json_field(name, node, required=name in required)
            for name, node in properties.value.items()
        }
    fields = (_pico_field(source_name, node) for source_name, node in schema.items())
    return {field.argument.source_name: field for field in fields if field is not None}


def _json_field(name: str, node: YamlNode, *, required: bool) -> _SchemaField:
    members = mapping_of(node)
    argument = DeclaredArgument(
        source_name=name,
        description=text_of(members.get("description")),
        required=required,
        choices=parse_choices(members.get("enum")),
        line=node.line,
    )
    return _typed(argument, text_of(members.get("type")) or text_of(node) or "")


def _pico_field(source_name: str, node: YamlNode) -> _SchemaField | None:
    """Parse `name?: type, description` or `name?(type, description): elements`."""
    found = _PICO.fullmatch(" ".join(source_name[:500].split()))
    if found is None:
        return None
    kind, _, about = (found[3] if found[3] is not None else text_of(node) or "").partition(",")
    argument = DeclaredArgument(
        source_name=found[1],
        description=about.strip() or None,
        required=not found[2],
        choices=parse_choices(node) if kind.strip() == "enum" else (),
        line=node.line,
    )
    return _typed(argument, kind.strip())


def _typed(argument: DeclaredArgument, kind: str) -> _SchemaField:
    kind = kind.strip().lower()
    if kind == "boolean":
        return _SchemaField(replace(argument, choices=argument.choices or ("true", "false")), kind)
    return _SchemaField(argument, kind)
