"""`make release` in a copy of the source tree: what it refuses, and what it changes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import dittybag
from tests.package import changelog, versions
from tests.programs import GIT
from tests.stdio_server_process import ROOT

#: Newer than every version that there will be.
NEXT = "1000.0.0"


#: What the command reads.
COPIED = (
    ".gitignore",
    "CHANGELOG.md",
    "docs/reference",
    "plugins",
    "pyproject.toml",
    "server.json",
    "bundle/manifest.json",
)
MODULES = ("src/dittybag/__init__.py", "tests/__init__.py", "tests/package")


class Clone:
    """A copy of a part of the source tree in a repository of its own, with one commit."""

    def __init__(self, folder: Path, git: str) -> None:
        self.folder, self._git = folder, git
        listed = subprocess.run(
            [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard", *COPIED, *MODULES],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, folder / name)
        self.git("init", "--quiet", "--initial-branch", "main")
        self.git("config", "user.name", "Ann")
        self.git("config", "user.email", "ann@example.org")
        self.commit("everything")

    def git(self, *arguments: str) -> str:
        return self._run(self._git, *arguments).stdout.strip()

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def run(self, module: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a module of the copy."""
        return self._run(sys.executable, "-m", module, *arguments, check=False, **variables)

    def release(self, version: str, **variables: str) -> str:
        """Prepare a release without building it. Returns the output, with the problem if it failed."""
        done = self.run("tests.package.release", version, "--without-builds", **variables)
        assert done.returncode == ("error: " in done.stderr)
        return done.stdout + done.stderr

    def _run(self, *command: str, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
        # Without the `gh` of this machine.
        environment = {"PATH": str(Path(self._git).parent), "HOME": str(self.folder.parent), **variables}
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=check,
        )


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.symlink_to(GIT.require())
    folder = tmp_path / "dittybag"
    folder.mkdir()
    copied = Clone(folder, str(program))
    text = (folder / "CHANGELOG.md").read_text()
    heading = f"{changelog.UNRELEASED}\n"
    assert text.count(heading) == 1
    (folder / "CHANGELOG.md").write_text(
        text.replace(heading, f"{heading}\n- A [new page](docs/index.md).\n")
    )
    copied.commit("a change for users")
    return copied


def test_a_release_is_one_commit_and_one_tag_that_name_the_version_everywhere(clone: Clone) -> None:
    before = clone.git("rev-parse", "HEAD")
    printed = clone.release(NEXT)
    assert f"git push --atomic origin main v{NEXT}" in printed
    assert clone.git("status", "--porcelain") == ""
    assert clone.git("rev-list", "--count", f"{before}..v{NEXT}") == "1"
    assert clone.git("log", "-1", "--format=%s") == f"release: version {NEXT}"
    assert clone.git("cat-file", "-t", f"v{NEXT}") == "tag"
    changed = {*clone.git("diff", "--name-only", before).splitlines()}
    assert changed == {str(place.path.relative_to(ROOT)) for place in versions.find_places()} | {
        "CHANGELOG.md"
    }
    # What the workflow runs.
    agreed = clone.run("tests.package.versions", NEXT)
    assert agreed.returncode == 0, agreed.stderr
    assert agreed.stdout.count(NEXT) == len(list(versions.find_places()))
    notes = clone.run("tests.package.changelog", NEXT).stdout
    assert notes.startswith(
        f"- A [new page](https://github.com/dittybag/dittybag/blob/v{NEXT}/docs/index.md).\n"
    )
    text = (clone.folder / "CHANGELOG.md").read_text()
    assert f"\n{changelog.UNRELEASED}\n\n## {NEXT} - {datetime.now(UTC):%Y}-" in text
    # There is nothing to release now.
    assert "says nothing below `## Unreleased`" in clone.release("1000.0.1")
    assert "the tag v1000.0.0 exists" in clone.release(NEXT)


