"""The text of a published file: where it comes from, and whether somebody has edited it."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Final

from msgspec import Struct

_NO_DIGEST: Final = "0" * 64
_DIGEST: Final = re.compile(r"Published by Dittybag [^\n]{0,2000}? sha256:([0-9a-f]{64})")
#: What ends a comment in one of the formats.
_UNSAFE: Final = re.compile(r"[^ -~]|--|[<>]")


class PublishedArgument(Struct, frozen=True):
    """An argument of a prompt."""

    name: str
    required: bool = False


class PublishedPrompt(Struct, frozen=True, kw_only=True):
    """A prompt for the files of clients."""

    #: The names of its file and of its skill.
    name: str
    skill_name: str
    #: Where it comes from, in words.
    origin: str
    #: One line; never empty.
    description: str
    arguments: tuple[PublishedArgument, ...] = ()
    #: Its text, in which a number stands for the argument at that index. `None` if it is a template that does
    #: more than insert values.
    parts: tuple[str | int, ...] | None
    #: The text for clients without arguments: a template says how to replace its variables.
    plain: str
    #: Whether it has several messages, whose roles are lines of the text.
    has_roles: bool = False


class NativeText(Struct, frozen=True):
    """The text of a file, and how what the model gets differs from the rendered prompt."""

    text: str
    differences: tuple[str, ...] = ()


class NotPublishable(Exception):
    """A prompt cannot be written in the format of a client; the message says why."""


def header(origin: str) -> str:
    """Return the line that says where a file comes from, for a comment. It has no digest yet."""
    return (
        f"Published by Dittybag from {_UNSAFE.sub('_', origin)}. Edit it there: dittybag publish then "
        f"updates this file. sha256:{_NO_DIGEST}"
    )


def seal(text: str) -> str:
    """Put the digest of a text into its header."""
    return text.replace(f"sha256:{_NO_DIGEST}", f"sha256:{sha256(text.encode()).hexdigest()}", 1)


def without_digest(text: str) -> str:
    """Return a published text as it was before it was sealed."""
    found = _DIGEST.search(text)
    return text if found is None else text[: found.start(1)] + _NO_DIGEST + text[found.end(1) :]


def published_digest(text: str) -> str | None:
    """Return the digest that a text had when it was published; `None` if it has no header."""
    found = _DIGEST.search(text)
    return None if found is None else found[1]


def is_unedited(text: str) -> bool:
    """Whether a text is exactly as it was published."""
    digest = published_digest(text)
    return digest is not None and sha256(without_digest(text).encode()).hexdigest() == digest


def quoted(value: str) -> str:
    """Return a value in double quotes that YAML and TOML read alike."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in text)
