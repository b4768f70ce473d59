"""Child processes for foreign text: each job has one answer, whatever becomes of the child that does it."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from dittybag.domain.errors import RenderingFailed
from dittybag.domain.libraries import OUTPUT_BYTES, SOURCE_BYTES
from dittybag.library.render import worker_pool
from dittybag.library.render.child_reader import FileReader
from dittybag.library.render.template_renderer import TemplateRenderer
from dittybag.library.render.worker_pool import Worker, WorkerCrashed, WorkerPool
from tests import processes
from tests.wire import ROOT

ENDLESS = "{% for a in range(100000) %}" * 5 + "{% endfor %}" * 5
TOO_LARGE = "{{ '%999999999d'|format(1) }}"
TOO_DEEP = "{{ " + "-" * 60_000 + "1 }}"

TOO_LONG = "it takes longer than 250 ms"
TOO_MUCH = "it needs too much memory or nesting"
NO_START = "the child process could not be started"


Opened = TypeVar("Opened", Worker, WorkerPool, TemplateRenderer, FileReader)


def job(source: str, **values: str) -> dict[str, Any]:
    return {"source": source, "file": "", "values": values, "files": {}}


def frame(source: str, **values: str) -> bytes:
    return msgspec.json.encode(job(source, **values)) + b"\n"


async def said(answer: Awaitable[bytes]) -> str:
    """The text that a job was answered with."""
    async with asyncio.timeout(3):
        text: str = msgspec.json.decode(await answer)["text"]
        return text


async def blamed(answer: Awaitable[bytes]) -> str:
    """What a job is said to have done to its child."""
    async with asyncio.timeout(3):
        with pytest.raises(WorkerCrashed) as death:
            await answer
    return death.value.problem


#: Children of other tests, which stay until all are over.
OTHERS: set[int] = set()


@pytest.fixture(scope="module", autouse=True)
def others() -> None:
    OTHERS.update(children())


def children() -> list[int]:
    """Our children: no test here starts others."""
    return [child for child in processes.children() if child not in OTHERS]


def of_process(process: int, what: str) -> Path:
    """What the system says of a process."""
    return Path("/proc", str(process), what)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def is_gone(process: int) -> None:
    """Waits until a process has ended and is not even a zombie."""
    async with asyncio.timeout(1):
        while of_process(process, "status").exists():  # noqa: ASYNC110  # nobody tells when a zombie goes
            await asyncio.sleep(0)


async def only_child(worker: Worker) -> int:
    """The child of the only worker there is, when it has nothing to do."""
    assert await said(worker.submit(frame("ready"))) == "ready"
    (child,) = children()
    return child


@asynccontextmanager
async def closing(opened: Opened) -> AsyncIterator[Opened]:
    """Close it, and see its children go."""
    try:
        yield opened
    finally:
        left = children()
        opened.close()
        for child in left:
            await is_gone(child)


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    async with closing(Worker("templates")) as opened:
        yield opened


@pytest.fixture
async def renderer() -> AsyncIterator[TemplateRenderer]:
    async with closing(TemplateRenderer()) as opened:
        yield opened


# Answers


async def test_jobs_are_answered_in_the_order_in_which_they_were_asked(worker: Worker) -> None:
    finished: list[asyncio.Future[bytes]] = []
    answers = [worker.submit(frame("{{ n }}", n=str(number))) for number in range(100)]
    for answer in answers:
        answer.add_done_callback(finished.append)
    assert [await said(answer) for answer in answers] == [str(number) for number in range(100)]
    await asyncio.sleep(0)
    assert finished == answers


async def test_one_child_does_all_the_jobs_of_a_worker(worker: Worker) -> None:
    first = await only_child(worker)
    assert await only_child(worker) == first


async def test_a_crew_starts_no_more_children_than_it_needs() -> None:
    async with closing(WorkerPool("templates", 2)) as pool:
        for _ in range(5):
            assert await said(pool.submit(job("alone"))) == "alone"
        assert len(children()) == 1
        # Long enough to be under way when the next one comes.
        slow = "{% for i in range(99999) %}{% endfor %}two"
        assert await asyncio.gather(*(said(pool.submit(job(slow))) for _ in range(9))) == ["two"] * 9
        assert len(children()) == 2


async def test_values_are_data(renderer: TemplateRenderer) -> None:
    for value in (
        "{{ 7*7 }}{% include 'x' %}{# #}",
        '"}\n{"text": "forged"}\n',
        "\x00\x01\x1b[2J\r\n\u2028\ufeff\u202e\N{BOMB}",
        "<b>&amp;'\"",
        "",
    ):
        assert await renderer.render("{{ x }}", {"x": value}) == value
        assert await renderer.render("{{ [x][0] ~ '' }}", {"x": value}) == value


async def test_nothing_of_a_job_is_left_for_the_next(renderer: TemplateRenderer) -> None:
    source = "{% set kept = x %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}"
    assert await renderer.render(source, {"x": "secret"}, file="a.md") == "secret"
    assert await renderer.render("[{{ x }}{{ kept }}{{ m }}]", {}, file="b.md") == "[]"
    with pytest.raises(RenderingFailed):
        await renderer.render("{% include 'a.md' %}", {}, file="b.md")


async def test_values_are_texts_and_nothing_more(renderer: TemplateRenderer) -> None:
    for inside in ("__class__", "__init__.__globals__", "__class__.__mro__", "format.__self__"):
        assert await renderer.render(f"{{{{ x.{inside} }}}}", {"x": "a"}) == ""
    for call in ("x.__class__()", "x.mro()", "open('/etc/passwd')", "self.__init__()", "debug()"):
        with pytest.raises(RenderingFailed):
            await renderer.render(f"{{{{ {call} }}}}", {"x": "a"})


async def test_a_result_may_be_as_large_as_the_limit_and_no_larger(renderer: TemplateRenderer) -> None:
    half = "x" * (OUTPUT_BYTES // 2)
    assert await renderer.render("{{ x }}{{ x }}", {"x": half}) == half * 2
    with pytest.raises(RenderingFailed, match="the result is larger than 1 MiB"):
        await renderer.render("{{ x }}{{ x }}.", {"x": half})
    # It is bytes that count.
    bombs = "\N{BOMB}" * (OUTPUT_BYTES // 8)
    assert await renderer.render("{{ x }}{{ x }}", {"x": bombs}) == bombs * 2
    with pytest.raises(RenderingFailed, match="the result is larger than 1 MiB"):
        await renderer.render("{{ x }}{{ x }}.", {"x": bombs})


async def test_sources_and_values_that_are_too_large_reach_no_child(renderer: TemplateRenderer) -> None:
    with pytest.raises(RenderingFailed, match="it is larger than 64 KiB"):
        await renderer.render("x" * (SOURCE_BYTES + 1), {})
    with pytest.raises(RenderingFailed, match="its arguments are larger than 1024 KiB"):
        await renderer.render("x", {"x": "x" * OUTPUT_BYTES, "y": "y"})
    assert children() == []
    assert await renderer.render("x" * SOURCE_BYTES, {}) == "x" * SOURCE_BYTES
    assert await renderer.render("{{ x }}", {"x": "x" * OUTPUT_BYTES}) == "x" * OUTPUT_BYTES


async def test_an_answer_that_nobody_waits_for_is_nobody_else_s(worker: Worker) -> None:
    await only_child(worker)
    unwanted = [worker.submit(frame("unwanted")) for _ in range(3)]
    wanted = worker.submit(frame("wanted"))
    for answer in unwanted:
        answer.cancel()
    assert await said(wanted) == "wanted"
    unwanted = [worker.submit(frame(ENDLESS))]
    wanted = worker.submit(frame("wanted again"))
    unwanted[0].cancel()
    assert await said(wanted) == "wanted again"


# Deaths


@pytest.mark.parametrize(
    ("source", "problem"),
    [(ENDLESS, TOO_LONG), (TOO_LARGE, TOO_MUCH), (TOO_DEEP, TOO_MUCH)],
    ids=["endless", "too large", "too deep"],
)
async def test_a_job_that_kills_its_child_is_blamed_and_those_around_it_are_answered(
    worker: Worker, source: str, problem: str
) -> None:
    before = worker.submit(frame("before"))
    bomb = worker.submit(frame(source))
    after = [worker.submit(frame("{{ n }}", n=str(number))) for number in range(20)]
    again = worker.submit(frame(source))
    last = worker.submit(frame("last"))
    assert await said(before) == "before"
    assert await blamed(bomb) == problem
    assert [await said(answer) for answer in after] == [str(number) for number in range(20)]
    assert await blamed(again) == problem
    assert await said(last) == "last"
    assert len(children()) == 1


async def test_a_crew_answers_others_while_one_job_is_stuck() -> None:
    async with closing(WorkerPool("templates", 2)) as pool:
        await asyncio.gather(pool.submit(job("a")), pool.submit(job("b")))
        stuck = asyncio.ensure_future(pool.submit(job(ENDLESS)))
        await asyncio.sleep(0)
        for _ in range(20):
            assert await said(pool.submit(job("meanwhile"))) == "meanwhile"
        assert not stuck.done()
        assert await blamed(stuck) == TOO_LONG


async def test_a_file_that_takes_too_long_has_a_problem_and_the_next_is_read() -> None:
    async with closing(FileReader()) as reader:
        await reader.read("markdown", "first.md", "First")
        os.kill(children()[0], signal.SIGSTOP)
        (slow, _), (good, _) = await asyncio.gather(
            reader.read("markdown", "slow.md", "Slow"), reader.read("markdown", "good.md", "Good")
        )
        (problem,) = slow.problems
        assert (problem.file, problem.message) == ("slow.md", f"cannot be read: {TOO_LONG}")
        assert [draft.text for draft in good.prompts] == ["Good"]


async def test_a_child_that_has_been_stopped_is_replaced(worker: Worker) -> None:
    child = await only_child(worker)
    os.kill(child, signal.SIGSTOP)
    lost, next_one = worker.submit(frame("lost")), worker.submit(frame("next"))
    assert await blamed(lost) == TOO_LONG
    assert await said(next_one) == "next"
    await is_gone(child)


async def test_a_child_that_is_killed_while_it_works_is_replaced(worker: Worker) -> None:
    child = await only_child(worker)
    lost, next_one = worker.submit(frame(ENDLESS)), worker.submit(frame("next"))
    os.kill(child, signal.SIGKILL)
    assert await blamed(lost) == TOO_MUCH
    assert await said(next_one) == "next"


async def test_a_child_that_is_killed_while_it_rests_is_missed_by_nobody(worker: Worker) -> None:
    child = await only_child(worker)
    os.kill(child, signal.SIGKILL)
    await is_gone(child)
    assert await only_child(worker) != child


async def test_a_child_without_work_is_not_kept(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "_IDLE_SECONDS", 0.05)
    child = await only_child(worker)
    await is_gone(child)
    assert await only_child(worker) != child


async def test_a_program_that_is_not_there_fails_all_jobs_until_it_is(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/nowhere/python")
        for _ in range(3):
            assert await blamed(worker.submit(frame("x"))) == NO_START
    assert await said(worker.submit(frame("x"))) == "x"


async def test_a_program_that_ends_at_once_is_tried_a_few_times(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/bin/false")
        assert await blamed(worker.submit(frame("x"))) == NO_START
        answers = [worker.submit(frame("x")) for _ in range(5)]
        assert [await blamed(answer) for answer in answers] == [NO_START] * 5
    assert await said(worker.submit(frame("x"))) == "x"


async def test_closing_leaves_no_process_even_while_it_works(worker: Worker) -> None:
    child = await only_child(worker)
    answers = [worker.submit(frame(ENDLESS)) for _ in range(3)]
    worker.close()
    assert all(answer.cancelled() for answer in answers)
    await is_gone(child)
    assert children() == []


async def test_closing_leaves_no_process_even_while_it_starts(worker: Worker) -> None:
    answer = worker.submit(frame("x"))
    (child,) = children()
    worker.close()
    assert answer.cancelled()
    await is_gone(child)


async def test_nothing_is_left_of_many_deaths(worker: Worker) -> None:
    await only_child(worker)
    before = descriptors()
    for _ in range(10):
        assert await blamed(worker.submit(frame(TOO_LARGE))) == TOO_MUCH
    await only_child(worker)
    assert descriptors() <= before


# What a child may do


async def test_a_child_knows_nothing_of_our_environment(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "hunter2")
    child = await only_child(worker)
    assert of_process(child, "environ").read_bytes() == b""
    assert of_process(child, "cwd").readlink() == Path("/")


async def test_a_child_has_its_wire_and_no_other_file(worker: Worker) -> None:
    opened = sorted(of_process(await only_child(worker), "fd").iterdir())
    wire, out, err = (str(descriptor.readlink()) for descriptor in opened)
    assert wire.startswith("socket:")
    assert (out, err) == ("/dev/null", "/dev/null")


@pytest.mark.parametrize("role", ["templates", "files"])
async def test_a_child_can_open_and_write_and_start_nothing(role: str) -> None:
    async with closing(WorkerPool(role, 1)) as pool:
        files = {"format": "markdown", "file": "a.md", "content": "x"}
        await pool.submit(job("x") if role == "templates" else files)
        (child,) = children()
        lines = of_process(child, "limits").read_text().splitlines()[1:]
        size = int(of_process(child, "statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    limits = {line[:25].strip(): line[26:].split()[:2] for line in lines}
    assert limits["Max open files"] == ["3", "3"]
    assert limits["Max file size"] == ["0", "0"]
    assert limits["Max core file size"] == ["0", "0"]
    assert limits["Max processes"] == ["0", "0"]
    soft, hard = limits["Max address space"]
    assert soft == hard
    assert int(hard) <= size + 100 * 1024 * 1024


PARENT = """
import asyncio, json, sys
from dittybag.library.render.worker_pool import Worker

async def main():
    worker = Worker("templates")
    first, *rest = json.load(sys.stdin)
    await worker.submit(first.encode())
    answers = [worker.submit(frame.encode()) for frame in rest]
    await asyncio.sleep(0)
    print(worker._child._process.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("busy", [0, 1, 50], ids=["resting", "working", "with much to do"])
def test_a_child_does_not_outlive_its_parent(busy: int) -> None:
    frames = [frame("first"), *[frame(ENDLESS)] * busy]
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdin.write(json.dumps([one.decode() for one in frames]))
        parent.stdin.close()
        child = int(parent.stdout.readline())
        watch = os.pidfd_open(child)
        try:
            parent.kill()
            parent.wait()
            ended, _, _ = select.select([watch], [], [], 1.0)
            assert ended, "the child is still there a second later"
        finally:
            os.close(watch)
