"""Modules that a stdio server must not import at start-up."""

from __future__ import annotations

import subprocess
import sys

HEAVY = [
    "_ssl",
    "_hashlib",
    "hmac",
    "json",
    "urllib.parse",
    "http",
    "email",
    "importlib.metadata",
]

LOADS = """
import sys
from dittybag.protocol.transports import stdio
from tests.contracts.example_server import build
build()
print(*sorted(set(sys.argv[1:]) & set(sys.modules)))
"""

TLS = """
from dittybag.protocol.lazy_asyncio import asyncio
import ssl

async def main():
    async def answer(reader, writer):
        await reader.read(1)
        writer.write(b"this is not TLS")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        await asyncio.open_connection("127.0.0.1", port, ssl=True)
    except ssl.SSLError as error:
        print(error.reason)

asyncio.run(main())
"""


REPORTS = """
from dittybag.protocol.lazy_asyncio import asyncio
import logging

logging.basicConfig()

def fail():
    raise ValueError("broken")

async def main():
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(15, print)
    loop.call_soon(fail)
    try:
        fail()
    except ValueError:
        logging.exception("caught")

asyncio.run(main())
"""


PROCESSES = """
from dittybag.protocol.lazy_asyncio import asyncio
import subprocess, sys

assert (asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT) == (subprocess.PIPE, subprocess.STDOUT)
assert asyncio.subprocess.DEVNULL == subprocess.DEVNULL

async def main():
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "print('from a child')", stdout=asyncio.subprocess.PIPE
    )
    print((await process.communicate())[0].decode())

asyncio.run(main())
"""

INSPECTION = """
from dittybag.protocol.lazy_asyncio import asyncio

def function(parameter): ...

print(asyncio.coroutines.inspect.signature(function))
"""


def run(program: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()


def test_a_server_starts_without_the_heavy_modules() -> None:
    assert run(LOADS, *HEAVY) == ""


def test_tls_works_when_it_is_first_used() -> None:
    assert run(TLS) == "WRONG_VERSION_NUMBER"


def test_processes_work_when_the_first_one_is_started() -> None:
    assert run(PROCESSES) == "from a child"


def test_functions_can_be_inspected_after_the_start() -> None:
    assert run(INSPECTION) == "(parameter)"


def test_errors_are_reported_in_full_when_the_first_one_occurs() -> None:
    command = [sys.executable, "-W", "error", "-c", REPORTS]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    assert "ERROR:root:caught" in result.stderr
    assert "ERROR:asyncio:Exception in callback fail()" in result.stderr
    assert result.stderr.count("ValueError: broken") == 2


def test_a_module_of_the_engine_does_not_load_the_rest_of_it() -> None:
    loaded = run(
        "import sys; from dittybag.protocol.eras import versions; from dittybag.protocol import lazy_asyncio;"
        "print(*sorted(name for name in sys.modules if name.startswith('dittybag.protocol')))"
    )
    own = ["", ".eras", ".eras.versions", ".lazy_asyncio", ".lazy_modules"]
    assert loaded.split() == [f"dittybag.protocol{name}" for name in own]
