"""Queries on prompts, resources and tasks: every condition narrows the result, in every combination."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, Final, get_args

from dittybag.domain.ports import Transaction
from dittybag.domain.prompts import Prompt, PromptOrder
from dittybag.domain.queries import PromptQuery, ResourceOrder, ResourceQuery, TaskQuery
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.domain.text import search_words
from tests.storage_contract.store_session import StoreSession, open_session

PROMPT_KEYS: Final[dict[PromptOrder, Callable[[Prompt], Any]]] = {
    "updated": lambda prompt: (-prompt.updated_at, -prompt.number),
    "created": lambda prompt: -prompt.number,
    "name": lambda prompt: prompt.name,
}
RESOURCE_KEYS: Final[dict[ResourceOrder, Callable[[Resource], Any]]] = {
    "updated": lambda resource: (-resource.updated_at, -resource.number),
    "name": lambda resource: resource.name,
    "size": lambda resource: (-resource.size, -resource.number),
    "type": lambda resource: (resource.mime_type, resource.name),
}


async def test_every_combination_of_conditions_narrows_the_prompts(session: StoreSession) -> None:
    garden = await open_session(session.store, "garden")
    tags = [(), ("a",), ("b",), ("a", "c"), ("a", "b", "c"), ("c",)]
    for number, (carried, text) in enumerate(product(tags, ("a needle", "x needle here", "other"))):
        await session.prompt(f"p{number * 7 % 19:02}", text, tags=carried)
    await garden.prompt("p", "a needle", tags=("a", "b", "c"))
    await session.change_prompt("p07", description="updated")
    stored = await session.read(lambda transaction: transaction.prompts.in_project(session.project))

    async def look(transaction: Transaction) -> None:
        for text, any_tag, all_tags, order, most in product(
            ("", "NEEDLE", "x "), ((), ("a", "b"), ("none",)), ((), ("a", "c")), PROMPT_KEYS, (None, 4)
        ):
            query = PromptQuery(
                project=session.project,
                text=text,
                any_tag=any_tag,
                all_tags=all_tags,
                order=order,
                limit=3,
                offset=1,
                max_matches=most,
            )
            wanted = [
                prompt
                for prompt in sorted(stored, key=PROMPT_KEYS[order])
                if text.lower() in prompt.content
                and (not any_tag or set(any_tag) & set(prompt.tags))
                and set(all_tags) <= set(prompt.tags)
            ]
            if most is not None and (text or any_tag or all_tags):
                wanted = wanted[:most]
            total, found = await transaction.prompts.page(query)
            assert (total, [item.id for item in found]) == (
                len(wanted),
                [prompt.id for prompt in wanted[1:4]],
            ), query

    await session.read(look)


async def test_every_combination_of_conditions_narrows_the_resources(session: StoreSession) -> None:
    garden = await open_session(session.store, "garden")
    for number, (kind, text) in enumerate(product(("text/plain", "text/markdown"), ("needle", "x", "y"))):
        title = ["The needle", "Other"][number % 2]
        await session.resource(f"r{number * 5 % 7}", text * (number + 1), title=title, mime_type=kind)
    await garden.resource("needle", "needle", title="needle")
    stored = await session.read(lambda transaction: transaction.resources.listing(session.project))

    async def look(transaction: Transaction) -> None:
        for text, mime_type, order in product(
            ("", "NEEDLE", "r1"), (None, "text/markdown"), get_args(ResourceOrder)
        ):
            query = ResourceQuery(
                project=session.project, text=text, mime_type=mime_type, order=order, limit=3, offset=1
            )
            narrowed = sorted(
                (item for item in stored if mime_type in (None, item.mime_type)), key=RESOURCE_KEYS[order]
            )
            named = [
                item for item in narrowed if text.lower() in f"{item.name}\n{item.title}\n{item.uri}".lower()
            ]
            assert await transaction.resources.page(query) == (len(named), named[1:4]), query

    await session.read(look)


async def test_every_combination_of_conditions_narrows_the_tasks(session: StoreSession) -> None:
    other = await open_session(session.store, user="other")
    for number, project in enumerate(("x", "y", None) * 4):
        task = await session.task(
            ["Buy a needle", "Mend", "Sew"][number % 3],
            notes=["", "with the Needle", "thread"][number % 4 % 3],
            priority=number % 2 + 3,
            due_date=["2026-03-01", "2026-03-02T10:00:00Z", ""][number % 5 % 3],
            **({} if project is None else {"project": project}),
        )
        if number % 3 == 1:
            await session.workspace.tasks.complete(session.caller, task.id)
    await other.task("needle", project="x")
    stored = await session.read(
        lambda transaction: transaction.tasks.page(TaskQuery(user=session.caller.user))
    )
    assert stored == sorted(stored, key=lambda task: (-task.priority, task.id))
    assert len(stored) == 12

    def matches(task: Task, query: TaskQuery) -> bool:
        texts = [task.title] * query.in_title + [task.notes or ""] * query.in_notes
        return (
            query.project in (None, task.project)
            and (not query.priorities or task.priority in query.priorities)
            and query.completed in (None, task.completed)
            and (query.due_by is None or (task.due_date or "9")[:10] <= query.due_by)
            and all(any(word in text.lower() for text in texts) for word in search_words(query.text))
        )

    async def look(transaction: Transaction) -> None:
        for project, priorities, completed, due_by, text, in_title in product(
            (None, "x"), ((), (4,)), (None, True, False), (None, "2026-03-01"), ("", "needle"), (True, False)
        ):
            query = TaskQuery(
                user=session.caller.user,
                project=project,
                priorities=priorities,
                completed=completed,
                due_by=due_by,
                text=text,
                in_title=in_title,
                limit=2,
                offset=1,
            )
            wanted = [task for task in stored if matches(task, query)]
            assert await transaction.tasks.page(query) == wanted[1:3], query
            assert await transaction.tasks.search(query) == (len(wanted), wanted[1:3]), query

    await session.read(look)
