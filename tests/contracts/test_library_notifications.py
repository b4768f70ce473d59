"""Changes to library files are served, and clients notified, within a second."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.contracts.library_fixtures import (
    ERAS,
    LibraryClient,
    Machine,
    TooLate,
    twig_manifest,
    write_files,
    write_twig_library,
)
from tests.storage.sqlite.scripted_process import drop_privileges

#: The maximum number of seconds until a change is served and notified.
DEADLINE = 1.0
#: The minimum number of seconds between notifications, and the time they take to the client.
MIN_INTERVAL = 0.5
TRANSIT = 0.05

Files = dict[str, str | bytes]
#: Texts of prompts by name, `None` for prompts that fail.
Texts = dict[str, str | None]
Change = Callable[[Path], object]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    root = tmp_path / "first"
    root.mkdir()
    return Machine(root)


def retried_if_late(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test again in another folder if it was too late, because the machine may be busy."""

    @wraps(test)
    def run(machine: Machine, **parameters: Any) -> None:
        try:
            test(machine, **parameters)
        except TooLate:
            root = machine.root.with_name("second")
            root.mkdir()
            test(Machine(root), **parameters)

    return run


@contextmanager
def open_clients(machine: Machine, profile: str, before: Texts) -> Iterator[list[LibraryClient]]:
    """Open a client of each era, which gets these texts."""
    # The servers start concurrently.
    clients = [LibraryClient(machine, profile, version=version) for version in ERAS]
    with ExitStack() as stack:
        for client in clients:
            stack.enter_context(client)
        for client in clients:
            assert client.texts() == before
        yield clients


def assert_notified(clients: list[LibraryClient], change: Callable[[], object], after: Texts) -> None:
    """Make a change; every client must be notified and get the new texts within a second."""
    known = [len(client.notification_times) for client in clients]
    began = time.monotonic()
    change()
    for client, before in zip(clients, known, strict=True):
        # A change of several files may cause several notifications, also while the client reads.
        while (received := len(client.notification_times)) == before or client.texts() != after:
            if len(client.notification_times) == received:
                client.wait_for_notification(began + DEADLINE - time.monotonic())
        if time.monotonic() - began > DEADLINE:
            raise TooLate("notified in time, but not served")


def assert_edit_notified(clients: list[LibraryClient], folder: Path, text: str) -> None:
    """Write a library with this text; every client must be notified and get it within a second."""
    assert_notified(clients, lambda: write_twig_library(folder, {"a": text}), {"lib:a": text})


# Files


class FileChange(NamedTuple):
    """A change to a file, and the prompts before and after it."""

    before: Files
    texts: Texts
    apply: Change
    after: Texts


TWIG: Files = {"twig.toml": twig_manifest("a", "b"), "prompts/a.md": "one"}
TWIG_SHOWN: Texts = {"lib:a": "one", "lib:b": None}
MARKDOWN: Files = {"a.md": "one", "more/c.md": "see"}
MARKDOWN_SHOWN: Texts = {"lib:a": "one", "lib:more.c": "see"}


def _save_by_renaming(file: Path, text: str) -> None:
    """Save a file as many editors do."""
    beside = file.with_name(f".{file.name}.tmp")
    beside.write_text(text)
    beside.replace(file)


def _add_key(folder: Path) -> None:
    write_files(folder, {"prompts/c.md": "three"})
    with (folder / "twig.toml").open("a") as file:
        file.write(twig_manifest("c"))


def _delete_all(folder: Path) -> None:
    for file in MARKDOWN:
        (folder / file).unlink()


