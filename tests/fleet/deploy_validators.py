"""Validates the files in `deploy/`, each with a tool for it: `python -m tests.fleet.deploy_validators`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.fleet import nginx_process
from tests.programs import SYSTEMD
from tests.stdio_server_process import ROOT

DEPLOY: Final = ROOT / "deploy"
#: The linter is a wheel that contains the program.
_HADOLINT: Final = Path(sys.executable).parent / "hadolint"
_SECONDS: Final = 30


def lint_dockerfile(text: str, folder: Path) -> str:
    """Lint a Dockerfile and return what hadolint prints. Raises `CalledProcessError`."""
    file = _copy(text, folder / "Dockerfile")
    return _run(_HADOLINT, "--no-color", "--failure-threshold", "style", file)


def validate_compose(text: str, folder: Path) -> str:
    """Check a file against the schema of the compose specification. Raises `CalledProcessError`."""
    file = _copy(text, folder / "compose.yaml")
    return _run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", file)


def check_nginx(text: str, folder: Path) -> str:
    """Let nginx check a configuration and return what it prints. Raises `CalledProcessError`."""
    main = nginx_process.configure(folder, ["127.0.0.1:8765", "127.0.0.1:8766"], 8080, text)
    return _run(nginx_process.find_nginx(), "-t", "-p", folder, "-c", main)


def check_unit(text: str, folder: Path) -> str:
    """Let systemd check a unit, and rate how well it confines the server. Raises `CalledProcessError`."""
    program = SYSTEMD.require()
    # systemd checks that the program exists.
    file = _copy(text.replace("/opt/dittybag/bin/dittybag", "/bin/true"), folder / "dittybag.service")
    warnings = _run(program, "verify", file)
    if warnings:
        raise subprocess.CalledProcessError(1, program, warnings)
    rated = _run(program, "security", "--offline=yes", "--threshold=20", file)
    return rated.splitlines()[-1]


VALIDATORS: Final[dict[str, Callable[[str, Path], str]]] = {
    "Dockerfile": lint_dockerfile,
    "compose.yaml": validate_compose,
    "nginx.conf": check_nginx,
    "dittybag.service": check_unit,
}


def _copy(text: str, file: Path) -> Path:
    file.write_text(text)
    return file


def _run(*command: str | Path) -> str:
    return subprocess.run(
        [*map(str, command)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
        check=True,
    ).stdout


def main() -> int:
    """Print the output of every validator. Returns the exit status."""
    for name, validate in VALIDATORS.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                printed = validate((DEPLOY / name).read_text(), Path(folder))
            except subprocess.CalledProcessError as error:
                print(f"error: deploy/{name}\n{error.stdout}", file=sys.stderr)
                return 1
        print(f"deploy/{name}: {validate.__name__}: {printed.strip() or 'no problem'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
