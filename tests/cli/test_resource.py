"""`dittybag resource`: files of any type, byte for byte."""

from __future__ import annotations

import os
import resource as limits
import subprocess
import sys
from base64 import b64decode
from hashlib import sha256
from pathlib import Path

import pytest

from dittybag.domain.mime_types import guess_mime_type
from dittybag.domain.resources import CONTENT_BYTES
from tests.cli.cli_runner import data, dittybag, failure, output_bytes
from tests.cli.pseudo_terminal import run_in_terminal, strip_colours
from tests.stdio_server_process import ROOT

PNG = b"\x89PNG\r\n\x1a\n\0\0\xff\xfe"


def test_a_resource_is_added_shown_listed_updated_and_deleted(tmp_path: Path) -> None:
    file = tmp_path / "My API (new).md"
    file.write_bytes(b"# API\r\n\xc3\xa9")
    result = dittybag(
        tmp_path, "resource", "add", str(file), "--title", "The API", "--description", "All of it"
    )
    assert result.stdout == "Added resource 'My-API-new-.md' (text/markdown, 9 bytes)\n"
    name = "My-API-new-.md"
    assert output_bytes(tmp_path, "resource", "show", name) == file.read_bytes()
    assert output_bytes(tmp_path, "resource", "show", f"dittybag://resources/{name}") == file.read_bytes()
    listed = dittybag(tmp_path, "resource", "list").stdout.splitlines()
    assert listed[0].split() == ["name", "type", "size", "uri", "updated"]
    assert listed[1].split()[:5] == [name, "text/markdown", "9", "bytes", f"dittybag://resources/{name}"]
    file.write_text("# New")
    result = dittybag(
        tmp_path, "resource", "edit", name, str(file), "--name", "api", "--uri", "file:///api.md"
    )
    assert result.stdout == "Updated resource 'api' (text/markdown, 5 bytes)\n"
    assert output_bytes(tmp_path, "resource", "show", "file:///api.md") == b"# New"
    deleted = dittybag(tmp_path, "resource", "delete", "api")
    assert (deleted.stdout, deleted.stderr) == (
        "Deleted resource 'api'\n",
        "hint: to restore it, run: dittybag undo\n",
    )
    empty = dittybag(tmp_path, "resource", "list")
    assert (empty.stdout, empty.stderr.splitlines()[0]) == ("", "No resources yet")


def test_json_output_has_the_content_and_what_the_options_set(tmp_path: Path) -> None:
    file = tmp_path / "logo.png"
    file.write_bytes(PNG)
    added = data(dittybag(tmp_path, "resource", "add", str(file), "--uri", "file:///logo.png", "--json"))
    assert (added["uri"], added["sha256"]) == ("file:///logo.png", sha256(PNG).hexdigest())
    shown = data(dittybag(tmp_path, "resource", "show", "logo.png", "--json"))
    assert b64decode(shown.pop("blob")) == PNG
    assert shown == added
    edit = ("resource", "edit", "logo.png", "--title", "Logo", "--description", "Green", "--json")
    changed = data(dittybag(tmp_path, *edit))
    assert (changed["title"], changed["description"], changed["version"]) == ("Logo", "Green", 2)
    wrote = data(dittybag(tmp_path, "resource", "show", "logo.png", "-o", str(tmp_path / "out"), "--json"))
    assert wrote == changed
    dittybag(tmp_path, "resource", "add", "-", "--name", "n.txt", stdin="Words\n")
    assert data(dittybag(tmp_path, "resource", "show", "n.txt", "--json"))["text"] == "Words\n"
    deleted = data(dittybag(tmp_path, "resource", "delete", "logo.png", "n.txt", "--json"))
    assert [item["name"] for item in deleted["deleted"]] == ["logo.png", "n.txt"]


