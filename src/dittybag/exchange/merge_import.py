"""Import of the entities of a source, completely or not at all, in one batch of ordinary writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from dittybag.domain.entities import kind_of, type_of
from dittybag.domain.errors import Conflict, NameTaken, SeveralConflicts, TitleTaken, UriTaken
from dittybag.domain.imports import ImportOptions, ImportResult, RenamedEntity
from dittybag.domain.names import NAME_LENGTH, name_from_title, numbered_names
from dittybag.domain.pins import MAX_PINS, PinKind, pin_of, split_pin
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.exchange.export_data import find_project
from dittybag.exchange.export_records import NUMBERED_KINDS
from dittybag.exchange.import_sources import FileSource
from dittybag.exchange.progress_counter import ProgressCallback
from dittybag.exchange.task_merge import TaskMerge
from dittybag.exchange.validated_source import ValidatedSource

#: The conflict of each unique field except the name.
_CONFLICTS: Final[Mapping[str, Callable[[str, str], Conflict]]] = {"title": TitleTaken, "uri": UriTaken}


class MergeImport:
    """Adds the entities of a source to a workspace."""

    def __init__(self, source: ValidatedSource, transaction: Transaction, options: ImportOptions) -> None:
        self._source = source
        self._transaction = transaction
        self._options = options
        self._result = ImportResult()
        #: The target projects by the project id in the source; 0 for entities without a project.
        self._projects: dict[int, Project] = {}
        #: The pins of projects as the source has them, by the project id here.
        self._pins: dict[int, tuple[str, ...]] = {}
        #: The pin of each added or existing prompt and resource, by its pin in the source.
        self._pinned: dict[str, str] = {}

    async def run(self) -> ImportResult:
        """Raises `Invalid`, `ProjectNotFound` and `SeveralConflicts`."""
        is_new = await self._transaction.initial_change() is not None
        if self._options.project is not None:
            await self._target_project(0)
        else:
            await self._create_projects()
        for kind in NUMBERED_KINDS:
            for _, entity, content in self._source.entities(kind):
                if self._source.is_valid:
                    project = await self._target_project(entity.project)
                    await self._add(replace(entity, project=project.id), project.name, content)
        tasks = TaskMerge(self._source, self._transaction, self._result, self._target_project)
        await tasks.run(keep_numbers=is_new and self._source.is_export)
        self._source.require_valid()
        await self._pin(tasks.ids)
        if self._result.conflicts and self._options.on_conflict == "fail" and not self._options.dry_run:
            raise SeveralConflicts(self._result.conflicts)
        return self._result

    async def _create_projects(self) -> None:
        for project in self._source.projects:
            found = await self._transaction.projects.by_name(project.name)
            if found is None:
                created = project.created_at or self._transaction.now
                new = Project(id=0, name=project.name, created_at=created, updated_at=created)
                found = await self._transaction.write("create", None, new)
                assert found is not None
                self._result.created["project"] += 1
            self._pins[found.id] = project.pins
            self._projects[project.id] = found

    async def _pin(self, tasks: Mapping[int, int]) -> None:
        """Pin to the projects what was pinned to them. `tasks`: the new ids of tasks."""
        known = self._pinned | {pin_of("task", old): pin_of("task", new) for old, new in tasks.items()}
        for number, given in self._pins.items():
            kept = [pin for pin in given if pin in known or split_pin(pin)[0] == "library"]
            project = await self._transaction.projects.get(number) if kept else None
            if project is None:
                continue
            pins = tuple(dict.fromkeys((*project.pins, *(known.get(pin, pin) for pin in kept))))[:MAX_PINS]
            if pins != project.pins:
                pinned = replace(project, pins=pins, version=project.version + 1)
                await self._transaction.write("update", project, pinned)

    async def _target_project(self, number: int) -> Project:
        """Return the target project for a project id of the source. Raises `ProjectNotFound`."""
        target = self._options.project
        number = 0 if target is not None else number
        if number not in self._projects:
            name = target if target is not None else self._options.default_project
            self._projects[number] = await find_project(self._transaction, name)
        return self._projects[number]

    async def _add(self, entity: Prompt | Resource, project: str, content: bytes) -> None:
        """Add a prompt or resource to a project, unless it exists or conflicts with existing ones."""
        kind = kind_of(entity)
        is_id_free, matches = await self._find_matches(entity)
        equal = [match for match in matches.values() if _merged(match, entity) == match]
        if equal:
            self._note_pin(entity, equal[0])
            self._result.skipped[kind] += 1
            return
        if matches:
            self._result.conflicts.append(_conflict(entity, matches, project))
            if self._options.on_conflict in ("fail", "skip"):
                self._result.skipped[kind] += 1
                return
        if isinstance(entity, Resource):
            await self._transaction.store_content(content)
        if matches and self._options.on_conflict == "replace":
            replaced = next(iter(matches.values()))
            await self._replace(replaced, entity)
            self._note_pin(entity, replaced)
            return
        new = entity if is_id_free else replace(entity, id=self._transaction.new_id())
        renamed = await rename_if_taken(self._transaction, new)
        self._record_rename(entity, renamed)
        await self._create(renamed)
        self._note_pin(entity, renamed)

    def _note_pin(self, entity: Prompt | Resource, stored: Any) -> None:
        """Note how an entity of the source would be pinned here."""
        kind: PinKind = "prompt" if isinstance(entity, Prompt) else "resource"
        self._pinned[pin_of(kind, entity.id)] = pin_of(kind, stored.id)

    async def _find_matches(self, entity: Prompt | Resource) -> tuple[bool, dict[str, Any]]:
        """Return whether the id is given and free, and the existing entities of the project that match.

        The matches are listed by the field whose value is equal: the id, then the unique fields.
        """
        find, described = self._transaction.find, type_of(entity)
        same_id = await find(described.kind, id=entity.id) if entity.id else None
        matches = {"id": same_id if same_id is not None and same_id.project == entity.project else None}
        for field in described.unique:
            if value := getattr(entity, field):
                matches[field] = await find(described.kind, project=entity.project, **{field: value})
        found = {field: match for field, match in matches.items() if match is not None}
        return bool(entity.id) and same_id is None, found

    def _record_rename(self, entity: Prompt | Resource, renamed: Any) -> None:
        """Record the first unique field whose value was changed, if any."""
        described = type_of(entity)
        for field in described.unique:
            old, new = getattr(entity, field), getattr(renamed, field)
            if old and old != new:
                self._result.renamed.append(RenamedEntity(described.kind, old, new))
                return

    async def _create(self, entity: Prompt | Resource) -> None:
        created = entity.created_at or self._transaction.now
        updated = entity.updated_at or created
        new = replace(entity, number=0, created_at=created, updated_at=updated, version=1)
        await self._transaction.write("create", None, new)
        self._result.created[kind_of(entity)] += 1

    async def _replace(self, old: Any, entity: Prompt | Resource) -> None:
        new = await rename_if_taken(self._transaction, _merged(old, entity), old)
        changed = replace(new, updated_at=self._transaction.now, version=old.version + 1)
        await self._transaction.write("update", old, changed)
        self._result.replaced[kind_of(entity)] += 1


def _conflict(entity: Prompt | Resource, matches: Mapping[str, Any], project: str) -> Conflict:
    field, match = next(iter(matches.items()))
    if field in _CONFLICTS:
        return _CONFLICTS[field](getattr(entity, field), project)
    return NameTaken(kind_of(entity), match.name, project)


def _merged(existing: Any, imported: Prompt | Resource) -> Any:
    """Return `existing` with the edited fields of `imported`. An empty name or title is not taken over."""
    described = type_of(imported)
    values = described.edited_values(imported).items()
    return replace(
        existing, **{field: value for field, value in values if value or field not in described.unique}
    )


# The transaction


class _DryRunRollback(Exception):
    """Raised after a successful dry run, so that the transaction is rolled back."""

    def __init__(self, result: ImportResult) -> None:
        self.result = result


async def import_source(
    store: Store, source: FileSource, options: ImportOptions, on_progress: ProgressCallback | None = None
) -> ImportResult:
    """Import a source: add its entities in one batch.

    Raises `Invalid`, `ProjectNotFound` and `SeveralConflicts`.
    """
    run = partial(_import, source=source, options=options, on_progress=on_progress)
    try:
        result = await store.write(run, actor=options.actor)
    except _DryRunRollback as rollback:
        result = rollback.result
    result.renamed[:0] = source.renamed
    result.notes = source.notes
    return result


async def _import(
    transaction: Transaction,
    source: FileSource,
    options: ImportOptions,
    on_progress: ProgressCallback | None,
) -> ImportResult:
    # Thousands of tasks are read and compared between two queries.
    await transaction.allow_pauses()
    validated = ValidatedSource(source, on_progress)
    result = await MergeImport(validated, transaction, options).run()
    if options.dry_run:
        raise _DryRunRollback(result)
    return result


# Numbered alternatives for names, titles and URIs that are already in use


#: How a number is added to the value of a field.
_NUMBERED_FORMS: Final = {"title": " ({})"}
_NUMBERED_FORM: Final = "-{}"


async def rename_if_taken(transaction: Transaction, entity: Any, old: Any = None) -> Any:
    """Return a prompt or resource with unique fields that no other entity of the project except `old` uses.

    An empty name or title of a prompt is derived from the other.
    """
    if isinstance(entity, Prompt):
        name, title = entity.name or name_from_title(entity.title), entity.title or entity.name
        entity = replace(entity, name=name, title=title)
    for field in type_of(entity).unique:
        if old is None or getattr(old, field) != getattr(entity, field):
            entity = replace(entity, **{field: await _first_free(transaction, entity, field)})
    return entity


async def _first_free(transaction: Transaction, entity: Any, field: str) -> str:
    described = type_of(entity)
    form = _NUMBERED_FORMS.get(field, _NUMBERED_FORM)
    length = described.field(field).max_length or NAME_LENGTH
    for candidate in numbered_names(getattr(entity, field), form, length):
        found = await transaction.find(described.kind, project=entity.project, **{field: candidate})
        if found is None:
            return candidate
    raise AssertionError("numbered_names is infinite")
