"""The checks of `dittybag doctor` for a PostgreSQL database, which it does not change."""

from __future__ import annotations

from dittybag.assembly.doctor_checks import schema_finding, task_findings
from dittybag.config import Settings
from dittybag.domain.health import Finding
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA
from dittybag.storage.sql.unheld_tasks import unheld_tasks_query


def database_findings(settings: Settings) -> list[Finding]:
    """Check the server, the schema and the claims of tasks. Raises `StorageError`."""
    try:
        from dittybag.storage.postgres.migrations.postgres_migrations import schema_version
        from dittybag.storage.postgres.postgres_connections import connect, parse_address
        from dittybag.storage.postgres.retry import retry_until_connected
    except ImportError:
        fix = "pip install 'dittybag[postgres]'"
        return [Finding("error", "database", "PostgreSQL needs an extra package", fix)]

    where = parse_address(settings.database)

    async def read() -> tuple[str, int, list[int]]:
        connection = await connect(where, writable=False)
        try:
            server = str(await connection.fetchval("SELECT current_setting('server_version')"))
            number = await schema_version(connection, where)
            rows = await connection.fetch(unheld_tasks_query("::json")) if number == NEWEST_SCHEMA else []
            return server, number, [task for (task,) in rows]
        finally:
            await connection.close(timeout=1)

    server, number, unheld = asyncio.run(retry_until_connected(read, where.display_url))
    found = Finding("ok", "database", f"{where.display_url}, PostgreSQL {server}")
    if number == 0:
        message = (
            f"There are no tables at {where.display_url} yet; the first command that writes creates them"
        )
        return [found, Finding("note", "schema", message, "Add something, or check the URL")]
    schema = schema_finding(number, copy="pg_dump, before the upgrade")
    return [found, schema, *task_findings(unheld, settings)]
