"""The caller of a use case: on whose behalf it runs, in which project, with which permissions.

A use case is a function of a transaction: `use_case(transaction, caller, ...)`. It becomes a method of a
service by `reading` or `writing`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, TypeVarTuple

from msgspec import Struct

from dittybag.domain.accounts import Principal
from dittybag.domain.changes import Interface
from dittybag.domain.errors import NotAllowed, ProjectGone, checked, clip
from dittybag.domain.ports import ProjectFolder, Store, TemplateSyntax, Transaction
from dittybag.domain.projects import NEW_PROJECT, Project
from dittybag.domain.tasks import DEFAULT_USER
from dittybag.domain.text import query_problem
from dittybag.services.folder_projects import create_folder_project, plan_folder_project

T = TypeVar("T")
P = ParamSpec("P")
Ts = TypeVarTuple("Ts")


class Caller(Struct, frozen=True):
    """The acting party of a use case."""

    #: The id of the project; the name may change. `NEW_PROJECT` if the first write creates it.
    project: int
    #: The name in the change log.
    actor: str
    user: str = DEFAULT_USER
    #: The authenticated user; `None` for the owner of the machine, who may do everything.
    principal: Principal | None = None
    #: How the caller makes changes; `None` if it is not known.
    interface: Interface | None = None
    #: The folder whose project it is, if it was selected by a folder.
    folder: ProjectFolder | None = None
    #: Whether tasks of others are left out and a project is any text, as the task contract has it.
    own_tasks_only: bool = False
    #: Called in the step that passes a write to the store, if the store keeps the order of writes.
    when_queued: Callable[[], None] | None = None

    @property
    def viewer(self) -> str | None:
        """The user whose rows are visible; `None` for the owner of the machine, who sees everything."""
        return None if self.principal is None else self.user


C = TypeVar("C", bound=Caller | None)


class ScopedStore:
    """A store that is accessed on behalf of a caller.

    It passes the viewer on to the store, whose row-level security hides the rows of others even if a use case
    asks for too much. Without a caller, the viewer is the owner of the machine.
    """

    def __init__(self, store: Store) -> None:
        #: For use cases of the owner of the machine.
        self.unscoped = store

    def read(
        self,
        caller: C,
        use_case: Callable[[Transaction, C, *Ts], Awaitable[T]],
        *args: *Ts,
        slow: bool = False,
        single: bool = False,
    ) -> Awaitable[T]:
        """Run a use case in a read transaction. `slow`, `single`: see `Store.read`.

        The slow ones are lists and searches, which replicas may run.
        """
        return self.unscoped.read(
            lambda transaction: use_case(transaction, caller, *args),
            slow=slow,
            replica=slow,
            single=single,
            viewer=None if caller is None else caller.viewer,
        )

    async def write(
        self,
        caller: Caller,
        use_case: Callable[[Transaction, Caller, *Ts], Awaitable[T]],
        *args: *Ts,
        checked: bool = False,
    ) -> T:
        """Run a use case in a write transaction. `checked`: see `Store.write`."""
        if caller.when_queued is not None and self.unscoped.keeps_order:
            caller.when_queued()
        return await self.unscoped.write(
            lambda transaction: use_case(transaction, caller, *args),
            actor=caller.actor,
            viewer=caller.viewer,
            interface=caller.interface,
            checked=checked,
        )


# Methods of services. A service has its store as `_store`.


def reading(
    use_case: Callable[Concatenate[Transaction, Caller, P], Awaitable[T]], *, slow: bool = False
) -> Callable[Concatenate[Any, Caller, P], Coroutine[Any, Any, T]]:
    """Return a method that runs a use case in a read transaction. `slow`: see `ScopedStore.read`."""

    @wraps(use_case)
    async def method(self: Any, caller: Caller, /, *args: P.args, **kwargs: P.kwargs) -> T:
        store: Store = self._store.unscoped
        return await store.read(
            lambda transaction: use_case(transaction, caller, *args, **kwargs),
            slow=slow,
            replica=slow,
            viewer=caller.viewer,
        )

    return method


def writing(
    use_case: Callable[Concatenate[Transaction, Caller, P], Awaitable[T]], *, checked: bool = False
) -> Callable[Concatenate[Any, Caller, P], Coroutine[Any, Any, T]]:
    """Return a method that runs a use case in a write transaction. `checked`: see `Store.write`."""

    @wraps(use_case)
    async def method(self: Any, caller: Caller, /, *args: P.args, **kwargs: P.kwargs) -> T:
        store: ScopedStore = self._store
        return await store.write(
            caller,
            lambda transaction, caller: use_case(transaction, caller, *args, **kwargs),
            checked=checked,
        )

    return method


def owner_reading(
    use_case: Callable[Concatenate[Transaction, P], Awaitable[T]], *, slow: bool = False
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Like `reading`, but for the owner of the machine."""

    @wraps(use_case)
    async def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        store: Store = self._store.unscoped
        return await store.read(lambda transaction: use_case(transaction, *args, **kwargs), slow=slow)

    return method


def owner_writing(
    use_case: Callable[Concatenate[Transaction, P], Awaitable[T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Like `writing`, but for the owner of the machine. The use case has a keyword argument `actor`."""

    @wraps(use_case)
    async def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        store: Store = self._store.unscoped
        actor = str(kwargs["actor"])
        return await store.write(lambda transaction: use_case(transaction, *args, **kwargs), actor=actor)

    return method


async def readable_project(transaction: Transaction, caller: Caller) -> Project:
    """Return the caller's project. Raises `ProjectGone` if it was deleted or is hidden from the caller.

    Every use case that accesses the content of a project calls this, `writable_project` or
    `require_project_access`.
    """
    require_project_access(caller)
    project = await transaction.projects.get(caller.project)
    if project is not None:
        return project
    if caller.folder is None:
        raise ProjectGone
    return await plan_folder_project(transaction, caller.folder)


async def writable_project(transaction: Transaction, caller: Caller) -> Project:
    """Like `readable_project`, but raise `NotAllowed` if the caller may only read it."""
    project = await readable_project(transaction, caller)
    require_write_scope(caller)
    if caller.principal is not None and not caller.principal.changes_project:
        raise NotAllowed("You can read this project, but not change it")
    return project


async def existing_project(transaction: Transaction, caller: Caller) -> Project:
    """Like `writable_project`, but create the project of a folder that has none. For use cases that add."""
    project = await writable_project(transaction, caller)
    if project.id == NEW_PROJECT and caller.folder is not None:
        return await create_folder_project(transaction, caller.folder)
    return project


def require_project_access(caller: Caller) -> None:
    """Raise `ProjectGone` if the project is hidden from the caller."""
    if caller.principal is not None and caller.principal.role is None:
        raise ProjectGone


def require_write_scope(caller: Caller) -> None:
    """Raise `NotAllowed` if the caller may not change anything, not even their own tasks."""
    if caller.principal is not None and not caller.principal.changes_own:
        raise NotAllowed("This token is read-only; use a token with the write scope to make changes")


async def require_syntax(syntax: TemplateSyntax | None, caller: Caller, source: str) -> None:
    """Raise `Invalid` if a template cannot be parsed."""
    error = (
        None if syntax is None else await syntax.syntax_error(source, client=caller.viewer or caller.actor)
    )
    if error is not None:
        line, problem = error
        checked("content", source, f"Content is not a valid template: line {line}: {clip(problem)}")


def checked_query(query: str) -> str:
    """Return `query`. Raises `Invalid` if it is not a valid search query."""
    return checked("query", query, query_problem(query))
