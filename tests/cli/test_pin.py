"""`dittybag pin` and `unpin`: what agents always get."""

from __future__ import annotations

from pathlib import Path

from tests.cli.cli_runner import data, dittybag, failure


def pins(home: Path, *arguments: str) -> list[str]:
    return [pin["ref"] for pin in data(dittybag(home, "pin", "--list", *arguments, "--json"))["pins"]]


def test_pins_are_listed_in_order_undone_and_kept_by_every_road_to_another_workspace(tmp_path: Path) -> None:
    for name in ("style", "tests"):
        dittybag(tmp_path, "prompt", "add", name, f"About {name}.")
    dittybag(tmp_path, "task", "add", "Fix the login")
    for ref in ("tests", "task:1"):
        dittybag(tmp_path, "pin", ref)
    assert dittybag(tmp_path, "pin", "style").stdout == "Pinned prompt style\n"
    assert dittybag(tmp_path, "pin", "style").stdout == "prompt style is already pinned\n"
    assert pins(tmp_path) == ["tests", "task:1", "style"]
    # A pin follows its item.
    dittybag(tmp_path, "prompt", "edit", "style", "--name", "manner")
    dittybag(tmp_path, "unpin", "task:1")
    assert pins(tmp_path) == ["tests", "manner"]
    dittybag(tmp_path, "undo", "--yes")
    assert pins(tmp_path) == ["tests", "task:1", "manner"]
    for ref in ("nothing", "task:7", "other:prompt"):
        refused = dittybag(tmp_path, "pin", ref, "--json", status=3)
        assert failure(refused)["message"].startswith(f"There is nothing called '{ref}'")

    export = tmp_path / "export"
    dittybag(tmp_path, "export", str(export))
    dittybag(tmp_path, "import", str(export), "--workspace", "exact")
    assert pins(tmp_path, "--workspace", "exact") == ["tests", "task:1", "manner"]
    merged = ("--workspace", "merged")
    dittybag(tmp_path, "task", "add", "Another task", *merged)
    dittybag(tmp_path, "prompt", "add", "tests", "Other tests.", *merged)
    dittybag(tmp_path, "import", str(export), *merged, "--on-conflict", "rename")
    assert pins(tmp_path, *merged) == ["tests-2", "task:2", "manner"]
    # The pins of a deleted item stay, so that undo brings back everything.
    dittybag(tmp_path, "prompt", "delete", "manner")
    assert "(deleted or not visible)" in dittybag(tmp_path, "pin", "--list").stdout
    dittybag(tmp_path, "unpin", pins(tmp_path)[-1])
    assert pins(tmp_path) == ["tests", "task:1"]
