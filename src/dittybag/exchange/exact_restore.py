"""Import of an export into an empty workspace, which becomes an exact copy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from dittybag.domain.changes import Change, Purged
from dittybag.domain.entities import (
    ENTITY_TYPES,
    Entity,
    Kind,
    key_of,
    kind_of,
    label_of,
    project_of,
    type_of,
)
from dittybag.domain.errors import Invalid, InvalidHistory, clip
from dittybag.domain.imports import ImportResult
from dittybag.domain.ports import Transaction
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.domain.prompts import Prompt, normalise_tags
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.exchange.export_data import all_entities
from dittybag.exchange.export_records import NUMBERED_KINDS
from dittybag.exchange.free_names import rename_if_taken
from dittybag.exchange.id_mapping import IdMapping
from dittybag.exchange.import_rules import (
    NUMBER_LIMIT,
    SHORT_TEXT,
    TIME_LIMIT,
    ContentFacts,
    content_facts,
    entity_problems,
    is_short_text,
)
from dittybag.exchange.task_edges import SourceTasks, edges_of
from dittybag.exchange.validated_source import ValidatedSource

#: How people call the unique fields of each kind.
_UNIQUE_LABELS: Final = {"name": "{} name", "title": "title", "uri": "URI"}


def can_restore(source: ValidatedSource, first: Change) -> bool:
    """Return whether a workspace whose only change is `first` can become a copy of the source.

    The workspace keeps the id of its default project, because running servers use it.
    """
    default = first.after
    assert isinstance(default, Project)
    ids = [project.id for project in source.projects]
    if any(number <= 0 for number in ids) or len(set(ids)) != len(ids):
        return False
    default_ids = [project.id for project in source.projects if project.name == DEFAULT_PROJECT]
    return default_ids == [default.id] if default_ids else default.id not in ids


class ExactRestore:
    """Restores an export into an empty workspace."""

    def __init__(self, source: ValidatedSource, transaction: Transaction, first: Change) -> None:
        """`first`: the change that created the default project of the empty workspace."""
        self._source = source
        self._transaction = transaction
        self._first = first
        found = [project for project in source.projects if project.name == DEFAULT_PROJECT]
        self._has_default = bool(found)
        existing = first.after
        assert isinstance(existing, Project)
        self._default = found[0] if found else existing
        self._known_contents: dict[str, ContentFacts] = {}
        self._tasks = SourceTasks(source)
        self._result = ImportResult(exact=True)

    async def with_history(self) -> ImportResult:
        """Replay the history of the source. Raises `Invalid`."""
        for _, content in self._source.contents():
            await self._store_content(content)
        for _, _, content in self._source.entities("resource"):
            await self._store_content(content)
        self._source.require_valid()
        try:
            await self._transaction.replay(self._checked_log())
            self._source.require_valid()
        except Invalid as error:
            raise InvalidHistory(error.problems) from error
        await self._compare_with_listed()
        self._source.require_valid()
        return self._result

    async def without_history(self, actor: str) -> ImportResult:
        """Create the current entities of the source. Raises `Invalid`."""
        numbered, tasks = self._scan_entities()
        self._tasks.check()
        projects = [project.id for project in self._source.projects if project.name != DEFAULT_PROJECT]
        self._source.require_valid()
        for _, _, content in self._source.entities("resource"):
            await self._transaction.store_content(content)
        mapping = IdMapping(projects, numbered, tasks)
        await self._transaction.replay(self._create_changes(actor, mapping))
        self._source.require_valid()
        self._tasks.add_note()
        return self._result

    # With history

    async def _store_content(self, content: bytes) -> None:
        self._known_contents[await self._transaction.store_content(content)] = content_facts(content)

    async def _checked_log(self) -> AsyncIterator[Change]:
        """Yield the changes, each with the state before it. Raises `Invalid` at the first invalid change."""
        last: Change | None = None
        #: The number of each entity that ever existed.
        numbers: dict[tuple[Kind, str], int] = {}
        #: The current states that were purged.
        purged: dict[tuple[Kind, str], Purged] = {}
        #: The tasks that are named in `blocked_by` or `parent`, each with the first place.
        named: dict[str, str] = {}
        first = None if self._has_default else self._first
        for location, given in self._source.changes():
            # The changes after one that cannot be read do not fit.
            self._source.require_valid()
            if first is not None and first.seq < given.seq:
                yield first
                first = None
            key = given.kind, given.entity
            current = await self._transaction.find(given.kind, id=_parse_id(given.kind, given.entity))
            change = _with_project(replace(given, before=purged.pop(key, current)))
            for problem in self._change_problems(change, last, numbers.get(key)):
                self._source.add_problem(location, problem)
                self._source.require_valid()
            await self._check_project_name(location, given.after, purged)
            if given.after is not None:
                numbers[key] = getattr(given.after, "number", given.seq)
            if isinstance(given.after, Task):
                for number in edges_of(given.after):
                    named.setdefault(str(number), location)
            if isinstance(given.after, Purged):
                purged[key] = given.after
            yield change
            self._result.changes += 1
            last = given
        if first is not None:
            yield first
        for kind, entity in purged:
            self._source.add_problem("changes", f"the last state of {kind} {entity} was purged")
        for entity, location in named.items():
            if ("task", entity) not in numbers:
                problem = f"blocked_by or parent names task {entity}, which is not in the history"
                self._source.add_problem(location, problem)

    async def _check_project_name(
        self, location: str, state: Entity | Purged | None, purged: Mapping[tuple[Kind, str], Purged]
    ) -> None:
        """Check that a shared task has the name of its project. Raises `Invalid`."""
        if not isinstance(state, Task) or state.project_id is None:
            return
        if ("project", str(state.project_id)) in purged:
            return
        project = await self._transaction.projects.get(state.project_id)
        # The database refuses a task of a missing project.
        if project is not None and project.name != state.project:
            self._source.add_problem(location, f"project must be the name of project {project.id}")
            self._source.require_valid()

    def _change_problems(self, change: Change, last: Change | None, known: int | None) -> Iterator[str]:
        """Yield the problems with a change after `last`. `known`: the number of an entity that existed."""
        before, after = change.before, change.after
        previous, batch = (0, None) if last is None else (last.seq, last.batch)
        if not previous < change.seq < NUMBER_LIMIT:
            yield "changes must be in ascending order of seq"
        if not (previous < change.batch <= change.seq or change.batch == batch):
            yield "batch must be that of the previous change, or a seq after it"
        if not 0 <= change.at < TIME_LIMIT:
            yield "at is out of range"
        if not is_short_text(change.actor):
            yield f"actor must be {SHORT_TEXT}"
        allowed = {
            "create": before is None and after is not None and known is None,
            "update": before is not None and after is not None,
            "delete": before is not None and after is None,
            "restore": known is not None and (before is not None or after is not None),
        }
        if not allowed[change.action]:
            yield f"action '{change.action}' does not fit the state of the entity at this point"
        if change.purged is not None:
            yield from _purged_project_problems(change)
        number = change.seq if known is None else known
        if after is not None and change.kind in NUMBERED_KINDS and getattr(after, "number", 0) != number:
            yield f"number must be {number}"
        if isinstance(after, Purged):
            yield from _purged_problems(change, after)
        elif after is not None:
            yield from self._entity_problems(change, after)

    def _entity_problems(self, change: Change, after: Entity) -> Iterator[str]:
        if key_of(after) != change.entity:
            yield "entity must be the id of the entity in after"
        before, content = change.before, None
        if isinstance(before, Prompt | Resource) and project_of(before) != project_of(after):
            yield "a prompt or resource cannot move to another project"
        if not after.id:
            yield "id is required"
        if isinstance(after, Prompt) and not (
            after.name and after.title and after.tags == normalise_tags(after.tags)
        ):
            yield "a prompt must have a name, a title, and lower-case tags without duplicates"
        if isinstance(after, Resource):
            content = self._known_contents.get(after.sha256)
            if content is None or content.size != after.size:
                yield "the content of the resource is missing"
        yield from entity_problems(after, content)

    async def _compare_with_listed(self) -> None:
        """Check that replaying the history has produced the listed entities."""
        for kind in ENTITY_TYPES:
            listed = 0 if kind != "project" or self._has_default else 1
            for location, entity, _ in self._source.entities(kind):
                listed += 1
                if kind == "task":
                    self._tasks.add(location, entity)
                if await self._transaction.find(kind, id=entity.id) != entity:
                    name = clip(label_of(entity), 100)
                    problem = f"{kind} '{name}' does not match the history"
                    self._source.add_problem(location, problem, history=True)
            found = sum([1 async for _ in all_entities(self._transaction, kind)])
            self._result.created[kind] = found
            if found != listed:
                problem = f"the history produces {found} {kind}s, but {listed} are listed"
                self._source.add_problem("changes", problem, history=True)
        # The default project already existed.
        self._result.created["project"] -= 1
        self._tasks.check()
        default = await self._transaction.projects.by_name(DEFAULT_PROJECT)
        if default is None or default.id != self._default.id:
            problem = "the default project is missing or has another id"
            self._source.add_problem("changes", problem, history=True)

    # Without history

    def _scan_entities(self) -> tuple[list[tuple[int, int]], int]:
        """Check for duplicates. Returns (number, project) of prompts and resources, and the task count."""
        seen: dict[Hashable, str] = {}
        numbered: list[tuple[int, int]] = []
        tasks = 0
        for kind in ENTITY_TYPES:
            for location, entity, _ in self._source.entities(kind):
                project = 0
                if kind in NUMBERED_KINDS:
                    project = entity.project or self._default.id
                    numbered.append((entity.number, project))
                if kind == "task":
                    tasks += 1
                    self._tasks.add(location, entity)
                for label, value in _unique_values(entity, project):
                    if (other := seen.setdefault((label, value), location)) != location:
                        self._source.add_problem(location, f"it has the same {label} as {other}")
        return numbered, tasks

    async def _create_changes(self, actor: str, mapping: IdMapping) -> AsyncIterator[Change]:
        default = self._create_change(mapping.default, self._default, mapping.default, self._first.actor)
        yield replace(default, at=self._first.at)
        # The default project already existed.
        self._result.created["project"] = 0
        batch = mapping.batch
        for project in self._source.projects:
            if project.name != DEFAULT_PROJECT:
                yield self._create_change(mapping.projects[project.id], project, batch, actor)
        numbers = iter(mapping.numbers)
        for kind in NUMBERED_KINDS:
            for _, entity, _ in self._source.entities(kind):
                number = next(numbers)
                assigned = replace(
                    entity,
                    number=number,
                    id=entity.id or self._transaction.new_id(),
                    project=entity.project or self._default.id,
                )
                renamed = await rename_if_taken(self._transaction, assigned)
                yield self._create_change(number, renamed, batch, actor)
        free = max((task.id for _, task, _ in self._source.entities("task")), default=0)
        for (location, given, _), number in zip(self._source.entities("task"), mapping.tasks, strict=True):
            free += 0 if given.id else 1
            task = self._tasks.without_missing(location, given)
            if task.project_id == 0:
                task = replace(task, project_id=self._default.id)
            yield self._create_change(number, replace(task, id=task.id or free), batch, actor)

    def _create_change(self, seq: int, entity: Entity, batch: int, actor: str) -> Change:
        now = self._transaction.now
        self._result.created[kind_of(entity)] += 1
        created = replace(entity, created_at=entity.created_at or now, updated_at=entity.updated_at or now)
        return Change(
            seq=seq,
            batch=batch,
            at=now,
            actor=actor,
            action="create",
            kind=kind_of(entity),
            entity=key_of(entity),
            project=project_of(entity),
            before=None,
            after=created,
        )


def _unique_values(entity: Entity, project: int) -> Iterator[tuple[str, Hashable]]:
    """Yield the label and the value of each field that no two entities may share. Empty values may be."""
    described = type_of(entity)
    if entity.id and described.kind != "project":
        yield "task id" if described.kind == "task" else "id", entity.id
    for field in described.unique:
        if value := getattr(entity, field):
            yield _UNIQUE_LABELS[field].format(described.kind), (project, value)


def _with_project(change: Change) -> Change:
    """Return a change with the project of its entity; the record of a purged change names it."""
    if change.purged is not None:
        return change
    entity: Any = change.after if change.after is not None else change.before
    return replace(change, project=None if entity is None else project_of(entity))


def _purged_project_problems(change: Change) -> Iterator[str]:
    """Yield the problems with the project of a change with a purged state, which the record names."""
    if change.project is None and change.kind != "task":
        yield "project is required for a purged change, except of a task"
    if change.project is not None and not 0 < change.project < NUMBER_LIMIT:
        yield "project is out of range"
    if not isinstance(change.after, Purged | None) and change.project != project_of(change.after):
        yield "project must be that of the entity in after"


def _purged_problems(change: Change, purged: Purged) -> Iterator[str]:
    if _parse_id(change.kind, change.entity) == -1:
        yield "entity must be the id of the entity"
    if not 0 < purged.version < NUMBER_LIMIT or not 0 <= purged.at < TIME_LIMIT:
        yield "version or at is out of range"
    if not (is_short_text(purged.by) and is_short_text(purged.user)):
        yield f"by and user must be {SHORT_TEXT}"


def _parse_id(kind: Kind, entity: str) -> str | int:
    """Return an entity id as its table stores it; -1 if it is not valid."""
    if kind in NUMBERED_KINDS:
        return entity
    return int(entity) if entity.isascii() and entity.isdigit() and len(entity) <= 16 else -1
