"""Who asks, where, and whether they may."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from msgspec import Struct

from dittybag.domain.accounts import Principal
from dittybag.domain.errors import NotAllowed, Problem, ProjectGone, require
from dittybag.domain.ports import Store, Transaction, Work
from dittybag.domain.projects import Project
from dittybag.domain.tasks import DEFAULT_USER
from dittybag.domain.text import query_problem
from dittybag.services.idempotency_service import KeyedCall, once

T = TypeVar("T")


class Caller(Struct, frozen=True):
    """On whose behalf a use case runs."""

    #: The project it works in, by id: it may be renamed meanwhile.
    project: int
    #: Goes into the log.
    actor: str
    user: str = DEFAULT_USER
    #: What the caller may do; nothing for whoever owns the machine, who may do everything.
    grant: Principal | None = None
    #: What is done is this call, which came with a key: it is done only once.
    call: KeyedCall | None = None

    @property
    def only_user(self) -> str | None:
        """Whose eyes it is for: nothing for those of the owner of the machine, who may see everything."""
        return None if self.grant is None else self.user


class CallersStore:
    """A store that is only asked on a caller's behalf.

    It is told who is looking, so that it can keep from them what is not theirs, should a use case ask for
    too much. Without a caller it is the owner of the machine who is looking.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(
        self, caller: Caller | None, work: Work[T], *, slow: bool = False, single: bool = False
    ) -> Awaitable[T]:
        viewer = None if caller is None else caller.only_user
        return self._store.read(work, slow=slow, single=single, viewer=viewer)

    def write(self, caller: Caller, work: Work[T]) -> Awaitable[T]:
        """Raises `CarriedOut` or `KeyReused` if the call has a key with which something was done before."""
        if caller.call is not None:
            return self._write_once(caller, caller.call, work)
        return self._store.write(work, actor=caller.actor, viewer=caller.only_user)

    async def _write_once(self, caller: Caller, call: KeyedCall, work: Work[T]) -> T:
        work = work if call.is_done else once(call, work)
        result = await self._store.write(work, actor=caller.actor, viewer=caller.only_user)
        call.is_done = True
        return result


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
