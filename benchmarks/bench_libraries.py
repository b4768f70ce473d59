"""Prompt libraries on stdio: `python -m benchmarks.bench_libraries`.

Templates are rendered in a child process; beside it stands the engine alone, in this process, as the floor.
Lists are asked of servers that have never seen the libraries, and of some that start again. At the end files
are changed as fast as a checkout does it, while a client goes on asking.
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
import msgspec
from msgspec import Struct

from benchmarks.report_output import machine, table, tell
from benchmarks.sample_data import CACHE
from benchmarks.stdio_client import ServerFailed
from benchmarks.store_calls import Request, Session, result_of

PROMPTS: Final = 20
ARGUMENTS: Final = tuple(f"argument_{number}" for number in range(10))
TEMPLATE: Final = "# A template\n\n" + "".join(
    f"{{% if {name} %}}The value is {{{{ {name} }}}}.{{% endif %}}\n" for name in ARGUMENTS
)
VALUES: Final = {name: f"the value of {name}" for name in ARGUMENTS}

#: Renders before it is the other's turn.
_IN_TURN: Final = 100
#: A server that has not settled by then never will.
_PATIENCE_SECONDS: Final = 60.0
_CHANGED: Final = b'"method":"notifications/prompts/list_changed"'


class Effort(Struct, frozen=True):
    """How much is measured."""

    libraries: int
    starts: int
    renders: int
    changes: int
    #: In which the files are changed.
    seconds: float


FULL: Final = Effort(libraries=1000, starts=7, renders=3000, changes=10_000, seconds=5.0)
QUICK: Final = Effort(libraries=1000, starts=3, renders=500, changes=10_000, seconds=5.0)


class Row(Struct, frozen=True):
    """Something that was measured, in seconds unless it says otherwise."""

    title: str
    samples: list[float]
    bar: float | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


def write_library(folder: Path, texts: Sequence[str]) -> None:
    """A library with a prompt for each text."""
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
def shelf(libraries: int) -> Iterator[Path]:
    """A data folder with so many libraries."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        home = Path(name)
        text = "Write about {{ subject }} in a {{ tone }} tone.\n" + "More of the text of a prompt.\n" * 20
        for number in range(libraries):
            write_library(home / "libraries" / f"library_{number:04}", [text] * PROMPTS)
        yield home


@contextmanager
def served(home: Path) -> Iterator[Session]:
    with Session(home / "store.db", home) as session:
        session.greet()
        yield session


def measure_renders(effort: Effort) -> list[Row]:
    """Renders through a server and its child, in turns with the engine alone."""
    engine = minijinja.Environment(undefined_behavior="chainable", keep_trailing_newline=True)
    through: list[float] = []
    floor: list[float] = []
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        home = Path(name)
        write_library(home / "libraries" / "sample", [TEMPLATE])
        request = Request("prompts/get", {"name": "sample:prompt_0", "arguments": VALUES})
        with served(home) as session:
            session.ask(Request("prompts/list", {}))
            begun = time.perf_counter()
            expected = session.ask(request)["messages"][0]["content"]["text"]
            first = time.perf_counter() - begun
            while len(through) < effort.renders:
                through += (_rendered(session, request, expected) for _ in range(_IN_TURN))
                floor += (_rendered_here(engine, expected) for _ in range(_IN_TURN))
    return [
        Row("render of ten arguments, on stdio", through, 0.0003),
        Row("... the first one, which starts the child", [first]),
        Row("... the engine alone", floor),
    ]


def _rendered(session: Session, request: Request, expected: str) -> float:
    seconds, (answer,) = session.timed([request])
    if result_of(answer)["messages"][0]["content"]["text"] != expected:
        raise ServerFailed("a template was rendered wrongly")
    return seconds


def _rendered_here(engine: minijinja.Environment, expected: str) -> float:
    begun = time.perf_counter()
    text = engine.render_str(TEMPLATE, "sample", **VALUES)
    seconds = time.perf_counter() - begun
    if text != expected:
        raise ServerFailed("the engine alone renders something else")
    return seconds


def measure_lists(home: Path, effort: Effort) -> list[Row]:
    """First pages and whole lists, of servers that know nothing yet and of others that do."""
    listing = Request("prompts/list", {})
    rows = {
        "first page, read for the first time ever": Row("", []),
        "whole list, read for the first time ever": Row("", []),
        "first page, at the next start": Row("", [], 0.05),
        "whole list, at the next start": Row("", []),
        "first page, unchanged": Row("", [], 0.002),
    }
    ever_page, ever_all, page, everything, unchanged = (row.samples for row in rows.values())
    for number in range(effort.starts):
        tell(f"Start-up {number + 1} of {effort.starts} ...")
        shutil.rmtree(home / "cache", ignore_errors=True)
        for first, whole in ((ever_page, ever_all), (page, everything)):
            with served(home) as session:
                seconds, (answer,) = session.timed([listing])
                first.append(seconds)
                begun = time.perf_counter()
                found = _all_pages(session, answer)
                whole.append(seconds + time.perf_counter() - begun)
                if found != effort.libraries * PROMPTS:
                    raise ServerFailed(f"{found} prompts were listed")
                unchanged += (session.timed([listing])[0] for _ in range(5))
                _wait_for(home / "cache")
    return [Row(title, row.samples, row.bar) for title, row in rows.items()]


