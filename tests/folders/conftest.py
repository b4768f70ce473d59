"""Fixtures of the tests of projects."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres_servers import PostgresServer


@pytest.fixture
def postgres_url(shared_postgres: PostgresServer) -> Iterator[str]:
    """A schema of its own, in a URL with a password."""
    shared_postgres.sql("CREATE SCHEMA folders")
    yield shared_postgres.url(password="hidden", schema="folders")
    shared_postgres.sql("DROP SCHEMA folders CASCADE")
