"""The packages that an installation of Dittybag brings along."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

EXTRAS: Final = ("postgres", "oauth")
#: The oldest supported Python, on Linux, needs the most packages.
_MARKERS: Final = {
    "python_version": "3.11",
    "python_full_version": "3.11.0",
    "sys_platform": "linux",
    "platform_system": "Linux",
}


def direct(*extras: str) -> list[Requirement]:
    """Return what `pyproject.toml` names: the dependencies of these extras, or those without an extra."""
    return _requirements(distribution("dittybag"), extras or ("",), only=bool(extras))


def installed(*extras: str) -> dict[str, Distribution]:
    """Return all packages that are installed with these extras, by name, without Dittybag itself."""
    found: dict[str, Distribution] = {}
    waiting = _requirements(distribution("dittybag"), ("", *extras))
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        package = distribution(name)
        if name not in found:
            found[name] = package
            waiting += _requirements(package, ("", *requirement.extras))
    return dict(sorted(found.items()))


def licence(package: Distribution) -> str:
    """Return the licence that a package names in its metadata."""
    fields = package.metadata
    if "License-Expression" in fields:
        return fields["License-Expression"]
    classifiers = [line for line in fields.get_all("Classifier") or [] if line.startswith("License ::")]
    return ", ".join(line.rpartition(" :: ")[2] for line in classifiers) or fields["License"]


def _requirements(package: Distribution, extras: Iterable[str], *, only: bool = False) -> list[Requirement]:
    """Return the requirements that hold for one of the extras; with `only`, not those without extras."""
    parsed = [Requirement(line) for line in package.requires or []]
    return [
        requirement
        for requirement in parsed
        if any(_holds(requirement, extra) for extra in extras) and not (only and _holds(requirement, ""))
    ]


def _holds(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({**_MARKERS, "extra": extra})
