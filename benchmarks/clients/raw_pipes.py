"""A client on raw pipes, with calls that are encoded in advance: it shows what the server can do."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from client_plan import Stopwatch, reply, requests

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


def encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class Pipes:
    """A server process, and the lines that it sends."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.process = subprocess.Popen(
            plan["command"],
            env={**os.environ, **plan["env"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._to, self._from = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._rest = b""

    def send(self, frames: bytes) -> None:
        while frames:
            frames = frames[os.write(self._to, frames) :]

    def read_lines(self) -> list[bytes]:
        """Return the complete lines of one read; at least one."""
        while True:
            chunk = os.read(self._from, 1 << 20)
            assert chunk, "the server ended"
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            if lines:
                return lines

    def close(self) -> None:
        self.process.communicate()


def prepared_calls(plan: dict[str, Any]) -> Iterator[tuple[bytes, bytes]]:
    """Return the calls and the texts that their results contain, in turn."""
    found = []
    for number, (arguments, expected, _) in enumerate(plan["calls"]):
        params = {"name": plan["tool"], "arguments": arguments}
        call = {"jsonrpc": "2.0", "id": 2 + number, "method": "tools/call", "params": params}
        found.append((encode(call), expected.encode()))
    return itertools.cycle(found)


class RawLoad:
    """The calls of a load, and the responses to them, which may come in any order."""

    def __init__(self, calls: Iterator[tuple[bytes, bytes]]) -> None:
        self._calls = calls
        self._expected: Counter[bytes] = Counter()
        self.responses: list[bytes] = []

    def take(self, count: int) -> bytes:
        """Return the next calls."""
        taken = list(itertools.islice(self._calls, count))
        self._expected.update(text for _, text in taken)
        return b"".join([frame for frame, _ in taken])

    def check(self) -> None:
        everything = b"\n".join(self.responses)
        assert b'"error":' not in everything, everything[:500]
        # A text that another one contains is found more often than expected.
        missing = [text for text, times in self._expected.items() if everything.count(text) < times]
        assert not missing, missing[:3]


def run_load(pipes: Pipes, calls: Iterator[tuple[bytes, bytes]], plan: dict[str, Any]) -> dict[str, Any]:
    """Keep a number of calls under way."""
    now, latencies, left, load = time.perf_counter, [], plan["at_a_time"], RawLoad(calls)
    watch = Stopwatch()
    sent_at = watch.started
    end = watch.started + plan["seconds"]
    pipes.send(load.take(left))
    while left:
        lines = pipes.read_lines()
        at = now()
        latencies += [at - sent_at] * len(lines)
        load.responses += lines
        if at >= end:
            left -= len(lines)
            continue
        frames = load.take(len(lines))
        sent_at = now()
        pipes.send(frames)
    result = watch.result(latencies)
    load.check()
    return result


def serve() -> None:
    pipes: Pipes | None = None
    calls: Iterator[tuple[bytes, bytes]] = iter(())
    for request in requests():
        if request["do"] == "open":
            started = time.perf_counter()
            pipes = Pipes(request)
            pipes.send(encode(INITIALIZE))
            pipes.read_lines()
            connected = time.perf_counter()
            pipes.send(encode(INITIALIZED) + encode(LIST_TOOLS))
            pipes.read_lines()
            reply({"initialize": connected - started, "tools": time.perf_counter() - started})
            calls = prepared_calls(request)
        elif request["do"] == "load":
            assert pipes is not None
            reply(run_load(pipes, calls, request))
        else:
            assert pipes is not None
            pipes.close()
            reply({})


if __name__ == "__main__":
    serve()
