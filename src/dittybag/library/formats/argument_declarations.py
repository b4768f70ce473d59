"""Parse the argument declarations of all formats into prompt arguments."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.errors import clip
from dittybag.domain.prompts import MAX_ARGUMENTS, MAX_CHOICES, TITLE_LENGTH, Argument
from dittybag.domain.text import one_line
from dittybag.library.formats.parsed_prompt import Diagnostics
from dittybag.library.formats.summary_text import normalise_description
from dittybag.yaml_nodes import YamlNode, argument_text, bool_of, list_of, mapping_of, text_of

MAX_NAME_LENGTH: Final = 100
#: Names with a special meaning in templates.
RESERVED_NAMES: Final = frozenset(
    {
        *("true", "false", "none", "True", "False", "None", "not", "loop", "self", "super", "caller"),
        *("range", "dict", "debug", "namespace", "cycler", "joiner"),
    }
)
_CHOICES: Final = ("choices", "enum", "options")
_OTHERS: Final = re.compile(r"\W+")


class DeclaredArgument(Struct, frozen=True, kw_only=True):
    """An argument as a file declares it."""

    #: The name in the file, which may not be usable in a template.
    source_name: str
    description: str | None = None
    required: bool = False
    default: str | None = None
    choices: tuple[str, ...] = ()
    line: int | None = None


class Signature(Struct, frozen=True):
    """The arguments of a prompt."""

    arguments: tuple[Argument, ...] = ()
    defaults: dict[str, str] = {}
    #: The name of each argument in the template, by its name in the file.
    names: dict[str, str] = {}


def is_usable_name(name: str) -> bool:
    """Whether a template can use an argument with this name."""
    return len(name) <= MAX_NAME_LENGTH and name.isidentifier() and name not in RESERVED_NAMES


def to_identifier(source_name: str, taken: Container[str] = ()) -> str | None:
    """A similar name that a template can use and that is not in `taken`; None if there is none."""
    name = _OTHERS.sub("_", source_name).strip("_") or ("_" if source_name.strip() == "_" else "")
    if not name:
        return None
    name = name[: MAX_NAME_LENGTH - 5]
    if not name.isidentifier():
        name = f"_{name}"
    if not name.isidentifier():
        return None
    if name in RESERVED_NAMES:
        name = f"{name}_"
    base, number = name, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    return name


def build_signature(
    declared: Iterable[DeclaredArgument], diagnostics: Diagnostics, *, rename: bool
) -> Signature:
    """Build the arguments of a prompt. `rename`: the template is generated, so names can be changed."""
    arguments: list[Argument] = []
    defaults: dict[str, str] = {}
    names: dict[str, str] = {}
    for argument in declared:
        shown = clip(argument.source_name, 60)
        if argument.source_name in names:
            diagnostics.warning(
                f"Argument '{shown}' is declared twice; the first declaration is used", argument.line
            )
            continue
        name = argument.source_name if is_usable_name(argument.source_name) else None
        if rename and (name is None or name in names.values()):
            name = to_identifier(argument.source_name, names.values())
        if name is None:
            diagnostics.warning(
                f"Argument '{shown}' is ignored: its name cannot be used in a template", argument.line
            )
            continue
        if len(arguments) == MAX_ARGUMENTS:
            diagnostics.warning(
                f"A prompt can have at most {MAX_ARGUMENTS} arguments; the others are ignored", argument.line
            )
            break
        names[argument.source_name] = name
        if argument.default is not None:
            defaults[name] = argument.default
        arguments.append(
            Argument(
                name=name,
                description=normalise_description(argument.description),
                required=argument.required and argument.default is None,
                choices=argument.choices,
            )
        )
    return Signature(tuple(arguments), defaults, names)


def parse_declarations(
    node: YamlNode,
    diagnostics: Diagnostics,
    *,
    scalar: Literal["description", "default"],
    required: bool = False,
) -> Iterator[DeclaredArgument]:
    """Parse a list of names or tables, or a mapping with names as keys.

    `scalar`: what a plain value of a name means. `required`: the default for arguments that do not say.
    """
    for name, value, line in _named_values(node, diagnostics):
        argument = DeclaredArgument(source_name=name.strip(), required=required, line=line)
        if value is None:
            yield argument
        elif isinstance(value.value, dict):
            yield _with_fields(argument, value.value, diagnostics)
        elif scalar == "default":
            yield replace(argument, default=argument_text(value))
        else:
            yield replace(argument, description=text_of(value))


def _named_values(node: YamlNode, diagnostics: Diagnostics) -> Iterator[tuple[str, YamlNode | None, int]]:
    """Yield the name, the value if there is one, and the line of each argument."""
    for name, value in mapping_of(node).items():
        yield name, value, value.line
    for item in list_of(node):
        members = mapping_of(item)
        if name := text_of(members.get("name")) or "":
            yield name, item, item.line
        elif "name" not in members and len(members) == 1:
            # `- topic: What to write about`
            ((name, value),) = members.items()
            yield name, value, value.line
        elif isinstance(item.value, dict):
            diagnostics.warning("An argument has no name; it is ignored", item.line)
        elif name := text_of(item) or "":
            yield name, None, item.line
        else:
            diagnostics.warning("An argument is not a name or a table with a name; it is ignored", item.line)
    for name in (text_of(node) or "").replace(",", " ").split():
        yield name, None, node.line


def _with_fields(
    argument: DeclaredArgument, fields: dict[str, YamlNode], diagnostics: Diagnostics
) -> DeclaredArgument:
    required = bool_of(fields.get("required"))
    if required is None and text_of(fields.get("required")) is not None:
        shown = clip(argument.source_name, 60)
        diagnostics.warning(f"Argument '{shown}': 'required' must be true or false", argument.line)
    return replace(
        argument,
        description=text_of(fields.get("description")),
        required=argument.required if required is None else required,
        default=argument_text(fields.get("default")),
        choices=parse_choices(next((fields[key] for key in _CHOICES if key in fields), None)),
    )


def parse_choices(node: YamlNode | None) -> tuple[str, ...]:
    """The values of a list of choices."""
    found = (one_line(text, TITLE_LENGTH) for item in list_of(node) if (text := text_of(item)))
    return tuple(dict.fromkeys(text for text in found if text))[:MAX_CHOICES]
