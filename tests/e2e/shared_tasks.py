"""A project with shared tasks: claimed, lapsed, blocked, in review, done, with parts and comments."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

from dittybag.assembly.workspace_session import with_workspace
from dittybag.config import environment_with_home, settings
from dittybag.domain.changes import Interface
from dittybag.domain.errors import Conflict
from dittybag.services.caller import Caller
from dittybag.services.task_queue import ClaimedTask, ClaimRequest
from dittybag.services.workspace import Workspace

T = TypeVar("T")

PROJECT: Final = "launch"
AGENT: Final = "claude-code"
BOARD: Final = f"/p/{PROJECT}/tasks"


class SharedTasks:
    """The workspace of a data folder, used by another process than the server."""

    def __init__(self, home: Path) -> None:
        self.home = home
        #: Ids of tasks by name.
        self.ids: dict[str, int] = {}

    def run(self, work: Callable[[Workspace, Caller], Awaitable[T]], actor: str, via: Interface) -> T:
        """Run some work as an actor of the project."""

        async def in_workspace(workspace: Workspace) -> T:
            project = await workspace.projects.find(PROJECT)
            return await work(workspace, Caller(project.id, actor, interface=via))

        # Playwright already runs an event loop in this thread.
        with ThreadPoolExecutor(1) as executor:
            chosen = settings(environment_with_home(os.fspath(self.home)))
            return executor.submit(with_workspace, chosen, in_workspace).result()

    def add(self, title: str, **fields: Any) -> int:
        """Create a task of the project, and return its id."""

        async def create(workspace: Workspace, caller: Caller) -> int:
            return (await workspace.tasks.create(caller, title=title, **fields)).id

        return self.run(create, "planner", "mcp")

    def claim(
        self, number: int, actor: str = AGENT, via: Interface = "mcp", seconds: int = 900
    ) -> ClaimedTask:
        """Claim a task for some seconds."""

        async def claim(workspace: Workspace, caller: Caller) -> ClaimedTask:
            return await workspace.task_queue.claim(caller, number, ClaimRequest(lease_seconds=seconds))

        return self.run(claim, actor, via)

    def update(self, number: int, actor: str = AGENT, **fields: Any) -> None:
        """Change a task as an agent that has not claimed it."""

        async def update(workspace: Workspace, caller: Caller) -> None:
            await workspace.tasks.update(caller, number, **fields)

        self.run(update, actor, "cli")

    def refusal(self, number: int, fence: int) -> str:
        """Return the name of the error that an agent with this fence gets; empty if it may go on."""

        async def update(workspace: Workspace, caller: Caller) -> str:
            try:
                await workspace.tasks.update(caller, number, fence=fence, notes="Done")
            except Conflict as error:
                return type(error).__name__
            return ""

        return self.run(update, AGENT, "mcp")

    def get(self, number: int) -> Any:
        """Return a task."""

        async def get(workspace: Workspace, caller: Caller) -> Any:
            return await workspace.tasks.get(caller, number)

        return self.run(get, "tests", "cli")

    def fill(self) -> None:
        """Create the project and its tasks."""

        async def create(workspace: Workspace) -> None:
            project = await workspace.projects.create(PROJECT, actor="ann")
            await _fill(workspace, Caller(project.id, "planner", interface="mcp"), self.ids)

        with ThreadPoolExecutor(1) as executor:
            chosen = settings(environment_with_home(os.fspath(self.home)))
            executor.submit(with_workspace, chosen, create).result()


async def _fill(workspace: Workspace, planner: Caller, ids: dict[str, int]) -> None:
    async def add(name: str, title: str, **fields: Any) -> None:
        ids[name] = (await workspace.tasks.create(planner, title=title, **fields)).id

    await add("launch", "Launch the new sign-up page", priority=5, due_date="2031-06-01", labels=["release"])
    await add("schema", "Design the schema of accounts", parent=ids["launch"], labels=["backend"])
    await add(
        "migration",
        "Write the migration",
        parent=ids["launch"],
        blocked_by=[ids["schema"]],
        labels=["backend", "database"],
        priority=4,
    )
    await add("form", "Build the form", parent=ids["launch"], labels=["frontend"], priority=4)
    await add(
        "validate",
        "Validate e-mail addresses as people type them, without a round trip",
        parent=ids["launch"],
        blocked_by=[ids["form"]],
        labels=["frontend"],
    )
    await add(
        "texts", "Translate the texts", parent=ids["launch"], blocked_by=[ids["form"], ids["migration"]]
    )
    await add("copy", "Write the welcome mail", assignee="ann", due_date="2031-05-20", priority=2)
    await add("load", "Measure 1,000 sign-ups a minute", blocked_by=[ids["migration"]], energy="deep")
    await add("flaky", "Find out why the login test is flaky", priority=4, labels=["tests"])
    await workspace.tasks.update(planner, ids["form"], comment="The design is in the resource below.")
    await workspace.tasks.update(
        planner, ids["form"], links=["https://example.com/design?a=1,2", "javascript:alert(1)"]
    )
    ann = Caller(planner.project, "ann", interface="web")
    await workspace.task_queue.finish(ann, ids["schema"], comment="See the decision record.")
    await workspace.task_queue.finish(ann, ids["copy"], status="review")
    agent = Caller(planner.project, AGENT, interface="mcp")
    await workspace.task_queue.claim(agent, ids["form"], ClaimRequest(lease_seconds=900))
    await workspace.task_queue.claim(
        Caller(planner.project, "ann via web", interface="web"),
        ids["flaky"],
        ClaimRequest(lease_seconds=7200),
    )
