"""`dittybag export --as skills`."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from tests.cli.cli_runner import data, dittybag
from tests.library.source_fixtures import read_files, write_files

MARKER = ".dittybag-skills.json"
SKILL = {
    "forms/SKILL.md": "---\nname: forms\ndescription: Fills forms\n---\nRead notes.\n",
    "forms/notes/a.md": "one",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The data folder of a workspace with a prompt and a library with a skill."""
    home = tmp_path / "home"
    dittybag(home, "prompt", "add", "review", "Review {{ code }}.", "--description", "Reviews: code")
    dittybag(home, "library", "add", str(write_files(tmp_path / "team", SKILL)))
    return home


def export(home: Path, folder: Path, *options: str) -> dict[str, object]:
    """Export, and return what the command says about it."""
    done: dict[str, object] = data(
        dittybag(home, "export", "--as", "skills", str(folder), "--json", *options)
    )
    assert done.pop("target") == str(folder)
    return done


def skills(folder: Path) -> dict[str, str]:
    """The files of an export, without the marker."""
    return {path: text for path, text in read_files(folder).items() if path != MARKER}


def test_prompts_and_skills_become_folders_that_follow_their_changes(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "skills"
    assert export(home, out) == {"skills": 2, "files": 3, "kept": [], "left_out": []}
    exported = skills(out)
    prompt = exported.pop("review/SKILL.md")
    assert prompt.startswith(
        '---\nname: "review"\ndescription: "Reviews: code"\n---\n\nThis text is a template.'
    )
    assert prompt.endswith("- `code`\n\nReview {{ code }}.")
    assert exported == SKILL
    assert export(home, out)["files"] == 0

    dittybag(home, "prompt", "edit", "review", "Check {{ code }}.")
    (tmp_path / "team" / "forms" / "notes" / "a.md").unlink()
    dittybag(home, "library", "update", "team")
    assert export(home, out) == {"skills": 2, "files": 2, "kept": [], "left_out": []}
    assert skills(out)["review/SKILL.md"].endswith("Check {{ code }}.")
    assert sorted(path.name for path in (out / "forms").iterdir()) == ["SKILL.md"]
    dittybag(home, "prompt", "delete", "review")
    dittybag(home, "library", "remove", "team")
    assert export(home, out) == {"skills": 0, "files": 2, "kept": [], "left_out": []}
    assert [path.name for path in out.iterdir()] == [MARKER]


def test_files_that_somebody_has_edited_or_added_stay(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "skills"
    export(home, out)
    edited = write_files(out, {"review/SKILL.md": "Mine.", "forms/extra.md": "Mine too."})
    dittybag(home, "prompt", "edit", "review", "Check {{ code }}.")
    shown = dittybag(home, "export", "--as", "skills", str(out))
    assert f"note: {out}/review/SKILL.md was edited and stays as it is\nhint: " in shown.stderr
    for command in (("prompt", "delete", "review"), ("library", "remove", "team")):
        dittybag(home, *command)
    assert export(home, out) == {"skills": 0, "files": 2, "kept": ["review/SKILL.md"], "left_out": []}
    assert skills(edited) == {"review/SKILL.md": "Mine.", "forms/extra.md": "Mine too."}
    # A deleted file is written again.
    (out / "review" / "SKILL.md").unlink()
    dittybag(home, "undo", "--yes")
    assert export(home, out)["kept"] == []
    assert skills(out)["review/SKILL.md"].endswith("Check {{ code }}.")


def test_a_folder_with_other_content_is_refused(home: Path, tmp_path: Path) -> None:
    out = write_files(tmp_path / "skills", {"mine/SKILL.md": "Mine."})
    refused = dittybag(home, "export", "--as", "skills", str(out), status=4)
    assert "is not empty and is not an export of skills" in refused.stderr
    write_files(out, {MARKER: "{}"})
    assert "is not valid" in dittybag(home, "export", "--as", "skills", str(out), status=4).stderr
    assert skills(out) == {"mine/SKILL.md": "Mine."}
    file = tmp_path / "file"
    file.touch()
    assert "is a file" in dittybag(home, "export", "--as", "skills", str(file), status=4).stderr


def test_nothing_outside_the_folder_is_written_or_deleted(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "skills"
    export(home, out)
    stored = (out / "review" / "SKILL.md").read_bytes()
    outside = write_files(tmp_path / "outside", {"SKILL.md": stored.decode(), "notes/a.md": "one"})
    (out / "review" / "SKILL.md").unlink()
    (out / "review" / "SKILL.md").symlink_to(outside / "SKILL.md")
    (out / "forms" / "notes" / "a.md").unlink()
    (out / "forms" / "notes").rmdir()
    (out / "forms" / "notes").symlink_to(outside / "notes")
    dittybag(home, "prompt", "edit", "review", "Check {{ code }}.")
    assert export(home, out)["kept"] == ["review/SKILL.md", "forms/notes/a.md"]
    for command in (("prompt", "delete", "review"), ("library", "remove", "team")):
        dittybag(home, *command)
    export(home, out)
    assert read_files(outside) == {"SKILL.md": stored.decode(), "notes/a.md": "one"}

    digest = sha256(b"one").hexdigest()
    forged = {"version": 1, "files": {"../outside/notes/a.md": digest}}
    (out / MARKER).write_text(json.dumps(forged))
    dittybag(home, "export", "--as", "skills", str(out), status=4)
    assert (outside / "notes" / "a.md").exists()


def test_one_project_is_exported_and_equal_names_are_named(home: Path, tmp_path: Path) -> None:
    dittybag(home, "project", "create", "site")
    for name in ("forms", "Form.letters", "form-letters"):
        dittybag(home, "prompt", "add", name, "Fill.", "-p", "site")
    done = export(home, tmp_path / "skills", "-p", "site")
    assert (done["skills"], sorted(skills(tmp_path / "skills"))) == (
        2,
        ["form-letters/SKILL.md", "forms/SKILL.md"],
    )
    assert done["left_out"] == [
        "the prompt form-letters is left out: the prompt Form.letters has the name 'form-letters' too",
        "the skill team/forms is left out: the prompt forms has the name 'forms' too",
    ]
