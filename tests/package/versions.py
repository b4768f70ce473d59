"""The version in all files, and what the change log says about it.

`python -m tests.package.versions` compares the files, and these commands do more:

- `check VERSION`: all files name this version, and the change log has a section for it;
- `set VERSION`: write it into all files, and turn `## Unreleased` of the change log into its section;
- `notes VERSION`: print the section, with links into the repository at its tag.

It runs without installed packages.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
CHANGE_LOG: Final = ROOT / "CHANGELOG.md"
UNRELEASED: Final = "## Unreleased\n"
_VERSION: Final = r"\d+\.\d+\.\d+"
_JSON: Final = rf'"version": "({_VERSION})"'
#: Files, and what comes before and after each version in them.
_PLACES: Final = {
    "src/dittybag/__init__.py": rf'^__version__ = "({_VERSION})"$',
    "server.json": _JSON,
    "bundle/manifest.json": _JSON,
    "plugins/*/.*-plugin/plugin.json": _JSON,
    "plugins/gemini/gemini-extension.json": _JSON,
    "docs/reference/tools.md": rf"^Server name `dittybag`, version ({_VERSION});",
}
_LINK: Final = re.compile(r"(\]\()(?!\w+:|#)([^)]+)\)")


class Wrong(Exception):
    """Something does not agree. The message says what."""


class Place(NamedTuple):
    """A version in a file, and where it is."""

    path: Path
    span: tuple[int, int]
    version: str

    def __str__(self) -> str:
        return f"{self.version}  {self.path.relative_to(ROOT)}"


def find_places() -> list[Place]:
    """Return all places. Raises `Wrong` for a file without a version."""
    return [place for pattern, expression in _PLACES.items() for place in _find(pattern, expression)]


def _find(pattern: str, expression: str) -> Iterator[Place]:
    paths = sorted(ROOT.glob(pattern))
    if not paths:
        raise Wrong(f"there is no file {pattern}")
    for path in paths:
        found = [*re.finditer(expression, path.read_text(), re.MULTILINE)]
        if not found:
            raise Wrong(f"{path.relative_to(ROOT)} names no version")
        yield from (Place(path, match.span(1), match[1]) for match in found)


def check(version: str = "") -> None:
    """Print all places. Raises `Wrong` if they differ, or do not name this version."""
    places = find_places()
    expected = version or places[0].version
    wrong = [f"{place} is not {expected}" for place in places if place.version != expected]
    if wrong:
        raise Wrong("\n".join(wrong))
    if version:
        _section(version)
    print(*places, sep="\n")


def set_version(version: str) -> None:
    """Write the version into all places and the change log."""
    places = find_places()
    if not re.fullmatch(_VERSION, version):
        raise Wrong(f"the version must be three numbers, such as 0.3.0, not {version!r}")
    if _numbers(version) < _numbers(places[0].version):
        raise Wrong(f"version {version} is older than the current version {places[0].version}")
    text = CHANGE_LOG.read_text()
    if not _below(text, UNRELEASED):
        raise Wrong("CHANGELOG.md says nothing below `## Unreleased`; describe what changed for users")
    heading = f"{UNRELEASED}\n## {version} - {datetime.now(UTC):%Y-%m-%d}\n"
    CHANGE_LOG.write_text(text.replace(UNRELEASED, heading, 1))
    # From the end of each file, so that positions stay right.
    for path, (start, end), _ in reversed(places):
        text = path.read_text()
        path.write_text(text[:start] + version + text[end:])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def notes(version: str) -> None:
    """Print what the change log says about the version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    files = f"{project['urls']['Repository']}/blob/v{version}/"
    print(_LINK.sub(rf"\g<1>{files}\g<2>)", _section(version)))


def _section(version: str) -> str:
    found = _below(CHANGE_LOG.read_text(), rf"## {re.escape(version)} - \d{{4}}-\d\d-\d\d\n")
    if not found:
        raise Wrong(f"CHANGELOG.md has no section `## {version} - DATE` with text")
    return found


def _below(text: str, heading: str) -> str:
    """Return the text below a heading; empty if it has only further headings."""
    found = re.search(rf"^{heading}(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    body = found[1].strip() if found else ""
    return body if re.search(r"^(?!#)\S", body, re.MULTILINE) else ""


def main(command: str = "check", *version: str) -> int:
    """Run a command. Returns the exit status."""
    try:
        {"check": check, "set": set_version, "notes": notes}[command](*version)
    except Wrong as wrong:
        print(f"error: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
