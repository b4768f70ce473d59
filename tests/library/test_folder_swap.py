"""A library is replaced by swapping two folders, with the system call of each platform."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dittybag.library import atomic_install
from dittybag.library.install_records import read_record
from tests.cli.cli_runner import dittybag
from tests.library.source_fixtures import read_files, write_files


class MacLibrary:
    """The C library of macOS, as far as it is used: `renamex_np`, which swaps as Linux does, or refuses."""

    def __init__(self, refusal: int) -> None:
        self.refusal = refusal
        self.calls: list[tuple[bytes, bytes, int]] = []
        self._linux = ctypes.CDLL(None, use_errno=True)

    def renamex_np(self, first: bytes, second: bytes, flags: Any) -> int:
        self.calls.append((first, second, flags.value))
        if self.refusal:
            ctypes.set_errno(self.refusal)
            return -1
        status: int = self._linux.renameat2(-100, first, -100, second, flags)
        return status


@pytest.mark.parametrize("refusal", [0, errno.ENOTSUP, errno.EIO], ids=["swapped", "not supported", "failed"])
def test_macos_swaps_with_renamex_np(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: int) -> None:
    library = MacLibrary(refusal)
    monkeypatch.setattr(atomic_install, "_load_libc", lambda: library)
    home = tmp_path / "home"
    source = write_files(tmp_path / "source", {"a.md": "old"})
    dittybag(home, "library", "add", str(source), "--name", "lib")
    installed = home / "libraries" / "lib"
    staged = write_files(home / "libraries" / ".dittybag" / "work-1" / "new", {"a.md": "new"})
    record = read_record(str(home), "lib")
    assert record is not None
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "darwin")
        if refusal == errno.EIO:
            with pytest.raises(OSError, match=os.strerror(errno.EIO)):
                atomic_install.replace(str(home), "lib", staged, record)
        else:
            old = atomic_install.replace(str(home), "lib", staged, record)
            assert read_files(old) == {"a.md": "old"}
    assert read_files(installed) == {"a.md": "old" if refusal == errno.EIO else "new"}
    assert library.calls == [(os.fsencode(staged), os.fsencode(installed), 2)]
