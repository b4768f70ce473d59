"""A session of a caller in one project of a store."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.changes import Change
from dittybag.domain.ports import Store, T, Transaction
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import DEFAULT_USER, Task
from dittybag.services.caller import Caller
from dittybag.services.history_service import UndoSelection
from dittybag.services.prompt_service import PromptAddress, PromptChange
from dittybag.services.resource_service import ResourceChange
from dittybag.services.workspace import Workspace

OpenStore: TypeAlias = Callable[[], Awaitable[Store]]

ACTOR = "tester"


class StoreSession(Struct, frozen=True):
    """A workspace and a caller, with shortcuts for the use cases."""

    workspace: Workspace
    caller: Caller

    @property
    def store(self) -> Store:
        return self.workspace.store

    @property
    def project(self) -> int:
        return self.caller.project

    async def prompt(self, name: str, content: str = "Words", **more: Any) -> Prompt:
        return (await self.workspace.prompts.create(self.caller, name=name, content=content, **more))[0]

    async def change_prompt(self, name: str, **change: Any) -> Prompt:
        address = PromptAddress(name=name)
        return (await self.workspace.prompts.update(self.caller, address, PromptChange(**change)))[0]

    async def delete_prompt(self, name: str) -> Prompt:
        return (await self.workspace.prompts.delete(self.caller, PromptAddress(name=name)))[0]

    async def resource(self, name: str, content: str | bytes = "Words", **more: Any) -> Resource:
        """Create a resource; binary if `content` is `bytes`."""
        if isinstance(content, bytes):
            content = b64encode(content).decode()
            more = {"mime_type": "application/octet-stream", **more}
        more = {"uri": f"file:///{name}", **more}
        return (await self.workspace.resources.create(self.caller, name=name, content=content, **more))[0]

    async def change_resource(self, name: str, **change: Any) -> Resource:
        return (await self.workspace.resources.update(self.caller, name, ResourceChange(**change)))[0]

    async def delete_resource(self, name: str) -> Resource:
        return (await self.workspace.resources.delete(self.caller, name))[0]

    @property
    def owner(self) -> Caller:
        """The caller as in the task contract: tasks are the caller's alone, and their project is any text."""
        return replace(self.caller, own_tasks_only=True)

    async def task(self, title: str, **more: Any) -> Task:
        """Create a task of the caller alone."""
        return await self.workspace.tasks.create(self.owner, title=title, **more)

    async def undo(self, seq: int) -> list[Change]:
        selection = UndoSelection(seq=seq, project=self.project)
        return (await self.workspace.history.undo(self.caller, selection)).changes

    async def newest_change(self) -> Change:
        return (
            await self.workspace.history.page(self.caller, ChangeQuery(project=self.caller.project, limit=1))
        )[0]

    async def content(self, resource: Resource) -> bytes:
        async def work(transaction: Transaction) -> bytes:
            return await transaction.content(resource.sha256)

        return await self.store.read(work)

    async def read(self, ask: Callable[[Transaction], Awaitable[T]], *, slow: bool = False) -> T:
        """Run a read transaction."""
        return await self.store.read(ask, slow=slow)

    async def write(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        return await self.store.write(work, actor=ACTOR)


async def open_session(
    store: Store, project: str = DEFAULT_PROJECT, user: str = DEFAULT_USER
) -> StoreSession:
    """Return a session in a project, which is created if needed."""
    workspace = Workspace(store)

    async def find(transaction: Transaction) -> Project | None:
        return await transaction.projects.by_name(project)

    found = await store.read(find) or await workspace.projects.create(project, actor=ACTOR)
    return StoreSession(workspace, Caller(found.id, ACTOR, user))
