"""`dittybag library add`, `update`, `remove` and `new`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.cli.cli_runner import data, dittybag
from tests.cli.pseudo_terminal import run_in_terminal
from tests.library.source_fixtures import commit, read_files, write_files
from tests.stdio_server_process import ROOT

FILES = {"a.md": "one", "deep/b.md": "two"}


def test_libraries_are_added_updated_and_removed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    source = write_files(tmp_path / "My Prompts", FILES)
    folder = home / "libraries" / "my_prompts"
    assert dittybag(home, "library", "add", str(source)).stdout == (
        f"Added library 'my_prompts' from {source}: 2 prompts in 2 files\n"
        f"  {folder}\n"
        "hint: to check it, run: dittybag library check my_prompts\n"
    )
    assert dittybag(home, "library", "add", str(source), status=4).stderr == (
        "error: Library 'my_prompts' already exists\n"
        "hint: choose another name with --name\n"
        "hint: to update the existing library, run: dittybag library update my_prompts\n"
    )
    assert dittybag(home, "library", "update", "my_prompts").stdout == "Library 'my_prompts' is up to date\n"
    write_files(source, {"a.md": "new", "c.md": "three"})
    assert dittybag(home, "library", "update").stdout == "Library 'my_prompts' updated: 1 added, 1 changed\n"
    assert read_files(folder) == read_files(source)
    assert dittybag(home, "library", "remove", "My Prompts").stdout == "Removed library 'my_prompts'\n"
    assert not folder.exists()
    assert dittybag(home, "library", "update").stderr == "No libraries to update\n"


def test_a_collection_without_prompts_says_so(tmp_path: Path) -> None:
    source = write_files(tmp_path / "source", {"notes.txt": "x"})
    said = dittybag(tmp_path / "home", "library", "add", str(source)).stdout
    assert said.startswith(f"Added library 'source' from {source}: 0 prompts in 1 file\n")
    assert said.endswith("hint: to see why, run: dittybag library check source --skipped\n")


def test_a_collection_that_is_too_large_names_the_ways_to_add_a_part_of_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    source = write_files(tmp_path / "source", {"few/a.md": "one"})
    (source / "many").mkdir()
    for number in range(10_001):
        (source / "many" / f"{number}.txt").touch()
    done = dittybag(home, "library", "add", str(source), status=1)
    assert done.stderr == (
        f"error: {source}: it has more than 10,000 files\n"
        "hint: to add only a part of it, name a folder with --folder FOLDER\n"
        "hint: to read it in place, run: dittybag library add FOLDER --link\n"
    )
    part = dittybag(home, "library", "add", str(source), "--folder", "few").stdout
    assert ": 1 prompt in 1 file\n" in part
    linked = dittybag(home, "library", "add", str(source), "--link", "--name", "linked").stdout
    assert ": 1 prompt\n" in linked


def test_skipped_files_are_listed(tmp_path: Path) -> None:
    source = write_files(tmp_path / "source", FILES)
    for number in range(12):
        (source / f"link{number:02}\x1b[2J").symlink_to("a.md")
    output = dittybag(tmp_path / "home", "library", "add", str(source)).stdout
    assert "Skipped:\n  link00 [2J: a symbolic link\n" in output
    assert "  and 2 more\n" in output
    assert "\x1b" not in output


def test_an_edited_library_is_not_updated_and_both_ways_on_are_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    source = write_files(tmp_path / "lib", FILES)
    dittybag(home, "library", "add", str(source))
    write_files(home / "libraries" / "lib", {"a.md": "mine"})
    write_files(source, {"a.md": "theirs", "c.md": "new"})
    result = dittybag(home, "library", "update", "lib", status=4)
    assert result.stdout == ""
    assert result.stderr == (
        "error: Library 'lib' was edited by hand\n"
        "hint: to install the source and move yours to another folder, run: "
        "dittybag library update lib --overwrite\n"
        "hint: to keep yours, add the source under another name: "
        "dittybag library add SOURCE --name NAME\n"
    )
    (added, moved) = dittybag(home, "library", "update", "lib", "--overwrite").stdout.splitlines()
    assert added == "Library 'lib' updated: 1 added, 1 changed"
    assert read_files(Path(moved.removeprefix("Your version is now in "))) == FILES | {"a.md": "mine"}
    assert read_files(home / "libraries" / "lib") == read_files(source)


def test_a_library_with_edits_is_removed_only_with_yes(tmp_path: Path) -> None:
    dittybag(tmp_path, "library", "new", "mine")
    write_files(tmp_path / "libraries" / "mine", {"prompts/explain.md": "better"})
    result = dittybag(tmp_path, "library", "remove", "mine", status=4)
    assert result.stderr == (
        "error: Library 'mine' was edited by hand\n"
        "hint: to move it to another folder, run: dittybag library remove mine --yes\n"
    )
    output = dittybag(tmp_path, "library", "remove", "mine", "--yes").stdout
    kept = Path(output.strip().removeprefix("Removed library 'mine'; its folder was moved to "))
    assert read_files(kept)["prompts/explain.md"] == "better"


def test_a_linked_library_is_read_in_place(tmp_path: Path) -> None:
    home = tmp_path / "home"
    source = write_files(tmp_path / "work", FILES)
    said = dittybag(home, "library", "add", "--link", str(source)).stdout
    assert said.startswith(f"Linked library 'work' from {source}: 2 prompts\n  {source}\n")
    said = dittybag(home, "library", "update", "work").stdout
    assert said == f"Library 'work' is linked to {source} and is always up to date\n"
    said = dittybag(home, "library", "remove", "work").stdout
    assert said == f"Removed library 'work'; its folder {source} was not touched\n"
    assert read_files(source) == FILES


def test_a_new_library_says_where_it_is_and_what_to_do_next(tmp_path: Path) -> None:
    assert dittybag(tmp_path, "library", "new", "Team Prompts").stdout == (
        f"Created library 'team_prompts'\n  {tmp_path}/libraries/team_prompts\n"
        "hint: to check it, run: dittybag library check team_prompts\n"
    )
    result = dittybag(tmp_path, "library", "new", "team-prompts", status=4)
    assert "error: Library 'team_prompts' already exists\nhint: " in result.stderr


def test_a_failed_update_does_not_stop_the_others(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in ("a", "b", "c"):
        dittybag(home, "library", "add", str(write_files(tmp_path / name, FILES)))
        write_files(tmp_path / name, {"a.md": "new"})
    (tmp_path / "b").rename(tmp_path / "elsewhere")
    result = dittybag(home, "library", "update", status=3)
    assert result.stdout == "Library 'a' updated: 1 changed\nLibrary 'c' updated: 1 changed\n"
    assert result.stderr == f"error: {tmp_path}/b: the library's source no longer exists\n"
    updated = data(dittybag(home, "library", "update", "--json", status=3))["libraries"]
    assert [item.get("error", {}).get("code") for item in updated] == [None, "SOURCE_NOT_FOUND", None]


def test_progress_is_shown_only_on_a_terminal(tmp_path: Path) -> None:
    commit(tmp_path / "repository", FILES)
    assert dittybag(tmp_path / "home", "library", "add", f"file://{tmp_path}/repository").stderr == ""
    with (tmp_path / "out").open("w+b") as stdout:
        shown = run_in_terminal(tmp_path / "home", "library", "update", stdout=stdout.fileno())
        stdout.seek(0)
        assert stdout.read() == b"Library 'repository' is up to date\n"
    # Only the last line of what Git prints at once is shown.
    assert re.search(r"objects|refs/dittybag/source", shown)
    assert shown.endswith("\r\x1b[2K")


def test_install_records_import_no_heavy_modules() -> None:
    program = (
        "import sys, dittybag.library.install_records; print(*sorted(set(sys.argv[1:]) & set(sys.modules)))"
    )
    heavy = [
        "hashlib",
        "_hashlib",
        "pathlib",
        "subprocess",
        "tempfile",
        "shutil",
        "zipfile",
        "ctypes",
        "json",
    ]
    result = subprocess.run(
        [sys.executable, "-S", "-E", "-c", program, *heavy],
        env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
        cwd=ROOT / "src", capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert result.stdout.strip() == "", result


def test_a_new_data_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    home = tmp_path / "new" / "data"
    dittybag(home, "library", "new", "mine")
    assert {path.stat().st_mode & 0o777 for path in (home.parent, home, home / "libraries")} == {0o700}
