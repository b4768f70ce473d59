"""How often prompts were used, and when clients were last seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dittybag.domain.usage import (
    MAX_CLIENTS_OF_PROMPT,
    MAX_CLIENTS_OF_USER,
    OTHER_CLIENTS,
    Client,
    ClientUses,
    PromptUsage,
    PromptUse,
    SeenClient,
    UsedPrompt,
)
from dittybag.storage.sql.row_mapping import row_reader
from dittybag.storage.sql.sql_driver import MAX_INTEGER, SqlDriver

#: The client of the row with the sum of all uses of a prompt.
_ALL: Final = ""

_read_used: Final = row_reader(UsedPrompt)
_read_uses: Final = row_reader(ClientUses)
_read_client: Final = row_reader(SeenClient)


class UsageTable:
    """See `dittybag.domain.ports.UsageRepository`."""

    def __init__(self, driver: SqlDriver) -> None:
        self._driver = driver

    async def most_used(self, project: int, limit: int) -> list[UsedPrompt]:
        rows = await self._driver.rows(
            """SELECT prompt, coalesce(prompts.name, prompt), coalesce(prompts.title, prompt), count, last_at
               FROM prompt_uses LEFT JOIN prompts ON prompts.id = prompt_uses.prompt
               WHERE prompt_uses.project = $1 AND client = ''
                   AND (prompts.id IS NOT NULL OR prompt LIKE '%:%')
               ORDER BY count DESC, last_at DESC LIMIT $2""",
            project,
            limit,
        )
        return [_read_used(row) for row in rows]

    async def of_prompt(self, project: int, prompt: str) -> PromptUsage:
        rows = await self._driver.rows(
            """SELECT client, count, last_at FROM prompt_uses WHERE project = $1 AND prompt = $2
               ORDER BY last_at DESC, count DESC, client""",
            project,
            prompt,
        )
        found = [_read_uses(row) for row in rows]
        total = sum(uses.count for uses in found if uses.client == _ALL)
        return PromptUsage(total, tuple(uses for uses in found if uses.client != _ALL))

    async def counts(self, project: int, prompts: Sequence[str]) -> dict[str, int]:
        sql = f"""SELECT prompt, count FROM prompt_uses
                  WHERE project = $1 AND client = '' AND {self._driver.any_of("prompt", "$2")}"""
        rows = await self._driver.rows(sql, project, self._driver.list_value(prompts))
        return {row[0]: row[1] for row in rows}

    async def clients(self, user: str | None) -> list[SeenClient]:
        sql = """SELECT user_name, name, version, transport, last_at FROM seen_clients
                 WHERE user_name = $1 OR $2 ORDER BY last_at DESC, name"""
        rows = await self._driver.rows(sql, user or "", user is None)
        return [_read_client(row) for row in rows]

    async def add_uses(self, use: PromptUse, count: int, at: int) -> None:
        """Add to the count of a prompt, unless the prompt or its project no longer exists."""
        table = "projects WHERE id = $1" if ":" in use.prompt else "prompts WHERE project = $1 AND id = $2"
        values = (use.project,) if ":" in use.prompt else (use.project, use.prompt)
        if await self._driver.value(f"SELECT 1 FROM {table}", *values) is None:
            return
        known = [uses.client for uses in (await self.of_prompt(use.project, use.prompt)).clients]
        is_counted = use.client in known or len(known) < MAX_CLIENTS_OF_PROMPT
        for client in (_ALL, use.client if is_counted else OTHER_CLIENTS):
            await self._driver.run(
                """INSERT INTO prompt_uses (project, prompt, client, count, last_at)
                   VALUES ($1, $2, $3, $4, $5)
                   ON CONFLICT (project, prompt, client) DO UPDATE SET
                       count = prompt_uses.count + excluded.count, last_at = excluded.last_at""",
                use.project,
                use.prompt,
                client,
                count,
                at,
            )

    async def delete_uses(self, prompt: str) -> None:
        """Delete all counts of a stored prompt."""
        await self._driver.run("DELETE FROM prompt_uses WHERE prompt = $1", prompt)

    async def save_client(self, client: Client, at: int) -> None:
        """Record that a client was seen, and forget those of its user that were not seen for longest."""
        await self._driver.run(
            """INSERT INTO seen_clients (user_name, name, version, transport, last_at)
               VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (user_name, name, transport) DO UPDATE SET
                   version = excluded.version, last_at = excluded.last_at""",
            client.user,
            client.name,
            client.version,
            client.transport,
            at,
        )
        await self._driver.run(
            """DELETE FROM seen_clients WHERE user_name = $1 AND (name, transport) IN (
                   SELECT name, transport FROM seen_clients WHERE user_name = $1
                   ORDER BY last_at DESC, name LIMIT $2 OFFSET $3)""",
            client.user,
            MAX_INTEGER,
            MAX_CLIENTS_OF_USER,
        )
