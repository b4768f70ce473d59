"""Boundary values of texts and numbers are stored unchanged or not found, without an error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dittybag.domain.errors import DittybagError
from dittybag.domain.ports import Transaction
from dittybag.domain.queries import ChangeQuery, PromptQuery, TaskQuery
from tests.storage_contract.log_consistency import check_log
from tests.storage_contract.store_session import StoreSession

Lookup = Callable[[Transaction, int, str], Awaitable[Any]]

LOOKUPS: dict[str, Lookup] = {
    "a project": lambda transaction, project, text: transaction.projects.by_name(text),
    "projects": lambda transaction, project, text: transaction.projects.names(text, 10),
    "a prompt by id": lambda transaction, project, text: transaction.prompts.by_id(project, text),
    "a prompt by name": lambda transaction, project, text: transaction.prompts.by_name(project, text),
    "a prompt by title": lambda transaction, project, text: transaction.prompts.by_title(project, text),
    "a name that is taken": lambda transaction, project, text: transaction.prompts.name_taken(project, text),
    "a title that is taken": lambda transaction, project, text: transaction.prompts.title_taken(
        project, text
    ),
    "ids by tag": lambda transaction, project, text: transaction.prompts.ids_with_tag(project, text),
    "tags": lambda transaction, project, text: transaction.prompts.existing_tags(project, [text]),
    "a resource by name": lambda transaction, project, text: transaction.resources.by_name(project, text),
    "a resource by URI": lambda transaction, project, text: transaction.resources.by_uri(project, text),
    "URIs": lambda transaction, project, text: transaction.resources.uris(project, text, 10),
    "a task": lambda transaction, project, text: transaction.tasks.get(text, 1),
    "a change": lambda transaction, project, text: transaction.changes.latest("prompt", text),
    "a session": lambda transaction, project, text: transaction.sessions.get(text),
    "changes of an entity": lambda transaction, project, text: transaction.changes.page(
        ChangeQuery(entity=text)
    ),
    "changes by a name": lambda transaction, project, text: transaction.changes.page(ChangeQuery(name=text)),
}


@pytest.mark.parametrize("text", ["\0", "a\0", "\0a", "p\0", "default\0"])
async def test_a_text_that_cannot_be_stored_is_not_found(session: StoreSession, text: str) -> None:
    await session.prompt("p", tags=("p",))
    await session.resource("p", uri="x:1")
    await session.task("p")
    for what, look in LOOKUPS.items():
        found = await session.read(lambda transaction, look=look: look(transaction, session.project, text))  # type: ignore[misc]
        assert not found, what


async def test_a_tag_that_cannot_be_stored_does_not_affect_other_tags(session: StoreSession) -> None:
    await session.prompt("p", "needle", tags=("t",))

    async def work(transaction: Transaction) -> list[int]:
        queries = [
            PromptQuery(project=session.project, text=text, any_tag=tags, limit=10)
            for tags in (("\0", "t"), ("\0",))
            for text in ("", "needle")
        ]
        return [
            *[(await transaction.prompts.page(query))[0] for query in queries],
            len(await transaction.prompts.existing_tags(session.project, ["\0", "t"])),
        ]

    assert await session.read(work) == [1, 1, 0, 0, 1]


async def test_the_longest_texts_are_stored_and_distinguished(session: StoreSession) -> None:
    title, uri = "𝔗" * 199, "x:" + "🎒" * 2045
    for last in "ab":
        await session.prompt(f"p{last}" + "n" * 253, "€" * 300_000 + last, title=title + last)
        await session.resource(f"r{last}", "€" * 1_000_000 + last, uri=uri + last, title=title + last)
        await session.task("𝔗" * 499 + last, notes="𝔫" * 99_999 + last, project="𝔭" * 99 + last)
    for last in "ab":

        async def look(transaction: Transaction, last: str = last) -> list[Any]:
            prompt = await transaction.prompts.by_title(session.project, title + last)
            resource = await transaction.resources.by_uri(session.project, uri + last)
            assert prompt is not None
            assert resource is not None
            content = await transaction.content(resource.sha256)
            (task,) = await transaction.tasks.page(
                TaskQuery(user=session.caller.user, project="𝔭" * 99 + last)
            )
            return [prompt.content[-1], content.decode()[-1], (task.notes or "")[-1]]

        assert await session.read(look) == [last] * 3
        page = await session.workspace.prompts.page(
            session.caller,
            PromptQuery(project=session.caller.project, text="€" * 900 + last, limit=10, offset=0),
        )
        assert page.total == 1
    with pytest.raises(DittybagError):
        await session.resource("rc", uri=uri + "a")
    await check_log(session.store)


async def test_sort_order_is_by_bytes(session: StoreSession) -> None:
    names = ["Z", "a", "B", "b", "-x", "_x", ".x", "1", "10", "9", "aB", "a-b", "ab", "a_b"]
    for name in names:
        await session.prompt(name, tags=(f"t{name}".replace(".", "-").lower(),))
        await session.resource(name, uri=f"x:{name}")
        await session.workspace.projects.create(name, actor="x")
    in_order = sorted(names, key=str.encode)

    async def look(transaction: Transaction) -> list[list[str]]:
        return [
            await transaction.prompts.names(session.project, 100),
            [uri.removeprefix("x:") for uri in await transaction.resources.uris(session.project, "X:", 100)],
            [name for name in await transaction.projects.names("", 100) if name != "default"],
        ]

    assert await session.read(look) == [in_order] * 3
    tags = [tag.name for tag in await session.workspace.prompts.tags(session.caller)]
    counts = {tag: sum(tag == f"t{name}".replace(".", "-").lower() for name in names) for tag in tags}
    assert tags == sorted(tags, key=lambda tag: (-counts[tag], tag.encode()))
