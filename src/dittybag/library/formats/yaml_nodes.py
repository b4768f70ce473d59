"""Nodes: a YAML document as plain data that knows its lines."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

#: Nothing that describes a prompt is nested deeper.
DEPTH: Final = 20
_NOTHING: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"true", "yes", "on", "1"})
_FALSE: Final = frozenset({"false", "no", "off", "0"})


class YamlNode(Struct, frozen=True):
    """A value and where it stands; every scalar is text."""

    value: str | list[YamlNode] | dict[str, YamlNode]
    line: int
    #: Whether it is text without quotes, in which a few words mean nothing at all.
    plain: bool = False


class YamlProblem(Struct, frozen=True):
    """Why a text is not read as YAML."""

    message: str
    line: int | None


class _Lines:
    """Which line of a file a place in a text is on. YAML knows more line ends than other people do."""

    def __init__(self, text: str, lines_before: int) -> None:
        self._ends = [found.start() for found in re.finditer("\n", text)]
        self._first = lines_before + 1

    def __getitem__(self, index: int) -> int:
        return bisect_left(self._ends, index) + self._first


class _Open(Struct):
    """A list or mapping that has not ended."""

    value: list[YamlNode] | dict[str, YamlNode]
    line: int
    key: str | None = None


def parsed(text: str, lines_before: int = 0) -> YamlNode | YamlProblem | None:
    """The document in `text`, which begins after so many lines of its file; None if there is none.

    Anchors and aliases are refused: a few lines of them can stand for more data than there is memory.
    """
    import yaml  # type: ignore[import-untyped]  # has no types of its own

    lines = _Lines(text, lines_before)
    try:
        return _built(yaml.parse(text, Loader=yaml.CBaseLoader), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return YamlProblem(str(error.problem or error.context), lines[mark.index] if mark else None)
    except yaml.reader.ReaderError as error:
        at = text.find(chr(error.character)) if isinstance(error.character, int) else -1
        message = f"it has a character that YAML does not allow ({error.reason})"
        return YamlProblem(message, lines[at] if at >= 0 else None)
    except (yaml.YAMLError, UnicodeError) as error:
        return YamlProblem(str(error), None)


def _built(events: Iterable[Any], lines: _Lines) -> YamlNode | YamlProblem | None:
    """Without recursion: how deep a text is nested is up to its author."""
    import yaml

    root: YamlNode | None = None
    opened: list[_Open] = []
    for event in events:
        line = lines[event.start_mark.index]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            return YamlProblem("anchors and aliases (& and *) are not supported", line)
        if isinstance(event, yaml.DocumentStartEvent) and root is not None:
            return YamlProblem("there is more than one document", line)
        if isinstance(event, yaml.CollectionStartEvent):
            if len(opened) >= DEPTH:
                return YamlProblem(f"it is nested more than {DEPTH} deep", line)
            opened.append(_Open({} if isinstance(event, yaml.MappingStartEvent) else [], line))
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            ended = opened.pop()
            node = YamlNode(ended.value, ended.line)
        elif isinstance(event, yaml.ScalarEvent):
            node = YamlNode(event.value, line, not event.style)
        else:
            continue
        if not opened:
            root = node
        elif not _placed(node, opened[-1]):
            return YamlProblem("a key is not text", line)
    return root


def _placed(node: YamlNode, into: _Open) -> bool:
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
    """A scalar's text; None for nothing, lists and mappings."""
    if node is None or not isinstance(node.value, str) or (node.plain and node.value in _NOTHING):
        return None
    return node.value


def truth_of(node: YamlNode | None) -> bool | None:
    """A scalar as yes or no; None if it is neither."""
    text = (text_of(node) or "").strip().lower()
    return True if text in _TRUE else False if text in _FALSE else None


def argument_text(node: YamlNode | None) -> str | None:
    """Any value as the text of an argument: a scalar's own, else JSON. None for nothing."""
    if node is None or isinstance(node.value, str):
        return text_of(node)
    return json.dumps(_data(node), ensure_ascii=False)


def _data(node: YamlNode) -> Any:
    if isinstance(node.value, list):
        return [_data(item) for item in node.value]
    if isinstance(node.value, dict):
        return {key: _data(value) for key, value in node.value.items()}
    return text_of(node)
