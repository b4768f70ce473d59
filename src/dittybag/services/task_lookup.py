"""Finding the task that a person names by its title."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dittybag.domain.errors import AmbiguousReference
from dittybag.domain.ports import Transaction
from dittybag.domain.queries import TaskQuery
from dittybag.domain.tasks import Task
from dittybag.domain.text import fold_accents
from dittybag.services.caller import Caller, checked_query
from dittybag.services.task_access import visible_view

#: At most this many tasks that contain the words are compared. Among more, only a whole title decides.
_MAX_COMPARED: Final = 200
#: At most this many candidates are named.
_MAX_NAMED: Final = 10


async def find_named_task(transaction: Transaction, caller: Caller, title: str) -> Task | None:
    """Return the task with this title; otherwise the one whose title contains it.

    Case and accents do not matter. Among equals, open tasks come first. Raises `AmbiguousReference`.
    """
    wanted = fold_accents(" ".join(checked_query(title).split()))
    query = TaskQuery(
        user=caller.user,
        view=await visible_view(transaction, caller),
        text=title,
        in_notes=False,
        # A whole title comes before the titles that contain it.
        order="shortest",
        limit=_MAX_COMPARED + 1,
    )
    found = await transaction.tasks.page(query) if wanted else []
    titles = {task.id: fold_accents(" ".join(task.title.split())) for task in found}
    stages = [
        [task for task in found if titles[task.id] == wanted],
        [task for task in found if wanted in titles[task.id]],
    ]
    for stage in stages[: 1 if len(found) > _MAX_COMPARED else None]:
        for candidates in (
            [task for task in stage if not task.ended],
            [task for task in stage if task.ended],
        ):
            if len(candidates) > 1:
                raise AmbiguousReference(title, _names(candidates))
            if candidates:
                return candidates[0]
    if len(found) > _MAX_COMPARED:
        raise AmbiguousReference(title, _names(found))
    return None


def _names(tasks: Sequence[Task]) -> list[str]:
    named = [f"{task.id} '{task.title}'" for task in tasks[:_MAX_NAMED]]
    return named + ["..."] * (len(tasks) > _MAX_NAMED)
