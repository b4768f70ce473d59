"""Other processes: Python modules that are told what to do on standard input, a line at a time."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import msgspec
import pytest

ROOT = Path(__file__).resolve().parents[3]


class Child:
    """A process that answers each line it is sent with a line of JSON."""

    def __init__(self, module: str, *arguments: str, under: Sequence[str] = ()) -> None:
        """`under`: a command that changes something about the process before it runs it."""
        self._process = subprocess.Popen(
            [*under, sys.executable, "-m", f"tests.storage.sqlite.{module}", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def tell(self, line: str) -> None:
        stream = _open(self._process.stdin)
        stream.write(line.encode() + b"\n")
        stream.flush()

    def answer(self, seconds: float = 30.0) -> Any:
        """What the process says next. Fails if that takes too long."""
        stream = _open(self._process.stdout)
        assert select.select([stream], [], [], seconds)[0], f"no answer within {seconds} s"
        line = stream.readline()
        assert line, f"the process ended with status {self._process.wait()}"
        return msgspec.json.decode(line)

    def silence(self, seconds: float) -> None:
        """Wait until the process says something, but not longer than this."""
        select.select([_open(self._process.stdout)], [], [], seconds)

    def ask(self, line: str) -> Any:
        self.tell(line)
        return self.answer()


def _open(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def reply(value: Any) -> None:
    """What a child says."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def namespace() -> list[str]:
    """A command that runs another where it may mount file systems of its own."""
    command = ["unshare", "--user", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], check=False).returncode:
        pytest.skip("this system lets nobody mount anything")
    return command


def powerless() -> list[str]:
    """A command that runs another for which the permissions of files hold, also if root runs it."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root may write anywhere, and there is no setpriv to keep it from that")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
