"""Measures context packs: `python -m benchmarks.bench_packs`.

Whether the evidence for a question is in its pack, how long a pack takes in a large workspace on SQLite and
on PostgreSQL, and how long `dittybag prime` takes compared with a Python that does nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from benchmarks.postgres_cluster import Cluster, cluster, copy_workspace
from benchmarks.processes import cpu_seconds, with_children
from benchmarks.report_output import Cell, ReportTable, print_progress, print_tables
from benchmarks.sample_data import CACHE, TextGenerator
from benchmarks.scale_data import build_workspace
from benchmarks.search_quality import (
    HELD_OUT,
    TUNED,
    Question,
    load_documents,
    load_questions,
    store_documents,
)
from dittybag.assembly.store_factory import open_store
from dittybag.domain.accounts import Principal
from dittybag.domain.packs import Pack
from dittybag.domain.queries import PackRequest
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace

#: Of a pack for a question, and of the packs that are timed.
_BUDGET: Final = 4_000
_BUDGETS: Final = (1_500, 4_000)
#: The number of items among which the evidence is.
_ITEMS: Final = 10_000
_PER_CALL: Final = 100
_WARM_UP: Final = 10
#: The user beside the owner of the workspace.
_USER: Final = "ann"
#: In milliseconds.
_TARGETS: Final = {"SQLite": 20, "PostgreSQL, as the owner": 60, "PostgreSQL, as a user": 60}
_PRIME_TARGET: Final = 120
_PASS: Final = "python -c pass"
#: The owner of the database on PostgreSQL, an ordinary role.
_ROLE: Final = "team"


class Samples(Struct):
    """The milliseconds of one candidate, elapsed and of processors, in the order of the rounds."""

    elapsed: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def _quantile(samples: Sequence[float], share: float) -> float:
    return sorted(samples)[min(int(len(samples) * share), len(samples) - 1)]


# Evidence


async def _open(database: str, actor: str, *, create: bool = False) -> tuple[Workspace, Caller]:
    workspace = Workspace(await open_store(database, create=create))
    return workspace, Caller((await workspace.projects.find("default")).id, actor)


async def measure_evidence(folder: Path) -> ReportTable:
    """Ask all questions in a store with other items of the same words."""
    print_progress(f"Asking questions among {_ITEMS:,} items ...")
    documents = load_documents()
    workspace, caller = await _open(str(folder / "evidence.db"), "benchmark", create=True)
    await store_documents(workspace, caller, documents)
    words = sorted({word for document in documents for word in re.findall("[a-z]{4,}", document.text)})
    chance = random.Random(1)
    for start in range(len(documents), _ITEMS, _PER_CALL):
        numbers = range(start, min(start + _PER_CALL, _ITEMS))
        texts = [" ".join(chance.choices(words, k=chance.randrange(20, 200))) for _ in numbers]
        created = (
            workspace.prompts.create(caller, name=f"filler-{number}", content=text)
            for number, text in zip(numbers, texts, strict=True)
        )
        await asyncio.gather(*created)
    rows: list[list[Cell]] = []
    for title, name in (("used while the search was tuned", TUNED), ("held out", HELD_OUT)):
        questions = load_questions(name)
        requests = (PackRequest(query=question.text, budget=_BUDGET) for question in questions)
        packs = [await workspace.packs.make(caller, request) for request in requests]
        found = sum(map(_has_evidence, packs, questions))
        rows.append([title, str(len(questions)), str(found), f"{found / len(questions):.1%}"])
    await workspace.store.close()
    return ReportTable(
        f"Evidence in packs of {_BUDGET:,} tokens, among {_ITEMS:,} items",
        ["questions", "number", "with evidence", "share"],
        rows,
        ["An item counts if its text is in the pack, whole or in part. Target: at least 90%."],
    )


def _has_evidence(pack: Pack, question: Question) -> bool:
    """Whether text of an expected document is in a pack."""
    lines = pack.text.lower().splitlines()
    heads = "\n".join(
        head
        for head, text in itertools.pairwise(lines)
        if head.startswith("## found") and text.startswith("```")
    )
    return any(
        re.search(rf"(?:/|: | ){re.escape(name.lower())}(?=[: ]|$)", heads, re.MULTILINE)
        for name in question.expected
    )


# Speed


def _pack_requests(count: int) -> list[PackRequest]:
    chance = random.Random(2)
    generator = TextGenerator("queries")
    return [
        PackRequest(query=" ".join(generator.words(chance.randint(1, 5))), budget=chance.choice(_BUDGETS))
        for _ in range(count)
    ]


async def measure_speed(file: Path, url: str, server: Cluster, items: int, count: int) -> ReportTable:
    """Make the same packs on both databases, in turns."""
    print_progress(f"Making {count} packs among {items:,} items ...")
    sqlite, caller = await _open(str(file), "agent")
    postgres, _ = await _open(url, "agent")
    user = Caller(caller.project, "agent", _USER, Principal(_USER, "write", "write"))
    candidates = dict(zip(_TARGETS, ((sqlite, caller), (postgres, caller), (postgres, user)), strict=True))
    samples = {name: Samples() for name in candidates}
    common: list[float] = []
    for number, request in enumerate([*_pack_requests(_WARM_UP), *_pack_requests(count)]):
        packs = []
        for name, (workspace, who) in candidates.items():
            pids = () if workspace is sqlite else with_children(server.pid)
            cpu = time.process_time() + cpu_seconds(pids)
            began = time.perf_counter()
            packs.append(await workspace.packs.make(who, request))
            elapsed = time.perf_counter() - began
            cpu = time.process_time() + cpu_seconds(pids) - cpu
            if number >= _WARM_UP:
                samples[name].elapsed.append(1000 * elapsed)
                samples[name].cpu.append(1000 * cpu)
        found, *others = map(_matches, packs)
        common += [len(found & other) / max(len(found), len(other), 1) for other in others]
    await sqlite.store.close()
    await postgres.store.close()
    rows: list[list[Cell]] = [
        [
            name,
            *(_quantile(times, share) for times in (found.elapsed, found.cpu) for share in (0.5, 0.95)),
            f"{_TARGETS[name]} ms",
        ]
        for name, found in samples.items()
    ]
    return ReportTable(
        f"A context pack among {items:,} items, in ms",
        ["", "median", "p95", "CPU, median", "CPU, p95", "target for p95"],
        rows,
        [
            f"PostgreSQL {server.version}, as an ordinary role. CPU times include those of PostgreSQL.",
            f"{statistics.mean(common):.0%} of the items on SQLite are also in the pack on PostgreSQL.",
        ],
    )


def _matches(pack: Pack) -> set[str]:
    """Return what the search has found, without the changes, of which a user sees fewer than the owner."""
    return {entry.key for entry in pack.entries if not entry.key.startswith("change:")}


def _build_database(server: Cluster, file: Path) -> str:
    """Copy a workspace into a database of an ordinary role. Returns the URL."""
    server.sql(f"CREATE ROLE {_ROLE} LOGIN")
    server.sql(f"CREATE DATABASE packs OWNER {_ROLE}")
    if server.has_trigrams:
        server.sql("CREATE EXTENSION pg_trgm WITH SCHEMA public", "packs")
    server.sql(f"CREATE SCHEMA workspace AUTHORIZATION {_ROLE}", "packs")
    url = server.url("packs", user=_ROLE, schema="workspace")
    print_progress(f"Copying to PostgreSQL {server.version} ...")
    copy_workspace(file, url)
    server.sql("VACUUM ANALYZE", "packs")
    return url


# Commands


def _run_process(arguments: Sequence[str], environment: dict[str, str], samples: Samples) -> bytes:
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    samples.elapsed.append(1000 * (time.perf_counter() - began))
    samples.cpu.append(1000 * (usage.ru_utime + usage.ru_stime))
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"error: {arguments} failed")
    return output


def measure_prime(folder: Path, file: Path, items: int, rounds: int) -> ReportTable:
    """Run `dittybag prime` in turns with a Python that does nothing."""
    small, large = folder / "small", folder / "large"
    for home in (small, large):
        home.mkdir()
    shutil.copyfile(file, large / "default.db")
    # As in normal use, modules are compiled once.
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONDONTWRITEBYTECODE" and not name.startswith("DITTYBAG_")
    }
    for command in ("prompt add style English", "task add login", "pin style"):
        environment = inherited | {"DITTYBAG_HOME": str(small)}
        _run_process(["-m", "dittybag", *command.split()], environment, Samples())
    prime = ["-m", "dittybag", "prime", "-p", "default"]
    candidates = {
        _PASS: (["-c", "pass"], small),
        "dittybag prime, 2 items": (prime, small),
        f"dittybag prime, {items:,} items": (prime, large),
        f"dittybag prime --query, {items:,} items": ([*prime, "--query", "review the deployment"], large),
    }
    samples = {name: Samples() for name in candidates}
    print_progress(f"Running dittybag prime {rounds} times ...")
    silent = 0
    for number in range(rounds + 1):
        for name, (arguments, home) in candidates.items():
            found = Samples() if number == 0 else samples[name]
            output = _run_process(arguments, inherited | {"DITTYBAG_HOME": str(home)}, found)
            silent += name != _PASS and not output
    reference = samples[_PASS]
    rows: list[list[Cell]] = [
        [
            name,
            *(_quantile(times, share) for times in (found.elapsed, found.cpu) for share in (0.5, 0.95)),
            *_ratios(found, reference),
        ]
        for name, found in samples.items()
    ]
    return ReportTable(
        "Elapsed and CPU time of dittybag prime, in ms",
        ["", "median", "p95", "CPU, median", "CPU, p95", "p95 ratio", "CPU ratio"],
        rows,
        [
            f"Ratios to {_PASS}: of the p95, and of the medians of CPU times.",
            f"Target for p95: {_PRIME_TARGET} ms on a machine without other load.",
            f"{silent} of {(rounds + 1) * (len(candidates) - 1)} runs printed nothing, as after a second.",
        ],
    )


def _ratios(found: Samples, reference: Samples) -> tuple[float, float]:
    return (
        _quantile(found.elapsed, 0.95) / _quantile(reference.elapsed, 0.95),
        _quantile(found.cpu, 0.5) / _quantile(reference.cpu, 0.5),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_packs", description=__doc__)
    parser.add_argument("--items", type=int, default=100_000, help="number of prompts (default: 100000)")
    parser.add_argument("--only", choices=("evidence", "speed", "prime"), help="only one of the tables")
    parser.add_argument("--quick", action="store_true", help="fewer measurements")
    parser.add_argument("--json", action="store_true", help="print the tables as JSON")
    options = parser.parse_args()
    packs, rounds = (60, 40) if options.quick else (400, 200)
    CACHE.mkdir(parents=True, exist_ok=True)
    tables: dict[str, Callable[[], ReportTable]] = {}
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        folder = Path(name)
        file = folder / "packs.db"

        def speed() -> ReportTable:
            with cluster() as server:
                url = _build_database(server, file)
                return asyncio.run(measure_speed(file, url, server, options.items, packs))

        tables = {
            "evidence": lambda: asyncio.run(measure_evidence(folder)),
            "speed": speed,
            "prime": lambda: measure_prime(folder, file, options.items, rounds),
        }
        wanted = [options.only] if options.only else list(tables)
        if wanted != ["evidence"]:
            build_workspace(file, options.items)
        found = [tables[name]() for name in wanted]
    print_tables(found, as_json=options.json)


if __name__ == "__main__":
    main()
