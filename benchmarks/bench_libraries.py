"""Measures prompt libraries on stdio: `python -m benchmarks.bench_libraries`.

The server renders templates in a child process; the template engine in this process is the baseline. Lists
are requested from servers without a library cache and from servers with one. Finally, files are changed as
fast as a checkout changes them, while a client makes calls.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import minijinja
from msgspec import Struct

from benchmarks.report_output import print_progress, print_tables, rows_table
from benchmarks.sample_data import CACHE
from benchmarks.stdio_client import ServerFailed
from benchmarks.store_calls import DittybagSession, McpRequest, result_of

PROMPTS: Final = 20
ARGUMENTS: Final = tuple(f"argument_{number}" for number in range(10))
TEMPLATE: Final = "# A template\n\n" + "".join(
    f"{{% if {name} %}}The value is {{{{ {name} }}}}.{{% endif %}}\n" for name in ARGUMENTS
)
VALUES: Final = {name: f"the value of {name}" for name in ARGUMENTS}

#: The number of renders in each turn.
_TURN_SIZE: Final = 100
#: Timeout for the server to process all changes.
_TIMEOUT_SECONDS: Final = 60.0
_CHANGED: Final = b'"method":"notifications/prompts/list_changed"'


class LibrarySampling(Struct, frozen=True):
    """The number and length of the measurements."""

    libraries: int
    starts: int
    renders: int
    changes: int
    #: The time in which the files are changed.
    seconds: float


FULL: Final = LibrarySampling(libraries=1000, starts=7, renders=3000, changes=10_000, seconds=5.0)
QUICK: Final = LibrarySampling(libraries=1000, starts=3, renders=500, changes=10_000, seconds=5.0)


class Measurement(Struct, frozen=True):
    """One measurement, in seconds, with an optional maximum."""

    title: str
    samples: list[float]
    target: float | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


def write_library(folder: Path, texts: Sequence[str]) -> None:
    """Write a library with a prompt for each text."""
    prompts = folder / "prompts"
    prompts.mkdir(parents=True)
    parts = []
    for number, text in enumerate(texts):
        parts.append(f'[prompts.prompt_{number}]\ndescription = "What prompt {number} is good for"\n')
        names = ARGUMENTS if text == TEMPLATE else ("subject", "tone")
        parts += (
            f'[[prompts.prompt_{number}.arguments]]\nname = "{name}"\ndescription = "Which {name}"\n'
            for name in names
        )
        (prompts / f"prompt_{number}.md").write_text(text)
    (folder / "twig.toml").write_text("\n".join(parts))


@contextmanager
def library_folder(libraries: int) -> Iterator[Path]:
    """Create a data folder with a number of libraries."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        home = Path(name)
        text = "Write about {{ subject }} in a {{ tone }} tone.\n" + "More of the text of a prompt.\n" * 20
        for number in range(libraries):
            write_library(home / "libraries" / f"library_{number:04}", [text] * PROMPTS)
        yield home


@contextmanager
def run_server(home: Path) -> Iterator[DittybagSession]:
    with DittybagSession(home / "store.db", home) as session:
        session.initialize()
        yield session


def measure_renders(sampling: LibrarySampling) -> list[Measurement]:
    """Measure renders through the server, in turns with the template engine."""
    engine = minijinja.Environment(undefined_behavior="chainable", keep_trailing_newline=True)
    through_server: list[float] = []
    engine_only: list[float] = []
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        home = Path(name)
        write_library(home / "libraries" / "sample", [TEMPLATE])
        request = McpRequest("prompts/get", {"name": "sample:prompt_0", "arguments": VALUES})
        with run_server(home) as session:
            session.request_result(McpRequest("prompts/list", {}))
            started = time.perf_counter()
            expected = session.request_result(request)["messages"][0]["content"]["text"]
            first = time.perf_counter() - started
            while len(through_server) < sampling.renders:
                through_server += (_time_render(session, request, expected) for _ in range(_TURN_SIZE))
                engine_only += (_time_local_render(engine, expected) for _ in range(_TURN_SIZE))
    return [
        Measurement("render with ten arguments, on stdio", through_server, 0.0003),
        Measurement("... the first one, which starts the child process", [first]),
        Measurement("... template engine only", engine_only),
    ]


def _time_render(session: DittybagSession, request: McpRequest, expected: str) -> float:
    seconds, (response,) = session.time_requests([request])
    if result_of(response)["messages"][0]["content"]["text"] != expected:
        raise ServerFailed("a template was rendered incorrectly")
    return seconds


def _time_local_render(engine: minijinja.Environment, expected: str) -> float:
    started = time.perf_counter()
    text = engine.render_str(TEMPLATE, "sample", **VALUES)
    seconds = time.perf_counter() - started
    if text != expected:
        raise ServerFailed("the template engine has a different result")
    return seconds


def measure_lists(home: Path, sampling: LibrarySampling) -> list[Measurement]:
    """Measure first pages and full lists, of servers without and with a library cache."""
    listing = McpRequest("prompts/list", {})
    rows = {
        "first page, without cache": Measurement("", []),
        "full list, without cache": Measurement("", []),
        "first page, with cache": Measurement("", [], 0.05),
        "full list, with cache": Measurement("", []),
        "first page, repeated": Measurement("", [], 0.002),
    }
    cold_page, cold_list, cached_page, cached_list, repeated = (row.samples for row in rows.values())
    for number in range(sampling.starts):
        print_progress(f"Start-up {number + 1} of {sampling.starts} ...")
        shutil.rmtree(home / "cache", ignore_errors=True)
        for first_page, full_list in ((cold_page, cold_list), (cached_page, cached_list)):
            with run_server(home) as session:
                seconds, (response,) = session.time_requests([listing])
                first_page.append(seconds)
                started = time.perf_counter()
                found = _count_all_pages(session, response)
                full_list.append(seconds + time.perf_counter() - started)
                if found != sampling.libraries * PROMPTS:
                    raise ServerFailed(f"{found} prompts were listed")
                repeated += (session.time_requests([listing])[0] for _ in range(5))
                _wait_for_cache(home / "cache")
    return [Measurement(title, row.samples, row.target) for title, row in rows.items()]


