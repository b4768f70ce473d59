"""Resolve the file names of includes, in the same way in parent and child."""

from __future__ import annotations


def resolve_include(name: str, parent: str) -> str:
    """Resolve `./name` and `../name` relative to the including file, other names relative to the library.

    A name that leads out of the library is returned unchanged, and refused when it is read.
    """
    if not name.startswith(("./", "../")):
        return name
    parts = parent.split("/")[:-1]
    for part in name.split("/"):
        if part == "..":
            if not parts:
                return name
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
