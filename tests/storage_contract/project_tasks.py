"""Tasks that belong to a project, created below the services, and the index tables of tasks."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dittybag.domain.ports import Transaction
from dittybag.domain.tasks import Comment, Task
from tests.storage_contract.store_session import StoreSession

COMMENTS = (
    Comment(1_700_000_000_000_001, "agent 7\n", "Began\r\nwith Größe: #1"),
    Comment(1_700_000_000_000_002, "ann", "---\n"),
)


async def create_project_task(session: StoreSession, title: str, **fields: Any) -> Task:
    """Create a task that belongs to the session's project."""

    async def work(transaction: Transaction) -> Task:
        project = await transaction.projects.get(session.project)
        assert project is not None
        task = Task(
            id=0,
            user=session.caller.user,
            title=title,
            project=project.name,
            project_id=project.id,
            created_at=transaction.now,
            updated_at=transaction.now,
            **fields,
        )
        stored = await transaction.write("create", None, task)
        assert stored is not None
        return stored

    return await session.write(work)


async def change_task(session: StoreSession, number: int, **fields: Any) -> Task:
    """Change the fields of a task."""

    async def work(transaction: Transaction) -> Task:
        before: Task = await transaction.find("task", id=number)
        after = replace(before, **fields, updated_at=transaction.now, version=before.version + 1)
        await transaction.write("update", before, after)
        return after

    return await session.write(work)


async def find_task(session: StoreSession, number: int) -> Task | None:
    async def work(transaction: Transaction) -> Task | None:
        found: Task | None = await transaction.find("task", id=number)
        return found

    return await session.read(work)
