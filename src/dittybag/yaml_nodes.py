"""Parse YAML into nodes that know their line numbers."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

#: Metadata is never nested deeper.
MAX_DEPTH: Final = 20
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"true", "yes", "on", "1"})
_FALSE: Final = frozenset({"false", "no", "off", "0"})


class YamlNode(Struct, frozen=True):
    """A value and its line. Every scalar is text."""

    value: str | list[YamlNode] | dict[str, YamlNode]
    line: int
    #: Whether it is a scalar without quotes, so that words such as `null` mean None.
    plain: bool = False


class YamlProblem(Struct, frozen=True):
    """Why a text cannot be parsed as YAML."""

    message: str
    line: int | None


class _LineIndex:
    """Maps offsets in a text to line numbers of its file, counting only `\\n` as a line end."""

    def __init__(self, text: str, lines_before: int) -> None:
        self._ends = [found.start() for found in re.finditer("\n", text)]
        self._first = lines_before + 1

    def __getitem__(self, index: int) -> int:
        return bisect_left(self._ends, index) + self._first


class _OpenCollection(Struct):
    """A list or mapping that is not closed."""

    value: list[YamlNode] | dict[str, YamlNode]
    line: int
    key: str | None = None


def parse_yaml(
    text: str, lines_before: int = 0, *, max_values: int | None = None
) -> YamlNode | YamlProblem | None:
    """Parse the document in `text`; None if it is empty. `lines_before`: lines of the file before `text`.

    `max_values`: the maximum number of scalars and collections, each of which takes a kilobyte of memory.
    Anchors and aliases are refused, because a few lines can expand to more data than fits into memory.
    """
    import yaml  # type: ignore[import-untyped]  # has no type hints

    lines = _LineIndex(text, lines_before)
    try:
        return _build(_limited(yaml.parse(text, Loader=yaml.CBaseLoader), max_values), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return YamlProblem(str(error.problem or error.context), lines[mark.index] if mark else None)
    except yaml.reader.ReaderError as error:
        at = text.find(chr(error.character)) if isinstance(error.character, int) else -1
        message = f"it contains a character that YAML does not allow ({error.reason})"
        return YamlProblem(message, lines[at] if at >= 0 else None)
    except (yaml.YAMLError, UnicodeError) as error:
        return YamlProblem(str(error), None)


def _limited(events: Iterable[Any], max_values: int | None) -> Iterator[Any]:
    """Yield the events, of which few are not values. Raises `YAMLError` if there are too many."""
    import yaml

    for number, event in enumerate(events):
        if max_values is not None and number > max_values:
            raise yaml.YAMLError(f"it has more than {max_values:,} values")
        yield event


def _build(events: Iterable[Any], lines: _LineIndex) -> YamlNode | YamlProblem | None:
    """Build nodes from parser events, without recursion: the text may be nested to any depth."""
    import yaml

    root: YamlNode | None = None
    open_collections: list[_OpenCollection] = []
    for event in events:
        line = lines[event.start_mark.index]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            return YamlProblem("anchors and aliases (& and *) are not supported", line)
        if isinstance(event, yaml.DocumentStartEvent) and root is not None:
            return YamlProblem("there is more than one document", line)
        if isinstance(event, yaml.CollectionStartEvent):
            if len(open_collections) >= MAX_DEPTH:
                return YamlProblem(f"it is nested more than {MAX_DEPTH} levels deep", line)
            open_collections.append(
                _OpenCollection({} if isinstance(event, yaml.MappingStartEvent) else [], line)
            )
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            closed = open_collections.pop()
            node = YamlNode(closed.value, closed.line)
        elif isinstance(event, yaml.ScalarEvent):
            node = YamlNode(event.value, line, not event.style)
        else:
            continue
        if not open_collections:
            root = node
        elif not _add_to(node, open_collections[-1]):
            return YamlProblem("a key is not text", line)
    return root


def _add_to(node: YamlNode, into: _OpenCollection) -> bool:
    if isinstance(into.value, list):
        into.value.append(node)
    elif into.key is not None:
        into.value[into.key] = node
        into.key = None
    elif isinstance(node.value, str):
        into.key = node.value
    else:
        return False
    return True


def text_of(node: YamlNode | None) -> str | None:
    """The text of a scalar; None for null, lists and mappings."""
    if node is None or not isinstance(node.value, str) or (node.plain and node.value in _NULLS):
        return None
    return node.value


def mapping_of(node: YamlNode | None) -> dict[str, YamlNode]:
    """The members of a mapping; empty for everything else."""
    return node.value if node is not None and isinstance(node.value, dict) else {}


def list_of(node: YamlNode | None) -> list[YamlNode]:
    """The items of a list; empty for everything else."""
    return node.value if node is not None and isinstance(node.value, list) else []


def bool_of(node: YamlNode | None) -> bool | None:
    """A scalar as a boolean; None if it is not one."""
    text = (text_of(node) or "").strip().lower()
    return True if text in _TRUE else False if text in _FALSE else None


def argument_text(node: YamlNode | None) -> str | None:
    """Any value as the text of an argument: a scalar as is, other values as JSON. None for null."""
    if node is None or isinstance(node.value, str):
        return text_of(node)
    # Imported here because few files need it.
    import json

    return json.dumps(_data(node), ensure_ascii=False)


def _data(node: YamlNode) -> Any:
    if isinstance(node.value, list):
        return [_data(item) for item in node.value]
    if isinstance(node.value, dict):
        return {key: _data(value) for key, value in node.value.items()}
    return text_of(node)


def string_data(node: YamlNode | None) -> Any:
    """A value as strings, lists and mappings: every scalar is a string, also null. None for an empty text."""
    if node is None or isinstance(node.value, str):
        return None if node is None else node.value
    if isinstance(node.value, list):
        return [string_data(item) for item in node.value]
    return {key: string_data(value) for key, value in node.value.items()}
