"""One fleet for all tests, with a user whose tokens the clients have."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fleet import nginx
from tests.fleet.fleet import Fleet, running

USER = "alice"


@pytest.fixture(scope="session")
def nginx_program() -> str:
    """Where nginx is. Tests that need it are skipped without it, but not where all are to be run."""
    return nginx.program()


@pytest.fixture(scope="session")
def fleet(nginx_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with running(tmp_path_factory.mktemp("fleet")) as fleet:
        fleet.command("user", "add", USER)
        yield fleet


@pytest.fixture(scope="session")
def tokens(fleet: Fleet) -> list[str]:
    """Some, each of which is good for so many requests a second."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda _: fleet.token(USER), range(6)))


@pytest.fixture(scope="session")
def token(tokens: list[str]) -> str:
    return tokens[0]
