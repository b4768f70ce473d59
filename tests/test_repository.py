"""The workflows of the repository are valid, and agree with the Makefile and the package."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]  # its types are a separate package

from tests.interop.environments import WORKFLOWS as LANGUAGE_SERVICE
from tests.package import release
from tests.programs import skip_unless_ci
from tests.stdio_server_process import ROOT
from tests.workflow_checks import GITHUB, find_problems, scripts

WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs(workflow: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(workflow.read_text())["jobs"]
    return loaded


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
        loaded = yaml.safe_load(workflow.read_text())
        for script in scripts(loaded):
            targets |= set(re.findall(r"^make (\w+)", script, re.MULTILINE))
            modules |= set(re.findall(r"python3? -m (tests[\w.]+)", script))
        for job in loaded["jobs"].values():
            targets |= set(job.get("strategy", {}).get("matrix", {}).get("target", []))
    assert targets >= {"check", "docs", "packages", "dist", "bundle", "torture", "bugs"}
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    assert modules == {"tests.package.versions", "tests.package.changelog", "tests.package.plugins"}
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


def test_the_release_guide_names_every_job_and_target_and_ends_in_the_command() -> None:
    guide = (ROOT / "docs" / "develop" / "release.md").read_text()
    table = guide.partition("## What the workflow does")[2]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(
        jobs(GITHUB / "workflows" / "release.yml")
    )
    assert f"| `make {' '.join(release.TARGETS)}` |" in guide
    assert guide.endswith("make release VERSION=0.3.0 PUSH=1\n```\n")


def test_the_bug_form_asks_for_what_a_report_needs() -> None:
    form = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / "bug.yml").read_text())
    required = {
        field["attributes"]["label"] for field in form["body"] if field.get("validations", {}).get("required")
    }
    assert "Output of `dittybag doctor`" in required
    assert "`dittybag doctor`" in (ROOT / "SECURITY.md").read_text()


@pytest.fixture
def _language_service() -> None:
    if not LANGUAGE_SERVICE.is_installed:
        skip_unless_ci(f"needs {LANGUAGE_SERVICE.title} (make workflows)")


@pytest.mark.usefixtures("_language_service")
def test_the_checkers_find_no_problem() -> None:
    assert find_problems(GITHUB) == []


#: A file, text in it, what to write instead, and what the checkers say.
INVALID: Final = [
    ("workflows/checks.yml", "runs-on: macos-15", "run-on: macos-15", "Unexpected value 'run-on'"),
    ("workflows/docs.yml", "needs: build", "needs: built", "depends on unknown job 'built'"),
    ("workflows/docs.yml", "steps.deployment.outputs", "steps.deploy.outputs", "might be invalid: deploy"),
    ("workflows/packages.yml", "done\n", "\n", "syntax error: unexpected end of file"),
    ("workflows/scheduled.yml", "timeout-minutes: 350", "timeout-minutes: long", "$.jobs.long"),
    ("dependabot.yml", "interval: weekly", "interval: often", "'often' is not one of"),
    ("ISSUE_TEMPLATE/bug.yml", "type: textarea", "type: text", "ISSUE_TEMPLATE/bug.yml: $.body[0]"),
    ("ISSUE_TEMPLATE/config.yml", "blank_issues_enabled: ", "blank_issues: ", "ISSUE_TEMPLATE/config.yml: $"),
]
INSECURE: Final = [
    ("workflows/checks.yml", "persist-credentials: false", "fetch-depth: 1", "artipacked"),
    ("workflows/release.yml", "${GITHUB_REF_NAME#v}", "${{ github.ref_name }}", "template-injection"),
    ("workflows/release.yml", "permissions: {}", "permissions: write-all", "excessive-permissions"),
    ("workflows/scheduled.yml", "@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1", "@v7", "unpinned-uses"),
    ("dependabot.yml", "cooldown: {default-days: 7}", "", "dependabot-cooldown"),
]


# All in one copy, because the start of the checkers takes longest. zizmor reads valid files only.
@pytest.mark.parametrize("breaks", [INVALID, INSECURE], ids=["invalid", "insecure"])
@pytest.mark.usefixtures("_language_service")
def test_the_checkers_find_every_planted_problem(
    breaks: list[tuple[str, str, str, str]], tmp_path: Path
) -> None:
    folder = tmp_path / ".github"
    shutil.copytree(GITHUB, folder)
    for name, right, wrong, _ in breaks:
        text = (folder / name).read_text()
        assert right in text, (name, right)
        (folder / name).write_text(text.replace(right, wrong))
    found = "\n".join(find_problems(folder))
    assert [expected for *_, expected in breaks if expected not in found] == [], found