TWIG_CHANGES: dict[str, tuple[Change, Texts]] = {
    "a prompt's file is created": (
        lambda folder: write_files(folder, {"prompts/b.md": "two"}),
        {"lib:a": "one", "lib:b": "two"},
    ),
    "a prompt's file is edited in place": (
        lambda folder: write_files(folder, {"prompts/a.md": "new"}),
        {"lib:a": "new", "lib:b": None},
    ),
    "a prompt's file is saved by renaming": (
        lambda folder: _save_by_renaming(folder / "prompts/a.md", "new"),
        {"lib:a": "new", "lib:b": None},
    ),
    "a prompt's file is deleted": (
        lambda folder: (folder / "prompts/a.md").unlink(),
        {"lib:a": None, "lib:b": None},
    ),
    "a prompt's file is renamed": (
        lambda folder: (folder / "prompts/a.md").rename(folder / "prompts/b.md"),
        {"lib:a": None, "lib:b": "one"},
    ),
    "a key is added to the manifest": (_add_key, {"lib:a": "one", "lib:b": None, "lib:c": "three"}),
    "the manifest is saved by renaming": (
        lambda folder: _save_by_renaming(folder / "twig.toml", twig_manifest("a")),
        {"lib:a": "one"},
    ),
    "the manifest is deleted": (lambda folder: (folder / "twig.toml").unlink(), {"lib:a": "one"}),
}

#: Of a library without a manifest.
MARKDOWN_CHANGES: dict[str, tuple[Change, Texts]] = {
    "a file is created": (
        lambda folder: write_files(folder, {"new/deep/b.md": "two"}),
        MARKDOWN_SHOWN | {"lib:new.deep.b": "two"},
    ),
    "a file is edited in place": (
        lambda folder: write_files(folder, {"more/c.md": "sea"}),
        MARKDOWN_SHOWN | {"lib:more.c": "sea"},
    ),
    "a file is saved by renaming": (
        lambda folder: _save_by_renaming(folder / "a.md", "two"),
        MARKDOWN_SHOWN | {"lib:a": "two"},
    ),
    "a file is deleted": (lambda folder: (folder / "more/c.md").unlink(), {"lib:a": "one"}),
    "a file is renamed": (
        lambda folder: (folder / "a.md").rename(folder / "more/b.md"),
        {"lib:more.b": "one", "lib:more.c": "see"},
    ),
    "a folder is renamed": (
        lambda folder: (folder / "more").rename(folder / "less"),
        {"lib:a": "one", "lib:less.c": "see"},
    ),
    "the last file is deleted": (_delete_all, {}),
}

CHANGES = {case: FileChange(TWIG, TWIG_SHOWN, *change) for case, change in TWIG_CHANGES.items()}
CHANGES |= {case: FileChange(MARKDOWN, MARKDOWN_SHOWN, *change) for case, change in MARKDOWN_CHANGES.items()}


#: Tested one by one, so that no other change causes the notification.
ONE_BY_ONE = (
    "a prompt's file is created",
    "a prompt's file is edited in place",
    "a prompt's file is saved by renaming",
    "a prompt's file is deleted",
    "a prompt's file is renamed",
    "a key is added to the manifest",
    "a file is created",
    "a folder is renamed",
)


@pytest.mark.parametrize("case", ONE_BY_ONE)
@retried_if_late
def test_a_change_to_a_file_is_served_and_notified_within_a_second(machine: Machine, case: str) -> None:
    change = CHANGES[case]
    folder = write_files(machine.twig_libraries / "lib", change.before)
    with open_clients(machine, "twig", change.texts) as clients:
        assert_notified(clients, lambda: change.apply(folder), change.after)


#: Only some changes, because every link needs a command.
LINKED = (
    "a prompt's file is edited in place",
    "a prompt's file is saved by renaming",
    "a key is added to the manifest",
    "a file is created",
    "a file is renamed",
    "the last file is deleted",
)


