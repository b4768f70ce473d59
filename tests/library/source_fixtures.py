"""Library sources for tests: folders and Git repositories."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.programs import GIT


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files, given by path, and return the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def read_files(folder: Path) -> dict[str, str]:
    """The text of all files below a folder, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(errors="replace")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def leftovers(home: Path) -> list[str]:
    """Staging folders, of which none should remain after a change."""
    return sorted(path.name for path in (home / "libraries" / ".dittybag").glob("work-*"))


def git(folder: Path, *arguments: str) -> str:
    """Run Git with a fixed user, and return its output."""
    command = [GIT.require(), "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=30, check=True)
    return done.stdout.strip()


def commit(folder: Path, files: Mapping[str, str] | None = None) -> str:
    """Write these files, commit everything, and return the commit id."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "--quiet", "--initial-branch=main")
    write_files(folder, files or {})
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=more")
    return git(folder, "rev-parse", "HEAD")


def descriptors() -> int:
    """The number of open file descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))
