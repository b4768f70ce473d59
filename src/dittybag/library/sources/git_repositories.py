"""Git repositories as sources of libraries.

One commit is fetched into a bare repository, and its files are read from there. Nothing is ever checked out:
no filter, hook, attribute, link or submodule of a foreign repository has a chance to do anything. The user's
own configuration stays in force, so that credential helpers, proxies and rewritten addresses work.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from msgspec import Struct

from dittybag.library.relative_paths import shown
from dittybag.library.sources import GitRemote
from dittybag.library.sources.limited_copy import LimitedCopy, Progress

_SOURCE: Final = "refs/dittybag/source"

#: What the user's or the system's configuration must not bring in.
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

#: Variables that say how to reach a repository. All others of Git's say where one is: not here.
_KEPT_VARIABLES: Final = (
    "GIT_ASKPASS",
    "GIT_CONFIG",
    "GIT_EXEC_PATH",
    "GIT_HTTP_",
    "GIT_PROXY_",
    "GIT_SSH",
    "GIT_SSL_",
)

_PROTOCOLS: Final = {"file": "file", "http": "http:https:ssh", "https": "https:ssh", "ssh": "https:ssh"}

_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_POINTER_BYTES: Final = 1024

_POLL_SECONDS: Final = 0.1
_PIECE: Final = 64 * 1024


class FetchLimits(Struct, frozen=True):
    """How much of this machine fetching a repository may take."""

    seconds: float = 600
    bytes: int = 256 * 1024 * 1024


FETCH_LIMITS: Final = FetchLimits()


class _Blob(Struct, frozen=True):
    path: str
    id: str
    size: int


def fetch(
    repository: GitRemote,
    folder: str,
    work: Path,
    intake: LimitedCopy,
    *,
    progress: Progress | None = None,
    bounds: FetchLimits = FETCH_LIMITS,
) -> str:
    """Take the files of a repository, or of a folder in it; the commit they are from."""
    git = _Git(repository, work / "repository", intake, bounds)
    git.run("init", "--quiet", "--bare", "--template=", str(git.folder))
    git.fetch(progress)
    commit = git.run("rev-parse", "--verify", "--quiet", f"{_SOURCE}^{{commit}}").strip()
    tree = git.run("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}").strip()
    if folder:
        tree = git.tree(commit, folder)
    blobs = list(git.blobs(tree))
    git.take(blobs)
    return commit


class _Git:
    """Git, at work on one repository, within its bounds."""

    def __init__(self, repository: GitRemote, folder: Path, intake: LimitedCopy, bounds: FetchLimits) -> None:
        self.folder = folder
        self._repository = repository
        self._intake = intake
        self._bounds = bounds
        self._end = time.monotonic() + bounds.seconds
        self._environment = _environment(repository)

    def run(self, *arguments: str) -> str:
        """What a command says; it must succeed."""
        with self._running(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            output, said = process.communicate()
        if process.returncode:
            raise self._failure(said.decode("utf-8", "replace"))
        return output.decode("utf-8", "surrogateescape")

    def fetch(self, progress: Progress | None) -> None:
        """Get the commit. Ends, with all its children, when time or room is used up."""
        said = bytearray()
        with self._running(
            "fetch",
            "--depth=1",
            "--no-tags",
            "--no-recurse-submodules",
            # It is said into a pipe: when nobody reads it any more, Git ends.
            "--progress",
            "--",
            self._repository.address,
            f"+{self._repository.ref or 'HEAD'}:{_SOURCE}",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stderr is not None
            stream = [process.stderr]
            # Not until the end of the stream: a connection that `ssh` keeps for later holds it open.
            while process.poll() is None:
                self._check(_size(self.folder))
                self._hear(stream, said, _POLL_SECONDS)
                if progress is not None and (line := _last_line(said)):
                    progress(line)
            while self._hear(stream, said, 0):
                pass
        self._check(_size(self.folder))
        if process.returncode:
            raise self._failure(said.decode("utf-8", "replace"))

    @staticmethod
    def _hear(stream: list[IO[bytes]], said: bytearray, seconds: float) -> bool:
        """Wait for more of what Git says; whether there was any. A stream that has ended is dropped."""
        if not select.select(stream, [], [], seconds)[0]:
            return False
        piece = os.read(stream[0].fileno(), 4096)
        if not piece:
            stream.clear()
        said += piece
        del said[:-_PIECE]
        return bool(piece)

    def tree(self, commit: str, folder: str) -> str:
        """The tree of a folder, which must be there."""
        listed = self.run("ls-tree", "-z", "--full-tree", commit, "--", folder)
        kind, _, rest = listed.partition(" ")[2].partition(" ")
        if kind != "tree":
            raise self._intake.refusal(f"has no folder '{shown(folder)}'")
        return rest.partition("\t")[0]

    def blobs(self, tree: str) -> Iterator[_Blob]:
        """The files that are wanted. Trees are counted too: a tree can hold itself a billion times."""
        with self._running("ls-tree", "-r", "-t", "-l", "-z", tree, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for line in _zero_terminated(process.stdout):
                described, _, name = line.partition(b"\t")
                mode, kind, blob, size = described.decode("ascii", "replace").split()
                path = name.decode("utf-8", "surrogateescape")
                if kind == "tree":
                    # It counts, and is otherwise told from its files.
                    self._intake.count()
                elif self._intake.wants(path, _special(mode)) and self._intake.fits(path, int(size)):
                    yield _Blob(path, blob, int(size))
        if process.returncode:
            raise self._failure("the list of files breaks off")

    def take(self, blobs: Sequence[_Blob]) -> None:
        """Take the content of files."""
        with self._running("cat-file", "--batch", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for blob in blobs:
                try:
                    process.stdin.write(f"{blob.id}\n".encode())
                    process.stdin.flush()
                except BrokenPipeError:
                    raise self._failure("the content of files breaks off") from None
                self._take(blob, process.stdout)

    def _take(self, blob: _Blob, stream: IO[bytes]) -> None:
        if stream.readline().split() != [blob.id.encode(), b"blob", str(blob.size).encode()]:
            raise self._failure(f"'{shown(blob.path)}' is damaged")
        if blob.size <= _POINTER_BYTES:
            content = self._exactly(stream, blob.size)
            if content.startswith(_POINTER):
                self._intake.leave_out(blob.path, "is kept in Git LFS, which is not fetched")
            else:
                self._intake.take(blob.path, (content,))
        else:
            self._intake.take(blob.path, self._pieces(stream, blob.size))
        self._exactly(stream, 1)

    def _pieces(self, stream: IO[bytes], size: int) -> Iterator[bytes]:
        while size:
            piece = self._exactly(stream, min(size, _PIECE))
            size -= len(piece)
            yield piece

    def _exactly(self, stream: IO[bytes], size: int) -> bytes:
        piece = stream.read(size)
        if len(piece) != size:
            raise self._failure("the content of files breaks off")
        return piece

    @contextmanager
    def _running(
        self,
        *arguments: str,
        stdin: int = subprocess.DEVNULL,
        stdout: int,
        stderr: int = subprocess.DEVNULL,
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A process that is gone afterwards, with its children, and does not outlive its time."""
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        command = ["git", f"--git-dir={self.folder}", *settings, *arguments]
        try:
            process = subprocess.Popen(  # noqa: S603  # no shell, and every argument is checked or our own
                command,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=self._environment,
                # Out of reach of a terminal: a program that asks for a password there would wait forever.
                start_new_session=True,
            )
        except FileNotFoundError:
            raise self._intake.failure(
                "Git is not installed, or not on the PATH. Install it, or give a folder or a zip file"
            ) from None
        alarm = threading.Timer(max(0, self._end - time.monotonic()), _end, [process])
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
                    _end(process)
                    raise
        finally:
            alarm.cancel()
        self._check(0)

    def _check(self, size: int) -> None:
        if time.monotonic() >= self._end:
            raise self._too_late()
        if size > self._bounds.bytes:
            most = self._bounds.bytes // 1024 // 1024
            raise self._intake.refusal(f"is a repository of more than {most} MiB")

    def _too_late(self) -> Exception:
        return self._intake.failure(f"it took longer than {self._bounds.seconds:g} seconds")

    def _failure(self, said: str) -> Exception:
        """What Git said last, without what is secret; or that it took too long."""
        if time.monotonic() >= self._end:
            return self._too_late()
        for secret in self._repository.secrets:
            said = said.replace(secret, "***")
        lines = [line.strip() for line in said.replace("\r", "\n").splitlines() if line.strip()]
        telling = [
            line for line in lines if line.startswith(("fatal:", "error:", "remote:", "ERROR:", "ssh:"))
        ]
        words = "; ".join((telling or lines)[-3:]) or "Git failed"
        return self._intake.failure(shown(words, 400))


def _environment(repository: GitRemote) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_KEPT_VARIABLES)
    }
    return kept | {
        "GIT_ALLOW_PROTOCOL": _PROTOCOLS[repository.scheme],
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children, which are in its session."""
    if process.returncode is not None:
        # Its number may be another's by now.
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()


def _size(folder: Path) -> int:
    """How much a repository takes on disk by now."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(f"{parent}/{name}").st_size
            except FileNotFoundError:
                # Git renames what is complete.
                continue
    return total


def _special(mode: str) -> str | None:
    """What an entry is that is no file."""
    if mode == "120000":
        return "a symbolic link"
    return "another repository inside this one" if mode == "160000" else None


def _zero_terminated(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while piece := stream.read1(_PIECE):  # type: ignore[attr-defined]  # a pipe is buffered
        *lines, rest = (rest + piece).split(b"\0")
        yield from lines


def _last_line(said: bytearray) -> str:
    lines = said.replace(b"\r", b"\n").split(b"\n")
    return shown(lines[-2].decode("utf-8", "replace")) if len(lines) > 1 else ""
