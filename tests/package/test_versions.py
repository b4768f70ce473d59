"""All files name one version, and a release writes another into each of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

import dittybag
from tests.package.versions import CHANGE_LOG, ROOT, UNRELEASED, find_places

#: Newer than every version that there will be.
NEXT: Final = "1000.0.0"
CHANGED: Final = {CHANGE_LOG, *(place.path for place in find_places())}
MODULES: Final = ("tests/__init__.py", "tests/package/__init__.py", "tests/package/versions.py")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """What the commands read, with a change that is not released."""
    read = [ROOT / "pyproject.toml", *CHANGED, *(ROOT / name for name in MODULES)]
    for path in read:
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    text = CHANGE_LOG.read_text()
    assert text.count(UNRELEASED) == 1
    described = text.replace(UNRELEASED, f"{UNRELEASED}\n- A [new page](docs/index.md).\n")
    (tmp_path / "CHANGELOG.md").write_text(described)
    return tmp_path


def versions(copy: Path, *arguments: str) -> str:
    """Run a command on the copy. Returns what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.package.versions", *arguments],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == ("error: " in done.stderr), done
    return done.stdout + done.stderr


def contents(copy: Path) -> dict[Path, str]:
    return {path: (copy / path.relative_to(ROOT)).read_text() for path in CHANGED}


def test_all_files_name_the_version_of_the_package() -> None:
    assert {place.version for place in find_places()} == {dittybag.__version__}
    manifests = [*(ROOT / "plugins").rglob("*.json"), *ROOT.glob("*.json"), *ROOT.glob("*/manifest.json")]
    named = {path for path in manifests if '"version": "' in path.read_text()}
    assert named == {path for path in CHANGED if path.suffix == ".json"}


def test_a_new_version_is_in_every_file_and_the_change_log(copy: Path) -> None:
    before = contents(copy)
    assert versions(copy, "set", NEXT) == ""
    after = contents(copy)
    assert all(after[path] != before[path] for path in CHANGED)
    assert f"\n{UNRELEASED}\n## {NEXT} - {datetime.now(UTC):%Y}-" in after[CHANGE_LOG]
    assert versions(copy, "check", NEXT).count(NEXT) == len(find_places())
    new_page = f"https://github.com/dittybag/dittybag/blob/v{NEXT}/docs/index.md"
    assert versions(copy, "notes", NEXT).startswith(f"- A [new page]({new_page}).\n")
    # There is nothing to release now.
    assert "says nothing below `## Unreleased`" in versions(copy, "set", "1000.0.1")


def test_what_does_not_agree_is_found_and_changes_nothing(copy: Path) -> None:
    before = contents(copy)
    assert "must be three numbers" in versions(copy, "set", "1.0")
    assert f"older than the current version {dittybag.__version__}" in versions(copy, "set", "0.0.1")
    for command in ("check", "notes"):
        assert "error: " in versions(copy, command, NEXT)
    assert "no section" in versions(copy, "check", dittybag.__version__)
    assert contents(copy) == before
    manifest = copy / "plugins" / "codex" / ".codex-plugin" / "plugin.json"
    manifest.write_text(manifest.read_text().replace(dittybag.__version__, "0.0.9"))
    assert versions(copy) == f"error: 0.0.9  {manifest.relative_to(copy)} is not {dittybag.__version__}\n"
    manifest.write_text("{}")
    for arguments in ((), ("set", NEXT)):
        assert f"{manifest.relative_to(copy)} names no version" in versions(copy, *arguments)
    assert (copy / "CHANGELOG.md").read_text() == before[CHANGE_LOG]
