"""Hostile zip archives: each is refused with a reason, and nothing is left behind."""

from __future__ import annotations

import random
import subprocess
import zipfile
import zlib
from pathlib import Path

import pytest

from dittybag.domain.errors import DittybagError, LibraryRefused
from dittybag.library.installer import add
from tests.library.source_fixtures import ZipItem, build_zip, deflate, leftovers, read_files, write_zip
from tests.programs import ZIP

GOOD = ZipItem(name=b"good.md", content=b"good")
ZEROS = b"\0" * (3 * 1024 * 1024)


def with_entry(name: bytes | str, **fields: object) -> bytes:
    raw = name.encode() if isinstance(name, str) else name
    return build_zip([GOOD, ZipItem(name=raw, **fields)])  # type: ignore[arg-type]  # checked by the callers


def overlapping() -> bytes:
    """Two entries that share their content, as in advanced zip bombs."""
    first = build_zip([ZipItem(name=b"a.md", content=b"x" * 5000, method=0)])
    assert first.startswith(b"PK\3\4")
    return build_zip(
        [ZipItem(name=b"a.md", content=b"x" * 5000, method=0), ZipItem(name=b"a.md".upper(), at=0)],
    ).replace(b"A.MD", b"b.md")


def with_zip64_locator() -> bytes:
    """The comment of the last entry looks like the locator of another directory."""
    data = build_zip([GOOD])
    directory, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")
    entry = bytearray(data[directory:end] + b"PK\6\7" + b"\0" * 16)
    entry[32:34] = (20).to_bytes(2, "little")
    record = bytearray(data[end:])
    record[12:16] = len(entry).to_bytes(4, "little")
    return data[:directory] + entry + record


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


