"""Fixtures: one fleet for all tests, and tokens of a user."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fleet import nginx_process
from tests.fleet.server_fleet import Fleet, run_fleet

USER = "alice"


@pytest.fixture(scope="session")
def nginx_program() -> str:
    """The path of nginx. Without it, tests that need it are skipped, except where all tests must run."""
    return nginx_process.find_nginx()


@pytest.fixture(scope="session")
def fleet(nginx_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with run_fleet(tmp_path_factory.mktemp("fleet")) as fleet:
        fleet.command("user", "add", USER)
        yield fleet


@pytest.fixture(scope="session")
def tokens(fleet: Fleet) -> list[str]:
    """Several tokens, because each has a rate limit."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda _: fleet.token(USER), range(6)))


@pytest.fixture(scope="session")
def token(tokens: list[str]) -> str:
    return tokens[0]
