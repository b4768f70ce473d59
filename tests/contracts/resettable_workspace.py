"""A PostgreSQL workspace that can be reset, so that its servers keep running between tests."""

from __future__ import annotations

from typing import Final

from tests.contracts.contract_replay import SharedServers, create_project
from tests.postgres_servers import PostgresServer

#: Disables foreign keys while rows are replaced.
_NO_FOREIGN_KEYS: Final = "SET session_replication_role = replica"


class ResettableWorkspace:
    """A schema, and the servers on it that tests share."""

    def __init__(self, server: PostgresServer, schema: str, project: str | None) -> None:
        """Create the schema. `project`: a project of the initial state, besides the default one."""
        self.url = server.socket_url(schema=schema)
        self.hosts = SharedServers()
        self._server = server
        create_project(self.url, project or "unused")
        tables = server.sql(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'")
        assert {"changes", "counters", "projects", "prompts", "resources", "tasks"} < set(tables)
        initial = f"{schema}_initial"
        copies = (f"CREATE TABLE {initial}.{table} AS TABLE {schema}.{table}" for table in tables)
        server.sql("; ".join([f"CREATE SCHEMA {initial}", *copies]))
        self._reset_sql = "; ".join(
            [_NO_FOREIGN_KEYS]
            + [f"DELETE FROM {schema}.{table}" for table in tables]
            + [
                f"INSERT INTO {schema}.{table} OVERRIDING SYSTEM VALUE TABLE {initial}.{table}"
                for table in tables
            ]
        )

    def reset(self) -> None:
        """Restore the initial state. Running servers notice, as after a restore from a backup."""
        self._server.sql(self._reset_sql)

    def close(self) -> None:
        self.hosts.close()