@pytest.mark.parametrize("origin", ["twig", "own", "linked"])
@retried_if_late
def test_changes_to_files_of_many_libraries_are_served_and_notified_within_a_second(
    machine: Machine, origin: str
) -> None:
    """All changes happen at the same time, each in its own library."""

    profile = "twig" if origin == "twig" else "all"
    directory = machine.root / "elsewhere" if origin == "linked" else machine.libraries_of(profile)
    applied = LINKED if origin == "linked" else CHANGES
    folders = {f"lib{number}": CHANGES[case] for number, case in enumerate(applied)}
    before: Texts = {}
    after: Texts = {}
    for name, change in folders.items():
        folder = write_files(directory / name, change.before)
        if origin == "linked":
            machine.link(folder, name)
        before |= _with_library_name(name, change.texts)
        after |= _with_library_name(name, change.after)

    def everything() -> None:
        for name, change in folders.items():
            change.apply(directory / name)

    with open_clients(machine, profile, before) as clients:
        assert_notified(clients, everything, after)


def _with_library_name(name: str, texts: Texts) -> Texts:
    return {key.replace("lib:", f"{name}:"): text for key, text in texts.items()}


# Libraries


def _move_in(machine: Machine, directory: Path) -> None:
    write_twig_library(machine.root / "coming", {"a": "new"}).rename(directory / "new")


def _replace_all(machine: Machine, directory: Path) -> None:
    shutil.rmtree(directory)
    write_twig_library(directory / "new", {"a": "new"})


def _swap_all(machine: Machine, directory: Path) -> None:
    write_twig_library(machine.root / "coming/new", {"a": "new"})
    directory.rename(machine.root / "going")
    (machine.root / "coming").rename(directory)


LIBRARIES: dict[str, tuple[Callable[[Machine, Path], object], Texts]] = {
    "moved in": (_move_in, {"new:a": "new", "old:a": "old"}),
    "written": (
        lambda machine, directory: write_twig_library(directory / "new", {"a": "new"}),
        {"new:a": "new", "old:a": "old"},
    ),
    "written without a manifest": (
        lambda machine, directory: write_files(directory / "new", {"a.md": "new", "b/c.md": "deep"}),
        {"new:a": "new", "new:b.c": "deep", "old:a": "old"},
    ),
    "linked in": (
        lambda machine, directory: (directory / "new").symlink_to(
            write_twig_library(machine.root / "elsewhere", {"a": "new"})
        ),
        {"new:a": "new", "old:a": "old"},
    ),
    "removed": (lambda machine, directory: shutil.rmtree(directory / "old"), {}),
    "moved away": (lambda machine, directory: (directory / "old").rename(machine.root / "away"), {}),
    "renamed": (
        lambda machine, directory: (directory / "old").rename(directory / "Other One"),
        {"other_one:a": "old"},
    ),
    "replaced with the directory": (_replace_all, {"new:a": "new"}),
    "swapped with the directory": (_swap_all, {"new:a": "new"}),
}


OWN = ("removed", "replaced with the directory")


@pytest.mark.parametrize(
    ("profile", "case"), [*(("twig", case) for case in LIBRARIES), *(("all", case) for case in OWN)]
)
@retried_if_late
def test_a_change_to_a_library_is_served_and_notified_within_a_second(
    machine: Machine, profile: str, case: str
) -> None:
    apply, after = LIBRARIES[case]
    directory = machine.libraries_of(profile)
    write_twig_library(directory / "old", {"a": "old"})
    with open_clients(machine, profile, {"old:a": "old"}) as clients:
        assert_notified(clients, lambda: apply(machine, directory), after)


@retried_if_late
def test_a_removed_directory_is_served_again_when_it_is_re_created(machine: Machine) -> None:
    directory = machine.twig_libraries
    write_twig_library(directory / "lib", {"a": "one"})
    with open_clients(machine, "twig", {"lib:a": "one"}) as clients:
        assert_notified(clients, lambda: shutil.rmtree(directory), {})
        assert_edit_notified(clients, directory / "lib", "two")
        assert_edit_notified(clients, directory / "lib", "three")


