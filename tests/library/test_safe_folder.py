"""The safe folder: no name, link or race leads out of it, and nothing blocks a read."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from dittybag.library.safe_folder import MAX_DEPTH, MAX_FILES, MissingFile, SafeFolder, UnreadableFile

SECRET = b"a secret"
INSIDE = b"inside"
MAX_BYTES = 1000

OUT = "outside the library"
NO_FILE = "not a regular file"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A library folder with secrets around it."""
    root = tmp_path / "lib"
    (root / "sub").mkdir(parents=True)
    (root / "a.md").write_bytes(INSIDE)
    (root / "sub" / "b.md").write_bytes(INSIDE)
    for place in (tmp_path, tmp_path / "lib-secret", tmp_path / "libsub"):
        place.mkdir(exist_ok=True)
        (place / "secret.md").write_bytes(SECRET)
    return root


@pytest.fixture
def folder(root: Path) -> SafeFolder:
    return SafeFolder(str(root))


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def refused(folder: SafeFolder, name: str) -> str:
    """The reason why a file is not read."""
    before = descriptors()
    with pytest.raises(UnreadableFile) as refusal:
        folder.read(name, MAX_BYTES)
    assert descriptors() == before
    return refusal.value.problem


def is_read(folder: SafeFolder, name: str) -> bool:
    stamp, content = folder.read(name, MAX_BYTES)
    assert content == INSIDE
    return folder.stamp(name) == stamp


# Names

WAYS_OUT = [
    "..",
    "../secret.md",
    "../lib-secret/secret.md",
    "../libsub/secret.md",
    "sub/../../secret.md",
    "sub/../../lib/../secret.md",
    "./../secret.md",
    "sub//../../secret.md",
    "{outside}/secret.md",
    "/etc/passwd",
    "//etc/passwd",
    "/proc/self/environ",
    "/dev/zero",
]

#: Names that lead out of the folder, or that are not in normal form.
ODD_WAYS = [
    "",
    ".",
    "/",
    "{root}/a.md",
    "./a.md",
    "sub/../a.md",
    "sub//b.md",
    "/a.md",
    "a.md/",
    "sub/",
    "\0",
    "a.md\0",
    "a.md\0.md",
    "sub\0/b.md",
    "..\\secret.md",
    "sub\\b.md",
    "sub\\..\\..\\secret.md",
]

#: Names with a special meaning elsewhere, which are missing files here.
NO_WAYS = [
    "%2e%2e/secret.md",
    "..%2fsecret.md",
    "～/secret.md",
    "~/.profile",
    "․․/secret.md",
    "...",
    "a.md/b",
    "-",
    "*",
]


def expand_name(root: Path, name: str) -> str:
    return name.format(root=root, outside=root.parent) if "{" in name else name


@pytest.mark.parametrize("name", WAYS_OUT + ODD_WAYS)
def test_no_name_leads_out_of_the_folder(root: Path, folder: SafeFolder, name: str) -> None:
    assert refused(folder, expand_name(root, name)) == OUT


@pytest.mark.parametrize("name", NO_WAYS)
def test_unusual_names_of_missing_files_are_not_found(folder: SafeFolder, name: str) -> None:
    with pytest.raises(MissingFile):
        folder.read(name, MAX_BYTES)
    assert folder.stamp(name) is None


# Links


def create_links(root: Path, **links: str) -> None:
    for name, target in links.items():
        (root / name).symlink_to(target.format(root=root, outside=root.parent))


def test_links_inside_are_followed(root: Path, folder: SafeFolder) -> None:
    create_links(
        root, near="a.md", absolute="{root}/a.md", chain="near", down="sub/b.md", around="../lib/a.md"
    )
    create_links(root, alias="sub")
    for name in ("near", "absolute", "chain", "down", "around"):
        assert is_read(folder, name)
        assert name in folder.list().files
    assert is_read(folder, "alias/b.md")
    # Its files are listed at their real path.
    assert "alias/b.md" not in folder.list().files


