"""Tasks of a project belong to its members: who sees them, who changes them, and what nobody else learns."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from msgspec import Struct
from msgspec.structs import replace

from dittybag.assembly.store_factory import open_store
from dittybag.domain.accounts import Principal, Scope
from dittybag.domain.errors import (
    ChangeNotFound,
    DittybagError,
    Invalid,
    NotAllowed,
    ProjectNotFound,
    TaskCycle,
    TaskNotFound,
    TaskNotReady,
)
from dittybag.domain.ports import Transaction
from dittybag.domain.queries import ChangeQuery, TaskQuery
from dittybag.domain.task_drafts import TaskDraft
from dittybag.domain.tasks import Task, TaskFilter
from dittybag.services.caller import Caller
from dittybag.services.history_service import UndoSelection
from dittybag.services.task_queue import ClaimRequest
from dittybag.services.workspace import Workspace
from dittybag.storage.sql.sql_transaction import SqlTransaction
from tests.postgres_servers import PostgresServer
from tests.schema_snapshot import SchemaSnapshot

#: A word in every text of the shared task, which only members may see.
SECRET: Final = "orchard"
REQUEST: Final = ClaimRequest(lease_seconds=60)
#: What belongs to the role of a server without its own privileges.
_DATABASE: Final = "with_rls"


class Team(Struct, frozen=True):
    """A workspace with a shared project and a task in it."""

    workspace: Workspace
    project: int
    task: Task

    def caller(self, user: str, scope: Scope = "write") -> Caller:
        """`wanda` may write, `rita` may read, and nobody else is a member."""
        roles: dict[str, Literal["read", "write"]] = {"wanda": "write", "rita": "read"}
        return Caller(self.project, user, user, Principal(user, scope, roles.get(user)))

    @property
    def owner(self) -> Caller:
        return Caller(self.project, "owner", "wanda")

    async def newest(self) -> int:
        return (await self.workspace.history.page(self.owner, ChangeQuery(limit=1)))[0].seq


class FormedTeam(Struct, frozen=True):
    """Where a team is stored, and what brings it back after a test."""

    location: str
    project: int
    task: Task
    restore_sql: str = ""


@pytest.fixture(scope="module")
def formed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], FormedTeam]:
    """Return a function that forms a team on a database once: that takes longer than bringing it back."""

    @cache
    def form(database: str) -> FormedTeam:
        if database == "sqlite":
            return asyncio.run(_form_team(str(tmp_path_factory.mktemp("team") / "team.db")))
        server: PostgresServer = request.getfixturevalue("server")
        location = server.url(_DATABASE, user="clerk", schema="team")
        formed = asyncio.run(_form_team(location))
        return replace(formed, restore_sql=SchemaSnapshot(server, "team", _DATABASE).restore_sql)

    return form


@pytest.fixture(params=("sqlite", "postgres"))
def formed_team(
    request: pytest.FixtureRequest, formed: Callable[[str], FormedTeam], tmp_path: Path
) -> Iterator[FormedTeam]:
    team = formed(request.param)
    if request.param == "sqlite":
        yield replace(team, location=shutil.copyfile(team.location, str(tmp_path / "team.db")))
    else:
        server: PostgresServer = request.getfixturevalue("server")
        yield team
        server.sql(team.restore_sql, _DATABASE)


@pytest.fixture
async def team(formed_team: FormedTeam) -> AsyncIterator[Team]:
    workspace = Workspace(await open_store(formed_team.location))
    yield Team(workspace, formed_team.project, formed_team.task)
    await workspace.store.close()


async def _form_team(location: str) -> FormedTeam:
    workspace = Workspace(await open_store(location))
    for name in ("wanda", "rita", "sam"):
        await workspace.accounts.add_user(name, actor="tests")
    project = await workspace.projects.create("garden", actor="tests")
    await workspace.accounts.share("garden", "wanda", "write", actor="tests")
    await workspace.accounts.share("garden", "rita", "read", actor="tests")
    task = await workspace.tasks.create(
        Caller(project.id, "wanda", "wanda"),
        title=SECRET,
        notes=SECRET,
        labels=(SECRET,),
        links=(f"x:{SECRET}",),
    )
    assert task.project_id == project.id
    await workspace.store.close()
    return FormedTeam(location, project.id, task)


class TaskCall(Struct, frozen=True):
    """A call of a service method with the shared task."""

    writes: bool
    call: Callable[[Team, Caller], Awaitable[Any]]


def reads(call: Callable[[Team, Caller], Awaitable[Any]]) -> TaskCall:
    return TaskCall(writes=False, call=call)


def changes(call: Callable[[Team, Caller], Awaitable[Any]]) -> TaskCall:
    return TaskCall(writes=True, call=call)


async def _undo_latest(team: Team, who: Caller) -> Any:
    latest = await team.workspace.tasks.latest_change(team.owner, team.task.id)
    return await team.workspace.tasks.undo_latest(who, team.task.id, latest.seq)


async def _claimed(team: Team, who: Caller, method: str) -> Any:
    """Call a method for a task that the owner of the machine has claimed."""
    queue = team.workspace.task_queue
    claimed = await queue.claim(team.owner, team.task.id, replace(REQUEST, connection="c"))
    if method == "renew":
        return await queue.renew(who, "c")
    if method == "release_connection":
        return await queue.release_connection(who, "c")
    return await getattr(queue, method)(who, team.task.id, fence=claimed.claim.fence)


#: Methods that find the task.
CALLS: Final = {
    "tasks.get": reads(lambda team, who: team.workspace.tasks.get(who, team.task.id)),
    "tasks.details": reads(lambda team, who: team.workspace.tasks.details(who, team.task.id)),
    "tasks.graph": reads(lambda team, who: team.workspace.tasks.graph(who, root=team.task.id)),
    "tasks.latest_change": reads(lambda team, who: team.workspace.tasks.latest_change(who, team.task.id)),
    "tasks.update": changes(lambda team, who: team.workspace.tasks.update(who, team.task.id, priority=5)),
    "tasks.move": changes(lambda team, who: team.workspace.tasks.update(who, team.task.id, project="")),
    "tasks.comment": changes(lambda team, who: team.workspace.tasks.update(who, team.task.id, comment="c")),
    "tasks.complete": changes(lambda team, who: team.workspace.tasks.complete(who, team.task.id)),
    "tasks.complete_all": changes(lambda team, who: team.workspace.tasks.complete_all(who, [team.task.id])),
    "tasks.reopen_all": changes(lambda team, who: team.workspace.tasks.reopen_all(who, [team.task.id])),
    "tasks.delete": changes(lambda team, who: team.workspace.tasks.delete(who, team.task.id)),
    "tasks.delete_all": changes(lambda team, who: team.workspace.tasks.delete_all(who, [team.task.id])),
    "tasks.update_all": changes(
        lambda team, who: team.workspace.tasks.update_all(who, [team.task.id], priority=5)
    ),
    "tasks.undo_latest": changes(_undo_latest),
    "task_queue.claim": changes(
        lambda team, who: team.workspace.task_queue.claim(who, team.task.id, REQUEST)
    ),
    "task_queue.take": changes(lambda team, who: team.workspace.task_queue.take(who, team.task.id, REQUEST)),
    "task_queue.finish_all": changes(
        lambda team, who: team.workspace.task_queue.finish_all(who, [team.task.id], comment="c")
    ),
    "task_queue.finish": changes(lambda team, who: _claimed(team, who, "finish")),
    "task_queue.release": changes(lambda team, who: _claimed(team, who, "release")),
    "a part in a plan": changes(
        lambda team, who: team.workspace.tasks.plan(who, [TaskDraft(title="Mine", parent=team.task.id)], "")
    ),
    "a part": changes(lambda team, who: _create(team, who, parent=team.task.id)),
}  # fmt: skip


def _create(team: Team, who: Caller, **fields: Any) -> Awaitable[Task]:
    return team.workspace.tasks.create(replace(who, own_tasks_only=False), title="Mine", project="", **fields)


@pytest.mark.parametrize("name", CALLS)
async def test_a_writing_member_may_do_everything(team: Team, name: str) -> None:
    await CALLS[name].call(team, team.caller("wanda"))


@pytest.mark.parametrize("name", CALLS)
async def test_a_reading_member_changes_nothing(team: Team, name: str) -> None:
    if not CALLS[name].writes:
        await CALLS[name].call(team, team.caller("rita"))
        return
    for who in (team.caller("rita"), team.caller("wanda", "read")):
        with pytest.raises(NotAllowed):
            await CALLS[name].call(team, who)
        await team.workspace.task_queue.release_connection(team.owner, "c")
    stored = await team.workspace.tasks.get(team.owner, team.task.id)
    assert replace(stored, updated_at=0, version=0) == replace(team.task, updated_at=0, version=0)


@pytest.mark.parametrize("name", CALLS)
async def test_the_task_does_not_exist_for_others(team: Team, name: str) -> None:
    for scope in ("write", "admin"):
        with pytest.raises((TaskNotFound, Invalid)) as refused:
            await CALLS[name].call(team, team.caller("sam", scope))
        assert SECRET not in str(refused.value)
        await team.workspace.task_queue.release_connection(team.owner, "c")
    stored = await team.workspace.tasks.get(team.owner, team.task.id)
    assert replace(stored, updated_at=0, version=0) == replace(team.task, updated_at=0, version=0)


async def test_only_a_writing_member_can_undo_a_batch_with_the_task(team: Team) -> None:
    tasks = team.workspace.tasks
    await tasks.update_all(team.caller("wanda"), [team.task.id], priority=5)
    seq = await team.newest()
    for who, error in (("sam", ChangeNotFound), ("rita", NotAllowed)):
        with pytest.raises(error):
            await tasks.undo_batch(team.caller(who), seq)
    await tasks.undo_batch(team.caller("wanda"), seq)
    assert (await tasks.get(team.owner, team.task.id)).priority == team.task.priority


LISTS: Final[dict[str, Callable[[Team, Caller], Awaitable[Any]]]] = {
    "tasks.page": lambda team, who: team.workspace.tasks.page(who, TaskQuery(user="wanda")),
    "tasks.search": lambda team, who: team.workspace.tasks.search(who, SECRET),
    "tasks.find_named": lambda team, who: team.workspace.tasks.find_named(who, SECRET),
    "tasks.listing": lambda team, who: team.workspace.tasks.listing(
        who, TaskFilter(), order="priority", limit=9, offset=0
    ),
    "tasks.board": lambda team, who: team.workspace.tasks.board(
        who, TaskFilter(), "project", order="priority", limit=5, width=5
    ),
    "tasks.status_board": lambda team, who: team.workspace.tasks.status_board(
        who, TaskFilter(), order="priority", limit=5
    ),
    "tasks.graph": lambda team, who: team.workspace.tasks.graph(who),
    "task_queue.ready": lambda team, who: team.workspace.task_queue.ready(who, REQUEST, limit=9),
}


@pytest.mark.parametrize("name", LISTS)
async def test_lists_show_the_task_to_members_only(team: Team, name: str) -> None:
    for user in ("wanda", "rita", "sam"):
        shown = repr(await LISTS[name](team, team.caller(user)))
        is_shown = user == "wanda" or (user == "rita" and name != "task_queue.ready")
        assert (SECRET in shown) == is_shown, user


async def test_counts_and_claims_include_no_task_of_others(team: Team) -> None:
    queue, tasks = team.workspace.task_queue, team.workspace.tasks
    for user in ("rita", "sam"):
        assert not await queue.is_any_ready(team.caller(user), REQUEST)
        assert await queue.claim_next(team.caller(user), REQUEST) is None
    await queue.claim(team.caller("wanda"), team.task.id, replace(REQUEST, connection="c"))
    sam = team.caller("sam")
    assert (await tasks.stats(sam)).total == 0
    assert await queue.renew(sam, "other") == 0
    assert await queue.release_connection(sam, "c") == 0
    assert (await queue.claims_of(team.owner, [team.task.id])).keys() == {team.task.id}


async def test_a_project_that_is_hidden_or_read_only_has_no_ready_tasks(team: Team) -> None:
    queue = team.workspace.task_queue
    request = replace(REQUEST, project="garden")
    with pytest.raises(ProjectNotFound):
        await queue.claim_next(team.caller("sam"), request)
    with pytest.raises(NotAllowed):
        await queue.claim_next(team.caller("rita"), request)
    assert await queue.claim_next(team.caller("wanda"), request) is not None


async def test_a_hidden_task_that_blocks_is_not_named(team: Team) -> None:
    """Somebody who left the project has a task that waits for one of the project."""
    own = await _create(team, team.caller("wanda"), blocked_by=(team.task.id,))
    other = await _create(team, team.caller("wanda"), parent=team.task.id)
    await team.workspace.accounts.add_user("zoe", actor="tests")
    await team.workspace.accounts.share("garden", "zoe", "write", actor="tests")
    await team.workspace.accounts.unshare("garden", "wanda", actor="tests")
    wanda = Caller(team.project, "wanda", "wanda", Principal("wanda", "write", None))
    queue = team.workspace.task_queue
    with pytest.raises(TaskNotReady) as refused:
        await queue.claim(wanda, own.id, REQUEST)
    assert SECRET not in str(refused.value)
    for task in (own, other):
        assert SECRET not in repr(await team.workspace.tasks.details(wanda, task.id))
    assert "you cannot see" in str(refused.value)
    with pytest.raises(TaskCycle) as cycle:
        await team.workspace.tasks.update(wanda, other.id, blocked_by=(own.id,))
    assert SECRET not in str(cycle.value)
    await team.workspace.tasks.complete(team.owner, other.id)
    await team.workspace.tasks.complete(team.owner, team.task.id)
    claimed = await queue.claim(wanda, own.id, REQUEST)
    assert claimed.done_before == []
    assert SECRET not in repr(claimed)
    # A change by somebody who cannot see what waits for it counts, too.
    zoe = Caller(team.project, "zoe", "zoe", Principal("zoe", "write", "write"))
    await team.workspace.tasks.reopen_all(zoe, [team.task.id])
    await queue.release(wanda, own.id, fence=claimed.claim.fence)
    with pytest.raises(TaskNotReady):
        await queue.claim(wanda, own.id, REQUEST)


async def test_what_left_the_project_is_not_restored_by_its_members(team: Team) -> None:
    tasks, history = team.workspace.tasks, team.workspace.history
    created = (await tasks.latest_change(team.owner, team.task.id)).seq
    await tasks.update(team.caller("wanda"), team.task.id, project="")
    private = await tasks.update(team.caller("wanda"), team.task.id, notes="private")
    await team.workspace.accounts.add_user("zoe", actor="tests")
    await team.workspace.accounts.share("garden", "zoe", "write", actor="tests")
    zoe = Caller(team.project, "zoe", "zoe", Principal("zoe", "admin", "write"))
    for refused in (
        history.undo(zoe, UndoSelection(seq=created, project=team.project)),
        history.restore(zoe, created, project=team.project),
        tasks.get(zoe, team.task.id),
        tasks.latest_change(zoe, team.task.id),
    ):
        with pytest.raises((ChangeNotFound, TaskNotFound)):
            await refused
    seen = await history.page(zoe, ChangeQuery(project=team.project, kind="task"))
    assert "private" not in repr(seen)
    assert await tasks.get(team.owner, team.task.id) == private


async def test_a_task_returns_to_a_project_only_by_its_writers(team: Team) -> None:
    tasks, history = team.workspace.tasks, team.workspace.history
    left = await tasks.update(team.caller("wanda"), team.task.id, project="")
    assert (left.project_id, left.user) == (None, "wanda")
    moved = (await tasks.latest_change(team.owner, team.task.id)).seq
    await team.workspace.accounts.share("garden", "wanda", "read", actor="tests")
    wanda = Caller(team.project, "wanda", "wanda", Principal("wanda", "write", "read"))
    elsewhere = Caller(1, "wanda", "wanda", Principal("wanda", "write", "write"))
    with pytest.raises(NotAllowed):
        await tasks.undo_latest(wanda, team.task.id, moved)
    with pytest.raises(NotAllowed):
        await history.undo(elsewhere, UndoSelection(seq=moved, project=1))
    assert await tasks.get(wanda, team.task.id) == left


async def test_a_task_does_not_become_somebody_elses_by_undo(team: Team) -> None:
    """Undoing that a private task entered the project would make it private again."""
    tasks = team.workspace.tasks
    own = await _create(team, team.caller("wanda"))
    shared = await tasks.update(team.caller("wanda"), own.id, project="garden")
    entered = (await tasks.latest_change(team.owner, own.id)).seq
    await team.workspace.accounts.add_user("zoe", actor="tests")
    await team.workspace.accounts.share("garden", "zoe", "write", actor="tests")
    zoe = Caller(team.project, "zoe", "zoe", Principal("zoe", "write", "write"))
    for refused in (
        tasks.undo_latest(zoe, own.id, entered),
        team.workspace.history.undo(zoe, UndoSelection(seq=entered, project=team.project)),
    ):
        with pytest.raises(ChangeNotFound):
            await refused
    assert await tasks.get(zoe, own.id) == shared


async def test_row_level_security_hides_what_a_query_without_a_filter_asks_for(team: Team) -> None:
    """On PostgreSQL. SQLite has no policies."""
    await team.workspace.task_queue.claim(
        team.caller("wanda"), team.task.id, replace(REQUEST, connection="c")
    )

    async def work(transaction: Transaction) -> dict[str, str]:
        assert isinstance(transaction, SqlTransaction)
        driver = transaction._tables.driver
        return {
            table: repr(await driver.rows(f"SELECT * FROM {table}"))
            for table in ("tasks", "open_tasks", "open_labels", "claims", "changes")
        }

    store = team.workspace.store
    hidden = await store.read(work, viewer="sam")
    if type(store).__name__ == "SqliteStore":
        pytest.skip("SQLite has no row-level security")
    for viewer in ("wanda", "rita", None):
        shown = await store.read(work, viewer=viewer)
        assert all("garden" in text or SECRET in text or "wanda" in text for text in shown.values()), viewer
    for table, text in hidden.items():
        assert SECRET not in text, table
        assert "garden" not in text, table
        assert "wanda" not in text, table
    with pytest.raises(DittybagError):
        await store.write(_take, actor="x", viewer="sam")


async def _take(transaction: Transaction) -> None:
    """Put a task into the project of others."""
    now = transaction.now
    task = Task(id=0, user="sam", title="t", project="garden", project_id=2, created_at=now, updated_at=now)
    await transaction.write("create", None, task)
