"""Prepares a release: `make release VERSION=0.3.0`.

It checks the working copy, writes the version into all files, turns `## Unreleased` into a section of the
change log, builds and validates everything, and makes one commit and one tag. If anything fails, all files
are as before. With `PUSH=1`, it also pushes both.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from tests.package import changelog, versions
from tests.package.versions import ROOT

BRANCH: Final = "main"
REMOTE: Final = "origin"
#: Everything that can be built and validated without the public host.
TARGETS: Final = ("workflows", "docs", "packages", "dist", "bundle")


class NotReady(Exception):
    """The release cannot be made. The message says what to do."""


def check_version(version: str) -> None:
    """Refuse a version that is malformed, older than the current one, or tagged."""
    if not re.fullmatch(versions.VERSION, version):
        raise NotReady(f"VERSION must be three numbers, such as 0.3.0, not {version!r}")
    current = next(versions.find_places()).version
    if _numbers(version) < _numbers(current):
        raise NotReady(f"version {version} is older than the current version {current}")
    if _git("tag", "--list", f"v{version}"):
        raise NotReady(f"the tag v{version} exists; choose the next version")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def check_working_copy() -> None:
    """Refuse uncommitted files, another branch, missing commits of the remote, and failed checks."""
    if changed := _git("status", "--porcelain"):
        raise NotReady(f"commit or remove these files first:\n{changed}")
    branch = _git("branch", "--show-current")
    if branch != BRANCH:
        raise NotReady(f"the branch is {branch or 'detached'}; run: git switch {BRANCH}")
    if REMOTE in _git("remote").split():
        _git("fetch", "--quiet", "--tags", REMOTE, BRANCH)
        if missing := _git("rev-list", "--count", "HEAD..FETCH_HEAD").removeprefix("0"):
            raise NotReady(f"{REMOTE} has {missing} newer commits; run: git pull --ff-only")
    if problem := _failed_checks():
        raise NotReady(problem)


def _failed_checks() -> str:
    """Return what the host says about the checks of this commit; empty if they passed or cannot be seen."""
    if shutil.which("gh") is None:
        print("The checks of this commit on GitHub cannot be seen: gh is not installed.")
        return ""
    commit = _git("rev-parse", "HEAD")
    fields = "--json=name,status,conclusion"
    done = subprocess.run(
        ["gh", "run", "list", "--commit", commit, fields],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(f"The checks of this commit on GitHub cannot be seen: {done.stderr.strip()}")
        return ""
    runs = {run["name"]: run["conclusion"] or run["status"] for run in json.loads(done.stdout)[::-1]}
    failed = [f"{name}: {result}" for name, result in runs.items() if result not in ("success", "skipped")]
    if not runs:
        return f"GitHub has not checked {commit[:8]}; push it and wait"
    return f"the checks of {commit[:8]} have not passed: {', '.join(failed)}" if failed else ""


@contextmanager
def restored_on_failure() -> Iterator[None]:
    """Restore all files and the branch if the block fails. Nothing was uncommitted before."""
    before = _git("rev-parse", "HEAD")
    try:
        yield
    except BaseException:
        _git("reset", "--quiet", "--hard", before)
        raise


def write_version(version: str) -> None:
    """Write the version into all files and the change log."""
    text = changelog.read()
    if not changelog.unreleased(text):
        raise NotReady(
            f"CHANGELOG.md says nothing below `{changelog.UNRELEASED}`; describe what changed for users"
        )
    changelog.FILE.write_text(changelog.release(text, version, f"{datetime.now(UTC):%Y-%m-%d}"))
    versions.set_version(version)
    if problems := versions.find_problems(version):
        raise NotReady("\n".join(problems))


def build() -> None:
    """Build and validate everything."""
    for target in TARGETS:
        _run("make", "--no-print-directory", target)
    if changed := _git("diff", "--name-only"):
        print(f"Changed for the release:\n{changed}")


def commit(version: str) -> None:
    """Make one commit and one tag."""
    _git("add", "--all")
    _git("commit", "--quiet", "--message", f"release: version {version}")
    _git("tag", "--annotate", "--message", f"Dittybag {version}", f"v{version}")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotReady(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def _run(*command: str) -> None:
    print(f"$ {' '.join(command)}", flush=True)
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        raise NotReady(f"{' '.join(command)} failed")


def main() -> int:
    """Prepare the release. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="make release", description="Prepare a release.")
    parser.add_argument("version", help="three numbers, such as 0.3.0")
    parser.add_argument(
        "--without-builds",
        action="store_true",
        help="change, commit and tag only; for the tests of this command",
    )
    options = parser.parse_args()
    version: str = options.version
    push = ["git", "push", "--atomic", REMOTE, BRANCH, f"v{version}"]
    try:
        check_version(version)
        check_working_copy()
        with restored_on_failure():
            write_version(version)
            if not options.without_builds:
                build()
            commit(version)
        print(f"Version {version} is committed and tagged as v{version}.")
        if os.environ.get("PUSH"):
            _run(*push)
        else:
            print(f"To publish it: {' '.join(push)}")
            print(f"To undo it: git tag --delete v{version} && git reset --hard HEAD~1")
    except (NotReady, LookupError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