def _count_all_pages(session: DittybagSession, response: bytes) -> int:
    result = result_of(response)
    found = len(result["prompts"])
    while cursor := result.get("nextCursor"):
        result = session.request_result(McpRequest("prompts/list", {"cursor": cursor}))
        found += len(result["prompts"])
    return found


def _wait_for_cache(folder: Path) -> None:
    """Wait until the server has written its cache."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while not (folder.exists() and any(file.suffix == ".cache" for file in folder.iterdir())):
        if time.monotonic() > deadline:
            raise ServerFailed("the server did not write its cache")


class ChangeStorm(Struct, frozen=True):
    """The measurements while files were changed."""

    settle_seconds: float
    calls: list[float]
    notified_at: list[float]

    def rows(self) -> list[Measurement]:
        gaps = [after - before for before, after in zip(self.notified_at, self.notified_at[1:], strict=False)]
        return [
            Measurement("until the server has all changes, after the last one", [self.settle_seconds], 5.0),
            Measurement("calls during the changes", self.calls),
            Measurement("... maximum", [max(self.calls)]),
            Measurement("shortest interval between notifications (at least 0.5 s)", [min(gaps, default=0.0)]),
        ]


def measure_storm(home: Path, sampling: LibrarySampling) -> ChangeStorm:
    """Change files for some seconds, then wait until the server has all changes."""
    files = sorted((home / "libraries").glob("*/prompts/*.md"))
    chosen = [files[number * len(files) // sampling.changes] for number in range(sampling.changes)]
    calls: list[float] = []
    notified_at: list[float] = []
    with run_server(home) as session:
        session.request_result(McpRequest("prompts/list", {}))
        session.request_result(McpRequest("prompts/get", _get_params(files[0])))
        started = time.perf_counter()
        for number, file in enumerate(chosen):
            _save(file, f"Change {number} of {{{{ subject }}}}\n", renamed=number % 2 == 0)
            if number % 100 == 99:
                calls.append(session.time_requests([McpRequest("ping", {})])[0])
                notified_at += (time.perf_counter() for _ in range(session.count_notifications(_CHANGED)))
                _pace(started, number / len(chosen) * sampling.seconds)
        last = time.perf_counter()
        for number in (len(chosen) - 1, *range(0, len(chosen), 97)):
            expected = f"Change {number} of snow\n"
            while _read_prompt(session, chosen[number]) != expected:
                if time.perf_counter() - last > _TIMEOUT_SECONDS:
                    raise ServerFailed(f"the server did not notice the change of {chosen[number]}")
        return ChangeStorm(time.perf_counter() - last, calls, notified_at)


def _read_prompt(session: DittybagSession, file: Path) -> str:
    result = session.request_result(McpRequest("prompts/get", _get_params(file)))
    text: str = result["messages"][0]["content"]["text"]
    return text


def _get_params(file: Path) -> dict[str, Any]:
    return {"name": f"{file.parent.parent.name}:{file.stem}", "arguments": {"subject": "snow"}}


def _save(file: Path, text: str, *, renamed: bool) -> None:
    """Save a file as editors do: in place, or through a renamed temporary file."""
    if not renamed:
        file.write_text(text)
        return
    temporary = file.with_suffix(".tmp")
    temporary.write_text(text)
    temporary.replace(file)


def _pace(started: float, seconds: float) -> None:
    left = started + seconds - time.perf_counter()
    if left > 0:
        time.sleep(left)


def measure(sampling: LibrarySampling) -> dict[str, list[Measurement]]:
    """Run all measurements and return them by group."""
    print_progress("Rendering ...")
    rendering = measure_renders(sampling)
    print_progress(f"Writing {sampling.libraries} libraries of {PROMPTS} prompts ...")
    with library_folder(sampling.libraries) as home:
        lists = measure_lists(home, sampling)
        print_progress(f"Changing {sampling.changes} files in {sampling.seconds:.0f} s ...")
        storm = measure_storm(home, sampling)
    return {
        "Rendering": rendering,
        f"prompts/list with {sampling.libraries} libraries of {PROMPTS} prompts": lists,
        f"{sampling.changes:,} files changed in {sampling.seconds:.0f} s": storm.rows(),
    }


def _cells(row: Measurement) -> list[str]:
    target = "" if row.target is None else f"{1000 * row.target:g} ms"
    met = "" if row.target is None else ("met" if row.median <= row.target else "MISSED")
    p95 = sorted(row.samples)[int(0.95 * (len(row.samples) - 1))]
    return [row.title, f"{1000 * row.median:.3g} ms", f"{1000 * p95:.3g} ms", target, met]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_libraries", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer measurements")
    parser.add_argument("--json", action="store_true", help="print the tables as JSON")
    options = parser.parse_args()
    try:
        found = measure(QUICK if options.quick else FULL)
    except ServerFailed as error:
        raise SystemExit(f"error: {error}") from None
    heading = ["", "median", "p95", "target", ""]
    tables = [rows_table(title, [heading, *map(_cells, rows)]) for title, rows in found.items()]
    through_server, _, engine_only = found["Rendering"]
    times = through_server.median / engine_only.median
    tables[0].notes.append(
        f"A render through the server takes {times:.1f} times as long as the template engine alone."
    )
    print_tables(tables, as_json=options.json)


if __name__ == "__main__":
    main()
