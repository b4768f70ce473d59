"""Templates cannot take the machine's memory where the system does not limit it, as on macOS."""

from __future__ import annotations

import asyncio
import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator

import msgspec
import pytest

from dittybag.library.render import child_process, process_memory
from dittybag.library.render.resource_limits import MEMORY_BYTES
from dittybag.library.render.worker_pool import Worker, WorkerCrashed

#: Doubles a text of 16 MiB five times.
BOMB = "{% set s = 'x' * 16777216 %}" + "{% set s = s ~ s %}" * 5 + "{{ s }}"
TOO_MUCH = "it needs too much memory or nesting"

#: The child of a system without /proc, whose memory the parent has to watch.
UNLIMITED = """\
import sys
sys.path[:] = sys.argv[2:]
from dittybag.library.render import resource_limits
resource_limits._STATM = "/proc/none"
resource_limits.DEADLINE_SECONDS = 30
from dittybag.library.render.child_main import main
main(sys.argv[1])
"""


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    monkeypatch.setattr(child_process, "_PROGRAM", UNLIMITED)
    # The deadline must not be what ends the bomb.
    monkeypatch.setattr(child_process, "DEADLINE_SECONDS", 30)
    worker = Worker("templates")
    yield worker
    worker.close()


def frame(source: str) -> bytes:
    return msgspec.json.encode({"source": source, "file": "", "values": {}, "files": {}}) + b"\n"


async def test_a_child_that_the_system_does_not_limit_is_killed_before_it_takes_too_much(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def memory_of(pid: int) -> int | None:
        used = process_memory.memory_of(pid)
        seen.append(used or 0)
        return used

    monkeypatch.setattr(child_process, "memory_of", memory_of)
    async with asyncio.timeout(20):
        for _ in range(2):
            result = msgspec.json.decode(await worker.submit(frame("{{ 1 + 1 }}")))
            assert result["text"] == "2"
            with pytest.raises(WorkerCrashed) as crash:
                await worker.submit(frame(BOMB))
            assert crash.value.problem == TOO_MUCH
    assert worker.crashes == 2
    # It was killed by the first measurement above the limit.
    assert MEMORY_BYTES < max(seen) - min(seen) < 4 * MEMORY_BYTES


def test_the_memory_of_a_process_is_what_it_uses() -> None:
    program = "import sys; x = b'x' * (64 << 20); print(flush=True); sys.stdin.read()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        process.stdout.readline()
        used = process_memory.memory_of(process.pid)
        process.communicate()
    assert used is not None
    assert 64 << 20 < used < 128 << 20
    assert process_memory.memory_of(process.pid) is None


def test_macos_is_asked_for_the_footprint_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library function writes the structure `rusage_info_v0` of `sys/resource.h`."""

    def proc_pid_rusage(pid: int, flavor: int, buffer: int) -> int:
        if pid != os.getpid() or flavor != 0:
            return -1
        # A UUID, then user_time, system_time, pkg_idle_wkups, interrupt_wkups, pageins, wired_size,
        # resident_size, phys_footprint, proc_start_abstime and proc_exit_abstime.
        numbers = (ctypes.c_uint64 * 10)(1, 2, 3, 4, 5, 6, 7, 123_456_789, 9, 10)
        ctypes.memmove(buffer, b"u" * 16 + bytes(numbers), 96)
        return 0

    monkeypatch.setattr(sys, "platform", "darwin")
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
    function = prototype(proc_pid_rusage)
    monkeypatch.setattr(process_memory, "_load_proc_pid_rusage", lambda: function)
    assert process_memory.memory_of(os.getpid()) == 123_456_789
    assert process_memory.memory_of(1) is None
