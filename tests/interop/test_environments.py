"""Making the environments of the official clients, as far as it needs no network."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from tests.interop import environments
from tests.interop.environments import CONFORMANCE, PYTHON_1, TYPESCRIPT_1, Environment, SetupFailed


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(environments, "CACHE", tmp_path)
    # What cannot be fetched makes an installation fail, here on purpose.
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return tmp_path


def test_a_finished_environment_is_left_alone(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PYTHON_1.home.mkdir()
    (PYTHON_1.home / environments.STAMP).write_text(PYTHON_1.stamp)
    environments.make(PYTHON_1)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("environment", [PYTHON_1, TYPESCRIPT_1], ids=lambda one: one.name)
def test_other_versions_make_an_environment_count_as_missing(cache: Path, environment: Environment) -> None:
    environment.home.mkdir()
    (environment.home / environments.STAMP).write_text(environment.stamp)
    newer = msgspec.structs.replace(environment, pins=dict.fromkeys(environment.pins, "99.0"))
    assert environment.is_made
    assert not newer.is_made


def test_a_failed_installation_says_why_and_leaves_nothing_behind(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SetupFailed, match="mcp"):
        environments.make(PYTHON_1)
    assert capsys.readouterr().out == f"Making the environment for {PYTHON_1.title} ...\n"
    assert list(cache.iterdir()) == []


def test_a_failed_set_up_is_an_error_with_a_hint(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert environments.main() == 1
    complaint = capsys.readouterr().err
    assert complaint.startswith("error: the environment for the MCP Python SDK")
    assert "\nhint: " in complaint


def test_only_the_environments_that_were_named_are_made(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    CONFORMANCE.home.mkdir()
    (CONFORMANCE.home / environments.STAMP).write_text(CONFORMANCE.stamp)
    assert environments.main("conformance") == 0
    assert capsys.readouterr() == ("", "")


def test_what_an_interrupted_run_left_is_taken_away_and_a_running_one_kept(cache: Path) -> None:
    beyond_every_process = 2**31 - 1
    dead = cache / f".python-1.{beyond_every_process}"
    alive = cache / f".python-1.{os.getpid()}"
    for path in (dead, alive, cache / "python-1"):
        (path / "bin").mkdir(parents=True)
    environments.clear_leftovers()
    assert {path.name for path in cache.iterdir()} == {alive.name, "python-1"}
