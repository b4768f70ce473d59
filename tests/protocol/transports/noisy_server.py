"""A stdio server with handlers that print, block and return large results."""

from __future__ import annotations

import asyncio
import atexit
import os
import subprocess
import sys
import time
import warnings

from msgspec import Struct

from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server, ServerLimits
from dittybag.protocol.transports import stdio


class BigArguments(Struct):
    characters: int


class WaitArguments(Struct):
    seconds: float


def build() -> Server:
    print("from the start", flush=True)
    limits = ServerLimits(message_bytes=int(os.environ.get("MESSAGE_BYTES", str(4 << 20))))
    server = Server("noisy", "1", limits=limits)

    @server.tool("noise")
    async def noise(arguments: object, ctx: Context) -> str:
        # It opens a file for good, which must not take the number of a closed standard stream.
        import ctypes

        print("from print")
        sys.stdout.write("from stdout\n")
        sys.stdout.flush()
        os.write(1, b"from descriptor 1\n")
        libc = ctypes.CDLL(None)
        libc.puts(b"from C")
        libc.fflush(None)
        warnings.warn("from a warning", stacklevel=1)
        subprocess.run(["sh", "-c", "echo from a child; cat"], check=True)
        return "quiet"

    @server.tool("big", BigArguments)
    def big(arguments: BigArguments, ctx: Context) -> str:
        return "x" * arguments.characters

    @server.tool("wait", WaitArguments)
    async def wait(arguments: WaitArguments, ctx: Context) -> str:
        await asyncio.sleep(arguments.seconds)
        return "waited"

    @server.tool("stuck")
    async def stuck(arguments: object, ctx: Context) -> str:
        await asyncio.to_thread(time.sleep, 60)
        return "never"

    calls = 0
    most_calls = 0

    def count_turn() -> None:
        nonlocal calls, most_calls
        most_calls, calls = max(calls, most_calls), 0
        asyncio.get_running_loop().call_soon(count_turn)

    @server.tool("calls_between_turns")
    def calls_between_turns(arguments: object, ctx: Context) -> str:
        nonlocal calls
        if not calls and not most_calls:
            count_turn()
        calls += 1
        return str(most_calls)

    return server


def _print_at_exit() -> None:
    print("from the end")


if __name__ == "__main__":
    atexit.register(_print_at_exit)
    stdio.run(build)
