"""Isolates all tests from the user's own data and marks the tests that must run alone."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.pgbouncer_servers import PgBouncer, run_pgbouncer
from tests.postgres_servers import PostgresServer, run_postgres

#: Tests that bound how long something takes, and fail if other tests use the processors meanwhile.
_ALONE: Final = (
    "tests/e2e/test_live_updates.py",
    "tests/library/render/test_worker_pool.py",
    "tests/torture/test_bombs.py",
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import modules only to deselect their tests."""
    expression = config.option.markexpr
    if expression not in ("alone", "not alone") or collection_path.is_dir():
        return None
    is_alone = collection_path.relative_to(config.rootpath).as_posix() in _ALONE
    return None if is_alone == (expression == "alone") else True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage neither while tests are collected nor, later, among the thousands of them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(_ALONE):
            item.add_marker(pytest.mark.alone)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    return (yield from _skip_without_proc())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    return (yield from _skip_without_proc())


def _skip_without_proc() -> Generator[None, None, None]:
    """Skip a test that reads files about processes where only Linux has them."""
    try:
        return (yield)
    except FileNotFoundError as error:
        if sys.platform != "linux" and str(error.filename).startswith("/proc/"):
            pytest.skip("needs /proc of Linux")
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report tests that are skipped for the same reason in one line, wherever they are."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple):
        _, _, reason = report.longrepr
        report.longrepr = (str(Path(__file__).parent), None, reason)  # type: ignore[assignment]
    return report


@pytest.fixture(scope="session")
def shared_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server without pg_trgm. Tests share it, and use schemas or databases of their own."""
    with run_postgres("bundled") as server:
        yield server


@pytest.fixture(scope="session")
def shared_postgres_with_trigrams() -> Iterator[PostgresServer]:
    """Likewise, with pg_trgm."""
    with run_postgres("installed") as server:
        yield server


@pytest.fixture(scope="session")
def shared_pgbouncer(shared_postgres: PostgresServer) -> Iterator[PgBouncer]:
    """A PgBouncer with few connections to the server, which clients therefore share."""
    with run_pgbouncer(shared_postgres, connections=4) as pooler:
        yield pooler


@pytest.fixture(scope="session")
def shared_pgbouncer_with_trigrams(shared_postgres_with_trigrams: PostgresServer) -> Iterator[PgBouncer]:
    with run_pgbouncer(shared_postgres_with_trigrams, connections=4) as pooler:
        yield pooler


@pytest.fixture(autouse=True, scope="session")
def _isolated_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide the user's own prompts, libraries and settings from the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DITTYBAG_HOME", str(tmp_path_factory.mktemp("dittybag")))
        # A new process would make one for nearly every test.
        patch.setenv("DITTYBAG_AUTO_BACKUP", "off")
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        for variable in ("DITTYBAG_PROFILE", "DITTYBAG_PROJECT", "DITTYBAG_DATABASE_URL", "TWIG_DATA_DIR"):
            patch.delenv(variable, raising=False)
        yield
