"""How long the server takes for every page of a full workspace: `python -m benchmarks.bench_web`.

Each page is asked for once when nothing is warm, and then again and again in turns with the others. What is
measured is from the request to the last byte of the answer, over one connection on this machine.
"""

from __future__ import annotations

import argparse
import http.client
import re
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Struct
from tests.e2e.web_server_process import WebServerProcess
from tests.web.browser_client import BrowserClient

from benchmarks.report_output import machine, table, print_progress
from benchmarks.sample_data import (
    CACHE,
    COMMON_WORD,
    FREQUENT_PAIR,
    RARE_WORDS,
    VERY_COMMON_WORD,
    temporary_copy,
    build_sample_files,
)
from dittybag.web.pages import ROUTES

#: In milliseconds.
LIMIT: Final = 100
ROUNDS: Final = 20

#: Pages with something chosen, besides all addresses there are.
FILTERED_PAGES: Final = (
    *(
        f"{page}={quote(words)}"
        for page in ("/search?q", "/prompts?q", "/tasks?text", "/tasks?view=list&text", "/resources?q")
        for words in (RARE_WORDS[0], COMMON_WORD, VERY_COMMON_WORD, FREQUENT_PAIR, "no such text anywhere")
    ),
    "/prompts?tag=review",
    "/prompts?sort=name",
    "/prompts?sort=created",
    "/prompts?page=1000",
    "/prompts?sort=name&page=1000",
    "/tasks?by=project",
    "/tasks?by=energy",
    "/tasks?done=1",
    "/tasks?view=list",
    "/tasks?view=list&page=1000",
    "/tasks?due=week",
    "/activity?kind=task",
    "/activity?kind=resource",
    "/activity?actor=nobody",
    "/activity?before=1000",
)
#: These are no pages: one never ends, the others need something to be about.
_EXCLUDED: Final = ("/live",)


class PageTiming(Struct, frozen=True):
    """A page, and the milliseconds that it took."""

    path: str
    status: int
    size: int
    first: float
    later: list[float]

    @property
    def slowest(self) -> float:
        """Nearly: the garbage collector and the machine have their say in the very slowest."""
        return sorted(self.later)[int(0.95 * (len(self.later) - 1))]


class PageClient:
    """A signed-in browser with one connection."""

    def __init__(self, browsing: BrowserClient) -> None:
        held = "; ".join(f"{name}={value}" for name, value in browsing.cookies.items())
        self._headers = {"Cookie": held}
        self._connection = http.client.HTTPConnection("127.0.0.1", browsing.server.port, timeout=60)

    def time_page(self, path: str) -> tuple[float, int, str]:
        """The milliseconds, the status, and the page."""
        begun = time.perf_counter()
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        return 1000 * (time.perf_counter() - begun), answer.status, body.decode("utf-8", "replace")


def page_paths(client: PageClient) -> list[str]:
    """Every page there is, and one prompt, task and change of each kind of page about one."""
    plain = [route.pattern for route in ROUTES if route.method == "GET" and "{" not in route.pattern]
    found = ["" if path == "/" else path for path in plain if path not in _EXCLUDED]
    _, _, prompts = client.time_page("/p/default/prompts")
    ids = re.findall(r"prompts(?:/|&#x2f;)([0-9a-f-]{36})", prompts)
    about = [f"/prompts/{ids[0]}", f"/prompts/{ids[0]}/edit", f"/prompts/{ids[0]}/history"] if ids else []
    return list(dict.fromkeys([*found, *about, *FILTERED_PAGES]))


def measure(items: int, rounds: int) -> list[PageTiming]:
    """All pages of a workspace with so many prompts and tasks."""
    files = build_sample_files(items)
    with (
        tempfile.TemporaryDirectory(dir=CACHE) as name,
        temporary_copy(files.workspace, Path(name), "full") as full,
        WebServerProcess(Path(name), "--db", str(full)) as server,
    ):
        client = PageClient(BrowserClient.sign_in(server))
        chosen = page_paths(client)
        firsts = {}
        for path in chosen:
            took, status, text = client.time_page("/p/default" + path)
            firsts[path] = (took, status, len(text))
        later: dict[str, list[float]] = {path: [] for path in chosen}
        for number in range(rounds):
            print_progress(f"Round {number + 1} of {rounds} ...")
            for path in chosen:
                later[path].append(client.time_page("/p/default" + path)[0])
    return [
        PageTiming(path, firsts[path][1], firsts[path][2], firsts[path][0], later[path])
        for path in chosen
        # Parts that are about something which was not named are no pages.
        if firsts[path][1] == 200
    ]


def format_report(items: int, pages: list[PageTiming]) -> str:
    """A table with the slowest page first, and how many pages are fast enough."""
    rows = [("page", "KB", "first", "median", "95 of 100")]
    rows += [
        (
            page.path or "/",
            f"{page.size / 1000:.0f}",
            f"{page.first:.1f}",
            f"{statistics.median(page.later):.1f}",
            f"{page.slowest:.1f}",
        )
        for page in sorted(pages, key=lambda page: -page.slowest)
    ]
    slow = [page.path or "/" for page in pages if page.slowest > LIMIT]
    words = f"{len(pages) - len(slow)} of {len(pages)} pages within {LIMIT} ms"
    return "\n".join(
        [
            f"Pages of a workspace with {items:,} prompts and {items:,} tasks, in milliseconds ({machine()})",
            "",
            table(rows),
            "",
            words + (f"; not {', '.join(slow)}" if slow else ""),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_web", description=__doc__)
    parser.add_argument("--items", type=int, default=100_000, help="how many prompts, and how many tasks")
    parser.add_argument("--quick", action="store_true", help="fewer measurements")
    parser.add_argument("--json", action="store_true", help="all samples as JSON")
    options = parser.parse_args()
    pages = measure(options.items, 5 if options.quick else ROUNDS)
    if options.json:
        report: dict[str, Any] = {"machine": machine(), "pages": pages}
        print(msgspec.json.format(msgspec.json.encode(report)).decode())
        return
    print(format_report(options.items, pages))


if __name__ == "__main__":
    main()
