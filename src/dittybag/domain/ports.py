"""The ports of the services: a store, prompt libraries, a renderer and the folders of projects.

All methods are asynchronous. A backend that never waits completes its coroutines without suspending.
"""

from __future__ import annotations

from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Hashable,
    Iterator,
    Mapping,
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
from dittybag.domain.libraries import LibraryPrompt, LibraryReport
from dittybag.domain.projects import Project, ProjectKey
from dittybag.domain.role_marks import Message, RoleMark

if TYPE_CHECKING:
    from dittybag.domain.skills import Skill, SkillFile

    # Its tables run in SQL that both databases understand.
    from dittybag.storage.sql.sql_transaction import SqlTransaction

T = TypeVar("T")
E = TypeVar("E", bound=Entity)


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


class ProjectFolder(Protocol):
    """A folder of this machine that is linked to a project, or will be when something is first written."""

    @property
    def path(self) -> str: ...

    def names(self) -> Iterator[str]:
        """Yield names for a new project, the best ones first, without an end."""
        ...

    def linked(self) -> ProjectKey | None:
        """Return the project that the folder is linked to. It may no longer exist."""
        ...

    def link(self, project: Project) -> None:
        """Link the folder to a project, durably."""
        ...

    def unlink(self) -> bool:
        """Remove the link. Return whether there was one."""
        ...


#: How it is known in which folder a client works, in the order of precedence.
FolderSource = Literal["CLAUDE_PROJECT_DIR", "roots", "working folder"]


class ChosenFolder(Struct, frozen=True):
    """The folder that a client works in, and where that is known from."""

    source: FolderSource
    #: `None` if it belongs to no project, such as the home folder.
    folder: ProjectFolder | None


class ClientFolders(Protocol):
    """Finds the folder that a client on this machine works in."""

    def signature(self) -> Hashable:
        """Return a value that changes whenever a folder is linked or unlinked."""
        ...

    def from_environment(self) -> ChosenFolder | None:
        """Return the folder that the client has named in the environment, if it exists."""
        ...

    def from_roots(self, uris: Sequence[str]) -> ChosenFolder | None:
        """Return the first root that is a folder of this machine."""
        ...

    def from_working_folder(self) -> ChosenFolder: ...


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


class Renderer(Protocol):
    """Renders templates that may be hostile."""

    @property
    def restarts(self) -> int:
        """The number of worker processes that a template has crashed."""
        ...

    def start_soon(self) -> None:
        """Prepare for a first rendering, once nothing else is due."""
        ...

    async def render(
        self,
        source: str,
        values: Mapping[str, str],
        *,
        file: str = "",
        partials: Partials | None = None,
        client: Hashable = None,
    ) -> str:
        """Render the template `source`. `values` are data, never templates. Raises `RenderingFailed`.

        `client`: who wants it; clients take turns. `None` is Dittybag itself.
        """
        ...

    async def render_messages(
        self,
        source: str,
        roles: Sequence[RoleMark],
        values: Mapping[str, str],
        *,
        file: str = "",
        partials: Partials | None = None,
        client: Hashable = None,
    ) -> tuple[Message, ...]:
        """Render a template with roles. Only its own text begins messages, never a value."""
        ...

    async def variables(self, source: str, *, file: str = "") -> tuple[str, ...]:
        """Return the variables that the template `source` uses, sorted. Raises `RenderingFailed`."""
        ...

    def close(self) -> None: ...


class TemplateSyntax(Protocol):
    """Checks the syntax of templates that may be hostile."""

    async def syntax_error(self, source: str, *, client: Hashable = None) -> tuple[int, str] | None:
        """Return the line and the problem of a template that cannot be parsed, or `None`.

        `client`: who wants to know; clients take turns.
        """
        ...


class Libraries(Protocol):
    """The prompt libraries on this machine."""

    async def page(self, after: str, limit: int) -> list[LibraryPrompt]:
        """Return prompts by name, starting after `after`."""
        ...

    async def find(self, name: str) -> LibraryPrompt | None: ...

    async def render(self, name: str, values: Mapping[str, str], *, client: Hashable = None) -> str:
        """Render a prompt as one text. Raises `LibraryPromptNotFound` or `PromptUnusable`."""
        ...

    async def render_messages(
        self, name: str, values: Mapping[str, str], *, client: Hashable = None
    ) -> tuple[Message, ...]:
        """Render a prompt as messages, by the roles in its file. Raises like `render`."""
        ...

    async def prompts(self, library: str) -> list[LibraryPrompt]:
        """Return all prompts of a library by name."""
        ...

    async def source(self, name: str) -> tuple[LibraryPrompt, str, str]:
        """Return a prompt, the path of its file, and its template.

        Raises `LibraryPromptNotFound` or `PromptUnusable`.
        """
        ...

    async def origins(self) -> dict[str, tuple[str, str]]:
        """Return the origin of each library: its kind, such as `git` or `link`, and its URL or folder.

        Libraries that were added by hand are not included.
        """
        ...

    async def reports(self) -> list[LibraryReport]:
        """Return a report on each library, including broken ones."""
        ...

    async def check(self) -> list[LibraryReport]:
        """Check every template, which is slow, and return the reports."""
        ...

    def stamp(self) -> Hashable:
        """Return a value that stays equal until a library changes."""
        ...

    def subscribe(self, listener: Callable[[], Any]) -> None:
        """Call `listener` soon after libraries change, once for several changes."""
        ...

    async def skills(self, after: str, limit: int) -> tuple[list[Skill], bool]:
        """Return skills by path, starting after `after`, and whether there are more."""
        ...

    async def skill_of(self, name: str) -> Skill | None:
        """Return the skill whose `SKILL.md` a prompt is; `None` if it is another prompt."""
        ...

    async def skill_around(self, path: str) -> Skill | None:
        """Return the innermost skill at a path or around it."""
        ...

    async def read_skill_file(self, path: str) -> tuple[SkillFile, bytes] | None:
        """Return a file of a skill, given the paths of both, and its content; None if there is none."""
        ...

    def skills_stamp(self) -> Hashable:
        """Return a value that stays equal until a file of a skill changes."""
        ...

    def subscribe_to_skills(self, listener: Callable[[Collection[str]], Any]) -> None:
        """Call `listener` with the paths of changed files soon after files of skills change."""
        ...

    def start(self) -> None:
        """Start to read and watch the libraries. Requests wait until they are read."""
        ...

    async def close(self) -> None: ...
