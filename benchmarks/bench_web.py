"""Measures the web UI on a full workspace: `python -m benchmarks.bench_web`.

Each page is requested once with cold caches, and then repeatedly, in turns with the others. The time is from
the request to the last byte of the response, over one connection on this machine. With `--postgres`, the
workspace is in PostgreSQL, which the server uses as an ordinary role.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from msgspec import Struct
from tests.e2e.web_server_process import WebServerProcess
from tests.web.browser_client import BrowserClient

from benchmarks.bench_databases import cluster, copy_workspace
from benchmarks.report_output import ReportTable, print_progress, print_tables, rows_table
from benchmarks.sample_data import (
    CACHE,
    COMMON_WORD,
    FREQUENT_PAIR,
    RARE_WORDS,
    VERY_COMMON_WORD,
    build_sample_files,
    temporary_copy,
)
from dittybag.web.routes import ROUTES

#: In milliseconds.
LIMIT: Final = 60
ROUNDS: Final = 20

#: Pages with filters, in addition to all routes.
FILTERED_PAGES: Final = (
    *(
        f"{page}={quote(words)}"
        for page in ("/search?q", "/prompts?q", "/tasks?text", "/tasks?view=list&text", "/resources?q")
        for words in (RARE_WORDS[0], COMMON_WORD, VERY_COMMON_WORD, FREQUENT_PAIR, "no such text anywhere")
    ),
    # Context packs, of the project and of tasks.
    *(
        f"/context?query={quote(words)}&budget=8000"
        for words in (RARE_WORDS[0], COMMON_WORD, VERY_COMMON_WORD)
    ),
    *(f"/tasks/{number}/context?budget={budget}" for number in (1, 1000) for budget in (1500, 8000)),
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
#: Routes that are not pages: a stream and a download.
_EXCLUDED: Final = ("/live", "/settings/export")
#: The role that owns the tables in PostgreSQL, and its database.
_ROLE: Final = "clerk"
_DATABASE: Final = "web"


class PageTiming(Struct, frozen=True):
    """A page and its response times in milliseconds."""

    path: str
    status: int
    size: int
    first: float
    later: list[float]

    @property
    def p95(self) -> float:
        """The 95th percentile: the maximum depends on garbage collection and other load."""
        return sorted(self.later)[int(0.95 * (len(self.later) - 1))]


class PageClient:
    """A signed-in HTTP client with one connection."""

    def __init__(self, browsing: BrowserClient) -> None:
        cookies = "; ".join(f"{name}={value}" for name, value in browsing.cookies.items())
        self._headers = {"Cookie": cookies}
        self._connection = http.client.HTTPConnection("127.0.0.1", browsing.server.port, timeout=60)

    def time_page(self, path: str) -> tuple[float, int, str]:
        """Request a page. Returns the milliseconds, the status and the page."""
        started = time.perf_counter()
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        body = response.read()
        return 1000 * (time.perf_counter() - started), response.status, body.decode("utf-8", "replace")


def page_paths(client: PageClient) -> list[str]:
    """Return the paths of all pages, with one prompt as an example for the pages of a prompt."""
    plain = [route.pattern for route in ROUTES if route.method == "GET" and "{" not in route.pattern]
    found = ["" if path == "/" else path for path in plain if path not in _EXCLUDED]
    _, _, prompts = client.time_page("/p/default/prompts")
    ids = re.findall(r"prompts(?:/|&#x2f;)([0-9a-f-]{36})", prompts)
    prompt_pages = (
        [f"/prompts/{ids[0]}", f"/prompts/{ids[0]}/edit", f"/prompts/{ids[0]}/history"] if ids else []
    )
    return list(dict.fromkeys([*found, *prompt_pages, *FILTERED_PAGES]))


@contextlib.contextmanager
def sample_database(items: int, home: Path, *, is_postgres: bool) -> Iterator[str]:
    """Provide a workspace with `items` prompts and `items` tasks: a file or a URL."""
    with temporary_copy(build_sample_files(items).workspace, home, "full") as file:
        if not is_postgres:
            yield str(file)
            return
        with cluster() as server:
            server.sql(f"CREATE ROLE {_ROLE} LOGIN")
            server.sql(f"CREATE DATABASE {_DATABASE} OWNER {_ROLE}")
            if server.has_trigrams:
                server.sql("CREATE EXTENSION pg_trgm WITH SCHEMA public", _DATABASE)
            url = server.url(_DATABASE, user=_ROLE)
            print_progress(f"Copying to PostgreSQL {server.version} ...")
            copy_workspace(file, url)
            server.sql("VACUUM ANALYZE", _DATABASE)
            yield url


def measure(items: int, rounds: int, *, is_postgres: bool) -> list[PageTiming]:
    """Measure all pages of a workspace with `items` prompts and `items` tasks."""
    with (
        tempfile.TemporaryDirectory(dir=CACHE) as name,
        sample_database(items, Path(name), is_postgres=is_postgres) as database,
        WebServerProcess(Path(name), "--db", database) as server,
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
        # Routes that need more parameters do not return a page.
        if firsts[path][1] == 200
    ]


def page_table(items: int, pages: list[PageTiming]) -> ReportTable:
    """Return a table with the slowest page first, and the number of pages within the limit."""
    rows = [("page", "KB", "first", "median", "p95")]
    rows += [
        (
            page.path or "/",
            f"{page.size / 1000:.0f}",
            f"{page.first:.1f}",
            f"{statistics.median(page.later):.1f}",
            f"{page.p95:.1f}",
        )
        for page in sorted(pages, key=lambda page: -page.p95)
    ]
    slow = [page.path or "/" for page in pages if page.p95 > LIMIT]
    summary = f"{len(pages) - len(slow)} of {len(pages)} pages within {LIMIT} ms"
    return rows_table(
        f"Web UI with {items:,} prompts and {items:,} tasks, in milliseconds",
        rows,
        summary + (f"; slower: {', '.join(slow)}." if slow else "."),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_web", description=__doc__)
    parser.add_argument(
        "--items", type=int, default=100_000, help="number of prompts and number of tasks (default: 100000)"
    )
    parser.add_argument("--postgres", action="store_true", help="measure on PostgreSQL instead of SQLite")
    parser.add_argument("--quick", action="store_true", help="fewer measurements")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    options = parser.parse_args()
    pages = measure(options.items, 5 if options.quick else ROUNDS, is_postgres=options.postgres)
    print_tables([page_table(options.items, pages)], as_json=options.json)


if __name__ == "__main__":
    main()
