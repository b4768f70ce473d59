"""The file operations: complete files or none, no links followed, nothing unbounded."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dittybag import files


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def write(file: Path, content: bytes, *, overwrite: bool, then: Callable[[], object]) -> None:
    """Write a file, and call `then` before it is complete."""
    with files.atomic_write(file, overwrite=overwrite) as stream:
        stream.write(content)
        then()


@contextmanager
def without_hard_links(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(*paths: object, **options: object) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", refuse)
        yield


def test_a_file_is_replaced_when_it_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"old")
    with files.atomic_write(file) as stream:
        stream.write(b"new")
        stream.flush()
        assert file.read_bytes() == b"old"
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("overwrite", [True, False])
def test_an_error_leaves_no_trace(tmp_path: Path, overwrite: bool) -> None:
    def fail() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write(tmp_path / "a", b"half", overwrite=overwrite, then=fail)
    assert names(tmp_path) == []


def test_an_existing_name_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a"
    file.symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        write(file, b"mine", overwrite=False, then=lambda: pytest.fail("the name is checked first"))
    file.unlink()
    with pytest.raises(FileExistsError):
        write(file, b"mine", overwrite=False, then=lambda: file.write_bytes(b"theirs"))
    with without_hard_links(monkeypatch), pytest.raises(FileExistsError):
        write(file.with_name("b"), b"mine", overwrite=False, then=file.with_name("b").mkdir)
    assert file.read_bytes() == b"theirs"
    assert sorted(names(tmp_path)) == ["a", "b"]


def test_a_new_file_is_written_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with without_hard_links(monkeypatch), files.atomic_write(tmp_path / "a", overwrite=False) as stream:
        stream.write(b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


def test_a_file_is_written_in_a_linked_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with files.atomic_write(tmp_path / "link" / "a") as stream:
        stream.write(b"new")
    assert (tmp_path / "real" / "a").read_bytes() == b"new"


def test_created_folders_are_private_and_returned_innermost_first(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    assert files.make_folders(inner) == [str(inner), str(inner.parent)]
    assert [stat.S_IMODE(path.stat().st_mode) for path in (inner, inner.parent)] == [0o700, 0o700]
    assert files.make_folders(inner) == []


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with files.locked(lock, 1), pytest.raises(files.LockTimeout), files.locked(lock, 0.01):
        pytest.fail("it is locked")
    with files.locked(tmp_path / "lock", 0):
        pass


def test_only_regular_files_within_the_limit_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"12345")
    assert files.read(file, 5) == b"12345"
    with pytest.raises(files.FileTooLarge):
        files.read(file, 4)
    (tmp_path / "link").symlink_to("a")
    assert files.read(tmp_path / "link", 5, follow_links=True) == b"12345"
    with pytest.raises(OSError, match="symbolic link"):
        files.read(tmp_path / "link", 5)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(files.NotRegularFile):
            files.read(path, 5)


def test_a_walk_enters_no_links_and_only_chosen_folders(tmp_path: Path) -> None:
    for name in ("a/1", "b/2", "b/skip/3", "z"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "link").symlink_to("a")
    found = list(files.walk(tmp_path, enter=lambda folder: folder.name != "skip"))
    assert [(entry.path, entry.kind) for entry in found] == [
        ("a/1", "file"),
        ("b/2", "file"),
        ("b/skip", "folder"),
        ("link", "link"),
        ("z", "file"),
    ]
    assert [entry.depth for entry in found] == [2, 2, 2, 1, 1]
    assert [entry.read(10) for entry in files.walk(tmp_path / "a")] == [b"a/1"]
    with pytest.raises(files.TooManyFiles):
        list(files.walk(tmp_path, limit=3))


def test_a_path_below_a_folder_has_no_links(tmp_path: Path) -> None:
    (tmp_path / "root" / "a").mkdir(parents=True)
    (tmp_path / "root" / "out").symlink_to("..")
    os.close(files.open_below(tmp_path / "root", "a/b", make=True))
    assert (tmp_path / "root" / "a" / "b").is_dir()
    for path in ("out", "out/root", "missing"):
        with pytest.raises(OSError, match=r"No such|Not a directory|symbolic"):
            files.open_below(tmp_path / "root", path)


def test_on_macos_a_flush_reaches_the_medium_once_for_a_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`fsync` of macOS leaves data in the cache of the disk; F_FULLFSYNC empties it."""
    flushed: list[tuple[str, str]] = []
    real_fsync = os.fsync

    def path_of(descriptor: int) -> str:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink().relative_to(tmp_path))

    def fsync(descriptor: int) -> None:
        flushed.append(("fsync", path_of(descriptor)))
        real_fsync(descriptor)

    def control(descriptor: int, command: int) -> int:
        assert command == 51
        flushed.append(("full", path_of(descriptor)))
        if refused:
            raise OSError(errno.ENOTSUP, "not on this file system")
        return 0

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", control)
    monkeypatch.setattr(os, "fsync", fsync)
    refused = False
    with files.atomic_write(tmp_path / "a") as stream:
        stream.write(b"new")
    (what, temporary), *rest = flushed
    assert (what, rest) == ("full", [("full", ".")])
    assert temporary.endswith(".tmp")

    flushed.clear()
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    files.sync_tree(tmp_path / "tree")
    assert flushed == [("fsync", "tree/deep"), ("full", "tree")]

    flushed.clear()
    refused = True
    files.sync(tmp_path / "a")
    assert flushed == [("full", "a"), ("fsync", "a")]
