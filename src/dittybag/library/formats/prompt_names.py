"""Prompt keys: derive the name of a prompt from the path of its file.

A key is the path without its extension, joined by dots: `git/commit.md` is `git.commit`. A skill or a Fabric
pattern is named after its folder. Leading folders that only contain the collection (`.claude/commands/`,
`data/patterns/`, `prompts/` and so on) are dropped, and once more inside a plugin:
`plugins/git/commands/commit.md` is `git.commit`. A colon separates the library from the key, so colons become
dots. A key only depends on the path, so it does not change when other files are added.
"""

from __future__ import annotations

import re
from typing import Final

from dittybag.domain.text import composed
from dittybag.library.formats.summary_text import normalise_title

MAX_KEY_LENGTH: Final = 200

CONTAINERS: Final = frozenset(
    {".claude", "commands", "skills", "prompts", "patterns", "templates", "plugins"}
)
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff:]")


def key_of(format: str, file: str) -> str:
    """The key of the prompt in `file`; empty for a top-level `SKILL.md`."""
    parts = composed(file).split("/")
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
    """Why a key is not valid; None if it is valid."""
    if not key.strip(". "):
        return "its path contains no characters for a name"
    if len(key) > MAX_KEY_LENGTH:
        return f"its path results in a name of {len(key)} characters; the maximum is {MAX_KEY_LENGTH}"
    if _FORBIDDEN.search(key):
        return "its path contains a control character"
    return None


def skill_key(name: str | None) -> str:
    """The key of a top-level skill, from the `name` in its front matter."""
    key = "-".join((normalise_title(name) or "").replace(":", " ").replace("/", " ").split())
    return "skill" if key_problem(key) else key


def _stem(name: str) -> str:
    stem, dot, _ = name.rpartition(".")
    return stem if dot and stem else name


def _container_depth(parts: list[str]) -> int:
    """The number of leading folders that only contain the collection. The last part is always kept."""
    depth = 0
    while depth < len(parts) - 1:
        if parts[depth] in CONTAINERS:
            depth += 1
        elif parts[depth] == "data" and parts[depth + 1] == "patterns" and depth + 2 < len(parts):
            depth += 2
        else:
            break
    return depth