@pytest.mark.parametrize(("profile", "existing"), [("twig", "the other directory"), ("all", "nothing")])
@retried_if_late
def test_the_first_library_is_notified_if_there_was_none_at_the_start(
    machine: Machine, profile: str, existing: str
) -> None:
    directory = machine.libraries_of(profile)
    if existing == "the other directory":
        machine.libraries.mkdir(parents=True)
    with open_clients(machine, profile, {}) as clients:
        assert_edit_notified(clients, directory / "lib", "one")
        assert_edit_notified(clients, directory / "lib", "two")


@pytest.mark.parametrize(("profile", "others"), [("twig", True), ("all", False)])
@retried_if_late
def test_adding_and_removing_a_link_is_notified(machine: Machine, profile: str, others: bool) -> None:
    folder = write_twig_library(machine.root / "work", {"a": "one"})
    if others:
        write_twig_library(machine.libraries / "zoo", {"a": "own"})
    rest: Texts = {"zoo:a": "own"} if others else {}
    with open_clients(machine, profile, rest) as clients:
        # The time counts from the end of the command.
        machine.link(folder, "lib")
        assert_notified(clients, lambda: None, {"lib:a": "one", **rest})
        assert_notified(clients, lambda: write_twig_library(folder, {"a": "two"}), {"lib:a": "two", **rest})
        machine.run("library", "remove", "lib")
        assert_notified(clients, lambda: None, rest)
    assert (folder / "twig.toml").exists()


@retried_if_late
def test_a_linked_folder_that_is_moved_away_and_back_is_watched(machine: Machine) -> None:
    folder = write_twig_library(machine.root / "work", {"a": "one"})
    machine.link(folder, "lib")
    with open_clients(machine, "all", {"lib:a": "one"}) as clients:
        assert_notified(clients, lambda: folder.rename(machine.root / "away"), {})
        assert_notified(clients, lambda: (machine.root / "away").rename(folder), {"lib:a": "one"})
        assert_edit_notified(clients, folder, "two")


def repoint(link: Path, target: Path) -> None:
    """Point a link elsewhere, in the usual way to deploy."""
    subprocess.run(["ln", "-sfn", str(target), str(link)], check=True)


@pytest.mark.parametrize("kind", ["library", "linked", "directory", "chain", "chain of a linked library"])
@retried_if_late
def test_a_link_that_is_pointed_elsewhere_is_followed(machine: Machine, kind: str) -> None:
    releases = [machine.root / "releases" / text for text in ("one", "two", "three")]
    for release in releases:
        write_twig_library(release / "lib", {"a": release.name})
    current = machine.root / "current"
    profile = "all" if kind.endswith("linked library") or kind == "linked" else "twig"
    if kind == "directory":
        machine.twig_libraries = current
    if kind in ("library", "chain"):
        machine.twig_libraries.mkdir()
    link = machine.twig_libraries / "lib" if kind == "library" else current
    inside = "lib" if kind in ("library", "linked") else ""
    repoint(link, releases[0] / inside)
    if kind == "chain":
        (machine.twig_libraries / "lib").symlink_to(current / "lib")
    elif kind == "linked":
        machine.link(current, "lib")
    elif kind == "chain of a linked library":
        machine.link(current / "lib", "lib")
    with open_clients(machine, profile, {"lib:a": "one"}) as clients:
        assert_notified(clients, lambda: repoint(link, releases[1] / inside), {"lib:a": "two"})
        # The new folder is watched.
        edited = releases[1] / "lib"
        assert_edit_notified(clients, edited, "edited")
        assert_notified(clients, lambda: repoint(link, releases[2] / inside), {"lib:a": "three"})


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("lib", "this folder cannot be read: permission denied"),
        ("lib/sub", "cannot be read: permission denied"),
    ],
)
def test_a_folder_that_can_no_longer_be_read_is_logged_and_its_prompts_are_still_served(
    machine: Machine, path: str, problem: str
) -> None:
    library = write_files(machine.twig_libraries / "lib", {"a.md": "one", "sub/b.md": "one"})
    prompts = {"lib:a": "one", "lib:sub.b": "one"}
    folder = machine.twig_libraries / path
    with LibraryClient(machine, prefix=drop_privileges()) as client:
        assert client.texts() == prompts
        folder.chmod(0)
        (machine.twig_libraries / "wake").mkdir()
        line = client.wait_for_stderr(f"~/twig/{path}: {problem}", seconds=5)
        assert line.endswith("its last good version is still served")
        assert client.texts() == prompts
        folder.chmod(0o755)
        write_files(library, {"a.md": "two", "sub/b.md": "two"})
        client.wait_for_notification(5)
        assert client.texts() == dict.fromkeys(prompts, "two")


