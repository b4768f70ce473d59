"""Measures products that keep tasks or notes for agents, side by side: `python -m benchmarks.bench_products`.

Each runs as users have it, on stdio. Every item is read back by another process.
"""

from __future__ import annotations

import argparse
import itertools
import os
import select
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from benchmarks import processes
from benchmarks.peer_products import PRODUCTS, StoredItem
from benchmarks.peers import CACHE
from benchmarks.report_output import Cell, ReportTable, print_progress, print_tables, spread
from benchmarks.stdio_client import ServerFailed, StdioServer
from benchmarks.store_calls import McpRequest

_TIMEOUT_SECONDS: Final = 60.0
_INITIALIZED: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
#: Servers that write at the same time, and how many items each creates without waiting for the results.
SERVERS: Final = 4
EACH: Final = 25


class Measured(Struct):
    """The samples of one product, in seconds and bytes."""

    title: str
    starts: list[float] = field(default_factory=list)
    memory: float = 0
    first_creates: list[float] = field(default_factory=list)
    last_creates: list[float] = field(default_factory=list)
    reads: list[float] = field(default_factory=list)
    acknowledged: int = 0
    stored: int = 0


class ProductSession(StdioServer):
    """A session with any product. It answers requests of the server with an empty list of folders."""

    def __init__(self, product: StoredItem, folder: Path) -> None:
        home = Path.cwd()
        os.chdir(folder)
        try:
            super().__init__(product.command(folder), product.variables(folder))
        finally:
            os.chdir(home)
        self._ids = itertools.count(1)
        self._unread = b""
        self._poll = select.poll()
        self._poll.register(self._from, select.POLLIN)
        self.initialize()
        os.write(self._to, _INITIALIZED)

    @property
    def all_memory(self) -> int:
        """The resident memory of the server and its child processes."""
        return processes.memory(processes.with_children(self._process.pid))

    def call(self, *requests: McpRequest) -> list[Any]:
        """Send requests at once, and return their results in the order of the requests; errors are `None`."""
        numbers = [next(self._ids) for _ in requests]
        for number, request in zip(numbers, requests, strict=True):
            self._send({"id": number, "method": request.method, "params": request.params})
        found: dict[int, Any] = {}
        while len(found) < len(numbers):
            message = self._message()
            if "method" in message:
                if "id" in message:
                    self._send({"id": message["id"], "result": {"roots": []}})
            else:
                result = message.get("result")
                found[message["id"]] = None if result is None or result.get("isError") else result
        return [found[number] for number in numbers]

    def _send(self, message: dict[str, Any]) -> None:
        os.write(self._to, msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")

    def _message(self) -> Any:
        while True:
            while b"\n" not in self._unread:
                if not self._poll.poll(_TIMEOUT_SECONDS * 1000):
                    raise self._failure("the server did not respond")
                self._unread += self._read()
            line, _, self._unread = self._unread.partition(b"\n")
            # Some servers also print text.
            if line.startswith(b"{"):
                return msgspec.json.decode(line)


def result_text(result: Any) -> str:
    """Return the text of a tool's result, and "" for an error."""
    return "" if result is None else "\n".join(part.get("text", "") for part in result["content"])


def measure(product: StoredItem, items: int, starts: int) -> Measured:
    """Measure one product in new folders."""
    found = Measured(product.title)
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        folder = _prepared(product, Path(name) / "sequential")
        # The first start is not counted: it creates files and bytecode.
        for number in range(starts + 1):
            start = time.perf_counter()
            with ProductSession(product, folder) as session:
                if number:
                    found.starts.append(time.perf_counter() - start)
                    found.memory = session.all_memory / 1e6
        _measure_calls(product, folder, items, found)
        folder = _prepared(product, Path(name) / "concurrent")
        _measure_concurrent(product, folder, found)
    return found


def _prepared(product: StoredItem, folder: Path) -> Path:
    folder.mkdir()
    product.prepare(folder)
    return folder


def _measure_calls(product: StoredItem, folder: Path, items: int, found: Measured) -> None:
    titles = [f"item {number:05d} of the benchmark" for number in range(items)]
    seconds, answers = [], []
    with ProductSession(product, folder) as session:
        for title in titles:
            start = time.perf_counter()
            (result,) = session.call(product.create(folder, title))
            seconds.append(time.perf_counter() - start)
            if result is None:
                raise ServerFailed(f"{product.title} did not create an item")
            answers.append(result_text(result))
        tenth = max(1, items // 10)
        found.first_creates, found.last_creates = seconds[:tenth], seconds[-tenth:]
        for title, answer in zip(titles[::tenth], answers[::tenth], strict=True):
            request = product.read(folder, title, answer)
            start = time.perf_counter()
            (result,) = session.call(request)
            found.reads.append(time.perf_counter() - start)
            if title not in result_text(result):
                raise ServerFailed(f"{product.title} did not return {title}")


def _measure_concurrent(product: StoredItem, folder: Path, found: Measured) -> None:
    """Create items from several servers at once, and count which are there for a new server."""
    titles = [
        [f"writer {server} item {number:03d} end" for number in range(EACH)] for server in range(SERVERS)
    ]
    sessions = [ProductSession(product, folder) for _ in range(SERVERS)]
    try:
        with ThreadPoolExecutor(SERVERS) as pool:
            answered = list(pool.map(_create_all(product, folder), sessions, titles))
    finally:
        for session in sessions:
            session.__exit__(None, None, None)
    acknowledged = [
        (title, result_text(result))
        for batch, results in zip(titles, answered, strict=True)
        for title, result in zip(batch, results, strict=True)
        if result is not None
    ]
    found.acknowledged = len(acknowledged)
    with ProductSession(product, folder) as session:
        for title, answer in acknowledged:
            try:
                (result,) = session.call(product.read(folder, title, answer))
            except (ValueError, ServerFailed):
                continue
            found.stored += title in result_text(result)


def _create_all(product: StoredItem, folder: Path) -> Callable[[ProductSession, Sequence[str]], list[Any]]:
    return lambda session, titles: session.call(*(product.create(folder, title) for title in titles))


def tables(found: Sequence[Measured], items: int) -> list[ReportTable]:
    """Return the tables of the report."""
    tenth = max(1, items // 10)
    columns = [
        "product", "start to `initialize`", "memory", f"first {tenth} creates",
        f"last {tenth} of {items} creates", f"read one of {items}",
        f"{SERVERS * EACH} creates by {SERVERS} servers: acknowledged", "of these stored",
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            each.title,
            spread(each.starts, "ms", 1e3),
            f"{each.memory:.0f} MB",
            spread(each.first_creates, "ms", 1e3),
            spread(each.last_creates, "ms", 1e3),
            spread(each.reads, "ms", 1e3),
            str(each.acknowledged),
            str(each.stored),
        ]
        for each in found
    ]
    return [ReportTable("Products", columns, rows)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_products", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer items and starts")
    parser.add_argument("--json", action="store_true", help="print the tables as JSON")
    parser.add_argument("--only", default="", help="only products whose function contains this")
    options = parser.parse_args()
    items, starts = (50, 2) if options.quick else (500, 7)
    CACHE.mkdir(parents=True, exist_ok=True)
    found = []
    for make in PRODUCTS:
        if options.only in make.__name__:
            print_progress(f"{make.__name__} ...")
            found.append(measure(make(), items, starts))
    print_tables(tables(found, items), as_json=options.json)


if __name__ == "__main__":
    main()
