"""Use cases for usage: how often prompts were used, by which client, and when clients were last seen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dittybag.domain.ports import Store, Transaction
from dittybag.domain.usage import PendingUsage, PromptUsage, SeenClient, UsedPrompt
from dittybag.services.caller import Caller, ScopedStore, readable_project, reading


async def _most_used(transaction: Transaction, caller: Caller, limit: int) -> list[UsedPrompt]:
    """Return the most used prompts of the project, most used first.

    Deleted prompts are left out, but a library prompt may no longer exist.
    """
    project = await readable_project(transaction, caller)
    return await transaction.usage.most_used(project.id, limit)


async def _of_prompt(transaction: Transaction, caller: Caller, prompt: str) -> PromptUsage:
    """Return how often a prompt was used. `prompt`: see `use_key`."""
    project = await readable_project(transaction, caller)
    return await transaction.usage.of_prompt(project.id, prompt)


async def _counts(transaction: Transaction, caller: Caller, prompts: Sequence[str]) -> dict[str, int]:
    """Return how often each of these prompts was used; those that never were are left out."""
    project = await readable_project(transaction, caller)
    return await transaction.usage.counts(project.id, prompts)


async def _clients(transaction: Transaction, caller: Caller) -> list[SeenClient]:
    """Return the clients of the caller, those of all users for the owner of the machine; newest first."""
    return await transaction.usage.clients(caller.viewer)


async def _record(transaction: Transaction, usage: PendingUsage) -> None:
    for use, count in usage.uses.items():
        await transaction.record_use(use, count)
    for client in usage.clients:
        await transaction.record_client(client)


class UsageService:
    """Counts the uses of prompts. Counts are not user data and not in the change log."""

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)

    most_used = reading(_most_used)
    of_prompt = reading(_of_prompt)
    counts = reading(_counts)
    clients = reading(_clients)

    async def record(self, usage: PendingUsage) -> None:
        """Add to the counts, and record that clients were seen."""
        await self._store.unscoped.write(partial(_record, usage=usage), actor="")
