"""Other names of commands: those of the shell, as in `dittybag prompt ls`, and words that people try."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

#: The names that commands of a group also have, each for the first of these commands that the group has.
_ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "ls": ("list",),
    "cat": ("show",),
    "new": ("add", "create"),
    "rm": ("delete", "remove"),
    "mv": ("rename", "move"),
}
#: What people try at the top level, and the command that does it.
SYNONYMS: Final[Mapping[str, str]] = {
    "browse": "open",
    "find": "search",
    "grep": "search",
    "init": "connect",
    "install": "connect",
    "log": "history",
    "revert": "undo",
    "server": "serve",
    "setup": "connect",
    "start": "serve",
    "ui": "open",
    "web": "open",
}


def command_name(name: str, commands: Collection[str]) -> str:
    """Return the name of the command that `name` means in a group with these commands."""
    if name in commands:
        return name
    return next((command for command in _ALIASES.get(name, ()) if command in commands), name)


def aliases_of(command: str, commands: Collection[str]) -> list[str]:
    """Return the other names of a command in a group with these commands."""
    return [name for name in _ALIASES if name != command and command_name(name, commands) == command]
