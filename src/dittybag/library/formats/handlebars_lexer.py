"""A lexer for Handlebars and Mustache templates."""

from __future__ import annotations

import re
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

_COMMENT_END: Final = re.compile(r"~?\}\}")
_LONG_COMMENT_END: Final = re.compile(r"--~?\}\}")
# Strings may contain braces.
_INSIDE: Final = re.compile(r"(?:\"[^\"]*\"|'[^']*'|[^\"'{}]|\}(?!\}))*")
_LINE_END: Final = re.compile(r"[ \t]*\r?\n")
#: First characters of tags that are removed with their line if they are alone on it.
_SIGILS: Final = tuple("#/^!>")
_STANDALONE: Final = ("else", "history", "section", "log")

TokenKind = Literal["text", "tag"]


class HandlebarsToken(Struct, frozen=True):
    """A tag without its braces, or text."""

    kind: TokenKind
    content: str
    #: Line number in the template, starting at 1.
    line: int


class Untranslatable(Struct, frozen=True):
    """Why a template cannot be translated, and where."""

    message: str
    line: int


def tokenise(text: str) -> list[HandlebarsToken] | Untranslatable:
    """Split a template into tokens, without the whitespace that `~` and standalone tags remove."""
    tokens: list[HandlebarsToken] = []
    trims: list[tuple[bool, bool]] = []
    offset = line = 0
    while (start := text.find("{{", offset)) >= 0:
        before = text[offset:start]
        escaped = before.endswith("\\")
        if escaped:
            before = before[:-1]
        first_line = line + 1
        line += before.count("\n")
        if before:
            tokens.append(HandlebarsToken("text", before, first_line))
            trims.append((False, False))
        if escaped and not before.endswith("\\"):
            # `\{{name}}` is the text {{name}}.
            tokens.append(HandlebarsToken("text", "{{", line + 1))
            trims.append((False, False))
            offset = start + 2
            continue
        tag = _tag(text, start)
        if isinstance(tag, str):
            return Untranslatable(tag, line + 1)
        content, end = tag
        trims.append((content.startswith("~"), content.endswith("~")))
        tokens.append(HandlebarsToken("tag", _join_sigil(content.strip("~").strip()), line + 1))
        line += text.count("\n", start, end)
        offset = end
    if text[offset:]:
        tokens.append(HandlebarsToken("text", text[offset:], line + 1))
        trims.append((False, False))
    return _trimmed(tokens, trims)


def _tag(text: str, start: int) -> tuple[str, int] | str:
    """The content and the end offset of the tag that starts here, or an error message."""
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


def _join_sigil(content: str) -> str:
    """`# if x` is `#if x`."""
    return content[0] + content[1:].lstrip() if content[:1] in ("#", "/", "^", ">", "&") else content


def _trimmed(tokens: list[HandlebarsToken], trims: list[tuple[bool, bool]]) -> list[HandlebarsToken]:
    texts = [token.content for token in tokens]
    for index, token in enumerate(tokens):
        if token.kind == "text":
            continue
        alone = _leaves_no_line(token) and _starts_line(tokens, index) and _ends_line(tokens, index)
        left, right = trims[index]
        if index and tokens[index - 1].kind == "text" and (left or alone):
            before = texts[index - 1]
            texts[index - 1] = before.rstrip() if left else before.rstrip(" \t")
        if index + 1 < len(tokens) and tokens[index + 1].kind == "text" and (right or alone):
            after = texts[index + 1]
            texts[index + 1] = after.lstrip() if right else _without_line_end(after)
    return [
        replace(token, content=text)
        for token, text in zip(tokens, texts, strict=True)
        if token.kind == "tag" or text
    ]


def _without_line_end(text: str) -> str:
    found = _LINE_END.match(text)
    return text[found.end() :] if found else text.lstrip(" \t")


def _leaves_no_line(token: HandlebarsToken) -> bool:
    word = token.content.split(maxsplit=1)[0] if token.content.strip() else ""
    return token.content[:1] in _SIGILS or word in _STANDALONE


def _starts_line(tokens: list[HandlebarsToken], index: int) -> bool:
    if index == 0:
        return True
    before = tokens[index - 1]
    line = before.content[before.content.rfind("\n") + 1 :]
    return before.kind == "text" and not line.strip(" \t") and (index == 1 or "\n" in before.content)


def _ends_line(tokens: list[HandlebarsToken], index: int) -> bool:
    if index + 1 == len(tokens):
        return True
    after = tokens[index + 1]
    if after.kind == "tag":
        return False
    return bool(_LINE_END.match(after.content)) or (
        index + 2 == len(tokens) and not after.content.strip(" \t")
    )
