"""Git repositories as library sources: commits, security, credentials and limits."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from dittybag.domain.errors import LibraryRefused, SourceFailed
from dittybag.library.install_records import read_records
from dittybag.library.installer import add, update
from dittybag.library.sources.git_repositories import FetchLimits, fetch
from dittybag.library.sources.limited_copy import LimitedCopy
from dittybag.library.sources.source_argument import GitRemote
from tests.library.source_fixtures import commit, git, leftovers, read_files, write_files
from tests.programs import GIT

FILES = {"a.md": "one", "deep/b.md": "two"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    commit(tmp_path / "prompts", FILES)
    return tmp_path / "prompts"


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path / "home")


def test_a_repository_is_added_at_a_branch_a_tag_or_a_commit(repository: Path, home: str) -> None:
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "tag", "--annotate", "v1", "--message=one")
    git(repository, "branch", "old/er")
    second = commit(repository, {"c.md": "three"})
    url = f"file://{repository}"
    newest = add(home, url)
    assert newest.name == "prompts"
    assert read_files(Path(newest.path)) == FILES | {"c.md": "three"}
    assert newest.record.revision == second
    for number, ref in enumerate(("v1", "old/er", first)):
        added = add(home, f"{url}#{ref}", name=f"n{number}")
        assert read_files(Path(added.path)) == FILES
        assert added.record.revision == first
        assert read_records(home)[f"n{number}"].location == f"{url}#{ref}"


def test_a_local_bare_repository_is_added_by_path(repository: Path, home: str, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", "prompts", "with blank % and #.git")
    added = add(home, str(tmp_path / "with blank % and #.git"))
    assert (added.name, added.record.kind) == ("with_blank___and", "git")
    assert read_files(Path(added.path)) == FILES


def test_a_folder_of_a_repository_can_be_added(repository: Path, home: str) -> None:
    added = add(home, f"file://{repository}", folder="deep")
    assert read_files(Path(added.path)) == {"b.md": "two"}
    commit(repository, {"deep/c.md": "three", "d.md": "four"})
    assert update(home, "prompts").added == ("c.md",)
    for folder in ("nothing", "a.md", "deep/b.md", "*"):
        with pytest.raises(LibraryRefused, match="there is no folder"):
            add(home, f"file://{repository}", folder=folder, name="x")


def test_links_submodules_and_large_files_are_skipped(repository: Path, home: str, tmp_path: Path) -> None:
    (repository / "link.md").symlink_to("/etc/passwd")
    (repository / "large.bin").write_bytes(b"x" * (4 * 1024 * 1024 + 1))
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
    write_files(repository, {"big.md": pointer, ".DS_Store": "x", "pipe|&;$(x).md": "odd", "-n.md": "dash"})
    (repository / "back\\slash.md").write_text("x")
    commit(tmp_path / "other", {"x.md": "x"})
    git(
        repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "other")
    )
    commit(repository)
    added = add(home, f"file://{repository}")
    assert sorted(read_files(Path(added.path))) == [
        "-n.md", ".gitmodules", "a.md", "deep/b.md", "pipe|&;$(x).md",
    ]  # fmt: skip
    assert {item.file: item.reason for item in added.left_out} == {
        ".DS_Store": "created by a file manager",
        "back\\slash.md": "the name contains a backslash",
        "big.md": "stored in Git LFS, which is not supported",
        "large.bin": "larger than 4 MiB",
        "link.md": "a symbolic link",
        "other": "a Git submodule",
    }


def test_malicious_trees_are_read_safely(repository: Path, home: str, tmp_path: Path) -> None:
    blob = git(repository, "rev-parse", "HEAD:a.md")

    def make_tree(*lines: str) -> str:
        done = subprocess.run(
            [GIT.require(), "mktree", "-z"], cwd=repository, input="".join(f"{line}\0" for line in lines),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.strip()

    inner = make_tree(f"100644 blob {blob}\tevil.md")
    tops = make_tree(
        f"100644 blob {blob}\tgood.md",
        f"040000 tree {inner}\t..",
        f"040000 tree {inner}\t.git",
        f"100755 blob {blob}\tC:evil.md",
    )
    git(repository, "update-ref", "HEAD", git(repository, "commit-tree", tops, "-m", "evil"))
    added = add(home, f"file://{repository}")
    assert read_files(Path(added.path)) == {"good.md": "one"}
    assert not os.access(Path(added.path) / "good.md", os.X_OK)
    assert {item.file for item in added.left_out} == {"../evil.md", ".git/evil.md", "C:evil.md"}
    assert not list(tmp_path.rglob("evil.md"))


@pytest.mark.parametrize("leaf", ["file", "empty folder"])
def test_a_tree_bomb_is_refused(repository: Path, home: str, leaf: str) -> None:
    line = f"100644 blob {git(repository, 'rev-parse', 'HEAD:a.md')}"
    if leaf == "empty folder":
        line = f"040000 tree {git(repository, 'hash-object', '-t', 'tree', '-w', '/dev/null')}"
    for _ in range(10):
        listing = "".join(f"{line}\t{number}\n" for number in range(10))
        done = subprocess.run(
            [GIT.require(), "mktree"],
            cwd=repository,
            input=listing,
            capture_output=True,
            text=True,
            check=True,
        )
        line = f"040000 tree {done.stdout.strip()}"
    bomb = git(repository, "commit-tree", line.split()[-1], "-m", "bomb")
    git(repository, "update-ref", "HEAD", bomb)
    with pytest.raises(LibraryRefused, match="it has more than 100,000 files and folders"):
        add(home, f"file://{repository}")
    assert leftovers(Path(home)) == []


def test_no_configured_program_is_run(
    repository: Path, home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "trap"
    script = tmp_path / "templates" / "hooks" / "reference-transaction"
    write_files(tmp_path, {"templates/hooks/reference-transaction": f"#!/bin/sh\ntouch {trap}\n"})
    script.chmod(0o755)
    (tmp_path / "templates" / "hooks" / "post-checkout").symlink_to(script)
    write_files(
        tmp_path,
        {
            "gitconfig": f"""