@pytest.mark.parametrize(
    ("name", "content", "mime_type"),
    [
        ("a.md", b"# A", "text/markdown"),
        ("A.PY", b"pass", "text/x-python"),
        ("a.ts", b"let x", "text/x-typescript"),
        ("a.yml", b"a: 1", "application/yaml"),
        ("a.sql", b"SELECT", "application/sql"),
        ("a.png", PNG, "image/png"),
        ("a.pdf", b"%PDF-", "application/pdf"),
        ("a.tar.gz", b"\x1f\x8b", "application/gzip"),
        ("Makefile", b"all:", "text/plain"),
        ("noname", PNG, "image/png"),
        ("noname", b"\0\1", "application/octet-stream"),
        ("noname", b"\xff", "application/octet-stream"),
        ("empty", b"", "text/plain"),
        # Invalid UTF-8 in a text file.
        ("a.md", b"\xff\xfe", "application/octet-stream"),
        ("a.json", b"\0", "application/octet-stream"),
    ],
)
def test_types_are_guessed_from_the_name_and_the_content(name: str, content: bytes, mime_type: str) -> None:
    assert guess_mime_type(f"/some/folder/{name}", content) == mime_type


def test_large_files_are_stored_and_larger_ones_rejected_before_reading(tmp_path: Path) -> None:
    file = tmp_path / "large.bin"
    content = os.urandom(CONTENT_BYTES)
    file.write_bytes(content)
    dittybag(tmp_path, "resource", "add", str(file))
    assert output_bytes(tmp_path, "resource", "show", "large.bin") == content
    output_bytes(tmp_path, "resource", "add", "-", "--name", "piped", stdin=content)
    assert output_bytes(tmp_path, "resource", "show", "piped") == content
    # A sparse file of one terabyte, in a process limited to less than a gigabyte.
    with file.open("r+b") as stream:
        stream.truncate(1 << 40)

    def refused(*arguments: str) -> str:
        result = subprocess.run(
            [sys.executable, "-m", "dittybag", "resource", "add", *arguments],
            cwd=ROOT,
            env={**os.environ, "DITTYBAG_HOME": str(tmp_path)},
            preexec_fn=lambda: limits.setrlimit(limits.RLIMIT_AS, (1 << 30, 1 << 30)),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert result.returncode == 1
        return result.stderr

    assert f"at most {CONTENT_BYTES} bytes, but has {1 << 40}\n" in refused(str(file), "--name", "x")
    assert f"at most {CONTENT_BYTES} bytes, but has more\n" in refused("/dev/zero")


def test_a_file_is_overwritten_only_with_force(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("Precious")
    target.chmod(0o640)
    link.symlink_to(target)
    dittybag(tmp_path, "resource", "add", "-", "--name", "n", stdin="New")
    error = failure(dittybag(tmp_path, "resource", "show", "n", "-o", str(link), "--json", status=4))
    assert error["hints"] == ["use --force to overwrite it"]
    assert target.read_text() == "Precious"
    result = dittybag(tmp_path, "resource", "show", "n", "--output", str(link), "--force")
    assert result.stdout == f"Wrote resource 'n' to {link} (text/plain, 3 bytes)\n"
    assert (target.read_text(), link.is_symlink(), target.stat().st_mode & 0o777) == ("New", True, 0o640)
    dittybag(tmp_path, "resource", "show", "n", "-o", "/dev/null", "--force")
    assert Path("/dev/null").is_char_device()


def test_a_terminal_shows_text_but_no_binary_content(tmp_path: Path) -> None:
    dittybag(tmp_path, "resource", "add", "-", "--name", "text", stdin="Words \x1b[31m\n")
    (tmp_path / "logo.png").write_bytes(PNG)
    dittybag(tmp_path, "resource", "add", str(tmp_path / "logo.png"))
    assert run_in_terminal(tmp_path, "resource", "show", "text") == "Words �[31m\n"
    screen = run_in_terminal(tmp_path, "resource", "show", "logo.png", status=1)
    assert "is binary (image/png) and would garble the terminal" in screen
    assert "hint: to write it to a file, run: dittybag resource show logo.png --output FILE" in strip_colours(
        screen
    )
    assert output_bytes(tmp_path, "resource", "show", "logo.png") == PNG
    assert "just now" in run_in_terminal(tmp_path, "resource", "list")


def test_lists_are_limited_and_projects_are_separate(tmp_path: Path) -> None:
    dittybag(tmp_path, "project", "create", "auth")
    for name in "abc":
        dittybag(tmp_path, "resource", "add", "-", "--name", name, "-p", "auth", stdin=name)
    cut = dittybag(tmp_path, "resource", "list", "--limit", "2", "-p", "auth")
    assert [line.split()[0] for line in cut.stdout.splitlines()] == ["name", "c", "b"]
    assert cut.stderr == "Showing 2 of 3; use --all to see the rest\n"
    assert (
        len(dittybag(tmp_path, "resource", "list", "--limit", "1", "--all", "-p", "auth").stdout.splitlines())
        == 4
    )
    assert dittybag(tmp_path, "resource", "list").stdout == ""


def test_a_type_can_be_changed_only_if_the_content_matches(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff")
    dittybag(tmp_path, "resource", "add", str(tmp_path / "x"))
    dittybag(tmp_path, "resource", "edit", "x", "--mime-type", "text/plain", status=1)
    (tmp_path / "y").write_text("Words")
    changed = data(
        dittybag(
            tmp_path, "resource", "edit", "x", str(tmp_path / "y"), "--mime-type", "text/plain", "--json"
        )
    )
    assert (changed["mime_type"], changed["size"]) == ("text/plain", 5)


def test_files_and_folders_are_added_together_or_not_at_all(tmp_path: Path) -> None:
    home, site = tmp_path / "home", tmp_path / "site"
    (site / "docs" / "api").mkdir(parents=True)
    (site / "docs" / ".git").mkdir()
    (site / "README.md").write_text("# Read me")
    (site / "docs" / "api" / "the users.md").write_text("# Users")
    (site / "docs" / "logo.png").write_bytes(PNG)
    (site / "docs" / ".git" / "config").write_text("hidden")
    (site / "docs" / ".hidden").write_text("hidden")
    (site / "docs" / "link.md").symlink_to("/etc/passwd")
    sources = (str(site / "README.md"), str(site / "docs"))

    added = data(dittybag(home, "resource", "add", *sources, "--json"))
    assert [(item["name"], item["uri"], item["mime_type"]) for item in added["resources"]] == [
        ("README.md", "dittybag://resources/README.md", "text/markdown"),
        ("docs-api-the-users.md", "dittybag://resources/docs/api/the%20users.md", "text/markdown"),
        ("docs-logo.png", "dittybag://resources/docs/logo.png", "image/png"),
    ]
    assert output_bytes(home, "resource", "show", "docs-logo.png") == PNG

    (site / "docs" / "new.md").write_text("# New")
    taken = dittybag(home, "resource", "add", *sources, status=4)
    assert taken.stderr.splitlines() == [
        "error: Nothing was added:",
        *(
            f"  Resource '{name}' already exists in project 'default'"
            for name in ("README.md", "docs-api-the-users.md", "docs-logo.png")
        ),
        "hint: use --skip-existing to add only the others",
    ]
    others = dittybag(home, "resource", "add", *sources, "--skip-existing")
    assert others.stdout == "Added resource 'docs-new.md' (text/markdown, 5 bytes)\n"
    assert "3 resources skipped" in others.stderr
    dittybag(home, "undo", "--yes")
    dittybag(home, "undo", "2", "--yes")
    assert data(dittybag(home, "resource", "list", "--json"))["total"] == 0

    deep = site / "docs" / "/".join(["d" * 250] * 9)
    deep.mkdir(parents=True)
    (deep / "a.md").write_text("x")
    refused = failure(dittybag(home, "resource", "add", *sources, "--json", status=1))
    assert "d: URI must be 1-" in refused["message"]
    missing = dittybag(home, "resource", "add", *sources, str(tmp_path / "none"), status=3)
    assert "none could not be read: No such file or directory" in missing.stderr
    (tmp_path / "empty").mkdir()
    empty = dittybag(home, "resource", "add", str(tmp_path / "empty"), status=1)
    assert "There are no files to add" in empty.stderr
    assert data(dittybag(home, "resource", "list", "--json"))["total"] == 0
