"""Plans: tasks that are created together, with edges between them, all of them or none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.errors import Invalid, Problem, ProjectNotFound, TaskCycle, clip, require
from dittybag.domain.ports import Transaction, Write
from dittybag.domain.projects import NEW_PROJECT
from dittybag.domain.queries import TaskQuery
from dittybag.domain.task_cycles import find_cycle
from dittybag.domain.task_drafts import MAX_DRAFTS, TaskDraft, TaskImport
from dittybag.domain.task_graph import GraphQuery
from dittybag.domain.tasks import NO_PROJECT, Task, problems
from dittybag.services.caller import Caller, require_write_scope
from dittybag.services.entity_writes import create, next_version
from dittybag.services.task_access import find_writable_task, task_project, visible_view
from dittybag.services.task_edges import task_titles
from dittybag.services.task_service import page_tasks

#: Fields of a draft that are not stored as they are.
_RESOLVED: Final = frozenset(
    ("key", "project", "parent", "blocked_by", "source", "links", "completed_at", "created_at")
)
_STORED: Final = tuple(name for name in TaskDraft.__struct_fields__ if name not in _RESOLVED)
#: The largest number that a database stores.
_MAX_ID: Final = 2**63 - 1
#: At most this many tasks of a cycle are named.
_MAX_NAMED: Final = 20
#: The number of tasks to read at a time.
_PAGE: Final = 1_000


class _Target(Struct, frozen=True):
    """The project of new tasks; `None` if they are the caller's alone."""

    project: str | None = None
    project_id: int | None = None


async def plan_tasks(
    transaction: Transaction,
    caller: Caller,
    drafts: Sequence[TaskDraft],
    project: str | UnsetType | None = UNSET,
) -> list[Task]:
    """Create tasks in one batch: all of them or, if one is invalid, none. Returns them in the given order.

    `project`: as for `task_project`. Raises `Invalid`, also for an edge to a task that the caller cannot see,
    and `TaskCycle`.
    """
    if not 1 <= len(drafts) <= MAX_DRAFTS:
        problem = f"between 1 and {MAX_DRAFTS} tasks can be added together, not {len(drafts)}"
        raise Invalid([Problem("tasks", problem, is_shape=True)])
    require_write_scope(caller)
    target = _Target(*await task_project(transaction, caller, project))
    tasks = await _resolve(transaction, caller, drafts, target, known={})
    return await _create_all(transaction, tasks)


async def import_tasks(
    transaction: Transaction,
    caller: Caller,
    drafts: Sequence[TaskDraft],
    project: str | UnsetType | None = UNSET,
    *,
    dry_run: bool = False,
) -> TaskImport:
    """Create the tasks that the project does not have yet; those that were imported before stay as they are.

    Like `plan_tasks`, but without a maximum. Also raises `ProjectNotFound`. The tasks of a dry run have the
    number 0 and no edges.
    """
    require_write_scope(caller)
    target = await _import_target(transaction, caller, project, dry_run=dry_run)
    imported = await _imported_before(transaction, caller, target, drafts)
    new = [draft for draft in drafts if draft.source not in imported]
    known = {draft.key: imported[draft.source] for draft in drafts if draft.key and draft.source in imported}
    tasks = await _resolve(transaction, caller, new, target, known)
    if dry_run:
        created = [replace(task, parent=None, blocked_by=()) for task in tasks]
    else:
        created = await _create_all(transaction, tasks)
    return TaskImport(created, len(drafts) - len(new))


async def _import_target(
    transaction: Transaction, caller: Caller, project: str | UnsetType | None, *, dry_run: bool
) -> _Target:
    """Like `task_project`, but a name must be that of a project, and a dry run creates none."""
    if dry_run and project is UNSET and caller.project == NEW_PROJECT:
        return _Target()
    target = _Target(*await task_project(transaction, caller, project))
    if target.project is not None and target.project_id is None:
        raise ProjectNotFound(target.project)
    return target


async def _imported_before(
    transaction: Transaction, caller: Caller, target: _Target, drafts: Sequence[TaskDraft]
) -> dict[str, int]:
    """Return the numbers of the tasks of a project that drafts were imported as, by their source."""
    wanted = {draft.source for draft in drafts if draft.source}
    found: dict[str, int] = {}
    query = TaskQuery(user=caller.user, project=target.project or NO_PROJECT, limit=_PAGE)
    while wanted and (tasks := await page_tasks(transaction, caller, query)):
        for task in tasks:
            if task.project_id == target.project_id:
                found.update((link, task.id) for link in task.links if link in wanted)
        query = replace(query, offset=query.offset + _PAGE)
    return found


