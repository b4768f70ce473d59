"""The options of the benchmarks that compare the installed product with other servers and versions."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct
from tests.interop.environments import SetupFailed

from benchmarks.load_result import ServerFailed
from benchmarks.product import Product, products
from benchmarks.report_output import ReportTable, print_tables


class Sampling(Struct, frozen=True):
    """The number and length of the measurements."""

    rounds: int
    #: The length of each load.
    seconds: float
    #: The number of prompts in the workspace of the product.
    prompts: int = 1000


def run_comparison(
    name: str,
    what: str | None,
    samplings: tuple[Sampling, Sampling],
    measure: Callable[[Sequence[Product], Sampling, str], list[ReportTable]],
) -> None:
    """Run a benchmark with the options of the command line, and print its tables.

    `samplings`: the full one and the quick one.
    """
    full, quick = samplings
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=what)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter measurements")
    parser.add_argument("--json", action="store_true", help="print the tables as JSON")
    parser.add_argument("--rounds", type=int, help=f"the number of rounds (default: {full.rounds})")
    parser.add_argument("--prompts", type=int, default=full.prompts, help="the number of prompts")
    parser.add_argument("--only", default="", help="only clients, or candidates, whose title contains this")
    parser.add_argument("--before", metavar="SOURCE", help="also measure another folder or Git revision")
    options = parser.parse_args()
    sampling = quick if options.quick else full
    rounds = options.rounds or sampling.rounds
    sampling = msgspec.structs.replace(sampling, rounds=rounds, prompts=options.prompts)
    try:
        tables = measure(products(options.before), sampling, options.only)
    except (ServerFailed, SetupFailed) as error:
        raise SystemExit(f"error: {error}") from None
    print_tables(tables, as_json=options.json)
