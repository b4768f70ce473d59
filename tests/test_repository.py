"""The workflows of the repository are valid, and agree with the Makefile and the package."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]  # its types are a separate package

from tests.stdio_server_process import ROOT

GITHUB: Final = ROOT / ".github"
WORKFLOWS: Final = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS: Final = GITHUB / "ISSUE_TEMPLATE"
CONFIG: Final = FORMS / "config.yml"


def jobs(workflow: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(workflow.read_text())["jobs"]
    return loaded


def scripts(workflow: Path) -> Iterator[str]:
    """Yield the scripts of all steps."""
    for job in jobs(workflow).values():
        yield from (step["run"] for step in job.get("steps", []) if "run" in step)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_job_is_bounded_and_every_action_is_pinned_to_a_commit(workflow: Path) -> None:
    for job in jobs(workflow).values():
        assert "permissions" in job
        # A workflow that is called bounds its own jobs.
        assert "uses" in job or job["timeout-minutes"] <= 360
    used = re.findall(r"uses: (.*)", workflow.read_text())
    assert used
    for action in used:
        if action.startswith("$/"):
            assert (ROOT / action.removeprefix("$/")).is_file(), action
        else:
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[0-9.]+", action), action


def test_every_action_has_one_version() -> None:
    used = re.findall(r"uses: ([\w./-]+)@(.*)", "".join(file.read_text() for file in WORKFLOWS))
    assert len({action for action, _ in used}) == len(set(used)) > 8


def test_workflows_call_only_existing_make_targets_and_modules() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets: set[str] = set()
    modules: set[str] = set()
    for workflow in WORKFLOWS:
        for script in scripts(workflow):
            targets |= set(re.findall(r"^make (\w+)", script, re.MULTILINE))
            modules |= set(re.findall(r"python3? -m (tests[\w.]+)", script))
        for job in jobs(workflow).values():
            targets |= set(job.get("strategy", {}).get("matrix", {}).get("target", []))
    assert targets >= {"check", "docs", "packages", "dist", "bundle", "torture", "bugs"}
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    assert modules == {"tests.package.versions", "tests.package.plugins"}
    for module in modules:
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), module


def test_the_checks_run_on_every_supported_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line]
    checked = jobs(ROOT / ".github" / "workflows" / "checks.yml")["linux"]["strategy"]["matrix"]["python"]
    assert checked == listed
    assert project["requires-python"] == f">={checked[0]}"


def test_only_a_tag_of_a_version_publishes() -> None:
    file = GITHUB / "workflows" / "release.yml"
    # YAML 1.1 reads `on` as true.
    assert yaml.safe_load(file.read_text())[True] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}
    rights = {
        (workflow.name, name, right)
        for workflow in WORKFLOWS
        for name, job in jobs(workflow).items()
        for right, level in job["permissions"].items()
        if level == "write"
    }
    pages = {("docs.yml", "deploy", "pages"), ("docs.yml", "deploy", "id-token")}
    assert {name for name, _, _ in rights - pages} == {file.name}
    # Everything that others can see waits for the approval of the environment, or for a job that does.
    published = jobs(file)
    assert published["index"]["environment"] == "package-index"
    for name, job in published.items():
        needed = job.get("needs", [])
        assert name in {"verify", "checks", "packages", "attest", "index"} or "index" in needed, name
    assert {"verify", "checks", "packages"} == set(published["attest"]["needs"])


def test_the_release_guide_names_every_job() -> None:
    guide = (ROOT / "docs" / "develop" / "release.md").read_text()
    table = guide.partition("## What the workflow does")[2]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(
        jobs(GITHUB / "workflows" / "release.yml")
    )


def test_the_bug_form_asks_for_what_a_report_needs() -> None:
    form = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / "bug.yml").read_text())
    required = {
        field["attributes"]["label"] for field in form["body"] if field.get("validations", {}).get("required")
    }
    assert "Output of `dittybag doctor`" in required
    assert "`dittybag doctor`" in (ROOT / "SECURITY.md").read_text()


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", WORKFLOWS),
        ("dependabot", [GITHUB / "dependabot.yml"]),
        ("github-issue-config", [CONFIG]),
        ("github-issue-forms", [file for file in FORMS.glob("*.yml") if file != CONFIG]),
    ],
)
def test_every_file_follows_its_schema(schema: str, files: list[Path]) -> None:
    run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *files)


def test_the_workflows_are_secure() -> None:
    options = ("--offline", "--no-config", "--strict-collection", "--persona=pedantic", "--collect=all")
    run(Path(sys.executable).with_name("zizmor"), *options, ROOT)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_the_scripts_of_workflows_have_valid_syntax(workflow: Path) -> None:
    for script in scripts(workflow):
        run("bash", "-n", stdin=re.sub(r"\$\{\{.*?\}\}", "expression", script))


def run(program: str | Path, *arguments: str | Path, stdin: str = "") -> None:
    """Run a checker, which must find nothing."""
    command = [str(program), *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
