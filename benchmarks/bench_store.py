"""Measures full stores on SQLite: `python -m benchmarks.bench_store`.

A server is called over HTTP. While it lists, searches and shows pages for one client, another client reads
prompts by their id: what it waits for is what others feel. With `--against FOLDER`, the `src` folder of
another version, both versions are measured in turns, each on a workspace that it has built.

Each has as many tasks as prompts. Workspaces are kept in the folder of `--folder` and used again. One of a
million prompts takes 4 GB.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import itertools
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import msgspec
from msgspec import Struct, field
from tests.web.browser_client import BrowserClient

from benchmarks.report_output import ReportTable, print_progress, print_tables, rows_table
from benchmarks.sample_data import (
    CACHE,
    COMMON_WORD,
    RARE_WORDS,
    UNCOMMON_WORD,
    VERY_COMMON_WORD,
    Draft,
    TextGenerator,
)

SIZES: Final = (1000, 100_000)
#: Larger workspaces are not copied: the measured creates stay in them.
_MAX_COPIED: Final = 1_000_000
CREATES: Final = 5000
CALLS: Final = 20
#: Seconds of load while the other client reads.
SECONDS: Final = 5.0

_TIMEOUT_SECONDS: Final = 120.0
#: An unused connection is not kept for longer.
_IDLE_SECONDS: Final = 2.0
_PROTOCOL: Final = "2026-07-28"
_PAGES: Final = {
    "page: home": "",
    "page: prompts": "/prompts",
    "page: prompts, last": "/prompts?page={last}",
    "page: prompts with a tag": "/prompts?tag=review",
    "page: prompts, rare word": f"/prompts?q={RARE_WORDS[0]}",
    "page: prompts, common word": f"/prompts?q={COMMON_WORD}",
    "page: resources": "/resources",
    "page: board": "/tasks",
    "page: activity": "/activity",
    "page: search": f"/search?q={UNCOMMON_WORD}",
}
_PER_PAGE: Final = 50
#: What one client does while another reads, and how the names of these operations begin.
LOADS: Final[dict[str, tuple[str, ...]]] = {
    "nothing": (),
    "lists and tags": ("list", "tags"),
    "searches": ("search",),
    "pages": ("page",),
    "creates": (),
}


class Version(Struct, frozen=True):
    """A version of Dittybag to measure."""

    name: str
    #: The folder with the package; `None` for the installed one.
    source: Path | None = None

    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DITTYBAG_")}
        return inherited if self.source is None else inherited | {"PYTHONPATH": str(self.source)}


class Server:
    """A running `dittybag serve --http` process."""

    def __init__(self, version: Version, file: Path) -> None:
        started = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dittybag", "serve", "--http", "127.0.0.1:0", "--db", str(file)],
            env=version.environment() | {"DITTYBAG_HOME": str(file.parent)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        log = ""
        while (link := re.search(r"Web UI: (\S+)", log)) is None:
            line = self._process.stderr.readline()
            if not line:
                raise SystemExit(f"error: the server ended: {log}")
            log += line
        self.start = time.perf_counter() - started
        self.port = int(link[1].split("/")[2].rpartition(":")[2])
        # What it logs later must not fill the pipe.
        threading.Thread(target=self._process.stderr.read, daemon=True).start()
        browser = BrowserClient(self)
        browser.open_link(link[1])
        self.cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()


class Client:
    """One connection to a server."""

    def __init__(self, server: Server) -> None:
        self._cookies = server.cookies
        self._used_at = time.monotonic()
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_TIMEOUT_SECONDS)

    def call(self, tool: str, **arguments: Any) -> tuple[float, Any]:
        """Call a tool. Returns the seconds and the structured content."""
        meta = {"protocolVersion": _PROTOCOL, "clientCapabilities": {}}
        client: dict[str, Any] = {"clientInfo": {"name": "benchmark", "version": "1"}}
        params = {
            "name": tool,
            "arguments": arguments,
            "_meta": {f"io.modelcontextprotocol/{name}": value for name, value in (meta | client).items()},
        }
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": _PROTOCOL,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        seconds, text = self._request("POST", "/mcp", body, headers)
        if text.startswith((b"event:", b"data:", b":")):
            # A call that takes long is answered as a stream.
            text = next(line[5:] for line in text.splitlines() if line.startswith(b"data:"))
        result = msgspec.json.decode(text)["result"]
        if result.get("isError"):
            raise SystemExit(f"error: {tool}: {text[:500]!r}")
        return seconds, result["structuredContent"]

    def page(self, path: str) -> float:
        """Request a page of the web UI. Returns the seconds."""
        return self._request("GET", f"/p/default{path}", b"", {"Cookie": self._cookies})[0]

    def _request(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[float, bytes]:
        if time.monotonic() - self._used_at > _IDLE_SECONDS:
            # The server may have closed it. The next request opens another one.
            self._connection.close()
        started = time.perf_counter()
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        text = response.read()
        seconds = time.perf_counter() - started
        self._used_at = time.monotonic()
        if response.status != 200:
            raise SystemExit(f"error: {method} {path}: {response.status} {text[:500]!r}")
        return seconds, text


class Measured(Struct):
    """The samples of one version in one workspace, in seconds, by what was measured."""

    samples: dict[str, list[float]] = field(default_factory=dict)
    #: What the other client waited for a prompt, alone and during each kind of load.
    felt: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, seconds: float) -> None:
        self.samples.setdefault(name, []).append(seconds)


class Subject:
    """A server with a workspace, and what was measured there."""

    def __init__(self, version: Version, file: Path, prompts: int) -> None:
        self.version = version
        self.prompts = prompts
        self.measured = Measured()
        with Server(version, file) as first:
            self.measured.add("start, first", first.start)
        self.server = Server(version, file)
        self.measured.add("start", self.server.start)
        self.client = Client(self.server)
        listed = self.client.call("list_prompts", limit=100)[1]["prompts"]
        self.ids = itertools.cycle([prompt["id"] for prompt in listed])
        self.generator = TextGenerator(f"created at {time.time()}")

    def operations(self) -> dict[str, Callable[[Client], float]]:
        """Return what is measured, by name."""
        rare = itertools.cycle(RARE_WORDS)
        last = max(0, self.prompts - 20)

        def calls(tool: str, **arguments: Any) -> Callable[[Client], float]:
            return lambda client: client.call(tool, **arguments)[0]

        def opens(path: str) -> Callable[[Client], float]:
            return lambda client: client.page(path.format(last=self.prompts // _PER_PAGE))

        return {
            "get": lambda client: client.call("get_prompt", id=next(self.ids))[0],
            "list, first page": calls("list_prompts"),
            "list, last page": calls("list_prompts", offset=last),
            "list, middle page": calls("list_prompts", offset=last // 2),
            "list by a tag": calls("filter_by_tags", tags=["review"]),
            "list by two tags": calls("filter_by_tags", tags=["review", "draft"]),
            "tags": calls("list_tags"),
            "search, rare": lambda client: client.call("search_prompts", query=next(rare))[0],
            "search, 1 in 100": calls("search_prompts", query=UNCOMMON_WORD),
            "search, 1 in 10": calls("search_prompts", query=COMMON_WORD),
            "search, 3 in 10": calls("search_prompts", query=VERY_COMMON_WORD),
            **{name: opens(path) for name, path in _PAGES.items()},
        }

    def create(self, count: int) -> None:
        """Create prompts, one after the other."""
        for _ in range(count):
            draft = self._draft()
            arguments = {"title": draft.title, "content": draft.content, "tags": list(draft.tags)}
            self.measured.add("create", self.client.call("add_prompt", **arguments)[0])

    def _draft(self) -> Draft:
        draft = self.generator.draft()
        return msgspec.structs.replace(draft, title=f"{draft.title} {time.time_ns()}")

    def _load(self, name: str) -> list[Callable[[Client], Any]]:
        if name == "nothing":
            return [lambda _: time.sleep(0.01)]
        if name == "creates":
            return [lambda _: self.create(1)]
        return [run for label, run in self.operations().items() if label.startswith(LOADS[name])]

    def feel(self, name: str, seconds: float) -> None:
        """Measure what another client waits for a prompt while this one makes calls."""
        load = self._load(name)
        stop = threading.Event()
        waits = self.measured.felt.setdefault(name, [])

        def read() -> None:
            other = Client(self.server)
            while not stop.is_set():
                waits.append(other.call("get_prompt", id=next(self.ids))[0])

        reader = threading.Thread(target=read)
        reader.start()
        end = time.perf_counter() + seconds
        for operation in itertools.cycle(load):
            if time.perf_counter() > end:
                break
            operation(self.client)
        stop.set()
        reader.join()


def measure(prompts: int, versions: Sequence[Version], folder: Path, *, quick: bool) -> list[Measured]:
    """Measure each version in a workspace with this many prompts."""
    with contextlib.ExitStack() as stack:
        subjects = []
        for version in versions:
            file = stack.enter_context(_workspace(version, prompts, folder))
            subject = Subject(version, file, prompts)
            stack.enter_context(subject.server)
            subjects.append(subject)
        for name in subjects[0].operations():
            print_progress(f"{prompts:,}: {name} ...")
            for _, subject in itertools.product(range(5 if quick else CALLS), subjects):
                subject.measured.add(name, subject.operations()[name](subject.client))
        for number in range(10):
            print_progress(f"{prompts:,}: creates, {number + 1} of 10 ...")
            for subject in subjects:
                subject.create(CREATES // (100 if quick else 10))
        _measure_waits(subjects, 1.0 if quick else SECONDS)
        return [subject.measured for subject in subjects]


def _measure_waits(subjects: Sequence[Subject], seconds: float) -> None:
    for name in LOADS:
        print_progress(f"{subjects[0].prompts:,}: what others feel, {name} ...")
        for subject in subjects:
            subject.feel(name, seconds)


@contextlib.contextmanager
def _workspace(version: Version, prompts: int, folder: Path) -> Iterator[Path]:
    """Return a workspace that may be changed, built once by that version."""
    folder.mkdir(parents=True, exist_ok=True)
    built = folder / f"{version.name}-{prompts}.db"
    if not built.exists():
        unfinished = built.with_suffix(".unfinished")
        for left in folder.glob(f"{unfinished.name}*"):
            left.unlink()
        command = [sys.executable, "-m", "benchmarks.scale_data", str(unfinished), str(prompts)]
        subprocess.run(command, env=version.environment(), check=True)
        unfinished.rename(built)
    if prompts > _MAX_COPIED:
        yield built
        return
    copy = built.with_suffix(".copy")
    shutil.copyfile(built, copy)
    # Otherwise the first checkpoint writes the whole copy, and commits wait for the disk.
    os.sync()
    try:
        yield copy
    finally:
        for left in folder.glob(f"{copy.name}*"):
            left.unlink()


def quantile(samples: Sequence[float], share: float) -> float:
    return sorted(samples)[int(share * (len(samples) - 1))]


def tables(
    sizes: Sequence[int], versions: Sequence[Version], found: dict[int, list[Measured]]
) -> list[ReportTable]:
    """Return the tables: medians, and the slowest creates and waits, by size."""
    columns = [(size, position) for size in sizes for position in range(len(versions))]
    heads = [f"{size:,} {versions[at].name}" if len(versions) > 1 else f"{size:,}" for size, at in columns]

    def row(label: str, samples: Callable[[Measured], list[float]], share: float = 0.5) -> list[str]:
        return [label, *(f"{1000 * quantile(samples(found[size][at]), share):.2f}" for size, at in columns)]

    rows = [["", *heads]]
    rows += [row(name, partial(_samples, name)) for name in found[sizes[0]][0].samples]
    rows += [
        row("create, p99", partial(_samples, "create"), 0.99),
        row("create, slowest", partial(_samples, "create"), 1.0),
    ]
    felt = [["", *heads]]
    felt += [
        row(f"{name}, {label}", partial(_waits, name), share)
        for name in LOADS
        for label, share in (("median", 0.5), ("p99", 0.99), ("slowest", 1.0))
    ]
    return [
        rows_table("Calls on SQLite by number of prompts, median in ms", rows),
        rows_table("What another client feels: a get during the call, in ms", felt),
    ]


def _samples(name: str, one: Measured) -> list[float]:
    return one.samples[name]


def _waits(name: str, one: Measured) -> list[float]:
    return one.felt[name]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_store", description=__doc__)
    parser.add_argument(
        "--prompts", type=int, action="append", help="a number of prompts (default: 1000 and 100000)"
    )
    parser.add_argument("--against", type=Path, help="the `src` folder of another version")
    parser.add_argument("--folder", type=Path, default=CACHE / "scale", help="where workspaces are kept")
    parser.add_argument("--quick", action="store_true", help="fewer measurements")
    parser.add_argument("--json", action="store_true", help="print the tables as JSON")
    options = parser.parse_args()
    sizes = options.prompts or SIZES
    versions = [Version("now")]
    if options.against is not None:
        versions.insert(0, Version("before", options.against.resolve()))
    found = {size: measure(size, versions, options.folder, quick=options.quick) for size in sizes}
    print_tables(tables(sizes, versions, found), as_json=options.json)


if __name__ == "__main__":
    main()
