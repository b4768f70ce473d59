"""Search across prompts, resources and tasks."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from dittybag.domain.entities import Kind
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.queries import PromptQuery, ResourceQuery, TaskQuery
from dittybag.domain.text import snippet_around_words
from dittybag.services.caller import Caller, ScopedStore, checked_query, readable_project, reading

SEARCH_KINDS: tuple[Kind, ...] = ("prompt", "resource", "task")


class SearchHit(Struct, frozen=True):
    """An entity that matches a search."""

    kind: Kind
    #: The address for tools: the id of a prompt or task, the URI of a resource.
    id: str | int
    title: str
    snippet: str
    #: The name that people type: of a prompt its name, otherwise the id or URI.
    reference: str = ""


async def search_all_kinds(
    transaction: Transaction, caller: Caller, query: str, kinds: Collection[Kind], limit: int
) -> tuple[list[SearchHit], dict[str, int]]:
    """Return up to `limit` hits of each kind, and the total number of each."""
    checked_query(query)
    await readable_project(transaction, caller)
    hits: list[SearchHit] = []
    totals: dict[str, int] = {}
    if "prompt" in kinds:
        totals["prompt"], prompts = await transaction.prompts.page(
            PromptQuery(project=caller.project, text=query, limit=limit)
        )
        hits += [SearchHit("prompt", item.id, item.title, item.snippet, item.name) for item in prompts]
    if "resource" in kinds:
        totals["resource"], resources = await transaction.resources.search(
            ResourceQuery(project=caller.project, text=query, limit=limit)
        )
        hits += [
            SearchHit("resource", item.uri, item.title or item.name, text, item.uri)
            for item, text in resources
        ]
    if "task" in kinds:
        totals["task"], tasks = await transaction.tasks.search(
            TaskQuery(user=caller.user, text=query, limit=limit)
        )
        hits += [
            SearchHit(
                "task", item.id, item.title, snippet_around_words(item.notes or "", query), str(item.id)
            )
            for item in tasks
        ]
    return hits, totals


async def quick_search(
    transaction: Transaction, caller: Caller, query: str, kinds: Collection[Kind], limit: int
) -> list[SearchHit]:
    """Return some hits of each kind from a fast search: matches in titles first, then the newest."""
    checked_query(query)
    await readable_project(transaction, caller)
    return [
        SearchHit(kind, *found)
        for kind in kinds
        for found in await transaction.projects.quick_search(kind, caller.project, caller.user, query, limit)
    ]


class SearchService:
    """Finds text in prompts, resources and tasks."""

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)

    all_kinds = reading(search_all_kinds, slow=True)
    quick_search = reading(quick_search, slow=True)
