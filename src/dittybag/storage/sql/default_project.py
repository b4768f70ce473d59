"""The project that every workspace has."""

from __future__ import annotations

from dittybag.domain.ports import Transaction
from dittybag.domain.projects import DEFAULT_PROJECT, Project


async def create_default_project(transaction: Transaction) -> None:
    """Create the default project unless it exists."""
    if await transaction.projects.by_name(DEFAULT_PROJECT) is None:
        now = transaction.now
        project = Project(id=0, name=DEFAULT_PROJECT, created_at=now, updated_at=now)
        await transaction.write("create", None, project)
