"""One search over everything."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from dittybag.domain.changes import Kind
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.text import neighbourhood
from dittybag.services.caller import Caller, CallersStore, checked_query, project_of

SEARCHED: tuple[Kind, ...] = ("prompt", "resource", "task")


class Hit(Struct, frozen=True):
    """Something that was found."""

    kind: Kind
    #: How its own tools address it: a prompt by id, a resource by URI, a task by number.
    id: str | int
    title: str
    snippet: str


class SearchService:
    """Finds text in prompts, resources and tasks."""

    def __init__(self, store: Store) -> None:
        self._store = CallersStore(store)

    async def everything(
        self, caller: Caller, query: str, kinds: Collection[Kind], limit: int
    ) -> tuple[list[Hit], dict[str, int]]:
        """Up to `limit` hits of each kind, and how many there are of each."""
        checked_query(query)

        async def work(transaction: Transaction) -> tuple[list[Hit], dict[str, int]]:
            await project_of(transaction, caller)
            hits: list[Hit] = []
            totals: dict[str, int] = {}
            if "prompt" in kinds:
                totals["prompt"], prompts = await transaction.prompts.search(caller.project, query, limit, 0)
                hits += [Hit("prompt", item.id, item.title, item.snippet) for item in prompts]
            if "resource" in kinds:
                totals["resource"], resources = await transaction.resources.search(
                    caller.project, query, limit, 0
                )
                hits += [Hit("resource", item.uri, item.title or item.name, text) for item, text in resources]
            if "task" in kinds:
                totals["task"], tasks = await transaction.tasks.search(
                    caller.user, query, title=True, notes=True, limit=limit
                )
                hits += [
                    Hit("task", item.id, item.title, neighbourhood(item.notes or "", query)) for item in tasks
                ]
            return hits, totals

        return await self._store.read(caller, work, slow=True)

    async def glance(self, caller: Caller, query: str, kinds: Collection[Kind], limit: int) -> list[Hit]:
        """Some hits of each kind, found quickly: those with the query in the title first, then the newest."""
        checked_query(query)

        async def work(transaction: Transaction) -> list[Hit]:
            await project_of(transaction, caller)
            return [
                Hit(kind, *found)
                for kind in kinds
                for found in await transaction.projects.glance(
                    kind, caller.project, caller.user, query, limit
                )
            ]

        return await self._store.read(caller, work, slow=True)
