"""Workspaces with users and tokens, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import pgbouncer_servers
from tests.accounts.accounts_world import World
from tests.pgbouncer_servers import PgBouncer
from tests.postgres_servers import PostgresServer


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A shared world for tests that do not change users, tokens and members."""
    with World(tmp_path_factory.mktemp("world")) as created:
        yield created


@pytest.fixture(scope="session")
def server(shared_postgres: PostgresServer) -> PostgresServer:
    """A PostgreSQL server with an ordinary role and a superuser."""
    shared_postgres.sql("CREATE ROLE clerk LOGIN")
    shared_postgres.sql("CREATE DATABASE with_rls OWNER clerk")
    shared_postgres.sql("CREATE DATABASE without_rls")
    return shared_postgres


@pytest.fixture(scope="session")
def rls_world(
    request: pytest.FixtureRequest, server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """A shared world on PostgreSQL with row-level security."""
    front: PostgresServer | PgBouncer = server
    if pgbouncer_servers.IS_WANTED:
        front = request.getfixturevalue("shared_pgbouncer")
    with World(tmp_path_factory.mktemp("world"), front.url("with_rls", user="clerk")) as created:
        yield created


@pytest.fixture
def own_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world of its own, for a test that changes users, tokens or members."""
    with World(tmp_path_factory.mktemp("world")) as created:
        yield created
