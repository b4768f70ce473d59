"""The documentation is correct: commands run, code works, links resolve."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dittybag import __version__
from dittybag.cli.serve import OPTIONS
from tests import tested_page
from tests.proofs import found_repetitions
from tests.stdio_server_process import ROOT
from tests.torture.bombs import FILE_BOMBS, TEMPLATE_BOMBS

#: The contracts are verbatim copies, with links into their original repositories.
EXCLUDED = re.compile(r"(^|/)(\.|node_modules/)|^site/|^tests/contracts/")


def _pages(folder: Path) -> Iterator[Path]:
    """Yield the pages below a folder. Excluded folders, which have many files, are not read."""
    for path in folder.iterdir():
        if EXCLUDED.search(f"{path.relative_to(ROOT).as_posix()}{'/' if path.is_dir() else ''}"):
            continue
        if path.is_dir():
            yield from _pages(path)
        elif path.suffix == ".md":
            yield path


PAGES = sorted(_pages(ROOT))
#: What a bug report says about an installation.


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}(?: not-run=[^\n]*)?\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE
    )


def make_targets(text: str) -> list[str]:
    return re.findall(r"^make (\w+)", text, re.MULTILINE)


def test_ci_runs_the_commands_of_the_readme() -> None:
    newcomer = [target for block in blocks(ROOT / "README.md", "sh") for target in make_targets(block)]
    contributor = [
        target for block in blocks(ROOT / "CONTRIBUTING.md", "sh") for target in make_targets(block)
    ]
    assert newcomer == ["run", "test"]
    assert contributor == ["check"]
    # `make check` ends with `make test`.
    assert make_targets((ROOT / ".ci" / "run").read_text()) == ["run", "check"]
    assert "$(MAKE) --no-print-directory test" in (ROOT / "Makefile").read_text()


def test_the_demo_command_completes() -> None:
    command = [sys.executable, "-m", "dittybag", "demo"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert "claude-code undoes it" in done.stdout


@pytest.mark.parametrize(
    "target", ["run", "test", "check", "conformance", "format", "bench", "torture", "release"]
)
def test_make_lists_its_targets(target: str) -> None:
    listing = subprocess.run(
        ["make"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    ).stdout
    assert re.search(rf"^{target} ", listing, re.MULTILINE)


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


def test_the_command_reports_its_version_and_usage() -> None:
    run = [sys.executable, "-m", "dittybag"]
    version = subprocess.run(
        [*run, "--version"], capture_output=True, text=True, timeout=30, check=True
    ).stdout
    assert version == f"dittybag {__version__}\n"
    usage = subprocess.run([*run, "--help"], capture_output=True, text=True, timeout=30, check=True).stdout
    assert "Usage: dittybag" in usage
    wrong = subprocess.run([*run, "dance"], capture_output=True, text=True, timeout=30, check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "error: Unknown command 'dance'" in wrong.stderr


def test_the_page_about_the_tests_is_current() -> None:
    assert tested_page.PAGE.read_text() == tested_page.page()


def test_the_readme_and_the_security_page_quote_the_numbers_of_the_tests() -> None:
    kills = found_repetitions("tests/torture/test_kills.py")["KILLS"]
    frames = found_repetitions("tests/torture/test_malformed_frames.py")["FRAMES"]
    requests = found_repetitions("tests/torture/test_hostile_http_clients.py")["REQUESTS"]
    readme, security = ((ROOT / name).read_text() for name in ("README.md", "SECURITY.md"))
    assert f"{kills[0]} kills during concurrent writes in every test run, {kills[1]:,} in" in readme
    assert f"{kills[0]} SIGKILLs" in security
    assert f"{frames[0]:,} malformed frames" in security
    assert f"{requests[0]:,} malformed requests" in security
    for count, what in ((len(TEMPLATE_BOMBS), "template bombs"), (len(FILE_BOMBS), "file bombs")):
        assert f"{count} {what}" in security
