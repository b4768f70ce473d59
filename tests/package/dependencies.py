"""The packages that an installation of Dittybag brings along."""

from __future__ import annotations

from importlib.metadata import Distribution, distribution
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: The oldest supported Python, on Linux, needs the most packages.
_MARKERS: Final = {
    "python_version": "3.11",
    "python_full_version": "3.11.0",
    "sys_platform": "linux",
    "platform_system": "Linux",
}


def installed(*extras: str) -> dict[str, Distribution]:
    """Return all packages that are installed with these extras, by name, without Dittybag itself."""
    found: dict[str, Distribution] = {}
    waiting = _requirements(distribution("dittybag"), extras)
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        package = distribution(name)
        if name not in found:
            found[name] = package
            waiting += _requirements(package, tuple(requirement.extras))
    return dict(sorted(found.items()))


def _requirements(package: Distribution, extras: tuple[str, ...]) -> list[Requirement]:
    parsed = [Requirement(line) for line in package.requires or []]
    return [
        requirement for requirement in parsed if any(_holds(requirement, extra) for extra in ("", *extras))
    ]


def _holds(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({**_MARKERS, "extra": extra})
