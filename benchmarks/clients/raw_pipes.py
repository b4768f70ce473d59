"""A client on raw pipes, with calls that are encoded in advance: it shows what the server can do."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import time
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
        """Return the complete responses of one read; at least one."""
        while True:
            chunk = os.read(self._from, 1 << 20)
            assert chunk, "the server ended"
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            # Servers may send notifications in between.
            if responses := [line for line in lines if b'"method":' not in line[:40]]:
                return responses

    def close(self) -> None:
        self.process.communicate()


class RawCalls:
    """The calls of a plan, encoded, in turn, and the responses to them, which may come in any order."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._texts = [expected for _, expected, _ in plan["calls"]]
        frames = []
        for number, (arguments, _, _) in enumerate(plan["calls"]):
            params = {"name": plan["tool"], "arguments": arguments}
            call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            frames.append((number, encode(call)))
        self._next = itertools.cycle(frames)
        self._sent: list[int] = []

    def take(self, count: int) -> bytes:
        """Return the next calls."""
        taken = list(itertools.islice(self._next, count))
        self._sent += [number for number, _ in taken]
        return b"".join([frame for _, frame in taken])

    def check(self, responses: list[bytes]) -> None:
        """Check that every call has one response, with its text."""
        answered = []
        for line in responses:
            response = json.loads(line)
            answered.append(response["id"])
            text = response["result"]["content"][0]["text"]
            assert self._texts[response["id"]] in text, line[:500]
        assert sorted(answered) == sorted(self._sent), "the responses do not match the calls"
        self._sent = []


def run_load(pipes: Pipes, calls: RawCalls, plan: dict[str, Any]) -> dict[str, Any]:
    """Keep a number of calls under way."""
    latencies: list[float] = []
    responses: list[bytes] = []
    now, left, watch = time.perf_counter, plan["at_a_time"], Stopwatch()
    sent_at = watch.started
    end = watch.started + plan["seconds"]
    pipes.send(calls.take(left))
    while left:
        lines = pipes.read_lines()
        at = now()
        latencies += [at - sent_at] * len(lines)
        responses += lines
        if at >= end:
            left -= len(lines)
            continue
        frames = calls.take(len(lines))
        sent_at = now()
        pipes.send(frames)
    result = watch.result(latencies)
    calls.check(responses)
    return result


def serve() -> None:
    pipes: Pipes | None = None
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
            calls = RawCalls(request)
        elif request["do"] == "load":
            assert pipes is not None
            reply(run_load(pipes, calls, request))
        else:
            assert pipes is not None
            pipes.close()
            reply({})


if __name__ == "__main__":
    serve()
