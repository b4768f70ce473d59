"""Workspaces with users and tokens, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.accounts.accounts_world import World
from tests.postgres_servers import PostgresServer, run_postgres


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A shared world for tests that do not change users, tokens and members."""
    with World(tmp_path_factory.mktemp("world")) as created:
        yield created


@pytest.fixture(scope="package")
def server() -> Iterator[PostgresServer]:
    """A PostgreSQL server with an ordinary role and a superuser."""
    with run_postgres("bundled") as server:
        server.sql("CREATE ROLE clerk LOGIN")
        server.sql("CREATE DATABASE with_rls OWNER clerk")
        server.sql("CREATE DATABASE without_rls")
        yield server


@pytest.fixture(scope="package")
def rls_world(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A shared world on PostgreSQL with row-level security."""
    with World(tmp_path_factory.mktemp("world"), server.url("with_rls", user="clerk")) as created:
        yield created


@pytest.fixture
def own_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world of its own, for a test that changes users, tokens or members."""
    with World(tmp_path_factory.mktemp("world")) as created:
        yield created
