"""The page about other products has the figures that were measured, and their counts add up."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

import pytest
from benchmarks.bench_products import EACH, FULL, SAMPLES, SERVERS, Race, race, race_table
from benchmarks.compared import PAGE, fill_page, load_samples
from benchmarks.load_result import ServerFailed
from benchmarks.peer_products import StoredItems
from benchmarks.product_session import ProductSession, tool_call

#: A server that keeps items in a file. It loses every fifth, returns no fourth, and refuses every third.
_SERVER = """
import json, pathlib, sys
notes = pathlib.Path("notes.txt")
for line in sys.stdin:
    request = json.loads(line)
    name = request.get("params", {}).get("name")
    title = request.get("params", {}).get("arguments", {}).get("title", "")
    result = {"protocolVersion": "2025-06-18", "tools": [], "content": []}
    text = "unknown"
    if name == "create":
        number = int(title.split()[3])
        result["isError"] = number % 3 == 0
        text = "The store is full" if number % 3 == 0 else "created " + title
        if number % 3 and number % 5:
            with notes.open("a") as file:
                file.write(title + "\\n")
    elif name == "read":
        number = int(title.split()[3])
        kept = notes.read_text().splitlines() if notes.exists() else []
        text = title if title in kept and number % 4 else "not found"
    result["content"] = [{"type": "text", "text": text}]
    if "id" in request:
        print("a log line", flush=True)
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


def _product(command: list[str]) -> StoredItems:
    return StoredItems(
        "Sample",
        "1",
        command,
        lambda place, item: tool_call("create", title=item.title),
        lambda item, text: item.title if item.title in text else None,
        lambda place, key: tool_call("read", title=key),
    )


def _counts(found: Race) -> list[int]:
    return [found.asked, found.acknowledged, found.returned, found.in_files, found.lost]


@pytest.mark.parametrize(("servers", "at_once"), [(1, True), (SERVERS, False)])
def test_a_race_tells_refused_returned_hidden_and_lost_items_apart(
    tmp_path: Path, servers: int, at_once: bool
) -> None:
    product = _product([sys.executable, "-c", _SERVER])
    found = race(product, product.new_place(tmp_path / "place"), servers, at_once=at_once)
    accepted = [number for number in range(EACH) if number % 3]
    stored = [number for number in accepted if number % 5]
    hidden = [number for number in stored if number % 4 == 0]
    expected = [EACH, len(accepted), len(stored) - len(hidden), len(hidden), len(accepted) - len(stored)]
    assert _counts(found) == [servers * count for count in expected]
    assert found.errors == ["The store is full"]


def test_an_item_in_a_file_is_not_lost_if_no_server_can_read_it(tmp_path: Path) -> None:
    # It ends when there are items, and says why.
    broken = "import pathlib, sys\nif pathlib.Path('notes.txt').exists(): sys.exit('notes.txt is damaged')\n"
    product = _product([sys.executable, "-c", broken + _SERVER])
    found = race(product, product.new_place(tmp_path / "place"), 1, at_once=True)
    assert found.returned == 0
    assert found.in_files > 0
    assert found.acknowledged == found.in_files + found.lost
    assert "notes.txt is damaged" in found.errors[-1]


def test_answers_that_came_before_a_server_ended_count(tmp_path: Path) -> None:
    refusal = 'result["isError"]'
    assert refusal in _SERVER
    ending = _SERVER.replace(refusal, f"if number == 8: sys.exit('out of memory')\n        {refusal}")
    product = _product([sys.executable, "-c", ending])
    found = race(product, product.new_place(tmp_path / "place"), 1, at_once=True)
    # 1, 2, 4, 5 and 7; it lost 5, and does not return 4.
    assert _counts(found) == [EACH, 5, 3, 1, 1]
    assert "out of memory" in found.errors[1]


def test_the_processes_of_a_server_end_with_its_session(tmp_path: Path) -> None:
    # The child ignores that the input was closed.
    child = "import time; print('started', flush=True); time.sleep(600)"
    parent = (
        "import pathlib, subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "pathlib.Path('child').write_text(str(child.pid))\n"
    )
    product = _product([sys.executable, "-c", parent + _SERVER])
    place = product.new_place(tmp_path / "place")
    with product.session(place):
        child_ends = os.pidfd_open(int((place.project / "child").read_text()))
        assert not select.select([child_ends], [], [], 0)[0]
    assert select.select([child_ends], [], [], 10)[0]
    os.close(child_ends)


def test_a_server_that_ends_at_the_start_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match="no configuration"):
        ProductSession([sys.executable, "-c", "import sys; sys.exit('no configuration')"], tmp_path, {})


def test_the_tables_of_the_page_are_those_of_the_kept_samples() -> None:
    page = PAGE.read_text()
    run = load_samples()
    assert fill_page(page, run) == page
    assert "| Dittybag" in page
    for each in run.products:
        assert f"| {each.title} {each.version} |" in page
        assert len(each.creates) == FULL.items
    assert SAMPLES.stat().st_size < 200_000


def test_the_counts_of_races_add_up() -> None:
    for each in load_samples().products:
        for found in each.races:
            assert found.asked == found.servers * EACH
            assert found.acknowledged == found.returned + found.in_files + found.lost <= found.asked
    for row in race_table(load_samples().products).rows:
        asked, acknowledged, *rest = map(int, map(str, row[2:]))
        assert acknowledged == sum(rest) <= asked
