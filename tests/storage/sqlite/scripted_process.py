"""Child processes that read commands from standard input and reply with JSON, one line each."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import IO, Any, Self

import msgspec

from tests.forked_processes import ROOT, ForkedProcess
from tests.programs import skip_unless_ci


class ScriptedProcess:
    """A process that replies to each line with a line of JSON."""

    def __init__(self, module: str, *arguments: str, under: Sequence[str] = ()) -> None:
        """`under`: a command prefix such as `setpriv` that starts the process."""
        pipe = subprocess.PIPE
        module = f"tests.storage.sqlite.{module}"
        self._process: subprocess.Popen[bytes]
        if under:
            command = [*under, sys.executable, "-m", module, *arguments]
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=ROOT)
        else:
            self._process = ForkedProcess(module, *arguments, stdin=pipe, stdout=pipe)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def send(self, line: str) -> None:
        stream = _open(self._process.stdin)
        stream.write(line.encode() + b"\n")
        stream.flush()

    def read_reply(self, seconds: float = 30.0) -> Any:
        """Read the next reply. Fails after `seconds`."""
        stream = _open(self._process.stdout)
        assert select.select([stream], [], [], seconds)[0], f"no reply within {seconds} s"
        line = stream.readline()
        assert line, f"the process ended with status {self._process.wait()}"
        return msgspec.json.decode(line)

    def wait_for_output(self, seconds: float) -> None:
        """Wait until the process prints something, at most `seconds`."""
        select.select([_open(self._process.stdout)], [], [], seconds)

    def request(self, line: str) -> Any:
        self.send(line)
        return self.read_reply()


def _open(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def reply(value: Any) -> None:
    """Print a reply, in a child process."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def unshare_mounts() -> list[str]:
    """Return a command prefix for a process that can mount its own file systems."""
    command = ["unshare", "--user", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], check=False).returncode:
        skip_unless_ci("this system does not allow unprivileged mounts")
    return command


def drop_privileges() -> list[str]:
    """Return a command prefix for a process that is subject to file permissions, even as root."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        skip_unless_ci("root ignores file permissions, and setpriv is not installed")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
