"""Adding folders, links and new libraries, and parsing sources."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import minijinja
import pytest

from dittybag.domain.errors import (
    DittybagError,
    Invalid,
    LibraryExists,
    LibraryRefused,
    LibraryUnwritable,
    SourceNotFound,
)
from dittybag.library.install_records import read_records
from dittybag.library.installer import add, create, remove
from dittybag.library.sources.source_argument import parse_source
from tests.library.local_edits import has_local_edits
from tests.library.source_fixtures import (
    commit,
    descriptors,
    git,
    leftovers,
    read_files,
    write_files,
)
from tests.storage.sqlite.scripted_process import drop_privileges

FILES = {"a.md": "one", "deep/b.md": "two", ".claude/commands/c.md": "three"}


def test_a_folder_is_copied_and_recorded(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    source = write_files(tmp_path / "My Prompts", FILES)
    added = add(home, str(source))
    assert added.name == "my_prompts"
    assert read_files(Path(added.path)) == FILES
    record = read_records(home)["my_prompts"]
    assert record == added.record
    assert (record.kind, record.location, record.revision) == ("folder", str(source), None)
    assert added.files == len(FILES)
    assert not has_local_edits(home, "my_prompts")
    write_files(source, {"a.md": "changed"})
    assert read_files(Path(added.path)) == FILES
    assert leftovers(tmp_path / "home") == []


def test_only_regular_files_are_copied_and_the_rest_is_reported(tmp_path: Path) -> None:
    source = write_files(tmp_path / "source", {"a.md": "one", ".git/config": "x", "sub/.GIT/hooks/x": "x"})
    secret = write_files(tmp_path, {"secret/key.md": "secret"}) / "secret"
    (source / "link.md").symlink_to(secret / "key.md")
    (source / "folder").symlink_to(secret)
    (source / "gone.md").symlink_to("nowhere")
    (source / "hard.md").hardlink_to(secret / "key.md")
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(source / "socket"))
        (source / "large.md").write_bytes(b"x" * (4 * 1024 * 1024 + 1))
        write_files(source, {"/".join("d" * 17) + "/x.md": "deep", "n" * 201: "long", "a\\b.md": "slash"})
        (source / "new\nline.md").write_text("x")
        Path(os.fsdecode(os.fsencode(source) + b"/caf\xe9.md")).write_text("x")
        write_files(source, {".DS_Store": "x"})
        added = add(str(tmp_path / "home"), str(source))
    assert read_files(Path(added.path)) == {"a.md": "one"}
    assert {item.file: item.reason for item in added.left_out} == {
        ".DS_Store": "created by a file manager",
        ".git": "part of a Git repository",
        "sub/.GIT": "part of a Git repository",
        "link.md": "a symbolic link",
        "folder": "a symbolic link",
        "gone.md": "a symbolic link",
        "hard.md": "a hard link",
        "pipe": "not a regular file",
        "socket": "not a regular file",
        "large.md": "larger than 4 MiB",
        "/".join("d" * 16): "a folder that is nested too deep",
        "n" * 120 + "...": "the name is longer than 200 bytes",
        "a\\b.md": "the name contains a backslash",
        "new line.md": "the name contains a control character",
        "caf?.md": "the name is not valid UTF-8",
    }
    assert "secret" not in str(read_files(tmp_path / "home"))


def test_a_library_has_size_limits(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    many = tmp_path / "many"
    many.mkdir()
    for number in range(10_001):
        (many / str(number)).touch()
    with pytest.raises(LibraryRefused, match="it has more than 10,000 files"):
        add(home, str(many))
    large = tmp_path / "large"
    large.mkdir()
    for number in range(17):
        (large / str(number)).write_bytes(b"x" * (4 * 1024 * 1024))
    with pytest.raises(LibraryRefused, match="larger than 64 MiB"):
        add(home, str(large))
    (tmp_path / "empty" / "nothing").mkdir(parents=True)
    with pytest.raises(LibraryRefused, match="it has no files"):
        add(home, str(tmp_path / "empty"))
    assert leftovers(tmp_path / "home") == []
    assert read_records(home) == {}


def test_a_subfolder_can_be_added_but_nothing_outside_of_it(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    source = write_files(tmp_path / "source", {"sub/in/x.md": "x", "y.md": "y"})
    write_files(tmp_path / "outside", {"z.md": "z"})
    (source / "way-out").symlink_to(tmp_path / "outside")
    (source / "way-in").symlink_to(source / "sub")
    assert read_files(Path(add(home, str(source), name="one", folder="./sub/in/").path)) == {"x.md": "x"}
    assert read_files(Path(add(home, str(source), name="two", folder="way-in").path)) == {"in/x.md": "x"}
    for folder in ("way-out", "y.md", "nothing"):
        with pytest.raises(LibraryRefused, match="there is no folder"):
            add(home, str(source), name="three", folder=folder)
    for folder in ("../outside", "sub/../../outside", "a\0b"):
        with pytest.raises(LibraryRefused, match="invalid folder"):
            add(home, str(source), name="three", folder=folder)


def test_a_linked_library_is_a_symbolic_link(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    source = write_files(tmp_path / "source", FILES)
    added = add(home, str(source / ".." / "source"), link=True, folder="deep", name="work")
    assert (added.name, added.path) == ("work", str(source / "deep"))
    assert (tmp_path / "home" / "libraries" / "work").readlink() == source / "deep"
    assert read_records(home)["work"].location == str(source / "deep")
    with pytest.raises(LibraryExists):
        add(home, str(source), name="Work")
    assert remove(home, "work").link
    assert read_records(home) == {}
    assert read_files(source) == FILES


def test_only_folders_outside_of_the_libraries_can_be_linked(tmp_path: Path) -> None:
    home = tmp_path / "home"
    add(str(home), str(write_files(tmp_path / "source", FILES)))
    for folder in (tmp_path, home, home / "libraries", home / "libraries" / "source"):
        with pytest.raises(LibraryRefused, match="Dittybag stores its libraries there"):
            add(str(home), str(folder), link=True, name="loop")
    with pytest.raises(LibraryRefused, match="only a folder can be linked"):
        add(str(home), f"file://{tmp_path / 'source'}", link=True, name="git")


def test_the_libraries_are_not_copied_into_themselves(tmp_path: Path) -> None:
    home = tmp_path / "home"
    add(str(home), str(write_files(tmp_path / "source", FILES)))
    for folder in (tmp_path, home, home / "libraries", home / "libraries" / ".dittybag"):
        with pytest.raises(LibraryRefused, match="contains Dittybag's libraries"):
            add(str(home), str(folder), name="loop")
    assert read_files(Path(add(str(home), str(home / "libraries" / "source"), name="twin").path)) == FILES


@pytest.mark.parametrize("made_by_hand", ["source", "Source", "SOURCE!"])
def test_a_name_in_use_is_a_conflict_even_if_added_by_hand(tmp_path: Path, made_by_hand: str) -> None:
    home = tmp_path / "home"
    write_files(home / "libraries" / made_by_hand, {"mine.md": "mine"})
    with pytest.raises(LibraryExists, match="'source' already exists"):
        add(str(home), str(write_files(tmp_path / "source", FILES)))
    assert read_files(home / "libraries" / made_by_hand) == {"mine.md": "mine"}
    assert add(str(home), str(tmp_path / "source"), name="Other Name").name == "other_name"


def test_an_invalid_library_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="is not a valid library name"):
        add(str(tmp_path / "home"), str(write_files(tmp_path / "---", FILES)))
    with pytest.raises(Invalid, match="at most 200 bytes"):
        create(str(tmp_path / "home"), "é" * 101)


def test_a_link_added_during_a_copy_wins_the_name(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    source = write_files(tmp_path / "source", FILES)
    lines: list[str] = []

    def add_link(line: str, done: int = 0, total: int = 0, /) -> None:
        if not lines:
            add(home, str(source), name="same", link=True)
        lines.append(line)

    with pytest.raises(LibraryExists):
        add(home, str(source), name="same", progress=add_link)
    assert lines
    assert read_records(home)["same"].kind == "link"
    assert leftovers(tmp_path / "home") == []


def test_of_several_processes_that_add_one_name_one_succeeds(tmp_path: Path) -> None:
    source = write_files(tmp_path / "source", {f"{number}.md": "x" for number in range(300)})
    command = [sys.executable, "-m", "dittybag", "library", "add", str(source), "--name", "same"]
    environment = os.environ | {"DITTYBAG_HOME": str(tmp_path / "home")}
    started = [
        subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(4)
    ]
    assert sorted(process.wait(30) for process in started) == [0, 4, 4, 4]
    assert not has_local_edits(str(tmp_path / "home"), "same")
    assert leftovers(tmp_path / "home") == []


def test_a_new_library_contains_a_working_prompt(tmp_path: Path) -> None:
    added = create(str(tmp_path), "My Team")
    assert sorted(read_files(Path(added.path))) == ["prompts/explain.md", "twig.toml"]
    manifest = tomllib.loads((Path(added.path) / "twig.toml").read_text())
    arguments = manifest["prompts"]["explain"]["arguments"]
    assert [(item["name"], item.get("required", False)) for item in arguments] == [
        ("topic", True),
        ("reader", False),
    ]
    text = (Path(added.path) / "prompts" / "explain.md").read_text()
    engine = minijinja.Environment(undefined_behavior="chainable")
    assert engine.render_str(text, topic="flock").startswith("Explain flock.\n")
    assert engine.render_str(text, topic="flock", reader="me").startswith("Explain flock to me.\n")
    with pytest.raises(LibraryExists):
        create(str(tmp_path), "my-team")


def test_an_unreadable_file_is_reported_without_leftovers(tmp_path: Path) -> None:
    source = write_files(tmp_path / "source", FILES)
    (source / "deep" / "b.md").chmod(0)
    command = [*drop_privileges(), sys.executable, "-m", "dittybag", "library", "add", str(source)]
    environment = os.environ | {"DITTYBAG_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert "could not be read: deep/b.md: permission denied" in done.stderr
    assert leftovers(tmp_path / "home") == []


def test_an_unwritable_folder_is_reported_as_a_disk_error(tmp_path: Path) -> None:
    write_files(tmp_path, {"home/libraries": "a file"})
    with pytest.raises(LibraryUnwritable) as failed:
        add(str(tmp_path / "home"), str(write_files(tmp_path / "source", FILES)))
    assert failed.value.problem
    assert failed.value.where == str(tmp_path / "home" / "libraries")


def test_no_file_descriptor_stays_open(tmp_path: Path) -> None:
    source = write_files(tmp_path / "source", FILES)
    commit(tmp_path / "repository", FILES)
    before = descriptors()
    for number, thing in enumerate((source, f"{tmp_path / 'repository'}#main", "https://-x/y")):
        try:
            add(str(tmp_path / "home"), str(thing), name=f"n{number}")
        except DittybagError:
            assert number > 1
    assert descriptors() == before


REFUSED = [
    ("", "not a folder or a Git URL"),
    ("-x", "not a folder or a Git URL"),
    ("--upload-pack=touch /tmp/x", "not a folder or a Git URL"),
    ("a\0b", "not a folder or a Git URL"),
    ("x" * 5000, "not a folder or a Git URL"),
    ("ext::sh -c touch% /tmp/x", "makes Git run another program"),
    ("EXT::sh", "makes Git run another program"),
    ("fd::17", "makes Git run another program"),
    ("https::https://example.org/x", "makes Git run another program"),
    ("git://example.org/x.git", "not a valid Git URL"),
    ("ftp://example.org/x.git", "not a valid Git URL"),
    ("ext://example.org/x.git", "not a valid Git URL"),
    ("HTTPS://example.org/b", "not a valid Git URL"),
    ("http://example.org/x.git", "is not encrypted"),
    ("https:///x", "not a valid Git URL"),
    ("https://-oProxyCommand=x/y", "not a valid Git URL"),
    ("ssh://-oProxyCommand=x/y", "not a valid Git URL"),
    ("ssh://-oProxyCommand=x@host/y", "not a valid Git URL"),
    ("ssh://host:22x/y", "not a valid Git URL"),
    ("git@-oProxyCommand=x:y", "not a valid Git URL"),
    ("-x@host:y", "not a folder or a Git URL"),
    ("git@host:-y", "not a valid Git URL"),
    ("https://example.org/a b", "not a valid Git URL"),
    ("https://example.org/a\nb", "not a valid Git URL"),
    ("https://example.org/x?token=secret", "not a valid Git URL"),
    ("https://user:pass/word@example.org/x", "not a valid Git URL"),
    ("https://user:12/34@example.org/x", "not a valid Git URL"),
    ("https://user:secret@example.org/x", "a credential helper of Git"),
    ("https://secret@example.org/x", "a credential helper of Git"),
    ("ssh://user:secret@example.org/x", "a credential helper of Git"),
    ("https://example.org/x.git#--upload-pack=y", "is not a valid branch, tag or commit"),
    ("https://example.org/x.git#a..b", "is not a valid branch, tag or commit"),
    ("https://example.org/x.git#a:b", "is not a valid branch, tag or commit"),
    ("https://example.org/x.git#+a", "is not a valid branch, tag or commit"),
    ("https://example.org/x.git#", "is not a valid branch, tag or commit"),
    ("https://github.com/o/r/tree/main/a/b", "https://github.com/o/r#main --folder a/b"),
    ("file://host/x", "file:///PATH"),
    ("/dev/null", "not a folder"),
    ("pyproject.toml", "unpack an archive and add its folder"),
    ("caf\udce9", "not valid UTF-8"),
]


@pytest.mark.parametrize(("source", "problem"), REFUSED)
def test_invalid_and_malicious_sources_are_refused(source: str, problem: str) -> None:
    with pytest.raises(LibraryRefused) as refused:
        parse_source(source)
    assert problem in str(refused.value)
    assert "secret" not in str(refused.value)
    assert "pass/word" not in str(refused.value)
    assert "12/34" not in str(refused.value)


@pytest.mark.parametrize("source", ["nowhere", "./nowhere.zip", "github.com/o/r", "host:path", "C:/x"])
def test_a_missing_source_is_reported(source: str) -> None:
    with pytest.raises(SourceNotFound, match="no such file or folder, and not a Git URL"):
        parse_source(source)


@pytest.mark.parametrize(
    ("source", "address", "name"),
    [
        ("https://example.org/a/b.git", "https://example.org/a/b.git", "b"),
        ("https://example.org:8443/a/b/#v1.2", "https://example.org:8443/a/b/", "b"),
        ("ssh://git@example.org:22/a/b.git", "ssh://git@example.org:22/a/b.git", "b"),
        ("git@example.org:a/b.git#main", "git@example.org:a/b.git", "b"),
        ("git@example.org:b.git", "git@example.org:b.git", "b"),
        ("http://localhost:3000/a/b", "http://localhost:3000/a/b", "b"),
        ("http://[::1]/b", "http://[::1]/b", "b"),
        ("file:///srv/b.git", "file:///srv/b.git", "b"),
    ],
)
def test_git_urls_are_parsed(source: str, address: str, name: str) -> None:
    found = parse_source(source)
    assert (found.kind, found.location, found.name) == ("git", source, name)
    assert found.remote is not None
    assert found.remote.address == address


def test_local_sources_are_detected_by_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(tmp_path / "work", FILES)
    git(tmp_path, "clone", "--quiet", "--bare", "work", "bare.git")
    write_files(tmp_path / "odd.git", FILES)
    write_files(tmp_path / "with#mark", FILES)
    monkeypatch.chdir(tmp_path)
    names = ("work", "bare.git", "odd.git", "with#mark", "work#main", ".")
    found = {name: parse_source(name) for name in names}
    assert {name: (source.kind, source.name) for name, source in found.items()} == {
        "work": ("folder", "work"),
        "bare.git": ("git", "bare"),
        "odd.git": ("folder", "odd.git"),
        "with#mark": ("folder", "with#mark"),
        "work#main": ("git", "work"),
        ".": ("folder", tmp_path.name),
    }
    assert found["bare.git"].location == str(tmp_path / "bare.git")
    with pytest.raises(LibraryRefused, match="not a Git repository"):
        parse_source("odd.git#main")
