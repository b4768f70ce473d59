"""Changes libraries in processes that are killed at every step that touches a file, one after the other.

A process kills itself just before its first step, the next one before its second, and so on until one gets to
its end. After each of them somebody looks at what is left, as a server would, and then has it put in order.
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

from dittybag.library import atomic_install, installer
from dittybag.library.install_records import find_edits, folders_by_name, read_records
from tests.library.packing import archive, leftovers, plant, tree

OLD: Final = {"a.md": "1", "deep/b.md": "same", "gone.md": "gone"}
NEW: Final = {"a.md": "2", "deep/b.md": "same", "deep/er/c.md": "new"}
EDIT: Final = {"deep/b.md": "my work"}

#: Everything that changes a file, or comes right before something that does.
_STEPS: Final = ("os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.chmod", "ctypes.dlsym")
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT

Files = Mapping[str, str]


class Outcome:
    """What was found after the kills."""

    def __init__(self) -> None:
        self.kills = 0
        self.old = 0
        self.new = 0
        self.absent = 0
        self.wrong: list[str] = []


def run(folder: Path, scene: str) -> Outcome:
    outcome = Outcome()
    prepare, change, old, new = SCENES[scene]
    template = folder / "template"
    template.mkdir()
    prepare(template)
    step = 0
    while True:
        step += 1
        place = folder / str(step)
        shutil.copytree(template, place, symlinks=True)
        status = _sacrificed(lambda: change(place), step, can_exchange="slow" not in scene)  # noqa: B023
        if status == 0:
            break
        if status != -signal.SIGKILL:
            outcome.wrong.append(f"step {step}: status {status}")
            break
        outcome.kills += 1
        _look(place, old, new, outcome, f"step {step}")
        _put_in_order(place, old, new, outcome, f"step {step}")
        shutil.rmtree(place)
    _look(place, new, new, outcome, "end")
    return outcome


def _sacrificed(change: Callable[[], object], step: int, *, can_exchange: bool) -> int:
    """Change a library in a process that dies before its step of this number; its exit status."""
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
        if event == "ctypes.dlsym" and not can_exchange:
            raise AttributeError("this system cannot exchange two folders")

    try:
        sys.addaudithook(count)
        change()
        os._exit(0)
    except BaseException:  # noqa: BLE001  # there is nobody else to tell
        traceback.print_exc()
        os._exit(1)


def _look(place: Path, old: Files, new: Files, outcome: Outcome, when: str) -> None:
    """What a running server sees: the old library or the new one, and a record that is true."""
    home = str(place / "home")
    library = place / "home" / "libraries" / "lib"
    files = tree(library) if library.exists() else {}
    if files == dict(new):
        outcome.new += 1
    elif files == dict(old):
        outcome.old += 1
    elif not files:
        outcome.absent += 1
        return
    else:
        outcome.wrong.append(f"{when}: {files}")
    if files and "lib" not in read_records(home):
        # A library that is being removed goes before its record does, and none is installed without one.
        outcome.wrong.append(f"{when}: no record")
    changed = {edit.file for edit in find_edits(home, "lib")}
    if not changed <= set(EDIT):
        outcome.wrong.append(f"{when}: taken for edits: {changed}")
    work = tree(place / "home")
    if set(old.values()) & set(EDIT.values()) and not set(EDIT.values()) <= set(work.values()):
        outcome.wrong.append(f"{when}: work is lost")


def _put_in_order(place: Path, old: Files, new: Files, outcome: Outcome, when: str) -> None:
    """The next who comes clears away what is left; then it is one of the two."""
    home = str(place / "home")
    with atomic_install.locked(home):
        pass
    if leftovers(place / "home"):
        outcome.wrong.append(f"{when}: left behind: {leftovers(place / 'home')}")
    found = folders_by_name(home).get("lib")
    files = tree(Path(found)) if found else {}
    if files not in (dict(old), dict(new)):
        outcome.wrong.append(f"{when}: afterwards: {files}")
    if not {edit.file for edit in find_edits(home, "lib")} <= set(EDIT):
        outcome.wrong.append(f"{when}: afterwards taken for edits: {find_edits(home, 'lib')}")
    if set(old.values()) & set(EDIT.values()) and not set(EDIT.values()) <= set(
        tree(place / "home").values()
    ):
        outcome.wrong.append(f"{when}: afterwards work is lost")


def _nothing(place: Path) -> None:
    (place / "home").mkdir()


def _installed(place: Path) -> None:
    """A library, whose source has moved on."""
    plant(place / "source", OLD)
    installer.add(str(place / "home"), str(place / "source"), name="lib")
    record = place / "home" / "libraries" / ".dittybag" / "lib.json"
    # The source moves with each copy.
    record.write_text(record.read_text().replace(str(place / "source"), "/proc/self/cwd/source"))
    (place / "source" / "gone.md").unlink()
    plant(place / "source", NEW)


def _edited(place: Path) -> None:
    _installed(place)
    plant(place / "home" / "libraries" / "lib", EDIT)


def _add(place: Path) -> None:
    installer.add(str(place / "home"), str(plant(place / "source", NEW)), name="lib")


def _add_archive(place: Path) -> None:
    installer.add(str(place / "home"), str(archive(place / "x.zip", NEW)), name="lib")


def _update(place: Path, *, overwrite: bool = False) -> None:
    os.chdir(place)
    installer.update(str(place / "home"), "lib", overwrite=overwrite)


def _overwrite(place: Path) -> None:
    _update(place, overwrite=True)


def _remove(place: Path) -> None:
    installer.remove(str(place / "home"), "lib", discard_edits=True)


Scene = tuple[Callable[[Path], None], Callable[[Path], None], Files, Files]
SCENES: Final[dict[str, Scene]] = {
    "add": (_nothing, _add, {}, NEW),
    "add archive": (_nothing, _add_archive, {}, NEW),
    "update": (_installed, _update, OLD, NEW),
    "slow update": (_installed, _update, OLD, NEW),
    "update edited": (_edited, _update, OLD | EDIT, NEW | EDIT),
    "overwrite": (_edited, _overwrite, OLD | EDIT, NEW),
    "remove": (_installed, _remove, OLD, {}),
    "remove edited": (_edited, _remove, OLD | EDIT, {}),
}


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(vars(run(Path(sys.argv[1]), sys.argv[2]))).decode())
