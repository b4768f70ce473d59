"""What the services need from the outside: a store with transactions, prompt libraries, a renderer.

Everything is asynchronous. Where a backend never waits, its coroutines run to their end at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

from msgspec import Struct

from dittybag.domain.accounts import AccountEvent, Member, Role, Token, User
from dittybag.domain.changes import Action, Change, ChangeNotification, Entity, Kind
from dittybag.domain.idempotency import StoredResult
from dittybag.domain.libraries import LibraryPrompt, LibraryReport
from dittybag.domain.projects import Project, ProjectSize
from dittybag.domain.prompts import (
    Prompt,
    PromptEntry,
    PromptListing,
    PromptOrder,
    PromptSummary,
    TagCount,
)
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task, TaskColumn, TaskFilter, TaskGroup, TaskGrouping, TaskOrder

T = TypeVar("T")
E = TypeVar("E", bound=Entity)


class ProjectRepository(Protocol):
    async def get(self, id: int) -> Project | None: ...

    async def by_name(self, name: str) -> Project | None: ...

    async def all(self) -> list[ProjectSize]: ...

    async def names(self, prefix: str, limit: int) -> list[str]:
        """Names that begin with `prefix`, in any case."""
        ...

    async def count_contents(self, id: int, user: str) -> tuple[int, int, int]:
        """How many prompts and resources a project has, and how many tasks of a user are yet to be done."""
        ...

    async def quick_search(
        self, kind: Kind, project: int, user: str, query: str, limit: int
    ) -> list[tuple[str | int, str, str]]:
        """Some things of a project, or tasks of a user, with `query` in them: address, title and snippet.

        Those with it in the title come first. It is quick rather than complete: of very many that may have
        the query in them, only some are looked at, the newest or, of tasks, the most important ones.
        """
        ...


class PromptRepository(Protocol):
    async def by_id(self, project: int, id: str) -> Prompt | None: ...

    async def by_name(self, project: int, name: str) -> Prompt | None: ...

    async def by_title(self, project: int, title: str) -> Prompt | None: ...

    async def name_taken(self, project: int, name: str) -> bool: ...

    async def title_taken(self, project: int, title: str) -> bool: ...

    async def names(self, project: int, limit: int) -> list[str]:
        """In alphabetical order."""
        ...

    async def listing(self, project: int, after: int, limit: int) -> list[PromptListing]:
        """In the order of creation, from the one after number `after` on."""
        ...

    async def count(self, project: int) -> int: ...

    async def recent(self, project: int, limit: int, offset: int) -> list[PromptSummary]:
        """Those updated last come first."""
        ...

    async def by_tags(
        self, project: int, tags: Sequence[str], limit: int, offset: int
    ) -> tuple[int, list[PromptSummary]]:
        """How many carry any of the tags, and a page of them; those updated last come first."""
        ...

    async def existing_tags(self, project: int, tags: Sequence[str]) -> list[str]:
        """Those of the tags that any prompt carries."""
        ...

    async def tags_in_use(self, project: int) -> list[TagCount]:
        """The most used first, then by name."""
        ...

    async def ids_with_tag(self, project: int, tag: str) -> list[str]:
        """The ids of all that carry a tag."""
        ...

    async def search(
        self, project: int, query: str, limit: int, offset: int, tags: Sequence[str] = ()
    ) -> tuple[int, list[PromptSummary]]:
        """How many have `query` in title or content, and a page of them; those updated last come first.

        With `tags`, only those that carry any of them.
        """
        ...

    async def filter(
        self,
        project: int,
        *,
        query: str,
        tags: Sequence[str],
        order: PromptOrder,
        limit: int,
        offset: int,
        most: int,
    ) -> tuple[int, list[PromptEntry]]:
        """How many carry all of the tags and have `query` in title or content, and a page of them.

        With tags or a query there are at most `most`, the first of them, however many more there may be.
        """
        ...

    async def in_project(self, project: int) -> list[Prompt]: ...


#: Those updated last first, by name, the largest first, by MIME type and then by name.
ResourceOrder = Literal["updated", "name", "size", "type"]


class ResourceRepository(Protocol):
    async def by_name(self, project: int, name: str) -> Resource | None: ...

    async def by_uri(self, project: int, uri: str) -> Resource | None: ...

    async def listing(self, project: int, after: int, limit: int, *, templates: bool) -> list[Resource]:
        """In the order of creation, from the one after number `after` on."""
        ...

    async def templates(self, project: int) -> list[Resource]: ...

    async def uris(self, project: int, prefix: str, limit: int) -> list[str]:
        """URIs of resources, not of templates, that begin with `prefix`, in any case."""
        ...

    async def search(
        self, project: int, query: str, limit: int, offset: int
    ) -> tuple[int, list[tuple[Resource, str]]]:
        """How many have `query` in name, title or text, and a page of them with snippets."""
        ...

    async def filter(
        self,
        project: int,
        *,
        text: str,
        mime_type: str | None,
        order: ResourceOrder,
        limit: int,
        offset: int,
    ) -> tuple[int, list[Resource]]:
        """How many have `text` in name, title or URI and are of this type, or of any, and a page of them."""
        ...

    async def types(self, project: int, limit: int) -> list[tuple[str, int]]:
        """The MIME types there are and how many are of each, the most used first, then by name."""
        ...

    async def in_project(self, project: int) -> list[Resource]: ...


class TaskRepository(Protocol):
    async def get(self, user: str, id: int) -> Task | None: ...

    async def page(
        self,
        user: str,
        *,
        project: str | None,
        priority: int | None,
        completed: bool,
        limit: int,
        offset: int,
    ) -> list[Task]:
        """The highest priority first, then in the order of creation. `completed`: whether done ones count."""
        ...

    async def filter(
        self,
        user: str,
        *,
        project: str | None,
        priority: int | None,
        completed: bool | None,
        due_by: str | None,
        limit: int | None,
    ) -> list[Task]:
        """Those that fit, or the first of them, ordered like a page.

        `completed`: only done ones, only others, or, with nothing, both. `due_by`: only those whose due date
        says this day or an earlier one.
        """
        ...

    async def search(
        self, user: str, query: str, *, title: bool, notes: bool, limit: int | None
    ) -> tuple[int, list[Task]]:
        """How many match, and the first of them, done ones too, ordered like a page."""
        ...

    async def groups(self, user: str) -> list[TaskGroup]: ...

    async def count_all(self) -> int:
        """How many there are of all users."""
        ...

    async def columns(
        self,
        user: str,
        choice: TaskFilter,
        by: TaskGrouping | None,
        keys: Sequence[int | str] | None,
        *,
        span: range,
        order: TaskOrder,
        limit: int,
        offset: int = 0,
    ) -> tuple[int, list[TaskColumn]]:
        """How many columns there are, and those of a span: how many tasks each has, and some of them.

        `keys`: the values of `by` that are columns, an empty text for no project; without them, all there
        are, those with the most tasks first. Without `by`, all tasks are in one column of the key 0.
        """
        ...

    async def completion_counts(self, user: str, since: int) -> dict[int, int]:
        """How many were done in each quarter of an hour, counted from 1970, since a time."""
        ...


class ChangeRepository(Protocol):
    async def get(self, seq: int) -> Change | None: ...

    async def batch(self, batch: int, limit: int | None = None) -> list[Change]:
        """What was done together, in order; with `limit`, the first of it."""
        ...

    async def batch_size(self, batch: int) -> int:
        """How many changes were done together, also those that are hidden from whoever is looking."""
        ...

    async def page(
        self,
        project: int | None,
        *,
        kind: Kind | None,
        entity: str | None,
        before: int | None,
        limit: int,
        name: str | None = None,
        actor: str | None = None,
        since: int | None = None,
        user: str | None = None,
    ) -> list[Change]:
        """The newest first: those with a smaller number than `before`, in all projects or in one and in none.

        `name`: only of things that ever had this name, title or URI. `since`: a time. Neither these
        nor `actor` narrow the changes of one `entity`. `user`: of tasks, only this user's, in any case.
        """
        ...

    async def since(self, seq: int, limit: int, *, kind: Kind | None = None) -> list[Change]:
        """The oldest first, in all projects: those with a greater number than `seq`."""
        ...

    async def latest(self, kind: Kind, entity: str) -> Change | None: ...

    async def newest_seq(self) -> int:
        """The number of the last change."""
        ...

    async def find_seqs(
        self,
        project: int | None,
        *,
        after: int,
        before: int,
        limit: int,
        oldest_first: bool = False,
        kind: Kind | None = None,
        actor: str | None = None,
        text: str | None = None,
        user: str | None = None,
    ) -> list[tuple[int, int]]:
        """Those with a number between the two: their numbers, and how many bytes they hold.

        In all projects, or in one and in none. `text`: only of things with this in their name, title or URI,
        in any case. `user`: of tasks, only this user's.
        """
        ...

    async def by_seqs(self, seqs: Sequence[int]) -> list[Change]:
        """Those with these numbers, the newest first."""
        ...

    async def window_start(self, before: int, count: int, size: int) -> int:
        """The number of the first of so many changes up to `before` that hold no more bytes than `size`."""
        ...

    async def actors(self, project: int | None, *, after: int, limit: int, user: str | None) -> list[str]:
        """Who has made changes since, in alphabetical order."""
        ...

    async def count_per_day(
        self, project: int, *, after: int, before: int, user: str | None
    ) -> list[tuple[int, str, int]]:
        """Of those with a number between the two: the day, counted from 1970, the actor, and how many."""
        ...

    async def addresses(self, kind: Kind, ids: Sequence[str]) -> dict[str, str]:
        """How those of these things that are there are addressed: by id, by URI, a project by its name."""
        ...


class StoredSession(Struct, frozen=True):
    """A session of an HTTP client: whatever the protocol has to know of it."""

    state: bytes
    used_at: int


class SessionRepository(Protocol):
    async def get(self, id: str) -> StoredSession | None: ...


class IdempotencyRepository(Protocol):
    """Answers to calls that came with a key, by whose it is."""

    async def get(self, owner: str, key: str) -> StoredResult | None: ...


class AccountRepository(Protocol):
    """Users, tokens and members of projects.

    They are not in the change log, because nothing of them may be undone. Those who write here have made sure
    that it makes sense, and note it.
    """

    async def user(self, name: str) -> User | None:
        """By name, in any case: no two names differ in case only."""
        ...

    async def users(self) -> list[User]:
        """In the order of their names."""
        ...

    async def token(self, id: int) -> Token | None: ...

    async def token_by_hash(self, hash: str) -> Token | None: ...

    async def tokens(self, user: str | None = None) -> list[Token]:
        """All, or those of a user, in the order of creation."""
        ...

    async def token_hashes(self) -> dict[int, str]:
        """What is kept of each token, by its number."""
        ...

    async def members(self, project: int) -> list[Member]:
        """In the order of their names."""
        ...

    async def projects_hidden_from(self, user: str) -> set[int]:
        """The projects, those of the past too, that have members of which this user is none."""
        ...

    async def events(self, limit: int) -> list[AccountEvent]:
        """The newest first."""
        ...

    async def put_user(self, user: User) -> None:
        """Add a user, or change the one of this name."""
        ...

    async def add_token(self, token: Token, hash: str) -> Token:
        """Store a new token; it, with its number."""
        ...

    async def put_token(self, token: Token) -> None:
        """Change when a token was revoked and last used."""
        ...

    async def put_member(self, project: int, user: str, role: Role | None) -> None:
        """Make somebody a member, or with nothing for a role, no member any more."""
        ...

    async def add_event(self, event: AccountEvent) -> None: ...


class Transaction(Protocol):
    """A consistent view of the store and, in a writing one, the only way to change it."""

    #: Microseconds since 1970, UTC.
    now: int

    @property
    def projects(self) -> ProjectRepository: ...

    @property
    def prompts(self) -> PromptRepository: ...

    @property
    def resources(self) -> ResourceRepository: ...

    @property
    def tasks(self) -> TaskRepository: ...

    @property
    def changes(self) -> ChangeRepository: ...

    @property
    def sessions(self) -> SessionRepository: ...

    @property
    def idempotency(self) -> IdempotencyRepository: ...

    @property
    def accounts(self) -> AccountRepository: ...

    def new_id(self) -> str: ...

    async def store_content(self, content: bytes) -> str:
        """Store bytes; their SHA-256, by which `content` finds them."""
        ...

    async def content(self, sha256: str) -> bytes: ...

    async def save_session(self, id: str, state: bytes) -> None:
        """Store a session. Sessions are nobody's data, and not logged."""
        ...

    async def delete_session(self, id: str) -> bool:
        """Forget a session; whether there was one."""
        ...

    async def prune_sessions(self, before: int, most: int) -> None:
        """Forget those that were not used since, and the oldest of more than `most`."""
        ...

    async def record_idempotency_key(self, owner: str, key: str, digest: bytes) -> None:
        """What was done up to here in this transaction was a call with a key, which is not answered yet.

        Like sessions, keys and answers are not logged.
        """
        ...

    async def save_idempotent_result(self, owner: str, key: str, digest: bytes, answer: bytes) -> None:
        """Store the answer to a call that was noted."""
        ...

    async def prune_idempotency_keys(self, before: int, most: int) -> None:
        """Forget calls that were made before, the oldest first, and not more than `most`."""
        ...

    async def find(self, kind: Kind, **fields: Any) -> Any:
        """A thing of any project and user whose fields have these values; nothing if there is none."""
        ...

    async def page_of_kind(self, kind: Kind, after: int, limit: int) -> Any:
        """Things of any project and user in the order of creation, from the one after number `after` on."""
        ...

    async def initial_change(self) -> Change | None:
        """The only change there is, if nothing has happened but that the default project was made."""
        ...

    async def replay(self, log: AsyncIterable[Change]) -> None:
        """Do in an untouched workspace what was done elsewhere, and log it as it was logged there.

        The change that made the default project has to be among them: there is nothing left before the first.
        """
        ...

    async def continue_replay(self, log: Sequence[Change]) -> None:
        """Do here what was done in another workspace, after all that was done in both, and log it alike."""
        ...

    async def write(self, action: Action, before: Entity | None, after: E | None) -> E | None:
        """Create, update or delete one thing and log it; what is stored now.

        Raises `Outdated` if it is not (any more) as `before` says.
        """
        ...


