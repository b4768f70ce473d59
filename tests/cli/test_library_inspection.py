"""`dittybag library list`, `show` and `check`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_runner import data, dittybag
from tests.stdio_server_process import ROOT
from tests.storage.sqlite.scripted_process import drop_privileges

MANIFEST = """\
[prompts.review]
description = "Review code"

[[prompts.review.arguments]]
name = "code"
required = true

[[prompts.review.arguments]]
name = "language"
description = "Which one"
"""
TEMPLATE = "Review this {{ language }} code:\n\n{{ code }}\n"


def write_library(home: Path, name: str = "My Lib", **files: str) -> Path:
    """Write a library to the data folder; in file names, `__` means a slash and `_md` an extension."""
    folder = home / "libraries" / name
    for file, text in files.items():
        path = folder / file.replace("__", "/").replace("_md", ".md").replace("_toml", ".toml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def write_valid_library(home: Path) -> Path:
    return write_library(home, twig_toml=MANIFEST, prompts__review_md=TEMPLATE)


def run_json(home: Path, *arguments: str, status: int = 0) -> Any:
    return data(dittybag(home, "library", *arguments, "--json", status=status))


def problems(home: Path, status: int) -> list[tuple[str, int | None, str, str]]:
    (library,) = run_json(home, "check", status=status)["libraries"]
    return [(item["file"], item["line"], item["level"], item["message"]) for item in library["problems"]]


def test_without_libraries_the_list_says_what_to_do(tmp_path: Path) -> None:
    empty = dittybag(tmp_path, "library", "list")
    assert empty.stdout == ""
    assert empty.stderr.startswith("No libraries yet\nhint: to add one, run: dittybag library add")
    assert run_json(tmp_path, "list") == {"libraries": []}


def test_the_list_shows_every_library_with_its_prompts_and_problems(tmp_path: Path) -> None:
    folder = write_valid_library(tmp_path)
    write_library(tmp_path, "broken", twig_toml="[prompts\n")
    listing = dittybag(tmp_path, "library", "list")
    assert listing.stdout.splitlines() == [
        "library  prompts  formats  from     problems",
        "my_lib         1  twig     by hand         -",
        "broken         0  -        by hand         1",
    ]
    assert listing.stderr == "hint: for details, run: dittybag library check\n"
    first, _ = run_json(tmp_path, "list")["libraries"]
    assert first == {
        "name": "my_lib",
        "folder": str(folder),
        "from": "by hand",
        "prompts": 1,
        "formats": {"twig": 1},
        "problems": 0,
    }


def test_a_library_is_shown_with_its_prompts(tmp_path: Path) -> None:
    write_valid_library(tmp_path)
    lines = dittybag(tmp_path, "library", "show", "My Lib").stdout.splitlines()
    assert lines[1:] == [
        "prompt         arguments        description",
        "my_lib:review  code [language]  Review code",
    ]
    (prompt,) = run_json(tmp_path, "show", "my_lib")["prompts"]
    assert [item["name"] for item in prompt["arguments"]] == ["code", "language"]


def test_a_prompt_is_shown_with_its_template(tmp_path: Path) -> None:
    folder = write_valid_library(tmp_path)
    output = dittybag(tmp_path, "library", "show", "my_lib:review").stdout
    assert output == (
        "my_lib:review\nReview code\n  code (required)\n  language (optional): Which one\n"
        f"{folder}/prompts/review.md\n\n{TEMPLATE}"
    )
    assert run_json(tmp_path, "show", "my_lib:review")["text"] == TEMPLATE


def test_a_valid_library_passes(tmp_path: Path) -> None:
    write_valid_library(tmp_path)
    output = dittybag(tmp_path, "library", "check").stdout
    assert output == "1 library, 1 prompt: 0 errors, 0 warnings\n"


def test_a_folder_can_be_checked_before_it_is_added(tmp_path: Path) -> None:
    folder = write_valid_library(tmp_path / "elsewhere")
    (folder / "prompts" / "review.md").write_text("{% if %}")
    result = dittybag(tmp_path, "library", "check", str(folder), status=1)
    assert result.stdout.splitlines()[0] == (f"{folder}/prompts/review.md:1: error: unexpected end of block")


ONE = '[prompts.one]\ndescription = "One"\n'


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"twig_toml": "[prompts.one]\ndescription = \n"}, ("twig.toml", 2, "error", "")),
        (
            {"twig_toml": f"\n{ONE}"},
            ("twig.toml", 2, "error", "prompt 'one': the file prompts/one.md does not exist"),
        ),
        (
            {"twig_toml": ONE, "prompts__one_md": "a\n\n{% for %}"},
            ("prompts/one.md", 3, "error", "unexpected end of block"),
        ),
        (
            {"twig_toml": ONE, "prompts__one_md": "a\n{{ tone }}"},
            (
                "prompts/one.md",
                2,
                "error",
                "uses 'tone', which is not an argument of the prompt 'one' and is always empty",
            ),
        ),
        (
            {"twig_toml": f'{ONE}[[prompts.one.arguments]]\nname = "x"\n', "prompts__one_md": "a"},
            ("twig.toml", 1, "warning", "prompt 'one': the argument 'x' is declared but not used"),
        ),
        (
            {"twig_toml": ONE, "prompts__one_md": "a\n{% include '../other/x.md' %}"},
            ("prompts/one.md", 2, "error", "includes '../other/x.md', which does not exist"),
        ),
        (
            {"twig_toml": ONE, "prompts__one_md": "\n\n{% include '../../../x.md' %}"},
            ("prompts/one.md", 3, "error", "includes '../../../x.md': outside the library"),
        ),
        (
            {"twig_toml": ONE, "prompts__one_md": "{% include '/etc/passwd' %}"},
            ("prompts/one.md", 1, "error", "includes '/etc/passwd': outside the library"),
        ),
        (
            {"twig_toml": ONE, "prompts__one_md": "{% include 'part_md' %}", "part_md": "x"},
            ("prompts/one.md", 1, "error", "includes 'part_md', which does not exist"),
        ),
        (
            {"twig_toml": ONE, "prompts__one_md": "{% include 'part.md' %}", "part_md": "x\n{{ 1 | nope }}"},
            ("part.md", 2, "error", "filter nope is unknown"),
        ),
        (
            {"twig_toml": ONE, "prompts__one_md": "{% include 'part.md' %}", "part_md": "x\n\n{{ y }}"},
            (
                "part.md",
                3,
                "error",
                "uses 'y', which is not an argument of the prompt 'one' and is always empty",
            ),
        ),
        (
            {"twig_toml": ONE, "prompts__one_md": "x" * (1024 * 1024 + 1)},
            ("prompts/one.md", None, "error", "larger than 1 MiB"),
        ),
        (
            {"twig_toml": ONE, "prompts__one_md": "x", "prompts__two_md": "y"},
            ("prompts/two.md", None, "warning", "not listed in twig.toml and not included by a template"),
        ),
        (
            {"note_md": "---\narguments: [who]\n---\nHello\n{{ whom }}, {{ who }}\n"},
            (
                "note.md",
                5,
                "error",
                "uses 'whom', which is not an argument of the prompt 'note' and is always empty",
            ),
        ),
    ],
)
def test_every_problem_is_found_with_file_and_line(
    tmp_path: Path, files: dict[str, str], expected: tuple[str, int | None, str, str]
) -> None:
    write_library(tmp_path, **files)
    file, line, level, message = expected
    (found,) = problems(tmp_path, 1 if level == "error" else 0)
    assert found[:3] == (file, line, level)
    assert message in found[3]


def test_two_libraries_with_one_name_are_reported(tmp_path: Path) -> None:
    first = write_valid_library(tmp_path)
    write_library(tmp_path, "my-lib", twig_toml=MANIFEST, prompts__review_md=TEMPLATE)
    libraries = run_json(tmp_path, "check", status=1)["libraries"]
    (problem,) = libraries[1]["problems"]
    assert problem["message"] == f"hidden by another library with the name 'my_lib': {first}"


def test_every_file_that_is_skipped_is_explained(tmp_path: Path) -> None:
    folder = write_library(tmp_path, README_md="Read me", note_md="Words", data__x_toml="a = 1")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / "secret").symlink_to("/etc/passwd")
    result = dittybag(tmp_path, "library", "check", "--skipped").stdout.splitlines()
    explained = {line.partition(": ")[0].removeprefix(f"{folder}/") for line in result[:-1]}
    assert explained == {"README.md", "data/x.toml", "picture.png", "secret"}
    assert all(line.partition(": ")[2] for line in result[:-1])


def test_control_characters_in_a_library_are_replaced(tmp_path: Path) -> None:
    evil = 'description = "\\u001b[2J\\u0007 evil"\n'
    write_library(tmp_path, twig_toml=f"[prompts.one]\n{evil}", prompts__one_md="x")
    for command in ("list", "show my_lib", "check"):
        assert "\x1b" not in dittybag(tmp_path, "library", *command.split()).stdout


def test_unreadable_folders_are_listed_and_checked(tmp_path: Path) -> None:
    write_valid_library(tmp_path)
    twig = tmp_path / "twig"
    (twig / "closed").mkdir(parents=True)
    (twig / "closed").chmod(0)
    (twig / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "closed").mkdir(mode=0)
    expected = {
        str(twig / "closed"): "this folder cannot be read: permission denied",
        str(twig / "gone"): "a link to a folder that does not exist",
    }
    for command, status in (("list", 0), ("check", 1)):
        done = unprivileged(tmp_path, twig, "library", command)
        assert done.returncode == status, done
        libraries = data(done)["libraries"]
        assert {item["folder"] for item in libraries if item["problems"]} == set(expected)
    found = {item["folder"]: [one["message"] for one in item["problems"]] for item in libraries}
    assert {folder: messages for folder, messages in found.items() if messages} == {
        folder: [message] for folder, message in expected.items()
    }
    done = unprivileged(tmp_path, tmp_path / "closed", "library", "check")
    problems = [one["message"] for item in data(done)["libraries"] for one in item["problems"]]
    assert problems == ["cannot read this directory of libraries: permission denied"]


def unprivileged(home: Path, twig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command for which file permissions hold, with the libraries of Twig in the folder `twig`."""
    environment = os.environ | {"DITTYBAG_HOME": str(home), "TWIG_DATA_DIR": str(twig)}
    command = [*drop_privileges(), sys.executable, "-m", "dittybag", *arguments, "--json"]
    return subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )


