"""Who asks, where, and whether they may."""

from __future__ import annotations

from msgspec import Struct

from satchel.domain.accounts import Principal
from satchel.domain.errors import NotAllowed, Problem, ProjectGone, require
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
    #: What the caller may do; nothing for whoever owns the machine, who may do everything.
    grant: Principal | None = None

    @property
    def only_user(self) -> str | None:
        """Whose tasks may be seen in the log; nothing for everybody's."""
        return None if self.grant is None else self.user


async def project_of(transaction: Transaction, caller: Caller) -> Project:
    """The caller's project. Raises `ProjectGone` if it has been deleted, or as if it had.

    Whatever reads or writes what is in a project comes through here, `project_to_change` or `require_sight`.
    """
    require_sight(caller)
    project = await transaction.projects.get(caller.project)
    if project is None:
        raise ProjectGone
    return project


async def project_to_change(transaction: Transaction, caller: Caller) -> Project:
    """Like `project_of`. Raises `NotAllowed` if the caller may only read there."""
    project = await project_of(transaction, caller)
    require_writer(caller)
    if caller.grant is not None and not caller.grant.changes_project:
        raise NotAllowed("You may read in this project, but not change it")
    return project


def require_sight(caller: Caller) -> None:
    """Raises `ProjectGone` if the project is none of the caller's business."""
    if caller.grant is not None and caller.grant.role is None:
        raise ProjectGone


def require_writer(caller: Caller) -> None:
    """Raises `NotAllowed` if the caller may change nothing at all, not even what is their own."""
    if caller.grant is not None and not caller.grant.changes_own:
        raise NotAllowed("This token may only read; to change something, use one with the scope write")


def checked_query(query: str) -> str:
    """Raises `Invalid` unless `query` can be searched for."""
    problem = query_problem(query)
    require([Problem("query", problem)] if problem else ())
    return query
