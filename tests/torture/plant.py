"""Plants known bugs into copies of the source, and checks that the tests catch each of them.

`python -m tests.torture.plant`. Names of bugs as arguments select some of them. `--list` prints all.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import venv
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.torture.planted_bugs import BUGS, Bug

ROOT: Final = Path(__file__).parents[2]
COPIES: Final = 2
#: Pytest's exit status when tests ran and some failed.
TESTS_FAILED: Final = 1
TIMEOUT_SECONDS: Final = 600


class WorkingCopy:
    """A copy of the repository, with an interpreter that imports Dittybag from this copy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout
        for name in listed.decode().split("\0"):
            if name and (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        venv.create(folder / ".venv", symlinks=True)
        self._python = folder / ".venv" / "bin" / "python"
        packages = subprocess.run(
            [self._python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            capture_output=True,
            check=True,
            text=True,
        ).stdout.strip()
        # The packages of this environment, but without its link to the original source.
        paths = f"{folder / 'src'}\n{sysconfig.get_path('purelib')}\n"
        (Path(packages) / "planted.pth").write_text(paths)
        if (ROOT / ".cache").exists():
            (folder / ".cache").symlink_to(ROOT / ".cache")

    def run_tests(self, tests: Sequence[str]) -> tuple[int, str]:
        """Run tests until one fails. Returns the exit status and the name of the failed test."""
        command = [
            str(self._python), "-B", "-m", "pytest",
            "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-rfE", *tests,
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command,
                cwd=self._folder,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return TESTS_FAILED, "(timeout)"
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        return done.returncode, failed[0].split(" ")[1] if failed else done.stdout[-2000:]

    def run_with(self, bug: Bug) -> tuple[int, str]:
        """Run the tests of a bug with the bug in place."""
        original: dict[Path, str] = {}
        try:
            for path, old, new in bug.edits:
                file = self._folder / "src" / "dittybag" / path
                text = file.read_text()
                original.setdefault(file, text)
                assert text.count(old) == 1, f"{bug.name}: {path} contains {text.count(old)} times: {old}"
                file.write_text(text.replace(old, new))
            return self.run_tests(bug.tests)
        finally:
            for file, text in original.items():
                file.write_text(text)


def main(arguments: list[str]) -> int:
    """Plant the bugs and print what caught each. Returns 1 if one was not caught."""
    bugs = [bug for bug in BUGS if not arguments or bug.name in arguments]
    if arguments == ["--list"]:
        for bug in BUGS:
            print(f"{bug.name}: {bug.effect}")
        return 0
    survived: list[str] = []
    printing = threading.Lock()
    with tempfile.TemporaryDirectory(prefix="dittybag-bugs-") as folder, ThreadPoolExecutor(COPIES) as pool:
        # Servers of some tests run as another user.
        Path(folder).chmod(0o755)
        copies: SimpleQueue[WorkingCopy] = SimpleQueue()
        for number in range(COPIES):
            copies.put(WorkingCopy(Path(folder) / str(number)))

        def check(bug: Bug) -> None:
            copy = copies.get()
            start = time.monotonic()
            try:
                status, failed = copy.run_with(bug)
            finally:
                copies.put(copy)
            caught = status == TESTS_FAILED
            with printing:
                verdict = "caught" if caught else "MISSED"
                print(f"{verdict}  {bug.name}  {time.monotonic() - start:.0f} s  {failed}", flush=True)
                if not caught:
                    survived.append(bug.name)

        clean = copies.get()
        status, failed = clean.run_tests(sorted({test for bug in bugs for test in bug.tests}))
        copies.put(clean)
        if status:
            print(f"Tests fail without a bug: {failed}")
            return 1
        list(pool.map(check, bugs))
    print(f"{len(bugs) - len(survived)} of {len(bugs)} planted bugs were caught")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