@retried_if_late
def test_an_edit_right_after_the_first_response_is_notified(machine: Machine) -> None:
    """The server may still be loading the libraries."""

    for number in range(3):
        write_twig_library(machine.twig_libraries / f"lib{number}", {"a": "one"})
    for number in range(3):
        with LibraryClient(machine) as client:
            name = f"lib{number}:a"
            assert client.text(name) == "one"
            write_twig_library(machine.twig_libraries / f"lib{number}", {"a": "two"})
            client.wait_for_notification(DEADLINE)
            assert client.text(name) == "two"


# Bursts


def test_a_burst_causes_few_notifications_and_never_two_within_half_a_second(machine: Machine) -> None:
    keys = [f"p{number:03}" for number in range(500)]
    edited = write_twig_library(machine.twig_libraries / "edited", dict.fromkeys(keys, "old"))
    created = write_files(machine.twig_libraries / "created", {"p000.md": "old"})

    def burst() -> None:
        write_files(edited, {f"prompts/{key}.md": "new" for key in keys})
        write_files(created, {f"{key}.md": "new" for key in keys})

    before: Texts = {"created:p000": "old", **{f"edited:{key}": "old" for key in keys}}
    with open_clients(machine, "twig", before) as clients, ThreadPoolExecutor(3) as threads:
        reading = [threads.submit(_read_until_quiet, client) for client in clients]
        threads.submit(burst).result()
        for read, client in zip(reading, clients, strict=True):
            read.result()
            assert 1 <= len(client.notification_times) <= 5
            assert all(
                later - earlier > MIN_INTERVAL - TRANSIT
                for earlier, later in pairwise(client.notification_times)
            )
            assert client.names() == [f"{name}:{key}" for name in ("created", "edited") for key in keys]
            for key in (keys[0], keys[250], keys[-1]):
                assert client.text(f"created:{key}") == client.text(f"edited:{key}") == "new"


def _read_until_quiet(client: LibraryClient) -> None:
    client.wait_for_notification(2 * DEADLINE)
    with contextlib.suppress(TooLate):
        while len(client.notification_times) < 20:
            # The server checks again a second after a burst.
            client.wait_for_notification(1.5 * DEADLINE)


@retried_if_late
def test_continuous_changes_are_notified_at_least_every_second_and_never_twice_within_half_a_second(
    machine: Machine,
) -> None:
    folder = write_files(machine.twig_libraries / "lib", {"p000.md": "x"})
    names = ["lib:p000"]
    with LibraryClient(machine) as client:
        assert client.names() == names
        began = time.monotonic()
        while time.monotonic() - began < 1.5 * DEADLINE:
            write_files(folder, {f"p{len(names):03}.md": "x"})
            names.append(f"lib:p{len(names):03}")
            with contextlib.suppress(TooLate):
                client.wait_for_notification(0.002)
        while client.names() != names:
            client.wait_for_notification(DEADLINE)
    assert all(
        later - earlier > MIN_INTERVAL - TRANSIT for earlier, later in pairwise(client.notification_times)
    )
    if any(later - earlier > DEADLINE for earlier, later in pairwise([began, *client.notification_times])):
        raise TooLate("no notification while changes continue")


