"""Skills and files that clients must not get: links, hidden files, invalid front matter, changing files."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import forked_processes
from tests.contracts.library_fixtures import STATELESS, Machine, write_files
from tests.contracts.skill_client import SkillClient
from tests.skill_samples import skill_md

MIB = 1024 * 1024
SECRET = "nobody may read this"
GOOD = "skill://acme/good/SKILL.md"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    write_files(machine.libraries / "acme", {"good/SKILL.md": skill_md("good")})
    (tmp_path / "secret.txt").write_text(SECRET)
    return machine


def warnings(machine: Machine) -> str:
    """Return what `dittybag library check` reports."""
    done = forked_processes.run("dittybag", "library", "check", env={**os.environ, **machine.env})
    return done.stdout + done.stderr


# Files that are not served


def test_links_and_hidden_files_are_neither_listed_nor_read(machine: Machine, tmp_path: Path) -> None:
    folder = machine.libraries / "acme" / "good"
    outside = tmp_path / "outside"
    write_files(outside, {"x.md": SECRET, "SKILL.md": skill_md("outside")})
    write_files(
        folder,
        {
            ".env": SECRET,
            ".git/config": SECRET,
            "sub/.hidden/x": SECRET,
            "node_modules/x.js": SECRET,
            "a.md": "a",
        },
    )
    (folder / "secret.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "passwd").symlink_to("/etc/passwd")
    (folder / "config").symlink_to(".git/config")
    (folder / "linked").symlink_to(outside)
    (folder / "up").symlink_to("..")
    os.mkfifo(folder / "pipe")
    (machine.libraries / "acme" / "whole").symlink_to(outside)
    with SkillClient(machine, version=STATELESS) as client:
        (entry,) = client.skills().values()
        assert [file["uri"] for file in entry["resources"]] == [GOOD, "skill://acme/good/a.md"]
        for path in (
            *(".env", ".git/config", "sub/.hidden/x", "node_modules/x.js", "secret.txt", "passwd", "config"),
            *("linked/x.md", "linked/SKILL.md", "up/good/SKILL.md", "pipe", "../../../secret.txt"),
            *("..%2f..%2f..%2fsecret.txt", "%2e%2e/%2e%2e/secret.txt", "..\\secret.txt", "a.md/../.env"),
        ):
            code, message = client.error("resources/read", uri=f"skill://acme/good/{path}")
            assert code == -32602
            assert SECRET not in message
        for path in (".git", "linked", "up", "sub", "node_modules"):
            assert client.error("resources/directory/read", uri=f"skill://acme/good/{path}")[0] == -32602


@pytest.mark.parametrize("target", ["../../../../secret.txt", ".env", "../.git/config"])
def test_a_file_that_becomes_a_link_is_no_longer_read(machine: Machine, target: str) -> None:
    file = machine.libraries / "acme" / "good" / "a.md"
    write_files(file.parent, {"a.md": "inside", ".env": SECRET, "../.git/config": SECRET})
    with SkillClient(machine, version=STATELESS) as client:
        assert client.content("skill://acme/good/a.md") == b"inside"
        file.unlink()
        file.symlink_to(target)
        assert file.read_text() == SECRET
        assert client.error("resources/read", uri="skill://acme/good/a.md")[0] == -32602
        assert [item["uri"] for item in client.skill(GOOD)["resources"]] == [GOOD]


def test_a_folder_that_becomes_a_link_is_no_longer_read(machine: Machine, tmp_path: Path) -> None:
    folder = machine.libraries / "acme" / "good" / "sub"
    write_files(folder, {"secret.txt": "inside"})
    uri = "skill://acme/good/sub/secret.txt"
    with SkillClient(machine, version=STATELESS) as client:
        assert client.content(uri) == b"inside"
        folder.rename(tmp_path / "moved")
        folder.symlink_to(tmp_path)
        assert client.error("resources/read", uri=uri)[0] == -32602
        # A skill with a file that leads out of the library is not offered until the next scan.
        answer = client.ask("skills/get", uri=GOOD)
        if "result" in answer:
            assert [item["uri"] for item in answer["result"]["skill"]["resources"]] == [GOOD]


# Skills that are not offered

Prepare = Callable[[Path], object]


def head(text: str) -> Prepare:
    return lambda folder: write_files(folder, {"SKILL.md": text})


def head_with(field: str) -> Prepare:
    return head(f"---\nname: bad\ndescription: x\n{field}\n---\nx")


def _many_files(folder: Path) -> None:
    write_files(folder, {"SKILL.md": skill_md("bad"), **{f"f/{number}": "x" for number in range(512)}})


def _large_file(folder: Path) -> None:
    write_files(folder, {"SKILL.md": skill_md("bad"), "large.bin": b"x" * (4 * MIB + 1)})


def _large_total(folder: Path) -> None:
    parts = {f"{number}.bin": b"x" * (4 * MIB) for number in range(4)}
    write_files(folder, {"SKILL.md": skill_md("bad"), **parts})


def _hard_link(folder: Path) -> None:
    write_files(folder, {"SKILL.md": skill_md("bad")})
    (folder.parent / "good" / "secret.txt").write_text(SECRET)
    os.link(folder.parent / "good" / "secret.txt", folder / "copy.txt")


NOT_OFFERED: dict[str, tuple[Prepare, str]] = {
    "no front matter": (head("Just text"), "front matter"),
    "byte order mark": (head("\ufeff" + skill_md("bad")), "byte order mark"),
    "not UTF-8": (lambda folder: write_files(folder, {"SKILL.md": b"---\nname: bad\xff\n---\nx"}), "UTF-8"),
    "invalid YAML": (head("---\nname: bad\ndescription: a: b: c\n---\nx"), "not valid YAML in line 3"),
    "anchors": (head("---\nname: bad\ndescription: &a x\nmore: *a\n---\nx"), "anchors"),
    "deep nesting": (head_with(f"a: {'[' * 5000}"), "nested"),
    "long front matter": (head_with(f"z: {'z' * 40_000}"), "32 KiB"),
    "no name": (head("---\ndescription: x\n---\nx"), "`name`"),
    "a name with capitals": (head(skill_md("Bad")), "`name`"),
    "a name with two hyphens": (head(skill_md("b--d")), "`name`"),
    "a name with a slash": (head(skill_md("../good")), "`name`"),
    "a number as the name": (head(skill_md("42")), "`name`"),
    "a long name": (head(skill_md("b" * 65)), "`name`"),
    "no description": (head("---\nname: bad\n---\nx"), "`description`"),
    "an empty description": (head(skill_md("bad", '" "')), "`description`"),
    "a long description": (head(skill_md("bad", "x" * 1025)), "`description`"),
    "tools as a list": (head_with("allowed-tools: [Read]"), "`allowed-tools`"),
    "numbers in the metadata": (head_with("metadata: {v: 1}"), "`metadata`"),
    "long compatibility": (head_with(f"compatibility: {'x' * 501}"), "`compatibility`"),
    "many files": (_many_files, "513 files"),
    "a large file": (_large_file, "larger than 4 MiB"),
    "a large total": (_large_total, "16 MiB"),
    "a hard link": (_hard_link, "hard link"),
}


@pytest.fixture(scope="module")
def bad_libraries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SkillClient, list[str]]]:
    """A server with a library for each case, and the lines of `dittybag library check`."""
    machine = Machine(tmp_path_factory.mktemp("bad"))
    for number, (prepare, _) in enumerate(NOT_OFFERED.values()):
        library = machine.libraries / f"case_{number}"
        write_files(library, {"good/SKILL.md": skill_md("good")})
        (library / "bad").mkdir()
        prepare(library / "bad")
    with SkillClient(machine, version=STATELESS) as client:
        yield client, warnings(machine).splitlines()


@pytest.mark.parametrize("case", NOT_OFFERED)
def test_a_skill_that_does_not_conform_is_not_offered_and_the_check_says_why(
    bad_libraries: tuple[SkillClient, list[str]], case: str
) -> None:
    client, report = bad_libraries
    library = f"case_{list(NOT_OFFERED).index(case)}"
    uris = [uri for uri in client.skills() if uri.startswith(f"skill://{library}/")]
    if case == "a hard link":
        # The other name of the same file is no better.
        assert uris == []
    else:
        assert uris == [f"skill://{library}/good/SKILL.md"]
    for name in ("bad", "Bad", "42", "b--d"):
        uri = f"skill://{library}/{name}/SKILL.md"
        assert client.error("skills/get", uri=uri)[0] == -32602
        assert client.error("resources/read", uri=uri)[0] == -32602
    (line,) = [text for text in report if f"/{library}/bad/SKILL.md: warning: not offered" in text]
    assert NOT_OFFERED[case][1] in line
    assert SECRET not in line


def test_a_linked_head_makes_no_skill(machine: Machine) -> None:
    folder = machine.libraries / "acme" / "bad"
    write_files(folder, {"real.md": skill_md("bad")})
    (folder / "SKILL.md").symlink_to("real.md")
    with SkillClient(machine) as client:
        assert list(client.skills()) == [GOOD]


def test_the_largest_skill_is_offered(machine: Machine) -> None:
    """The limits of the specification, with the file that takes the most bytes on the wire."""
    head = skill_md("largest")
    files: dict[str, str | bytes] = {f"f/{number}": "x" for number in range(507)}
    files |= {"controls.txt": "\x01" * (4 * MIB), "a.bin": b"\xff" * (4 * MIB), "b.bin": b"b" * (4 * MIB)}
    rest = 16 * MIB - 12 * MIB - 507 - len(head)
    write_files(machine.libraries / "acme" / "largest", {**files, "SKILL.md": head, "c.bin": b"c" * rest})
    with SkillClient(machine) as client:
        entry = client.skill("skill://acme/largest/SKILL.md")
        assert (len(entry["resources"]), sum(file["size"] for file in entry["resources"])) == (512, 16 * MIB)
        client.verified(entry)


def test_a_skill_is_offered_while_it_is_not_too_large(machine: Machine) -> None:
    file = machine.libraries / "acme" / "good" / "large.bin"
    file.write_bytes(b"x" * (4 * MIB + 1))
    with SkillClient(machine) as client:
        assert client.skills() == {}
        file.write_bytes(b"x" * (4 * MIB))
        client.wait_until(lambda: "result" in client.ask("skills/get", uri=GOOD))
        client.verified(client.skill(GOOD))
        file.write_bytes(b"x" * (4 * MIB + 1))
        client.wait_until(lambda: "error" in client.ask("skills/get", uri=GOOD))
        assert client.skills() == {}


def test_a_skill_that_conforms_again_is_offered_again(machine: Machine) -> None:
    file = machine.libraries / "acme" / "good" / "SKILL.md"
    with SkillClient(machine) as client:
        client.skill(GOOD)
        file.write_text("broken")
        assert client.error("skills/get", uri=GOOD)[0] == -32602
        file.write_text(skill_md("good", "Repaired"))
        assert client.skill(GOOD)["frontmatter"]["description"] == "Repaired"


# Changing files


@contextmanager
def repeating(change: Callable[[int], object]) -> Iterator[None]:
    """Repeat a change in a thread until the end of the block."""
    ended = threading.Event()

    def run() -> None:
        number = 0
        while not ended.is_set():
            change(number)
            number += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_an_entry_never_mixes_two_versions_of_a_file(machine: Machine, tmp_path: Path) -> None:
    file = machine.libraries / "acme" / "good" / "SKILL.md"
    versions = [skill_md("good", f"Version {number}", "text " * 2000 * (number + 1)) for number in range(3)]
    digests = {
        f"sha256:{hashlib.sha256(text.encode()).hexdigest()}": number for number, text in enumerate(versions)
    }

    def replace_file(number: int) -> None:
        temporary = tmp_path / "new.md"
        temporary.write_text(versions[number % 3])
        temporary.replace(file)

    with SkillClient(machine) as client, repeating(replace_file):
        seen = 0
        for _ in range(150):
            answer = client.ask("skills/get", uri=GOOD)
            if "error" in answer:
                # The file was replaced each time that it was read.
                assert answer["error"]["code"] == -32602
                continue
            entry = answer["result"]["skill"]
            (described,) = entry["resources"]
            version = digests[described["digest"]]
            assert entry["frontmatter"]["description"] == f"Version {version}"
            assert described["size"] == len(versions[version].encode())
            contents = client.ask("resources/read", uri=GOOD)
            if "result" in contents:
                assert contents["result"]["contents"][0]["text"] in versions
            seen += 1
        assert seen


def test_a_server_survives_files_that_are_written_while_they_are_read(machine: Machine) -> None:
    folder = machine.libraries / "acme" / "good"

    def write(number: int) -> None:
        (folder / "data.bin").write_bytes(os.urandom(200_000 + number % 1000))
        if number % 5 == 0:
            (folder / "data.bin").unlink()
        (folder / f"{number % 7}.md").write_text(f"{number}")

    with SkillClient(machine) as client:
        with repeating(write):
            for _ in range(60):
                for method in ("skills/list", "resources/list"):
                    client.request(method)
                answer = client.ask("skills/get", uri=GOOD)
                assert "result" in answer or answer["error"]["code"] == -32602
        client.wait_until(lambda: _is_consistent(client, folder))


def _is_consistent(client: SkillClient, folder: Path) -> bool:
    entry = client.skill(GOOD)
    if len(entry["resources"]) != len(list(folder.iterdir())):
        return False
    client.verified(entry)
    return True
