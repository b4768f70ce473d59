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
from dittybag.services.idempotency_service import IdempotentCall, run_once

T = TypeVar("T")


class Caller(Struct, frozen=True):
    """On whose behalf a use case runs."""

    #: The project it works in, by id: it may be renamed meanwhile.
    project: int
    #: Goes into the log.
    actor: str
    user: str = DEFAULT_USER
    #: What the caller may do; nothing for whoever owns the machine, who may do everything.
    principal: Principal | None = None
    #: What is done is this call, which came with a key: it is done only once.
    call: IdempotentCall | None = None

    @property
    def viewer(self) -> str | None:
        """Whose eyes it is for: nothing for those of the owner of the machine, who may see everything."""
        return None if self.principal is None else self.user


class ScopedStore:
    """A store that is only asked on a caller's behalf.

    It is told who is looking, so that it can keep from them what is not theirs, should a use case ask for
    too much. Without a caller it is the owner of the machine who is looking.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(
        self, caller: Caller | None, work: Work[T], *, slow: bool = False, single: bool = False
    ) -> Awaitable[T]:
        viewer = None if caller is None else caller.viewer
        return self._store.read(work, slow=slow, single=single, viewer=viewer)

    def write(self, caller: Caller, work: Work[T]) -> Awaitable[T]:
        """Raises `DuplicateCall` or `KeyReused` if the call has a key with which something was done before."""
        if caller.call is not None:
            return self._write_once(caller, caller.call, work)
        return self._store.write(work, actor=caller.actor, viewer=caller.viewer)

    async def _write_once(self, caller: Caller, call: IdempotentCall, work: Work[T]) -> T:
        work = work if call.is_done else run_once(call, work)
        result = await self._store.write(work, actor=caller.actor, viewer=caller.viewer)
        call.is_done = True
        return result


async def readable_project(transaction: Transaction, caller: Caller) -> Project:
    """The caller's project. Raises `ProjectGone` if it has been deleted, or as if it had.

    Whatever reads or writes what is in a project comes through here, `writable_project` or `require_project_access`.
    """
    require_project_access(caller)
    project = await transaction.projects.get(caller.project)
    if project is None:
        raise ProjectGone
    return project


async def writable_project(transaction: Transaction, caller: Caller) -> Project:
    """Like `readable_project`. Raises `NotAllowed` if the caller may only read there."""
    project = await readable_project(transaction, caller)
    require_write_scope(caller)
    if caller.principal is not None and not caller.principal.changes_project:
        raise NotAllowed("You may read in this project, but not change it")
    return project


def require_project_access(caller: Caller) -> None:
    """Raises `ProjectGone` if the project is none of the caller's business."""
    if caller.principal is not None and caller.principal.role is None:
        raise ProjectGone


def require_write_scope(caller: Caller) -> None:
    """Raises `NotAllowed` if the caller may change nothing at all, not even what is their own."""
    if caller.principal is not None and not caller.principal.changes_own:
        raise NotAllowed("This token may only read; to change something, use one with the scope write")


def checked_query(query: str) -> str:
    """Raises `Invalid` unless `query` can be searched for."""
    problem = query_problem(query)
    require([Problem("query", problem)] if problem else ())
    return query
