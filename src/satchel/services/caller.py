"""Who asks, and where."""

from __future__ import annotations

from msgspec import Struct

from satchel.domain.errors import Problem, ProjectGone, require
from satchel.domain.ports import Transaction
from satchel.domain.projects import Project
from satchel.domain.tasks import DEFAULT_USER
from satchel.domain.text import query_problem


class Caller(Struct, frozen=True):
    """On whose behalf a use case runs."""

    #: The project it works in, by id: it may be renamed meanwhile.
    project: int
    #: Goes into the log.
    actor: str
    user: str = DEFAULT_USER


async def project_of(transaction: Transaction, caller: Caller) -> Project:
    """The caller's project. Raises `ProjectGone` if it has been deleted."""
    project = await transaction.projects.get(caller.project)
    if project is None:
        raise ProjectGone
    return project


def checked_query(query: str) -> str:
    """Raises `Invalid` unless `query` can be searched for."""
    problem = query_problem(query)
    require([Problem("query", problem)] if problem else ())
    return query
