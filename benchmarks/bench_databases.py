"""PostgreSQL beside SQLite, under the product over HTTP: `python -m benchmarks.bench_databases`.

A workspace is built in SQLite and copied to a PostgreSQL of our own, with `dittybag copy`. Both are durable,
and on the same disk. A server on each is asked the same by turns, and every answer is checked.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec
import pytest
from msgspec import Struct, field
from tests import postgres_servers

from benchmarks.http_client import HOST, STATELESS, HttpServer, Load, Question, call
from benchmarks.report_output import machine, table, tell
from benchmarks.sample_data import (
    CACHE,
    COMMON_WORD,
    RARE,
    RARE_WORDS,
    UNCOMMON_WORD,
    Writing,
    copied,
    prepare,
)
from benchmarks.stdio_client import ServerFailed

#: Different prompts that are read in turn.
READ: Final = 2000
#: How many creates are at hand for each second: more than any of the two can do.
CREATES_A_SECOND: Final = 6000

#: A cluster that is made for tests has little memory; this has what PostgreSQL takes by default.
_SETTINGS: Final = {"shared_buffers": "128MB", "autovacuum_naptime": "60s"}


class Cluster(postgres_servers.PostgresServer):
    """A durable PostgreSQL for measuring."""

    def __init__(self, programs: Path, folder: Path) -> None:
        super().__init__(programs, folder, durable=True)
        self._settings = {**self._settings, **_SETTINGS}

    @property
    def version(self) -> str:
        return self.sql("SHOW server_version")[0].split()[0]


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """The system's PostgreSQL, or the one that tests carry, on the disk and not in memory."""
    try:
        programs = postgres_servers.installed_programs()
    except pytest.skip.Exception:
        programs = postgres_servers.bundled_programs()
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=CACHE))
    found: Cluster | None = None
    try:
        found = Cluster(programs, folder)
        found.start()
        yield found
    finally:
        if found is not None:
            found.stop()
        shutil.rmtree(folder, ignore_errors=True)


class Copies(Struct, frozen=True):
    """The same workspace in both databases."""

    home: Path
    file: Path
    url: str
    #: For people: what was copied to where, and how fast.
    about: str


@contextlib.contextmanager
def copies(items: int) -> Iterator[Copies]:
    """A workspace with so many prompts and as many tasks, until the end of the block."""
    workspace = prepare(items).workspace
    with (
        tempfile.TemporaryDirectory(dir=CACHE) as folder,
        copied(workspace, Path(folder), "workspace") as file,
        cluster() as server,
    ):
        tell(f"Copying {items:,} prompts and as many tasks to PostgreSQL {server.version} ...")
        changes, seconds = _copy(file, server.url())
        server.sql("VACUUM ANALYZE")
        trigrams = "with" if server.has_trigrams else "without"
        about = (
            f"{items:,} prompts and {items:,} tasks, PostgreSQL {server.version} {trigrams} pg_trgm, on "
            f"{machine()}.\nCopied from SQLite to PostgreSQL in {seconds:.0f} s: {changes / seconds:,.0f} "
            "changes a second."
        )
        yield Copies(Path(folder), file, server.url(), about)


def _copy(source: Path, target: str) -> tuple[int, float]:
    """Copy a workspace; how many changes that were, and how many seconds it took."""
    command = [sys.executable, "-m", "dittybag", "copy", "--from", str(source), "--to", target, "--json"]
    environment = {**os.environ, "DITTYBAG_HOME": str(source.parent)}
    begun = time.perf_counter()
    done = subprocess.run(command, check=False, capture_output=True, env=environment)
    if done.returncode:
        raise ServerFailed(f"copying failed: {done.stderr[-500:].decode(errors='replace')}")
    return msgspec.json.decode(done.stdout)["data"]["changes"], time.perf_counter() - begun


def dittybag(database: str, home: Path) -> HttpServer:
    """A server on a database, when it is entered."""

    def command(port: int) -> Sequence[str]:
        return sys.executable, "-m", "dittybag", "serve", "--db", database, "--http", f"{HOST}:{port}"

    return HttpServer(command, {"DITTYBAG_HOME": str(home)})


# What is asked


def reads(database: Path) -> list[Question]:
    """Reading prompts from all over a workspace."""

    def answers(*expected: str) -> Callable[[Any], bool]:
        def is_right(result: Any) -> bool:
            found = result["structuredContent"]
            return (found["id"], found["title"], found["content"]) == expected

        return is_right

    with contextlib.closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        rows = connection.execute(
            """SELECT id, title, content FROM prompts
               WHERE number % max(1, (SELECT count(*) FROM prompts) / ?) = 0""",
            (READ,),
        ).fetchall()
    return [
        call(number, STATELESS, "get_prompt", {"id": row[0]}, answers(*map(str, row)))
        for number, row in enumerate(rows)
    ]


def searches(words: Sequence[str], expected: int) -> list[Question]:
    """Searches for words that are in so many prompts."""
    return [
        call(
            number,
            STATELESS,
            "search_prompts",
            {"query": word},
            lambda result: result["structuredContent"]["total"] == expected,
        )
        for number, word in enumerate(words)
    ]


def creates(writing: Writing, prefix: str, seconds: float) -> list[Question]:
    """More new prompts than can be stored in some seconds. `prefix`: titles are unique."""
    drafts = [writing.draft() for _ in range(int(seconds * CREATES_A_SECOND))]
    return [
        call(
            number,
            STATELESS,
            "add_prompt",
            {"title": f"{prefix} {draft.title}", "content": draft.content, "tags": list(draft.tags)},
            lambda result: bool(result["structuredContent"]["id"]),
        )
        for number, draft in enumerate(drafts)
    ]


