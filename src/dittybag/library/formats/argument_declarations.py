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
from dittybag.library.formats.diagnostics import Diagnostics
from dittybag.library.formats.summary_text import normalise_description
from dittybag.library.formats.yaml_nodes import YamlNode, argument_text, bool_of, list_of, text_of

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
    if isinstance(node.value, dict):
        for name, value in node.value.items():
            yield from _parse_table(name, value, diagnostics, scalar=scalar, required=required)
    elif isinstance(node.value, list):
        for item in node.value:
            yield from _parse_item(item, diagnostics, scalar=scalar, required=required)
    elif names := text_of(node):
        for name in names.replace(",", " ").split():
            yield DeclaredArgument(source_name=name, required=required, line=node.line)


def _parse_item(
    item: YamlNode, diagnostics: Diagnostics, *, scalar: Literal["description", "default"], required: bool
) -> Iterator[DeclaredArgument]:
    if isinstance(item.value, dict):
        name = text_of(item.value.get("name"))
        if name:
            yield from _parse_table(name, item, diagnostics, scalar=scalar, required=required)
        elif "name" not in item.value and len(item.value) == 1:
            # `- topic: What to write about`
            ((name, value),) = item.value.items()
            yield from _parse_table(name, value, diagnostics, scalar=scalar, required=required)
        else:
            diagnostics.warning("An argument has no name; it is ignored", item.line)
    elif name := text_of(item):
        yield DeclaredArgument(source_name=name.strip(), required=required, line=item.line)
    else:
        diagnostics.warning("An argument is not a name or a table with a name; it is ignored", item.line)


def _parse_table(
    name: str,
    node: YamlNode,
    diagnostics: Diagnostics,
    *,
    scalar: Literal["description", "default"],
    required: bool,
) -> Iterator[DeclaredArgument]:
    argument = DeclaredArgument(source_name=name.strip(), required=required, line=node.line)
    if not isinstance(node.value, dict):
        if scalar == "default":
            yield replace(argument, default=argument_text(node))
        else:
            yield replace(argument, description=text_of(node))
        return
    value = node.value.get("required")
    flag = bool_of(value)
    if text_of(value) is not None and flag is None:
        diagnostics.warning(f"Argument '{clip(name, 60)}': 'required' must be true or false", node.line)
    yield replace(
        argument,
        description=text_of(node.value.get("description")),
        required=required if flag is None else flag,
        default=argument_text(node.value.get("default")),
        choices=parse_choices(next((node.value[key] for key in _CHOICES if key in node.value), None)),
    )


def parse_choices(node: YamlNode | None) -> tuple[str, ...]:
    """The values of a list of choices."""
    found = (one_line(text, TITLE_LENGTH) for item in list_of(node) if (text := text_of(item)))
    return tuple(dict.fromkeys(text for text in found if text))[:MAX_CHOICES]