def test_a_linked_folder_that_is_gone_is_reported(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.md").write_text("text")
    dittybag(tmp_path, "library", "add", str(source), "--link", "--name", "mine")
    source.rename(tmp_path / "elsewhere")
    said = dittybag(tmp_path, "library", "check", status=1).stdout
    assert f"{tmp_path}/libraries/mine: error: a link to a folder that does not exist" in said


def test_commands_see_the_libraries_of_twig(tmp_path: Path) -> None:
    twig = tmp_path / "twig"
    folder = write_valid_library(tmp_path / "elsewhere")
    twig.mkdir()
    folder.rename(twig / "theirs")
    (twig / "theirs/prompts/review.md").write_text("A needle: {{ typo }}\n")
    variables = {"TWIG_DATA_DIR": str(twig)}

    def run(*arguments: str, status: int = 0) -> Any:
        return data(dittybag(tmp_path, *arguments, "--json", status=status, variables=variables))

    (listed,) = run("library", "list")["libraries"]
    assert (listed["name"], listed["prompts"], listed["folder"]) == ("theirs", 1, str(twig / "theirs"))
    (checked,) = run("library", "check", status=1)["libraries"]
    assert any("uses 'typo'" in problem["message"] for problem in checked["problems"])
    assert [hit["id"] for hit in run("search", "needle")["hits"]] == ["theirs:review"]
    findings = run("doctor", status=1)["findings"]
    assert any("uses 'typo'" in finding["message"] for finding in findings)
    assert run_json(tmp_path, "list") == {"libraries": []}
    variables = {"DITTYBAG_PROFILE": "twig", "XDG_DATA_HOME": str(tmp_path / "data")}
    (tmp_path / "data/twig").mkdir(parents=True)
    twig.rename(tmp_path / "data/twig/prompts")
    assert [item["name"] for item in run("library", "list")["libraries"]] == ["theirs"]


def test_the_list_counts_the_problems_that_the_check_reports(tmp_path: Path) -> None:
    write_library(
        tmp_path, twig_toml=MANIFEST, prompts__review_md="{{ typo }} {% if %}", prompts__more_md="x"
    )
    checked = run_json(tmp_path, "check", status=1)["libraries"]
    listed = run_json(tmp_path, "list")["libraries"]
    assert [item["problems"] for item in listed] == [len(item["problems"]) for item in checked]
    assert listed[0]["problems"] > 1


def test_the_check_warns_of_variables_in_a_file_without_arguments(tmp_path: Path) -> None:
    text = (
        "---\ntitle: Letter\n---\nUse `{{ code }}`.\n\nDear {{ name }}, {{name}} of {{ company | upper }}\n"
    )
    write_library(
        tmp_path, letter_md=text, plain_md="Only {braces} and {{ two words }}.\n```\n{{ fenced }}\n```\n"
    )
    assert problems(tmp_path, 0) == [
        (
            "letter.md",
            6,
            "warning",
            (
                "{{ name }}, {{ company }} in a file without arguments is plain text; to make arguments of "
                "variables, add to the front matter: arguments: [name, company]"
            ),
        )
    ]
    declared = text.replace("---\nUse", "arguments: [name, company]\n---\nUse")
    write_library(tmp_path, letter_md=declared.replace("{{ code }}", "code"))
    assert problems(tmp_path, 0) == []
