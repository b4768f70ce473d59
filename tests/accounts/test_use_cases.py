"""Every use case asks whether the caller may: none reads or changes what is not the caller's."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.accounts import Principal
from dittybag.domain.changes import Kind
from dittybag.domain.errors import ChangeNotFound, NotAllowed, ProjectGone, PromptNotFound, TaskNotFound
from dittybag.domain.tasks import TaskFilter
from dittybag.services.caller import Caller
from dittybag.services.history_service import ChangeFilter, HistoryService
from dittybag.services.project_overview import OverviewService
from dittybag.services.prompt_service import PromptAddress, PromptChange, PromptService
from dittybag.services.resource_service import ResourceChange, ResourceService
from dittybag.services.search_service import SEARCH_KINDS, SearchService
from dittybag.services.task_service import TaskService
from dittybag.services.workspace import Workspace
from dittybag.storage.sqlite.store import SqliteStore

SERVICES: dict[str, type] = {
    "prompts": PromptService,
    "resources": ResourceService,
    "tasks": TaskService,
    "search": SearchService,
    "history": HistoryService,
    "overview": OverviewService,
}
KINDS: tuple[Kind, ...] = SEARCH_KINDS


class Place(Struct, frozen=True):
    """A workspace in which there is one of each."""

    workspace: Workspace
    caller: Caller
    task: int
    change: int
    task_change: int


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    workspace = Workspace(SqliteStore(str(tmp_path / "dittybag.db")))
    project = await workspace.projects.create("team", actor="tests")
    caller = Caller(project.id, "alice", "alice")
    await workspace.prompts.create(caller, name="one", content="Words", tags=["a"])
    await workspace.resources.create(caller, name="one", uri="file:///one", content="Words")
    task = await workspace.tasks.create(caller, title="One")
    await workspace.prompts.create(caller, name="last", content="Words")
    change = (await workspace.history.page(caller, limit=1))[0].seq
    task_change = (await workspace.history.page(caller, kind="task", limit=1))[0].seq
    yield Place(workspace, caller, task.id, change, task_change)
    await workspace.store.close()


class Case(Struct, frozen=True):
    """How a use case is called."""

    #: What it is about, and whether it changes anything.
    touches: Literal["project", "own"]
    writes: bool
    call: Callable[[Any, Caller, Place], Awaitable[Any]]


def reads(call: Callable[[Any, Caller, Place], Awaitable[Any]]) -> Case:
    return Case("project", writes=False, call=call)


def writes(call: Callable[[Any, Caller, Place], Awaitable[Any]]) -> Case:
    return Case("project", writes=True, call=call)


def own(call: Callable[[Any, Caller, Place], Awaitable[Any]], *, changes: bool = False) -> Case:
    return Case("own", writes=changes, call=call)


ONE = PromptAddress(name="one")


async def _by_id(resources: ResourceService, who: Caller, place: Place) -> Any:
    known = await resources.get(place.caller, "one")
    return await resources.by_id(who, known.id)


CASES: dict[str, Case] = {
    "prompts.create": writes(lambda it, who, place: it.create(who, name="new", content="Words")),
    "prompts.get": reads(lambda it, who, place: it.get(who, ONE)),
    "prompts.update": writes(lambda it, who, place: it.update(who, ONE, PromptChange(content="Other"))),
    "prompts.delete": writes(lambda it, who, place: it.delete(who, ONE)),
    "prompts.delete_all": writes(lambda it, who, place: it.delete_all(who, [ONE])),
    "prompts.names": reads(lambda it, who, place: it.names(who, 10)),
    "prompts.listing": reads(lambda it, who, place: it.listing(who, 0, 10)),
    "prompts.recent": reads(lambda it, who, place: it.recent(who, 10, 0)),
    "prompts.search": reads(lambda it, who, place: it.search(who, "Words", 10, 0)),
    "prompts.by_tags": reads(lambda it, who, place: it.by_tags(who, ["a"], 10, 0)),
    "prompts.tags": reads(lambda it, who, place: it.tags(who)),
    "prompts.retag": writes(lambda it, who, place: it.retag(who, ONE, add=["b"])),
    "prompts.rename_tag": writes(lambda it, who, place: it.rename_tag(who, "a", "b")),
    "prompts.filter": reads(lambda it, who, place: it.filter(who, limit=10, offset=0)),
    "resources.create": writes(
        lambda it, who, place: it.create(who, name="new", uri="file:///new", content="Words")
    ),
    "resources.update": writes(lambda it, who, place: it.update(who, "one", ResourceChange(content="Other"))),
    "resources.delete": writes(lambda it, who, place: it.delete(who, "one")),
    "resources.delete_all": writes(lambda it, who, place: it.delete_all(who, ["one"])),
    "resources.get": reads(lambda it, who, place: it.get(who, "one")),
    "resources.all": reads(lambda it, who, place: it.all(who)),
    "resources.read": reads(lambda it, who, place: it.read(who, "file:///one")),
    "resources.templates": reads(lambda it, who, place: it.templates(who)),
    "resources.listing": reads(lambda it, who, place: it.listing(who, 0, 10, templates=False)),
    "resources.uris": reads(lambda it, who, place: it.uris(who, "", 10)),
    "resources.page": reads(lambda it, who, place: it.page(who, limit=10)),
    "resources.by_id": reads(_by_id),
    "resources.contents": reads(lambda it, who, place: it.contents(who, [])),
    "search.all_kinds": reads(lambda it, who, place: it.all_kinds(who, "Words", KINDS, 10)),
    "search.quick_search": reads(lambda it, who, place: it.quick_search(who, "Words", KINDS, 10)),
    "overview.count_contents": reads(lambda it, who, place: it.count_contents(who)),
    "overview.usage": reads(lambda it, who, place: it.usage(who, "somebody")),
    "history.browse": reads(lambda it, who, place: it.browse(who)),
    "history.actors": reads(lambda it, who, place: it.actors(who, ChangeFilter())),
    "history.get_with_contents": reads(lambda it, who, place: it.get_with_contents(who, place.change)),
    "history.plan_undo": reads(lambda it, who, place: it.plan_undo(who, place.change)),
    "history.undo_in_any_project": writes(
        lambda it, who, place: it.undo_in_any_project(who, place.change, seen=place.change)
    ),
    "history.page": reads(lambda it, who, place: it.page(who)),
    "history.undo": writes(lambda it, who, place: it.undo(who, place.change)),
    "history.restore": writes(lambda it, who, place: it.restore(who, place.change)),
    "tasks.create": own(lambda it, who, place: it.create(who, title="New"), changes=True),
    "tasks.get": own(lambda it, who, place: it.get(who, place.task)),
    "tasks.page": own(
        lambda it, who, place: it.page(who, project=None, priority=None, completed=True, limit=10, offset=0)
    ),
    "tasks.filter": own(lambda it, who, place: it.filter(who)),
    "tasks.update": own(lambda it, who, place: it.update(who, place.task, priority=5), changes=True),
    "tasks.complete": own(lambda it, who, place: it.complete(who, place.task), changes=True),
    "tasks.delete": own(lambda it, who, place: it.delete(who, place.task), changes=True),
    "tasks.complete_all": own(lambda it, who, place: it.complete_all(who, [place.task]), changes=True),
    "tasks.reopen_all": own(lambda it, who, place: it.reopen_all(who, [place.task]), changes=True),
    "tasks.delete_all": own(lambda it, who, place: it.delete_all(who, [place.task]), changes=True),
    "tasks.board": own(
        lambda it, who, place: it.board(who, TaskFilter(), "priority", order="priority", limit=5, width=5)
    ),
    "tasks.listing": own(
        lambda it, who, place: it.listing(who, TaskFilter(), order="priority", limit=5, offset=0)
    ),
    "tasks.completion_counts": own(lambda it, who, place: it.completion_counts(who, 0)),
    "tasks.latest_change": own(lambda it, who, place: it.latest_change(who, place.task)),
    "tasks.undo_latest": own(
        lambda it, who, place: it.undo_latest(who, place.task, place.task_change), changes=True
    ),
    "tasks.search": own(lambda it, who, place: it.search(who, "One")),
    "tasks.groups": own(lambda it, who, place: it.groups(who)),
    "tasks.stats": own(lambda it, who, place: it.stats(who)),
}

MEMBER = Principal("alice", "write", "write")
READER = Principal("alice", "write", "read")
READ_SCOPE = Principal("alice", "read", "write")
OUTSIDER = Principal("alice", "admin", None)


def as_(place: Place, principal: Principal) -> Caller:
    return replace(place.caller, principal=principal, user=principal.user)


def called(name: str, place: Place, principal: Principal) -> Awaitable[Any]:
    service = getattr(place.workspace, name.partition(".")[0])
    return CASES[name].call(service, as_(place, principal), place)


def test_every_use_case_of_a_caller_has_a_row() -> None:
    found = {
        f"{name}.{method}"
        for name, service in SERVICES.items()
        for method, function in inspect.getmembers(service, inspect.iscoroutinefunction)
        if not method.startswith("_") and "caller" in inspect.signature(function).parameters
    }
    assert found == CASES.keys()


@pytest.mark.parametrize("name", CASES)
async def test_a_member_who_may_write_may_do_everything(place: Place, name: str) -> None:
    await called(name, place, MEMBER)


@pytest.mark.parametrize("name", CASES)
async def test_a_project_is_gone_for_those_who_are_no_members(place: Place, name: str) -> None:
    if CASES[name].touches == "project":
        with pytest.raises(ProjectGone):
            await called(name, place, OUTSIDER)
    else:
        await called(name, place, OUTSIDER)


@pytest.mark.parametrize("principal", [READER, READ_SCOPE], ids=["role", "scope"])
@pytest.mark.parametrize("name", CASES)
async def test_readers_change_nothing(place: Place, name: str, principal: Principal) -> None:
    case = CASES[name]
    if case.writes and (case.touches == "project" or principal is READ_SCOPE):
        newest = await place.workspace.history.page_all(None, limit=1)
        with pytest.raises(NotAllowed):
            await called(name, place, principal)
        assert await place.workspace.history.page_all(None, limit=1) == newest
    else:
        await called(name, place, principal)


# What is seen of others


async def test_the_log_shows_only_ones_own_tasks(place: Place) -> None:
    bob = as_(place, Principal("bob", "write", "write"))
    await place.workspace.tasks.create(bob, title="Bob's")
    alice = as_(place, MEMBER)
    for caller, title in ((alice, "One"), (bob, "Bob's")):
        for limit in (1, 100):
            seen = await place.workspace.history.page(caller, kind="task", limit=limit)
            assert [change.after.title for change in seen if change.after is not None] == [title]  # type: ignore[union-attr]
    everything = await place.workspace.history.page(place.caller, kind="task")
    assert len(everything) == 2


async def test_another_users_change_is_as_good_as_none(place: Place) -> None:
    bob = as_(place, Principal("bob", "admin", "write"))
    change = (await place.workspace.history.page_all(None, kind="task", limit=1))[0].seq
    for undo in (place.workspace.history.undo, place.workspace.history.restore):
        with pytest.raises(ChangeNotFound) as foreign:
            await undo(bob, change)
        assert str(foreign.value) == str(ChangeNotFound(change))
    assert (await place.workspace.tasks.get(place.caller, place.task)).title == "One"
    with pytest.raises(TaskNotFound):
        await place.workspace.tasks.get(bob, place.task)


async def test_what_was_done_together_with_something_foreign_is_not_undone(place: Place) -> None:
    tasks = place.workspace.tasks
    bobs = await tasks.create(replace(place.caller, user="bob"), title="Bob's")

    async def together(transaction: Any) -> None:
        mine = await transaction.tasks.get("alice", place.task)
        theirs = await transaction.tasks.get("bob", bobs.id)
        for task in (mine, theirs):
            await transaction.write("update", task, replace(task, priority=1, version=task.version + 1))

    await place.workspace.store.write(together, actor="import")
    theirs, mine = await place.workspace.history.page_all(None, limit=2)
    with pytest.raises(ChangeNotFound):
        await place.workspace.history.undo(as_(place, MEMBER), mine.seq)
    with pytest.raises(ChangeNotFound):
        await place.workspace.history.undo(as_(place, MEMBER), theirs.seq)
    assert (await tasks.get(place.caller, place.task)).priority == 1
    # The owner of the machine may.
    assert len(await place.workspace.history.undo(place.caller, mine.seq)) == 2


async def test_only_admins_undo_what_was_done_to_a_whole_project(place: Place) -> None:
    history = place.workspace.history
    (made,) = await history.page_all(place.caller.project, kind="project", limit=1)
    for undo in (history.undo, history.restore):
        with pytest.raises(NotAllowed):
            await undo(as_(place, MEMBER), made.seq)
    assert (await place.workspace.prompts.get(as_(place, MEMBER), ONE)).name == "one"
    await history.undo(as_(place, Principal("root", "admin", "write")), made.seq)
    with pytest.raises(ProjectGone):
        await place.workspace.prompts.get(as_(place, MEMBER), ONE)


async def test_projects_are_listed_for_those_who_may_see_them_with_their_own_tasks(place: Place) -> None:
    workspace, accounts = place.workspace, place.workspace.accounts
    for name in ("alice", "bob"):
        await accounts.add_user(name, actor="tests")
    await workspace.projects.create("hideout", actor="tests")
    await accounts.share("hideout", "bob", "read", actor="tests")
    for user, count in (("alice", 1), ("bob", 2)):
        for _ in range(count):
            await workspace.tasks.create(replace(place.caller, user=user), title="Do", project="team")

    async def listed(caller: Caller) -> dict[str, int]:
        return {size.project.name: size.tasks for size in await workspace.projects.all(caller)}

    alice, bob = as_(place, MEMBER), as_(place, Principal("bob", "read", "write"))
    assert await listed(alice) == {"default": 0, "team": 1}
    assert await listed(bob) == {"default": 0, "team": 2, "hideout": 0}
    assert await listed(place.caller) == {"default": 0, "team": 3, "hideout": 0}
    assert await workspace.projects.names("", 10, alice) == ["default", "team"]
    assert await workspace.projects.names("", 2, bob) == ["default", "hideout"]
    assert await workspace.projects.names("h", 10, alice) == []
    assert await workspace.projects.names("h", 10) == ["hideout"]


async def test_a_project_that_comes_back_comes_back_to_its_members(place: Place) -> None:
    accounts, projects = place.workspace.accounts, place.workspace.projects
    await accounts.add_user("alice", actor="tests")
    await accounts.share("team", "alice", "read", actor="tests")
    await projects.delete("team", actor="tests")
    (deleted,) = await place.workspace.history.page_all(None, kind="project", limit=1)
    await place.workspace.history.restore_in_any_project(
        replace(deleted, after=deleted.before), actor="tests"
    )
    assert [member.user for member in await accounts.members("team")] == ["alice"]
    assert await accounts.external_principal("mallory", "admin", place.caller.project) == Principal(
        "mallory", "admin", None
    )
    with pytest.raises(PromptNotFound):
        await place.workspace.prompts.get(place.caller, ONE)
