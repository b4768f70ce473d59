"""Which file of a library an include means. Both sides of the wire agree on it."""

from __future__ import annotations


def resolve_include(name: str, parent: str) -> str:
    """`./name` and `../name` are beside the file that includes them; other names begin at the library.

    A name that leads out of the library stays as it is, and is refused when it is to be read.
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