[core]
    hooksPath = {script.parent}
    fsmonitor = {script}
[init]
    templateDir = {tmp_path / "templates"}
[protocol "ext"]
    allow = always
[filter "trap"]
    smudge = touch {trap}
[url "ext::touch {trap} "]
    insteadOf = https://trap.example.org/
[url "http://127.0.0.1:1/"]
    insteadOf = https://downgrade.example.org/
"""
        },
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "ext:file")
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(tmp_path / "templates"))
    with monkeypatch.context() as clean:
        clean.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        for variable in ("GIT_DIR", "GIT_WORK_TREE", "GIT_TEMPLATE_DIR"):
            clean.delenv(variable)
        commit(repository, {".gitattributes": "*.md filter=trap\n"})
    added = add(home, f"file://{repository}")
    assert read_files(Path(added.path))["a.md"] == "one"
    for host in ("trap", "downgrade"):
        with pytest.raises(SourceFailed, match="not allowed"):
            add(home, f"https://{host}.example.org/x")
    assert not trap.exists()


def test_url_rewriting_and_credential_helpers_work(
    repository: Path, home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = write_files(tmp_path, {"helper": f"#!/bin/sh\ntouch {tmp_path / 'asked'}\n"}) / "helper"
    helper.chmod(0o755)
    write_files(tmp_path, {"gitconfig": f'[credential]\n    helper = {helper}\n[url "file://{repository}"]\n'
                                  "    insteadOf = file:///short\n"})  # fmt: skip
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    assert add(home, "file:///short").record.location == "file:///short"
    server = _refusing_server(tmp_path)
    try:
        with pytest.raises(SourceFailed):
            add(home, f"http://127.0.0.1:{server.port}/private.git")
    finally:
        server.stop()
    assert (tmp_path / "asked").exists()


def test_errors_of_git_are_reported(repository: Path, home: str, tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match="couldn't find remote ref nothing"):
        add(home, f"file://{repository}#nothing")
    with pytest.raises(SourceFailed, match="does not appear to be a git repository"):
        add(home, f"file://{tmp_path / 'nowhere'}")
    git(tmp_path, "init", "--quiet", "--bare", "empty.git")
    with pytest.raises(SourceFailed):
        add(home, str(tmp_path / "empty.git"))
    assert leftovers(Path(home)) == []


def test_a_missing_git_is_reported_with_a_hint(
    repository: Path, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SourceFailed, match="Git is not installed"):
        add(home, f"file://{repository}")


def fetch_with_limits(repository: Path, work: Path, limits: FetchLimits) -> None:
    work.mkdir()
    source = GitRemote(scheme="file", address=f"file://{repository}")
    target = LimitedCopy(work / "library", "it")
    fetch(source, "", work, target, limits=limits)


def test_a_fetch_stops_at_the_size_limit(tmp_path: Path, repository: Path) -> None:
    (repository / "noise.bin").write_bytes(os.urandom(3 * 1024 * 1024))
    commit(repository)
    fetch_with_limits(repository, tmp_path / "large", FetchLimits(bytes=4 * 1024 * 1024))
    with pytest.raises(LibraryRefused, match="the repository is larger than 1 MiB"):
        fetch_with_limits(repository, tmp_path / "small", FetchLimits(bytes=1024 * 1024))


def test_a_fetch_times_out_and_its_children_are_killed(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remote never answers; its grandchild process must not survive the timeout."""
    number = tmp_path / "number"
    script = f"#!/bin/sh\nsleep 60 & echo $! > {number}.part && mv {number}.part {number}\nwait\n"
    (write_files(tmp_path, {"ssh": script}) / "ssh").chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(tmp_path / "ssh"))
    work = tmp_path / "work"
    work.mkdir()
    source = GitRemote(scheme="ssh", address="git@example.org:x.git")
    started = time.monotonic()
    with pytest.raises(SourceFailed, match=r"fetching took longer than 0\.6 seconds"):
        fetch(source, "", work, LimitedCopy(work / "library", "it"), limits=FetchLimits(seconds=0.6))
    assert time.monotonic() - started < 10
    assert ended(int(number.read_text()))


