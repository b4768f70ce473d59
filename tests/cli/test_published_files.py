"""`dittybag serve` keeps published files in step with the prompts of its workspace."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.cli_runner import data, dittybag
from tests.contracts.http_server_process import StderrLines
from tests.forked_processes import ForkedProcess
from tests.library.source_fixtures import write_files
from tests.postgres_servers import PostgresServer

SECONDS = 10.0
INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'


class Server:
    """A running server and its log."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        self.process = process
        self.log = StderrLines(process.stderr)

    def wait_for_text(self, file: Path, text: str) -> None:
        """Wait until a file contains a text. Fails if the server ends."""
        deadline = time.monotonic() + SECONDS
        while not file.is_file() or text not in file.read_text():
            assert time.monotonic() < deadline, file.read_text() if file.is_file() else "no file"
            with pytest.raises(subprocess.TimeoutExpired):
                self.process.wait(0.02)


@contextmanager
def serve(home: Path, *options: str) -> Iterator[Server]:
    """Start a server and wait until it serves."""
    environment = {**os.environ, "DITTYBAG_HOME": str(home)}
    pipe = subprocess.PIPE
    with ForkedProcess(
        "dittybag", "serve", *options, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, env=environment
    ) as process:
        server = Server(process)
        try:
            if "--http" in options:
                server.log.wait_for("Dittybag is listening on", seconds=SECONDS)
            else:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(INITIALIZE)
                assert b"serverInfo" in process.stdout.readline()
            yield server
        finally:
            process.kill()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def publish(home: Path, work: Path, name: str = "review", target: str = "claude-code") -> None:
    dittybag(home, "publish", name, "--to", target, "-C", str(work))


def test_servers_update_files_and_leave_edited_and_deleted_ones_alone(home: Path, work: Path) -> None:
    dittybag(home, "prompt", "add", "review", "Review it.")
    dittybag(home, "prompt", "add", "commit", "Commit it.")
    commands = work / ".claude" / "commands"
    file = commands / "review.md"
    with serve(home) as first, serve(home, "--http", "127.0.0.1:0") as second:
        # They started before anything was published.
        publish(home, work)
        publish(home, work, "commit")
        publish(home, work, "review", "agents-md")
        dittybag(home, "prompt", "update", "review", "Check it.")
        first.wait_for_text(file, "Check it.")
        first.wait_for_text(work / "AGENTS.md", "Check it.")

        edited = file.read_text().replace("Check it.", "Check it well.")
        file.write_text(edited)
        dittybag(home, "prompt", "update", "review", "Inspect it.")
        for server in (first, second):
            line = server.log.wait_for("review.md was edited", seconds=SECONDS)
            assert "'review' has changed too: the file is kept" in line
        first.wait_for_text(work / "AGENTS.md", "Inspect it.")
        assert file.read_text() == edited

        (commands / "commit.md").unlink()
        dittybag(home, "prompt", "update", "commit", "Commit all.")
        for server in (first, second):
            server.log.wait_for("commit.md was deleted", seconds=SECONDS)
        dittybag(home, "prompt", "delete", "review")
        second.log.wait_for("Prompt 'review' does not exist", seconds=SECONDS)
        assert "Inspect it." in (work / "AGENTS.md").read_text()
    assert [path.name for path in commands.iterdir()] == ["review.md"]
    assert file.read_text() == edited


def test_a_server_updates_files_that_became_outdated_before_it_started(home: Path, work: Path) -> None:
    dittybag(home, "prompt", "add", "review", "Review {{ code }}.")
    source = write_files(work / "team", {"commit.md": "Write a message."})
    dittybag(home, "library", "add", str(source), "--link")
    publish(home, work)
    publish(home, work, "team:commit")
    dittybag(home, "prompt", "update", "review", "Check {{ code }}.")
    commands = work / ".claude" / "commands"
    with serve(home, "--profile", "agent") as server:
        server.wait_for_text(commands / "review.md", "Check $ARGUMENTS.")
        (source / "commit.md").write_text("Write a short message.")
        server.wait_for_text(commands / "team-commit.md", "Write a short message.")
        # The project's name is in the file.
        dittybag(home, "project", "create", "other")
        dittybag(home, "prompt", "add", "review", "Of another project.", "--project", "other")
    assert "Check $ARGUMENTS." in (commands / "review.md").read_text()