class Deed(Struct, frozen=True):
    """Something that is asked of every server, on so many connections."""

    title: str
    connections: int
    #: Those that are asked in turn; nothing if each is a new prompt.
    questions: list[Question] | None


def deeds(database: Path, items: int) -> list[Deed]:
    found = reads(database)
    return [
        Deed("get_prompt", 1, found),
        Deed("get_prompt", 16, found),
        Deed("add_prompt", 1, None),
        Deed("add_prompt", 16, None),
        Deed("search_prompts, rare word", 1, searches(RARE_WORDS, RARE)),
        Deed("search_prompts, rare word", 16, searches(RARE_WORDS, RARE)),
        Deed("search_prompts, one in a hundred", 1, searches([UNCOMMON_WORD], items // 100)),
        Deed("search_prompts, common word", 1, searches([COMMON_WORD], items // 10)),
    ]


# Measuring


class Effort(Struct, frozen=True):
    """How much is measured."""

    rounds: int
    #: How long each load takes.
    seconds: float


FULL: Final = Effort(rounds=5, seconds=1.0)
QUICK: Final = Effort(rounds=2, seconds=0.5)


class Series(Struct, frozen=True):
    """One deed and what came of it, a load of each round, by contestant."""

    title: str
    connections: int
    loads: dict[str, list[Load]] = field(default_factory=dict)

    def rate(self, name: str) -> float:
        return statistics.median(load.rate for load in self.loads[name])

    def p99(self, name: str) -> float:
        return statistics.median(load.p99 for load in self.loads[name])

    def ratio(self, name: str, other: str) -> float:
        """How many times the requests of another are answered: of each round, then the median."""
        pairs = zip(self.loads[name], self.loads[other], strict=True)
        return statistics.median(ours.rate / theirs.rate for ours, theirs in pairs)


def measure(
    contestants: Mapping[str, Callable[[], contextlib.AbstractContextManager[HttpServer]]],
    chosen: Sequence[Deed],
    effort: Effort,
) -> list[Series]:
    """Have every contestant do the same, by turns."""
    writing = Writing("creates over HTTP")
    found = [Series(deed.title, deed.connections) for deed in chosen]
    for number in range(effort.rounds):
        for name, open_server in contestants.items():
            tell(f"Round {number + 1} of {effort.rounds}: {name} ...")
            with open_server() as server:
                for place, (deed, series) in enumerate(zip(chosen, found, strict=True)):
                    prefix = f"{name} {number}.{place}"
                    # What comes first opens connections and fills caches.
                    server.ask(_questions(deed, writing, f"{prefix} before", 0.2), deed.connections, 0.2)
                    questions = _questions(deed, writing, prefix, effort.seconds)
                    load = server.ask(questions, deed.connections, effort.seconds)
                    series.loads.setdefault(name, []).append(load)
    return found


def _questions(deed: Deed, writing: Writing, prefix: str, seconds: float) -> list[Question]:
    return creates(writing, prefix, seconds) if deed.questions is None else deed.questions


# Reporting

_WHAT: Final = ("rate", "p99")


def comparison(series: Sequence[Series], name: str, other: str) -> str:
    """A table of two contestants, with how many times the requests of the other the first one answers."""
    both = (other, name)
    rows = [["", "connections", *(f"{who}, {what}" for who in both for what in _WHAT), "ratio"]]
    for one in series:
        figures = [figure for who in both for figure in _figures(one, who)]
        rows.append([one.title, str(one.connections), *figures, f"{one.ratio(name, other):.2f}x"])
    return table(rows)


def _figures(series: Series, name: str) -> tuple[str, str]:
    return f"{series.rate(name):,.0f}/s", f"{series.p99(name) * 1000:.2f} ms"


def present(
    name: str, what: str | None, items: int, run: Callable[[int, Effort], tuple[str, list[Series]]]
) -> None:
    """Run a benchmark as the command line says, and print what came of it.

    `run`: gives words about it, and its loads.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=what)
    parser.add_argument(
        "--items", type=int, default=items, help=f"how many prompts, and how many tasks (default: {items})"
    )
    parser.add_argument("--quick", action="store_true", help="fewer and shorter measurements")
    parser.add_argument("--json", action="store_true", help="all samples as JSON")
    options = parser.parse_args()
    if options.items < 1000:
        raise SystemExit("error: a store of fewer than 1000 items is not worth measuring")
    before = os.getloadavg()[0]
    try:
        about, series = run(options.items, QUICK if options.quick else FULL)
    except ServerFailed as error:
        raise SystemExit(f"error: {error}") from None
    about += f" Load average {before:.2f} before, {os.getloadavg()[0]:.2f} after."
    if options.json:
        print(msgspec.json.format(msgspec.json.encode({"about": about, "series": series})).decode())
    else:
        other, first = series[0].loads
        print(f"{about}\n\n{comparison(series, first, other)}")


def run(items: int, effort: Effort) -> tuple[str, list[Series]]:
    with copies(items) as both:
        contestants = {
            "SQLite": lambda: dittybag(str(both.file), both.home),
            "PostgreSQL": lambda: dittybag(both.url, both.home),
        }
        return both.about, measure(contestants, deeds(both.file, items), effort)


if __name__ == "__main__":
    present("databases", __doc__, 100_000, run)
