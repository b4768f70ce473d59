"""What the model gets from a published file: each client's own rules, as its documentation states them."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping
from typing import Final

_FRONT_MATTER: Final = re.compile(r"(?s)\A---\n.*?^---\n", re.MULTILINE)
#: A placeholder of Claude Code, perhaps with the backslash that makes it text.
_PLACEHOLDER: Final = re.compile(r"(\\?)\$(?:ARGUMENTS\[(\d+)\]|ARGUMENTS|(\d+))")


def typed_arguments(client: str, names: tuple[str, ...], values: Mapping[str, str]) -> str:
    """Return what a user types after the name of a command, for these values."""
    if not any(name in values for name in names):
        return ""
    if client == "claude-code" and len(names) > 1:
        last = max(index for index, name in enumerate(names) if name in values)
        return " ".join(shlex.quote(values.get(name, "")) for name in names[: last + 1])
    if len(names) == 1:
        return values[names[0]]
    return " ".join(f"{name}={shlex.quote(values[name])}" for name in names if name in values)


def split_arguments(client: str, typed: str) -> list[str]:
    """Return the arguments that a client finds in what was typed after the name of a command."""
    if not typed:
        return []
    return shlex.split(typed) if client == "claude-code" else [typed]


def model_text(client: str, file: str, typed: str, values: Mapping[str, str], command: str) -> str:
    """Return what the model gets when a user runs the published command.

    `typed` is what follows the name of the `command`; `values` are what the user enters if the client asks.
    """
    if client == "claude-code":
        return _claude_code(_body(file), typed)
    if client == "gemini":
        text = tomllib.loads(file)["prompt"]
        if "{{args}}" in text:
            return str(text).replace("{{args}}", typed)
        return f"{text}\n\n/{command} {typed}" if typed else str(text)
    if client == "vscode":
        return re.sub(r"\$\{input:(\w+)\}", lambda found: values.get(found[1], ""), _body(file))
    if client == "codex":
        # The skill format has a blank line after the front matter.
        return _body(file).removeprefix("\n")
    # Cursor and AGENTS.md: the model gets the file as it is.
    return f"{file}\n\n{typed}" if typed and client == "cursor" else file


def _body(file: str) -> str:
    return _FRONT_MATTER.sub("", file, count=1)


def _claude_code(body: str, typed: str) -> str:
    words = split_arguments("claude-code", typed) if "$ARGUMENTS[" in body else []

    def replace(found: re.Match[str]) -> str:
        escaped, indexed, short = found.groups()
        if escaped:
            return found[0][1:]
        index = indexed or short
        if index is None:
            return typed
        return words[int(index)] if int(index) < len(words) else found[0]

    text = _PLACEHOLDER.sub(replace, body)
    has_any = any(not found[1] for found in _PLACEHOLDER.finditer(body))
    return text if has_any or not typed else f"{text}\n\nARGUMENTS: {typed}"
