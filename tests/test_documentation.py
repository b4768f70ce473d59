"""What the documentation says is true: commands run, code works, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from dittybag.cli.serve import USAGE
from tests.wire import ROOT

#: The contracts stand unchanged, with links into the repositories they come from.
HIDDEN = re.compile(r"(^|/)(\.|node_modules/)|^tests/contracts/")
PAGES = [page for page in sorted(ROOT.rglob("*.md")) if not HIDDEN.search(page.relative_to(ROOT).as_posix())]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def make_targets(text: str) -> list[str]:
    return re.findall(r"^make (\w+)", text, re.MULTILINE)


def test_the_readmes_commands_are_what_ci_runs() -> None:
    newcomer = [target for block in blocks(ROOT / "README.md", "sh") for target in make_targets(block)]
    contributor = [
        target for block in blocks(ROOT / "CONTRIBUTING.md", "sh") for target in make_targets(block)
    ]
    assert newcomer == ["run", "test"]
    assert contributor == ["check"]
    # `make check` ends with `make test`.
    assert make_targets((ROOT / ".ci" / "run").read_text()) == ["run", "check"]
    assert "$(MAKE) --no-print-directory test" in (ROOT / "Makefile").read_text()


def test_the_tour_runs_to_its_end() -> None:
    command = [sys.executable, "-m", "dittybag", "demo"]
    tour = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    for words in ("code-review", "no such table: users", "contains invalid", "undone", "mcpServers"):
        assert words in tour


@pytest.mark.parametrize("target", ["run", "test", "check", "conformance", "format", "bench", "torture"])
def test_make_lists_its_targets(target: str) -> None:
    listing = subprocess.run(
        ["make"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    ).stdout
    assert re.search(rf"^{target} ", listing, re.MULTILINE)


def test_the_readmes_error_is_what_the_tool_says() -> None:
    from dittybag.domain.errors import Invalid
    from dittybag.domain.prompts import problems

    said = f"Error: {Invalid(list(problems(name='my prompt', content='')))}"
    assert f"\n{said}\n" in (ROOT / "README.md").read_text()


def test_every_setting_is_documented() -> None:
    code = (ROOT / "src" / "dittybag" / "config.py").read_text()
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    for variable in set(re.findall(r"DITTYBAG_[A-Z_]+", code)):
        assert f"`{variable}`" in page, variable
    for option in re.findall(r"^  (--[a-z-]+)", USAGE, re.MULTILINE):
        assert option in page, option


def test_the_guides_code_is_a_server_that_works(tmp_path: Path) -> None:
    program = tmp_path / "kitchen.py"
    program.write_text("\n".join(blocks(ROOT / "docs" / "guides" / "engine.md", "python")))
    requests = [
        ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}}),
        ("tools/call", {"name": "take", "arguments": {"ingredient": "sugar", "grams": 150}}),
        ("tools/call", {"name": "take", "arguments": {"ingredient": "sugar"}}),
        ("tools/call", {"name": "check", "arguments": {"ingredient": "flour", "size": "large"}}),
        ("resources/read", {"uri": "kitchen://cupboard/sugar"}),
        ("prompts/get", {"name": "recipe", "arguments": {"dish": "cake"}}),
        ("tools/call", {"name": "bake", "arguments": {"minutes": 1}}),
    ]
    frames = [
        msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(requests)
    ]
    ran = subprocess.run(
        [sys.executable, str(program)], input=b"\n".join(frames), capture_output=True, timeout=30, check=True
    )
    answers = {
        answer["id"]: answer for answer in map(msgspec.json.decode, ran.stdout.splitlines()) if "id" in answer
    }
    assert answers[1]["result"]["content"][0]["text"] == "Took 150 g of sugar"
    assert answers[2]["result"]["isError"] is True
    assert answers[3]["result"]["structuredContent"] == {"grams": 500, "enough": True}
    assert answers[4]["result"]["contents"][0]["text"] == "50 g"
    assert "flour, sugar" in answers[5]["result"]["messages"][0]["content"]["text"]
    assert "elicitation" in answers[6]["result"]["content"][0]["text"]


def test_the_commands_of_the_first_guide_do_what_they_say(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "dittybag"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dittybag "$@"\n')
    program.chmod(0o755)
    script = "\n".join(blocks(ROOT / "docs" / "guides" / "five-minutes.md", "sh"))
    environment = {
        "PATH": f"{folder}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT / "src"),
    }
    done = subprocess.run(
        ["sh", "-e"],
        input=script,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Explain this SQL error in plain words: no such table: users" in done.stdout
    assert '"dittybag"' in (tmp_path / ".claude.json").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_command_says_what_it_is() -> None:
    run = [sys.executable, "-m", "dittybag"]
    version = subprocess.run(
        [*run, "--version"], capture_output=True, text=True, timeout=30, check=True
    ).stdout
    assert version == "dittybag 0.1.0\n"
    told = subprocess.run([*run, "--help"], capture_output=True, text=True, timeout=30, check=True).stdout
    assert "Usage: dittybag" in told
    wrong = subprocess.run([*run, "dance"], capture_output=True, text=True, timeout=30, check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "No such command 'dance'" in wrong.stderr
