"""`dittybag task next`, `done`, `release` and `renew`: real processes that share tasks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.cli.cli_runner import data, dittybag, failure
from tests.cli.pseudo_terminal import run_in_terminal, strip_colours
from tests.forked_processes import ForkedProcess
from tests.postgres_servers import PostgresServer
from tests.repetitions import repetitions

#: In seconds: how long a process may take to end.
TIMEOUT = 30


def run(home: Path, *arguments: str) -> Any:
    return data(dittybag(home, "task", *arguments, "--json"))


def show(home: Path, id: int) -> dict[str, Any]:
    task: dict[str, Any] = run(home, "show", str(id))
    return task


def refused(home: Path, *arguments: str, status: int = 4) -> tuple[str, str]:
    error = failure(dittybag(home, "task", *arguments, "--json", status=status))
    return error["code"], error["message"]


@contextmanager
def start(home: Path, *arguments: str, stdout: int = subprocess.PIPE) -> Iterator[ForkedProcess]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DITTYBAG_")}
    with ForkedProcess(
        "dittybag",
        *("task", "next", *arguments),
        env={**inherited, "DITTYBAG_HOME": str(home), "DITTYBAG_AUTO_BACKUP": "off"},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def waiting(home: Path, *arguments: str, stdout: int = subprocess.PIPE) -> Iterator[ForkedProcess]:
    """A process that has found no task and waits for one."""
    with start(home, "--wait", *arguments, stdout=stdout) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("note: waiting for a task")
        yield process


def ended(process: ForkedProcess) -> tuple[int, str]:
    """Wait for the end of a process; return its exit status and what it printed."""
    output, _ = process.communicate(timeout=TIMEOUT)
    return process.returncode, output


# Claiming


def test_next_claims_the_best_ready_task_with_what_is_needed_to_begin(tmp_path: Path) -> None:
    dittybag(tmp_path, "task", "add", "Release")
    dittybag(tmp_path, "task", "add", "Design", "-P", "5", "--parent", "1")
    dittybag(tmp_path, "task", "add", "Build", "-P", "5", "--parent", "1", "--blocked-by", "2")
    first = run(tmp_path, "next", "--as", "worker-1", "--lease", "2h")
    task = first["task"]
    assert (task["id"], task["status"], task["assignee"]) == (2, "doing", "worker-1")
    assert (first["holder"], first["parent"]["title"], first["done_before"]) == ("worker-1", "Release", [])
    shown = show(tmp_path, 2)["claim"]
    assert (shown["holder"], shown["fence"], shown["until"]) == ("worker-1", first["fence"], first["until"])
    assert refused(tmp_path, "next", status=6) == ("NONE_READY", "No task is ready")
    dittybag(tmp_path, "task", "done", "2", "--fence", str(first["fence"]), "--comment", "Blue", "--as", "w")
    second = run(tmp_path, "next")
    assert second["task"]["id"] == 3
    [before] = second["done_before"]
    [comment] = before["comments"]
    assert (before["title"], comment["author"], comment["text"]) == ("Design", "w", "Blue")


def test_next_takes_only_tasks_of_a_project_and_with_all_labels(tmp_path: Path) -> None:
    dittybag(tmp_path, "project", "create", "demo")
    dittybag(tmp_path, "task", "add", "a", "-P", "5", "-l", "x")
    dittybag(tmp_path, "task", "add", "b", "-P", "4", "-l", "x", "-l", "y")
    dittybag(tmp_path, "task", "add", "c", "-P", "1", "-p", "demo")
    dittybag(tmp_path, "task", "add", "d", "-P", "5", "-p", "demo", "--assignee", "ann")
    ready = run(tmp_path, "list", "--ready")["tasks"]
    assert [task["title"] for task in ready] == ["a", "b", "c"]
    assert [task["title"] for task in run(tmp_path, "list", "--ready", "-l", "y")["tasks"]] == ["b"]
    assert run(tmp_path, "next", "-l", "x", "-l", "y")["task"]["title"] == "b"
    assert run(tmp_path, "next", "-p", "demo", "--as", "bob")["task"]["title"] == "c"
    assert refused(tmp_path, "next", "-p", "demo", "--as", "bob", status=6)[0] == "NONE_READY"
    assert run(tmp_path, "next", "-p", "demo", "--as", "ann")["task"]["title"] == "d"


def test_people_get_a_card_with_the_commands_to_go_on(tmp_path: Path) -> None:
    dittybag(tmp_path, "task", "add", "Design", "--comment", "Begin with the colours", "-n", "Blue?")
    claimed = dittybag(tmp_path, "task", "next", "--as", "ann")
    lines = claimed.stdout.splitlines()
    assert lines[:3] == ["1  Design", "status     doing", "assignee   ann"]
    assert re.fullmatch(r"held by    ann until \d{4}-\d\d-\d\d \d\d:\d\d \(fence 3\)", lines[3])
    assert "\nBlue?\n" in claimed.stdout
    assert claimed.stdout.endswith(":\nBegin with the colours\n")
    assert claimed.stderr == (
        "hint: when it is done, run: dittybag task done 1 --fence 3\n"
        "hint: to keep it longer, run: dittybag task renew 1 --fence 3\n"
        'hint: to give it back, run: dittybag task release 1 --fence 3 --comment "..."\n'
    )
    none = dittybag(tmp_path, "task", "next", status=6)
    assert (none.stdout, none.stderr.splitlines()[0]) == ("", "error: No task is ready")


def test_a_claim_is_renewed_released_and_lost(tmp_path: Path) -> None:
    dittybag(tmp_path, "task", "add", "Design")
    claimed = run(tmp_path, "next", "1", "--as", "worker-1", "--lease", "1h")
    fence = str(claimed["fence"])
    assert refused(tmp_path, "next", "1")[0] == "TASK_CLAIMED"
    hints = dittybag(tmp_path, "task", "next", "1", status=4).stderr.splitlines()[1:]
    assert hints == ["hint: to take it away, run: dittybag task next 1 --take"]
    renewed = run(tmp_path, "renew", "1", "--fence", fence)
    assert (str(renewed["claim"]["fence"]), renewed["version"]) == (fence, 2)
    assert dittybag(tmp_path, "task", "renew", "1", "--fence", fence).stdout.startswith(
        "Renewed task 1 'Design', yours until "
    )
    dittybag(tmp_path, "task", "edit", "1", "--fence", fence, "-P", "5")
    dittybag(tmp_path, "task", "edit", "1", "--comment", "half done", "--fence", fence, "--as", "worker-1")
    released = run(
        tmp_path, "release", "1", "--fence", fence, "--comment", "The rest is easy", "--as", "worker-1"
    )
    assert (released["status"], released["assignee"]) == ("todo", None)
    assert [(item["author"], item["text"]) for item in released["comments"]] == [
        ("worker-1", "half done"),
        ("worker-1", "The rest is easy"),
    ]
    for command in (
        ("renew", "1"),
        ("release", "1"),
        ("done", "1"),
        ("edit", "1", "--status", "review"),
        ("edit", "1", "-P", "1"),
        ("edit", "1", "--comment", "x"),
    ):
        assert refused(tmp_path, *command, "--fence", fence)[0] == "CLAIM_LOST"
    assert show(tmp_path, 1)["status"] == "todo"


def test_people_take_a_task_away_and_are_told_from_whom(tmp_path: Path) -> None:
    dittybag(tmp_path, "task", "add", "Design")
    note = "note: task 1 was taken from 'worker-1', who can no longer change it with its fence\n"
    fence = 0
    for command in (
        ("next", "1", "--take", "--as", "ann"),
        ("release", "1"),
        ("edit", "1", "--status", "review"),
        ("done", "1"),
        ("edit", "1", "--status", "dropped"),
        ("edit", "1", "--assignee", "ann"),
        ("edit", "1", "--status", "todo"),
    ):
        dittybag(tmp_path, "task", "edit", "1", "--status", "todo", "--assignee", "")
        fence = run(tmp_path, "next", "1", "--as", "worker-1")["fence"]
        assert note in dittybag(tmp_path, "task", *command).stderr, command
        assert refused(tmp_path, "done", "1", "--fence", str(fence))[0] == "CLAIM_LOST"
    dittybag(tmp_path, "task", "next", "1", "--as", "worker-1")
    # What leaves the task with its holder is not taking it away, nor what the holder does.
    assert dittybag(tmp_path, "task", "edit", "1", "-P", "5").stderr == ""
    assert dittybag(tmp_path, "task", "edit", "1", "--comment", "go on").stderr == ""
    assert run(tmp_path, "done", "1", "--as", "ann")["tasks"][0]["taken_from"] == "worker-1"
    dittybag(tmp_path, "task", "edit", "1", "--status", "todo")
    dittybag(tmp_path, "task", "next", "1", "--as", "worker-1")
    assert dittybag(tmp_path, "task", "done", "1", "--as", "worker-1").stderr == ""


def test_several_tasks_are_finished_together_or_not_at_all(tmp_path: Path) -> None:
    for title in ("a", "b"):
        dittybag(tmp_path, "task", "add", title)
    assert refused(tmp_path, "done", "1", "9", "--comment", "x", status=3)[0] == "TASK_NOT_FOUND"
    assert (show(tmp_path, 1)["status"], show(tmp_path, 1)["comments"]) == ("todo", [])
    dittybag(
        tmp_path, "task", "edit", "1", "--status", "review", "--comment", "-", "--as", "ann", stdin="See"
    )
    [comment] = show(tmp_path, 1)["comments"]
    assert (comment["author"], comment["text"]) == ("ann", "See")
    # One undo undoes both.
    dittybag(tmp_path, "task", "done", "1", "2")
    dittybag(tmp_path, "undo", "--yes")
    assert (show(tmp_path, 1)["status"], show(tmp_path, 2)["status"]) == ("review", "todo")


# Waiting


def test_a_waiter_gets_a_task_that_becomes_ready(tmp_path: Path) -> None:
    dittybag(tmp_path, "task", "add", "First", "--status", "review")
    dittybag(tmp_path, "task", "add", "Second", "--blocked-by", "1")
    with waiting(tmp_path, "--as", "worker-1") as process:
        dittybag(tmp_path, "task", "done", "1")
        status, output = ended(process)
    assert (status, output.splitlines()[0]) == (0, "2  Second")
    with waiting(tmp_path, "--as", "worker-2") as process:
        dittybag(tmp_path, "task", "add", "Third")
        assert ended(process)[1].splitlines()[0] == "3  Third"


def test_a_missing_workspace_is_not_waited_for_unless_it_is_the_default(tmp_path: Path) -> None:
    code, _ = refused(tmp_path, "next", "--wait", "--workspace", "nope", status=3)
    assert code == "WORKSPACE_NOT_FOUND"
    assert refused(tmp_path, "next", status=6)[0] == "NONE_READY"
    assert not list(tmp_path.glob("*.db"))
    with waiting(tmp_path) as process:
        dittybag(tmp_path, "task", "add", "First")
        assert ended(process)[0] == 0


def test_waiters_on_postgresql_get_one_task_each_and_leave_nothing_claimed(
    tmp_path: Path, shared_postgres: PostgresServer
) -> None:
    database = ("--db", shared_postgres.url(schema="waiting_in_the_shell"))
    dittybag(tmp_path, "task", "add", "First", "--status", "review", *database)
    with ExitStack() as stack:
        waiters = [stack.enter_context(waiting(tmp_path, *database)) for _ in range(3)]
        waiters[0].send_signal(signal.SIGTERM)
        assert ended(waiters[0]) == (1, "")
        dittybag(tmp_path, "task", "add", "Second", *database)
        dittybag(tmp_path, "task", "add", "Third", *database)
        printed = [ended(process)[1] for process in waiters[1:]]
    assert sorted(output.splitlines()[0] for output in printed) == ["2  Second", "3  Third"]
    listed = run(tmp_path, "list", "--status", "doing", *database)["tasks"]
    assert [task["claim"] is not None for task in listed] == [True, True]


def test_a_wait_has_an_end(tmp_path: Path) -> None:
    assert refused(tmp_path, "next", "--wait", "1s", status=6) == (
        "NONE_READY",
        "No task became ready in time",
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_wait_and_leaves_nothing_claimed(tmp_path: Path, number: signal.Signals) -> None:
    with waiting(tmp_path) as process:
        process.send_signal(number)
        assert ended(process) == (1, "")
    dittybag(tmp_path, "task", "add", "First")
    assert show(tmp_path, 1)["status"] == "todo"


def test_every_task_is_printed_or_ready_whenever_waiters_are_stopped(tmp_path: Path) -> None:
    random = Random(1)
    dittybag(tmp_path, "project", "create", "demo")
    for number in range(1, repetitions(6, 200) + 1):
        with ExitStack() as stack:
            waiters = [stack.enter_context(waiting(tmp_path, "-p", "demo")) for _ in range(3)]
            dittybag(tmp_path, "task", "add", "x", "-p", "demo", "--blocked-by", str(number - 1 or ""))
            stopped = random.sample(waiters, random.randrange(4))
            for process in stopped:
                process.send_signal(random.choice([signal.SIGINT, signal.SIGTERM]))
            if len(stopped) < len(waiters):
                # Somebody who was not stopped gets it, unless one of those who were was faster.
                dittybag(tmp_path, "task", "list")
            for process in waiters:
                if process not in stopped:
                    process.send_signal(signal.SIGTERM)
            printed = [output for status, output in map(ended, waiters) if output]
        task = show(tmp_path, number)
        assert (len(printed), task["status"]) in [(0, "todo"), (1, "doing")]
        assert (task["claim"] is not None) == bool(printed)
        dittybag(tmp_path, "task", "done", str(number))


def test_a_task_that_nobody_reads_is_ready_again(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    with waiting(tmp_path, stdout=writer) as process:
        os.close(writer)
        os.close(reader)
        dittybag(tmp_path, "task", "add", "First")
        process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1
    task = show(tmp_path, 1)
    assert (task["status"], task["assignee"], task["claim"]) == ("todo", None, None)
    assert task["version"] == 3


def test_a_signal_after_the_claim_does_not_lose_its_output(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, b"." * 512)
    os.set_blocking(writer, True)
    with waiting(tmp_path, stdout=writer) as process:
        os.close(writer)
        dittybag(tmp_path, "task", "add", "First")
        deadline = time.monotonic() + TIMEOUT
        while show(tmp_path, 1)["claim"] is None:
            assert time.monotonic() < deadline
        # It has claimed the task and cannot print it yet.
        process.send_signal(signal.SIGTERM)
        with os.fdopen(reader, "rb") as output:
            printed = output.read()
        process.communicate(timeout=TIMEOUT)
    assert (process.returncode, "First" in printed.decode()) == (0, True)
    assert show(tmp_path, 1)["status"] == "doing"


# Showing


def test_show_prints_parts_edges_comments_and_the_holder(tmp_path: Path) -> None:
    dittybag(tmp_path, "task", "add", "Release", "-l", "big", "--link", "https://example.com/1")
    for title in ("Design", "Build", "Test"):
        dittybag(tmp_path, "task", "add", title, "--parent", "1")
    dittybag(tmp_path, "task", "edit", "3", "--blocked-by", "2", "--comment", "Wait for Ann\nand Bob")
    dittybag(tmp_path, "task", "edit", "4", "--blocked-by", "2,3")
    dittybag(tmp_path, "task", "done", "2")
    dittybag(tmp_path, "task", "next", "--as", "worker-1", "--lease", "1h")
    parent = dittybag(tmp_path, "task", "show", "1").stdout
    assert parent.endswith("\nParts: 1 of 3 done\n  2  done   Design\n  3  doing  Build\n  4  todo   Test\n")
    assert "labels     big\n" in parent
    assert "link       https://example.com/1\n" in parent
    part = dittybag(tmp_path, "task", "show", "3", variables={"TZ": "Asia/Tokyo"}).stdout
    assert "assignee   worker-1\n" in part
    assert "part of    1 'Release'\n" in part
    assert re.search(r"\nheld by    worker-1 until \d{4}-\d\d-\d\d \d\d:\d\d \(fence \d+\)\n", part)
    assert "\nWaited for\n  2  done  Design\n\nBlocks\n  4  todo  Test\n\n" in part
    assert re.search(r", \d{4}-\d\d-\d\d \d\d:\d\d:\nWait for Ann\nand Bob\n$", part)
    last = show(tmp_path, 4)
    assert [task["status"] for task in last["blockers"]] == ["done", "doing"]
    assert "\nWaits for\n" in dittybag(tmp_path, "task", "show", "4").stdout
    assert (show(tmp_path, 1)["parts_done"], len(show(tmp_path, 1)["parts"])) == (1, 3)


def test_local_times_are_those_of_the_time_zone(tmp_path: Path) -> None:
    dittybag(tmp_path, "task", "add", "a", "--comment", "x")
    at = show(tmp_path, 1)["comments"][0]["at"]
    utc = dittybag(tmp_path, "task", "show", "1", variables={"TZ": "UTC"}).stdout
    tokyo = dittybag(tmp_path, "task", "show", "1", variables={"TZ": "Asia/Tokyo"}).stdout
    assert f"{at[:10]} {at[11:16]}:\nx\n" in utc
    assert f"{(int(at[11:13]) + 9) % 24:02}{at[13:16]}:\nx\n" in tokyo


def test_untrusted_text_cannot_control_the_terminal(tmp_path: Path) -> None:
    dittybag(tmp_path, "task", "add", "a", "--comment", "x\x9b31m \u202e", "--assignee", "b\u202e")
    screen = strip_colours(run_in_terminal(tmp_path, "task", "show", "1"))
    assert not {"\x9b", "\u202e"} & set(screen)
    assert "\u202e" not in run_in_terminal(tmp_path, "task", "list")


def test_lists_have_columns_only_for_what_is_there(tmp_path: Path) -> None:
    def header(*arguments: str) -> list[str]:
        return dittybag(tmp_path, "task", "list", *arguments).stdout.splitlines()[0].split()

    dittybag(tmp_path, "task", "add", "a", "-l", "x")
    assert header() == ["id", "priority", "title", "project", "due"]
    dittybag(
        tmp_path, "task", "add", "b", "--blocked-by", "1", "--assignee", "ann", "--parent", "1", status=4
    )
    dittybag(tmp_path, "task", "add", "b", "--blocked-by", "1", "--assignee", "ann", "--status", "doing")
    dittybag(tmp_path, "task", "add", "c", "--estimate", "2hr", "--parent", "2")
    assert header() == [
        *("id", "priority", "title", "project", "status", "assignee", "waits", "for", "estimate", "due"),
    ]
    assert header("-l", "x") == ["id", "priority", "title", "project", "due"]

    def ids(*arguments: str) -> list[int]:
        return [task["id"] for task in run(tmp_path, "list", *arguments)["tasks"]]

    assert ids("--assignee", "ann") == ids("--status", "doing") == [2]
    assert ids("--status", "doing", "--status", "todo") == [1, 2, 3]
    assert (ids("--parent", "2"), ids("--label", "x")) == ([3], [1])
    error = dittybag(tmp_path, "task", "list", "--parent", "9" * 30, status=1).stderr
    assert error.startswith(f"error: parent: task {'9' * 30} does not exist")
    dittybag(tmp_path, "task", "edit", "1", "--status", "dropped")
    assert (ids(), ids("--status", "dropped"), ids("--include-done")) == ([2, 3], [1], [1, 2, 3])
