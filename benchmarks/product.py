"""Installations of Dittybag to measure: this source tree, and another one to compare it with.

Each is installed into its own environment, without the editable mode and the development tools, as users have
it. Workspaces are made with the installed command, so that every version gets a file of its own schema.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import time
import venv
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from tests.interop.environments import ROOT, SetupFailed

from benchmarks.client_process import ToolCalls
from benchmarks.peers import CACHE
from benchmarks.report_output import print_progress
from benchmarks.sample_data import TextGenerator

#: Exists in complete installations; its time is that of the last use.
_STAMP: Final = "complete"
_UNUSED_SECONDS: Final = 86_400


class Product(Struct, frozen=True):
    """An installation of Dittybag."""

    #: What tables call it.
    title: str
    home: Path

    @property
    def python(self) -> str:
        return str(self.home / "bin" / "python")

    @property
    def command(self) -> str:
        return str(self.home / "bin" / "dittybag")

    @property
    def version(self) -> str:
        """The version of the package."""
        result = subprocess.run([self.command, "--version"], check=True, capture_output=True, text=True)
        return result.stdout.split()[-1]

    def run(self, *arguments: str, data: Path) -> Any:
        """Run a command with `--json`, and return the data of its result."""
        result = subprocess.run(
            [self.command, *arguments, "--json"],
            check=False,
            capture_output=True,
            env={**os.environ, "DITTYBAG_HOME": str(data)},
        )
        if result.returncode:
            raise SetupFailed(f"{self.title}: {result.stderr[-1000:].decode(errors='replace')}")
        return msgspec.json.decode(result.stdout)["data"]


def products(before: str | None) -> list[Product]:
    """Return this version, and with `before`, a folder or a Git revision, another one."""
    found = [_install("Dittybag", ROOT)]
    if before is not None:
        folder = Path(before)
        found.append(_install("Dittybag before", folder if folder.is_dir() else _checked_out(before)))
    return found


def _install(title: str, source: Path) -> Product:
    """Install a source tree, unless this version of it is installed."""
    if not (source / "pyproject.toml").is_file():
        raise SetupFailed(f"{source} is not a source tree of Dittybag: it has no pyproject.toml")
    home = CACHE / f"product-{_digest(source)}"
    product = Product(title, home)
    if (home / _STAMP).exists():
        (home / _STAMP).touch()
        return product
    _remove_unused()
    print_progress(f"Installing {title} from {source} ...")
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", product.python, "install", "--quiet"]
    options = ["--disable-pip-version-check", "--constraint", str(ROOT / "constraints.txt")]
    # The Makefile sets a relative path of the constraints.
    without = ("PIP_CONSTRAINT", "PIP_REQUIRE_VIRTUALENV")
    result = subprocess.run(
        [*pip, *options, f"{source}[postgres]"],
        check=False,
        capture_output=True,
        cwd=CACHE,
        env={name: value for name, value in os.environ.items() if name not in without},
    )
    if result.returncode:
        raise SetupFailed(result.stderr[-3000:].decode(errors="replace"))
    (home / _STAMP).touch()
    return product


def _remove_unused() -> None:
    """Remove the installations that no benchmark used for a day."""
    for stamp in CACHE.glob(f"product-*/{_STAMP}"):
        if time.time() - stamp.stat().st_mtime > _UNUSED_SECONDS:
            shutil.rmtree(stamp.parent)


def _digest(source: Path) -> str:
    """Return a digest of the package and of the files that describe it."""
    digest = hashlib.sha256(sys.version.encode())
    described = [*source.glob("*.toml"), *source.glob("*.py")]
    for file in sorted([*described, *(source / "src").rglob("*")]):
        if file.is_file() and file.suffix != ".pyc":
            digest.update(str(file.relative_to(source)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def _checked_out(revision: str) -> Path:
    """Return a folder with the files of a Git revision."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"]
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    if found.returncode:
        raise SetupFailed(f"{revision} is neither a folder nor a Git revision")
    target = CACHE / f"source-{found.stdout.strip()}"
    if not target.exists():
        archive = ["git", "-C", str(ROOT), "archive", found.stdout.strip()]
        packed = subprocess.run(archive, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(target, filter="data")
    return target


class Workspace(Struct, frozen=True):
    """A workspace of a product, with calls that read its prompts."""

    product: Product
    folder: Path
    #: The path or URL of its database.
    database: str
    #: The titles and ids of its prompts. The content of each contains its title.
    prompts: list[tuple[str, str]]

    @property
    def variables(self) -> dict[str, str]:
        return {"DITTYBAG_HOME": str(self.folder)}

    def reads(self, tool: str, *, vary: bool = False) -> ToolCalls:
        """Return calls of `read` or `get_prompt`."""
        argument = "ref" if tool == "read" else "id"
        return ToolCalls(
            tool,
            [
                ({argument: key}, title, note(place, vary=vary))
                for place, (title, key) in enumerate(self.prompts)
            ],
        )


def note(place: int, *, vary: bool) -> str:
    """Return a text of up to 300 characters that gives a call its length."""
    return "x" * (place * 7919 % 300) if vary else ""


def echoes(count: int, *, vary: bool = False) -> ToolCalls:
    """Return calls of the tool of the other servers."""
    texts = [f"message {place} of {count}" for place in range(count)]
    return ToolCalls(
        "echo", [({"text": text}, text, note(place, vary=vary)) for place, text in enumerate(texts)]
    )


def fill_workspace(product: Product, folder: Path, prompts: int, database: str | None = None) -> Workspace:
    """Make a workspace with some prompts in a new folder."""
    folder.mkdir()
    source, url = folder / "prompts.csv", database or str(folder / "workspace.db")
    generator = TextGenerator("installed product")
    drafts = [generator.draft() for _ in range(prompts)]
    with source.open("w", newline="") as file:
        rows = ((each.title, f"{each.title}: {each.content}") for each in drafts)
        csv.writer(file).writerows([("act", "prompt"), *rows])
    product.run("import", str(source), "--as", "csv", "--db", url, data=folder)
    listed = product.run("prompt", "list", "--limit", str(prompts), "--db", url, data=folder)
    return Workspace(product, folder, url, [(each["title"], each["id"]) for each in listed["prompts"]])