def test_a_missing_folder_and_an_unwritable_one_do_not_disturb_serving(home: Path, tmp_path: Path) -> None:
    for name in ("gone", "blocked", "fine"):
        (tmp_path / name).mkdir()
    dittybag(home, "prompt", "add", "review", "Review it.")
    for name in ("gone", "blocked", "fine"):
        publish(home, tmp_path / name)
    shutil.rmtree(tmp_path / "gone")
    shutil.rmtree(tmp_path / "blocked" / ".claude")
    (tmp_path / "blocked" / ".claude").write_text("a file instead of a folder")
    with serve(home, "--profile", "mcpkg") as server:
        dittybag(home, "prompt", "update", "review", "Check it.")
        server.wait_for_text(tmp_path / "fine" / ".claude" / "commands" / "review.md", "Check it.")
        server.log.wait_for(str(tmp_path / "gone"), seconds=SECONDS)
        assert server.process.stdin is not None
        assert server.process.stdout is not None
        server.process.stdin.write(INITIALIZE)
        assert server.process.stdout.readline()
    assert not (tmp_path / "gone").exists()
    assert (tmp_path / "blocked" / ".claude").is_file()


def test_a_read_only_server_and_one_of_another_workspace_leave_files_alone(home: Path, work: Path) -> None:
    dittybag(home, "prompt", "add", "review", "Review it.")
    dittybag(home, "prompt", "add", "review", "Of another workspace.", "--workspace", "other")
    publish(home, work)
    file = work / ".claude" / "commands" / "review.md"
    edited = file.read_text() + "edited"
    file.write_text(edited)
    dittybag(home, "prompt", "update", "review", "Check it.")
    with serve(home, "--read-only") as reader, serve(home, "--workspace", "other") as other:
        with serve(home) as writer:
            writer.log.wait_for("review.md was edited", seconds=SECONDS)
        for server in (reader, other):
            # They started earlier, and would have logged it by now.
            assert server.process.communicate(timeout=SECONDS)[1] == b""
    assert file.read_text() == edited


def test_files_follow_a_workspace_on_postgresql(
    home: Path, work: Path, shared_postgres: PostgresServer
) -> None:
    url = shared_postgres.url(schema="published_files")
    dittybag(home, "prompt", "add", "review", "Review it.", "--db", url)
    dittybag(home, "publish", "review", "--to", "gemini", "-C", str(work), "--db", url)
    file = work / ".gemini" / "commands" / "review.toml"
    with serve(home, "--db", url) as server:
        dittybag(home, "prompt", "update", "review", "Check it.", "--db", url)
        server.wait_for_text(file, "Check it.")


def test_doctor_reports_published_files_that_no_longer_follow_their_prompts(home: Path, work: Path) -> None:
    for name in ("edited", "conflict", "deleted", "orphan", "fine"):
        dittybag(home, "prompt", "add", name, "First.")
        publish(home, work, name)
    commands = work / ".claude" / "commands"
    for name in ("edited", "conflict"):
        (commands / f"{name}.md").write_text(
            (commands / f"{name}.md").read_text().replace("First.", "Edited.")
        )
    dittybag(home, "prompt", "update", "conflict", "Second.")
    (commands / "deleted.md").unlink()
    dittybag(home, "prompt", "delete", "orphan")
    report = data(dittybag(home, "doctor", "--json"))
    found = {
        (item["level"], item["message"], item["fix"])
        for item in report["findings"]
        if item["topic"] == "published files"
    }

    def command(name: str) -> str:
        return f"dittybag publish {name} --to claude-code -C {work}"

    delete = f"To take the stored version, delete {commands}/conflict.md and run {command('conflict')}"
    keep = f"to keep yours, save it with dittybag prompt edit and run {command('conflict')}"
    assert found == {
        (
            "warning",
            f"{commands}/conflict.md was edited, and the prompt 'conflict' has changed too",
            f"{delete}; {keep}",
        ),
        (
            "note",
            f"{commands}/deleted.md was deleted and no longer follows the prompt 'deleted'",
            f"{command('deleted')} --remove forgets it, {command('deleted')} writes it again",
        ),
        (
            "note",
            f"{commands}/orphan.md stays as it is: the prompt 'orphan' no longer exists",
            f"{command('orphan')} --remove",
        ),
    }
    for name in ("conflict", "deleted", "orphan"):
        (commands / f"{name}.md").unlink(missing_ok=True)
        dittybag(home, "publish", name, "--to", "claude-code", "-C", str(work), "--remove")
    assert "2 published files without problems" in dittybag(home, "doctor").stdout
