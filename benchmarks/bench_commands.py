"""Measures the start of commands: `python -m benchmarks.bench_commands`.

Every command is compared with importing click, which all of them need. Measured is the CPU time of the
process, which depends less on other programs than elapsed time. The commands take turns.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.report_output import ReportTable, print_tables, ratio, spread

_BASELINE: Final = "import click"
#: A command that reads or writes data takes at most this many times as long as importing click.
_TARGET: Final = 2.5
_COMMANDS: Final = (
    "--help",
    "task list",
    "task show 1",
    "task add y",
    "task edit 1 -P 4",
    "task stats",
    "prompt list",
    "prompt show x",
    "prompt edit x z",
    "resource list",
    "resource show r",
    "tag list",
    "tag add x t",
    "project list",
    "project show default",
    "library list",
    "workspaces",
    "user list",
    "token list",
    "history",
    "diff 1",
    "undo --dry-run",
    "search x",
    "export -",
)


def _cpu_milliseconds(arguments: list[str], environment: dict[str, str]) -> float:
    process = subprocess.Popen(
        [sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"error: {arguments} failed")
    return 1000 * (usage.ru_utime + usage.ru_stime)


def measure(rounds: int) -> dict[str, list[float]]:
    """Return the CPU times of each command in milliseconds."""
    samples: dict[str, list[float]] = {name: [] for name in (_BASELINE, *_COMMANDS)}
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "DITTYBAG_HOME": home}
        # As in normal use, modules are compiled once.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for added in ("task add x", "prompt add x y", f"resource add {__file__} --name r"):
            _cpu_milliseconds(["-m", "dittybag", *added.split()], environment)
        for number in range(rounds + 1):
            for name, found in samples.items():
                command = ["-c", name] if name == _BASELINE else ["-m", "dittybag", *name.split()]
                duration = _cpu_milliseconds(command, environment)
                if number:
                    found.append(duration)
    return samples


def command_table(samples: Mapping[str, Sequence[float]]) -> ReportTable:
    return ReportTable(
        "CPU time of commands",
        ["", "CPU time", "times as long as importing click"],
        [
            [name, spread(found, "ms"), ratio(found, samples[_BASELINE]).median]
            for name, found in samples.items()
        ],
        [f"Target for commands that read or write data: at most {_TARGET} times as long as importing click."],
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_commands", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer measurements")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    options = parser.parse_args()
    samples = measure(10 if options.quick else 30)
    print_tables([command_table(samples)], as_json=options.json)


if __name__ == "__main__":
    main()
