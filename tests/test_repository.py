"""The workflows of the repository agree with the Makefile and the package."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]  # its types are a separate package

from tests.stdio_server_process import ROOT

WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs(workflow: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(workflow.read_text())["jobs"]
    return loaded


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_job_is_bounded_and_every_action_is_pinned_to_a_commit(workflow: Path) -> None:
    for job in jobs(workflow).values():
        assert job["timeout-minutes"] <= 360
        assert "permissions" in job
    used = re.findall(r"uses: (.*)", workflow.read_text())
    assert used
    for action in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[0-9.]+", action), action


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_only_existing_make_targets(workflow: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    called = set(re.findall(r"run: make (\w+)", workflow.read_text()))
    for job in jobs(workflow).values():
        called |= set(job.get("strategy", {}).get("matrix", {}).get("target", []))
    assert called
    for target in called:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_checks_run_on_every_supported_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line]
    checked = jobs(ROOT / ".github" / "workflows" / "checks.yml")["linux"]["strategy"]["matrix"]["python"]
    assert checked == listed
    assert project["requires-python"] == f">={checked[0]}"
