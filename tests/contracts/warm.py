"""Workspaces in PostgreSQL that are put back to their beginning, so that servers on them can stay."""

from __future__ import annotations

from typing import Final

from tests.contracts.replay import Hosts, create_project
from tests.databases import Server

#: Whatever refers to rows that are away for a moment.
_WITHOUT_REFERENCES: Final = "SET session_replication_role = replica"


class WarmWorkspace:
    """A schema, and the servers that serve it from test to test."""

    def __init__(self, server: Server, schema: str, project: str | None) -> None:
        """Make it. `project`: one that is there from the beginning, beside the default one."""
        self.url = server.socket_url(schema=schema)
        self.hosts = Hosts()
        self._server = server
        create_project(self.url, project or "nobody's")
        tables = server.sql(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'")
        assert {"changes", "counters", "projects", "prompts", "resources", "tasks"} < set(tables)
        kept = f"{schema}_at_first"
        copies = (f"CREATE TABLE {kept}.{table} AS TABLE {schema}.{table}" for table in tables)
        server.sql("; ".join([f"CREATE SCHEMA {kept}", *copies]))
        self._put_back = "; ".join(
            [_WITHOUT_REFERENCES]
            + [f"DELETE FROM {schema}.{table}" for table in tables]
            + [
                f"INSERT INTO {schema}.{table} OVERRIDING SYSTEM VALUE TABLE {kept}.{table}"
                for table in tables
            ]
        )

    def put_back(self) -> None:
        """Make it what it was at first, as after a restore from a backup, which servers put up with."""
        self._server.sql(self._put_back)

    def close(self) -> None:
        self.hosts.close()
