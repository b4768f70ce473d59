"""Reproduction: an untouched workspace becomes what another one was."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from dittybag.domain.changes import KINDS, Change, Entity, Kind, key_of, kind_of, label_of, project_of
from dittybag.domain.errors import Problem, clip
from dittybag.domain.ports import Transaction
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.domain.prompts import Prompt, normalise_tags
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.domain.text import body_problem
from dittybag.services.exchange.exchange_types import Intake, nothing
from dittybag.services.exchange.export_data import all_things
from dittybag.services.exchange.free_names import named
from dittybag.services.exchange.id_mapping import Numbering
from dittybag.services.exchange.import_rules import (
    FAR,
    ContentFacts,
    facts,
    project_problems,
    prompt_problems,
    resource_problems,
    task_problems,
)
from dittybag.services.exchange.validated import Reading

_ACTOR_LENGTH: Final = 10_000


def possible(reading: Reading, first: Change) -> bool:
    """Whether a workspace in which only `first` has happened can become this one.

    It keeps the number of its default project: servers that are running know it.
    """
    default = first.after
    assert isinstance(default, Project)
    numbers = [project.id for _, project in reading.projects]
    if any(number <= 0 for number in numbers) or len(set(numbers)) != len(numbers):
        return False
    named = [project.id for _, project in reading.projects if project.name == DEFAULT_PROJECT]
    return named == [default.id] if named else default.id not in numbers


class Reproduction:
    """Fills an untouched workspace."""

    def __init__(self, reading: Reading, transaction: Transaction, first: Change) -> None:
        """`first`: the change that made the default project here."""
        self._reading = reading
        self._transaction = transaction
        self._first = first
        found = [project for _, project in reading.projects if project.name == DEFAULT_PROJECT]
        self._has_default = bool(found)
        here = first.after
        assert isinstance(here, Project)
        self._default = found[0] if found else here
        self._known: dict[str, ContentFacts] = {}
        self._intake = nothing()
        self._intake.exact = True

    async def with_history(self) -> Intake:
        """Do all that was done there. Raises `Invalid`."""
        for _, content in self._reading.contents():
            await self._keep(content)
        for _, _, content in self._reading.resources():
            await self._keep(content)
        self._reading.require_sound()
        await self._transaction.replay(self._log())
        self._reading.require_sound()
        await self._compare()
        self._reading.require_sound()
        return self._intake

    async def without_history(self, actor: str) -> Intake:
        """Create what is there now. Raises `Invalid`."""
        numbered, tasks = self._looked_through()
        projects = [project.id for _, project in self._reading.projects if project.name != DEFAULT_PROJECT]
        self._reading.require_sound()
        for _, _, content in self._reading.resources():
            await self._transaction.store_content(content)
        numbering = Numbering(projects, numbered, tasks)
        await self._transaction.replay(self._creations(actor, numbering))
        self._reading.require_sound()
        return self._intake

    # With the history

    async def _keep(self, content: bytes) -> None:
        self._known[await self._transaction.store_content(content)] = facts(content)

    async def _log(self) -> AsyncIterator[Change]:
        """The changes, each with what was there before it. Raises `Invalid`: after it nothing makes sense."""
        last: Change | None = None
        #: The numbers of all things that there ever were.
        numbers: dict[tuple[Kind, str], int] = {}
        own = None if self._has_default else self._first
        for place, given in self._reading.changes():
            if own is not None and own.seq < given.seq:
                yield own
                own = None
            current = await self._transaction.find(given.kind, id=_id(given.kind, given.entity))
            thing = given.after if given.after is not None else current
            change = replace(given, before=current, project=None if thing is None else project_of(thing))
            for problem in self._change_problems(change, last, numbers):
                self._reading.problem(place, problem.message)
                self._reading.require_sound()
            if given.after is not None:
                numbers[given.kind, given.entity] = getattr(given.after, "number", given.seq)
            yield change
            self._intake.changes += 1
            last = given
        if own is not None:
            yield own

    def _change_problems(
        self, change: Change, last: Change | None, numbers: Mapping[tuple[Kind, str], int]
    ) -> Iterator[Problem]:
        before, after = change.before, change.after
        known = numbers.get((change.kind, change.entity))
        if not (last.seq if last is not None else 0) < change.seq < FAR:
            yield Problem("seq", "changes must be in the order of their numbers")
        beginning = last.seq if last is not None else 0
        if not (beginning < change.batch <= change.seq or (last is not None and change.batch == last.batch)):
            yield Problem("batch", "batch must be that of the change before it, or begin after it")
        if not 0 <= change.at < 32 * FAR:
            yield Problem("at", "at is out of range")
        if len(change.actor) > _ACTOR_LENGTH or body_problem("", change.actor):
            yield Problem("actor", f"actor must be a text of at most {_ACTOR_LENGTH} characters without NUL")
        fitting = {
            "create": before is None and after is not None and known is None,
            "update": before is not None and after is not None,
            "delete": before is not None and after is None,
            "restore": known is not None and (before is not None or after is not None),
        }
        if not fitting[change.action]:
            yield Problem("action", f"there is nothing to {change.action} here, or it is there already")
        if after is not None:
            yield from self._thing_problems(change, after, known)

    def _thing_problems(self, change: Change, after: Entity, known: int | None) -> Iterator[Problem]:
        if key_of(after) != change.entity:
            yield Problem("entity", "it is not the thing that the change is about")
        number = change.seq if known is None else known
        if isinstance(after, Prompt | Resource) and after.number != number:
            yield Problem("number", f"the number of this thing must be {number}")
        if change.before is not None and project_of(change.before) != project_of(after):
            yield Problem("project", "things stay in their project")
        if not after.id:
            yield Problem("id", "it needs an id")
        if isinstance(after, Project):
            yield from project_problems(after)
        elif isinstance(after, Prompt):
            yield from prompt_problems(after)
            if not (after.name and after.title) or after.tags != normalise_tags(after.tags):
                yield Problem("after", "a prompt needs a name, a title, and tags in lower case")
        elif isinstance(after, Task):
            yield from task_problems(after)
        else:
            yield from self._resource_problems(after)

    def _resource_problems(self, resource: Resource) -> Iterator[Problem]:
        content = self._known.get(resource.sha256)
        if content is None or content.size != resource.size:
            yield Problem("sha256", "its content is missing")
        else:
            yield from resource_problems(resource, content)

    async def _compare(self) -> None:
        """What the history has led to must be what is listed."""
        listed: dict[Kind, int] = dict.fromkeys(KINDS, 0)
        listed["project"] = 0 if self._has_default else 1
        for place, thing in self._listed():
            kind = kind_of(thing)
            listed[kind] += 1
            if await self._transaction.find(kind, id=thing.id) != thing:
                name = clip(label_of(thing), 100)
                self._reading.problem(place, f"{kind} '{name}' is not what the history leads to")
        for kind in KINDS:
            found = sum([1 async for _ in all_things(self._transaction, kind)])
            self._intake.created[kind] = found
            if found != listed[kind]:
                problem = f"the history leads to {found} {kind}s, and {listed[kind]} are listed"
                self._reading.problem("changes", problem)
        # The default one was here.
        self._intake.created["project"] -= 1
        default = await self._transaction.projects.by_name(DEFAULT_PROJECT)
        if default is None or default.id != self._default.id:
            self._reading.problem("changes", "the default project must always be there")

    def _listed(self) -> Iterator[tuple[str, Any]]:
        yield from self._reading.projects
        yield from self._reading.prompts()
        yield from ((place, resource) for place, resource, _ in self._reading.resources())
        yield from self._reading.tasks()

    # Without it

    def _looked_through(self) -> tuple[list[tuple[int, int]], int]:
        """Number and project of all prompts and resources, and how many tasks there are."""
        seen: dict[Hashable, str] = {}
        numbered: list[tuple[int, int]] = []
        tasks = 0

        def is_new(place: str, what: str, *key: Hashable) -> None:
            if all(key) and seen.setdefault((what, *key), place) != place:
                self._reading.problem(place, f"it has the same {what} as {seen[what, *key]}")

        for place, project in self._reading.projects:
            is_new(place, "project name", project.name)
        for place, prompt in self._reading.prompts():
            numbered.append((prompt.number, prompt.project or self._default.id))
            is_new(place, "id", prompt.id)
            is_new(place, "prompt name", prompt.project or self._default.id, prompt.name)
            is_new(place, "title", prompt.project or self._default.id, prompt.title)
        for place, resource, _ in self._reading.resources():
            numbered.append((resource.number, resource.project or self._default.id))
            is_new(place, "id", resource.id)
            is_new(place, "resource name", resource.project or self._default.id, resource.name)
            is_new(place, "URI", resource.project or self._default.id, resource.uri)
        for place, task in self._reading.tasks():
            tasks += 1
            is_new(place, "task id", task.id)
        return numbered, tasks

    async def _creations(self, actor: str, numbering: Numbering) -> AsyncIterator[Change]:
        default = self._creation(numbering.default, self._default, numbering.default, self._first.actor)
        yield replace(default, at=self._first.at)
        # It was here.
        self._intake.created["project"] = 0
        batch = numbering.batch
        for _, project in self._reading.projects:
            if project.name != DEFAULT_PROJECT:
                yield self._creation(numbering.projects[project.id], project, batch, actor)
        numbers = iter(numbering.numbers)
        for _, prompt in self._reading.prompts():
            number = next(numbers)
            fitted = await named(
                self._transaction, replace(prompt, project=prompt.project or self._default.id)
            )
            yield self._creation(number, self._identified(fitted, number), batch, actor)
        for _, resource, _ in self._reading.resources():
            number = next(numbers)
            placed = replace(resource, project=resource.project or self._default.id)
            yield self._creation(number, self._identified(placed, number), batch, actor)
        free = max((task.id for _, task in self._reading.tasks()), default=0)
        for (_, task), number in zip(self._reading.tasks(), numbering.tasks, strict=True):
            free += 0 if task.id else 1
            yield self._creation(number, task if task.id else replace(task, id=free), batch, actor)

    def _identified(self, thing: Prompt | Resource, number: int) -> Prompt | Resource:
        return replace(thing, number=number, id=thing.id or self._transaction.new_id())

    def _creation(self, seq: int, thing: Entity, batch: int, actor: str) -> Change:
        now = self._transaction.now
        self._intake.created[kind_of(thing)] += 1
        created = replace(thing, created_at=thing.created_at or now, updated_at=thing.updated_at or now)
        return Change(
            seq=seq,
            batch=batch,
            at=now,
            actor=actor,
            action="create",
            kind=kind_of(thing),
            entity=key_of(thing),
            project=project_of(thing),
            before=None,
            after=created,
        )


def _id(kind: Kind, entity: str) -> str | int:
    """The id of a thing as its table has it; one that cannot be is nobody's."""
    if kind in ("prompt", "resource"):
        return entity
    return int(entity) if entity.isascii() and entity.isdigit() and len(entity) <= 16 else -1
