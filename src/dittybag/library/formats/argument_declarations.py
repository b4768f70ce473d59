"""Arguments: from the many ways in which files declare them to the one in which prompts have them."""

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
from dittybag.library.formats.summary_text import described
from dittybag.library.formats.yaml_nodes import YamlNode, argument_text, text_of, truth_of

NAME_LENGTH: Final = 100
#: Names that mean something else in a template.
RESERVED: Final = frozenset(
    {
        *("true", "false", "none", "True", "False", "None", "not", "loop", "self", "super", "caller"),
        *("range", "dict", "debug", "namespace", "cycler", "joiner"),
    }
)
_CHOICES: Final = ("choices", "enum", "options")
_OTHERS: Final = re.compile(r"\W+")


class DeclaredArgument(Struct, frozen=True, kw_only=True):
    """An argument as a file asks for it."""

    #: As the file writes it, which need not be a name that a template can use.
    written: str
    description: str | None = None
    required: bool = False
    default: str | None = None
    choices: tuple[str, ...] = ()
    line: int | None = None


class Signature(Struct, frozen=True):
    """The arguments of a prompt."""

    arguments: tuple[Argument, ...] = ()
    defaults: dict[str, str] = {}
    #: What each argument is called, by what the file calls it.
    names: dict[str, str] = {}


def usable(name: str) -> bool:
    """Whether a template can use an argument of this name."""
    return len(name) <= NAME_LENGTH and name.isidentifier() and name not in RESERVED


def identifier(written: str, taken: Container[str] = ()) -> str | None:
    """A name that a template can use, like the one that is written; None if nothing of it can be used."""
    name = _OTHERS.sub("_", written).strip("_") or ("_" if written.strip() == "_" else "")
    if not name:
        return None
    name = name[: NAME_LENGTH - 5]
    if not name.isidentifier():
        name = f"_{name}"
    if not name.isidentifier():
        return None
    if name in RESERVED:
        name = f"{name}_"
    wanted, number = name, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def signature(wanted: Iterable[DeclaredArgument], notes: Diagnostics, *, rename: bool) -> Signature:
    """Arguments that a prompt can have. With `rename`, the template is ours and can use another name."""
    arguments: list[Argument] = []
    defaults: dict[str, str] = {}
    names: dict[str, str] = {}
    for one in wanted:
        shown = clip(one.written, 60)
        if one.written in names:
            notes.warning(f"Argument '{shown}' is declared twice; the first counts", one.line)
            continue
        name = one.written if usable(one.written) else None
        if rename and (name is None or name in names.values()):
            name = identifier(one.written, names.values())
        if name is None:
            notes.warning(f"Argument '{shown}' is left out: a template cannot use such a name", one.line)
            continue
        if len(arguments) == MAX_ARGUMENTS:
            notes.warning(
                f"A prompt has at most {MAX_ARGUMENTS} arguments; the others are left out", one.line
            )
            break
        names[one.written] = name
        if one.default is not None:
            defaults[name] = one.default
        arguments.append(
            Argument(
                name=name,
                description=described(one.description),
                required=one.required and one.default is None,
                choices=one.choices,
            )
        )
    return Signature(tuple(arguments), defaults, names)


def declared(
    node: YamlNode, notes: Diagnostics, *, scalar: Literal["description", "default"], required: bool = False
) -> Iterator[DeclaredArgument]:
    """The arguments in a list of names or tables, or in a mapping from names.

    `scalar` says what a single value beside a name is; `required`, what holds unless something else is said.
    """
    if isinstance(node.value, dict):
        for name, value in node.value.items():
            yield from _one(name, value, notes, scalar=scalar, required=required)
    elif isinstance(node.value, list):
        for item in node.value:
            yield from _item(item, notes, scalar=scalar, required=required)
    elif names := text_of(node):
        for name in names.replace(",", " ").split():
            yield DeclaredArgument(written=name, required=required, line=node.line)


def _item(
    item: YamlNode, notes: Diagnostics, *, scalar: Literal["description", "default"], required: bool
) -> Iterator[DeclaredArgument]:
    if isinstance(item.value, dict):
        name = text_of(item.value.get("name"))
        if name:
            yield from _one(name, item, notes, scalar=scalar, required=required)
        elif "name" not in item.value and len(item.value) == 1:
            # `- topic: What to write about`
            ((name, value),) = item.value.items()
            yield from _one(name, value, notes, scalar=scalar, required=required)
        else:
            notes.warning("An argument has no name; it is left out", item.line)
    elif name := text_of(item):
        yield DeclaredArgument(written=name.strip(), required=required, line=item.line)
    else:
        notes.warning("An argument is neither a name nor a table with one; it is left out", item.line)


def _one(
    name: str,
    node: YamlNode,
    notes: Diagnostics,
    *,
    scalar: Literal["description", "default"],
    required: bool,
) -> Iterator[DeclaredArgument]:
    wanted = DeclaredArgument(written=name.strip(), required=required, line=node.line)
    if not isinstance(node.value, dict):
        if scalar == "default":
            yield replace(wanted, default=argument_text(node))
        else:
            yield replace(wanted, description=text_of(node))
        return
    said = node.value.get("required")
    needed = truth_of(said)
    if text_of(said) is not None and needed is None:
        notes.warning(f"Argument '{clip(name, 60)}': 'required' must be true or false", node.line)
    yield replace(
        wanted,
        description=text_of(node.value.get("description")),
        required=required if needed is None else needed,
        default=argument_text(node.value.get("default")),
        choices=choices(next((node.value[key] for key in _CHOICES if key in node.value), None)),
    )


def choices(node: YamlNode | None) -> tuple[str, ...]:
    """The values of a list that can be proposed."""
    if node is None or not isinstance(node.value, list):
        return ()
    found = (one_line(text, TITLE_LENGTH) for item in node.value if (text := text_of(item)))
    return tuple(dict.fromkeys(text for text in found if text))[:MAX_CHOICES]
