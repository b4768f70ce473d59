"""Handlebars and Mustache texts taken apart into tags and what stands between them."""

from __future__ import annotations

import re
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

_COMMENT_END: Final = re.compile(r"~?\}\}")
_LONG_COMMENT_END: Final = re.compile(r"--~?\}\}")
# Strings may hold braces.
_INSIDE: Final = re.compile(r"(?:\"[^\"]*\"|'[^']*'|[^\"'{}]|\}(?!\}))*")
_LINE_END: Final = re.compile(r"[ \t]*\r?\n")
#: Tags that leave no line behind if they stand alone on it.
_SIGILS: Final = tuple("#/^!>")
_STANDALONE: Final = ("else", "history", "section", "log")

Kind = Literal["text", "tag"]


class HandlebarsToken(Struct, frozen=True):
    """A tag without its braces, or text."""

    kind: Kind
    content: str
    #: In the text that was taken apart, from 1.
    line: int


class Untranslatable(Struct, frozen=True):
    """Why a text cannot be translated, and where."""

    message: str
    line: int


def taken_apart(text: str) -> list[HandlebarsToken] | Untranslatable:
    """The pieces of a text, with the whitespace gone that `~` and tags alone on a line take with them."""
    pieces: list[HandlebarsToken] = []
    trims: list[tuple[bool, bool]] = []
    at = line = 0
    while (start := text.find("{{", at)) >= 0:
        before = text[at:start]
        escaped = before.endswith("\\")
        if escaped:
            before = before[:-1]
        first_line = line + 1
        line += before.count("\n")
        if before:
            pieces.append(HandlebarsToken("text", before, first_line))
            trims.append((False, False))
        if escaped and not before.endswith("\\"):
            # `\{{name}}` is the text {{name}}.
            pieces.append(HandlebarsToken("text", "{{", line + 1))
            trims.append((False, False))
            at = start + 2
            continue
        tag = _tag(text, start)
        if isinstance(tag, str):
            return Untranslatable(tag, line + 1)
        content, end = tag
        trims.append((content.startswith("~"), content.endswith("~")))
        pieces.append(HandlebarsToken("tag", _sigil_closed(content.strip("~").strip()), line + 1))
        line += text.count("\n", start, end)
        at = end
    if text[at:]:
        pieces.append(HandlebarsToken("text", text[at:], line + 1))
        trims.append((False, False))
    return _trimmed(pieces, trims)


def _tag(text: str, start: int) -> tuple[str, int] | str:
    """What is in the tag that starts here and where it ends, or what is wrong with it."""
    if text.startswith("{{{{", start):
        return "raw blocks ({{{{name}}}}) cannot be translated"
    triple = text.startswith("{{{", start)
    inside = start + (3 if triple else 2)
    sigil = text[inside : inside + 2].lstrip("~")[:1]
    if sigil == "!":
        mark = inside + text[inside : inside + 2].index("!")
        ending = _LONG_COMMENT_END if text.startswith("!--", mark) else _COMMENT_END
        end = ending.search(text, mark + 1)
        return (text[inside : end.end() - 2], end.end()) if end else "a comment {{! is not closed"
    found = _INSIDE.match(text, inside)
    assert found is not None
    closing = "}}}" if triple else "}}"
    if not text.startswith(closing, found.end()):
        return f"a tag {'{{{' if triple else '{{'} is not closed"
    return found[0], found.end() + len(closing)


def _sigil_closed(content: str) -> str:
    """`# if x` is `#if x`."""
    return content[0] + content[1:].lstrip() if content[:1] in ("#", "/", "^", ">", "&") else content


def _trimmed(pieces: list[HandlebarsToken], trims: list[tuple[bool, bool]]) -> list[HandlebarsToken]:
    texts = [piece.content for piece in pieces]
    for index, piece in enumerate(pieces):
        if piece.kind == "text":
            continue
        alone = _leaves_no_line(piece) and _starts_line(pieces, index) and _ends_line(pieces, index)
        left, right = trims[index]
        if index and pieces[index - 1].kind == "text" and (left or alone):
            before = texts[index - 1]
            texts[index - 1] = before.rstrip() if left else before.rstrip(" \t")
        if index + 1 < len(pieces) and pieces[index + 1].kind == "text" and (right or alone):
            after = texts[index + 1]
            texts[index + 1] = after.lstrip() if right else _without_line_end(after)
    return [
        replace(piece, content=text)
        for piece, text in zip(pieces, texts, strict=True)
        if piece.kind == "tag" or text
    ]


def _without_line_end(text: str) -> str:
    found = _LINE_END.match(text)
    return text[found.end() :] if found else text.lstrip(" \t")


def _leaves_no_line(piece: HandlebarsToken) -> bool:
    word = piece.content.split(maxsplit=1)[0] if piece.content.strip() else ""
    return piece.content[:1] in _SIGILS or word in _STANDALONE


def _starts_line(pieces: list[HandlebarsToken], index: int) -> bool:
    if index == 0:
        return True
    before = pieces[index - 1]
    line = before.content[before.content.rfind("\n") + 1 :]
    return before.kind == "text" and not line.strip(" \t") and (index == 1 or "\n" in before.content)


def _ends_line(pieces: list[HandlebarsToken], index: int) -> bool:
    if index + 1 == len(pieces):
        return True
    after = pieces[index + 1]
    if after.kind == "tag":
        return False
    return bool(_LINE_END.match(after.content)) or (
        index + 2 == len(pieces) and not after.content.strip(" \t")
    )