# Drafts become tasks whose edges are numbers: of an existing task or, negative, of a draft.


def _number(index: int) -> int:
    return -index - 1


async def _resolve(
    transaction: Transaction,
    caller: Caller,
    drafts: Sequence[TaskDraft],
    target: _Target,
    known: Mapping[str, int],
) -> list[Task]:
    """Return the tasks of valid drafts. `known`: the numbers of existing tasks by keys that drafts use."""
    named = {
        reference
        for draft in drafts
        for reference in (draft.parent, *draft.blocked_by)
        if isinstance(reference, int)
    }
    visible = await _visible(transaction, caller, named)
    _require_valid(drafts, set(known), named - visible)
    for number in sorted({draft.parent for draft in drafts if isinstance(draft.parent, int)}):
        # The parent will wait for the task.
        await find_writable_task(transaction, caller, number)
    numbers = {draft.key: _number(index) for index, draft in enumerate(drafts) if draft.key} | dict(known)
    targets: dict[object, _Target] = {UNSET: target}
    for draft in drafts:
        if draft.project not in targets:
            targets[draft.project] = _Target(*await task_project(transaction, caller, draft.project))
    tasks = [
        _to_task(draft, numbers, caller.user, transaction.now, targets[draft.project]) for draft in drafts
    ]
    await _require_no_cycle(transaction, caller, drafts, tasks)
    return tasks


async def _visible(transaction: Transaction, caller: Caller, numbers: set[int]) -> set[int]:
    """Return those of the tasks that the caller can see."""
    # Only drafts have negative numbers.
    ids = tuple(number for number in numbers if 0 < number <= _MAX_ID)
    if not ids:
        return set()
    view = await visible_view(transaction, caller)
    query = GraphQuery(user=caller.user, view=view, ids=ids, ended=True, limit=len(ids))
    return {task.id for task in (await transaction.edges.graph(query))[1]}


def _require_valid(drafts: Sequence[TaskDraft], keys: set[str], missing: set[int]) -> None:
    """Raise `Invalid` with all problems of drafts.

    `keys`: of existing tasks; those of the drafts are added. `missing`: numbers that no task has.
    """
    sources: set[str] = set()
    found: list[Problem] = []
    for index, draft in enumerate(drafts):
        given = {} if draft.project is UNSET else {"project": draft.project}
        fields = _stored_fields(draft) | given | {"blocked_by": draft.blocked_by}
        found += _located(index, draft, problems(**fields))
        for name, value, taken in (("key", draft.key, keys), ("source", draft.source, sources)):
            if value and value in taken:
                found += _located(index, draft, [Problem(name, f"{name} '{clip(value, 60)}' is not unique")])
            taken.update([value] if value else ())
    for index, draft in enumerate(drafts):
        found += _located(index, draft, _edge_problems(draft, keys, missing))
    require(found)


def _edge_problems(draft: TaskDraft, keys: set[str], missing: set[int]) -> Iterator[Problem]:
    parents = () if draft.parent is None else (draft.parent,)
    for field, references in (("parent", parents), ("blocked_by", draft.blocked_by)):
        for reference in references:
            if isinstance(reference, str) and reference not in keys:
                yield Problem(field, f"{field}: no task has the key '{clip(reference, 60)}'")
            elif reference in missing:
                yield Problem(field, f"{field}: task {reference} does not exist")


def _located(index: int, draft: TaskDraft, found: Iterable[Problem]) -> Iterator[Problem]:
    where = f"task {index + 1} '{clip(draft.title, 60)}'"
    for problem in found:
        yield Problem(f"tasks.{index}.{problem.field}".rstrip("."), f"{where}: {problem.message}")


def _stored_fields(draft: TaskDraft) -> dict[str, Any]:
    fields = {name: getattr(draft, name) for name in _STORED}
    links = dict.fromkeys((*draft.links, *([draft.source] if draft.source else ())))
    return fields | {"labels": tuple(dict.fromkeys(draft.labels)), "links": tuple(links)}