def ended(process: int) -> bool:
    """Whether a process ends within a few seconds."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        os.sched_yield()
    return False


def test_a_process_with_many_open_files_can_fetch(repository: Path, home: str) -> None:
    """`select` fails for descriptors above 1023, which a server with many connections has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(1050):
            stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        assert read_files(Path(add(home, f"file://{repository}").path)) == FILES


def test_progress_is_reported(repository: Path, home: str) -> None:
    lines: list[str] = []
    add(home, f"file://{repository}", progress=lambda line, done=0, total=0, /: lines.append(line))
    # The last line of what Git has written since the last look.
    assert any("objects" in line or "->" in line for line in lines)
    assert all("\n" not in line and "\r" not in line and "\x1b" not in line for line in lines)


class _RefusingServer:
    """An HTTP server that rejects every password."""

    def __init__(self, folder: Path) -> None:
        program = write_files(folder, {"server.py": _SERVER_PROGRAM}) / "server.py"
        self._process = subprocess.Popen(
            [sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=10)


_SERVER_PROGRAM = """
from http.server import BaseHTTPRequestHandler, HTTPServer

class Refusing(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="private"')
        self.send_header("Content-Length", "0")
        self.end_headers()

server = HTTPServer(("127.0.0.1", 0), Refusing)
print(server.server_port, flush=True)
server.serve_forever()
"""


def _refusing_server(folder: Path) -> _RefusingServer:
    return _RefusingServer(folder)


def test_a_missing_repository_does_not_change_the_library(repository: Path, home: str) -> None:
    add(home, f"file://{repository}")
    repository.rename(repository.parent / "elsewhere")
    with pytest.raises(SourceFailed, match="does not appear to be a git repository"):
        update(home, "prompts")
    assert read_files(Path(home) / "libraries" / "prompts") == FILES
    assert leftovers(Path(home)) == []