def test_a_link_has_the_stamp_of_its_target(root: Path, folder: SafeFolder) -> None:
    create_links(root, near="a.md")
    before = folder.stamp("near")
    assert before == folder.stamp("a.md") == folder.list().files["near"]
    (root / "a.md").write_bytes(INSIDE * 2)
    assert folder.stamp("near") == folder.stamp("a.md") != before


def test_broken_and_circular_links_are_not_files(root: Path, folder: SafeFolder) -> None:
    create_links(root, self="self", here="there", there="here", nowhere="no.md", up="sub/up")
    (root / "sub" / "up").symlink_to("../up")
    (root / "again").symlink_to(".")
    for name in ("self", "here", "nowhere", "up", "sub/up", "self/a.md", "again"):
        refused(folder, name)
        assert folder.stamp(name) is None
    assert set(folder.list().files) == {"a.md", "sub/b.md"}


# Races

#: Replaces `here` by one path after the other, until it is killed.
SWAPPER = """
import os, sys
here, *others = sys.argv[1:]
print(flush=True)
while True:
    for other in others:
        os.rename(other, here)
        os.rename(here, other)
"""


@contextmanager
def swapping(here: Path, *others: Path) -> Iterator[None]:
    command = [sys.executable, "-c", SWAPPER, str(here), *map(str, others)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
        try:
            assert swapper.stdout is not None
            swapper.stdout.readline()
            yield
            assert swapper.poll() is None, "nothing was swapping"
        finally:
            swapper.kill()


def read_repeatedly(folder: SafeFolder, name: str, seconds: float = 0.7) -> dict[bytes, int]:
    """Read a file repeatedly; return how often each content was read. Unreadable counts as empty."""
    seen: dict[bytes, int] = {}
    before = descriptors()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            _, content = folder.read(name, MAX_BYTES)
        except UnreadableFile:
            content = b""
        seen[content] = seen.get(content, 0) + 1
    assert descriptors() == before
    return seen


def test_a_folder_replaced_by_a_link_leads_nowhere(root: Path, folder: SafeFolder) -> None:
    outside = root.parent / "lib-secret"
    (outside / "b.md").write_bytes(SECRET)
    create_links(root, link=str(outside))
    (root / "sub").rename(root / "real")
    with swapping(root / "sub", root / "real", root / "link"):
        seen = read_repeatedly(folder, "sub/b.md")
    assert seen.keys() == {INSIDE, b""}


def test_a_file_replaced_by_a_link_leads_nowhere(root: Path, folder: SafeFolder) -> None:
    create_links(root, link="../secret.md", near="sub/b.md")
    (root / "a.md").rename(root / "real.md")
    with swapping(root / "a.md", root / "real.md", root / "link", root / "near"):
        seen = read_repeatedly(folder, "a.md")
    assert seen.keys() == {INSIDE, b""}


def test_a_link_replaced_during_a_read_leads_nowhere(root: Path, folder: SafeFolder) -> None:
    """The link leads inside when it is checked, and outside when it is followed."""
    outside = root.parent / "lib-secret"
    (outside / "b.md").write_bytes(SECRET)
    create_links(root, good="sub", bad=str(outside), door="way/b.md")
    with swapping(root / "way", root / "good", root / "bad"):
        seen = read_repeatedly(folder, "door")
    assert seen.keys() == {INSIDE, b""}


def test_a_file_replaced_by_a_fifo_does_not_block(root: Path, folder: SafeFolder) -> None:
    os.mkfifo(root / "pipe")
    (root / "a.md").rename(root / "real.md")
    with (
        swapping(root / "a.md", root / "real.md", root / "pipe"),
        fails_if_blocked(root / "a.md", root / "pipe"),
    ):
        seen = read_repeatedly(folder, "a.md")
    assert seen.keys() == {INSIDE, b""}


def test_a_folder_replaced_by_a_link_is_not_listed(root: Path, folder: SafeFolder) -> None:
    create_links(root, link="../lib-secret")
    (root / "sub").rename(root / "real")
    listed: set[str] = set()
    with swapping(root / "sub", root / "real", root / "link"):
        end = time.monotonic() + 1.0
        while time.monotonic() < end and "sub/secret.md" not in listed:
            listed |= folder.list().files.keys()
    assert "sub/b.md" in listed
    assert "sub/secret.md" not in listed


# Special files


@contextmanager
def fails_if_blocked(*pipes: Path) -> Iterator[None]:
    """Fail if the block waits for a writer of these pipes."""
    done = threading.Event()
    late = threading.Event()

    def free() -> None:
        if done.wait(3):
            return
        late.set()
        while not done.wait(0.01):
            for pipe in pipes:
                with suppress(OSError):
                    os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))

    freeing = threading.Thread(target=free)
    freeing.start()
    try:
        yield
    finally:
        done.set()
        freeing.join()
    assert not late.is_set(), "it waited"


