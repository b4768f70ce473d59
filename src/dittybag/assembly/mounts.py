"""File systems whose locks are not reliable, by the mount table of Linux or `mount` on macOS."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

#: The beginnings of the names of file systems that other machines share, as Linux and macOS name them.
_NETWORK: Final = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "afs",
    "afpfs",
    "ceph",
    "glusterfs",
    "ncpfs",
    "davfs",
    "webdav",
)
#: Folders that a virtual machine or container shares with the system around it. The drives of Windows are
#: drvfs in WSL 1, and 9p or virtiofs in WSL 2.
_SHARED: Final = ("virtiofs", "vboxsf", "prl_fs", "vmhgfs", "fuse.vmhgfs", "fuse.grpcfuse", "osxfs", "drvfs")
#: Network file systems in user space.
_FUSE: Final = ("fuse.sshfs", "fuse.rclone")

_MOUNT_TABLE: Final = "/proc/self/mountinfo"
_MOUNT_COMMAND: Final = "/sbin/mount"
_MOUNT_SECONDS: Final = 5.0
#: A line of `mount` on macOS: `//ann@nas/share on /Volumes/share (smbfs, nodev, nosuid, mounted by ann)`.
_MOUNT_LINE: Final = r".*? on (?P<point>/.*) \((?P<kind>[^,()]+)[^()]*\)"


class Mount(Struct, frozen=True):
    """A mounted file system."""

    #: The folder where it is mounted.
    point: str
    #: As the system names it, such as ext4 or apfs.
    kind: str


def shared_file_system(path: str) -> str | None:
    """Return what a path is on, if other systems share it and locks are not reliable."""
    kind = _file_system_type(path)
    if kind.startswith((*_NETWORK, *_FUSE)):
        return f"a network file system ({kind})"
    return f"a folder that is shared with another system ({kind})" if kind.startswith(_SHARED) else None


def _file_system_type(path: str) -> str:
    """Return the type of the file system of a path, as the system names it; empty if it is not known."""
    real = os.path.join(os.path.realpath(path), "")  # noqa: PTH118  # pathlib is slow to import
    kind, longest = "", 0
    # Of several at the same folder, the last one is on top.
    for mount in _mounts():
        point = os.path.join(mount.point, "")  # noqa: PTH118
        if len(point) >= longest and real.startswith(point):
            kind, longest = mount.kind, len(point)
    return kind


def _mounts() -> Iterable[Mount]:
    try:
        with open(_MOUNT_TABLE, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
            return list(_parse_mount_table(file))
    except OSError:
        return _parse_mount_output(_mount_output())


def _parse_mount_table(lines: Iterable[str]) -> Iterator[Mount]:
    for line in lines:
        fields = line.split(" ")
        # https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html: spaces are written as \040.
        point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[4])
        yield Mount(point, fields[fields.index("-") + 1])


def _mount_output() -> str:
    try:
        done = subprocess.run(  # noqa: S603  # a program of the system
            [_MOUNT_COMMAND],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_MOUNT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return os.fsdecode(done.stdout)


def _parse_mount_output(text: str) -> Iterator[Mount]:
    for line in text.splitlines():
        if (found := re.fullmatch(_MOUNT_LINE, line)) is not None:
            yield Mount(found["point"], found["kind"])