def test_irrelevant_files_cause_no_notification(machine: Machine) -> None:
    folder = write_twig_library(machine.twig_libraries / "lib", {"a": "one"})
    with open_clients(machine, "twig", {"lib:a": "one"}) as clients:
        write_files(
            folder, {"notes.txt": "x", "prompts/.a.md.swp": "x", "prompts/a.md~": "x", ".git/index": "x"}
        )
        write_files(machine.twig_libraries, {"README.md": "x"})
        for client, seconds in zip(clients, (DEADLINE, 0.1), strict=True):
            with pytest.raises(TooLate):
                client.wait_for_notification(seconds)


# Broken files


class Breakage(NamedTuple):
    """A file that breaks, and the words that are logged."""

    file: str
    bad: str | bytes
    logged: tuple[str, ...]


FRONT_MATTER = "---\narguments: [x]\n---\n"
TOO_LARGE = "#" + "x" * (1024 * 1024 + 1)
#: The content of the files before they break; afterwards their texts are "two".
GOOD = {"twig.toml": twig_manifest("a", "good"), "prompts/a.md": "one", "a.md": f"{FRONT_MATTER}one"}

BREAKAGES = {
    "bad_toml": Breakage("twig.toml", "[prompts.a]\n[prompts", ("twig.toml:2",)),
    "manifest_bytes": Breakage("twig.toml", b"[prompts.a]\n# \xff", ("twig.toml:2", "UTF-8")),
    "manifest_size": Breakage("twig.toml", TOO_LARGE, ("twig.toml", "1 MiB")),
    "bad_template": Breakage("prompts/a.md", "\n\n{% if %}", ("prompts/a.md:3",)),
    "bytes": Breakage("prompts/a.md", b"\n\xff", ("prompts/a.md:2", "UTF-8")),
    "nul": Breakage("prompts/a.md", "\n\0", ("prompts/a.md:2", "not a text")),
    "size": Breakage("prompts/a.md", TOO_LARGE, ("prompts/a.md", "1 MiB")),
    "markdown_template": Breakage("a.md", FRONT_MATTER + "\n{% if %}", ("/a.md:5",)),
    "markdown_bytes": Breakage("a.md", b"\n\xff", ("/a.md:2", "UTF-8")),
    "markdown_size": Breakage("a.md", TOO_LARGE, ("/a.md", "1 MiB")),
}


def library_with(file: str, content: str | bytes) -> Files:
    """Return the files of a library with this file and a valid prompt."""
    if file == "a.md":
        return {"good.md": "fine", file: content}
    return {"twig.toml": GOOD["twig.toml"], "prompts/a.md": "one", "prompts/good.md": "fine", file: content}


@retried_if_late
def test_the_last_good_version_of_a_broken_file_is_served_until_it_is_repaired(machine: Machine) -> None:
    before: Texts = {}
    repaired: Texts = {}
    for name, breakage in BREAKAGES.items():
        write_files(machine.twig_libraries / name, library_with(breakage.file, GOOD[breakage.file]))
        before |= {f"{name}:a": "one", f"{name}:good": "fine"}
        repaired |= {
            f"{name}:a": "one" if breakage.file == "twig.toml" else "two",
            f"{name}:good": "fine",
        }

    def repair() -> None:
        for name, breakage in BREAKAGES.items():
            write_files(
                machine.twig_libraries / name, {breakage.file: GOOD[breakage.file].replace("one", "two")}
            )

    with LibraryClient(machine) as client:
        assert client.texts() == before
        for name, breakage in BREAKAGES.items():
            write_files(machine.twig_libraries / name, {breakage.file: breakage.bad})
        for name, breakage in BREAKAGES.items():
            line = client.wait_for_stderr(f"/{name}/", *breakage.logged)
            assert line.endswith("; its last good version is still served")
        assert client.texts() == before
        # The last good version remains when another file of the library changes.
        for name, breakage in BREAKAGES.items():
            other = "good.md" if breakage.file == "a.md" else "prompts/good.md"
            write_files(machine.twig_libraries / name, {other: "better"})
        later: Texts = {name: "better" if name.endswith(":good") else text for name, text in before.items()}
        assert_notified([client], lambda: None, later)
        later |= {name: text for name, text in repaired.items() if name.endswith(":a")}
        assert_notified([client], repair, later)


