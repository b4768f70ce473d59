"""Paths: what a prompt is called that lives in a file of this path.

A key is the path without its extension, joined by dots: `git/commit.md` is `git.commit`. A skill or a
Fabric pattern is called by its folder. Folders that only hold the collection are left out at the front
(`.claude/commands/`, `data/patterns/`, `prompts/` and the like), and once more inside a plugin:
`plugins/git/commands/commit.md` is `git.commit`. A colon separates libraries from keys, so it becomes a dot
too. A key depends on nothing but the path, so it stays the same whatever else is added to a library.
"""

from __future__ import annotations

import re
from typing import Final

from dittybag.library.formats.summary_text import titled

KEY_LENGTH: Final = 200

CONTAINERS: Final = frozenset(
    {".claude", "commands", "skills", "prompts", "patterns", "templates", "plugins"}
)
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff:]")


def key_of(format: str, file: str) -> str:
    """The key of the prompt in `file`; empty for a `SKILL.md` at the top, which is called by its own name."""
    parts = file.split("/")
    if format in ("skill", "fabric"):
        parts = parts[:-1]
    else:
        parts[-1] = _stem(parts[-1])
    depth = _container_depth(parts)
    named = parts[depth:]
    if depth and parts[depth - 1] == "plugins" and len(named) > 2 and named[1] in CONTAINERS:
        del named[1]
    return ".".join(named).replace(":", ".")


def key_problem(key: str) -> str | None:
    """Why this cannot be the key of a prompt, if it cannot."""
    if not key.strip(". "):
        return "its path leaves no name for a prompt"
    if len(key) > KEY_LENGTH:
        return f"its path makes a name of {len(key)} characters; at most {KEY_LENGTH} are allowed"
    if _FORBIDDEN.search(key):
        return "its path has a control character, which the name of a prompt must not have"
    return None


def own_key(name: str | None) -> str:
    """The key of a skill that is a whole library, from what it calls itself."""
    key = "-".join((titled(name) or "").replace(":", " ").replace("/", " ").split())
    return "skill" if key_problem(key) else key


def _stem(name: str) -> str:
    stem, dot, _ = name.rpartition(".")
    return stem if dot and stem else name


def _container_depth(parts: list[str]) -> int:
    """How many leading folders only hold the collection; the last part always stays."""
    depth = 0
    while depth < len(parts) - 1:
        if parts[depth] in CONTAINERS:
            depth += 1
        elif parts[depth] == "data" and parts[depth + 1] == "patterns" and depth + 2 < len(parts):
            depth += 2
        else:
            break
    return depth
