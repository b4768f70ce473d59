"""A PostgreSQL workspace that can be reset, so that its servers keep running between tests."""

from __future__ import annotations

from tests.contracts.contract_replay import SharedServers, create_project
from tests.pgbouncer_servers import PgBouncer
from tests.postgres_servers import PostgresServer
from tests.schema_snapshot import SchemaSnapshot


class ResettableWorkspace:
    """A schema, and the servers on it that tests share."""

    def __init__(
        self, server: PostgresServer, schema: str, project: str | None, pooler: PgBouncer | None = None
    ) -> None:
        """Create the schema. `project`: a project of the initial state, besides the default one."""
        self.url = (
            server.socket_url(schema=schema)
            if pooler is None
            else pooler.url(schema=schema, direct=pooler.direct)
        )
        self.hosts = SharedServers()
        self._server = server
        create_project(self.url, project or "unused")
        snapshot = SchemaSnapshot(server, schema)
        assert {"changes", "counters", "projects", "prompts", "resources", "tasks"} < snapshot.tables
        self._restore_sql = snapshot.restore_sql

    def reset(self) -> None:
        """Restore the initial state. Running servers notice, as after a restore from a backup."""
        self._server.sql(self._restore_sql)

    def close(self) -> None:
        self.hosts.close()
