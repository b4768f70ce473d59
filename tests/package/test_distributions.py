"""The wheel and the source distribution contain what they should, and nothing else."""

from __future__ import annotations

import re
import subprocess
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser

import dittybag
from tests.package.distributions import Distributions, check
from tests.stdio_server_process import ROOT

NAME = f"dittybag-{dittybag.__version__}"
REPOSITORY = "https://github.com/dittybag/dittybag"


def tracked_files() -> set[str]:
    """Return the files of the package, with their paths below `src/`."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout
    return {line.removeprefix("src/") for line in listing.splitlines() if (ROOT / line).exists()}


def metadata(built: Distributions) -> Message:
    with zipfile.ZipFile(built.wheel) as wheel:
        return Parser().parsestr(wheel.read(f"{NAME}.dist-info/METADATA").decode())


def test_the_wheel_contains_the_package_and_nothing_else(distributions: Distributions) -> None:
    with zipfile.ZipFile(distributions.wheel) as wheel:
        names = set(wheel.namelist())
    information = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    assert names == tracked_files() | {f"{NAME}.dist-info/{name}" for name in information}
    assert "dittybag/py.typed" in names
    for ending in (".sql", ".html", ".css", ".js", ".svg"):
        assert any(name.endswith(ending) for name in names), ending


def test_the_source_distribution_contains_what_its_build_needs(distributions: Distributions) -> None:
    with tarfile.open(distributions.sdist) as sdist:
        names = {member.name.removeprefix(f"{NAME}/") for member in sdist.getmembers()}
    top = {"CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
    # The build backend always adds the file that says what it leaves out.
    assert names == {f"src/{name}" for name in tracked_files()} | top | {".gitignore"}


def test_the_checkers_of_the_index_accept_both_files(distributions: Distributions) -> None:
    printed = check(distributions)
    assert printed.count("PASSED") == 2
    assert ": OK" in printed


def test_the_readme_has_only_absolute_links_on_the_index(distributions: Distributions) -> None:
    text = str(metadata(distributions).get_payload())
    targets = re.findall(r'(?:\]\(|src(?:set)?=")([^)"]+)', text)
    assert len(targets) > 40
    for target in targets:
        assert target.startswith("https://"), target
        if target.startswith(REPOSITORY):
            path = re.sub(rf"{REPOSITORY}/(?:blob|raw)/main/", "", target).partition("#")[0]
            assert (ROOT / path).exists(), target
    assert "![The web UI" in text
    assert f"]({REPOSITORY}/raw/main/docs/images/tour.gif)" in text


def test_the_metadata_names_versions_extras_and_addresses(distributions: Distributions) -> None:
    found = metadata(distributions)
    versions = {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13, 14)}
    assert versions <= set(found.get_all("Classifier", []))
    assert {"postgres", "oauth"} <= set(found.get_all("Provides-Extra", []))
    addresses = [line.partition(", ")[2] for line in found.get_all("Project-URL", [])]
    assert REPOSITORY in addresses
    assert all(address.startswith(REPOSITORY) for address in addresses)
    assert found["License-Expression"] == "Apache-2.0"
    # Other places that need the address repeat it.
    assert set(re.findall(r"https://github\.com/[\w-]+/[\w-]+", (ROOT / "pyproject.toml").read_text())) == {
        REPOSITORY
    }
