"""Every service method checks the caller's permissions before it reads or changes anything."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.accounts import Principal
from dittybag.domain.entities import Kind
from dittybag.domain.errors import (
    ChangeNotFound,
    NotAllowed,
    NothingToPurge,
    ProjectGone,
    ProjectNotFound,
    PromptNotFound,
    TaskNotFound,
    TaskNotReady,
    TokenNotFound,
)
from dittybag.domain.queries import ChangeQuery, PackRequest, PromptQuery, ResourceQuery, TaskQuery
from dittybag.domain.task_drafts import TaskDraft
from dittybag.domain.tasks import TaskFilter
from dittybag.services.administration_service import AdministrationService
from dittybag.services.caller import Caller
from dittybag.services.change_batches import BatchService
from dittybag.services.history_service import HistoryService, UndoSelection
from dittybag.services.pack_service import PackService
from dittybag.services.pin_service import PinService
from dittybag.services.project_overview import OverviewService
from dittybag.services.prompt_service import PromptAddress, PromptChange, PromptService
from dittybag.services.purge_service import EntityKey, PurgeService, Selection
from dittybag.services.resource_service import NewResource, ResourceChange, ResourceService
from dittybag.services.search_service import RankedQuery, SearchService
from dittybag.services.task_queue import ClaimRequest, TaskQueueService
from dittybag.services.task_service import TaskService
from dittybag.services.workspace import Workspace
from dittybag.storage.sqlite.sqlite_store import SqliteStore

SERVICES: dict[str, type] = {
    "prompts": PromptService,
    "resources": ResourceService,
    "tasks": TaskService,
    "task_queue": TaskQueueService,
    "search": SearchService,
    "history": HistoryService,
    "overview": OverviewService,
    "purges": PurgeService,
    "batches": BatchService,
    "administration": AdministrationService,
    "packs": PackService,
    "pins": PinService,
}
#: Not about one project: the tests of administration have them.
ADMINISTRATION: dict[str, Callable[[AdministrationService, Caller], Awaitable[Any]]] = {
    "add_user": lambda it, who: it.add_user(who, "new"),
    "disable_user": lambda it, who: it.disable_user(who, "bob"),
    "enable_user": lambda it, who: it.enable_user(who, "bob"),
    "create_token": lambda it, who: it.create_token(who, "bob", "admin"),
    "rename_project": lambda it, who: it.rename_project(who, "team", "crew"),
    "delete_project": lambda it, who: it.delete_project(who, "team"),
    "deletion_of_project": lambda it, who: it.deletion_of_project(who, who.project),
    "restore_project": lambda it, who: it.restore_project(who, who.project),
    "members": lambda it, who: it.members(who, "team"),
    "share_project": lambda it, who: it.share_project(who, "team", "alice", "write"),
    "unshare_project": lambda it, who: it.unshare_project(who, "team", "alice"),
}


class PopulatedWorkspace(Struct, frozen=True):
    """A workspace with one entity of each kind."""

    workspace: Workspace
    caller: Caller
    task: int
    change: int
    task_change: int
    #: The kind and id of a prompt.
    prompt: tuple[Kind, str]


@pytest.fixture
async def populated(tmp_path: Path) -> AsyncIterator[PopulatedWorkspace]:
    workspace = Workspace(SqliteStore(str(tmp_path / "dittybag.db")))
    project = await workspace.projects.create("team", actor="tests")
    caller = Caller(project.id, "alice", "alice")
    await workspace.prompts.create(caller, name="one", content="Words", tags=["a"])
    await workspace.resources.create(caller, name="one", uri="file:///one", content="Words")
    task = await workspace.tasks.create(caller, title="One", project="", labels=("x",))
    prompt, _ = await workspace.prompts.create(caller, name="last", content="Words")
    change = (await workspace.history.page(caller, ChangeQuery(project=caller.project, limit=1)))[0].seq
    task_change = (
        await workspace.history.page(caller, ChangeQuery(project=caller.project, kind="task", limit=1))
    )[0].seq
    yield PopulatedWorkspace(workspace, caller, task.id, change, task_change, ("prompt", prompt.id))
    await workspace.store.close()


class ServiceCall(Struct, frozen=True):
    """A call of a service method."""

    #: Whether it concerns the project or the caller's own tasks.
    touches: Literal["project", "own"]
    writes: bool
    call: Callable[[Any, Caller, PopulatedWorkspace], Awaitable[Any]]
    #: Whether it requires the admin scope.
    admin: bool = False


def reads(call: Callable[[Any, Caller, PopulatedWorkspace], Awaitable[Any]]) -> ServiceCall:
    return ServiceCall("project", writes=False, call=call)


def writes(call: Callable[[Any, Caller, PopulatedWorkspace], Awaitable[Any]]) -> ServiceCall:
    return ServiceCall("project", writes=True, call=call)


def own(
    call: Callable[[Any, Caller, PopulatedWorkspace], Awaitable[Any]], *, changes: bool = False
) -> ServiceCall:
    return ServiceCall("own", writes=changes, call=call)


def administers(call: Callable[[Any, Caller, PopulatedWorkspace], Awaitable[Any]]) -> ServiceCall:
    return ServiceCall("project", writes=True, call=call, admin=True)


ONE = PromptAddress(name="one")


async def _by_id(resources: ResourceService, who: Caller, populated: PopulatedWorkspace) -> Any:
    resource = await resources.get(populated.caller, "one")
    return await resources.by_id(who, resource.id)


async def _unclaimed(queue: TaskQueueService, who: Caller, populated: PopulatedWorkspace) -> Any:
    return await queue.unclaimed(who, await populated.workspace.tasks.get(populated.caller, populated.task))


async def _release(queue: TaskQueueService, who: Caller, populated: PopulatedWorkspace) -> None:
    # Nobody works on it.
    with suppress(TaskNotReady):
        await queue.release(who, populated.task)


CASES: dict[str, ServiceCall] = {
    "prompts.create": writes(lambda it, who, populated: it.create(who, name="new", content="Words")),
    "prompts.get": reads(lambda it, who, populated: it.get(who, ONE)),
    "prompts.update": writes(lambda it, who, populated: it.update(who, ONE, PromptChange(content="Other"))),
    "prompts.delete": writes(lambda it, who, populated: it.delete(who, ONE)),
    "prompts.delete_all": writes(lambda it, who, populated: it.delete_all(who, [ONE])),
    "prompts.names": reads(lambda it, who, populated: it.names(who, 10)),
    "prompts.listing": reads(lambda it, who, populated: it.listing(who, 0, 10)),
    "prompts.contents": reads(lambda it, who, populated: it.contents(who, 0, 10, 1000)),
    "prompts.page": reads(
        lambda it, who, populated: it.page(who, PromptQuery(project=who.project, text="Words", limit=10))
    ),
    "prompts.by_tags": reads(lambda it, who, populated: it.by_tags(who, ["a"], 10, 0)),
    "prompts.tags": reads(lambda it, who, populated: it.tags(who)),
    "prompts.retag_all": writes(lambda it, who, populated: it.retag_all(who, [ONE], add=["b"])),
    "prompts.move_all": writes(lambda it, who, populated: it.move_all(who, [ONE], "default")),
    "prompts.rename_tag": writes(lambda it, who, populated: it.rename_tag(who, "a", "b")),
    "resources.create": writes(
        lambda it, who, populated: it.create(who, name="new", uri="file:///new", content="Words")
    ),
    "resources.create_all": writes(
        lambda it, who, populated: it.create_all(
            who, [NewResource(name="new", uri="file:///new", content=b"Words", mime_type="text/plain")]
        )
    ),
    "resources.update": writes(
        lambda it, who, populated: it.update(who, "one", ResourceChange(content="Other"))
    ),
    "resources.delete": writes(lambda it, who, populated: it.delete(who, "one")),
    "resources.delete_all": writes(lambda it, who, populated: it.delete_all(who, ["one"])),
    "resources.move_all": writes(lambda it, who, populated: it.move_all(who, ["one"], "default")),
    "resources.get": reads(lambda it, who, populated: it.get(who, "one")),
    "resources.look_up": reads(lambda it, who, populated: it.look_up(who, "one")),
    "resources.all": reads(lambda it, who, populated: it.all(who)),
    "resources.read": reads(lambda it, who, populated: it.read(who, "file:///one")),
    "resources.templates": reads(lambda it, who, populated: it.templates(who)),
    "resources.listing": reads(lambda it, who, populated: it.listing(who, 0, 10, templates=False)),
    "resources.uris": reads(lambda it, who, populated: it.uris(who, "", 10)),
    "resources.page": reads(
        lambda it, who, populated: it.page(who, ResourceQuery(project=who.project, limit=10))
    ),
    "resources.by_id": reads(_by_id),
    "resources.contents": reads(lambda it, who, populated: it.contents(who, [])),
    "search.ranked": reads(lambda it, who, populated: it.ranked(who, RankedQuery("Words"))),
    "search.newest": reads(lambda it, who, populated: it.newest(who, RankedQuery(""))),
    "overview.count_contents": reads(lambda it, who, populated: it.count_contents(who)),
    "overview.seen_actors": reads(lambda it, who, populated: it.seen_actors(who)),
    "batches.browse": reads(lambda it, who, populated: it.browse(who, ChangeQuery(project=who.project), 10)),
    "batches.changes": reads(lambda it, who, populated: it.changes(who, populated.task_change, 10)),
    "packs.make": reads(lambda it, who, populated: it.make(who, PackRequest(query="Words"))),
    "packs.summarize": reads(lambda it, who, populated: it.summarize(who, 200)),
    "pins.all": reads(lambda it, who, populated: it.all(who)),
    "pins.add": writes(lambda it, who, populated: it.add(who, "prompt:one", None)),
    "pins.remove": writes(lambda it, who, populated: it.remove(who, "prompt:one", None)),
    "administration.accounts": own(lambda it, who, populated: it.accounts(who)),
    "history.browse": reads(lambda it, who, populated: it.browse(who, ChangeQuery(project=who.project))),
    "history.actors": reads(lambda it, who, populated: it.actors(who, ChangeQuery(project=who.project))),
    "history.compare": reads(lambda it, who, populated: it.compare(who, populated.change)),
    "history.plan_undo": reads(
        lambda it, who, populated: it.plan_undo(who, UndoSelection(seq=populated.change))
    ),
    "purges.plan": administers(lambda it, who, populated: it.plan(who, Selection((populated.prompt,)))),
    "purges.run": administers(lambda it, who, populated: it.run(who, Selection((populated.prompt,)))),
    "history.page": reads(lambda it, who, populated: it.page(who, ChangeQuery(project=who.project))),
    "history.undo": writes(lambda it, who, populated: it.undo(who, UndoSelection(seq=populated.change))),
    "history.restore": writes(lambda it, who, populated: it.restore(who, populated.change)),
    "tasks.create": own(lambda it, who, populated: it.create(who, title="New"), changes=True),
    "tasks.require_label": own(lambda it, who, populated: it.require_label(who, "x")),
    "tasks.locked_projects": own(lambda it, who, populated: it.locked_projects(who)),
    "tasks.get": own(lambda it, who, populated: it.get(who, populated.task)),
    "tasks.find_named": own(lambda it, who, populated: it.find_named(who, "x")),
    "tasks.details": own(lambda it, who, populated: it.details(who, populated.task)),
    "tasks.page": own(lambda it, who, populated: it.page(who, TaskQuery(user="bob", limit=10))),
    "tasks.update": own(lambda it, who, populated: it.update(who, populated.task, priority=5), changes=True),
    "tasks.complete": own(lambda it, who, populated: it.complete(who, populated.task), changes=True),
    "tasks.delete": own(lambda it, who, populated: it.delete(who, populated.task), changes=True),
    "tasks.complete_all": own(
        lambda it, who, populated: it.complete_all(who, [populated.task]), changes=True
    ),
    "tasks.reopen_all": own(lambda it, who, populated: it.reopen_all(who, [populated.task]), changes=True),
    "tasks.delete_all": own(lambda it, who, populated: it.delete_all(who, [populated.task]), changes=True),
    "tasks.update_all": own(
        lambda it, who, populated: it.update_all(who, [populated.task], priority=5), changes=True
    ),
    "tasks.undo_batch": own(
        lambda it, who, populated: it.undo_batch(who, populated.task_change), changes=True
    ),
    "tasks.board": own(
        lambda it, who, populated: it.board(who, TaskFilter(), "priority", order="priority", limit=5, width=5)
    ),
    "tasks.listing": own(
        lambda it, who, populated: it.listing(who, TaskFilter(), order="priority", limit=5, offset=0)
    ),
    "tasks.latest_change": own(lambda it, who, populated: it.latest_change(who, populated.task)),
    "tasks.undo_latest": own(
        lambda it, who, populated: it.undo_latest(who, populated.task, populated.task_change), changes=True
    ),
    "tasks.search": own(lambda it, who, populated: it.search(who, "One")),
    "tasks.plan": own(lambda it, who, populated: it.plan(who, [TaskDraft(title="New")]), changes=True),
    "tasks.import_drafts": own(
        lambda it, who, populated: it.import_drafts(who, [TaskDraft(title="New", source="x:1")]), changes=True
    ),
    "tasks.status_board": own(
        lambda it, who, populated: it.status_board(who, TaskFilter(), order="priority", limit=5)
    ),
    "tasks.graph": own(lambda it, who, populated: it.graph(who, root=populated.task)),
    "task_queue.claim_next": own(lambda it, who, populated: it.claim_next(who, ClaimRequest()), changes=True),
    "task_queue.claim": own(
        lambda it, who, populated: it.claim(who, populated.task, ClaimRequest()), changes=True
    ),
    "task_queue.finish": own(lambda it, who, populated: it.finish(who, populated.task), changes=True),
    "task_queue.finish_all": own(
        lambda it, who, populated: it.finish_all(who, [populated.task]), changes=True
    ),
    "task_queue.take": own(
        lambda it, who, populated: it.take(who, populated.task, ClaimRequest()), changes=True
    ),
    "task_queue.unclaimed": own(_unclaimed),
    "task_queue.waiting_of": own(lambda it, who, populated: it.waiting_of(who, [populated.task])),
    "task_queue.release": own(_release, changes=True),
    "task_queue.release_connection": own(lambda it, who, populated: it.release_connection(who, "c")),
    "task_queue.renew": own(lambda it, who, populated: it.renew(who, "c"), changes=True),
    "task_queue.ready": own(lambda it, who, populated: it.ready(who, ClaimRequest(), limit=5)),
    "task_queue.is_any_ready": own(lambda it, who, populated: it.is_any_ready(who, ClaimRequest())),
    "task_queue.next_lapse": own(lambda it, who, populated: it.next_lapse(who)),
    "task_queue.claims_of": own(lambda it, who, populated: it.claims_of(who, [populated.task])),
    "tasks.stats": own(lambda it, who, populated: it.stats(who)),
}

MEMBER = Principal("alice", "write", "write")
ADMIN = Principal("alice", "admin", "write")
READER = Principal("alice", "write", "read")
READ_SCOPE = Principal("alice", "read", "write")
OUTSIDER = Principal("alice", "admin", None)


def caller_as(populated: PopulatedWorkspace, principal: Principal) -> Caller:
    return replace(populated.caller, principal=principal, user=principal.user)


def run_case(name: str, populated: PopulatedWorkspace, principal: Principal) -> Awaitable[Any]:
    service = getattr(populated.workspace, name.partition(".")[0])
    return CASES[name].call(service, caller_as(populated, principal), populated)


def test_every_service_method_with_a_caller_has_a_case() -> None:
    found = {
        f"{name}.{method}"
        for name, service in SERVICES.items()
        for method, function in inspect.getmembers(service, inspect.iscoroutinefunction)
        if not method.startswith("_") and "caller" in inspect.signature(function).parameters
    }
    others = {f"administration.{method}" for method in (*ADMINISTRATION, "revoke_token")}
    assert found == CASES.keys() | others


@pytest.mark.parametrize("name", CASES)
async def test_a_member_with_write_access_may_call_everything(
    populated: PopulatedWorkspace, name: str
) -> None:
    await run_case(name, populated, ADMIN if CASES[name].admin else MEMBER)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.admin])
async def test_some_use_cases_need_the_admin_scope(populated: PopulatedWorkspace, name: str) -> None:
    newest = await populated.workspace.history.page(populated.caller, ChangeQuery(limit=1))
    with pytest.raises(NotAllowed, match="admin scope"):
        await run_case(name, populated, MEMBER)
    assert await populated.workspace.history.page(populated.caller, ChangeQuery(limit=1)) == newest


async def test_administration_needs_the_admin_scope_and_visible_projects(
    populated: PopulatedWorkspace,
) -> None:
    accounts, administration = populated.workspace.accounts, populated.workspace.administration
    for name in ("alice", "bob"):
        await accounts.add_user(name, actor="tests")
    token = await accounts.create_token("bob", "read", actor="tests")
    await accounts.share("team", "bob", "write", actor="tests")
    for principal in (MEMBER, READER, READ_SCOPE):
        who = caller_as(populated, principal)
        for use in ADMINISTRATION.values():
            with pytest.raises(NotAllowed, match="admin scope"):
                await use(administration, who)
        assert (await administration.accounts(who)).users == []
        with pytest.raises(TokenNotFound):
            await administration.revoke_token(who, token.token.id)
    outsider = caller_as(populated, Principal("alice", "admin", None))
    for name in ("rename_project", "delete_project", "members", "share_project", "unshare_project"):
        with pytest.raises(ProjectNotFound):
            await ADMINISTRATION[name](administration, outsider)
    assert await administration.deletion_of_project(outsider, populated.caller.project) is None


@pytest.mark.parametrize("name", CASES)
async def test_a_project_does_not_exist_for_outsiders(populated: PopulatedWorkspace, name: str) -> None:
    if CASES[name].touches == "project":
        with pytest.raises(ProjectGone):
            await run_case(name, populated, OUTSIDER)
    else:
        await run_case(name, populated, OUTSIDER)


@pytest.mark.parametrize("principal", [READER, READ_SCOPE], ids=["role", "scope"])
@pytest.mark.parametrize("name", CASES)
async def test_readers_cannot_change_anything(
    populated: PopulatedWorkspace, name: str, principal: Principal
) -> None:
    case = CASES[name]
    if case.writes and (case.touches == "project" or principal is READ_SCOPE):
        newest = await populated.workspace.history.page(populated.caller, ChangeQuery(limit=1))
        with pytest.raises(NotAllowed):
            await run_case(name, populated, principal)
        assert await populated.workspace.history.page(populated.caller, ChangeQuery(limit=1)) == newest
    else:
        await run_case(name, populated, principal)


# Data of other users


async def test_the_change_log_shows_only_own_tasks(populated: PopulatedWorkspace) -> None:
    bob = caller_as(populated, Principal("bob", "write", "write"))
    await populated.workspace.tasks.create(bob, title="Bob's", project="")
    alice = caller_as(populated, MEMBER)
    for caller, title in ((alice, "One"), (bob, "Bob's")):
        for limit in (1, 100):
            seen = await populated.workspace.history.page(
                caller, ChangeQuery(project=caller.project, kind="task", limit=limit)
            )
            assert [change.after.title for change in seen if change.after is not None] == [title]  # type: ignore[union-attr]
    everything = await populated.workspace.history.page(
        populated.caller, ChangeQuery(project=populated.caller.project, kind="task")
    )
    assert len(everything) == 2


async def test_another_users_change_is_not_found(populated: PopulatedWorkspace) -> None:
    bob = caller_as(populated, Principal("bob", "admin", "write"))
    change = (await populated.workspace.history.page(populated.caller, ChangeQuery(kind="task", limit=1)))[
        0
    ].seq
    history = populated.workspace.history
    for refused in (history.undo(bob, UndoSelection(seq=change)), history.restore(bob, change)):
        with pytest.raises(ChangeNotFound) as foreign:
            await refused
        assert str(foreign.value) == str(ChangeNotFound(change))
    assert (await populated.workspace.tasks.get(populated.caller, populated.task)).title == "One"
    with pytest.raises(TaskNotFound):
        await populated.workspace.tasks.get(bob, populated.task)


async def test_a_batch_with_another_users_change_cannot_be_undone(
    populated: PopulatedWorkspace,
) -> None:
    tasks = populated.workspace.tasks
    bobs = await tasks.create(replace(populated.caller, user="bob"), title="Bob's", project="")

    async def together(transaction: Any) -> None:
        mine = await transaction.tasks.get("alice", populated.task)
        theirs = await transaction.tasks.get("bob", bobs.id)
        for task in (mine, theirs):
            await transaction.write("update", task, replace(task, priority=1, version=task.version + 1))

    await populated.workspace.store.write(together, actor="import")
    theirs, mine = await populated.workspace.history.page(populated.caller, ChangeQuery(limit=2))
    with pytest.raises(ChangeNotFound):
        await populated.workspace.history.undo(
            caller_as(populated, MEMBER),
            UndoSelection(seq=mine.seq),
        )
    with pytest.raises(ChangeNotFound):
        await populated.workspace.history.undo(
            caller_as(populated, MEMBER),
            UndoSelection(seq=theirs.seq),
        )
    assert (await tasks.get(populated.caller, populated.task)).priority == 1
    # The owner of the workspace may undo it.
    undone = await populated.workspace.history.undo(populated.caller, UndoSelection(seq=mine.seq))
    assert len(undone.changes) == 2


async def test_only_admins_can_undo_changes_to_a_project(populated: PopulatedWorkspace) -> None:
    history = populated.workspace.history
    (created,) = await history.page(
        populated.caller, ChangeQuery(project=populated.caller.project, kind="project", limit=1)
    )
    member = caller_as(populated, MEMBER)
    for refused in (
        history.undo(member, UndoSelection(seq=created.seq)),
        history.restore(member, created.seq),
    ):
        with pytest.raises(NotAllowed):
            await refused
    assert (await populated.workspace.prompts.get(caller_as(populated, MEMBER), ONE)).name == "one"
    await history.undo(
        caller_as(populated, Principal("root", "admin", "write")),
        UndoSelection(seq=created.seq),
    )
    with pytest.raises(ProjectGone):
        await populated.workspace.prompts.get(caller_as(populated, MEMBER), ONE)


async def test_users_see_only_visible_projects_with_counts_of_own_tasks(
    populated: PopulatedWorkspace,
) -> None:
    workspace, accounts = populated.workspace, populated.workspace.accounts
    for name in ("alice", "bob"):
        await accounts.add_user(name, actor="tests")
    await workspace.projects.create("hideout", actor="tests")
    await accounts.share("hideout", "bob", "read", actor="tests")
    for user, count in (("alice", 1), ("bob", 2)):
        for _ in range(count):
            caller = replace(populated.caller, user=user, own_tasks_only=True)
            await workspace.tasks.create(caller, title="Do", project="team")

    async def listed(caller: Caller) -> dict[str, int]:
        return {size.project.name: size.tasks for size in await workspace.projects.all(caller)}

    alice, bob = caller_as(populated, MEMBER), caller_as(populated, Principal("bob", "read", "write"))
    assert await listed(alice) == {"default": 0, "team": 1}
    assert await listed(bob) == {"default": 0, "team": 2, "hideout": 0}
    assert await listed(populated.caller) == {"default": 0, "team": 3, "hideout": 0}
    assert await workspace.projects.names("", 10, alice) == ["default", "team"]
    assert await workspace.projects.names("", 2, bob) == ["default", "hideout"]
    assert await workspace.projects.names("h", 10, alice) == []
    assert await workspace.projects.names("h", 10) == ["hideout"]


async def test_a_restored_project_keeps_its_members(populated: PopulatedWorkspace) -> None:
    accounts, projects = populated.workspace.accounts, populated.workspace.projects
    await accounts.add_user("alice", actor="tests")
    await accounts.share("team", "alice", "read", actor="tests")
    await projects.delete("team", actor="tests")
    _, created, _ = await populated.workspace.history.page(
        populated.caller, ChangeQuery(kind="project", limit=3)
    )
    await populated.workspace.history.restore(populated.caller, created.seq)
    assert [member.user for member in await accounts.members("team")] == ["alice"]
    assert await accounts.external_principal("mallory", "admin", populated.caller.project) == Principal(
        "mallory", "admin", None
    )
    with pytest.raises(PromptNotFound):
        await populated.workspace.prompts.get(populated.caller, ONE)


async def test_an_admin_cannot_purge_what_belongs_to_others(populated: PopulatedWorkspace) -> None:
    workspace, root = populated.workspace, Principal("root", "admin", "write")
    other = await workspace.projects.create("other", actor="tests")
    elsewhere, _ = await workspace.prompts.create(
        replace(populated.caller, project=other.id), name="theirs", content="Words"
    )
    keys: list[EntityKey] = [
        ("task", str(populated.task)),
        ("task", "77"),
        ("prompt", elsewhere.id),
        ("prompt", "x"),
        ("project", str(other.id)),
        ("project", "77"),
    ]
    for key in keys:
        for purge in (workspace.purges.plan, workspace.purges.run):
            for keep_current in (False, True):
                with pytest.raises(NothingToPurge):
                    await purge(caller_as(populated, root), Selection((key,), keep_current=keep_current))
    # A member of the project who does not own the task cannot purge it together with what they may purge.
    both = Selection((populated.prompt, ("task", str(populated.task))))
    with pytest.raises(NothingToPurge):
        await workspace.purges.run(caller_as(populated, root), both)
    assert (await workspace.tasks.get(populated.caller, populated.task)).title == "One"
    assert len(await workspace.prompts.names(populated.caller, 10)) == 2
    # Their own tasks can be purged, also without access to the project.
    await workspace.purges.run(caller_as(populated, OUTSIDER), Selection((("task", str(populated.task)),)))
    with pytest.raises(TaskNotFound):
        await workspace.tasks.get(populated.caller, populated.task)
