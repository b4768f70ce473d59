"""Child processes that start fast: forks of a process that has already imported Dittybag.

A forked process runs a module as `python -m MODULE` does. It is a child of the test process, with its own
streams, environment, folder and exit status; only its imports are already done. Tests that observe the start
itself, or run a process under another program or account, use `subprocess`.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import inspect
import io
import marshal
import os
import pkgutil
import runpy
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, TypeAlias

ROOT: Final = Path(__file__).resolve().parent.parent

Stream: TypeAlias = int | IO[Any] | None

#: From `linux/prctl.h`.
_PR_SET_CHILD_SUBREAPER: Final = 36

#: Packages whose modules are imported before a fork, with everything that these import.
_PRELOADED: Final = ("dittybag.cli", "dittybag.assembly", "dittybag.web", "dittybag.storage")

#: Prefixes of variables that are read when Python starts. A process with other values is not forked.
_READ_AT_START: Final = ("PYTHON", "LC_", "LANG", "TZ", "MALLOC_", "LD_")

_PIPE_ENDS: Final = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")


class ForkedProcess(subprocess.Popen[Any]):
    """A child process that runs a module."""

    def __init__(
        self,
        module: str,
        *arguments: str,
        stdin: Stream = subprocess.DEVNULL,
        stdout: Stream = None,
        stderr: Stream = None,
        text: bool = False,
        bufsize: int = -1,
        env: Mapping[str, str] | None = None,
        cwd: str | Path = ROOT,
        in_terminal: bool = False,
    ) -> None:
        """`in_terminal`: standard input is the controlling terminal, whose Ctrl-C interrupts the process."""
        environment = dict(os.environ if env is None else env)
        self._request = _Request(module, list(arguments), environment, str(cwd), in_terminal)
        super().__init__(
            [sys.executable, "-m", module, *arguments],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            text=text,
            bufsize=bufsize,
            env=environment,
            cwd=cwd,
        )

    def _execute_child(self, *values: Any, **more: Any) -> None:
        """Start the process. `Popen` calls this with the ends of the pipes, or -1."""
        execute = super()._execute_child  # type: ignore[misc]
        template = _template_process()
        if not template.can_become(self._request):
            # In a terminal, Ctrl-C then does not interrupt it.
            execute(*values, **more)
            return
        given = inspect.signature(execute).bind(*values, **more).arguments
        self.pid = template.fork(self._request, [given[name] for name in ("p2cread", "c2pwrite", "errwrite")])
        self._child_created = True
        self._close_pipe_fds(*(given[name] for name in _PIPE_ENDS))  # type: ignore[attr-defined]


def run(
    module: str,
    *arguments: str,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    cwd: str | Path = ROOT,
    seconds: float = 30,
) -> subprocess.CompletedProcess[str]:
    """Run a module with this standard input until it ends."""
    pipe = subprocess.PIPE
    with ForkedProcess(
        module, *arguments, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=env, cwd=cwd
    ) as process:
        try:
            out, err = process.communicate(stdin, timeout=seconds)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


class _Request(NamedTuple):
    """What to run; the standard streams are sent beside it."""

    module: str
    arguments: list[str]
    environment: dict[str, str]
    folder: str
    in_terminal: bool


class _TemplateProcess:
    """The process that is forked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._environment = dict(os.environ)
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
            )

    def can_become(self, request: _Request) -> bool:
        return all(
            self._environment.get(name) == value
            for name, value in request.environment.items()
            if name.startswith(_READ_AT_START)
        )

    def fork(self, request: _Request, streams: list[int]) -> int:
        """Start a child of this process and return its id. A stream of -1 is the one of this process."""
        message = os.memfd_create("request")
        try:
            os.write(message, marshal.dumps(tuple(request)))
            inherited = [own if end < 0 else end for own, end in enumerate(streams)]
            with self._lock:
                # The forked process is an orphan, and becomes a child of this process.
                _set_subreaper(enabled=True)
                try:
                    socket.send_fds(self._requests, [b"fork"], [message, *inherited])
                    return int(self._requests.recv(100))
                finally:
                    _set_subreaper(enabled=False)
        finally:
            os.close(message)

    def close(self) -> None:
        self._requests.close()
        self._process.wait()


_libc: Final = ctypes.CDLL(None, use_errno=True)


def _set_subreaper(*, enabled: bool) -> None:
    if _libc.prctl(_PR_SET_CHILD_SUBREAPER, int(enabled), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


_starting: Final = threading.Lock()


def _template_process() -> _TemplateProcess:
    # Two threads must not start two of them: each would reset the subreaper of the other.
    with _starting:
        return _start_template_process()


@cache
def _start_template_process() -> _TemplateProcess:
    started = _TemplateProcess()
    atexit.register(started.close)
    return started


def _import_everything() -> None:
    for name in _PRELOADED:
        for module in pkgutil.walk_packages(import_module(name).__path__, f"{name}."):
            import_module(module.name)


def _serve(requests: socket.socket) -> _Request | None:
    """Fork for every request. Returns the request in a forked process, and `None` at the end."""
    while True:
        data, received, _, _ = socket.recv_fds(requests, 100, 4)
        if not data:
            return None
        answer, to_answer = os.pipe()
        middle = os.fork()
        if middle == 0:
            child = os.fork()
            if child == 0:
                for descriptor in (answer, to_answer, requests.detach()):
                    os.close(descriptor)
                return _take_over(*received)
            os.write(to_answer, str(child).encode())
            os._exit(0)
        # The forked process has become a child of the test process when its parent has ended.
        os.waitpid(middle, 0)
        requests.send(os.read(answer, 100))
        for descriptor in (answer, to_answer, *received):
            os.close(descriptor)


def _take_over(message: int, *streams: int) -> _Request:
    """Adopt the streams, the environment and the folder of a request."""
    request = _Request(*marshal.loads(os.pread(message, os.fstat(message).st_size, 0)))
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
    for descriptor in (message, *streams):
        os.close(descriptor)
    if request.in_terminal:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.stdin = _reopened(sys.stdin, "r")
    sys.stdout = _reopened(sys.stdout, "w")
    sys.stderr = _reopened(sys.stderr, "w")
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    return request


def _reopened(stream: IO[str], mode: str) -> io.TextIOWrapper:
    """Open a standard stream as Python does when it starts."""
    assert isinstance(stream, io.TextIOWrapper)
    return io.TextIOWrapper(
        open(stream.fileno(), f"{mode}b", closefd=False),  # it stays open
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering or os.isatty(stream.fileno()),
        write_through=stream.write_through,
    )


def _run(request: _Request, ended: list[int]) -> None:
    sys.argv = ["", *request.arguments]
    try:
        runpy.run_module(request.module, run_name="__main__", alter_sys=True)
    except SystemExit as error:
        if not isinstance(error.code, str):
            ended.append(error.code or 0)
        raise
    ended.append(0)


def _end_at_once(ended: list[int]) -> None:
    """End without freeing all objects: that would first copy all their pages."""
    if ended:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended[0])


def _main(descriptor: int) -> None:
    # The first function that is registered runs last.
    ended: list[int] = []
    atexit.register(_end_at_once, ended)
    _import_everything()
    # Without this, the first garbage collection of every process would copy the pages of all objects.
    gc.freeze()
    request = _serve(socket.socket(fileno=descriptor))
    if request is not None:
        _run(request, ended)


if __name__ == "__main__":
    _main(int(sys.argv[1]))