Work = Callable[[Transaction], Awaitable[T]]


class Store(Protocol):
    """A workspace."""

    async def read(
        self, work: Work[T], *, slow: bool = False, single: bool = False, viewer: str | None = None
    ) -> T:
        """Run `work` on a consistent view.

        `slow`: it may take more than a moment, so let others go on. `single`: it asks one thing only, for
        which there need be no transaction. `viewer`: the user who is looking; a store that can keeps
        everything else from `work`, whatever it asks for. Nothing for the operator, who sees everything.
        """
        ...

    async def write(self, work: Work[T], *, actor: str, viewer: str | None = None) -> T:
        """Run `work` in a transaction of its own; when this returns, what it wrote is durable.

        `work` may be run more than once; only its last run counts. `viewer`: as for `read`.
        """
        ...

    async def warnings(self) -> list[str]:
        """What whoever serves several users from here should know."""
        ...

    async def check(self) -> None:
        """Raises `StorageError` if what is stored here could not be read again later."""
        ...

    def stamp(self, kind: Kind, project: int | None) -> Hashable:
        """Equal as long as nothing of that kind has changed there, whoever may have changed it.

        Tasks are in no project.
        """
        ...

    def subscribe(self, listener: Callable[[Sequence[ChangeNotification]], Any]) -> None:
        """Call `listener` with what has changed, soon after it has, whoever changed it."""
        ...

    async def close(self) -> None: ...