def _to_task(draft: TaskDraft, numbers: Mapping[str, int], user: str, now: int, target: _Target) -> Task:
    def number(reference: str | int) -> int:
        return numbers[reference] if isinstance(reference, str) else reference

    is_done = draft.status == "done"
    return Task(
        id=0,
        user=user,
        project=target.project,
        project_id=target.project_id,
        **ENTITY_TYPES["task"].normalise(_stored_fields(draft)),
        parent=None if draft.parent is None else number(draft.parent),
        blocked_by=tuple(dict.fromkeys(map(number, draft.blocked_by))),
        completed_at=(now if draft.completed_at is None else draft.completed_at) if is_done else None,
        created_at=now if draft.created_at is None else min(draft.created_at, now),
        updated_at=now,
    )


def _references(task: Task) -> tuple[int, ...]:
    return task.blocked_by if task.parent is None else (task.parent, *task.blocked_by)


async def _require_no_cycle(
    transaction: Transaction, caller: Caller, drafts: Sequence[TaskDraft], tasks: Sequence[Task]
) -> None:
    """Raise `TaskCycle` if tasks would wait for each other. A task also waits for its parts."""
    edges: dict[int, list[int]] = {}
    for index, task in enumerate(tasks):
        edges.setdefault(_number(index), []).extend(task.blocked_by)
        if task.parent is not None:
            edges.setdefault(task.parent, []).append(_number(index))
    if any(number > 0 for number in edges):
        # An existing task gets a part, so that a path can lead through existing tasks back to a new one.
        await _add_existing(transaction, edges)
    if cycle := find_cycle(edges):
        raise TaskCycle(await _names(transaction, caller, cycle[:-1], drafts))


async def _add_existing(transaction: Transaction, edges: dict[int, list[int]]) -> None:
    """Add what the existing tasks of a graph wait for."""
    found = {number for number in {*edges, *chain.from_iterable(edges.values())} if number > 0}
    for task, blocker in await transaction.edges.all_blockers(sorted(found)):
        edges.setdefault(task, []).append(blocker)


async def _names(
    transaction: Transaction, caller: Caller, numbers: Sequence[int], drafts: Sequence[TaskDraft]
) -> list[str]:
    """Return tasks for people, drafts with their keys; the first of them if there are many."""
    names = []
    for number in numbers[:_MAX_NAMED]:
        if number > 0:
            names += await task_titles(transaction, caller, [number])
        else:
            draft = drafts[-number - 1]
            names.append(f"{clip(draft.key, 60) or f'new task {-number}'} '{clip(draft.title, 60)}'")
    left_out = len(numbers) - _MAX_NAMED
    return [*names, f"{left_out} more"] if left_out > 0 else names


# Writing


async def _create_all(transaction: Transaction, tasks: Sequence[Task]) -> list[Task]:
    """Store tasks, each after those that it refers to. An edge for which that is impossible is added last."""
    ids: dict[int, int] = {}
    stored: dict[int, Task] = {}
    for index in _creation_order(tasks):
        stored[index] = await create(transaction, replace(tasks[index], **_edges(tasks[index], ids)))
        ids[_number(index)] = stored[index].id
    writes: list[Write] = []
    for index, task in stored.items():
        complete = _edges(tasks[index], ids)
        if complete != _edges(task, ids):
            stored[index] = next_version(task, transaction.now, **complete)
            writes.append(Write("update", task, stored[index]))
    await transaction.write_all(writes)
    return [stored[index] for index in range(len(tasks))]


def _edges(task: Task, ids: Mapping[int, int]) -> dict[str, Any]:
    """Return the edges of a task to those that exist. `ids`: of drafts that were stored."""
    parent = None if task.parent is None else ids.get(task.parent, task.parent)
    blockers = (ids.get(number, number) for number in task.blocked_by)
    return {
        "parent": parent if parent is not None and parent > 0 else None,
        "blocked_by": tuple(number for number in blockers if number > 0),
    }


def _creation_order(tasks: Sequence[Task]) -> list[int]:
    """Return the indexes of tasks, those that a task refers to before it, otherwise in the given order."""
    order: dict[int, None] = {}
    visited: set[int] = set()
    for start in range(len(tasks)):
        stack = [start]
        while stack:
            index = stack[-1]
            if index in visited:
                order[stack.pop()] = None
                continue
            visited.add(index)
            before = (-number - 1 for number in reversed(_references(tasks[index])) if number < 0)
            stack.extend(other for other in before if other not in visited)
    return list(order)