HOSTILE: dict[str, tuple[bytes, str]] = {
    "parent": (with_entry("../evil.md"), "'../evil.md': the path contains '..'"),
    "parent inside": (with_entry("a/../../evil.md"), "'a/../../evil.md': the path contains"),
    "parent at the end": (with_entry("a/.."), "'a/..': the path contains"),
    "absolute": (with_entry("/etc/evil.md"), "'/etc/evil.md': the path is absolute"),
    "drive": (with_entry("C:/evil.md"), "'C:/evil.md': the path starts with a drive letter"),
    "drive alone": (with_entry("c:evil.md"), "'c:evil.md': the path starts with a drive letter"),
    "backslash": (with_entry("..\\evil.md"), "the name contains a backslash"),
    "nul": (with_entry(b"evil.md\0.txt"), "control character"),
    "newline": (with_entry("a\nb.md"), "control character"),
    "escape sequence": (with_entry("\x1b[2Jx.md"), "control character"),
    "empty name": (with_entry(b""), "'': the path is empty"),
    "empty part": (with_entry("a//b.md"), "the path has an empty component"),
    "dot": (with_entry("./b.md"), "the path has an empty component"),
    "not utf-8": (with_entry(b"caf\xe9.md"), "not valid UTF-8"),
    "overlong utf-8": (with_entry(b"\xc0\xae\xc0\xae/x.md"), "not valid UTF-8"),
    "symbolic link": (with_entry("link.md", mode=0o120777), "'link.md' is a symbolic link"),
    "device": (with_entry("null", mode=0o020666), "'null' is not a regular file or a folder"),
    "fifo": (with_entry("pipe", mode=0o010644), "'pipe' is not a regular file"),
    "folder with the mode of a file": (with_entry("a/", mode=0o100644), "'a/' is not a regular file"),
    "twice": (build_zip([GOOD, GOOD]), "'good.md' occurs twice"),
    "twice but for case": (with_entry("GOOD.md"), "'GOOD.md' occurs twice or differs"),
    "twice but for the form of letters": (
        build_zip([ZipItem(name="\u00e9.md".encode()), ZipItem(name="e\u0301.md".encode())]),
        "occurs twice",
    ),
    "file and folder": (with_entry("good.md/more.md"), "'good.md' is both a file and a folder"),
    "encrypted": (with_entry("secret.md", flags=0x801), "'secret.md' is encrypted"),
    "strongly encrypted": (with_entry("secret.md", flags=0x841), "'secret.md' is encrypted"),
    "encrypted, says the entry": (
        with_entry("x.md", local_flags=0x801),
        "'x.md' does not match its description",
    ),
    "another name inside": (with_entry("x.md", local_name=b"y.md"), "'x.md' does not match its description"),
    "another size inside": (with_entry("x.md", local_size=3), "'x.md' does not match its description"),
    "larger than it says": (
        with_entry("x.md", content=b"x" * 5000, size=10),
        "'x.md' does not have its recorded size",
    ),
    "smaller than it says": (
        with_entry("x.md", content=b"x" * 10, size=5000),
        "'x.md' does not have its recorded size",
    ),
    "endless": (
        with_entry("x.md", size=100, data=deflate(b"\0" * (5 * 1024 * 1024))),
        "'x.md' does not have its recorded size",
    ),
    "bomb": (with_entry("x.md", content=ZEROS), "expand to 3,145,728 bytes"),
    "bomb of a gigabyte": (with_entry("x.md", size=1 << 30), "expand to 1,073,741,824 bytes"),
    "sizes beyond 4 GiB": (with_entry("x.md", size=0xFFFFFFFF), "'x.md' is too large for a library"),
    "overlap": (overlapping(), "'a.md' overlaps with another entry"),
    "entry in the directory": (
        with_entry("x.md", at=10_000_000),
        "'x.md' is not at the offset in the directory",
    ),
    "content in the directory": (with_entry("x.md", packed=5000), "'x.md' overlaps"),
    "wrong checksum": (with_entry("x.md", checksum=1), "'x.md' is damaged: the checksum is wrong"),
    "stored, wrong checksum": (with_entry("x.md", method=0, checksum=1), "'x.md' is damaged: the checksum"),
    "not compressed as it says": (with_entry("x.md", data=b"\xff" * 50), "'x.md' is damaged"),
    "more after the end": (with_entry("x.md", data=deflate(b"text") + b"more"), "'x.md' is damaged"),
    "end is missing": (
        with_entry("x.md", content=b"text" * 500, data=deflate(b"text" * 500)[:-3]),
        "'x.md' is damaged",
    ),
    "unknown compression": (with_entry("x.md", method=14), "'x.md' uses an unsupported compression method"),
    "too deep": (with_entry("/".join("a" * 17)), "the path is more than 16 levels deep"),
    "long name": (with_entry("a" * 201), "the name is longer than 200 bytes"),
    "long path": (with_entry("/".join(["a" * 190] * 6)), "the path is longer than 1000 bytes"),
    "more entries than it lists": (build_zip([GOOD], count=2), "directory is incomplete"),
    "fewer entries than it lists": (build_zip([GOOD, GOOD], count=1), "directory has extra data"),
    "directory elsewhere": (build_zip([GOOD], offset=3), "its directory is not at the recorded offset"),
    "zip64": (build_zip([GOOD], count=0xFFFF), "Zip64 archives are not supported"),
    "zip64 locator": (with_zip64_locator(), "Zip64 archives are not supported"),
    "another end in the comment": (build_zip([GOOD], comment=b"PK\5\6..."), "not a complete zip archive"),
    "something before it": (
        b"#!/bin/sh\n" + build_zip([GOOD]),
        "its directory is not at the recorded offset",
    ),
    "truncated": (build_zip([GOOD])[:-1], "not a complete zip archive"),
    "half": (build_zip([GOOD])[:30], "not a complete zip archive"),
    "empty file": (b"", "not a complete zip archive"),
    "no archive": (b"PK\3\4" + b"x" * 5000, "not a complete zip archive"),
    "nothing in it": (build_zip([]), "it has no files"),
    "only folders": (build_zip([ZipItem(name=b"a/", content=b"", mode=0o040755)]), "it has no files"),
}


