"""Worlds for the tests of accounts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.accounts.world import World
from tests.databases import Server, running


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One for all tests that leave users, tokens and members as they are."""
    with World(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.fixture(scope="package")
def server() -> Iterator[Server]:
    """A PostgreSQL with a role that is as ordinary as it should be, and one that is not."""
    with running("carried") as server:
        server.sql("CREATE ROLE clerk LOGIN")
        server.sql("CREATE DATABASE guarded OWNER clerk")
        server.sql("CREATE DATABASE unguarded")
        yield server


@pytest.fixture(scope="package")
def guarded_world(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One on PostgreSQL, for all tests that leave users, tokens and members as they are."""
    with World(tmp_path_factory.mktemp("world"), server.url("guarded", user="clerk")) as made:
        yield made


@pytest.fixture
def own_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One for a test that does not."""
    with World(tmp_path_factory.mktemp("world")) as made:
        yield made
