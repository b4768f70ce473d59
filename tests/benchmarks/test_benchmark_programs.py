"""The benchmarks measure, and write their results into the reference page."""

from __future__ import annotations

import sys

from benchmarks.__main__ import BENCHMARKS, LONG
from benchmarks.client_process import PROGRAMS, ClientProcess
from benchmarks.peers import SERVERS
from benchmarks.product import echoes
from benchmarks.report import PAGE, fill_page
from benchmarks.report_output import ReportTable, spread
from benchmarks.results import BenchmarkRun

from benchmarks import compared


def test_every_benchmark_has_one_place_on_the_pages() -> None:
    pages = PAGE.read_text() + compared.PAGE.read_text()
    for name in (*BENCHMARKS, *LONG):
        assert pages.count(f"<!-- results of {name} -->\n") == 1, name


def test_new_results_replace_those_of_the_last_run() -> None:
    first, second = (f"<!-- results of {name} -->\n" for name in ("bench_x", "bench_y"))
    page = f"Before.\n{first}old\n<!-- end of results -->\nAfter.\n{second}"

    def last_run(name: str) -> BenchmarkRun | None:
        cells = ReportTable(
            "Calls", ["server", "calls/s"], [["a|b", spread([1, 2, 3, 4, 5], "ms")]], ["A note."]
        )
        run = BenchmarkRun(name, "2026-11-16", "Linux", ["--quick"], 0.5, 1.0, 60.0, [cells])
        return run if name == "bench_x" else None

    filled = fill_page(page, last_run)

    assert filled == fill_page(filled, last_run)
    assert filled.startswith(f"Before.\n{first}")
    assert "old" not in filled
    assert "2026-11-16, Linux. Load average 0.5 before, 1.0 after." in filled
    assert "| a\\|b | 3.00 ms (2.00 to 4.00) |\n\nA note.\n" in filled
    assert filled.endswith(f"<!-- end of results -->\nAfter.\n{second}")


def test_a_client_program_measures_the_server_that_it_starts() -> None:
    server = {"command": [sys.executable, str(SERVERS / "baseline_stdio.py")], "env": {}}
    with ClientProcess([sys.executable, str(PROGRAMS / "raw_pipes.py")]) as client:
        start = client.open(server, echoes(10))
        load = client.load(0.02, at_a_time=4)
        memory = client.server_memory()
        client.close()

    assert 0 < start.initialize < start.tools
    assert start.cpu > 0
    assert load.calls >= 4
    assert 0 < load.median <= load.p99 <= load.seconds
    assert load.cost > 0
    assert memory > 1_000_000
