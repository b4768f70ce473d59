"""Writes the reference page about the package: `python -m tests.package.package_page`."""

from __future__ import annotations

import re
import tempfile
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.package.bundle import pack
from tests.package.dependencies import EXTRAS, direct, installed, licence
from tests.package.distributions import Distributions, build
from tests.stdio_server_process import ROOT

PAGE: Final = ROOT / "docs" / "reference" / "package.md"
#: What each dependency is for. The page is not written if one is missing.
REASONS: Final = {
    "anyascii": "makes names from titles in any script",
    "apsw": "SQLite, in a version of its own: the system's is often too old",
    "asyncpg": "driver for PostgreSQL",
    "click": "options, help and completion of the command line",
    "httptools": "parses HTTP requests",
    "markdown-it-py": "Markdown in the web UI",
    "minijinja": "templates of prompts and of the web UI",
    "msgspec": "JSON, and validation of everything that comes from outside",
    "nh3": "removes unsafe HTML from what the web UI shows",
    "pygments": "highlights code in the web UI",
    "pyjwt": "verifies access tokens; the extra `crypto` verifies their signatures",
    "pyyaml": "front matter of prompt files",
    "rich": "draws the task board in the terminal",
    "rtoml": "prompt files in TOML",
    "tomlkit": "edits the configuration files of clients and keeps their comments",
    "uvicorn": "HTTP server",
    "uvloop": "event loop of the HTTP server; not on Windows",
    "watchfiles": "notices changed prompt files",
}

_INTRODUCTION: Final = """\
# Package

What an installation of Dittybag consists of. `python -m tests.package.package_page` writes this page, and a test fails if it is out of date.

"""
_FILES: Final = """\
## Files of a version

| file | size | contents |
|---|---|---|
| wheel | {wheel} MB | the package `dittybag`, unpacked {unpacked} MB: Python source with types, SQL migrations, templates, scripts and styles of the web UI; the licence. No tests, no documentation |
| source distribution | {sdist} MB | the same, with what a build of the wheel needs: `pyproject.toml`, README, change log and licence |
| bundle for desktop clients (`.mcpb`) | {bundle} MB | the wheel, a manifest, an icon, and the list of pinned dependencies, which the client's [uv](https://docs.astral.sh/uv/) installs |
| bill of materials (`.cdx.json`) | | CycloneDX 1.6: the packages below with versions and licences |

`make dist`, `make bundle` and `make sbom` write them into `dist/`. `make dist` also installs wheel and source distribution with every supported Python of the machine, in an empty environment, and tries
them out. `make packages` validates all of them, and `server.json`, the entry of the MCP registry.

The wheel is the same for every system and every Python from 3.11. With all dependencies and extras, an installation takes about {installation} MB on Linux.

"""


def measure(built: Distributions, bundle: Path) -> dict[str, float]:
    """Return the sizes of the files of a version and of an installation, in megabytes."""
    with zipfile.ZipFile(built.wheel) as wheel:
        unpacked = sum(member.file_size for member in wheel.infolist())
    packages = sum(map(_installed_bytes, installed(*EXTRAS).values()))
    sizes = {
        "wheel": built.wheel.stat().st_size,
        "unpacked": unpacked,
        "sdist": built.sdist.stat().st_size,
        "bundle": bundle.stat().st_size,
        "installation": packages + unpacked,
    }
    return {name: size / 1e6 for name, size in sizes.items()}


def stated_sizes(page: str) -> dict[str, float]:
    """Return the sizes that a page states."""
    pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[0-9.]+)", re.escape(_FILES))
    found = re.search(pattern, page)
    assert found is not None, "the page has other text about the files"
    return {name: float(size) for name, size in found.groupdict().items()}


def page(sizes: dict[str, float]) -> str:
    """Return the text of the page."""
    rounded = {name: f"{size:.0f}" if size >= 10 else f"{size:.1f}" for name, size in sizes.items()}
    return _INTRODUCTION + _FILES.format(**rounded) + _dependencies() + _extras() + _indirect()


def _dependencies() -> str:
    rows = "".join(f"| {_row(requirement)} |\n" for requirement in direct())
    return f"## Dependencies\n\n| package | from version | for | licence |\n|---|---|---|---|\n{rows}\n"


def _extras() -> str:
    rows = "".join(
        f"| `dittybag[{extra}]` | {_row(requirement)} |\n"
        for extra in EXTRAS
        for requirement in direct(extra)
    )
    return f"## Extras\n\n| extra | package | from version | for | licence |\n|---|---|---|---|---|\n{rows}\n"


def _row(requirement: Requirement) -> str:
    name = canonicalize_name(requirement.name)
    lowest = str(requirement.specifier).removeprefix(">=")
    return f"{name} | {lowest} | {REASONS[name]} | {licence(distribution(name))}"


def _indirect() -> str:
    """Describe the packages that the dependencies need themselves."""
    known = {canonicalize_name(requirement.name) for extra in EXTRAS for requirement in direct(extra)}
    known |= {canonicalize_name(requirement.name) for requirement in direct()}
    everything = installed(*EXTRAS)
    rows = "".join(
        f"| {name} | {', '.join(_users(name, everything))} | {licence(package)} |\n"
        for name, package in everything.items()
        if name not in known
    )
    return (
        "## Packages that the dependencies need\n\nOn Python 3.11; newer versions may need fewer.\n\n"
        f"| package | needed by | licence |\n|---|---|---|\n{rows}"
    )


def _users(name: str, everything: dict[str, Distribution]) -> list[str]:
    """Return the packages that name another one as a requirement."""
    return [
        user
        for user, package in everything.items()
        if any(canonicalize_name(Requirement(line).name) == name for line in package.requires or [])
    ]


def _installed_bytes(package: Distribution) -> int:
    """Return the size of a package's files, without compiled Python, which is written later."""
    files = [Path(str(file.locate())) for file in package.files or [] if file.suffix != ".pyc"]
    return sum(file.stat().st_size for file in files if file.is_file())


def main() -> None:
    """Build the files of a version and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        built = build(Path(folder))
        bundle = Path(folder) / "dittybag.mcpb"
        pack(built.wheel, bundle)
        PAGE.write_text(page(measure(built, bundle)))


if __name__ == "__main__":
    main()
