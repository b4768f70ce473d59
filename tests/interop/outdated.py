"""Lists the pins of the environments that have newer versions: `python -m tests.interop.outdated`.

The host's updates read only files of package managers, so a scheduled workflow runs this.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from packaging.version import InvalidVersion, Version

from tests.interop.environments import ENVIRONMENTS, NODE, NPM, Environment

_SECONDS: Final = 120


class Unknown(Exception):
    """The registry did not say which versions there are."""


def find_outdated(
    environments: Iterable[Environment], released: Callable[[str, str], Iterable[str]]
) -> Iterator[tuple[str, str, str]]:
    """Yield package, pin and newest version of each outdated pin.

    Only versions with the same major number count, because the tests use two generations of some clients.
    `released`: the versions, by language and package.
    """
    for environment in environments:
        for package, pin in environment.pins.items():
            pinned = Version(pin)
            found = [version for text in released(environment.language, package) if (version := _parse(text))]
            newer = [
                version
                for version in found
                if version > pinned
                and version.major == pinned.major
                and (pinned.is_prerelease or not version.is_prerelease)
            ]
            if newer:
                yield package, pin, str(max(newer))


def _parse(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def ask_registry(language: str, package: str) -> list[str]:
    """Return the versions of a package."""
    name = package.partition("[")[0]
    if language == "node":
        found = json.loads(_run(str(NODE), str(NPM), "view", name, "versions", "--json"))
        return [found] if isinstance(found, str) else list(found)
    listing = _run(sys.executable, "-m", "pip", "index", "versions", "--pre", name)
    versions = re.search(r"^Available versions: (.*)$", listing, re.MULTILINE)
    if versions is None:
        raise Unknown(f"pip names no versions of {name}:\n{listing}")
    return versions[1].split(", ")


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode != 0:
        raise Unknown(f"{' '.join(command[1:])} failed:\n{done.stderr.strip()}")
    return done.stdout


def main() -> int:
    """Print the outdated pins. Returns the exit status, which is 1 if there are some."""
    try:
        outdated = list(find_outdated(ENVIRONMENTS, ask_registry))
    except Unknown as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for package, pin, newest in outdated:
        print(f"{package}: {pin} is pinned in tests/interop/environments.py, {newest} is the newest")
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main())