def test_a_release_is_refused_and_changes_nothing(clone: Clone) -> None:
    assert "VERSION must be three numbers" in clone.release("1.0")
    assert f"version 0.0.1 is older than the current version {dittybag.__version__}" in clone.release("0.0.1")
    clone.git("switch", "--quiet", "--create", "work")
    assert "run: git switch main" in clone.release(NEXT)
    clone.git("switch", "--quiet", "main")
    (clone.folder / "notes.txt").write_text("mine")
    assert "?? notes.txt" in clone.release(NEXT)
    (clone.folder / "notes.txt").unlink()
    # A file without a version is found before the commit, and what was written before is undone.
    (clone.folder / "bundle" / "manifest.json").write_text("{}")
    clone.commit("break the manifest")
    assert "bundle/manifest.json names no version" in clone.release(NEXT)
    assert clone.git("status", "--porcelain") == ""
    assert clone.git("tag") == ""
    # So are commits of others.
    clone.git("init", "--quiet", "--bare", "../remote")
    clone.git("remote", "add", "origin", "../remote")
    clone.git("push", "--quiet", "origin", "main")
    clone.git("reset", "--quiet", "--hard", "HEAD~1")
    assert "origin has 1 newer commits; run: git pull --ff-only" in clone.release(NEXT)


def test_a_push_publishes_the_commit_and_the_tag(clone: Clone) -> None:
    clone.git("init", "--quiet", "--bare", "../remote")
    clone.git("remote", "add", "origin", "../remote")
    clone.git("push", "--quiet", "origin", "main")
    clone.release(NEXT, PUSH="1")
    released = clone.git("rev-parse", "HEAD")
    assert f"{released}\trefs/heads/main" in clone.git("ls-remote", "origin")
    assert f"{released}\trefs/tags/v{NEXT}^{{}}" in clone.git("ls-remote", "origin")


def test_a_release_needs_passed_checks_if_the_host_can_be_asked(clone: Clone) -> None:
    program = clone.folder.parent / "bin" / "gh"

    def release_with(*runs: tuple[str, str, str]) -> str:
        """Prepare a release, with the name, status and conclusion of runs on the host, newest first."""
        listed = [dict(zip(("name", "status", "conclusion"), run, strict=True)) for run in runs]
        program.write_text(f"#!/bin/sh\necho '{json.dumps(listed)}'\n")
        program.chmod(0o755)
        return clone.release(NEXT)

    docs = ("Documentation", "completed", "success")
    assert "GitHub has not checked" in release_with()
    assert "not passed: Checks: in_progress\n" in release_with(docs, ("Checks", "in_progress", ""))
    assert "not passed: Checks: failure\n" in release_with(("Checks", "completed", "failure"), docs)
    # The newest run of a workflow counts.
    repeated = ("Checks", "completed", "success"), ("Checks", "completed", "failure")
    assert "is committed and tagged" in release_with(*repeated, docs)


def test_all_files_name_the_same_version() -> None:
    assert versions.find_problems() == []
    assert {place.version for place in versions.find_places()} == {dittybag.__version__}
    manifests = [*(ROOT / "plugins").rglob("*.json"), *ROOT.glob("*.json"), *ROOT.glob("*/manifest.json")]
    named = {path for path in manifests if '"version": "' in path.read_text()}
    assert named == {place.path for place in versions.find_places() if place.path.suffix == ".json"}


def test_a_wrong_version_or_a_missing_section_is_found(clone: Clone) -> None:
    manifest = clone.folder / "plugins" / "codex" / ".codex-plugin" / "plugin.json"
    manifest.write_text(manifest.read_text().replace(dittybag.__version__, "0.0.9"))
    found = clone.run("tests.package.versions")
    assert found.returncode == 1
    assert found.stderr == (
        f"error: 0.0.9  plugins/codex/.codex-plugin/plugin.json is not {dittybag.__version__}\n"
    )
    missing = clone.run("tests.package.versions", NEXT)
    assert f"CHANGELOG.md has no section `## {NEXT} - DATE` with text" in missing.stderr
    assert clone.run("tests.package.changelog", NEXT).returncode == 1
