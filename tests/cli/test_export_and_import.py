"""`dittybag export` and `dittybag import`, with text and JSON output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.cli.cli_runner import data, dittybag, failure
from tests.exchange.exchange_data import fill_database
from tests.exchange.exchange_fixtures import dump_tables, read_files, rows
from tests.exchange.prompt_store_databases import PROMPT_STORE, create_database
from tests.stdio_server_process import ROOT


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """A data folder whose default workspace is not empty."""
    folder = tmp_path / "home"
    folder.mkdir()
    await fill_database(folder / "default.db", 40, 10, 20)
    return folder


def test_a_json_export_round_trips(home: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "all.json", tmp_path / "other"
    output = dittybag(home, "export", str(file)).stdout
    assert output.startswith("Exported ")
    assert dittybag(other, "import", str(file)).stdout.startswith("Imported 2 projects, ")
    again = dittybag(other, "export").stdout
    assert again.encode() == file.read_bytes()
    assert "Skipped" in dittybag(other, "import", "-", stdin=again).stdout


def test_a_dittybag_database_is_imported_and_not_changed(home: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    other = tmp_path / "other"
    report = data(dittybag(other, "import", str(home / "default.db"), "--json"))
    assert report["format"] == "database"
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before
    assert dittybag(other, "export").stdout == dittybag(home, "export").stdout


def test_one_project_can_be_exported(home: Path, tmp_path: Path) -> None:
    dittybag(home, "export", str(tmp_path / "side.json"), "-p", "side")
    found = msgspec.json.decode((tmp_path / "side.json").read_bytes())
    assert [project["name"] for project in found["projects"]] == ["side"]
    assert "Project 'nope' does not exist" in dittybag(home, "export", "-", "-p", "nope", status=3).stderr
    dittybag(home, "export", str(tmp_path / "folder"), "-p", "side")
    output = dittybag(home, "export", str(tmp_path / "folder"), status=4).stderr
    assert "contains an export of project 'side'" in output


def test_existing_files_are_overwritten_only_with_force(home: Path, tmp_path: Path) -> None:
    file, folder = tmp_path / "all.json", tmp_path / "folder"
    file.write_text("mine")
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    assert "already exists" in dittybag(home, "export", str(file), status=4).stderr
    assert file.read_text() == "mine"
    assert "is not empty" in dittybag(home, "export", str(folder), status=4).stderr
    assert read_files(folder) == {"mine.txt": b"mine"}
    dittybag(home, "export", str(file), "--force")
    assert file.read_bytes().startswith(b'{"format":"dittybag"')
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.json", "folder", "home"]


def test_an_unwritable_target_is_reported(home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    output = dittybag(home, "export", str(tmp_path / "file" / "all.json"), status=5).stderr
    assert "could not be written" in output
    assert "Traceback" not in output
    assert "is a file, not a folder" in dittybag(home, "export", str(tmp_path / "file"), status=4).stderr


def test_conflicts_are_listed_and_change_nothing(home: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,prompt\n" + "".join(f"p{n},one\n" for n in range(30)))
    (tmp_path / "b.csv").write_text("name,prompt\n" + "".join(f"p{n},two\n" for n in range(30)))
    dittybag(home, "import", str(tmp_path / "a.csv"))
    before = dump_tables(home / "default.db")
    result = dittybag(home, "import", str(tmp_path / "b.csv"), status=4)
    assert "Prompt 'p19' already exists in project 'default'" in result.stderr
    assert "  and 10 more\n" in result.stderr
    assert "hint: use --on-conflict" in result.stderr
    failed = failure(dittybag(home, "import", str(tmp_path / "b.csv"), "--json", status=4))
    assert "Prompt 'p0' already exists" in failed["message"]
    tried = dittybag(home, "import", str(tmp_path / "b.csv"), "--dry-run", "--on-conflict", "rename")
    assert tried.stdout.startswith("Would import 30 prompts\n")
    assert "prompt 'p0' is now 'p0-2'" in tried.stderr
    assert dump_tables(home / "default.db") == before
    report = data(dittybag(home, "import", str(tmp_path / "b.csv"), "--on-conflict", "replace", "--json"))
    assert (report["replaced"]["prompts"], len(report["conflicts"])) == (30, 30)


def test_problems_of_a_source_are_reported(home: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("act,prompt\nA,\n\x1b[31mB,\n")
    result = dittybag(home, "import", str(tmp_path / "bad.csv"), status=1)
    assert "Nothing was imported:\n  line 2: Content must not be empty" in result.stderr
    dittybag(home, "export", str(tmp_path / "all.json"))
    text = re.sub('"name":"prompt-[^"]*"', '"name":"\x1b[31m"', (tmp_path / "all.json").read_text())
    (tmp_path / "all.json").write_text(text)
    assert "\x1b" not in dittybag(tmp_path / "other", "import", str(tmp_path / "all.json"), status=1).stderr


def test_hints_do_not_depend_on_the_words_of_a_source(tmp_path: Path) -> None:
    for words in ("the history", "cannot be imported"):
        resource = {"name": "r", "uri": "x:r", "mime_type": words, "text": "t"}
        export = {"format": "dittybag", "version": 1, "resources": [resource]}
        (tmp_path / "all.json").write_text(msgspec.json.encode(export).decode())
        output = dittybag(tmp_path / "home", "import", str(tmp_path / "all.json"), status=1).stderr
        assert f"MIME type '{words}' is not valid" in output
        assert "hint:" not in output


def test_the_value_that_was_renamed_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,title,prompt\none,Title,first\n")
    (tmp_path / "b.csv").write_text("name,title,prompt\ntwo,Title,second\n")
    dittybag(tmp_path / "home", "import", str(tmp_path / "a.csv"))
    output = dittybag(tmp_path / "home", "import", str(tmp_path / "b.csv"), "--on-conflict", "rename").stderr
    assert "prompt 'Title' is now 'Title (2)'" in output


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("x.txt", b"hello", "unknown format"),
        ("x.json", b'{"a":1}', "unknown format"),
        ("x.zip", b"PK\x03\x04 and more", "it is an archive; unpack it first"),
    ],
)
def test_an_unknown_format_is_refused_with_a_list_of_formats(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    (tmp_path / name).write_bytes(content)
    output = dittybag(tmp_path / "home", "import", str(tmp_path / name), status=1).stderr
    assert problem in output
    for form in ("json", "folder", "database", "prompt-store", "csv", "library"):
        assert f"hint: --as {form}: " in output
    assert "no such file" in dittybag(tmp_path / "home", "import", "nowhere", status=3).stderr


def test_a_wrong_format_option_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("act,prompt\nA,a\n")
    for form in ("json", "prompt-store", "database", "folder"):
        output = dittybag(tmp_path / "home", "import", str(tmp_path / "x.csv"), "--as", form, status=1).stderr
        assert "could not be read" in output
        assert "Traceback" not in output
    assert (
        "Imported 1 prompt\n"
        in dittybag(tmp_path / "home", "import", str(tmp_path / "x.csv"), "--as", "csv").stdout
    )


def test_a_prompt_store_database_is_imported(tmp_path: Path) -> None:
    home = tmp_path / "home"
    row = {"id": "1", "title": "A title", "content": "Text"}
    create_database(tmp_path / "prompts.db", PROMPT_STORE, prompts=[row]).close()
    assert dittybag(home, "import", str(tmp_path / "prompts.db")).stdout == "Imported 1 prompt\n"


def test_prompt_files_are_imported_as_stored_prompts(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "prompts"
    (folder / "writing").mkdir(parents=True)
    (folder / "review.md").write_text("---\ndescription: Look\n---\nReview this.\n")
    (folder / "writing" / "story.prompty").write_text(
        "---\ninputs:\n  topic: bags\n---\nTell of {{topic}}.\n"
    )
    (folder / "broken.prompty").write_text("---\nname: [\n---\n")
    result = dittybag(home, "import", str(folder))
    assert result.stdout == "Imported 2 prompts\n"
    sql = "SELECT name, description, content, json_array_length(arguments) FROM prompts ORDER BY name"
    found = rows(home / "default.db", sql)
    assert found[0] == ("review", "Look", "Review this.\n", 0)
    assert (found[1][0], found[1][3]) == ("writing.story", 1)
    assert dittybag(home, "import", str(folder / "review.md")).stdout.startswith(
        "Imported nothing\nSkipped 1"
    )
    (folder / "lone.txt").write_text("text")
    assert "no valid prompts found" in dittybag(home, "import", str(home), "--as", "library", status=1).stderr


def test_defaults_of_a_template_are_kept(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "prompts"
    folder.mkdir()
    (folder / "story.prompty").write_text('---\ninputs:\n  topic: "a \\"b\\""\n---\nTell of {{topic}}.\n')
    dittybag(home, "import", str(folder))
    render = ("prompt", "render", "story")
    assert dittybag(home, *render).stdout == 'Tell of a "b".\n'
    assert dittybag(home, *render, "topic={{ 7 }}").stdout == "Tell of {{ 7 }}.\n"


def test_roles_of_prompt_files_become_role_lines(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "prompts"
    folder.mkdir()
    front_matter = "---\ninputs:\n  who: Ann\n---\n"
    (folder / "chat.prompty").write_text(f"{front_matter}system:\nBe kind.\n\nuser:\nGreet {{{{ who }}}}.\n")
    (folder / "plain.prompty").write_text("system:\nBe kind.\n\nassistant:\nHi")
    dittybag(home, "import", str(folder))
    rendered = "--role system\nBe kind.\n\n--role {}\n{}".format
    assert dittybag(home, "prompt", "show", "plain").stdout == rendered("assistant", "Hi")
    assert dittybag(home, "prompt", "render", "chat").stdout == rendered("user", "Greet Ann.")
    assert dittybag(home, "prompt", "render", "chat", "who=Bob").stdout == rendered("user", "Greet Bob.")
    # A library of the exported files has the same messages.
    dittybag(home, "export", str(tmp_path / "out"))
    (file,) = (tmp_path / "out").rglob("plain.md")
    dittybag(home, "library", "add", str(file.parent), "--name", "again")
    assert dittybag(home, "prompt", "render", "again:plain").stdout == rendered("assistant", "Hi")


def test_everything_is_imported_into_the_selected_project(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (tmp_path / "a.csv").write_text("act,prompt\nA,a\n")
    assert (
        "does not exist" in dittybag(home, "import", str(tmp_path / "a.csv"), "-p", "side", status=3).stderr
    )
    dittybag(home, "project", "create", "side")
    dittybag(home, "import", str(tmp_path / "a.csv"), "-p", "side")
    dittybag(home, "import", str(tmp_path / "a.csv"), variables={"DITTYBAG_PROJECT": "side"})
    assert rows(home / "default.db", "SELECT project FROM prompts") == [(2,)]


def test_a_closed_pipe_ends_an_export_without_a_traceback(home: Path, tmp_path: Path) -> None:
    (tmp_path / "many.csv").write_text("name,prompt\n" + "".join(f"p{n},{'x' * 1000}\n" for n in range(100)))
    dittybag(home, "import", str(tmp_path / "many.csv"))
    dittybag(home, "export", str(tmp_path / "all.json"))
    # More than the buffer of a pipe.
    assert (tmp_path / "all.json").stat().st_size > 100_000
    process = subprocess.Popen(
        [sys.executable, "-m", "dittybag", "export", "-"],
        cwd=ROOT,
        env={**os.environ, "DITTYBAG_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.read(10) == b'{"format":'
    process.stdout.close()
    assert process.stderr is not None
    output = process.stderr.read()
    process.stderr.close()
    assert process.wait(30) == 1
    assert b"Traceback" not in output
    assert b"Exception" not in output


def test_the_valid_prompts_of_a_collection_are_imported_and_the_others_listed(tmp_path: Path) -> None:
    patterns = tmp_path / "fabric" / "patterns"
    too_large = "x" * 1_100_000 + " {{lang}}"
    for name, text in {"good": "Hello {{input}}", "large": too_large, "nul": "a\0b"}.items():
        (patterns / name).mkdir(parents=True)
        (patterns / name / "system.md").write_text(text)
    imported = dittybag(tmp_path, "import", str(tmp_path / "fabric"))
    assert imported.stdout == "Imported 1 prompt\n"
    title, *notes = imported.stderr.splitlines()
    assert title == "Notes:"
    assert {note.split(":")[0].strip() for note in notes} == {
        "patterns/large/system.md",
        "patterns/nul/system.md",
    }
    assert dittybag(tmp_path, "prompt", "render", "good", "input=you").stdout.startswith("Hello you")

    commands = tmp_path / "repository" / ".claude" / "commands"
    (commands / "db").mkdir(parents=True)
    (commands / "commit.md").write_text("---\ntitle: Commit\n---\nCommit $ARGUMENTS")
    (commands / "db" / "commit.md").write_text("---\ntitle: Commit\n---\nCommit the database, $1")
    (commands / "long.md").write_text(f"{too_large} $ARGUMENTS")
    (commands / "empty.md").write_text("")
    result = data(dittybag(tmp_path, "import", str(tmp_path / "repository"), "--json"))
    assert result["imported"]["prompts"] == 2
    assert [note for note in result["notes"] if "long.md" in note]
    assert [note for note in result["notes"] if "empty.md" in note]

    nothing = tmp_path / "nothing"
    nothing.mkdir()
    (nothing / "empty.md").write_text("")
    assert "no valid prompts found" in dittybag(tmp_path, "import", str(nothing), status=1).stderr
