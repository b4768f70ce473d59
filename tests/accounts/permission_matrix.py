"""The permission matrix: every operation, what it concerns, and how to request it.

A test fails for an operation without a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from tests.accounts.accounts_world import (
    HIDDEN_PROJECT,
    OPEN_PROJECT,
    STRANGER,
    TEAM_WORD,
    Json,
    TokenHolder,
    World,
    word_of,
)

Make = Callable[[World, TokenHolder], Json]

#: Ids and names that do not exist.
NO_NUMBER = 987654
NO_NAME = "nothing-at-all"
NO_ID = "00000000-0000-7000-8000-000000000000"


class ForeignPair(Struct, frozen=True):
    """Arguments for a hidden entity and for a missing one. The responses must be the same."""

    foreign: Make
    missing: Json


class MatrixRow(Struct, frozen=True, kw_only=True):
    """An operation of the matrix."""

    #: Whether it concerns the project or the user's own tasks.
    touches: Literal["project", "own", "nothing"]
    writes: bool = False
    #: Arguments of an allowed request.
    ask: Make = lambda world, who: {}
    #: A word in the result of an allowed request.
    shows: Callable[[TokenHolder], str] = lambda who: ""
    pairs: tuple[ForeignPair, ...] = ()


def _constant(**arguments: Any) -> Make:
    return lambda world, who: arguments


def _team(who: TokenHolder) -> str:
    return TEAM_WORD


def _mine(who: TokenHolder) -> str:
    return word_of(who.user)


def _after_new_prompt(**arguments: Any) -> Make:
    """Create a prompt, whose change is among the latest ones."""

    def ask(world: World, who: TokenHolder) -> Json:
        world.new_prompt()
        return arguments

    return ask


def _change_of(make: Callable[[World], object]) -> Make:
    """Make a change and return its seq."""

    def arguments(world: World, who: TokenHolder) -> Json:
        make(world)
        return {"change": world.last_change()}

    return arguments


def _own_task(**more: Any) -> Make:
    return lambda world, who: {"task_id": world.new_task(who.user), **more}


def _foreign_task(**more: Any) -> tuple[ForeignPair, ...]:
    return (
        ForeignPair(
            lambda world, who: {"task_id": world.new_task(STRANGER), **more}, {"task_id": NO_NUMBER, **more}
        ),
    )


def _foreign_prompt_id(**more: Any) -> tuple[ForeignPair, ...]:
    return (
        ForeignPair(
            lambda world, who: {"id": world.new_prompt(HIDDEN_PROJECT)[1], **more}, {"id": NO_ID, **more}
        ),
    )


def _foreign_prompt_name(**more: Any) -> tuple[ForeignPair, ...]:
    return (
        ForeignPair(
            lambda world, who: {"name": world.new_prompt(HIDDEN_PROJECT)[0], **more},
            {"name": NO_NAME, **more},
        ),
    )


def _foreign_resource(**more: Any) -> tuple[ForeignPair, ...]:
    return (
        ForeignPair(
            lambda world, who: {"name": world.new_resource(HIDDEN_PROJECT), **more}, {"name": NO_NAME, **more}
        ),
    )


TASKS: dict[str, MatrixRow] = {
    "task_create": MatrixRow(
        touches="own", writes=True, ask=_constant(title="Mine"), shows=lambda who: who.user
    ),
    "task_list": MatrixRow(touches="own", ask=_constant(show_completed=True), shows=_mine),
    "task_get": MatrixRow(touches="own", ask=_own_task(), shows=_mine, pairs=_foreign_task()),
    "task_update": MatrixRow(
        touches="own",
        writes=True,
        ask=_own_task(priority=5),
        shows=_mine,
        pairs=_foreign_task(priority=5),
    ),
    "task_complete": MatrixRow(
        touches="own", writes=True, ask=_own_task(), shows=_mine, pairs=_foreign_task()
    ),
    "task_delete": MatrixRow(touches="own", writes=True, ask=_own_task(), pairs=_foreign_task()),
    "task_search": MatrixRow(touches="own", ask=_constant(query="word"), shows=_mine),
    "task_stats": MatrixRow(touches="own"),
}

_CREATE_PROMPT = MatrixRow(
    touches="project",
    writes=True,
    ask=lambda world, who: {"name": f"new{world.number()}", "content": "Words"},
)
_BY_NAME: dict[str, MatrixRow] = {
    "create_prompt": _CREATE_PROMPT,
    "update_prompt": MatrixRow(
        touches="project",
        writes=True,
        ask=lambda world, who: {"name": world.new_prompt()[0], "content": "Other words"},
        pairs=_foreign_prompt_name(content="Other words"),
    ),
    "delete_prompt": MatrixRow(
        touches="project",
        writes=True,
        ask=lambda world, who: {"name": world.new_prompt()[0]},
        pairs=_foreign_prompt_name(),
    ),
    "create_resource": MatrixRow(
        touches="project",
        writes=True,
        ask=lambda world, who: {
            "name": f"new{world.number()}",
            "uri": f"file:///new{world.number()}",
            "content": "Words",
        },
    ),
    "update_resource": MatrixRow(
        touches="project",
        writes=True,
        ask=lambda world, who: {"name": world.new_resource(), "content": "Other words"},
        pairs=_foreign_resource(content="Other words"),
    ),
    "delete_resource": MatrixRow(
        touches="project",
        writes=True,
        ask=lambda world, who: {"name": world.new_resource()},
        pairs=_foreign_resource(),
    ),
}
_NEW_WORDS: Json = {"title": "Other title", "content": "Other words"}
_BY_ID: dict[str, MatrixRow] = {
    "add_prompt": MatrixRow(
        touches="project",
        writes=True,
        ask=lambda world, who: {"title": f"New {world.number()}", "content": "Words"},
    ),
    "list_prompts": MatrixRow(touches="project", ask=_constant(limit=100), shows=_team),
    "get_prompt": MatrixRow(
        touches="project",
        ask=lambda world, who: {"id": world.prompt},
        shows=_team,
        pairs=_foreign_prompt_id(),
    ),
    "update_prompt": MatrixRow(
        touches="project",
        writes=True,
        ask=lambda world, who: {
            "id": world.new_prompt()[1],
            "title": f"New {world.number()}",
            "content": "Other words",
        },
        pairs=_foreign_prompt_id(**_NEW_WORDS),
    ),
    "delete_prompt": MatrixRow(
        touches="project",
        writes=True,
        ask=lambda world, who: {"id": world.new_prompt()[1]},
        pairs=_foreign_prompt_id(),
    ),
    "search_prompts": MatrixRow(touches="project", ask=_constant(query="word", limit=100), shows=_team),
    "filter_by_tags": MatrixRow(
        touches="project",
        ask=_constant(tags=[TEAM_WORD], limit=100),
        shows=_team,
        pairs=(ForeignPair(_constant(tags=[word_of(STRANGER)]), {"tags": [NO_NAME]}),),
    ),
    "list_tags": MatrixRow(touches="project", shows=_team),
}


def _blocked_by(number: int) -> Json:
    return {"tasks": [{"title": "Theirs", "blocked_by": [f"task:{number}"]}]}


def _ref(make: Callable[[World, TokenHolder], object]) -> Make:
    return lambda world, who: {"ref": str(make(world, who))}


def _foreign_refs(**more: Any) -> tuple[ForeignPair, ...]:
    """References to a task of another user, and to a prompt, a task and a change of a hidden project."""

    def hidden_change(world: World) -> str:
        world.new_prompt(HIDDEN_PROJECT)
        return f"change:{world.last_change()}"

    return (
        ForeignPair(
            lambda world, who: {"ref": f"task:{world.new_task(STRANGER)}", **more},
            {"ref": f"task:{NO_NUMBER}", **more},
        ),
        ForeignPair(
            lambda world, who: {"ref": world.new_prompt(HIDDEN_PROJECT)[1], **more}, {"ref": NO_ID, **more}
        ),
        ForeignPair(
            lambda world, who: {"ref": f"task:{world.new_shared_task(HIDDEN_PROJECT)}", **more},
            {"ref": f"task:{NO_NUMBER}", **more},
        ),
        ForeignPair(
            lambda world, who: {"ref": hidden_change(world), **more}, {"ref": f"change:{NO_NUMBER}", **more}
        ),
    )


_SEARCH = MatrixRow(touches="project", ask=_constant(query="word", limit=100), shows=_mine)
_CONTEXT = MatrixRow(touches="project", ask=_constant(query="teamword", budget=10_000), shows=_team)
_READ = MatrixRow(
    touches="project",
    ask=_ref(lambda world, who: world.prompt),
    shows=_team,
    pairs=_foreign_refs(),
)
_USE_PROMPT = MatrixRow(
    touches="project",
    ask=_ref(lambda world, who: world.prompt),
    shows=_team,
    pairs=_foreign_refs()[:3],
)
_TASK_ADD = MatrixRow(
    touches="own",
    writes=True,
    ask=_constant(tasks=[{"title": "Mine", "project": ""}]),
    pairs=(
        ForeignPair(
            _constant(tasks=[{"title": "Theirs", "project": HIDDEN_PROJECT}]),
            {"tasks": [{"title": "Theirs", "project": NO_NAME}]},
        ),
        ForeignPair(
            lambda world, who: _blocked_by(world.new_task(STRANGER)),
            {"tasks": [{"title": "Theirs", "blocked_by": [f"task:{NO_NUMBER}"]}]},
        ),
        ForeignPair(
            lambda world, who: _blocked_by(world.new_shared_task(HIDDEN_PROJECT)),
            {"tasks": [{"title": "Theirs", "blocked_by": [f"task:{NO_NUMBER}"]}]},
        ),
    ),
)
_QUEUE: dict[str, MatrixRow] = {
    "task_next": MatrixRow(
        touches="own",
        writes=True,
        ask=_ref(lambda world, who: f"task:{world.new_task(who.user)}"),
        shows=_mine,
        pairs=(
            *_foreign_refs()[:3],
            ForeignPair(_constant(project=HIDDEN_PROJECT), {"project": NO_NAME}),
        ),
    ),
    "task_done": MatrixRow(
        touches="own",
        writes=True,
        ask=_ref(lambda world, who: f"task:{world.new_task(who.user)}"),
        shows=_mine,
        pairs=_foreign_refs(fence=1)[:3],
    ),
    "task_release": MatrixRow(
        touches="own",
        writes=True,
        ask=_ref(lambda world, who: f"task:{world.new_task(who.user, status='doing')}"),
        shows=_mine,
        pairs=_foreign_refs(fence=1)[:3],
    ),
}
_AGENT: dict[str, MatrixRow] = {
    "search": _SEARCH,
    "context": _CONTEXT,
    "read": _READ,
    "use_prompt": _USE_PROMPT,
    "save_prompt": _CREATE_PROMPT,
    "save_resource": MatrixRow(
        touches="project",
        writes=True,
        ask=lambda world, who: {"uri": f"file:///new{world.number()}", "content": "Words"},
    ),
    "delete": MatrixRow(
        touches="own",
        writes=True,
        ask=_ref(lambda world, who: f"task:{world.new_task(who.user)}"),
        pairs=_foreign_refs(),
    ),
    "task_add": _TASK_ADD,
    "task_list": MatrixRow(touches="own", ask=_constant(limit=200, order="newest"), shows=_mine),
    "task_update": MatrixRow(
        touches="own",
        writes=True,
        ask=lambda world, who: {"ref": f"task:{world.new_task(who.user)}", "priority": 5},
        shows=_mine,
        pairs=_foreign_refs(priority=5)[:3],
    ),
    **_QUEUE,
    "history": MatrixRow(
        touches="project", ask=_after_new_prompt(limit=100), shows=_team, pairs=_foreign_refs()[:3]
    ),
    "undo": MatrixRow(
        touches="project",
        writes=True,
        ask=_ref(lambda world, who: world.new_prompt()[1]),
        shows=_team,
        pairs=_foreign_refs(),
    ),
    "project": MatrixRow(
        touches="nothing",
        shows=lambda who: OPEN_PROJECT,
        pairs=(
            ForeignPair(
                _constant(action="switch", name=HIDDEN_PROJECT), {"action": "switch", "name": NO_NAME}
            ),
        ),
    ),
}

#: By profile and name.
TOOLS: dict[tuple[str, str], MatrixRow] = {
    **{("tasks", name): row for name, row in TASKS.items()},
    **{("mcpkg", name): row for name, row in _BY_NAME.items()},
    **{("prompt-store", name): row for name, row in _BY_ID.items()},
    **{("all", name): row for name, row in (TASKS | _BY_NAME | _BY_ID).items()},
    ("all", "update_prompt"): MatrixRow(
        touches="project",
        writes=True,
        ask=lambda world, who: {"id": world.new_prompt()[1], "content": "Other words"},
        pairs=(*_foreign_prompt_id(content="Other words"), *_foreign_prompt_name(content="Other words")),
    ),
    ("all", "delete_prompt"): MatrixRow(
        touches="project",
        writes=True,
        ask=lambda world, who: {"name": world.new_prompt()[0]},
        pairs=(*_foreign_prompt_id(), *_foreign_prompt_name()),
    ),
    **{("agent", name): row for name, row in _AGENT.items()},
    **{("all", name): row for name, row in _QUEUE.items()},
    ("all", "task_add"): _TASK_ADD,
    ("all", "search"): _SEARCH,
    ("all", "context"): _CONTEXT,
    ("all", "read"): _READ,
    ("all", "use_prompt"): _USE_PROMPT,
    ("all", "list_changes"): MatrixRow(
        touches="project",
        ask=_after_new_prompt(limit=100),
        shows=_team,
        pairs=(
            ForeignPair(
                lambda world, who: {"kind": "task", "id": str(world.new_task(STRANGER))},
                {"kind": "task", "id": str(NO_NUMBER)},
            ),
            ForeignPair(lambda world, who: {"id": world.new_prompt(HIDDEN_PROJECT)[1]}, {"id": NO_ID}),
            ForeignPair(
                lambda world, who: {"kind": "project", "id": str(world.projects[HIDDEN_PROJECT])},
                {"kind": "project", "id": str(NO_NUMBER)},
            ),
        ),
    ),
    ("all", "undo_change"): MatrixRow(
        touches="project",
        writes=True,
        ask=_change_of(lambda world: world.new_prompt()),
        shows=_team,
        pairs=tuple(
            ForeignPair(_change_of(make), {"change": NO_NUMBER})
            for make in (
                lambda world: world.new_task(STRANGER),
                lambda world: world.new_prompt(HIDDEN_PROJECT),
                lambda world: world.new_resource(HIDDEN_PROJECT),
            )
        ),
    ),
}


def _completing(kind: str, target: str, argument: str) -> Make:
    key = "name" if kind == "ref/prompt" else "uri"
    return _constant(ref={"type": kind, key: target}, argument={"name": argument, "value": ""})


#: By method name, followed by the target if there are several.
METHODS: dict[str, MatrixRow] = {
    "initialize": MatrixRow(
        touches="nothing", ask=_constant(protocolVersion="2025-11-25", capabilities={}, clientInfo={})
    ),
    "ping": MatrixRow(touches="nothing"),
    "tools/list": MatrixRow(touches="nothing"),
    "prompts/list": MatrixRow(touches="project", shows=_team),
    "prompts/get": MatrixRow(
        touches="project",
        ask=lambda world, who: {"name": world.new_prompt()[0]},
        shows=_team,
        pairs=_foreign_prompt_name(),
    ),
    "resources/list": MatrixRow(touches="project", shows=_team),
    "resources/templates/list": MatrixRow(touches="project"),
    "resources/read": MatrixRow(
        touches="project",
        ask=_constant(uri="file:///notes"),
        shows=_team,
        pairs=(
            ForeignPair(_constant(uri="file:///plans"), {"uri": "file:///nowhere"}),
            ForeignPair(
                _constant(uri=f"dittybag://projects/{HIDDEN_PROJECT}"),
                {"uri": f"dittybag://projects/{NO_NAME}"},
            ),
            ForeignPair(
                _constant(uri=f"dittybag://tags/{word_of(STRANGER)}"), {"uri": f"dittybag://tags/{NO_NAME}"}
            ),
        ),
    ),
    "resources/read of a project": MatrixRow(
        touches="project",
        ask=_constant(uri=f"dittybag://projects/{OPEN_PROJECT}"),
        shows=lambda who: OPEN_PROJECT,
    ),
    "resources/read of ready tasks": MatrixRow(
        touches="own",
        ask=lambda world, who: {
            "uri": "dittybag://tasks/ready",
            "_": world.new_task(who.user, project="", priority=5),
        },
    ),
    "resources/subscribe to ready tasks": MatrixRow(
        touches="project", ask=_constant(uri="dittybag://tasks/ready")
    ),
    "skills/list": MatrixRow(touches="project", shows=_team),
    "skills/get": MatrixRow(
        touches="project",
        ask=lambda world, who: {"uri": f"skill://stored-prompts/{world.new_prompt()[0]}/SKILL.md"},
        pairs=(
            ForeignPair(
                lambda world, who: {
                    "uri": f"skill://stored-prompts/{world.new_prompt(HIDDEN_PROJECT)[0]}/SKILL.md"
                },
                {"uri": f"skill://stored-prompts/{NO_NAME}/SKILL.md"},
            ),
        ),
    ),
    "resources/directory/read": MatrixRow(
        touches="project",
        ask=lambda world, who: {"uri": f"skill://stored-prompts/{world.new_prompt()[0]}"},
        pairs=(
            ForeignPair(
                lambda world, who: {"uri": f"skill://stored-prompts/{world.new_prompt(HIDDEN_PROJECT)[0]}"},
                {"uri": f"skill://stored-prompts/{NO_NAME}"},
            ),
        ),
    ),
    "resources/subscribe": MatrixRow(
        touches="project",
        ask=_constant(uri="file:///notes"),
        pairs=(ForeignPair(_constant(uri="file:///plans"), {"uri": "file:///nowhere"}),),
    ),
    "resources/unsubscribe": MatrixRow(touches="nothing", ask=_constant(uri="file:///notes")),
    "completion/complete": MatrixRow(
        touches="project",
        ask=_completing("ref/resource", "dittybag://projects/{project}", "project"),
        shows=lambda who: OPEN_PROJECT,
    ),
    "completion/complete of tags": MatrixRow(
        touches="project",
        ask=_completing("ref/resource", "dittybag://tags/{tag}", "tag"),
        shows=_team,
    ),
}

#: Methods that are tested elsewhere, and where.
ELSEWHERE: dict[str, str] = {
    "tools/call": "TOOLS",
    "server/discover": "test_permission_matrix.test_stateless_requests_need_a_valid_token",
    "subscriptions/listen": "test_stream_authentication",
    "logging/setLevel": "no profile declares it",
}