@pytest.mark.parametrize(("data", "problem"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_archive_is_refused_without_leftovers(tmp_path: Path, data: bytes, problem: str) -> None:
    home = tmp_path / "home"
    pack = tmp_path / "pack.zip"
    pack.write_bytes(data)
    with pytest.raises(LibraryRefused) as refused:
        add(str(home), str(pack))
    assert problem in str(refused.value)
    assert str(refused.value).startswith(f"{pack}: ")
    assert "\x1b" not in str(refused.value)
    assert leftovers(home) == []
    assert sorted(p.name for p in (home / "libraries").iterdir()) == [".dittybag"]
    assert [p.name for p in (home / "libraries" / ".dittybag").iterdir()] == ["lock"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["home", "pack.zip"]


def test_archives_of_common_programs_are_read(tmp_path: Path) -> None:
    content = {"repo-main/a.md": "one", "repo-main/deep/b.md": "two" * 10_000, "repo-main/empty.md": ""}
    by_python = tmp_path / "python.zip"
    with zipfile.ZipFile(by_python, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in content.items():
            file.writestr(name, text)
        with file.open("repo-main/late.md", "w", force_zip64=True) as entry:
            entry.write(b"three")
    folder = tmp_path / "repo-main"
    (folder / "deep").mkdir(parents=True)
    for name, text in content.items():
        (tmp_path / name).write_text(text)
    (folder / "late.md").write_text("three")
    program = ZIP.require()
    for arguments in (["-qr", "info.zip", "repo-main"], ["-qr0", "stored.zip", "repo-main"]):
        subprocess.run([program, *arguments], cwd=tmp_path, check=True, timeout=20)
    streamed = subprocess.run(
        [program, "-qr", "-", "repo-main"], cwd=tmp_path, capture_output=True, check=True
    )
    (tmp_path / "streamed.zip").write_bytes(streamed.stdout)
    expected = {name.removeprefix("repo-main/"): text for name, text in content.items()} | {
        "late.md": "three"
    }
    for name in ("python", "info", "stored", "streamed"):
        added = add(str(tmp_path / "home"), str(tmp_path / f"{name}.zip"))
        assert read_files(Path(added.path)) == expected, name


def test_a_common_folder_is_stripped_but_a_hidden_one_is_not(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    wrapped = write_zip(
        tmp_path / "a.zip", {"pack-1/x.md": "x", "__MACOSX/pack-1/._x.md": "", ".DS_Store": ""}
    )
    assert read_files(Path(add(home, str(wrapped)).path)) == {"x.md": "x"}
    hidden = write_zip(tmp_path / "b.zip", {".claude/commands/x.md": "x"})
    assert read_files(Path(add(home, str(hidden)).path)) == {".claude/commands/x.md": "x"}
    several = write_zip(tmp_path / "c.zip", {"one/x.md": "x", "two/x.md": "y"})
    assert read_files(Path(add(home, str(several)).path)) == {"one/x.md": "x", "two/x.md": "y"}
    part = add(home, str(several), name="d", folder="two")
    assert read_files(Path(part.path)) == {"x.md": "y"}
    with pytest.raises(LibraryRefused, match="there is no folder 'three' in it"):
        add(home, str(several), name="e", folder="three")


def test_a_large_file_is_skipped_and_the_others_are_copied(tmp_path: Path) -> None:
    noise = random.Random(7).randbytes(4 * 1024 * 1024 + 1)
    (tmp_path / "pack.zip").write_bytes(build_zip([GOOD, ZipItem(name=b"film.mp4", content=noise, method=0)]))
    added = add(str(tmp_path / "home"), str(tmp_path / "pack.zip"))
    assert read_files(Path(added.path)) == {"good.md": "good"}
    assert [(item.file, item.reason) for item in added.left_out] == [("film.mp4", "larger than 4 MiB")]


def test_the_total_size_is_limited_while_files_are_extracted(tmp_path: Path) -> None:
    noise = random.Random(7).randbytes(4 * 1024 * 1024)
    packed = ZipItem(name=b"00.bin", content=noise, method=0)
    items = [ZipItem(name=b"%02d.bin" % number, content=noise, method=0) for number in range(17)]
    assert packed == items[0]
    (tmp_path / "pack.zip").write_bytes(build_zip(items))
    with pytest.raises(LibraryRefused, match="larger than 64 MiB"):
        add(str(tmp_path / "home"), str(tmp_path / "pack.zip"))
    assert leftovers(tmp_path / "home") == []


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    items = [ZipItem(name=b"%05d.md" % number, content=b"", method=0) for number in range(10_001)]
    (tmp_path / "pack.zip").write_bytes(build_zip(items))
    with pytest.raises(LibraryRefused, match="it has more than 10,000 files"):
        add(str(tmp_path / "home"), str(tmp_path / "pack.zip"))


def test_a_flipped_bit_never_changes_extracted_files(tmp_path: Path) -> None:
    files = {"a.md": b"some text " * 40, "deep/b.md": b"another text"}
    sound = build_zip([ZipItem(name=name.encode(), content=content) for name, content in files.items()])
    chance = random.Random(11)
    refused = 0
    for number in range(150):
        data = sound
        for _ in range(chance.randint(1, 3)):
            data = flipped(data, chance.randrange(len(data)))
        pack = tmp_path / "pack.zip"
        pack.write_bytes(data)
        try:
            added = add(str(tmp_path / "home"), str(pack), name=f"pack{number}")
        except DittybagError:
            refused += 1
            continue
        # A flipped bit in a name cannot be detected.
        assert sorted(map(zlib.crc32, map(str.encode, read_files(Path(added.path)).values()))) == sorted(
            map(zlib.crc32, files.values())
        )
    assert refused > 100
    assert leftovers(tmp_path / "home") == []
