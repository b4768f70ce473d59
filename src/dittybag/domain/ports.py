"""The ports of the services: a store, prompt libraries, a renderer and the folders of projects.

All methods are asynchronous. A backend that never waits completes its coroutines without suspending.
"""

from __future__ import annotations

from collections.abc import (
    Awaitable,
    Callable,
    Hashable,
    Sequence,
)
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from dittybag.domain.changes import (
    Action,
    ChangeNotification,
    Interface,
    Purged,
)
from dittybag.domain.entities import Entity, Kind

if TYPE_CHECKING:
    # There is one class of each, which only the assembly imports when a program runs.
    from dittybag.folders.client_folders import LocalClientFolders
    from dittybag.folders.project_links import LinkedFolder
    from dittybag.library.library_service import LibraryService
    from dittybag.library.render.template_renderer import TemplateRenderer
    from dittybag.storage.sql.sql_transaction import SqlTransaction

T = TypeVar("T")


class PurgedStates(Struct, frozen=True):
    """The states of a change that are purged; `None` for a state that stays."""

    seq: int
    before: Purged | None
    after: Purged | None


class Write(Struct, frozen=True):
    """One write to an entity: to create (no `before`), update or delete (no `after`) it."""

    action: Action
    #: The state that the caller has read. The write fails if the stored version is another one.
    before: Entity | None
    after: Entity | None


class StoredSession(Struct, frozen=True):
    """The stored state of an HTTP session."""

    state: bytes
    used_at: int
    #: The kind of session and its user, as in `mcp ann`.
    owner: str


#: A folder of this machine that is linked to a project, or will be when something is first written.
ProjectFolder: TypeAlias = "LinkedFolder"
#: Finds the folder that a client on this machine works in.
ClientFolders: TypeAlias = "LocalClientFolders"
#: The prompt libraries on this machine.
Libraries: TypeAlias = "LibraryService"
#: Renders templates that may be hostile.
Renderer: TypeAlias = "TemplateRenderer"

#: How it is known in which folder a client works, in the order of precedence.
FolderSource = Literal["CLAUDE_PROJECT_DIR", "roots", "working folder"]


class ChosenFolder(Struct, frozen=True):
    """The folder that a client works in, and where that is known from."""

    source: FolderSource
    #: `None` if it belongs to no project, such as the home folder.
    folder: ProjectFolder | None


#: A consistent view of the store; a write transaction is the only way to change it.
Transaction: TypeAlias = "SqlTransaction"
Work: TypeAlias = Callable[["SqlTransaction"], Awaitable[T]]


class ReplicaStatus(Struct, frozen=True):
    """Whether a read replica is used."""

    #: Without a password.
    url: str
    is_used: bool
    #: The number of changes that it lacked when it was last asked.
    lag: int


class Store(Protocol):
    """The storage of one workspace."""

    #: False if every write would fail.
    writable: bool
    #: Whether writes take effect in the order in which they are passed to `write`.
    keeps_order: bool

    async def read(
        self,
        work: Work[T],
        *,
        slow: bool = False,
        single: bool = False,
        replica: bool = False,
        viewer: str | None = None,
    ) -> T:
        """Run `work` on a consistent view.

        `slow`: `work` may take long and must not block other requests. `single`: `work` runs a single query
        and needs no transaction. `replica`: `work` lists or searches what the change log describes, so a
        replica that knows all changes may run it. `viewer`: the user whose rows are visible; a store with
        row-level security hides all others from `work`. `None` for the operator, who sees everything.
        """
        ...

    async def write(
        self,
        work: Work[T],
        *,
        actor: str,
        viewer: str | None = None,
        interface: Interface | None = None,
        checked: bool = False,
    ) -> T:
        """Run `work` in a write transaction, which is durable when this returns.

        `work` may run more than once; only its last run takes effect. `viewer`: as for `read`.
        `actor`, `interface`: logged with each change.

        `checked`: `work` calls `write` or `write_all` at most once and reads nothing after it. It is correct
        if the version of everything that it has read, and that no other entity has a value of a unique field
        that it writes, is checked then. A store may run it without a lock, and again if the check fails.
        """
        ...

    def replicas(self) -> Sequence[ReplicaStatus]:
        """Return the state of each read replica."""
        ...

    async def warnings(self) -> list[str]:
        """Return warnings for the operator of a server with several users."""
        ...

    async def check(self) -> None:
        """Raise `StorageError` if stored data could not be read again later."""
        ...

    async def scrub(self) -> None:
        """Remove deleted data for good: from free pages, dead rows, search indexes and the write-ahead log.

        This takes time in proportion to the size of the store, during which writes wait.
        """
        ...

    def stamp(self, kind: Kind, project: int | None) -> Hashable:
        """Return a value that stays equal until an entity of this kind changes in the project.

        Changes by other processes count too. Tasks belong to no project. None if that is unknown.
        """
        ...

    def subscribe(self, listener: Callable[[Sequence[ChangeNotification]], Any]) -> None:
        """Call `listener` soon after changes, including those by other processes."""
        ...

    async def close(self) -> None: ...


#: Returns the text of a file that a template includes, or `None`. Raises `RenderingFailed`.
Partials = Callable[[str], Awaitable[str | None]]


class TemplateSyntax(Protocol):
    """Checks the syntax of templates that may be hostile."""

    async def syntax_error(self, source: str, *, client: Hashable = None) -> tuple[int, str] | None:
        """Return the line and the problem of a template that cannot be parsed, or `None`.

        `client`: who wants to know; clients take turns.
        """
        ...
