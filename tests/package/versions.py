"""The places that name the version of Dittybag: `python -m tests.package.versions [VERSION]` compares them.

With a version, the change log must have a section for it, too. It runs without installed packages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.package import changelog

ROOT: Final = Path(__file__).resolve().parents[2]
VERSION: Final = r"\d+\.\d+\.\d+"
_JSON: Final = rf'"version": "({VERSION})"'
#: Files, and what comes before and after each version in them.
_PLACES: Final = {
    "src/dittybag/__init__.py": rf'^__version__ = "({VERSION})"$',
    "server.json": _JSON,
    "bundle/manifest.json": _JSON,
    "plugins/*/.*-plugin/plugin.json": _JSON,
    "plugins/gemini/gemini-extension.json": _JSON,
    "docs/reference/tools.md": rf"^Server name `dittybag`, version ({VERSION});",
}


class Place(NamedTuple):
    """A version in a file, and where it is."""

    path: Path
    span: tuple[int, int]
    version: str

    def __str__(self) -> str:
        return f"{self.version}  {self.path.relative_to(ROOT)}"


def find_places() -> Iterator[Place]:
    """Yield all places. Raises `LookupError` for a file without a version."""
    for pattern, expression in _PLACES.items():
        paths = sorted(ROOT.glob(pattern))
        if not paths:
            raise LookupError(f"there is no file {pattern}")
        for path in paths:
            found = [*re.finditer(expression, path.read_text(), re.MULTILINE)]
            if not found:
                raise LookupError(f"{path.relative_to(ROOT)} names no version")
            yield from (Place(path, match.span(1), match[1]) for match in found)


def set_version(version: str) -> list[Path]:
    """Write a version into all places. Returns the files."""
    places = list(find_places())
    # From the end of each file, so that positions stay right.
    for path, (start, end), _ in reversed(places):
        text = path.read_text()
        path.write_text(text[:start] + version + text[end:])
    return sorted({place.path for place in places})


def find_problems(version: str | None = None) -> list[str]:
    """Return the places that do not name the version of the package, or the given one."""
    places = list(find_places())
    expected = version or places[0].version
    problems = [f"{place} is not {expected}" for place in places if place.version != expected]
    if version is not None and not changelog.section(changelog.read(), version):
        problems.append(f"CHANGELOG.md has no section `## {version} - DATE` with text")
    return problems


def main(version: str | None = None) -> int:
    """Print all places, or what is wrong with them. Returns the exit status."""
    try:
        problems = find_problems(version)
    except LookupError as error:
        problems = [str(error)]
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if not problems:
        print(*find_places(), sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
