"""The checks of `dittybag doctor` for a PostgreSQL database, which it does not change."""

from __future__ import annotations

from dittybag.assembly.doctor_checks import Finding, schema_finding
from dittybag.protocol.lazy_asyncio import asyncio


def database_findings(url: str) -> list[Finding]:
    """Check the server and the schema. Raises `StorageError`."""
    try:
        from dittybag.storage.postgres.migrations.postgres_migrations import schema_version
        from dittybag.storage.postgres.postgres_connections import connect, parse_address
        from dittybag.storage.postgres.retry import retry_until_connected
    except ImportError:
        fix = "pip install 'dittybag[postgres]'"
        return [Finding("error", "database", "PostgreSQL needs an extra package", fix)]

    where = parse_address(url)

    async def read_versions() -> tuple[str, int]:
        connection = await connect(where, writable=False)
        try:
            server = str(await connection.fetchval("SELECT current_setting('server_version')"))
            return server, await schema_version(connection, where)
        finally:
            await connection.close(timeout=1)

    server, number = asyncio.run(retry_until_connected(read_versions, where.display_url))
    found = Finding("ok", "database", f"{where.display_url}, PostgreSQL {server}")
    if number == 0:
        message = (
            f"There are no tables at {where.display_url} yet; the first command that writes creates them"
        )
        return [found, Finding("note", "schema", message, "Add something, or check the URL")]
    return [found, schema_finding(number, copy="pg_dump, before the upgrade")]
