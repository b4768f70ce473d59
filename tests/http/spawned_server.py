"""Starts a server process on a free port and monitors its memory, descriptors and exit."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from tests.forked_processes import ForkedProcess

FIXTURE_MODULE = "tests.http.http_fixture_server"


class SpawnedServer:
    """A server process. Its log is kept and must not contain a traceback."""

    def __init__(self, *command: str, env: dict[str, str] | None = None, port_on_stderr: bool) -> None:
        """`port_on_stderr`: the server prints its address to standard error, otherwise to standard output."""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed when the process ends
        self.process = ForkedProcess(
            *command,
            stdout=subprocess.DEVNULL if port_on_stderr else subprocess.PIPE,
            stderr=subprocess.PIPE if port_on_stderr else self._log,
            bufsize=0,
            env={**os.environ, **(env or {})},
        )
        output = self.process.stderr if port_on_stderr else self.process.stdout
        assert output is not None
        self._output = output
        line = self._first_line()
        port = line.rpartition("127.0.0.1:")[2].partition("/")[0] if port_on_stderr else line
        self.port = int(port)

    @classmethod
    def fixture(cls, **options: Any) -> Self:
        """Start the fixture server with `FixtureOptions`."""
        encoded = msgspec.json.encode(options).decode()
        return cls(FIXTURE_MODULE, encoded, port_on_stderr=False)

    @classmethod
    def everything(cls) -> Self:
        """Start the everything server without the tools of the fixture, and with the path `/mcp` only."""
        return cls.fixture(is_bare=True)

    @classmethod
    def product(cls, home: Path, *arguments: str) -> Self:
        """Start Dittybag with a new database."""
        command = ("dittybag", "serve", "--http", "127.0.0.1:0", *arguments)
        return cls(*command, env={"DITTYBAG_HOME": str(home)}, port_on_stderr=True)

    def _first_line(self) -> str:
        deadline = time.monotonic() + 20
        line = b""
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._output], [], [], left)[0]:
                raise AssertionError(f"the server does not print its port: {line!r}")
            char = os.read(self._output.fileno(), 1)
            if not char:
                raise AssertionError(f"the server did not start: {self.log()}")
            line += char
        return line.decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        alive = self.is_running
        self.process.kill()
        self.process.wait()
        log = self.log()
        self._output.close()
        self._log.close()
        if error is None:
            assert alive or self.process.returncode == 0, f"the server died: {log[-3000:]}"
            assert "Traceback" not in log, log[-3000:]

    def log(self) -> str:
        """Return the standard error output of the server."""
        if self._output is self.process.stderr:
            os.set_blocking(self._output.fileno(), False)
            while data := self._output.read(1 << 16):
                self._log.write(data)
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def kilobytes(self) -> int:
        """Return the resident memory in KiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def end(self) -> tuple[int, str]:
        """Terminate the server and return its exit status and log."""
        self.process.terminate()
        return self.wait_for_exit(15), self.log()

    def request_shutdown(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def wait_for_exit(self, seconds: float) -> int:
        """Return the exit status. Raises `TimeoutExpired` if the process does not end in time."""
        return self.process.wait(seconds)
