"""Entities of every kind with a secret word in every field that people or clients fill in."""

from __future__ import annotations

from typing import Any

from dittybag.domain.ports import Transaction
from dittybag.domain.prompts import Argument
from dittybag.domain.tasks import Comment
from tests.storage_contract.project_tasks import change_task, create_project_task
from tests.storage_contract.store_session import ACTOR, StoreSession, open_session

#: It has no trigram in common with other texts of the tests, and survives folding.
SECRET = "qzxjvqkzwx"

#: Larger than a page of a database.
LARGE = f"{SECRET} Straße " * 2000


async def create_prompt(session: StoreSession, word: str = SECRET) -> str:
    """Create and change a prompt. Returns its id."""
    prompt = await session.prompt(
        f"prompt-{word}",
        LARGE.replace(SECRET, word),
        title=f"Größe {word}",
        description=f"About {word}",
        tags=(f"tag-{word}",),
        arguments=(Argument(name="a", description=f"An {word}"),),
    )
    await session.change_prompt(prompt.name, content=f"Second {word}")
    return prompt.id


async def create_resource(session: StoreSession, word: str = SECRET) -> str:
    """Create and change a resource, first text and then binary. Returns its id."""
    name = f"resource-{word}"
    resource = await session.resource(name, LARGE.replace(SECRET, word), description=f"About {word}")
    await session.change_resource(name, content=f"Second {word}", title=f"Größe {word}")
    return resource.id


async def create_task(session: StoreSession, word: str = SECRET) -> str:
    """Create and change a task. Returns its id."""
    task = await session.task(f"Größe {word}", notes=LARGE.replace(SECRET, word)[:5000], project=word)
    await session.workspace.tasks.update(session.caller, task.id, notes=f"Second {word}")
    await _fill_task(session, task.id, word)
    return str(task.id)


async def _fill_task(session: StoreSession, number: int, word: str) -> None:
    """Write the word into the fields that a team uses, and into a claim."""
    await change_task(
        session,
        number,
        status="doing",
        assignee=f"agent-{word}",
        labels=(f"label-{word}",),
        links=(f"https://example.org/{word}",),
        comments=(Comment(1, f"author-{word}", LARGE.replace(SECRET, word)[:5000]),),
    )


async def create_project(session: StoreSession, word: str = SECRET) -> str:
    """Create a project with a prompt, a deleted prompt and a resource, and rename it. Returns its id."""
    inside = await open_session(session.store, f"project-{word}")
    await create_prompt(inside, word)
    await inside.prompt(f"deleted-{word}", word)
    await inside.delete_prompt(f"deleted-{word}")
    await create_resource(inside, word)
    await session.workspace.projects.rename(f"project-{word}", f"renamed-{word}", actor=ACTOR)
    return str(inside.project)


async def create_project_with_tasks(session: StoreSession, word: str = SECRET) -> str:
    """Create a project with a task and a deleted task, and rename it. Returns its id."""
    inside = await open_session(session.store, f"project-{word}")
    task = await create_project_task(inside, f"Größe {word}")
    await _fill_task(inside, task.id, word)
    deleted = await create_project_task(inside, f"Deleted {word}", labels=(word,), parent=task.id)
    await inside.workspace.tasks.delete(inside.caller, deleted.id)
    await session.workspace.projects.rename(f"project-{word}", f"renamed-{word}", actor=ACTOR)
    return str(inside.project)


async def store_sessions(session: StoreSession, word: str = SECRET) -> None:
    """Store a session that subscribes to a resource, and another one."""

    async def save(transaction: Transaction) -> None:
        await transaction.sessions.save("subscribed", "", f"state of file:///resource-{word}".encode(), 1)
        await transaction.sessions.save("other", "", b"state", 1)

    await session.write(save)


CREATORS: dict[Any, Any] = {
    "prompt": create_prompt,
    "resource": create_resource,
    "task": create_task,
    "project": create_project,
}
