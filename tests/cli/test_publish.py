"""`dittybag publish`."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from tests.cli.cli_runner import data, dittybag, failure
from tests.forked_processes import ForkedProcess
from tests.library.source_fixtures import read_files, write_files


def test_a_file_follows_its_prompt_until_somebody_edits_it(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    options = ("review", "--to", "claude-code", "-C", str(work))
    file = work / ".claude" / "commands" / "review.md"
    dittybag(home, "prompt", "add", "review", "Review {{ code }}.", "--description", "Reviews: code")
    planned = dittybag(home, "publish", *options, "--dry-run")
    assert "+Review $ARGUMENTS." in planned.stdout
    assert not work.joinpath(".claude").exists()
    assert dittybag(home, "publish", *options).stdout == f"Created {file}\n"
    lines = file.read_text().splitlines()
    assert lines[1].startswith("# Published by Dittybag from the prompt review of the project default. ")
    assert lines[2:] == [
        'description: "Reviews: code"',
        'argument-hint: "[code]"',
        "---",
        "Review $ARGUMENTS.",
    ]
    assert dittybag(home, "publish", *options).stdout == f"Unchanged {file}\n"
    dittybag(home, "prompt", "update", "review", "Check {{ code }}.")
    assert dittybag(home, "publish", *options).stdout == f"Updated {file}\n"

    edited = file.read_text().replace("Check", "Carefully check")
    file.write_text(edited)
    assert dittybag(home, "publish", *options).stdout == f"Kept {file} (edited since it was published)\n"
    dittybag(home, "prompt", "update", "review", "Inspect {{ code }}.")
    conflict = dittybag(home, "publish", *options, status=4)
    assert f"Conflict {file} (edited, and the prompt changed too)\n" in conflict.stdout
    assert {"-Carefully check $ARGUMENTS.", "+Inspect $ARGUMENTS."} < set(conflict.stdout.splitlines())
    assert "delete the file and publish again" in conflict.stderr
    (shown,) = data(dittybag(home, "publish", *options, "--json", status=4))["published"]
    assert shown["files"][0]["state"] == "conflict"
    assert dittybag(home, "publish", *options, "--remove").stdout.startswith(f"Kept {file}")
    assert file.read_text() == edited

    # Their text is saved as the prompt: both are the same again.
    dittybag(home, "prompt", "update", "review", "Carefully check {{ code }}.")
    assert dittybag(home, "publish", *options).stdout == f"Updated {file}\n"
    dittybag(home, "prompt", "delete", "review")
    assert dittybag(home, "publish", *options, "--remove").stdout == f"Removed {file}\n"
    assert list(work.iterdir()) == []
    assert dittybag(home, "publish", *options, "--remove").stdout == f"Not published {file}\n"


def test_a_skill_of_a_library_is_published_with_all_its_files(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    skill = {
        "SKILL.md": "---\nname: forms\ndescription: Fills forms\n---\nRead notes.\n",
        "notes/a.md": "one",
    }
    source = write_files(tmp_path / "team", {f"forms/{path}": text for path, text in skill.items()})
    write_files(source, {"commit.md": "Write a commit message."})
    write_files(work, {"AGENTS.md": "# Rules"})
    dittybag(home, "library", "add", str(source))
    names = [item["name"] for item in data(dittybag(home, "library", "show", "team", "--json"))["prompts"]]
    (forms,) = (name for name in names if "forms" in name)
    where = ("-C", str(work))
    dittybag(home, "publish", forms, "team:commit", "--to", "codex", *where)
    published = read_files(work)
    header, rest = published[".agents/skills/forms/SKILL.md"].split("\n", 2)[1:]
    assert header.startswith(f"# Published by Dittybag from the skill {forms} of a library.")
    assert f"---\n{rest}" == skill["SKILL.md"]
    assert published[".agents/skills/forms/notes/a.md"] == "one"
    assert published[".agents/skills/team-commit/SKILL.md"].endswith("---\n\nWrite a commit message.")
    refused = failure(dittybag(home, "publish", forms, "--to", "agents-md", *where, "--json", status=1))
    assert refused["code"] == "NOT_PUBLISHABLE"

    # A file that the skill no longer has is removed, too.
    (source / "forms" / "notes" / "a.md").unlink()
    dittybag(home, "library", "update", "team")
    assert "Removed" in dittybag(home, "publish", forms, "--to", "codex", *where).stdout
    dittybag(home, "publish", "team:commit", "--to", "agents-md", *where)
    dittybag(home, "publish", forms, "team:commit", "--to", "codex", *where, "--remove")
    dittybag(home, "publish", "team:commit", "--to", "agents-md", *where, "--remove")
    assert read_files(work) == {"AGENTS.md": "# Rules"}
    assert sorted(path.name for path in work.iterdir()) == ["AGENTS.md"]
    dittybag(home, "publish", "team:commit", "--to", "agents-md", "--user", status=2)


def wait_for_line(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    while (found := process.stdout.readline()) != f"{line}\n":
        assert found, "the process ended"


def test_a_watched_file_follows_changes_of_other_processes(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    dittybag(home, "prompt", "add", "review", "Review it.")
    source = write_files(tmp_path / "team", {"commit.md": "Write a message."})
    dittybag(home, "library", "add", str(source), "--link")
    environment = {**os.environ, "DITTYBAG_HOME": str(home), "NO_COLOR": "1"}
    arguments = ("publish", "review", "team:commit", "--to", "gemini", "-C", str(work), "--watch")
    pipe = subprocess.PIPE
    with ForkedProcess(
        "dittybag", *arguments, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment
    ) as watch:
        assert watch.stderr is not None
        assert watch.stdout is not None
        assert watch.stderr.readline() == "note: watching for changes; Ctrl-C ends it\n"
        dittybag(home, "prompt", "update", "review", "Check it.")
        commands = work / ".gemini" / "commands"
        wait_for_line(watch, f"Updated {commands / 'review.toml'}")
        assert "Check it." in (commands / "review.toml").read_text()
        (source / "commit.md").write_text("Write a short message.")
        wait_for_line(watch, f"Updated {commands / 'team-commit.toml'}")
        assert "Write a short message." in (commands / "team-commit.toml").read_text()
        watch.send_signal(signal.SIGTERM)
        assert watch.wait(timeout=20) == 0


def test_a_prompt_that_is_gone_does_not_keep_others_from_being_published(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    for name in ("first", "second"):
        dittybag(home, "prompt", "add", name, "Old.")
    where = ("--to", "gemini", "-C", str(work))
    partial = dittybag(home, "publish", "first", "missing", *where, status=3)
    commands = work / ".gemini" / "commands"
    assert partial.stdout == f"Created {commands / 'first.toml'}\n"
    pipe = subprocess.PIPE
    environment = {**os.environ, "DITTYBAG_HOME": str(home), "NO_COLOR": "1"}
    with ForkedProcess(
        "dittybag", "publish", "first", "second", *where, "--watch",
        stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment,
    ) as watch:  # fmt: skip
        assert watch.stderr is not None
        assert watch.stderr.readline() == "note: watching for changes; Ctrl-C ends it\n"
        dittybag(home, "prompt", "delete", "first")
        dittybag(home, "prompt", "update", "second", "New.")
        wait_for_line(watch, f"Updated {commands / 'second.toml'}")
        watch.send_signal(signal.SIGTERM)
        assert watch.wait(timeout=20) == 0
    assert "Old." in (commands / "first.toml").read_text()
