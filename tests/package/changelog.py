"""The sections of the change log: `python -m tests.package.changelog VERSION` prints the notes of a release.

It runs without installed packages.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
FILE: Final = ROOT / "CHANGELOG.md"
UNRELEASED: Final = "## Unreleased"
_LINK: Final = re.compile(r"(\]\()(?!\w+:|#)([^)]+)\)")


def read() -> str:
    """Return the change log."""
    return FILE.read_text()


def section(text: str, version: str) -> str:
    """Return what the change log says about a version, without its heading; empty if it says nothing."""
    heading = rf"## {re.escape(version)} - \d{{4}}-\d\d-\d\d"
    return _below(text, heading)


def unreleased(text: str) -> str:
    """Return what changed since the last version."""
    return _below(text, UNRELEASED)


def _below(text: str, heading: str) -> str:
    found = re.search(rf"^{heading}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    body = found[1].strip() if found else ""
    # A heading alone describes nothing.
    return body if re.search(r"^(?!#)\S", body, re.MULTILINE) else ""


def release(text: str, version: str, date: str) -> str:
    """Return the change log with a section for the version, made of what was unreleased."""
    return text.replace(f"{UNRELEASED}\n", f"{UNRELEASED}\n\n## {version} - {date}\n", 1)


def notes(text: str, version: str) -> str:
    """Return the notes of a release. Links lead into the repository at its tag."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    files = f"{project['urls']['Repository']}/blob/v{version}/"
    return _LINK.sub(rf"\g<1>{files}\g<2>)", section(text, version)) + "\n"


def main(version: str) -> int:
    """Print the notes of a version. Returns the exit status."""
    text = notes(read(), version)
    if not text.strip():
        print(f"error: CHANGELOG.md has no section `## {version} - DATE` with text", file=sys.stderr)
        return 1
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
