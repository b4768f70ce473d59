"""Writes the software bill of materials of an installed wheel: `python -m tests.package.sbom`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

import dittybag
from tests.package.dependencies import EXTRAS
from tests.package.distributions import DIST, build, run_tool
from tests.package.installation import Installation
from tests.stdio_server_process import ROOT

FILE: Final = DIST / f"dittybag-{dittybag.__version__}.cdx.json"
_VERSION: Final = SchemaVersion.V1_6


def write(wheel: Path, file: Path, folder: Path) -> None:
    """Install the wheel with all extras into an empty folder, and describe what is installed there."""
    installation = Installation(
        folder, sys.executable, f"dittybag[{','.join(EXTRAS)}] @ {wheel.resolve().as_uri()}"
    )
    project = folder / "pyproject.toml"
    project.write_text(_project())
    run_tool(
        "cyclonedx_py",
        "environment",
        "--pyproject",
        project,
        "--spec-version",
        _VERSION.to_version(),
        "--output-reproducible",
        "--output-file",
        file,
        installation.python,
    )


def _project() -> str:
    """Return `pyproject.toml` with the version, which the file leaves to the build."""
    text = (ROOT / "pyproject.toml").read_text()
    return text.replace('dynamic = ["version", ', f'version = "{dittybag.__version__}"\ndynamic = [', 1)


def validate(text: str) -> str:
    """Return what is wrong with a bill of materials in JSON by the schema of CycloneDX, or an empty text."""
    error = JsonStrictValidator(_VERSION).validate_str(text)
    return "" if error is None else str(error)


def report(wheel: Path) -> tuple[str, bool]:
    """Write the file into `dist/` and validate it. Returns a line about it, and whether it is valid."""
    DIST.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        write(wheel, FILE, Path(folder))
    problem = validate(FILE.read_text())
    return f"{FILE.relative_to(ROOT)}: {problem or f'valid CycloneDX {_VERSION.to_version()}'}", not problem


def main() -> int:
    """Build the wheel, and write and validate the file. Returns the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        line, is_valid = report(build(Path(folder)).wheel)
    print(line)
    return 0 if is_valid else 1


if __name__ == "__main__":
    sys.exit(main())
