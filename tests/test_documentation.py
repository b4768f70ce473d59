"""The documentation is correct: commands run, code works, links resolve."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from dittybag.cli.serve import OPTIONS
from tests.conformance.__main__ import RUNS
from tests.interop.environments import CLIENTS, CONFORMANCE
from tests.stdio_server_process import ROOT
from tests.test_guides import blocks
from tests.torture.bombs import FILE_BOMBS, TEMPLATE_BOMBS

LISTED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=True,
).stdout.splitlines()
#: The contracts are verbatim copies, with links into their original repositories.
PAGES = [ROOT / name for name in LISTED if not name.startswith("tests/contracts/") and (ROOT / name).exists()]


def make_targets(text: str) -> list[str]:
    return re.findall(r"^make (\w+)", text, re.MULTILINE)


def test_ci_runs_the_commands_of_the_readme() -> None:
    newcomer, contributor = (
        [target for info, code in blocks(page) if info.startswith("sh") for target in make_targets(code)]
        for page in ("README.md", "CONTRIBUTING.md")
    )
    assert newcomer == ["run", "test"]
    assert contributor == ["check"]
    # `make check` ends with `make test`.
    assert make_targets((ROOT / ".ci" / "run").read_text()) == ["run", "check"]
    assert "$(MAKE) --no-print-directory test" in (ROOT / "Makefile").read_text()


def test_make_lists_its_targets() -> None:
    listing = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True)
    listed = re.findall(r"^(\w+) +\w", listing.stdout, re.MULTILINE)
    assert set(listed) >= {"run", "test", "check", "conformance", "format", "bench", "torture", "release"}


def test_the_error_in_the_readme_is_the_tools_error() -> None:
    from dittybag.domain.errors import Invalid
    from dittybag.domain.prompts import problems

    message = f"Error: {Invalid(list(problems(name='my prompt', content='')))}"
    assert f"\n{message}\n" in (ROOT / "README.md").read_text()


def test_every_setting_is_documented() -> None:
    code = (ROOT / "src" / "dittybag" / "config.py").read_text()
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    for variable in set(re.findall(r"DITTYBAG_[A-Z_]+", code)):
        assert f"`{variable}`" in page, variable
    for option, _, _ in OPTIONS:
        assert option in page, option


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_within_the_repository_resolve(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def repetitions(file: Path) -> set[tuple[int, int]]:
    """Return how often a file of tests repeats something, in `make test` and in `make torture`."""
    calls = re.findall(r"\brepetitions\(([\d_]+), ([\d_]+)\)", file.read_text())
    return {(int(usual), int(full)) for usual, full in calls}


def leading_numbers(cell: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"(?:^|, )([\d,]+) ", cell)]


def test_the_page_about_the_tests_has_their_numbers() -> None:
    page = ROOT / "docs" / "develop" / "tested.md"
    text = page.read_text()
    rows = re.findall(r"^\| [^|]*\]\((\S+)\) \| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    assert len(rows) > 15
    backends = repetitions(ROOT / "tests" / "storage_contract" / "backends.py")
    for file, usual, full in rows:
        shown = set(zip(leading_numbers(usual), leading_numbers(full), strict=True))
        found = repetitions(page.parent / file) or backends
        assert shown, file
        assert shown <= found, file
    for run in RUNS:
        minimum = run.minimum
        row = f"| {run.server} | `{run.options}` | {minimum.scenarios} | {minimum.checks} |"
        assert row in text, row
    for environment in (*CLIENTS, CONFORMANCE):
        assert environment.title in text


def test_the_readme_and_the_security_page_quote_the_numbers_of_the_tests() -> None:
    folder = ROOT / "tests" / "torture"
    readme, security = ((ROOT / name).read_text() for name in ("README.md", "SECURITY.md"))
    kills = r"(\d+) kills during concurrent writes in every test run, ([\d,]+) in `make torture`"
    for file, pattern, page in (
        ("test_kills.py", kills, readme),
        ("test_kills.py", r"(\d+) SIGKILLs", security),
        ("test_malformed_frames.py", r"([\d,]+) malformed frames", security),
        ("test_hostile_http_clients.py", r"([\d,]+) malformed requests", security),
    ):
        (quoted,) = re.findall(pattern, page)
        numbers = [quoted] if isinstance(quoted, str) else quoted
        shown = tuple(int(number.replace(",", "")) for number in numbers)
        assert shown in {found[: len(shown)] for found in repetitions(folder / file)}, (file, shown)
    for count, what in ((len(TEMPLATE_BOMBS), "template bombs"), (len(FILE_BOMBS), "file bombs")):
        assert f"{count} {what}" in security
