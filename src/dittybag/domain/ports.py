"""The ports of the services: a store with transactions, prompt libraries and a renderer.

All methods are asynchronous. A backend that never waits completes its coroutines without suspending.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterable,
    Awaitable,
    Callable,
    Collection,
    Hashable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from msgspec import Struct

from dittybag.domain.accounts import AccountEvent, Member, Role, Token, User
from dittybag.domain.changes import (
    Action,
    BatchCount,
    Change,
    ChangeNotification,
    Interface,
    Purged,
    SeenActor,
)
from dittybag.domain.entities import Entity, Kind
from dittybag.domain.libraries import LibraryPrompt, LibraryReport
from dittybag.domain.projects import Project, ProjectKey, ProjectSize
from dittybag.domain.prompts import Prompt, PromptListing, PromptSummary, TagCount
from dittybag.domain.queries import (
    OWN_TASKS,
    ChangeQuery,
    PromptQuery,
    ResourceQuery,
    TaskQuery,
    TaskView,
)
from dittybag.domain.resources import Resource
from dittybag.domain.role_marks import Message, RoleMark
from dittybag.domain.tasks import Task, TaskColumn, TaskFilter, TaskGroup, TaskGrouping, TaskOrder

if TYPE_CHECKING:
    from dittybag.domain.claims import Claim, ReadyQuery
    from dittybag.domain.ranked_search import Frequencies, SearchTerm, StoredMatch, StoredSearch
    from dittybag.domain.skills import Skill, SkillFile
    from dittybag.domain.task_graph import GraphQuery, GraphTask

T = TypeVar("T")
E = TypeVar("E", bound=Entity)


class ProjectRepository(Protocol):
    async def get(self, id: int) -> Project | None: ...

    async def by_name(self, name: str) -> Project | None: ...

    async def all(self) -> list[ProjectSize]: ...

    async def names(self, prefix: str, limit: int) -> list[str]:
        """Return names that start with `prefix`, ignoring case."""
        ...

    async def count_contents(self, id: int, user: str, view: TaskView = OWN_TASKS) -> tuple[int, int, int]:
        """Count the prompts and resources of a project and the open tasks of a user."""
        ...


class PromptRepository(Protocol):
    async def by_id(self, project: int, id: str) -> Prompt | None: ...

    async def by_name(self, project: int, name: str) -> Prompt | None: ...

    async def by_title(self, project: int, title: str) -> Prompt | None: ...

    async def name_taken(self, project: int, name: str) -> bool: ...

    async def title_taken(self, project: int, title: str) -> bool: ...

    async def names(self, project: int, limit: int) -> list[str]:
        """Return names in alphabetical order."""
        ...

    async def listing(self, project: int, after: int, limit: int) -> list[PromptListing]:
        """Return prompts in creation order, starting after number `after`."""
        ...

    async def page(self, query: PromptQuery) -> tuple[int, list[PromptSummary]]:
        """Count the matching prompts; return a page of them."""
        ...

    async def existing_tags(self, project: int, tags: Sequence[str]) -> list[str]:
        """Return those of the tags that at least one prompt has."""
        ...

    async def tags_in_use(self, project: int) -> list[TagCount]:
        """Return all tags, most used first, then by name."""
        ...

    async def ids_with_tag(self, project: int, tag: str) -> list[str]:
        """Return the ids of all prompts with a tag."""
        ...

    async def in_project(self, project: int) -> list[Prompt]: ...


class ResourceRepository(Protocol):
    async def by_name(self, project: int, name: str) -> Resource | None: ...

    async def by_uri(self, project: int, uri: str) -> Resource | None: ...

    async def listing(
        self, project: int, *, after: int = 0, limit: int | None = None, templates: bool | None = None
    ) -> list[Resource]:
        """Return resources, templates or (`None`) both in creation order, starting after number `after`."""
        ...

    async def uris(self, project: int, prefix: str, limit: int) -> list[str]:
        """Return URIs of resources, not of templates, that start with `prefix`, ignoring case."""
        ...

    async def page(self, query: ResourceQuery) -> tuple[int, list[Resource]]:
        """Count the resources with the text in name, title or URI; return a page of them."""
        ...

    async def search(self, query: ResourceQuery) -> tuple[int, list[tuple[Resource, str]]]:
        """Count the resources with the text in name, title or content; return a page with snippets."""
        ...

    async def types(self, project: int, limit: int) -> list[tuple[str, int]]:
        """Return MIME types and the number of resources of each, most used first, then by name."""
        ...


class TaskRepository(Protocol):
    async def get(self, user: str, id: int, view: TaskView = OWN_TASKS) -> Task | None: ...

    async def with_ids(self, ids: Sequence[int]) -> list[Task]:
        """Return the tasks with these ids, whoever can see them, in no particular order."""
        ...

    async def has_shared_by_others(self, user: str) -> bool:
        """Whether projects have tasks of other users."""
        ...

    async def page(self, query: TaskQuery) -> list[Task]: ...

    async def search(self, query: TaskQuery) -> tuple[int, list[Task]]:
        """Count the matching tasks; return a page of them."""
        ...

    async def groups(self, user: str, view: TaskView = OWN_TASKS) -> list[TaskGroup]: ...

    async def count_all(self) -> int:
        """Count the tasks of all users."""
        ...

    async def columns(
        self,
        user: str,
        filter: TaskFilter,
        by: TaskGrouping | None,
        keys: Sequence[int | str] | None,
        *,
        span: range,
        order: TaskOrder,
        limit: int,
        offset: int = 0,
        view: TaskView = OWN_TASKS,
    ) -> tuple[int, list[TaskColumn]]:
        """Count the columns of a board; return those in `span`, each with its total and some of its tasks.

        `keys`: the values of `by` that are columns, an empty string for tasks without a project. If `None`,
        all values that occur, those with the most tasks first. Without `by`, one column with the key 0 holds
        all tasks.
        """
        ...

    async def status_columns(
        self, user: str, filter: TaskFilter, *, order: TaskOrder, limit: int, view: TaskView = OWN_TASKS
    ) -> list[TaskColumn]:
        """Return the columns of `BOARD_COLUMNS`, each with its total and its first tasks.

        Completed tasks are in the order of completion. The statuses of the filter are ignored.
        """
        ...

    async def in_project(self, project: int) -> list[Task]:
        """Return the tasks that belong to a project, in the order of creation."""
        ...


class ClaimRepository(Protocol):
    """Who works on which task, and what is ready to be worked on. Claims are not in the change log."""

    async def get(self, task: int) -> Claim | None: ...

    async def of_connection(self, connection: str) -> list[Claim]: ...

    async def of_tasks(self, tasks: Sequence[int]) -> list[Claim]: ...

    async def put(self, claim: Claim) -> None:
        """Claim a task, or update its claim. The status of the task must be `doing`."""
        ...

    async def renew(self, connection: str, now: int) -> int:
        """Renew the claims of a connection that have not lapsed. Returns their number."""
        ...

    async def ready(self, query: ReadyQuery) -> list[int]:
        """Return the ids of ready tasks, best first: by priority, due date and age."""
        ...

    async def count_ready(self, query: ReadyQuery) -> int:
        """Count the ready tasks, up to the limit of the query."""
        ...

    async def next_lapse(self, now: int) -> int | None:
        """Return when the next claim lapses."""
        ...


class EdgeRepository(Protocol):
    """Which task waits for which: those that block it, and its parts."""

    async def blockers(self, tasks: Sequence[int], limit: int | None = None) -> list[tuple[int, int]]:
        """Return a task and one that it waits for, ended or not, for each edge of these tasks."""
        ...

    async def leads_to(self, tasks: Sequence[int], goal: int) -> bool:
        """Whether one of these tasks waits for another one, directly or not."""
        ...

    async def all_blockers(self, tasks: Sequence[int]) -> list[tuple[int, int]]:
        """Like `blockers`, but also for all that these tasks wait for, directly or not."""
        ...

    async def open_blockers(self, task: int, limit: int) -> list[int]:
        """Return tasks that a task waits for."""
        ...

    async def blocked(self, tasks: Sequence[int]) -> list[tuple[int, int]]:
        """Return a task and one that waits for it, for each edge to one of these tasks."""
        ...

    async def parts(self, task: int) -> tuple[int, int]:
        """Count the parts of a task, and how many of them are done or dropped."""
        ...

    async def waiting(self, tasks: Sequence[int]) -> dict[int, int]:
        """Return how many tasks each of those that are open waits for."""
        ...

    async def graph(self, query: GraphQuery) -> tuple[int, list[GraphTask]]:
        """Count the matching tasks; return the first of them."""
        ...


class ChangeRepository(Protocol):
    async def get(self, seq: int) -> Change | None: ...

    async def batch(self, batch: int, limit: int | None = None) -> list[Change]:
        """Return the changes of a batch in order; with `limit`, the first of them."""
        ...

    async def batch_size(self, batch: int) -> int:
        """Count the changes of a batch, including those that are hidden from the viewer."""
        ...

    async def page(self, query: ChangeQuery) -> list[Change]: ...

    async def latest(self, kind: Kind, entity: str) -> Change | None: ...

    async def last_actors(self, kind: Kind, entities: Sequence[str]) -> dict[str, str]:
        """Return the actor of the newest change of each of these entities that exists."""
        ...

    async def newest_seq(self) -> int:
        """Return the `seq` of the newest change."""
        ...

    async def find_seqs(self, query: ChangeQuery) -> list[tuple[int, int]]:
        """Return the `seq` and the size in bytes of the matching changes."""
        ...

    async def find_in_batches(self, query: ChangeQuery) -> list[tuple[int, int, int]]:
        """Return the `seq`, the batch and the size in bytes of the matching changes."""
        ...

    async def batch_counts(self, batches: Sequence[int], query: ChangeQuery) -> list[BatchCount]:
        """Count the changes of batches by kind and action. Of the query, only its project and user matter."""
        ...

    async def seen_actors(self, query: ChangeQuery) -> list[SeenActor]:
        """Return who made the matching changes, and by which interface, the latest first."""
        ...

    async def by_seqs(self, seqs: Sequence[int]) -> list[Change]:
        """Return the changes with these sequence numbers, newest first."""
        ...

    async def window_start(self, before: int, count: int, size: int) -> int:
        """Return the first `seq` of the last `count` changes before `before` that fit into `size` bytes."""
        ...

    async def actors(self, query: ChangeQuery) -> list[str]:
        """Return the actors of the matching changes in alphabetical order, at most `query.limit` of them."""
        ...

    async def addresses(self, kind: Kind, ids: Sequence[str]) -> dict[str, str]:
        """Return the addresses of those entities that exist: an id, a URI or the name of a project."""
        ...


class RankedRepository(Protocol):
    """Ranked search over prompts, resources and tasks."""

    async def frequencies(self, terms: Sequence[SearchTerm]) -> Frequencies:
        """Count all entities, their words, and those with each term, in all projects and of all users."""
        ...

    async def find(self, search: StoredSearch) -> list[StoredMatch]:
        """Return the best matches, best first; the newest first of those with equal scores."""
        ...

    async def entities(self, kind: Kind, numbers: Sequence[int]) -> list[Any]:
        """Return the entities with these numbers, in any order."""
        ...


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


class SessionRepository(Protocol):
    async def get(self, id: str) -> StoredSession | None: ...


class AccountRepository(Protocol):
    """Users, tokens and members of projects.

    They are not in the change log because they must not be undone. The caller validates writes and records
    them as account events.
    """

    async def user(self, name: str) -> User | None:
        """Find a user by name, ignoring case: no two names differ only in case."""
        ...

    async def users(self) -> list[User]:
        """Return all users by name."""
        ...

    async def token(self, id: int) -> Token | None: ...

    async def token_by_hash(self, hash: str) -> Token | None: ...

    async def tokens(self, user: str | None = None) -> list[Token]:
        """Return all tokens, or those of a user, in creation order."""
        ...

    async def token_hashes(self) -> dict[int, str]:
        """Return the hash of each token, by token id."""
        ...

    async def members(self, project: int) -> list[Member]:
        """Return the members of a project by name."""
        ...

    async def projects_hidden_from(self, user: str) -> set[int]:
        """Return the projects, deleted ones included, that have members but not this user."""
        ...

    async def projects_locked_for(self, user: str) -> set[int]:
        """Return the projects that a user may not change, whether or not they are hidden."""
        ...

    async def events(self, limit: int) -> list[AccountEvent]:
        """Return account events, newest first."""
        ...

    async def put_user(self, user: User) -> None:
        """Add a user, or update the user with this name."""
        ...

    async def add_token(self, token: Token, hash: str) -> Token:
        """Store a new token and return it with its id."""
        ...

    async def put_token(self, token: Token) -> None:
        """Update when a token was revoked and last used."""
        ...

    async def put_member(self, project: int, user: str, role: Role | None) -> None:
        """Set the role of a member; `None` removes the member."""
        ...

    async def add_event(self, event: AccountEvent) -> None: ...


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


class Transaction(Protocol):
    """A consistent view of the store; a write transaction is the only way to change it."""

    #: Microseconds since 1970, UTC.
    now: int
    #: Whether the commit checks that new values of unique fields are free, so that the use case need not.
    presumes_free: bool

    @property
    def projects(self) -> ProjectRepository: ...

    @property
    def prompts(self) -> PromptRepository: ...

    @property
    def resources(self) -> ResourceRepository: ...

    @property
    def tasks(self) -> TaskRepository: ...

    @property
    def claims(self) -> ClaimRepository: ...

    @property
    def edges(self) -> EdgeRepository: ...

    @property
    def changes(self) -> ChangeRepository: ...

    @property
    def last_seq(self) -> int:
        """The `seq` of the last change of this use case; 0 if it has changed nothing."""
        ...

    @property
    def ranked(self) -> RankedRepository: ...

    @property
    def sessions(self) -> SessionRepository: ...

    @property
    def accounts(self) -> AccountRepository: ...

    def new_id(self) -> str: ...

    async def store_content(self, content: bytes) -> str:
        """Store bytes and return their SHA-256, the key for `content`."""
        ...

    async def content(self, sha256: str) -> bytes: ...

    async def save_session(self, id: str, owner: str, state: bytes) -> None:
        """Store a session. Its owner never changes. Sessions are not user data and not in the change log."""
        ...

    async def delete_session(self, id: str) -> bool:
        """Delete a session. Returns whether it existed."""
        ...

    async def prune_sessions(self, before: int, owner: str, max_count: int) -> None:
        """Delete sessions last used before a time, and the oldest ones of an owner beyond `max_count`."""
        ...

    async def delete_sessions_with(self, text: str) -> None:
        """Delete the sessions whose state contains a text, such as the URI of a subscription."""
        ...

    async def purge_states(self, states: Sequence[PurgedStates]) -> None:
        """Replace states in the change log by what the log keeps of them."""
        ...

    async def record_purge(self) -> None:
        """Record that content was purged and that the store has to be scrubbed."""
        ...

    async def pending_purge(self) -> int | None:
        """Return the number of the last purge after which the store was not scrubbed."""
        ...

    async def complete_purges(self, number: int) -> None:
        """Record that the store was scrubbed after this purge and all before it."""
        ...

    async def delete_unused_contents(self) -> None:
        """Delete the contents that neither a resource nor the change log refers to."""
        ...

    async def find(self, kind: Kind, **fields: Any) -> Any:
        """Return an entity of any project and user whose fields have these values, or `None`."""
        ...

    async def page_of_kind(self, kind: Kind, after: int, limit: int) -> Any:
        """Return entities of all projects and users in creation order, starting after number `after`."""
        ...

    async def initial_change(self) -> Change | None:
        """Return the change that created the default project if it is the only one, else `None`."""
        ...

    async def replay(self, log: AsyncIterable[Change]) -> None:
        """Apply the log of another workspace to a new one and log the same changes.

        The log must include the change that created its default project: the initial change of this workspace
        is removed first. Each change is applied before the next one is asked for.
        """
        ...

    async def continue_replay(self, log: Sequence[Change]) -> None:
        """Apply the next changes of the log that `replay` began with, and log the same changes."""
        ...

    async def write(self, action: Action, before: Entity | None, after: E | None) -> E | None:
        """Create, update or delete one entity and log the change. Returns the stored entity.

        Raises `Outdated` if the stored entity differs from `before`.
        """
        ...

    def start_batch(self) -> None:
        """Let what was written so far and what follows be undone separately."""
        ...

    async def write_all(self, writes: Sequence[Write]) -> list[Entity | None]:
        """Make several writes in this order. Returns the stored entities.

        None of them needs the result of another one, so a store may send all to the database at once. Raises
        `Outdated` if a stored entity differs from its `before`.
        """
        ...


Work = Callable[[Transaction], Awaitable[T]]


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
