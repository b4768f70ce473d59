"""The contents of current and past resources, each stored once under its SHA-256."""

from __future__ import annotations

from dittybag.storage.sql.sql_driver import SqlDriver


class ContentTable:
    """The contents of resources."""

    def __init__(self, driver: SqlDriver) -> None:
        self._driver = driver

    async def store(self, content: bytes) -> str:
        """Store content unless it exists. Returns its SHA-256."""
        # hashlib loads OpenSSL, and most servers never store a resource.
        from hashlib import sha256

        digest = sha256(content).hexdigest()
        sql = "INSERT INTO contents (sha256, bytes) VALUES ($1, $2) ON CONFLICT DO NOTHING"
        await self._driver.run(sql, digest, content)
        return digest

    async def read(self, sha256: str) -> bytes:
        """Return the content with this SHA-256. Raises `LookupError`."""
        found: bytes | None = await self._driver.value("SELECT bytes FROM contents WHERE sha256 = $1", sha256)
        if found is None:
            raise LookupError(f"no content with the hash {sha256}")
        return found

    async def delete_unused(self) -> None:
        """Delete the contents that neither a resource nor the change log refers to."""
        used = " UNION ".join(
            f"SELECT coalesce({digest}, '') FROM changes WHERE kind = 'resource'"
            for digest in (self._driver.json_field(state, "sha256") for state in ("before", "after"))
        )
        await self._driver.run(
            f"DELETE FROM contents WHERE sha256 NOT IN (SELECT sha256 FROM resources UNION {used})"
        )
