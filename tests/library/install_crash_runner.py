"""Runs library changes in processes that are killed before each step that changes a file.

The first process is killed before its first step, the next before its second, and so on until one finishes.
After each kill, the state is checked as a server would see it, and again after recovery.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from dittybag.library import installer
from dittybag.library.install_records import folders_by_name, read_records
from tests.library.local_edits import has_local_edits
from tests.library.source_fixtures import leftovers, read_files, write_files

OLD: Final = {"a.md": "1", "deep/b.md": "same", "gone.md": "gone"}
NEW: Final = {"a.md": "2", "deep/b.md": "same", "deep/er/c.md": "new"}
EDIT: Final = {"deep/b.md": "my work"}

#: Audit events that change a file, or that immediately precede a change.
_STEPS: Final = ("os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.chmod", "ctypes.dlsym")
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT

Files = Mapping[str, str]


class CrashReport:
    """The states found after all kills."""

    def __init__(self) -> None:
        self.kills = 0
        self.old = 0
        self.new = 0
        self.absent = 0
        self.wrong: list[str] = []


def run(folder: Path, scene: str) -> CrashReport:
    report = CrashReport()
    prepare, change, old, new = SCENES[scene]
    template = folder / "template"
    template.mkdir()
    prepare(template)
    step = 0
    while True:
        step += 1
        root = folder / str(step)
        shutil.copytree(template, root, symlinks=True)
        status = _run_until_kill(lambda: change(root), step, can_swap="slow" not in scene)  # noqa: B023
        if status == 0:
            break
        if status != -signal.SIGKILL:
            report.wrong.append(f"step {step}: status {status}")
            break
        report.kills += 1
        _check_state(root, old, new, report, f"step {step}")
        _recover_and_check(root, old, new, report, f"step {step}")
        shutil.rmtree(root)
    _check_state(root, new, new, report, "end")
    return report


def _run_until_kill(change: Callable[[], object], step: int, *, can_swap: bool) -> int:
    """Run a change in a process that is killed before this step; return its exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = step

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event not in _STEPS and not (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING
        ):
            return
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if event == "ctypes.dlsym" and not can_swap:
            raise AttributeError("this system cannot swap two folders")

    try:
        sys.addaudithook(count)
        change()
        os._exit(0)
    except BaseException:  # noqa: BLE001  # the edge of the child process
        traceback.print_exc()
        os._exit(1)


def _check_state(root: Path, old: Files, new: Files, report: CrashReport, when: str) -> None:
    """Check what a running server sees: the old or the new library, or none for a moment."""
    library = root / "home" / "libraries" / "lib"
    files = read_files(library) if library.exists() else {}
    if files == dict(new):
        report.new += 1
    elif files == dict(old):
        report.old += 1
    elif not files:
        report.absent += 1
        return
    else:
        report.wrong.append(f"{when}: {files}")
    _check_edits(root, old, report, when)


def _recover_and_check(root: Path, old: Files, new: Files, report: CrashReport, when: str) -> None:
    """Recover as the next start does; then the library is either the old or the new one, with its record."""
    home = str(root / "home")
    installer.finish_interrupted(home)
    if leftovers(root / "home"):
        report.wrong.append(f"{when}: left behind: {leftovers(root / 'home')}")
    found = folders_by_name(home).get("lib")
    files = read_files(Path(found)) if found else {}
    if files not in (dict(old), dict(new)):
        report.wrong.append(f"{when}: afterwards: {files}")
    if files and "lib" not in read_records(home):
        report.wrong.append(f"{when}: no record")
    if has_local_edits(home, "lib") and files != OLD | EDIT:
        report.wrong.append(f"{when}: afterwards reported as edited: {files}")
    _check_edits(root, old, report, when)


def _check_edits(root: Path, old: Files, report: CrashReport, when: str) -> None:
    edits = set(EDIT.values()) & set(old.values())
    if not edits <= set(read_files(root / "home").values()):
        report.wrong.append(f"{when}: edits are lost")


def _prepare_empty(root: Path) -> None:
    (root / "home").mkdir()


def _prepare_installed(root: Path) -> None:
    """Install a library whose source has changed since."""
    write_files(root / "source", OLD)
    installer.add(str(root / "home"), str(root / "source"), name="lib")
    record = root / "home" / "libraries" / ".dittybag" / "lib.json"
    # Each copy of the folder has its own source.
    record.write_text(record.read_text().replace(str(root / "source"), "/proc/self/cwd/source"))
    (root / "source" / "gone.md").unlink()
    write_files(root / "source", NEW)


def _prepare_edited(root: Path) -> None:
    _prepare_installed(root)
    write_files(root / "home" / "libraries" / "lib", EDIT)


def _add(root: Path) -> None:
    installer.add(str(root / "home"), str(write_files(root / "source", NEW)), name="lib")


def _update(root: Path, *, overwrite: bool = False) -> None:
    os.chdir(root)
    installer.update(str(root / "home"), "lib", overwrite=overwrite)


def _overwrite(root: Path) -> None:
    _update(root, overwrite=True)


def _remove(root: Path) -> None:
    installer.remove(str(root / "home"), "lib", discard_edits=True)


Scene = tuple[Callable[[Path], None], Callable[[Path], None], Files, Files]
SCENES: Final[dict[str, Scene]] = {
    "add": (_prepare_empty, _add, {}, NEW),
    "update": (_prepare_installed, _update, OLD, NEW),
    "slow update": (_prepare_installed, _update, OLD, NEW),
    "overwrite": (_prepare_edited, _overwrite, OLD | EDIT, NEW),
    "slow overwrite": (_prepare_edited, _overwrite, OLD | EDIT, NEW),
    "remove": (_prepare_installed, _remove, OLD, {}),
    "remove edited": (_prepare_edited, _remove, OLD | EDIT, {}),
}


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(vars(run(Path(sys.argv[1]), sys.argv[2]))).decode())
