"""Packs the MCPB bundle for desktop clients: `python -m tests.package.bundle`.

The bundle contains the wheel, so it works before a version is on the package index. The client's uv installs
the dependencies, in the versions of `constraints.txt`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import dittybag
from tests.interop.environments import MCPB, NODE
from tests.package.distributions import DIST, build
from tests.stdio_server_process import ROOT

SOURCE: Final = ROOT / "bundle"
MANIFEST: Final = SOURCE / "manifest.json"
FILE: Final = DIST / f"dittybag-{dittybag.__version__}.mcpb"
_PACKER: Final = MCPB.home / "node_modules" / "@anthropic-ai" / "mcpb" / "dist"
_SECONDS: Final = 60

#: Resolves the variables of a manifest as clients do, with the packer's own code.
_RESOLVE: Final = """
import { readFileSync } from "node:fs";
const { getMcpConfigForManifest } = await import(process.argv[1]);
const [extensionPath, userConfig] = [process.argv[2], JSON.parse(process.argv[3])];
const manifest = JSON.parse(readFileSync(`${extensionPath}/manifest.json`));
const options = { manifest, extensionPath, userConfig, systemDirs: {}, pathSeparator: "/" };
const config = await getMcpConfigForManifest(options);
console.log(JSON.stringify(config));
"""


def pack(wheel: Path, bundle: Path) -> str:
    """Pack a wheel into a bundle and return what the packer prints. Raises `CalledProcessError`."""
    with tempfile.TemporaryDirectory() as folder:
        contents = Path(folder)
        for source in (*SOURCE.iterdir(), wheel):
            shutil.copy(source, contents)
        (contents / "pyproject.toml").write_text(_project(wheel.name))
        return _run_node(_PACKER / "cli" / "cli.js", "pack", contents, bundle)


def validate() -> str:
    """Validate the manifest and return what the validator prints. Raises `CalledProcessError`."""
    return _run_node(_PACKER / "cli" / "cli.js", "validate", MANIFEST)


def server_command(extension: Path, settings: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """Return the command and the variables with which a client starts an unpacked bundle."""
    library = (_PACKER / "index.js").as_uri()
    printed = _run_node(
        "--input-type=module", "--eval", _RESOLVE, library, extension, json.dumps(settings), cwd=extension
    )
    config = json.loads(printed)
    return [config["command"], *config["args"]], config["env"]


def _project(wheel: str) -> str:
    """Return the `pyproject.toml` of the bundle, from which the client's uv installs it."""
    pins = (ROOT / "constraints.txt").read_text().split()
    return f"""\
[project]
name = "dittybag-bundle"
version = "{dittybag.__version__}"
requires-python = ">=3.11"
dependencies = ["dittybag[postgres]"]

[tool.uv]
package = false
constraint-dependencies = {json.dumps(pins, indent=4)}

[tool.uv.sources]
dittybag = {{ path = "{wheel}" }}
"""


def _run_node(*arguments: str | Path, cwd: Path = ROOT) -> str:
    return subprocess.run(
        [str(NODE), *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
        check=True,
    ).stdout


def main() -> int:
    """Build the wheel, validate the manifest and pack both into `dist/`. Returns the exit status."""
    DIST.mkdir(exist_ok=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            print(validate().splitlines()[0])
            pack(build(Path(folder)).wheel, FILE)
    except subprocess.CalledProcessError as error:
        print(f"error: the packer failed\n{error.stdout}", file=sys.stderr)
        return 1
    print(f"{FILE.relative_to(ROOT)}  {FILE.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
