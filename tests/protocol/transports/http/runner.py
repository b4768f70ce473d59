"""A server process on a free port, whose memory, descriptors and end can be watched."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from tests.wire import ROOT

SERVED = "tests.protocol.transports.http.served"


class Running:
    """A server process. What it logs is kept, and must hold no traceback."""

    def __init__(self, command: list[str], *, env: dict[str, str] | None = None, errors_tell: bool) -> None:
        """`errors_tell`: it says on standard error where it listens, otherwise on standard output."""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the process is
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if errors_tell else subprocess.PIPE,
            stderr=subprocess.PIPE if errors_tell else self._log,
            bufsize=0,
            cwd=ROOT,
            env={**os.environ, **(env or {})},
        )
        told = self.process.stderr if errors_tell else self.process.stdout
        assert told is not None
        self._told = told
        line = self._first_line()
        words = line.rpartition("127.0.0.1:")[2].partition("/")[0] if errors_tell else line
        self.port = int(words)

    @classmethod
    def fixture(cls, **options: Any) -> Self:
        """The fixture, with `served.Options`."""
        told = msgspec.json.encode(options).decode()
        return cls([sys.executable, "-m", SERVED, told], errors_tell=False)

    @classmethod
    def product(cls, home: Path, *arguments: str) -> Self:
        """Dittybag itself, with a new database."""
        command = [sys.executable, "-m", "dittybag", "serve", "--http", "127.0.0.1:0", *arguments]
        return cls(command, env={"DITTYBAG_HOME": str(home)}, errors_tell=True)

    def _first_line(self) -> str:
        deadline = time.monotonic() + 20
        line = b""
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._told], [], [], left)[0]:
                raise AssertionError(f"the server does not say where it listens: {line!r}")
            piece = os.read(self._told.fileno(), 1)
            if not piece:
                raise AssertionError(f"the server did not start: {self.log()}")
            line += piece
        return line.decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        alive = self.process.poll() is None
        self.process.kill()
        self.process.wait()
        log = self.log()
        self._told.close()
        self._log.close()
        if error is None:
            assert alive or self.process.returncode == 0, f"the server died: {log[-3000:]}"
            assert "Traceback" not in log, log[-3000:]

    def log(self) -> str:
        """What the server has written to standard error."""
        if self._told is self.process.stderr:
            os.set_blocking(self._told.fileno(), False)
            while piece := self._told.read(1 << 16):
                self._log.write(piece)
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def kilobytes(self) -> int:
        """How much memory it holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def ask_to_end(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def ended(self, seconds: float) -> int:
        """Its exit status. Fails if it does not end in time."""
        return self.process.wait(seconds)