def _all_pages(session: Session, answer: bytes) -> int:
    result = result_of(answer)
    found = len(result["prompts"])
    while cursor := result.get("nextCursor"):
        result = session.ask(Request("prompts/list", {"cursor": cursor}))
        found += len(result["prompts"])
    return found


def _wait_for(folder: Path) -> None:
    """Wait until a server has kept what it knows for the next one."""
    patience = time.monotonic() + _PATIENCE_SECONDS
    while not (folder.exists() and any(file.suffix == ".cache" for file in folder.iterdir())):
        if time.monotonic() > patience:
            raise ServerFailed("the server has not kept what it read")


class Storm(Struct, frozen=True):
    """What happened while files were changed."""

    settled: float
    calls: list[float]
    announced: list[float]

    def rows(self) -> list[Row]:
        gaps = [after - before for before, after in zip(self.announced, self.announced[1:], strict=False)]
        return [
            Row("until the server is as the disk, after the last change", [self.settled], 5.0),
            Row("calls meanwhile", self.calls),
            Row("... the slowest", [max(self.calls)]),
            Row("shortest time between announcements (at least 0.5 s)", [min(gaps, default=0.0)]),
        ]


def measure_storm(home: Path, effort: Effort) -> Storm:
    """Change files for some seconds, then wait until the server has seen them all."""
    files = sorted((home / "libraries").glob("*/prompts/*.md"))
    chosen = [files[number * len(files) // effort.changes] for number in range(effort.changes)]
    calls: list[float] = []
    announced: list[float] = []
    with served(home) as session:
        session.ask(Request("prompts/list", {}))
        session.ask(Request("prompts/get", _get(files[0])))
        begun = time.perf_counter()
        for number, file in enumerate(chosen):
            _save(file, f"Change {number} of {{{{ subject }}}}\n", renamed=number % 2 == 0)
            if number % 100 == 99:
                calls.append(session.timed([Request("ping", {})])[0])
                announced += (time.perf_counter() for _ in range(session.notified(_CHANGED)))
                _pace(begun, number / len(chosen) * effort.seconds)
        last = time.perf_counter()
        for number in (len(chosen) - 1, *range(0, len(chosen), 97)):
            expected = f"Change {number} of snow\n"
            while _text(session, chosen[number]) != expected:
                if time.perf_counter() - last > _PATIENCE_SECONDS:
                    raise ServerFailed(f"{chosen[number]} was never seen")
        return Storm(time.perf_counter() - last, calls, announced)


def _text(session: Session, file: Path) -> str:
    text: str = session.ask(Request("prompts/get", _get(file)))["messages"][0]["content"]["text"]
    return text


def _get(file: Path) -> dict[str, Any]:
    return {"name": f"{file.parent.parent.name}:{file.stem}", "arguments": {"subject": "snow"}}


def _save(file: Path, text: str, *, renamed: bool) -> None:
    """Save a file as editors do: in place, or beside it and then renamed."""
    if not renamed:
        file.write_text(text)
        return
    beside = file.with_suffix(".tmp")
    beside.write_text(text)
    beside.replace(file)


def _pace(begun: float, seconds: float) -> None:
    left = begun + seconds - time.perf_counter()
    if left > 0:
        time.sleep(left)


def measure(effort: Effort) -> dict[str, list[Row]]:
    """Everything, one after another."""
    tell("Rendering ...")
    rendering = measure_renders(effort)
    tell(f"Writing {effort.libraries} libraries of {PROMPTS} prompts ...")
    with shelf(effort.libraries) as home:
        lists = measure_lists(home, effort)
        tell(f"Changing {effort.changes} files in {effort.seconds:.0f} s ...")
        storm = measure_storm(home, effort)
    return {
        "Rendering": rendering,
        f"prompts/list with {effort.libraries} libraries of {PROMPTS} prompts": lists,
        f"{effort.changes:,} files changed in {effort.seconds:.0f} s": storm.rows(),
    }


def _cells(row: Row) -> list[str]:
    bar = "" if row.bar is None else f"{1000 * row.bar:g} ms"
    met = "" if row.bar is None else ("met" if row.median <= row.bar else "MISSED")
    worst = sorted(row.samples)[int(0.95 * (len(row.samples) - 1))]
    return [row.title, f"{1000 * row.median:.3g} ms", f"{1000 * worst:.3g} ms", bar, met]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_libraries", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer measurements")
    parser.add_argument("--json", action="store_true", help="all samples as JSON")
    options = parser.parse_args()
    try:
        found = measure(QUICK if options.quick else FULL)
    except ServerFailed as error:
        raise SystemExit(f"error: {error}") from None
    if options.json:
        print(msgspec.json.encode({"machine": machine(), **found}).decode())
        return
    print(f"Libraries on {machine()}")
    for title, rows in found.items():
        print(f"\n{title}\n")
        print(table([["", "median", "95%", "bar", ""], *map(_cells, rows)]))
    through, _, floor = found["Rendering"]
    ratio = through.median / floor.median
    print(f"\nA render through the child takes {ratio:.1f} times what the engine alone takes.")


if __name__ == "__main__":
    main()
