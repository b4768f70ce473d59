"""Format detection and prompt keys."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.library.formats.format_detection import detect_formats
from dittybag.library.formats.format_readers import FORMATS
from dittybag.library.formats.prompt_names import key_of


@pytest.mark.parametrize(
    ("file", "format"),
    [
        ("review.md", "markdown"),
        ("git/commit.markdown", "markdown"),
        ("REVIEW.MD", "markdown"),
        ("commands/review.md", "claude-command"),
        (".claude/commands/git/review.md", "claude-command"),
        ("plugins/git/commands/review.md", "claude-command"),
        ("skills/pdf/SKILL.md", "skill"),
        (".claude/skills/pdf/SKILL.md", "skill"),
        ("SKILL.md", "skill"),
        ("data/patterns/summarize/system.md", "fabric"),
        ("summarize/system.md", "fabric"),
        ("system.md", "markdown"),
        ("prompts/system.md", "markdown"),
        ("commands/deploy/system.md", "claude-command"),
        ("chat.prompty", "prompty"),
        ("alt.yaml", "llm-template"),
        ("alt.yml", "llm-template"),
        ("security.md", "markdown"),
        ("deploy/changelog-demo.md", "markdown"),
        ("claude-tips.md", "markdown"),
        ("readme-generator.md", "markdown"),
    ],
)
def test_a_format_is_detected_by_path(file: str, format: str) -> None:
    assert detect_formats([file]) == ({file: format}, {})


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (".hidden.md", "hidden"),
        (".github/prompts/review.md", "hidden"),
        (".claude/agents/reviewer.md", "hidden"),
        (".claude/commands/.old/review.md", "hidden"),
        ("sub/.claude/commands/review.md", "hidden"),
        ("README.md", "documentation of the repository"),
        ("git/readme.zh-CN.md", "documentation of the repository"),
        ("README_CLASSIC.md", "documentation of the repository"),
        ("License.txt", "documentation of the repository"),
        ("CHANGELOG.md", "documentation of the repository"),
        ("contributing.md", "documentation of the repository"),
        ("AGENTS.md", "documentation of the repository"),
        ("Claude.md", "documentation of the repository"),
        ("SECURITY.md", "documentation of the repository"),
        ("RELEASE_NOTES_v3.2.0.md", "documentation of the repository"),
        ("run.py", ".py files are not read"),
        ("Makefile", "the file has no extension"),
        ("greet.prompt", "not a prompt: .prompt"),
        ("node_modules/x/commands/a.md", "installed package"),
        ("a\nb.md", "control character"),
        ("x" * 201 + ".md", "201 characters"),
        ("..md", "hidden"),
    ],
)
def test_a_skipped_file_has_a_reason(file: str, reason: str) -> None:
    formats, skipped = detect_formats([file])
    assert formats == {}
    assert reason in skipped[file]


def test_a_twig_toml_decides_for_the_whole_library() -> None:
    formats, skipped = detect_formats(["twig.toml", "prompts/a.md", "partials/b.md", "skills/x/SKILL.md"])
    assert formats == {"twig.toml": "twig"}
    assert skipped["prompts/a.md"] == "a template, read only if twig.toml lists its prompt"
    assert "can include it" in skipped["partials/b.md"]
    assert "twig.toml" in skipped["skills/x/SKILL.md"]


def test_a_twig_toml_in_a_subfolder_is_ignored() -> None:
    formats, skipped = detect_formats(["sub/twig.toml", "a.md"])
    assert formats == {"a.md": "markdown"}
    assert ".toml" in skipped["sub/twig.toml"]


def test_other_files_in_a_skill_folder_belong_to_the_skill() -> None:
    formats, skipped = detect_formats(
        ["skills/pdf/SKILL.md", "skills/pdf/forms.md", "skills/pdf/scripts/fill.py", "skills/other.md"]
    )
    assert formats == {"skills/other.md": "markdown", "skills/pdf/SKILL.md": "skill"}
    assert skipped == {
        "skills/pdf/forms.md": "part of the skill skills/pdf",
        "skills/pdf/scripts/fill.py": "part of the skill skills/pdf",
    }


def test_a_skill_inside_a_skill_is_separate() -> None:
    formats, skipped = detect_formats(["SKILL.md", "notes.md", "sub/SKILL.md", "sub/notes.md"])
    assert formats == {"SKILL.md": "skill", "sub/SKILL.md": "skill"}
    assert skipped["notes.md"] == "part of the skill at the top level"
    assert skipped["sub/notes.md"] == "part of the skill sub"


def test_other_files_in_a_pattern_folder_belong_to_the_pattern() -> None:
    formats, skipped = detect_formats(
        ["patterns/sum/system.md", "patterns/sum/user.md", "patterns/sum/README.md"]
    )
    assert formats == {"patterns/sum/system.md": "fabric"}
    assert "argument 'input'" in skipped["patterns/sum/user.md"]
    assert "part of the Fabric pattern" in skipped["patterns/sum/README.md"]


def test_documentation_is_skipped_only_next_to_a_prompt_folder() -> None:
    assert detect_formats(["docs/write.md", "git/a.md"])[1] == {}
    assert detect_formats(["docs/write.md", "prompts/a.md"])[1] == {"docs/write.md": "documentation or tests"}


@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("review.md", "review"),
        ("git/commit.md", "git.commit"),
        ("prompts/git/commit.md", "git.commit"),
        (".claude/commands/git/commit.md", "git.commit"),
        (".claude/skills/pdf/SKILL.md", "pdf"),
        ("skills/office/pdf/SKILL.md", "office.pdf"),
        ("data/patterns/summarize/system.md", "summarize"),
        ("plugins/git/commands/commit.md", "git.commit"),
        ("plugins/git/commit.md", "git.commit"),
        ("git/prompts/commit.md", "git.prompts.commit"),
        ("commands/commands.md", "commands"),
        ("skills/SKILL.md", "skills"),
        ("foo.variant.prompty", "foo.variant"),
        ("data/x.md", "data.x"),
        ("svelte:a11y.md", "svelte.a11y"),
    ],
)
def test_a_prompt_is_named_after_its_path(file: str, key: str) -> None:
    formats, _ = detect_formats([file])
    assert key_of(formats[file], file) == key


def test_of_two_files_with_one_key_the_first_is_used() -> None:
    formats, skipped = detect_formats(["prompts/a.md", "a.md", "commands/a.md", "a.prompty"])
    assert formats == {"a.md": "markdown"}
    assert skipped["prompts/a.md"] == "its prompt would have the name 'a', like a.md; rename one of them"
    assert len(skipped) == 3


def test_adding_a_file_does_not_change_other_keys() -> None:
    formats, _ = detect_formats(["commands/a.md", "git/b.md"])
    more, _ = detect_formats(["commands/a.md", "git/b.md", "prompts/c.md", "commands/git/d.md"])
    assert formats.items() <= more.items()


@given(
    st.lists(
        st.text(st.sampled_from("ab./\n:\u00e9"), min_size=1, max_size=12).map(lambda path: path + ".md")
    )
)
def test_every_file_is_read_or_has_a_reason(files: list[str]) -> None:
    files = list(dict.fromkeys(files))
    formats, skipped = detect_formats(files)
    assert sorted([*formats, *skipped]) == sorted(files)
    assert set(formats.values()) <= set(FORMATS)
    assert all(skipped.values())
    keys = [key_of(found, file) for file, found in formats.items()]
    assert len(keys) == len(set(keys))
    assert all(0 < len(key) <= 200 and not set(key) & {":", "\n"} for key in keys)


def test_format_detection_imports_no_parser() -> None:
    program = (
        "import sys; from dittybag.library.formats.format_detection import detect_formats;"
        "detect_formats(['a.md', 'twig.toml']);"
        "sys.exit(bool({'yaml', 'rtoml', 'minijinja'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
