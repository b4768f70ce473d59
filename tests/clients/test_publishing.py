"""Published files: what reaches the model, what removal restores, and edits that are never lost."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Final

import pytest

from dittybag.clients.marked_sections import find_section
from dittybag.clients.native_formats import write_prompt
from dittybag.clients.native_reading import model_text
from dittybag.clients.native_text import NotPublishable, PublishedArgument, PublishedPrompt, is_unedited
from dittybag.clients.publishing import PublishedFile, publish, unpublish
from dittybag.clients.publishing_records import PublishingRecords
from dittybag.clients.publishing_targets import TARGETS
from tests.repetitions import SEED, repetitions

NAMES: Final = ("review", "commit", "x.y", "Explain_1")


def prompt_of(
    name: str, text: str, *arguments: str, parts: tuple[str | int, ...] | None = None
) -> PublishedPrompt:
    return PublishedPrompt(
        name=name,
        skill_name=name.lower().replace("_", "-").replace(".", "-"),
        origin=f"the prompt {name} of the project default",
        description='About it: "all" --> of #it',
        arguments=tuple(PublishedArgument(argument) for argument in arguments),
        parts=parts or (text,),
        plain=text,
    )


def file_of(target: str, root: Path, name: str, text: str) -> PublishedFile:
    prompt = prompt_of(name, text)
    stem = prompt.skill_name if TARGETS[target].has_skill_names else name
    data = write_prompt(target, prompt).text.encode()
    path = root / TARGETS[target].project_file.format(stem)
    return PublishedFile(path, data, name if TARGETS[target].is_section else "")


def snapshot(root: Path) -> dict[str, bytes | None]:
    """Return all files with their contents, and all folders."""
    found: dict[str, bytes | None] = {}
    for folder, folders, files in os.walk(root):
        found |= {str(Path(folder, name)): None for name in folders}
        found |= {str(Path(folder, name)): Path(folder, name).read_bytes() for name in files}
    return found


def current(file: PublishedFile) -> bytes | None:
    if not file.path.exists():
        return None
    data = file.path.read_bytes()
    if not file.section:
        return data
    found = find_section(data.decode(), file.section)
    return None if found is None else found.encode()


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("claude-code", "run !`ls`"),
        ("claude-code", "costs \\$1"),
        ("claude-code", "in ${CLAUDE_SKILL_DIR}"),
        ("gemini", "run !{ls}"),
        ("gemini", "see @{file}"),
        ("gemini", "all {{args}}"),
        ("vscode", "ask ${input:x}"),
        ("agents-md", "<!-- dittybag:end x -->"),
    ],
)
def test_text_that_a_client_would_run_or_replace_is_refused(target: str, text: str) -> None:
    with pytest.raises(NotPublishable):
        write_prompt(target, prompt_of("x", text))


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("claude-code", ("a\\", 0)),
        ("claude-code", (0, "[0]")),
        ("gemini", ("Wow!", 0)),
    ],
)
def test_arguments_beside_text_that_changes_their_meaning_are_refused(
    target: str, parts: tuple[str | int, ...]
) -> None:
    with pytest.raises(NotPublishable):
        write_prompt(target, prompt_of("x", "", "one", parts=parts))


def test_literal_dollar_signs_reach_the_model_of_claude_code() -> None:
    text = "costs $1.00, $ARGUMENTS, $HOME and $$2\n"
    native = write_prompt("claude-code", prompt_of("x", text))
    assert model_text("claude-code", native.text, "", {}, "x") == text
    assert is_unedited(native.text)
    assert not is_unedited(native.text.replace("costs", "cost"))


def test_publishing_and_removing_leaves_every_other_byte_unchanged(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    for number in range(repetitions(12, 200)):
        root, home = tmp_path / f"{number}" / "work", tmp_path / f"{number}" / "home"
        root.mkdir(parents=True)
        for name in chance.sample(
            [
                "AGENTS.md",
                ".claude/commands/other.md",
                ".gemini/settings.json",
                ".github/x",
                ".agents/skills/s/a",
            ],
            chance.randrange(6),
        ):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            ends = ("", "\n", "\n\n", "\r\n", "no line break")
            (root / name).write_bytes(f"others\r\n{chance.choice(ends)}".encode())
        before = snapshot(root)
        records = PublishingRecords(str(home))
        jobs = [(target, name) for target in TARGETS for name in chance.sample(NAMES, 2)]
        for target, name in chance.sample(jobs, len(jobs)):
            for text in ("first\n", chance.choice(("first\n", 'second --- """\n'))):
                file = file_of(target, root, name, text)
                (outcome,) = publish(target, name, root, [file], records)
                assert outcome.state in ("created", "updated", "unchanged")
                assert publish(target, name, root, [file], records)[0].state == "unchanged"
        for path, data in before.items():
            if not path.endswith("AGENTS.md"):
                assert data is None or Path(path).read_bytes() == data
        for target, name in chance.sample(jobs, len(jobs)):
            assert [outcome.state for outcome in unpublish(target, name, root, [], records)] == ["removed"]
        assert snapshot(root) == before
        assert records.all() == []


def test_text_that_is_added_around_a_section_stays(tmp_path: Path) -> None:
    file, records = tmp_path / "AGENTS.md", PublishingRecords(str(tmp_path / "home"))
    file.write_text("mine")
    published = file_of("agents-md", tmp_path, "x", "text")
    publish("agents-md", "x", tmp_path, [published], records)
    file.write_text(f"top\n{file.read_text()}below\n")
    unpublish("agents-md", "x", tmp_path, [], records)
    assert file.read_text() == "top\nmine\nbelow\n"


@pytest.mark.parametrize("target", ["claude-code", "gemini", "agents-md"])
def test_no_interleaving_of_edits_loses_what_a_person_wrote(tmp_path: Path, target: str) -> None:
    """Random steps: the prompt changes, a person edits or deletes the file, it is published or removed."""
    chance = random.Random(f"{SEED}{target}")
    for number in range(repetitions(40, 400)):
        root, home = tmp_path / f"{number}" / "work", tmp_path / f"{number}" / "home"
        root.mkdir(parents=True)
        records = PublishingRecords(str(home))
        text, published, edited = "stored 0\n", None, False
        for step in range(chance.randrange(2, 12)):
            file = file_of(target, root, "x", text)
            before = current(file)
            action = chance.choice(
                ("store", "edit", "edit", "delete", "publish", "publish", "remove", "forget")
            )
            if action == "store":
                text = f"stored {chance.randrange(3)}\n"
            elif action == "edit" and before is not None:
                changed = chance.choice(
                    (before.replace(b"stored", b"edited %d" % step), before.replace(b"sha256:", b"sha256:0"))
                )
                file.path.write_bytes(file.path.read_bytes().replace(before, changed, 1))
                edited = edited or changed != before
            elif action == "delete" and before is not None:
                file.path.unlink()
                edited = False
            elif action == "forget":
                # As on another machine: only the file itself says that it was published.
                shutil.rmtree(home, ignore_errors=True)
            elif action == "publish":
                (outcome,) = publish(target, "x", root, [file], records)
                after = current(file)
                if edited:
                    assert after == before
                    assert outcome.state == (
                        "kept" if published == text else "conflict"
                    ) or outcome.state in (
                        "kept",
                        "conflict",
                    )
                    assert outcome.diff
                else:
                    assert after == file.data
                    published = text
            elif action == "remove":
                outcomes = unpublish(target, "x", root, [file], records)
                after = current(file)
                assert after == (before if edited else None), outcomes
        shutil.rmtree(tmp_path / f"{number}")
