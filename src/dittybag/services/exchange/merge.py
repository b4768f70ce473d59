"""Import into a workspace that is not empty, in one batch of ordinary writes."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import Any, Final

from msgspec.structs import replace

from dittybag.domain.entities import kind_of
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
from dittybag.services.exchange.exchange_types import ImportResult, OnConflict, RenamedEntity, empty_result
from dittybag.services.exchange.export_data import all_entities
from dittybag.services.exchange.free_names import rename_prompt_if_taken, rename_resource_if_taken
from dittybag.services.exchange.validated import ValidatedSource

#: The fields that are compared and replaced; not ids, projects and times.
_PROMPT_FIELDS: Final = ("name", "title", "description", "content", "tags", "arguments")
_RESOURCE_FIELDS: Final = ("name", "uri", "title", "description", "mime_type", "sha256", "size")


class MergeImport:
    """Adds the entities of a source to a workspace."""

    def __init__(
        self, source: ValidatedSource, transaction: Transaction, on_conflict: OnConflict, *, dry_run: bool
    ) -> None:
        """`dry_run`: report conflicts in the result instead of raising an error."""
        self._source = source
        self._transaction = transaction
        self._on_conflict = on_conflict
        self._dry_run = dry_run
        self._result = empty_result()
        #: The target projects by the project id in the source; 0 for entities without a project.
        self._projects: dict[int, Project] = {}

    async def run(self, project: str | None, default: str) -> ImportResult:
        """Import everything into `project`, or into the projects of the source, else into `default`.

        Raises `Invalid`, `ProjectNotFound` and `SeveralConflicts`.
        """
        self._target, self._default = project, default
        if project is not None:
            await self._target_project(0)
        else:
            await self._create_projects()
        for _, prompt in self._source.prompts():
            if self._source.is_valid:
                await self._add_prompt(
                    replace(prompt, project=(await self._target_project(prompt.project)).id)
                )
        for _, resource, content in self._source.resources():
            if self._source.is_valid:
                target = await self._target_project(resource.project)
                await self._add_resource(replace(resource, project=target.id), content)
        await self._add_tasks()
        self._source.require_valid()
        if self._result.conflicts and self._on_conflict == "fail" and not self._dry_run:
            raise SeveralConflicts(self._result.conflicts)
        return self._result

    # Projects

    async def _create_projects(self) -> None:
        for _, project in self._source.projects:
            found = await self._transaction.projects.by_name(project.name)
            if found is None:
                created = project.created_at or self._transaction.now
                new = Project(id=0, name=project.name, created_at=created, updated_at=created)
                found = await self._transaction.write("create", None, new)
                assert found is not None
                self._result.created["project"] += 1
            self._projects[project.id] = found

    async def _target_project(self, number: int) -> Project:
        """Return the target project for a project id of the source. Raises `ProjectNotFound`."""
        number = 0 if self._target is not None else number
        if number not in self._projects:
            name = self._target if self._target is not None else self._default
            found = await self._transaction.projects.by_name(name)
            if found is None:
                raise ProjectNotFound(name)
            self._projects[number] = found
        return self._projects[number]

    async def _project_name(self, entity: Prompt | Resource) -> str:
        project = await self._transaction.projects.get(entity.project)
        return "" if project is None else project.name

    # Prompts

    async def _add_prompt(self, prompt: Prompt) -> None:
        find, project = self._transaction.find, prompt.project
        same_id = await find("prompt", id=prompt.id) if prompt.id else None
        by_id = same_id if same_id is not None and same_id.project == project else None
        by_name = await find("prompt", project=project, name=prompt.name) if prompt.name else None
        by_title = await find("prompt", project=project, title=prompt.title) if prompt.title else None
        new = prompt if prompt.id and same_id is None else replace(prompt, id=self._transaction.new_id())
        matches = [match for match in (by_id, by_name, by_title) if match is not None]
        if any(_merge_fields(match, prompt) == match for match in matches):
            self._result.skipped["prompt"] += 1
            return
        if not matches:
            await self._create(await rename_prompt_if_taken(self._transaction, new))
            return
        project_name = await self._project_name(prompt)
        if by_id is None and by_name is None:
            self._result.conflicts.append(TitleTaken(prompt.title, project_name))
        else:
            self._result.conflicts.append(NameTaken("prompt", matches[0].name, project_name))
        if self._on_conflict == "rename":
            renamed = await rename_prompt_if_taken(self._transaction, new)
            was, now = (prompt.name, renamed.name) if prompt.name else (prompt.title, renamed.title)
            self._result.renamed.append(RenamedEntity("prompt", was, now))
            await self._create(renamed)
        elif self._on_conflict == "replace":
            await self._replace(
                matches[0],
                await rename_prompt_if_taken(
                    self._transaction, _merge_fields(matches[0], prompt), matches[0]
                ),
            )
        else:
            self._result.skipped["prompt"] += 1

    # Resources

    async def _add_resource(self, resource: Resource, content: bytes) -> None:
        find, project = self._transaction.find, resource.project
        same_id = await find("resource", id=resource.id) if resource.id else None
        by_id = same_id if same_id is not None and same_id.project == project else None
        by_name = await find("resource", project=project, name=resource.name)
        by_uri = await find("resource", project=project, uri=resource.uri)
        new = (
            resource if resource.id and same_id is None else replace(resource, id=self._transaction.new_id())
        )
        matches = [match for match in (by_id, by_name, by_uri) if match is not None]
        if any(_merge_fields(match, resource) == match for match in matches):
            self._result.skipped["resource"] += 1
            return
        if matches:
            conflict: Conflict = NameTaken("resource", matches[0].name, await self._project_name(resource))
            if by_id is None and by_name is None:
                conflict = UriTaken(resource.uri, await self._project_name(resource))
            self._result.conflicts.append(conflict)
            if self._on_conflict in ("fail", "skip"):
                self._result.skipped["resource"] += 1
                return
        await self._transaction.store_content(content)
        if matches and self._on_conflict == "replace":
            changed = await rename_resource_if_taken(
                self._transaction, _merge_fields(matches[0], resource), matches[0]
            )
            await self._replace(matches[0], changed)
            return
        renamed = await rename_resource_if_taken(self._transaction, new)
        if renamed.name != resource.name or renamed.uri != resource.uri:
            self._result.renamed.append(RenamedEntity("resource", resource.name, renamed.name))
        await self._create(renamed)

    # Tasks

    async def _add_tasks(self) -> None:
        unmatched: Counter[tuple[Any, ...]] | None = None
        for _, task in self._source.tasks():
            if not self._source.is_valid:
                continue
            if unmatched is None:
                unmatched = Counter(
                    [_fingerprint(found) async for found in all_entities(self._transaction, "task")]
                )
            if unmatched[_fingerprint(task)]:
                unmatched[_fingerprint(task)] -= 1
                self._result.skipped["task"] += 1
            else:
                await self._create(replace(task, id=0))

    # Writing

    async def _create(self, entity: Prompt | Resource | Task) -> None:
        created = entity.created_at or self._transaction.now
        new = replace(entity, created_at=created, updated_at=entity.updated_at or created, version=1)
        if not isinstance(new, Task):
            new = replace(new, number=0)
        await self._transaction.write("create", None, new)
        self._result.created[kind_of(entity)] += 1

    async def _replace(self, old: Prompt | Resource, new: Prompt | Resource) -> None:
        changed = replace(new, updated_at=self._transaction.now, version=old.version + 1)
        await self._transaction.write("update", old, changed)
        self._result.replaced[kind_of(old)] += 1


def _merge_fields(existing: Any, imported: Any) -> Any:
    """Return `existing` with the fields of `imported`. An empty name or title keeps the existing value."""
    fields = _PROMPT_FIELDS if isinstance(existing, Prompt) else _RESOURCE_FIELDS
    given = {field: getattr(imported, field) for field in fields}
    if isinstance(existing, Prompt):
        given = {field: value for field, value in given.items() if value or field not in ("name", "title")}
    return replace(existing, **given)


def _fingerprint(task: Task) -> tuple[Any, ...]:
    """Return a key that is equal for equal tasks, whatever their ids."""
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
