"""Tasks that are created together: edges between them, all or nothing, and repeated imports."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.accounts import Principal, Role
from dittybag.domain.errors import Invalid, NotAllowed, ProjectNotFound, TaskCycle
from dittybag.domain.task_drafts import MAX_DRAFTS, TaskDraft
from dittybag.domain.tasks import Comment, Task
from dittybag.services.caller import Caller
from tests.storage_contract.log_consistency import check_log
from tests.storage_contract.store_session import StoreSession


def draft(key: str, *blocked_by: str | int, **fields: Any) -> TaskDraft:
    return TaskDraft(**{"key": key, "title": key.upper(), "blocked_by": blocked_by, **fields})


async def all_tasks(session: StoreSession) -> list[Task]:
    found = [
        await session.workspace.tasks.get(session.caller, number)
        for number in range(1, await count(session) + 1)
    ]
    return sorted(found, key=lambda task: task.id)


async def count(session: StoreSession) -> int:
    return await session.workspace.tasks.count_all()


async def test_keys_become_edges_in_every_order(session: StoreSession) -> None:
    plan = [
        draft("ship", "test", parent="epic"),
        draft("epic", "docs"),
        draft("test", "build", "build", parent="epic"),
        draft("build", parent="epic"),
        draft("docs"),
    ]
    tasks = await session.workspace.tasks.plan(session.caller, plan)
    by_title = {task.title: task for task in tasks}
    ids = {title: task.id for title, task in by_title.items()}
    assert [task.title for task in tasks] == ["SHIP", "EPIC", "TEST", "BUILD", "DOCS"]
    assert sorted(ids.values()) == [1, 2, 3, 4, 5]
    assert by_title["SHIP"].blocked_by == (ids["TEST"],)
    assert by_title["TEST"].blocked_by == (ids["BUILD"],)
    assert by_title["EPIC"].blocked_by == (ids["DOCS"],)
    assert {title for title, task in by_title.items() if task.parent == ids["EPIC"]} == {
        "SHIP",
        "TEST",
        "BUILD",
    }
    # Each edge points to a task that existed, so that no task had to be changed.
    assert {task.version for task in tasks} == {1}
    assert sorted(tasks, key=lambda task: task.id) == await all_tasks(session)
    await check_log(session.store)


async def test_a_task_may_be_blocked_by_its_own_part(session: StoreSession) -> None:
    part, whole = await session.workspace.tasks.plan(
        session.caller, [draft("part", parent="whole"), draft("whole", "part")]
    )
    assert (part.parent, whole.blocked_by) == (whole.id, (part.id,))
    assert sorted([part, whole], key=lambda task: task.id) == await all_tasks(session)
    await check_log(session.store)


async def test_one_undo_undoes_a_plan(session: StoreSession) -> None:
    await session.workspace.tasks.plan(
        session.caller, [draft("a", parent="b"), draft("b", "a"), draft("c", "a")]
    )
    assert await count(session) == 3
    await session.undo((await session.newest_change()).seq)
    assert await count(session) == 0
    await check_log(session.store)


async def test_edges_may_point_to_existing_tasks(session: StoreSession) -> None:
    old = await session.task("Old")
    (new,) = await session.workspace.tasks.plan(session.caller, [draft("new", old.id)])
    assert new.blocked_by == (old.id,)


@pytest.mark.parametrize("number", [-1, 0, 99, 2**63, 10**30])
async def test_edges_to_missing_tasks_are_refused(session: StoreSession, number: int) -> None:
    for edges in ({"parent": number}, {"blocked_by": (number,)}):
        with pytest.raises(Invalid, match=f"^task 2 'B': {next(iter(edges))}: task {number} does not exist$"):
            await session.workspace.tasks.plan(session.caller, [draft("a"), draft("b", **edges)])
    assert await count(session) == 0


async def test_edges_to_tasks_of_others_are_refused(session: StoreSession) -> None:
    hidden = await session.task("Hidden")
    other = replace(session.caller, user="somebody-else")
    with pytest.raises(Invalid, match="does not exist"):
        await session.workspace.tasks.plan(other, [draft("a", hidden.id)])


@pytest.mark.parametrize(
    ("plan", "cycle"),
    [
        ([draft("a", "a")], ["a"]),
        ([draft("a", "b"), draft("b", "c"), draft("c", "a"), draft("d", "a")], ["a", "b", "c"]),
        # A task waits for its parts.
        ([draft("whole"), draft("part", "whole", parent="whole")], ["whole", "part"]),
        ([draft("a", parent="b"), draft("b", parent="a")], ["a", "b"]),
        ([draft("a", parent="a")], ["a"]),
        (
            [draft("whole"), draft("part", "other", parent="whole"), draft("other", "whole")],
            ["whole", "part", "other"],
        ),
    ],
)
async def test_a_cycle_is_refused_and_named(
    session: StoreSession, plan: list[TaskDraft], cycle: list[str]
) -> None:
    with pytest.raises(TaskCycle) as caught:
        await session.workspace.tasks.plan(session.caller, plan)
    assert list(caught.value.tasks) == [f"{key} '{key.upper()}'" for key in cycle]
    assert await count(session) == 0


async def test_a_cycle_through_existing_tasks_is_refused_and_named(session: StoreSession) -> None:
    whole, later = await session.workspace.tasks.plan(
        session.caller, [draft("whole"), draft("later", "whole")]
    )
    with pytest.raises(TaskCycle) as caught:
        await session.workspace.tasks.plan(session.caller, [draft("part", later.id, parent=whole.id)])
    names = {"part 'PART'", f"task {later.id} 'LATER'", f"task {whole.id} 'WHOLE'"}
    assert set(caught.value.tasks) == names
    assert await count(session) == 2


async def test_a_long_cycle_is_named_in_a_short_message(session: StoreSession) -> None:
    plan = [draft(f"k{number}", f"k{(number + 1) % 150}") for number in range(150)]
    with pytest.raises(TaskCycle) as caught:
        await session.workspace.tasks.plan(session.caller, plan)
    assert str(caught.value).endswith(" → k19 'K19' → 130 more → k0 'K0'")


async def test_a_cycle_through_an_existing_part_is_refused(session: StoreSession) -> None:
    whole, other, _ = await session.workspace.tasks.plan(
        session.caller, [draft("whole"), draft("other"), draft("part", "whole", parent="other")]
    )
    # `other` waits for its part, which waits for `whole`, which would wait for the new part.
    with pytest.raises(TaskCycle):
        await session.workspace.tasks.plan(session.caller, [draft("new", other.id, parent=whole.id)])


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        ([], "between 1 and 200 tasks can be added together, not 0"),
        ([draft("a")] * (MAX_DRAFTS + 1), "not 201"),
        ([draft("a", "b")], "task 1 'A': blocked_by: no task has the key 'b'"),
        ([draft("a"), draft("b", parent="")], "task 2 'B': parent: no task has the key ''"),
        ([draft("a"), draft("a")], "task 2 'A': key 'a' is not unique"),
        ([draft("a", source="x:1"), draft("b", source="x:1")], "task 2 'B': source 'x:1' is not unique"),
        ([draft("a"), draft("b", title="")], "task 2 '': Title must be between 1 and 500 characters"),
        ([draft("a", priority=9)], "task 1 'A': Priority must be between 1 and 5"),
        ([draft("a", labels=tuple(map(str, range(21))))], "At most 20 labels are allowed"),
        ([draft("a", links=tuple(map(str, range(50))), source="x:1")], "At most 50 links are allowed"),
    ],
)
async def test_an_invalid_plan_creates_nothing(
    session: StoreSession, plan: list[TaskDraft], problem: str
) -> None:
    with pytest.raises(Invalid, match=problem):
        await session.workspace.tasks.plan(session.caller, plan)
    assert await count(session) == 0


async def test_an_import_into_a_project_that_does_not_exist_is_refused(session: StoreSession) -> None:
    with pytest.raises(ProjectNotFound):
        await session.workspace.tasks.import_drafts(session.caller, [draft("a")], "missing")
    assert await count(session) == 0


async def test_tasks_of_a_plan_belong_to_the_project(session: StoreSession) -> None:
    project = await session.workspace.projects.create("team", actor="tester")
    (task,) = await session.workspace.tasks.plan(session.caller, [draft("a")], "team")
    assert (task.project, task.project_id) == ("team", project.id)
    inside = replace(session.caller, project=project.id)
    (task,) = await session.workspace.tasks.plan(inside, [draft("a")])
    assert (task.project, task.project_id) == ("team", project.id)
    (task,) = await session.workspace.tasks.plan(inside, [draft("a")], None)
    assert (task.project, task.project_id) == (None, None)


async def test_fields_of_an_imported_task_are_stored(session: StoreSession) -> None:
    given = draft(
        "a",
        notes="N",
        priority=5,
        time_estimate="2hr",
        due_date="2026-03-01",
        status="done",
        completed_at=2_000_000,
        created_at=1_000_000,
        assignee="ann",
        labels=("x", "y"),
        links=("https://example.com",),
        comments=(Comment(1_500_000, "bob", "Fine"),),
        source="beads:bd-1",
    )
    result = await session.workspace.tasks.import_drafts(session.caller, [given])
    [task] = await all_tasks(session)
    assert result.created == [task]
    for name in ("notes", "priority", "time_estimate", "due_date", "status", "completed_at", "created_at"):
        assert getattr(task, name) == getattr(given, name)
    assert (task.assignee, task.labels, task.comments) == ("ann", ("x", "y"), given.comments)
    assert task.links == ("https://example.com", "beads:bd-1")
    await check_log(session.store)


@pytest.mark.parametrize("status", ["todo", "doing", "review", "dropped"])
async def test_only_done_tasks_have_a_time_of_completion(session: StoreSession, status: str) -> None:
    given = draft("a", status=status, completed_at=5, source="x:1")
    [task] = (await session.workspace.tasks.import_drafts(session.caller, [given])).created
    assert (task.status, task.completed_at) == (status, None)


async def test_a_second_import_changes_nothing(session: StoreSession) -> None:
    drafts = [draft("a", source="x:a"), draft("b", "a", source="x:b")]
    first = await session.workspace.tasks.import_drafts(session.caller, drafts)
    assert (len(first.created), first.known) == (2, 0)
    before = await all_tasks(session)
    newest = await session.store.read(lambda transaction: transaction.changes.newest_seq())
    changed = [replace(drafts[0], title="Other"), drafts[1]]
    second = await session.workspace.tasks.import_drafts(session.caller, changed)
    assert (second.created, second.known) == ([], 2)
    assert await all_tasks(session) == before
    assert await session.store.read(lambda transaction: transaction.changes.newest_seq()) == newest


async def test_drafts_need_no_keys(session: StoreSession) -> None:
    drafts = [TaskDraft(title=f"T{number}", source=f"x:{number}") for number in range(4)]
    await session.workspace.tasks.import_drafts(session.caller, drafts[:2])
    result = await session.workspace.tasks.import_drafts(session.caller, drafts)
    assert ([task.title for task in result.created], result.known) == (["T2", "T3"], 2)


async def test_a_later_import_adds_new_tasks_with_edges_to_known_ones(session: StoreSession) -> None:
    await session.workspace.tasks.import_drafts(session.caller, [draft("a", source="x:a")])
    drafts = [draft("a", source="x:a"), draft("b", "a", source="x:b"), draft("c", parent="a", source="x:c")]
    result = await session.workspace.tasks.import_drafts(session.caller, drafts)
    assert [(task.title, task.blocked_by, task.parent) for task in result.created] == [
        ("B", (1,), None),
        ("C", (), 1),
    ]
    assert result.known == 1


async def test_the_same_tasks_can_be_imported_into_each_project_and_by_each_user(
    session: StoreSession,
) -> None:
    await session.workspace.projects.create("team", actor="tester")
    drafts = [draft("a", source="x:a")]
    other = replace(session.caller, user="somebody-else")
    for caller, project in ((session.caller, None), (session.caller, "team"), (other, None)):
        assert len((await session.workspace.tasks.import_drafts(caller, drafts, project)).created) == 1
        assert (await session.workspace.tasks.import_drafts(caller, drafts, project)).known == 1


async def test_a_task_that_only_names_a_project_is_not_one_of_it(session: StoreSession) -> None:
    await session.workspace.tasks.create(session.caller, title="A", project="later", links=("x:a",))
    await session.workspace.projects.create("later", actor="tester")
    result = await session.workspace.tasks.import_drafts(session.caller, [draft("a", source="x:a")], "later")
    assert (len(result.created), result.known) == (1, 0)


async def shared_project(session: StoreSession) -> dict[str, Caller]:
    """Create a project, and return callers who write, read and cannot see it."""
    accounts = session.workspace.accounts
    await session.workspace.projects.create("team", actor="tester")
    roles: dict[str, Role | None] = {"ann": "write", "bob": "write", "reader": "read", "outsider": None}
    for user, role in roles.items():
        await accounts.add_user(user, actor="tester")
        if role is not None:
            await accounts.share("team", user, role, actor="tester")
    return {
        user: replace(session.caller, user=user, principal=Principal(user, "write", "write"))
        for user in roles
    }


async def test_members_know_what_others_imported_into_their_project(session: StoreSession) -> None:
    callers = await shared_project(session)
    drafts = [draft("a", source="x:a"), draft("b", source="x:b")]
    tasks = session.workspace.tasks
    assert len((await tasks.import_drafts(callers["ann"], drafts[:1], "team")).created) == 1
    result = await tasks.import_drafts(callers["bob"], drafts, "team")
    assert ([task.title for task in result.created], result.known) == (["B"], 1)


async def test_only_members_who_write_can_import_into_a_project(session: StoreSession) -> None:
    callers = await shared_project(session)
    tasks = session.workspace.tasks
    for user, error in (("reader", NotAllowed), ("outsider", ProjectNotFound)):
        for dry_run in (False, True):
            with pytest.raises(error):
                await tasks.import_drafts(callers[user], [draft("a", source="x:a")], "team", dry_run=dry_run)
    assert await count(session) == 0


async def test_edges_lead_to_tasks_of_projects_only_for_those_who_see_them(session: StoreSession) -> None:
    callers = await shared_project(session)
    tasks = session.workspace.tasks
    (shared,) = await tasks.plan(callers["ann"], [draft("a")], "team")
    for user in ("bob", "reader"):
        (own,) = await tasks.plan(callers[user], [draft("b", shared.id)], None)
        assert own.blocked_by == (shared.id,)
    with pytest.raises(Invalid, match=f"task {shared.id} does not exist"):
        await tasks.plan(callers["outsider"], [draft("b", shared.id)], None)


async def test_a_dry_run_finds_problems_and_writes_nothing(session: StoreSession) -> None:
    drafts = [draft("a", source="x:a"), draft("b", "a", source="x:b")]
    result = await session.workspace.tasks.import_drafts(session.caller, drafts, dry_run=True)
    assert [task.title for task in result.created] == ["A", "B"]
    assert await count(session) == 0
    with pytest.raises(TaskCycle):
        await session.workspace.tasks.import_drafts(session.caller, [draft("a", "a")], dry_run=True)


async def test_an_import_has_no_maximum(session: StoreSession) -> None:
    drafts = [draft(f"k{n}", *([f"k{n - 1}"] if n else []), source=f"x:{n}") for n in range(1_200)]
    result = await session.workspace.tasks.import_drafts(session.caller, drafts)
    assert [task.blocked_by for task in result.created] == [(), *((n,) for n in range(1, 1_200))]
    assert (await session.workspace.tasks.import_drafts(session.caller, drafts)).known == 1_200
