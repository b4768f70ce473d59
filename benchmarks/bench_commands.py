"""Measures the start of commands: `python -m benchmarks.bench_commands`.

Every command is compared with importing click, which all of them need. Measured is the CPU time of the
process, which depends less on other programs than elapsed time. The commands take turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Final

import msgspec

from benchmarks.report_output import describe_machine, table

_BASELINE: Final = "import click"
#: A command that lists data takes at most this many times as long as importing click.
_TARGET: Final = 2.5
_COMMANDS: Final = ("--help", "task list", "prompt list", "resource list", "history", "search x")


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
        for added in (["task", "add", "x"], ["prompt", "add", "x", "y"]):
            _cpu_milliseconds(["-m", "dittybag", *added], environment)
        for number in range(rounds + 1):
            for name, found in samples.items():
                command = ["-c", name] if name == _BASELINE else ["-m", "dittybag", *name.split()]
                duration = _cpu_milliseconds(command, environment)
                if number:
                    found.append(duration)
    return samples


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_commands", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer measurements")
    parser.add_argument("--json", action="store_true", help="print all samples as JSON")
    options = parser.parse_args()
    samples = measure(10 if options.quick else 30)
    if options.json:
        print(msgspec.json.encode({"machine": describe_machine(), "samples": samples}).decode())
        return
    medians = {name: statistics.median(found) for name, found in samples.items()}
    rows = [
        [name, f"{median:.1f} ms", f"{median / medians[_BASELINE]:.2f}"] for name, median in medians.items()
    ]
    print(f"CPU time of commands on {describe_machine()}\n")
    print(table([["", "median", "ratio"], *rows]))
    print(f"\nTarget for listing commands: at most {_TARGET} times as long as importing click.")


if __name__ == "__main__":
    main()
