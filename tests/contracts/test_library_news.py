"""What is done to the files of libraries while they are served: seen and announced within a second."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.contracts.shelves import ERAS, Client, Late, Machine, manifest, twig, write

#: What is saved is visible and announced after this time.
SECOND = 1.0
#: Announcements are this far apart, but for what the way to the client takes.
APART = 0.5
WAY = 0.05

Files = dict[str, str | bytes]
#: Prompts by their names; nothing for one that cannot be given.
Shown = dict[str, str | None]
Scenario = Callable[[Machine], None]


def promptly(root: Path, scenario: Scenario) -> None:
    """A scenario, and once more elsewhere if something was late: the machine may be busy."""
    try:
        scenario(Machine(root / "first"))
    except Late:
        scenario(Machine(root / "second"))


@contextmanager
def listening(machine: Machine, profile: str) -> Iterator[list[Client]]:
    """A client of each era."""
    machine.root.mkdir(parents=True, exist_ok=True)
    # Both servers start at the same time.
    clients = [Client(machine, profile, version=version) for version in ERAS]
    with ExitStack() as stack:
        for client in clients:
            stack.enter_context(client)
        yield clients


def assert_news(clients: list[Client], change: Callable[[], object], after: Shown) -> None:
    """Make a change: every client sees what is there after it, and is told so, within a second."""
    known = [len(client.news) for client in clients]
    began = time.monotonic()
    change()
    for client, before in zip(clients, known, strict=True):
        # A change of several files may be announced more than once, also while the client looks.
        while (heard := len(client.news)) == before or client.shown() != after:
            if len(client.news) == heard:
                client.told(began + SECOND - time.monotonic())
        if time.monotonic() - began > SECOND:
            raise Late("announced in time, but not seen")


# Files


class Change(NamedTuple):
    """Something that happens to a file."""

    before: Files
    shown: Shown
    happens: Callable[[Path], object]
    after: Shown


TWIG: Files = {"twig.toml": manifest("a", "b"), "prompts/a.md": "one"}
TWIG_SHOWN: Shown = {"lib:a": "one", "lib:b": None}
MARKDOWN: Files = {"a.md": "one", "more/c.md": "see"}
MARKDOWN_SHOWN: Shown = {"lib:a": "one", "lib:more.c": "see"}


def _save_by_renaming(file: Path, text: str) -> None:
    """As many editors do it."""
    beside = file.with_name(f".{file.name}.tmp")
    beside.write_text(text)
    beside.replace(file)


def _add_key(folder: Path) -> None:
    write(folder, {"prompts/c.md": "three"})
    with (folder / "twig.toml").open("a") as file:
        file.write(manifest("c"))


CHANGES = {
    "a prompt's file is created": Change(
        TWIG,
        TWIG_SHOWN,
        lambda folder: write(folder, {"prompts/b.md": "two"}),
        {"lib:a": "one", "lib:b": "two"},
    ),
    "a prompt's file is edited in place": Change(
        TWIG,
        TWIG_SHOWN,
        lambda folder: write(folder, {"prompts/a.md": "new"}),
        {"lib:a": "new", "lib:b": None},
    ),
    "a prompt's file is saved by renaming": Change(
        TWIG,
        TWIG_SHOWN,
        lambda folder: _save_by_renaming(folder / "prompts/a.md", "new"),
        {"lib:a": "new", "lib:b": None},
    ),
    "a prompt's file is deleted": Change(
        TWIG,
        TWIG_SHOWN,
        lambda folder: (folder / "prompts/a.md").unlink(),
        {"lib:a": None, "lib:b": None},
    ),
    "a prompt's file is renamed": Change(
        TWIG,
        TWIG_SHOWN,
        lambda folder: (folder / "prompts/a.md").rename(folder / "prompts/b.md"),
        {"lib:a": None, "lib:b": "one"},
    ),
    "a key is added to the manifest": Change(
        TWIG, TWIG_SHOWN, _add_key, {"lib:a": "one", "lib:b": None, "lib:c": "three"}
    ),
    "the manifest is saved by renaming": Change(
        TWIG,
        TWIG_SHOWN,
        lambda folder: _save_by_renaming(folder / "twig.toml", manifest("a")),
        {"lib:a": "one"},
    ),
    "the manifest is deleted": Change(
        TWIG, TWIG_SHOWN, lambda folder: (folder / "twig.toml").unlink(), {"lib:a": "one"}
    ),
    "a file is created": Change(
        MARKDOWN,
        MARKDOWN_SHOWN,
        lambda folder: write(folder, {"new/deep/b.md": "two"}),
        MARKDOWN_SHOWN | {"lib:new.deep.b": "two"},
    ),
    "a file is edited in place": Change(
        MARKDOWN,
        MARKDOWN_SHOWN,
        lambda folder: write(folder, {"more/c.md": "sea"}),
        MARKDOWN_SHOWN | {"lib:more.c": "sea"},
    ),
    "a file is saved by renaming": Change(
        MARKDOWN,
        MARKDOWN_SHOWN,
        lambda folder: _save_by_renaming(folder / "a.md", "two"),
        MARKDOWN_SHOWN | {"lib:a": "two"},
    ),
    "a file is deleted": Change(
        MARKDOWN, MARKDOWN_SHOWN, lambda folder: (folder / "more/c.md").unlink(), {"lib:a": "one"}
    ),
    "a file is renamed": Change(
        MARKDOWN,
        MARKDOWN_SHOWN,
        lambda folder: (folder / "a.md").rename(folder / "more/b.md"),
        {"lib:more.b": "one", "lib:more.c": "see"},
    ),
    "a folder is renamed": Change(
        MARKDOWN,
        MARKDOWN_SHOWN,
        lambda folder: (folder / "more").rename(folder / "less"),
        {"lib:a": "one", "lib:less.c": "see"},
    ),
    "the last file is deleted": Change(
        {"a.md": "one"}, {"lib:a": "one"}, lambda folder: (folder / "a.md").unlink(), {}
    ),
}


#: One after the other, so that nothing else tells of them.
ALONE = (
    "a prompt's file is created",
    "a prompt's file is edited in place",
    "a prompt's file is saved by renaming",
    "a prompt's file is deleted",
    "a prompt's file is renamed",
    "a key is added to the manifest",
    "a file is created",
    "a folder is renamed",
)


@pytest.mark.parametrize("what", ALONE)
def test_what_happens_to_a_file_is_seen_and_announced_within_a_second(tmp_path: Path, what: str) -> None:
    change = CHANGES[what]

    def scenario(machine: Machine) -> None:
        folder = write(machine.foreign / "lib", change.before)
        with listening(machine, "twig") as clients:
            for client in clients:
                assert client.shown() == change.shown
            assert_news(clients, lambda: change.happens(folder), change.after)

    promptly(tmp_path, scenario)


#: Every link takes a command.
LINKED = (
    "a prompt's file is edited in place",
    "a prompt's file is saved by renaming",
    "a key is added to the manifest",
    "a file is created",
    "a file is renamed",
    "the last file is deleted",
)


@pytest.mark.parametrize("place", ["twig's", "own", "linked"])
def test_what_happens_to_files_of_many_libraries_is_seen_and_announced_within_a_second(
    tmp_path: Path, place: str
) -> None:
    """Everything that can happen to a file happens at once, each in its own library."""

    def scenario(machine: Machine) -> None:
        profile = "twig" if place == "twig's" else "all"
        directory = machine.root / "elsewhere" if place == "linked" else machine.serves_in(profile)
        happening = LINKED if place == "linked" else CHANGES
        folders = {f"lib{number}": CHANGES[what] for number, what in enumerate(happening)}
        before: Shown = {}
        after: Shown = {}
        for name, change in folders.items():
            folder = write(directory / name, change.before)
            if place == "linked":
                machine.link(folder, name)
            before |= _called(name, change.shown)
            after |= _called(name, change.after)

        def everything() -> None:
            for name, change in folders.items():
                change.happens(directory / name)

        with listening(machine, profile) as clients:
            for client in clients:
                assert client.shown() == before
            assert_news(clients, everything, after)

    promptly(tmp_path, scenario)


def _called(name: str, shown: Shown) -> Shown:
    return {key.replace("lib:", f"{name}:"): text for key, text in shown.items()}


# Libraries


def _move_in(machine: Machine, directory: Path) -> None:
    twig(machine.root / "coming", {"a": "new"}).rename(directory / "new")


def _remove(machine: Machine, directory: Path) -> None:
    shutil.rmtree(directory / "old")


def _remove_all(machine: Machine, directory: Path) -> None:
    shutil.rmtree(directory)


def _replace_all(machine: Machine, directory: Path) -> None:
    shutil.rmtree(directory)
    twig(directory / "new", {"a": "new"})


def _swap_all(machine: Machine, directory: Path) -> None:
    twig(machine.root / "coming/new", {"a": "new"})
    directory.rename(machine.root / "going")
    (machine.root / "coming").rename(directory)


LIBRARIES: dict[str, tuple[Callable[[Machine, Path], object], Shown]] = {
    "moved in": (_move_in, {"new:a": "new", "old:a": "old"}),
    "written": (
        lambda machine, directory: twig(directory / "new", {"a": "new"}),
        {"new:a": "new", "old:a": "old"},
    ),
    "written without a manifest": (
        lambda machine, directory: write(directory / "new", {"a.md": "new", "b/c.md": "deep"}),
        {"new:a": "new", "new:b.c": "deep", "old:a": "old"},
    ),
    "linked in": (
        lambda machine, directory: (directory / "new").symlink_to(
            twig(machine.root / "elsewhere", {"a": "new"})
        ),
        {"new:a": "new", "old:a": "old"},
    ),
    "removed": (_remove, {}),
    "moved away": (lambda machine, directory: (directory / "old").rename(machine.root / "away"), {}),
    "renamed": (
        lambda machine, directory: (directory / "old").rename(directory / "Other One"),
        {"other_one:a": "old"},
    ),
    "removed with the directory": (_remove_all, {}),
    "replaced with the directory": (_replace_all, {"new:a": "new"}),
    "swapped with the directory": (_swap_all, {"new:a": "new"}),
}


OWN = ("removed", "replaced with the directory")


@pytest.mark.parametrize(
    ("profile", "what"), [*(("twig", what) for what in LIBRARIES), *(("all", what) for what in OWN)]
)
def test_what_happens_to_a_library_is_seen_and_announced_within_a_second(
    tmp_path: Path, profile: str, what: str
) -> None:
    happens, after = LIBRARIES[what]

    def scenario(machine: Machine) -> None:
        directory = machine.serves_in(profile)
        twig(directory / "old", {"a": "old"})
        with listening(machine, profile) as clients:
            for client in clients:
                assert client.shown() == {"old:a": "old"}
            assert_news(clients, lambda: happens(machine, directory), after)

    promptly(tmp_path, scenario)


def test_a_directory_that_was_removed_is_served_again_when_it_is_back(tmp_path: Path) -> None:
    def scenario(machine: Machine) -> None:
        directory = machine.foreign
        twig(directory / "lib", {"a": "one"})
        with listening(machine, "twig") as clients:
            for client in clients:
                assert client.shown() == {"lib:a": "one"}
            assert_news(clients, lambda: shutil.rmtree(directory), {})
            assert_news(clients, lambda: twig(directory / "lib", {"a": "two"}), {"lib:a": "two"})
            assert_news(clients, lambda: twig(directory / "lib", {"a": "three"}), {"lib:a": "three"})

    promptly(tmp_path, scenario)


@pytest.mark.parametrize(("profile", "there"), [("twig", "the other directory"), ("all", "nothing")])
def test_the_first_library_is_announced_although_there_was_none_at_the_start(
    tmp_path: Path, profile: str, there: str
) -> None:
    def scenario(machine: Machine) -> None:
        directory = machine.serves_in(profile)
        if there == "the other directory":
            machine.libraries.mkdir(parents=True)
        with listening(machine, profile) as clients:
            for client in clients:
                assert client.shown() == {}
            assert_news(clients, lambda: twig(directory / "lib", {"a": "one"}), {"lib:a": "one"})
            assert_news(clients, lambda: twig(directory / "lib", {"a": "two"}), {"lib:a": "two"})

    promptly(tmp_path, scenario)


@pytest.mark.parametrize(("profile", "others"), [("twig", True), ("all", False)])
def test_a_link_that_is_made_or_taken_away_is_announced(tmp_path: Path, profile: str, others: bool) -> None:
    def scenario(machine: Machine) -> None:
        folder = twig(machine.root / "work", {"a": "one"})
        if others:
            twig(machine.libraries / "zoo", {"a": "own"})
        rest: Shown = {"zoo:a": "own"} if others else {}
        with listening(machine, profile) as clients:
            for client in clients:
                assert client.shown() == rest
            # The clock starts when the command has ended.
            machine.link(folder, "lib")
            assert_news(clients, lambda: None, {"lib:a": "one", **rest})
            assert_news(clients, lambda: twig(folder, {"a": "two"}), {"lib:a": "two", **rest})
            machine.run("library", "remove", "lib")
            assert_news(clients, lambda: None, rest)
        assert (folder / "twig.toml").exists()

    promptly(tmp_path, scenario)


def test_a_linked_folder_that_goes_and_comes_is_followed(tmp_path: Path) -> None:
    def scenario(machine: Machine) -> None:
        folder = twig(machine.root / "work", {"a": "one"})
        machine.link(folder, "lib")
        with listening(machine, "all") as clients:
            for client in clients:
                assert client.shown() == {"lib:a": "one"}
            assert_news(clients, lambda: folder.rename(machine.root / "away"), {})
            assert_news(clients, lambda: (machine.root / "away").rename(folder), {"lib:a": "one"})
            assert_news(clients, lambda: twig(folder, {"a": "two"}), {"lib:a": "two"})

    promptly(tmp_path, scenario)


def test_an_edit_right_after_the_first_answer_is_announced(tmp_path: Path) -> None:
    """The server may still be busy with its first look at the libraries."""

    def scenario(machine: Machine) -> None:
        for number in range(3):
            twig(machine.foreign / f"lib{number}", {"a": "one"})
        for number in range(3):
            with Client(machine) as client:
                name = f"lib{number}:a"
                assert client.text(name) == "one"
                twig(machine.foreign / f"lib{number}", {"a": "two"})
                client.told(SECOND)
                assert client.text(name) == "two"

    promptly(tmp_path, scenario)


# Bursts


def test_a_burst_is_announced_a_few_times_and_never_twice_within_half_a_second(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    keys = [f"p{number:03}" for number in range(500)]
    edited = twig(machine.foreign / "edited", dict.fromkeys(keys, "old"))
    created = write(machine.foreign / "created", {"p000.md": "old"})

    def burst() -> None:
        write(edited, {f"prompts/{key}.md": "new" for key in keys})
        write(created, {f"{key}.md": "new" for key in keys})

    with listening(machine, "twig") as clients, ThreadPoolExecutor(3) as threads:
        for client in clients:
            assert client.text("edited:p000") == client.text("created:p000") == "old"
        reading = [threads.submit(_told_until_it_is_over, client) for client in clients]
        threads.submit(burst).result()
        for read, client in zip(reading, clients, strict=True):
            read.result()
            assert 1 <= len(client.news) <= 5
            assert all(later - earlier > APART - WAY for earlier, later in pairwise(client.news))
            assert client.names() == [f"{name}:{key}" for name in ("created", "edited") for key in keys]
            for key in (keys[0], keys[250], keys[-1]):
                assert client.text(f"created:{key}") == client.text(f"edited:{key}") == "new"


def _told_until_it_is_over(client: Client) -> None:
    client.told(2 * SECOND)
    with contextlib.suppress(Late):
        while len(client.news) < 20:
            # A burst is looked at once more a second after it.
            client.told(1.5 * SECOND)


def test_steady_changes_are_announced_steadily_and_never_twice_within_half_a_second(tmp_path: Path) -> None:
    def scenario(machine: Machine) -> None:
        folder = write(machine.foreign / "lib", {"p000.md": "x"})
        names = ["lib:p000"]
        with Client(machine) as client:
            assert client.names() == names
            began = time.monotonic()
            while time.monotonic() - began < 1.5 * SECOND:
                write(folder, {f"p{len(names):03}.md": "x"})
                names.append(f"lib:p{len(names):03}")
                with contextlib.suppress(Late):
                    client.told(0.002)
            while client.names() != names:
                client.told(SECOND)
        assert all(later - earlier > APART - WAY for earlier, later in pairwise(client.news))
        if any(later - earlier > SECOND for earlier, later in pairwise([began, *client.news])):
            raise Late("nobody is told as long as there are changes")

    promptly(tmp_path, scenario)


def test_what_changes_nothing_is_not_announced(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    folder = twig(machine.foreign / "lib", {"a": "one"})
    with listening(machine, "twig") as clients:
        for client in clients:
            assert client.shown() == {"lib:a": "one"}
        write(folder, {"notes.txt": "x", "prompts/.a.md.swp": "x", "prompts/a.md~": "x", ".git/index": "x"})
        write(machine.foreign, {"README.md": "x"})
        for client, seconds in zip(clients, (SECOND, 0.1), strict=True):
            with pytest.raises(Late):
                client.told(seconds)


# What breaks


class Breakage(NamedTuple):
    """A file that breaks, what is said of it, and how it is repaired."""

    file: str
    good: str
    bad: str | bytes
    said: tuple[str, ...]
    repaired: str


TWIG_MANIFEST = manifest("a", "good")
FRONT_MATTER = "---\narguments: [x]\n---\n"
TOO_LARGE = "x" * (64 * 1024 + 1)

BREAKAGES = {
    "bad_toml": Breakage(
        "twig.toml", TWIG_MANIFEST, "[prompts.a]\n[prompts", ("twig.toml:2",), TWIG_MANIFEST
    ),
    "manifest_bytes": Breakage(
        "twig.toml", TWIG_MANIFEST, b"[prompts.a]\n# \xff", ("twig.toml:2", "UTF-8"), TWIG_MANIFEST
    ),
    "manifest_size": Breakage(
        "twig.toml", TWIG_MANIFEST, "#" + TOO_LARGE * 4, ("twig.toml", "256 KiB"), TWIG_MANIFEST
    ),
    "bad_template": Breakage("prompts/a.md", "one", "\n\n{% if %}", ("prompts/a.md:3",), "two"),
    "bytes": Breakage("prompts/a.md", "one", b"\n\xff", ("prompts/a.md:2", "UTF-8"), "two"),
    "nul": Breakage("prompts/a.md", "one", "\n\0", ("prompts/a.md:2", "not a text"), "two"),
    "size": Breakage("prompts/a.md", "one", TOO_LARGE, ("prompts/a.md", "64 KiB"), "two"),
    "markdown_template": Breakage(
        "a.md", FRONT_MATTER + "one", FRONT_MATTER + "\n{% if %}", ("/a.md:5",), FRONT_MATTER + "two"
    ),
    "markdown_bytes": Breakage("a.md", "one", b"\n\xff", ("/a.md:2", "UTF-8"), "two"),
    "markdown_size": Breakage("a.md", "one", TOO_LARGE * 4, ("/a.md", "256 KiB"), "two"),
}


def library_with(file: str, content: str | bytes) -> Files:
    """A library with this file in it and a prompt that is good."""
    if file == "a.md":
        return {"good.md": "fine", file: content}
    return {"twig.toml": TWIG_MANIFEST, "prompts/a.md": "one", "prompts/good.md": "fine", file: content}


def test_files_that_break_while_they_are_served_keep_their_last_good_versions_until_they_are_repaired(
    tmp_path: Path,
) -> None:
    def scenario(machine: Machine) -> None:
        before: Shown = {}
        repaired: Shown = {}
        for name, one in BREAKAGES.items():
            write(machine.foreign / name, library_with(one.file, one.good))
            before |= {f"{name}:a": "one", f"{name}:good": "fine"}
            repaired |= {f"{name}:a": "one" if one.file == "twig.toml" else "two", f"{name}:good": "fine"}

        def repair() -> None:
            for name, one in BREAKAGES.items():
                write(machine.foreign / name, {one.file: one.repaired})

        with Client(machine) as client:
            assert client.shown() == before
            for name, one in BREAKAGES.items():
                write(machine.foreign / name, {one.file: one.bad})
            for name, one in BREAKAGES.items():
                said = client.complains(f"/{name}/", *one.said)
                assert said.endswith("; its last good version is still served")
            assert client.shown() == before
            # Also when another file of the library was looked at since.
            for name, one in BREAKAGES.items():
                other = "good.md" if one.file == "a.md" else "prompts/good.md"
                write(machine.foreign / name, {other: "better"})
            later: Shown = {
                name: "better" if name.endswith(":good") else text for name, text in before.items()
            }
            assert_news([client], lambda: None, later)
            later |= {name: text for name, text in repaired.items() if name.endswith(":a")}
            assert_news([client], repair, later)

    promptly(tmp_path, scenario)


def test_a_file_may_break_again_and_again(tmp_path: Path) -> None:
    def scenario(machine: Machine) -> None:
        folder = twig(machine.foreign / "lib", {"a": "0"})
        with Client(machine) as client:
            assert client.shown() == {"lib:a": "0"}
            for number in range(2):
                write(folder, {"prompts/a.md": "\n" * number + "{% if %}", "twig.toml": "\n" * number + "["})
                client.complains(f"prompts/a.md:{number + 1}: ")
                client.complains(f"twig.toml:{number + 1}: ")
                assert client.shown() == {"lib:a": str(number)}
                good: Files = {"prompts/a.md": str(number + 1), "twig.toml": manifest("a")}
                write(folder, good)
                while client.shown() != {"lib:a": str(number + 1)}:
                    client.told(SECOND)

    promptly(tmp_path, scenario)


def test_files_that_are_broken_at_the_start_are_reported_and_errors_for_their_prompts_only(
    tmp_path: Path,
) -> None:
    def scenario(machine: Machine) -> None:
        good: Shown = {}
        for name, one in BREAKAGES.items():
            write(machine.foreign / name, library_with(one.file, one.bad))
            good |= {f"{name}:a": "one", f"{name}:good": "fine"}

        def repair() -> None:
            for name, one in BREAKAGES.items():
                write(machine.foreign / name, {one.file: one.good})

        with Client(machine) as client:
            shown = client.shown()
            for name, one in BREAKAGES.items():
                assert shown.get(f"{name}:a") is None
                # Without a manifest nobody knows which prompts there are.
                assert shown.get(f"{name}:good") == (None if one.file == "twig.toml" else "fine")
            for name, one in BREAKAGES.items():
                client.complains(f"/{name}/", *one.said)
            assert_news([client], repair, good)

    promptly(tmp_path, scenario)


def test_the_last_good_version_ends_with_the_server(tmp_path: Path) -> None:
    """What is broken on disk is broken for whoever comes later: nobody is served what is nowhere any more."""
    machine = Machine(tmp_path)
    folder = twig(machine.foreign / "lib", {"a": "one"})
    with Client(machine) as client:
        assert client.text("lib:a") == "one"
        write(folder, {"prompts/a.md": "{% if %}"})
        client.complains("prompts/a.md:1")
        assert client.text("lib:a") == "one"
        with Client(machine) as later:
            assert "at line 1" in later.details("lib:a")


def test_what_changed_between_two_starts_is_seen_at_the_second(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    folder = write(machine.foreign / "lib", {"a.md": "one", "b.md": "one"})
    kept = machine.home / "cache"
    with Client(machine) as client:
        assert client.shown() == {"lib:a": "one", "lib:b": "one"}
        # What was read is kept when nothing has happened for a while.
        for _ in range(50):
            if kept.is_dir() and any(kept.glob("*.cache")):
                break
            with pytest.raises(Late):
                client.told(0.1)
    assert any(kept.glob("*.cache"))
    status = (folder / "a.md").stat()
    write(folder, {"a.md": "two", "c.md": "new"})
    # As long as before, and with the time it had before.
    os.utime(folder / "a.md", ns=(status.st_atime_ns, status.st_mtime_ns))
    (folder / "b.md").unlink()
    with Client(machine) as client:
        assert client.shown() == {"lib:a": "two", "lib:c": "new"}
