"""The rows of a PostgreSQL schema at one moment, to restore them: faster than creating another schema."""

from __future__ import annotations

from typing import Final

from tests.postgres_servers import PostgresServer

#: Disables foreign keys and triggers while rows are replaced. A lock that is not released is an error.
_SETTINGS: Final = "SET session_replication_role = replica; SET lock_timeout = '30s'"


class SchemaSnapshot:
    """A copy of the rows of a schema, in another schema."""

    def __init__(self, server: PostgresServer, schema: str, database: str = "postgres") -> None:
        def sql(statement: str) -> list[str]:
            return server.sql(statement, database)

        copy = f"{schema} copy"
        names = "SELECT tablename FROM pg_tables WHERE schemaname = '{}'"
        self.tables: Final = frozenset(sql(names.format(schema)))
        copies = [f'CREATE TABLE "{copy}"."{name}" AS TABLE "{schema}"."{name}"' for name in self.tables]
        sql("; ".join([f'CREATE SCHEMA "{copy}"', *copies]))
        # One statement, because each is a process.
        has_rows = " UNION ALL ".join(
            f'SELECT \'{name}\' WHERE EXISTS (SELECT FROM "{copy}"."{name}")' for name in self.tables
        )
        unused = "SELECT sequencename FROM pg_sequences WHERE last_value IS NULL AND schemaname = '{}'"
        statements = [
            _SETTINGS,
            *(f'DELETE FROM "{schema}"."{name}"' for name in self.tables),
            *(
                f'INSERT INTO "{schema}"."{name}" OVERRIDING SYSTEM VALUE TABLE "{copy}"."{name}"'
                for name in sql(has_rows)
            ),
            *(f'SELECT setval(\'"{schema}"."{name}"\', 1, false)' for name in sql(unused.format(schema))),
        ]
        self.restore_sql: Final = "; ".join(statements)
