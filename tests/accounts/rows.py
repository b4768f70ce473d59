"""The rows of the matrix: every operation, what it touches, and how it is asked for.

An operation without a row fails a test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from tests.accounts.world import OPEN, SECRET, STRANGER, TEAM_WORD, Json, Somebody, World, word_of

Make = Callable[[World, Somebody], Json]

#: Numbers and names that nothing has.
NO_NUMBER = 987654
NO_NAME = "nothing-at-all"
NO_ID = "00000000-0000-7000-8000-000000000000"


class Pair(Struct, frozen=True):
    """How to ask for something foreign and for something that is not there, which must look the same."""

    foreign: Make
    missing: Json


class Row(Struct, frozen=True, kw_only=True):
    """One operation."""

    #: What it is about: what is in the project, or what belongs to whoever asks.
    touches: Literal["project", "own", "nothing"]
    writes: bool = False
    #: How those ask who may.
    ask: Make = lambda world, who: {}
    #: A word that they get to see.
    shows: Callable[[Somebody], str] = lambda who: ""
    pairs: tuple[Pair, ...] = ()


def _given(**arguments: Any) -> Make:
    return lambda world, who: arguments


def _team(who: Somebody) -> str:
    return TEAM_WORD


def _mine(who: Somebody) -> str:
    return word_of(who.user)


def _change_of(make: Callable[[World], object]) -> Make:
    """The number of a change that was just made."""

    def asked(world: World, who: Somebody) -> Json:
        make(world)
        return {"change": world.last_change()}

    return asked


def _own_task(**more: Any) -> Make:
    return lambda world, who: {"task_id": world.new_task(who.user), **more}


def _foreign_task(**more: Any) -> tuple[Pair, ...]:
    return (
        Pair(
            lambda world, who: {"task_id": world.new_task(STRANGER), **more}, {"task_id": NO_NUMBER, **more}
        ),
    )


def _foreign_prompt_id(**more: Any) -> tuple[Pair, ...]:
    return (Pair(lambda world, who: {"id": world.new_prompt(SECRET)[1], **more}, {"id": NO_ID, **more}),)


def _foreign_prompt_name(**more: Any) -> tuple[Pair, ...]:
    return (
        Pair(lambda world, who: {"name": world.new_prompt(SECRET)[0], **more}, {"name": NO_NAME, **more}),
    )


def _foreign_resource(**more: Any) -> tuple[Pair, ...]:
    return (Pair(lambda world, who: {"name": world.new_resource(SECRET), **more}, {"name": NO_NAME, **more}),)


TASKS: dict[str, Row] = {
    "task_create": Row(touches="own", writes=True, ask=_given(title="Mine"), shows=lambda who: who.user),
    "task_list": Row(touches="own", ask=_given(show_completed=True), shows=_mine),
    "task_get": Row(touches="own", ask=_own_task(), shows=_mine, pairs=_foreign_task()),
    "task_update": Row(
        touches="own",
        writes=True,
        ask=_own_task(priority=5),
        shows=_mine,
        pairs=_foreign_task(priority=5),
    ),
    "task_complete": Row(touches="own", writes=True, ask=_own_task(), shows=_mine, pairs=_foreign_task()),
    "task_delete": Row(touches="own", writes=True, ask=_own_task(), pairs=_foreign_task()),
    "task_search": Row(touches="own", ask=_given(query="word"), shows=_mine),
    "task_stats": Row(touches="own"),
}

_CREATE_PROMPT = Row(
    touches="project",
    writes=True,
    ask=lambda world, who: {"name": f"new{world.number()}", "content": "Words"},
)
_BY_NAME: dict[str, Row] = {
    "create_prompt": _CREATE_PROMPT,
    "update_prompt": Row(
        touches="project",
        writes=True,
        ask=lambda world, who: {"name": world.new_prompt()[0], "content": "Other words"},
        pairs=_foreign_prompt_name(content="Other words"),
    ),
    "delete_prompt": Row(
        touches="project",
        writes=True,
        ask=lambda world, who: {"name": world.new_prompt()[0]},
        pairs=_foreign_prompt_name(),
    ),
    "create_resource": Row(
        touches="project",
        writes=True,
        ask=lambda world, who: {
            "name": f"new{world.number()}",
            "uri": f"file:///new{world.number()}",
            "content": "Words",
        },
    ),
    "update_resource": Row(
        touches="project",
        writes=True,
        ask=lambda world, who: {"name": world.new_resource(), "content": "Other words"},
        pairs=_foreign_resource(content="Other words"),
    ),
    "delete_resource": Row(
        touches="project",
        writes=True,
        ask=lambda world, who: {"name": world.new_resource()},
        pairs=_foreign_resource(),
    ),
}
_NEW_WORDS: Json = {"title": "Other title", "content": "Other words"}
_BY_ID: dict[str, Row] = {
    "add_prompt": Row(
        touches="project",
        writes=True,
        ask=lambda world, who: {"title": f"New {world.number()}", "content": "Words"},
    ),
    "list_prompts": Row(touches="project", ask=_given(limit=100), shows=_team),
    "get_prompt": Row(
        touches="project",
        ask=lambda world, who: {"id": world.prompt},
        shows=_team,
        pairs=_foreign_prompt_id(),
    ),
    "update_prompt": Row(
        touches="project",
        writes=True,
        ask=lambda world, who: {
            "id": world.new_prompt()[1],
            "title": f"New {world.number()}",
            "content": "Other words",
        },
        pairs=_foreign_prompt_id(**_NEW_WORDS),
    ),
    "delete_prompt": Row(
        touches="project",
        writes=True,
        ask=lambda world, who: {"id": world.new_prompt()[1]},
        pairs=_foreign_prompt_id(),
    ),
    "search_prompts": Row(touches="project", ask=_given(query="word", limit=100), shows=_team),
    "filter_by_tags": Row(
        touches="project",
        ask=_given(tags=[TEAM_WORD], limit=100),
        shows=_team,
        pairs=(Pair(_given(tags=[word_of(STRANGER)]), {"tags": [NO_NAME]}),),
    ),
    "list_tags": Row(touches="project", shows=_team),
}

#: By profile and name.
TOOLS: dict[tuple[str, str], Row] = {
    **{("tasks", name): row for name, row in TASKS.items()},
    **{("mcpkg", name): row for name, row in _BY_NAME.items()},
    **{("prompt-store", name): row for name, row in _BY_ID.items()},
    **{("all", name): row for name, row in (TASKS | _BY_NAME | _BY_ID).items()},
    ("all", "update_prompt"): Row(
        touches="project",
        writes=True,
        ask=lambda world, who: {"id": world.new_prompt()[1], "content": "Other words"},
        pairs=(*_foreign_prompt_id(content="Other words"), *_foreign_prompt_name(content="Other words")),
    ),
    ("all", "delete_prompt"): Row(
        touches="project",
        writes=True,
        ask=lambda world, who: {"name": world.new_prompt()[0]},
        pairs=(*_foreign_prompt_id(), *_foreign_prompt_name()),
    ),
    ("all", "search"): Row(touches="project", ask=_given(query="word", limit=100), shows=_mine),
    ("all", "list_changes"): Row(
        touches="project",
        ask=_given(limit=100),
        shows=_team,
        pairs=(
            Pair(
                lambda world, who: {"kind": "task", "id": str(world.new_task(STRANGER))},
                {"kind": "task", "id": str(NO_NUMBER)},
            ),
            Pair(lambda world, who: {"id": world.new_prompt(SECRET)[1]}, {"id": NO_ID}),
            Pair(
                lambda world, who: {"kind": "project", "id": str(world.projects[SECRET])},
                {"kind": "project", "id": str(NO_NUMBER)},
            ),
        ),
    ),
    ("all", "undo_change"): Row(
        touches="project",
        writes=True,
        ask=_change_of(lambda world: world.new_prompt()),
        shows=_team,
        pairs=tuple(
            Pair(_change_of(make), {"change": NO_NUMBER})
            for make in (
                lambda world: world.new_task(STRANGER),
                lambda world: world.new_prompt(SECRET),
                lambda world: world.new_resource(SECRET),
            )
        ),
    ),
}


def _completing(kind: str, target: str, argument: str) -> Make:
    key = "name" if kind == "ref/prompt" else "uri"
    return _given(ref={"type": kind, key: target}, argument={"name": argument, "value": ""})


#: By name. Where there are several things to ask for, the name is followed by which.
METHODS: dict[str, Row] = {
    "initialize": Row(
        touches="nothing", ask=_given(protocolVersion="2025-11-25", capabilities={}, clientInfo={})
    ),
    "ping": Row(touches="nothing"),
    "tools/list": Row(touches="nothing"),
    "prompts/list": Row(touches="project", shows=_team),
    "prompts/get": Row(
        touches="project",
        ask=lambda world, who: {"name": world.new_prompt()[0]},
        shows=_team,
        pairs=_foreign_prompt_name(),
    ),
    "resources/list": Row(touches="project", shows=_team),
    "resources/templates/list": Row(touches="project"),
    "resources/read": Row(
        touches="project",
        ask=_given(uri="file:///notes"),
        shows=_team,
        pairs=(
            Pair(_given(uri="file:///plans"), {"uri": "file:///nowhere"}),
            Pair(_given(uri=f"dittybag://projects/{SECRET}"), {"uri": f"dittybag://projects/{NO_NAME}"}),
            Pair(_given(uri=f"dittybag://tags/{word_of(STRANGER)}"), {"uri": f"dittybag://tags/{NO_NAME}"}),
        ),
    ),
    "resources/read of a project": Row(
        touches="project", ask=_given(uri=f"dittybag://projects/{OPEN}"), shows=lambda who: OPEN
    ),
    "resources/subscribe": Row(
        touches="project",
        ask=_given(uri="file:///notes"),
        pairs=(Pair(_given(uri="file:///plans"), {"uri": "file:///nowhere"}),),
    ),
    "resources/unsubscribe": Row(touches="nothing", ask=_given(uri="file:///notes")),
    "completion/complete": Row(
        touches="project",
        ask=_completing("ref/resource", "dittybag://projects/{project}", "project"),
        shows=lambda who: OPEN,
    ),
    "completion/complete of tags": Row(
        touches="project",
        ask=_completing("ref/resource", "dittybag://tags/{tag}", "tag"),
        shows=_team,
    ),
}

#: Methods that have tests of their own, and where.
ELSEWHERE: dict[str, str] = {
    "tools/call": "TOOLS",
    "server/discover": "test_matrix.test_stateless_requests_need_a_token_too",
    "subscriptions/listen": "test_matrix.test_stateless_requests_need_a_token_too, test_streams",
    "logging/setLevel": "no profile declares it",
}
