"""Addition: things are added to a workspace in one batch of ordinary writes."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import Any, Final

from msgspec.structs import replace

from dittybag.domain.changes import kind_of
from dittybag.domain.errors import (
    Conflict,
    NameTaken,
    ProjectNotFound,
    SeveralConflicts,
    TitleTaken,
    UriTaken,
)
from dittybag.domain.ports import Transaction
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.services.exchange.exchange_types import Intake, OnConflict, Renamed, nothing
from dittybag.services.exchange.export_data import all_things
from dittybag.services.exchange.free_names import named, placed
from dittybag.services.exchange.validated import Reading

#: What makes a thing what it is, wherever it is and whenever it came there.
_PROMPT: Final = ("name", "title", "description", "content", "tags", "arguments")
_RESOURCE: Final = ("name", "uri", "title", "description", "mime_type", "sha256", "size")


class Addition:
    """Adds what a source has to what is there."""

    def __init__(
        self, reading: Reading, transaction: Transaction, on_conflict: OnConflict, *, rehearsal: bool
    ) -> None:
        """`rehearsal`: conflicts are only counted."""
        self._reading = reading
        self._transaction = transaction
        self._on_conflict = on_conflict
        self._rehearsal = rehearsal
        self._intake = nothing()
        #: By the number that the source gives them, 0 for none.
        self._projects: dict[int, Project] = {}

    async def make(self, project: str | None, default: str) -> Intake:
        """Raises `Invalid` for a bad source, and `SeveralConflicts`."""
        self._target, self._default = project, default
        if project is not None:
            await self._project(0)
        else:
            await self._make_projects()
        for _, prompt in self._reading.prompts():
            if self._reading.sound:
                await self._add_prompt(replace(prompt, project=(await self._project(prompt.project)).id))
        for _, resource, content in self._reading.resources():
            if self._reading.sound:
                home = await self._project(resource.project)
                await self._add_resource(replace(resource, project=home.id), content)
        await self._add_tasks()
        self._reading.require_sound()
        if self._intake.conflicts and self._on_conflict == "fail" and not self._rehearsal:
            raise SeveralConflicts(self._intake.conflicts)
        return self._intake

    # Projects

    async def _make_projects(self) -> None:
        for _, project in self._reading.projects:
            found = await self._transaction.projects.by_name(project.name)
            if found is None:
                created = project.created_at or self._transaction.now
                new = Project(id=0, name=project.name, created_at=created, updated_at=created)
                found = await self._transaction.write("create", None, new)
                assert found is not None
                self._intake.created["project"] += 1
            self._projects[project.id] = found

    async def _project(self, number: int) -> Project:
        """Where things go that the source has in a project. Raises `ProjectNotFound`."""
        number = 0 if self._target is not None else number
        if number not in self._projects:
            name = self._target if self._target is not None else self._default
            found = await self._transaction.projects.by_name(name)
            if found is None:
                raise ProjectNotFound(name)
            self._projects[number] = found
        return self._projects[number]

    async def _place(self, thing: Prompt | Resource) -> str:
        project = await self._transaction.projects.get(thing.project)
        return "" if project is None else project.name

    # Prompts

    async def _add_prompt(self, prompt: Prompt) -> None:
        find, project = self._transaction.find, prompt.project
        twin = await find("prompt", id=prompt.id) if prompt.id else None
        same = twin if twin is not None and twin.project == project else None
        by_name = await find("prompt", project=project, name=prompt.name) if prompt.name else None
        by_title = await find("prompt", project=project, title=prompt.title) if prompt.title else None
        new = prompt if prompt.id and twin is None else replace(prompt, id=self._transaction.new_id())
        rivals = [rival for rival in (same, by_name, by_title) if rival is not None]
        if any(_like(rival, prompt) == rival for rival in rivals):
            self._intake.skipped["prompt"] += 1
            return
        if not rivals:
            await self._create(await named(self._transaction, new))
            return
        place = await self._place(prompt)
        if same is None and by_name is None:
            self._intake.conflicts.append(TitleTaken(prompt.title, place))
        else:
            self._intake.conflicts.append(NameTaken("prompt", rivals[0].name, place))
        if self._on_conflict == "rename":
            renamed = await named(self._transaction, new)
            was, now = (prompt.name, renamed.name) if prompt.name else (prompt.title, renamed.title)
            self._intake.renamed.append(Renamed("prompt", was, now))
            await self._create(renamed)
        elif self._on_conflict == "replace":
            await self._replace(
                rivals[0], await named(self._transaction, _like(rivals[0], prompt), rivals[0])
            )
        else:
            self._intake.skipped["prompt"] += 1

    # Resources

    async def _add_resource(self, resource: Resource, content: bytes) -> None:
        find, project = self._transaction.find, resource.project
        twin = await find("resource", id=resource.id) if resource.id else None
        same = twin if twin is not None and twin.project == project else None
        by_name = await find("resource", project=project, name=resource.name)
        by_uri = await find("resource", project=project, uri=resource.uri)
        new = resource if resource.id and twin is None else replace(resource, id=self._transaction.new_id())
        rivals = [rival for rival in (same, by_name, by_uri) if rival is not None]
        if any(_like(rival, resource) == rival for rival in rivals):
            self._intake.skipped["resource"] += 1
            return
        if rivals:
            conflict: Conflict = NameTaken("resource", rivals[0].name, await self._place(resource))
            if same is None and by_name is None:
                conflict = UriTaken(resource.uri, await self._place(resource))
            self._intake.conflicts.append(conflict)
            if self._on_conflict in ("fail", "skip"):
                self._intake.skipped["resource"] += 1
                return
        await self._transaction.store_content(content)
        if rivals and self._on_conflict == "replace":
            changed = await placed(self._transaction, _like(rivals[0], resource), rivals[0])
            await self._replace(rivals[0], changed)
            return
        fitted = await placed(self._transaction, new)
        if fitted.name != resource.name or fitted.uri != resource.uri:
            self._intake.renamed.append(Renamed("resource", resource.name, fitted.name))
        await self._create(fitted)

    # Tasks

    async def _add_tasks(self) -> None:
        there: Counter[tuple[Any, ...]] | None = None
        for _, task in self._reading.tasks():
            if not self._reading.sound:
                continue
            if there is None:
                there = Counter([_print(found) async for found in all_things(self._transaction, "task")])
            if there[_print(task)]:
                there[_print(task)] -= 1
                self._intake.skipped["task"] += 1
            else:
                await self._create(replace(task, id=0))

    # Writing

    async def _create(self, thing: Prompt | Resource | Task) -> None:
        created = thing.created_at or self._transaction.now
        new = replace(thing, created_at=created, updated_at=thing.updated_at or created, version=1)
        if not isinstance(new, Task):
            new = replace(new, number=0)
        await self._transaction.write("create", None, new)
        self._intake.created[kind_of(thing)] += 1

    async def _replace(self, old: Prompt | Resource, new: Prompt | Resource) -> None:
        changed = replace(new, updated_at=self._transaction.now, version=old.version + 1)
        await self._transaction.write("update", old, changed)
        self._intake.replaced[kind_of(old)] += 1


def _like(there: Any, new: Any) -> Any:
    """What is there, with all that makes the new one what it is; what that does not know stays."""
    fields = _PROMPT if isinstance(there, Prompt) else _RESOURCE
    given = {field: getattr(new, field) for field in fields}
    if isinstance(there, Prompt):
        given = {field: value for field, value in given.items() if value or field not in ("name", "title")}
    return replace(there, **given)


def _print(task: Task) -> tuple[Any, ...]:
    """What tells a task from others, whatever its number is."""
    return (
        sha256(f"{task.title}\0{task.notes or ''}".encode()).digest(),
        task.user,
        task.project,
        task.priority,
        task.energy,
        task.time_estimate,
        task.due_date,
        task.completed_at,
        task.created_at,
    )
