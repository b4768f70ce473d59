"""Measures products that keep tasks or notes for agents, side by side: `python -m benchmarks.bench_products`.

Each runs on stdio as its users have it. The products are measured in turns, and a new process reads what was
stored. All samples are kept in `product_samples.json`; `python -m benchmarks.compared` writes the page about
the products from them.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from benchmarks.load_result import ServerFailed
from benchmarks.peer_products import PRODUCTS, Item, Place, StoredItems
from benchmarks.peers import CACHE
from benchmarks.product_session import Answer, ProductSession
from benchmarks.report_output import (
    Cell,
    ReportTable,
    describe_machine,
    print_progress,
    print_tables,
    spread,
)

SAMPLES: Final = Path(__file__).with_name("product_samples.json")
_TEXT: Final = "Write down what was decided, who decided it, and what is still open. "
#: Length of the text of an item.
TEXT_CHARACTERS: Final = 400
#: Creates and reads are measured in blocks, in turns with the other products.
_BLOCKS: Final = 10
#: Servers of the second race, and how many items every server of a race creates.
SERVERS: Final = 4
EACH: Final = 25
#: Error messages that are kept of each race.
_MESSAGES: Final = 3


class Sampling(Struct, frozen=True):
    """The number of measurements."""

    starts: int
    items: int
    races: int


FULL: Final = Sampling(starts=11, items=500, races=5)
QUICK: Final = Sampling(starts=2, items=50, races=1)


class StartSample(Struct, frozen=True):
    """One start: seconds from the start of the process to the responses, then CPU seconds and bytes."""

    initialize: float
    tools: float
    cpu: float
    memory: int


class Race(Struct, frozen=True):
    """Items that were created at the same time, and what became of them."""

    servers: int
    #: Whether each server got all its calls at once, instead of one call after the other.
    at_once: bool
    seconds: float
    asked: int
    #: The server said that it created the item.
    acknowledged: int
    #: Of the acknowledged ones: a new server returns the item by the id that was acknowledged.
    returned: int
    #: Not returned, but in a file of the store.
    in_files: int
    #: Neither returned nor in a file.
    lost: int
    #: Of creates that were not acknowledged, and of reads that failed.
    errors: list[str]


class ProductSamples(Struct):
    """All samples of one product; times are in seconds, memory is in bytes."""

    title: str
    version: str
    tools: int = 0
    #: Characters of the definitions of the tools as JSON, which a client passes to its model.
    tool_characters: int = 0
    starts: list[StartSample] = field(default_factory=list)
    creates: list[float] = field(default_factory=list)
    reads: list[float] = field(default_factory=list)
    #: After all creates.
    memory: int = 0
    races: list[Race] = field(default_factory=list)


class ProductRun(Struct, frozen=True):
    """All samples of a run, and its conditions."""

    date: str
    machine: str
    load_before: float
    load_after: float
    seconds: float
    products: list[ProductSamples]


def measure(products: Sequence[StoredItems], sampling: Sampling, folder: Path) -> list[ProductSamples]:
    """Measure the products in turns, in new folders."""
    found = [ProductSamples(each.title, each.version) for each in products]
    _measure_starts(products, found, sampling.starts, folder)
    _measure_calls(products, found, sampling.items, folder)
    for number in range(sampling.races):
        for product, samples in zip(products, found, strict=True):
            print_progress(f"Race {number + 1} of {sampling.races}: {product.title} ...")
            for servers, at_once in ((1, True), (SERVERS, False)):
                place = product.new_place(folder / f"race-{number}-{servers}-{product.title}")
                samples.races.append(race(product, place, servers, at_once=at_once))
    return found


def _measure_starts(
    products: Sequence[StoredItems], found: Sequence[ProductSamples], starts: int, folder: Path
) -> None:
    places = [product.new_place(folder / f"start-{product.title}") for product in products]
    # The first start is not counted: it creates files.
    for number in range(starts + 1):
        print_progress(f"Start {number} of {starts} ...")
        for product, samples, place in zip(products, found, places, strict=True):
            with product.session(place) as session:
                if number:
                    samples.starts.append(
                        StartSample(
                            _rounded(session.initialize_seconds),
                            _rounded(session.tools_seconds),
                            _rounded(session.cpu_seconds),
                            session.memory,
                        )
                    )
                samples.tools = len(session.tools)
                samples.tool_characters = len(msgspec.json.encode(session.tools).decode())


def _measure_calls(
    products: Sequence[StoredItems], found: Sequence[ProductSamples], count: int, folder: Path
) -> None:
    """Create items, and read some of them from a new process."""
    items = [_item(f"sample {number:05d} of the measurement") for number in range(count)]
    places = [product.new_place(folder / f"calls-{product.title}") for product in products]
    keys: list[list[str]] = [[] for _ in products]
    block = count // _BLOCKS
    with contextlib.ExitStack() as stack:
        sessions = [
            stack.enter_context(each.session(place)) for each, place in zip(products, places, strict=True)
        ]
        for start in range(0, count, block):
            print_progress(f"Creates {start} to {start + block} ...")
            for product, session, place, samples, known in zip(
                products, sessions, places, found, keys, strict=True
            ):
                for item in items[start : start + block]:
                    seconds, answer = _timed(session, product, place, item)
                    key = None if answer.error else product.created_id(item, answer.text)
                    if key is None:
                        raise ServerFailed(f"{product.title} did not create an item: {answer}")
                    samples.creates.append(seconds)
                    known.append(key)
        for session, samples in zip(sessions, found, strict=True):
            samples.memory = session.memory
    with contextlib.ExitStack() as stack:
        sessions = [
            stack.enter_context(each.session(place)) for each, place in zip(products, places, strict=True)
        ]
        chosen = range(0, count, _BLOCKS)
        for number in chosen:
            for product, session, place, samples, known in zip(
                products, sessions, places, found, keys, strict=True
            ):
                begin = time.perf_counter()
                (answer,) = session.call(product.read(place, known[number]))
                samples.reads.append(_rounded(time.perf_counter() - begin))
                if items[number].title not in answer.text:
                    raise ServerFailed(f"{product.title} did not return {items[number].title}: {answer}")


def _timed(session: ProductSession, product: StoredItems, place: Place, item: Item) -> tuple[float, Answer]:
    request = product.create(place, item)
    begin = time.perf_counter()
    (answer,) = session.call(request)
    return _rounded(time.perf_counter() - begin), answer


def race(product: StoredItems, place: Place, servers: int, *, at_once: bool) -> Race:
    """Create items at the same time, and look for the acknowledged ones in a new server."""
    batches = [
        [_item(f"writer {server} sample {number:03d} of the race") for number in range(EACH)]
        for server in range(servers)
    ]

    def create_all(session: ProductSession, batch: Sequence[Item]) -> list[Answer]:
        requests = [product.create(place, item) for item in batch]
        if at_once:
            return session.call(*requests)
        return [answer for request in requests for answer in session.call(request)]

    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(product.session(place)) for _ in range(servers)]
        begin = time.perf_counter()
        with ThreadPoolExecutor(servers) as pool:
            answers = list(pool.map(create_all, sessions, batches))
        seconds = _rounded(time.perf_counter() - begin)
    acknowledged: list[tuple[Item, str]] = []
    errors: list[str] = []
    for item, answer in _pairs(batches, answers):
        key = None if answer.error else product.created_id(item, answer.text)
        if key is None:
            errors.append(answer.error or answer.text)
        else:
            acknowledged.append((item, key))
    missing = _not_returned(product, place, acknowledged, errors)
    in_files = _count_in_files(place, missing)
    return Race(
        servers=servers,
        at_once=at_once,
        seconds=seconds,
        asked=servers * EACH,
        acknowledged=len(acknowledged),
        returned=len(acknowledged) - len(missing),
        in_files=in_files,
        lost=len(missing) - in_files,
        errors=[error.replace(str(place.folder), "")[:300] for error in dict.fromkeys(errors)][:_MESSAGES],
    )


def _pairs(
    batches: Iterable[Sequence[Item]], answers: Iterable[Sequence[Answer]]
) -> Iterable[tuple[Item, Answer]]:
    for batch, results in zip(batches, answers, strict=True):
        yield from zip(batch, results, strict=True)


def _not_returned(
    product: StoredItems, place: Place, acknowledged: Sequence[tuple[Item, str]], errors: list[str]
) -> list[Item]:
    """Return the items that a new server does not return by their ids, and add the errors of reads."""
    try:
        with product.session(place) as session:
            answers = [session.call(product.read(place, key))[0] for _, key in acknowledged]
    except ServerFailed as error:
        answers = [Answer(error=str(error))] * len(acknowledged)
    errors += [answer.error for answer in answers if answer.error]
    return [
        item for (item, _), answer in zip(acknowledged, answers, strict=True) if item.title not in answer.text
    ]


def _count_in_files(place: Place, items: Sequence[Item]) -> int:
    """Return how many of the items are in any file of the place."""
    contents = [file.read_bytes() for file in place.folder.rglob("*") if file.is_file()] if items else []
    return sum(any(item.title.encode() in content for content in contents) for item in items)


def _item(title: str) -> Item:
    return Item(title, (_TEXT * (TEXT_CHARACTERS // len(_TEXT) + 1))[:TEXT_CHARACTERS])


def _rounded(seconds: float) -> float:
    """Return a time in whole microseconds, which keeps the file of samples short."""
    return round(seconds, 6)


# Tables


def tables(products: Sequence[ProductSamples]) -> list[ReportTable]:
    """Return the tables of the report."""
    return [start_table(products), call_table(products), race_table(products)]


def _name(each: ProductSamples) -> str:
    return f"{each.title} {each.version}"


def _megabytes(count: float) -> str:
    return f"{count / 1e6:,.0f} MB"


def start_table(products: Sequence[ProductSamples]) -> ReportTable:
    """Return the costs of a server that is only started."""
    columns = [
        "product",
        "to `initialize`",
        "to `tools/list`",
        "CPU of the start",
        "memory",
        "tools",
        "characters of their definitions",
    ]
    rows: list[list[Cell]] = [
        [
            _name(each),
            spread([start.initialize for start in each.starts], "ms", 1e3),
            spread([start.tools for start in each.starts], "ms", 1e3),
            spread([start.cpu for start in each.starts], "ms", 1e3),
            _megabytes(spread([start.memory for start in each.starts]).median),
            str(each.tools),
            f"{each.tool_characters:,}",
        ]
        for each in products
    ]
    return ReportTable("Start", columns, rows)


def call_table(products: Sequence[ProductSamples]) -> ReportTable:
    """Return the times of calls of one client."""
    count = len(products[0].creates) if products else 0
    tenth = count // _BLOCKS
    columns = [
        "product",
        f"create, first {tenth}",
        f"create, last {tenth} of {count}",
        f"read one of {count}",
        f"memory after {count} creates",
    ]
    rows: list[list[Cell]] = [
        [
            _name(each),
            spread(each.creates[:tenth], "ms", 1e3),
            spread(each.creates[-tenth:], "ms", 1e3),
            spread(each.reads, "ms", 1e3),
            _megabytes(each.memory),
        ]
        for each in products
    ]
    return ReportTable("One client, one call at a time", columns, rows)


def race_table(products: Sequence[ProductSamples]) -> ReportTable:
    """Return what became of items that were created at the same time, summed over all races."""
    columns = ["product", "creates", "asked", "acknowledged", "read back", "only in files", "lost"]
    rows: list[list[Cell]] = []
    for each in products:
        for servers, how in (
            (1, f"1 server, {EACH} calls at once"),
            (SERVERS, f"{SERVERS} servers, {EACH} calls each, one at a time"),
        ):
            races = [race for race in each.races if race.servers == servers]
            counts = [
                sum(getattr(race, name) for race in races)
                for name in ("asked", "acknowledged", "returned", "in_files", "lost")
            ]
            rows.append([_name(each), how, *map(str, counts)])
    return ReportTable("Several creates at the same time", columns, rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_products", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer measurements; no samples are kept")
    parser.add_argument("--json", action="store_true", help="print the tables as JSON")
    parser.add_argument("--only", default="", help="only products whose title contains this; none are kept")
    options = parser.parse_args()
    load, started = os.getloadavg()[0], time.monotonic()
    products = [each for make in PRODUCTS if options.only.lower() in (each := make()).title.lower()]
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        found = measure(products, QUICK if options.quick else FULL, Path(folder))
    if not options.quick and not options.only:
        run = ProductRun(
            date=dt.datetime.now(dt.UTC).date().isoformat(),
            machine=describe_machine(),
            load_before=load,
            load_after=os.getloadavg()[0],
            seconds=round(time.monotonic() - started),
            products=found,
        )
        SAMPLES.write_bytes(msgspec.json.encode(run) + b"\n")
    print_tables(tables(found), as_json=options.json)


if __name__ == "__main__":
    main()
