"""Syntax highlighting of Markdown source on a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import click

#: Longer lines are data, not prose.
_MAX_LENGTH: Final = 2000

_FENCE: Final = re.compile(r" {0,3}(```+|~~~+)")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_QUOTE: Final = re.compile(r" {0,3}>")
_BULLET: Final = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])(\s.*)")
#: Placeholders, code, bold text, tags and links. All quantifiers are bounded, so matching is linear.
_SPAN: Final = re.compile(
    r"(?P<template>\{\{[^{}]{0,200}\}\}|\{%[^%]{0,200}%\})"
    r"|(?P<code>`[^`]{1,500}`)"
    r"|(?P<strong>\*\*[^*\s][^*]{0,500}\*\*)"
    r"|(?P<tag></?[A-Za-z][A-Za-z0-9_-]{0,50}[^<>]{0,200}>)"
    r"|(?P<link>\[[^\[\]]{1,200}\]\([^()\s]{1,500}\))"
)
_STYLES: Final[dict[str, dict[str, Any]]] = {
    "template": {"fg": "magenta"},
    "code": {"fg": "green"},
    "strong": {"bold": True},
    "tag": {"fg": "cyan"},
    "link": {"fg": "blue"},
}


def highlight(text: str) -> str:
    """Return the text with colours added."""
    return "".join(_lines(text))


def _lines(text: str) -> Iterator[str]:
    fence = ""
    for line in text.splitlines(keepends=True):
        words = line.rstrip("\r\n")
        end = line[len(words) :]
        found = _FENCE.match(words)
        if fence:
            if found and found[1].startswith(fence):
                fence = ""
            yield click.style(words, fg="green") + end
        elif found:
            fence = found[1]
            yield click.style(words, fg="green") + end
        else:
            yield _line(words) + end


def _line(line: str) -> str:
    if len(line) > _MAX_LENGTH or not line:
        return line
    if _HEADING.match(line):
        return click.style(line, fg="yellow", bold=True)
    if _QUOTE.match(line):
        return click.style(line, dim=True)
    if bullet := _BULLET.fullmatch(line):
        return bullet[1] + click.style(bullet[2], fg="yellow") + _spans(bullet[3])
    return _spans(line)


def _spans(line: str) -> str:
    return _SPAN.sub(lambda found: click.style(found[0], **_STYLES[found.lastgroup or ""]), line)