@retried_if_late
def test_a_file_can_break_repeatedly(machine: Machine) -> None:
    folder = write_twig_library(machine.twig_libraries / "lib", {"a": "0"})
    with LibraryClient(machine) as client:
        assert client.texts() == {"lib:a": "0"}
        for number in range(2):
            write_files(
                folder, {"prompts/a.md": "\n" * number + "{% if %}", "twig.toml": "\n" * number + "["}
            )
            client.wait_for_stderr(f"prompts/a.md:{number + 1}: ")
            client.wait_for_stderr(f"twig.toml:{number + 1}: ")
            assert client.texts() == {"lib:a": str(number)}
            good: Files = {"prompts/a.md": str(number + 1), "twig.toml": twig_manifest("a")}
            write_files(folder, good)
            while client.texts() != {"lib:a": str(number + 1)}:
                client.wait_for_notification(DEADLINE)


@retried_if_late
def test_files_that_are_broken_at_the_start_are_logged_and_only_their_prompts_fail(machine: Machine) -> None:
    good: Texts = {}
    for name, breakage in BREAKAGES.items():
        write_files(machine.twig_libraries / name, library_with(breakage.file, breakage.bad))
        good |= {f"{name}:a": "one", f"{name}:good": "fine"}

    def repair() -> None:
        for name, breakage in BREAKAGES.items():
            write_files(machine.twig_libraries / name, {breakage.file: GOOD[breakage.file]})

    with LibraryClient(machine) as client:
        texts = client.texts()
        for name, breakage in BREAKAGES.items():
            assert texts.get(f"{name}:a") is None
            # Without a valid manifest, the prompts are unknown.
            assert texts.get(f"{name}:good") == (None if breakage.file == "twig.toml" else "fine")
        for name, breakage in BREAKAGES.items():
            client.wait_for_stderr(f"/{name}/", *breakage.logged)
        assert_notified([client], repair, good)


def test_the_last_good_version_is_lost_when_the_server_stops(machine: Machine) -> None:
    """A server that starts later does not serve a version that is no longer on disk."""
    folder = write_twig_library(machine.twig_libraries / "lib", {"a": "one"})
    with LibraryClient(machine) as client:
        assert client.text("lib:a") == "one"
        write_files(folder, {"prompts/a.md": "{% if %}"})
        client.wait_for_stderr("prompts/a.md:1")
        assert client.text("lib:a") == "one"
        with LibraryClient(machine) as later:
            assert "at line 1" in later.details("lib:a")


def test_changes_between_two_starts_are_served_after_the_second(machine: Machine) -> None:
    folder = write_files(machine.twig_libraries / "lib", {"a.md": "one", "b.md": "one"})
    cache = machine.home / "cache"
    with LibraryClient(machine) as client:
        assert client.texts() == {"lib:a": "one", "lib:b": "one"}
        # The index is cached after a period without changes.
        for _ in range(50):
            if cache.is_dir() and any(cache.glob("*.cache")):
                break
            with pytest.raises(TooLate):
                client.wait_for_notification(0.1)
    assert any(cache.glob("*.cache"))
    status = (folder / "a.md").stat()
    write_files(folder, {"a.md": "two", "c.md": "new"})
    # With the same size and modification time as before.
    os.utime(folder / "a.md", ns=(status.st_atime_ns, status.st_mtime_ns))
    (folder / "b.md").unlink()
    with LibraryClient(machine) as client:
        assert client.texts() == {"lib:a": "two", "lib:c": "new"}
