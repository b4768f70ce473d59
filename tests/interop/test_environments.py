"""Installing the environments of the official clients, as far as no network is needed."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from tests.interop import environments
from tests.interop.environments import CONFORMANCE, PYTHON_1, TYPESCRIPT_1, Environment, SetupFailed
from tests.interop.outdated import find_outdated


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(environments, "CACHE", tmp_path)
    # Without an index, every installation fails.
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return tmp_path


def test_an_installed_environment_is_not_reinstalled(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PYTHON_1.home.mkdir()
    (PYTHON_1.home / environments.STAMP).write_text(PYTHON_1.stamp)
    environments.install(PYTHON_1)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("environment", [PYTHON_1, TYPESCRIPT_1], ids=lambda environment: environment.name)
def test_an_environment_with_other_versions_is_not_installed(cache: Path, environment: Environment) -> None:
    environment.home.mkdir()
    (environment.home / environments.STAMP).write_text(environment.stamp)
    newer = msgspec.structs.replace(environment, pins=dict.fromkeys(environment.pins, "99.0"))
    assert environment.is_installed
    assert not newer.is_installed


def test_a_failed_installation_reports_the_reason_and_leaves_no_files(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SetupFailed, match="mcp"):
        environments.install(PYTHON_1)
    assert capsys.readouterr().out == f"Installing {PYTHON_1.title} ...\n"
    assert list(cache.iterdir()) == []


def test_a_failed_installation_is_an_error_with_a_hint(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert environments.main("python-1", "python-2") == 1
    message = capsys.readouterr().err
    assert message.startswith("error: could not install the MCP Python SDK")
    assert "\nhint: " in message


def test_only_the_named_environments_are_installed(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    CONFORMANCE.home.mkdir()
    (CONFORMANCE.home / environments.STAMP).write_text(CONFORMANCE.stamp)
    assert environments.main("conformance") == 0
    assert capsys.readouterr() == ("", "")


def test_a_pin_is_outdated_if_its_generation_has_a_newer_version() -> None:
    released = {
        "mcp": ["1.30.0", "1.31.0", "1.32.0rc1", "2.0.0"],
        "@modelcontextprotocol/conformance": ["0.1.16", "0.2.0-alpha.12", "0.2.0-alpha.13", "not-a-version"],
        "@modelcontextprotocol/sdk": [TYPESCRIPT_1.pins["@modelcontextprotocol/sdk"]],
    }
    pinned = [msgspec.structs.replace(PYTHON_1, pins={"mcp": "1.30.0"}), CONFORMANCE, TYPESCRIPT_1]
    pinned[1] = msgspec.structs.replace(CONFORMANCE, pins=dict.fromkeys(CONFORMANCE.pins, "0.2.0-alpha.12"))
    found = list(find_outdated(pinned, lambda language, package: released[package]))
    assert found == [
        ("mcp", "1.30.0", "1.31.0"),
        ("@modelcontextprotocol/conformance", "0.2.0-alpha.12", "0.2.0a13"),
    ]


def test_the_build_of_an_interrupted_run_is_removed_and_that_of_a_running_one_is_kept(cache: Path) -> None:
    unused_pid = 2**31 - 1
    dead = cache / f".python-1.{unused_pid}"
    alive = cache / f".python-1.{os.getpid()}"
    for path in (dead, alive, cache / "python-1"):
        (path / "bin").mkdir(parents=True)
    environments.remove_stale_builds()
    assert {path.name for path in cache.iterdir()} == {alive.name, "python-1"}