#: The text of a file that a template includes; nothing if there is none. Raises `RenderingFailed`.
Partials = Callable[[str], Awaitable[str | None]]


class Renderer(Protocol):
    """What makes texts of templates, however hostile they are."""

    @property
    def restarts(self) -> int:
        """How many processes have died of a template."""
        ...

    async def render(
        self, source: str, values: Mapping[str, str], *, file: str = "", partials: Partials | None = None
    ) -> str:
        """What the template `source` makes of `values`, which are data. Raises `RenderingFailed`."""
        ...

    def close(self) -> None: ...


class Libraries(Protocol):
    """The prompt libraries of this machine, as they are on disk."""

    async def page(self, after: str, limit: int) -> list[LibraryPrompt]:
        """In the order of their names, from the one after `after` on."""
        ...

    async def find(self, name: str) -> LibraryPrompt | None: ...

    async def text(self, name: str, values: Mapping[str, str]) -> str:
        """What a prompt says with these values. Raises `LibraryPromptNotFound` or `PromptUnusable`."""
        ...

    async def prompts(self, library: str) -> list[LibraryPrompt]:
        """All prompts of a library, in the order of their names."""
        ...

    async def source(self, name: str) -> tuple[LibraryPrompt, str, str]:
        """A prompt, the path of its file, and its text before anything is filled in.

        Raises `LibraryPromptNotFound` or `PromptUnusable`.
        """
        ...

    async def origins(self) -> dict[str, tuple[str, str]]:
        """Where libraries are from, by name: `git`, `link` and so on, and from which address or folder.

        Those that were put there by hand are not in here.
        """
        ...

    async def reports(self) -> list[LibraryReport]:
        """All libraries, also those that are broken, and what is wrong with each."""
        ...

    async def check(self) -> list[LibraryReport]:
        """The reports after a closer look at every template, which takes its time."""
        ...

    def stamp(self) -> Hashable:
        """Equal as long as no library has changed."""
        ...

    def subscribe(self, listener: Callable[[], Any]) -> None:
        """Call `listener` soon after a library has changed, once for many changes."""
        ...

    def start(self) -> None:
        """Begin to read and watch the libraries; whoever asks before that is done waits."""
        ...

    async def close(self) -> None: ...