# Sizes


#: Appends to a file, and truncates it when it has become large, until it is killed.
GROWER = """
import sys
with open(sys.argv[1], "wb", buffering=0) as file:
    print(flush=True)
    while True:
        for _ in range(2000):
            file.write(b"x" * 100)
        file.seek(0)
        file.truncate()
"""


def test_a_file_that_grows_during_a_read_is_truncated_or_refused(root: Path, folder: SafeFolder) -> None:
    most = 100_000
    sizes: set[int] = set()
    refusals: set[str] = set()
    with subprocess.Popen(
        [sys.executable, "-c", GROWER, str(root / "a.md")], stdout=subprocess.PIPE
    ) as grower:
        try:
            assert grower.stdout is not None
            grower.stdout.readline()
            deadline = time.monotonic() + 60
            while len(sizes) <= 10 or not refusals:
                assert time.monotonic() < deadline, (sizes, refusals)
                try:
                    sizes.add(len(folder.read("a.md", most)[1]))
                except UnreadableFile as refusal:
                    refusals.add(refusal.problem)
        finally:
            grower.kill()
    assert max(sizes) <= most
    assert refusals == {"larger than 97.7 KiB"}


def test_reading_returns_the_stamp_of_the_content(root: Path, folder: SafeFolder) -> None:
    stamp, _ = folder.read("a.md", MAX_BYTES)
    assert stamp == folder.stamp("a.md") == folder.list().files["a.md"]
    (root / "a.md").write_bytes(INSIDE.upper())
    assert folder.stamp("a.md") != stamp


# Listing


def test_unprintable_names_are_skipped(root: Path, folder: SafeFolder) -> None:
    for name in (b"new\nline.md", b"escape\x1b[2J.md", b"bad\xff.md", b"turned\xe2\x80\xae.md"):
        (root / os.fsdecode(name)).touch()
    listing = folder.list()
    assert set(listing.files) == {"a.md", "sub/b.md"}
    assert len(listing.skipped) == 4
    assert all(name.isprintable() and name.isascii() for name in listing.skipped)


def test_folders_are_listed_up_to_the_maximum_depth(root: Path, folder: SafeFolder) -> None:
    deep = root
    for depth in range(1, MAX_DEPTH + 3):
        deep /= "d"
        deep.mkdir()
        (deep / f"{depth}.md").write_bytes(INSIDE)
    files = {name.rpartition("/")[2] for name in folder.list().files}
    assert files == {"a.md", "b.md", *(f"{depth}.md" for depth in range(1, MAX_DEPTH + 1))}


def test_the_number_of_files_in_a_folder_is_limited(root: Path, folder: SafeFolder) -> None:
    for number in range(MAX_FILES - 2):
        os.link(root / "a.md", root / f"b{number}.md")
    listing = folder.list()
    assert (len(listing.files), listing.skipped) == (MAX_FILES, {})
    os.link(root / "a.md", root / "c.md")
    listing = folder.list()
    assert len(listing.files) == MAX_FILES
    ((_, reason),) = listing.skipped.items()
    assert reason.startswith("too many files")


def test_files_deleted_during_listing_are_not_listed(root: Path, folder: SafeFolder) -> None:
    (root / "sub").rename(root / "real")
    with swapping(root / "sub", root / "real"):
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            assert folder.list().files.keys() <= {"a.md", "sub/b.md", "real/b.md"}
