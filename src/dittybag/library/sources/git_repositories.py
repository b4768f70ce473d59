"""Git repositories as library sources.

One commit is fetched into a bare repository, and its files are read from there. Nothing is checked out, so
filters, hooks, attributes, links and submodules of an untrusted repository have no effect. The user's own Git
configuration applies, so credential helpers, proxies and URL rewriting work.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from msgspec import Struct

from dittybag import files
from dittybag.domain.progress import ReportProgress
from dittybag.library.relative_paths import printable
from dittybag.library.sources.limited_copy import LimitedCopy
from dittybag.library.sources.source_argument import GitRemote

_SOURCE: Final = "refs/dittybag/source"

#: Settings that override the user's and the system's configuration.
_SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.symlinks=false",
    "core.bigFileThreshold=16m",
    "fetch.recurseSubmodules=false",
    "fetch.unpackLimit=1",
    "gc.auto=0",
    "init.defaultBranch=main",
    "maintenance.auto=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "transfer.unpackLimit=1",
)

#: Prefixes of variables that configure access to a remote. Other GIT_ variables, such as GIT_DIR, select a
#: local repository and are not passed on.
_ALLOWED_VARIABLES: Final = (
    "GIT_ASKPASS",
    "GIT_CONFIG",
    "GIT_EXEC_PATH",
    "GIT_HTTP_",
    "GIT_PROXY_",
    "GIT_SSH",
    "GIT_SSL_",
)

_PROTOCOLS: Final = {"file": "file", "http": "http:https:ssh", "https": "https:ssh", "ssh": "https:ssh"}

_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_LFS_POINTER_BYTES: Final = 1024

_POLL_SECONDS: Final = 0.1
_CHUNK_BYTES: Final = 64 * 1024


class FetchLimits(Struct, frozen=True):
    """The maximum time and disk space for fetching a repository."""

    seconds: float = 600
    bytes: int = 256 * 1024 * 1024


FETCH_LIMITS: Final = FetchLimits()


class _Blob(Struct, frozen=True):
    path: str
    id: str
    size: int


def fetch(
    remote: GitRemote,
    folder: str,
    work: Path,
    target: LimitedCopy,
    *,
    progress: ReportProgress | None = None,
    limits: FetchLimits = FETCH_LIMITS,
) -> str:
    """Copy the files of a repository, or of a folder in it, to `target`; return the commit id."""
    git = _Git(remote, work / "repository", target, limits)
    git.run("init", "--quiet", "--bare", "--template=", str(git.folder))
    git.fetch(progress)
    commit = git.run("rev-parse", "--verify", "--quiet", f"{_SOURCE}^{{commit}}").strip()
    tree = git.run("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}").strip()
    if folder:
        tree = git.tree(commit, folder)
    blobs = list(git.blobs(tree))
    git.copy_blobs(blobs)
    return commit


class _Git:
    """Runs Git commands for one repository, within limits."""

    def __init__(self, remote: GitRemote, folder: Path, target: LimitedCopy, limits: FetchLimits) -> None:
        self.folder = folder
        self._remote = remote
        self._target = target
        self._limits = limits
        self._deadline = time.monotonic() + limits.seconds
        self._environment = _environment(remote)

    def run(self, *arguments: str) -> str:
        """Run a Git command and return its output. Raises `SourceFailed`."""
        with self._git_process(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            output, errors = process.communicate()
        if process.returncode:
            raise self._failure(errors.decode("utf-8", "replace"))
        return output.decode("utf-8", "surrogateescape")

    def fetch(self, progress: ReportProgress | None) -> None:
        """Fetch the commit. Git and its children are killed beyond the limits of time or disk space."""
        output = b""
        with self._git_process(
            "fetch",
            "--depth=1",
            "--no-tags",
            "--no-recurse-submodules",
            # Progress is written to a pipe, so Git ends when this process dies.
            "--progress",
            "--",
            self._remote.address,
            f"+{self._remote.ref or 'HEAD'}:{_SOURCE}",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stderr is not None
            stream = process.stderr.fileno()
            os.set_blocking(stream, False)
            # Do not wait for the end of the stream: a shared `ssh` connection keeps it open.
            has_ended = False
            while not has_ended:
                self._check_limits(_folder_size(self.folder))
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_SECONDS)
                has_ended = process.returncode is not None
                while chunk := _available(stream):
                    output = (output + chunk)[-_CHUNK_BYTES:]
                if progress is not None and (line := _last_line(output)):
                    progress(line)
        self._check_limits(_folder_size(self.folder))
        if process.returncode:
            raise self._failure(output.decode("utf-8", "replace"))

    def tree(self, commit: str, folder: str) -> str:
        """The id of a folder's tree. Raises `LibraryRefused` if there is no such folder."""
        listed = self.run("ls-tree", "-z", "--full-tree", commit, "--", folder)
        kind, _, rest = listed.partition(" ")[2].partition(" ")
        if kind != "tree":
            raise self._target.refusal(f"there is no folder '{printable(folder)}' in it")
        return rest.partition("\t")[0]

    def blobs(self, tree: str) -> Iterator[_Blob]:
        """Yield the files to copy. Trees count towards the limit: nested trees can repeat a billion times."""
        with self._git_process("ls-tree", "-r", "-t", "-l", "-z", tree, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for line in _nul_separated(process.stdout):
                described, _, name = line.partition(b"\t")
                mode, kind, blob, size = described.decode("ascii", "replace").split()
                path = name.decode("utf-8", "surrogateescape")
                if kind == "tree":
                    self._target.count()
                elif self._target.accepts(path, int(size) if size.isdigit() else 0, _special_kind(mode)):
                    yield _Blob(path, blob, int(size))
        if process.returncode:
            raise self._failure("Git's list of files is incomplete")

    def copy_blobs(self, blobs: Sequence[_Blob]) -> None:
        """Copy the content of files to the target."""
        with self._git_process(
            "cat-file", "--batch", stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for blob in blobs:
                try:
                    process.stdin.write(f"{blob.id}\n".encode())
                    process.stdin.flush()
                except BrokenPipeError:
                    raise self._failure("Git's file content is incomplete") from None
                self._copy_blob(blob, process.stdout)

    def _copy_blob(self, blob: _Blob, stream: IO[bytes]) -> None:
        if stream.readline().split() != [blob.id.encode(), b"blob", str(blob.size).encode()]:
            raise self._failure(f"'{printable(blob.path)}' is damaged")
        content = self._read_exactly(stream, blob.size)
        if content.startswith(_LFS_POINTER) and blob.size <= _LFS_POINTER_BYTES:
            self._target.skip(blob.path, "stored in Git LFS, which is not supported")
        else:
            self._target.write(blob.path, content)
        self._read_exactly(stream, 1)

    def _read_exactly(self, stream: IO[bytes], size: int) -> bytes:
        chunk = stream.read(size)
        if len(chunk) != size:
            raise self._failure("Git's file content is incomplete")
        return chunk

    @contextmanager
    def _git_process(
        self,
        *arguments: str,
        stdin: int = subprocess.DEVNULL,
        stdout: int,
        stderr: int = subprocess.DEVNULL,
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run Git. The process and its children are killed at the deadline and on errors."""
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        command = ["git", f"--git-dir={self.folder}", *settings, *arguments]
        try:
            process = subprocess.Popen(  # noqa: S603  # no shell, and every argument is checked or our own
                command,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=self._environment,
                # Without a terminal: a program that asks for a password there would wait forever.
                start_new_session=True,
            )
        except FileNotFoundError:
            raise self._target.failure(
                "Git is not installed or not on the PATH; install it, or use a folder"
            ) from None
        alarm = threading.Timer(max(0, self._deadline - time.monotonic()), _kill_group, [process])
        alarm.daemon = True
        alarm.start()
        try:
            with process:
                try:
                    yield process
                    if process.stdin is not None:
                        process.stdin.close()
                    process.wait()
                except BaseException:
                    _kill_group(process)
                    raise
        finally:
            alarm.cancel()
        self._check_limits(0)

    def _check_limits(self, size: int) -> None:
        if time.monotonic() >= self._deadline:
            raise self._timeout()
        if size > self._limits.bytes:
            mib = self._limits.bytes // 1024 // 1024
            raise self._target.too_large(f"the repository is larger than {mib} MiB")

    def _timeout(self) -> Exception:
        return self._target.failure(f"fetching took longer than {self._limits.seconds:g} seconds")

    def _failure(self, output: str) -> Exception:
        """An error with the last lines of Git's output, or a timeout error."""
        if time.monotonic() >= self._deadline:
            return self._timeout()
        lines = [line.strip() for line in output.replace("\r", "\n").splitlines() if line.strip()]
        relevant = [
            line for line in lines if line.startswith(("fatal:", "error:", "remote:", "ERROR:", "ssh:"))
        ]
        summary = "; ".join((relevant or lines)[-3:]) or "Git failed"
        return self._target.failure(printable(summary, 400))


def _environment(remote: GitRemote) -> dict[str, str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_ALLOWED_VARIABLES)
    }
    return inherited | {
        "GIT_ALLOW_PROTOCOL": _PROTOCOLS[remote.scheme],
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children, which are in the same session."""
    if process.returncode is not None:
        # The process id may have been reused.
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()


def _folder_size(folder: Path) -> int:
    """The size of a repository on disk."""
    return sum(entry.status.st_size for entry in files.walk(folder))


def _special_kind(mode: str) -> str | None:
    """What an entry is, if it is not a regular file."""
    if mode == "120000":
        return "a symbolic link"
    return "a Git submodule" if mode == "160000" else None


def _nul_separated(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read1(_CHUNK_BYTES):  # type: ignore[attr-defined]  # a pipe is buffered
        *lines, rest = (rest + chunk).split(b"\0")
        yield from lines


def _available(stream: int) -> bytes:
    """What can be read without waiting; nothing at the end."""
    try:
        return os.read(stream, _CHUNK_BYTES)
    except BlockingIOError:
        return b""


def _last_line(output: bytes) -> str:
    lines = output.replace(b"\r", b"\n").split(b"\n")
    return printable(lines[-2].decode("utf-8", "replace")) if len(lines) > 1 else ""
