"""A workspace with users, tokens and shared projects, and servers that require tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar

import msgspec
from msgspec.structs import replace

from dittybag.assembly.store_factory import is_file
from dittybag.domain.accounts import Scope
from dittybag.domain.queries import ChangeQuery
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.storage.clock import now_microseconds
from dittybag.storage.postgres.postgres_store import PostgresStore
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.contracts.http_server_process import BOTH, JSON, HttpServerProcess, ReceivedResponse, send_request

T = TypeVar("T")
Json = dict[str, Any]
EndpointPath = Literal["/mcp", "/"]

#: The project of the servers, one that its members cannot see, and one without members.
TEAM_PROJECT: Final = "team"
HIDDEN_PROJECT: Final = "hideout"
OPEN_PROJECT: Final = "commons"

#: A word in every entity of the project.
TEAM_WORD: Final = "teamword"
#: A user who sends no requests, but has a project and tasks.
STRANGER: Final = "zoe"

HOUR: Final = 3600 * 1_000_000


def word_of(user: str) -> str:
    """Return a word that is in all tasks of a user."""
    return f"word-of-{user}"


#: The owner of the machine.
OWNER: Final = Caller(1, "tests")


class TokenHolder(msgspec.Struct, frozen=True):
    """A user with a token, as a case of the permission matrix."""

    name: str
    user: str
    scope: Scope
    #: The user's role in the project; `None` if they are not a member.
    role: Literal["read", "write"] | None
    token: str

    @property
    def changes_project(self) -> bool:
        return self.scope != "read" and self.role == "write"


class World:
    """The workspace, with direct access and with HTTP servers."""

    def __init__(self, folder: Path, database: str | None = None) -> None:
        """`database`: a URL, or `None` for a file in the folder."""
        self.folder = folder
        self.file = folder / "dittybag.db"
        self.database = database or str(self.file)
        self._stack = ExitStack()
        self._hosts: dict[tuple[str, ...], HttpServerProcess] = {}
        self._numbers = count(1)

    def __enter__(self) -> Self:
        self._runner = self._stack.enter_context(asyncio.Runner())
        self.workspace = self._runner.run(self._open_workspace())
        self._stack.callback(lambda: self._runner.run(self.workspace.store.close()))
        self.run(self._fill())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    async def _open_workspace(self, clock: Callable[[], int] = now_microseconds) -> Workspace:
        if is_file(self.database):
            return Workspace(SqliteStore(self.database, clock))
        return Workspace(await PostgresStore.open(self.database, clock))

    def run(self, work: Awaitable[T]) -> T:
        async def wait() -> T:
            return await work

        return self._runner.run(wait())

    def number(self) -> int:
        """Return a new unique number."""
        return next(self._numbers)

    # Content

    async def _fill(self) -> None:
        workspace, accounts = self.workspace, self.workspace.accounts
        for name in ("alice", "rita", "bob", "mallory", "gone", "root", STRANGER):
            await accounts.add_user(name, actor="tests")
        self.projects = {
            name: (await workspace.projects.create(name, actor="tests")).id
            for name in (TEAM_PROJECT, HIDDEN_PROJECT, OPEN_PROJECT)
        }
        for user in ("alice", "bob", "root", "gone"):
            await accounts.share(TEAM_PROJECT, user, "write", actor="tests")
        await accounts.share(TEAM_PROJECT, "rita", "read", actor="tests")
        await accounts.share(HIDDEN_PROJECT, STRANGER, "write", actor="tests")
        self.holders = [
            await self._create_holder("member", "alice", "write", "write"),
            await self._create_holder("other user", "bob", "write", "write"),
            await self._create_holder("admin", "root", "admin", "write"),
            await self._create_holder("read scope", "alice", "read", "write"),
            await self._create_holder("read role", "rita", "write", "read"),
            await self._create_holder("outsider", "mallory", "write", None),
            await self._create_holder("outsider, read scope", "mallory", "read", None),
            await self._create_holder("outsider, admin scope", "mallory", "admin", None),
        ]
        self.invalid_tokens = await self._create_invalid_tokens()
        for user in ("alice", "rita", "bob", "mallory", "root", STRANGER):
            await self._task(user)
        self.prompt = (await self._prompt(TEAM_PROJECT))[1]
        self.hidden_prompt = (await self._prompt(HIDDEN_PROJECT))[1]
        await self._resource(TEAM_PROJECT, "notes", TEAM_WORD)
        await self._resource(HIDDEN_PROJECT, "plans", word_of(STRANGER))

    async def _create_holder(
        self, name: str, user: str, scope: Scope, role: Literal["read", "write"] | None
    ) -> TokenHolder:
        created = await self.workspace.accounts.create_token(user, scope, actor="tests")
        return TokenHolder(name, user, scope, role, created.text)

    async def _create_invalid_tokens(self) -> dict[str, str | None]:
        """Return tokens that are not valid, by reason."""
        accounts = self.workspace.accounts
        revoked = await accounts.create_token("alice", "write", actor="tests")
        await accounts.revoke([revoked.token.id], actor="tests")
        disabled = await accounts.create_token("gone", "write", actor="tests")
        await accounts.disable("gone", actor="tests")
        # Disabling the user has revoked the token.
        early = await self._open_workspace(lambda: now_microseconds() - 2 * HOUR)
        try:
            expired = await early.accounts.create_token(
                "alice", "write", actor="tests", expires_at=now_microseconds() - HOUR
            )
        finally:
            await early.store.close()
        valid = self.holders[0].token
        return {
            "none": None,
            "bad": valid[:10] + ("A" if valid[10] != "A" else "B") + valid[11:],
            "expired": expired.text,
            "revoked": revoked.text,
            "disabled user": disabled.text,
        }

    def caller(self, user: str, project: str = TEAM_PROJECT) -> Caller:
        return Caller(self.projects[project], user, user)

    # New entities, for requests that change or delete them

    async def _prompt(self, project: str) -> tuple[str, str]:
        word = TEAM_WORD if project == TEAM_PROJECT else word_of(STRANGER)
        name = f"p{self.number()}-{word}"
        created, _ = await self.workspace.prompts.create(
            self.caller("tests", project), name=name, content=f"{word} {name}", tags=[word]
        )
        return created.name, created.id

    async def _resource(self, project: str, name: str, word: str) -> None:
        await self.workspace.resources.create(
            self.caller("tests", project), name=name, uri=f"file:///{name}", content=word, description=word
        )

    async def _task(self, user: str) -> int:
        task = await self.workspace.tasks.create(
            # A task of the user alone, which only names the project.
            replace(self.caller(user), own_tasks_only=True),
            title=f"{word_of(user)} {self.number()}",
            notes=word_of(user),
            project=TEAM_PROJECT,
        )
        return task.id

    async def _shared_task(self, project: str, fields: Json) -> int:
        word = TEAM_WORD if project == TEAM_PROJECT else word_of(STRANGER)
        texts = {"title": f"{word} {self.number()}", "notes": word}
        return (await self.workspace.tasks.create(self.caller("tests", project), **texts, **fields)).id

    def new_prompt(self, project: str = TEAM_PROJECT) -> tuple[str, str]:
        """Create a prompt. Return its name and id."""
        return self.run(self._prompt(project))

    def new_resource(self, project: str = TEAM_PROJECT) -> str:
        name = f"r{self.number()}"
        self.run(self._resource(project, name, TEAM_WORD if project == TEAM_PROJECT else word_of(STRANGER)))
        return name

    def new_task(self, user: str, **fields: Any) -> int:
        """Create a task of a user alone."""
        number = self.run(self._task(user))
        if fields:
            self.run(self.workspace.tasks.update(self.caller(user), number, **fields))
        return number

    def new_shared_task(self, project: str = TEAM_PROJECT, **fields: Any) -> int:
        """Create a task of a project."""
        return self.run(self._shared_task(project, fields))

    def last_change(self) -> int:
        """Return the seq of the newest change."""
        return self.run(self.workspace.history.page(OWNER, ChangeQuery(limit=1)))[0].seq

    # Over HTTP

    def host(self, profile: str, *options: str, module: str = "dittybag") -> HttpServerProcess:
        """Return a server that requires tokens; calls with the same options share it."""
        key = (profile, module, *options)
        if key not in self._hosts:
            arguments = (
                "--profile",
                profile,
                "--project",
                TEAM_PROJECT,
                "--db",
                self.database,
                "--auth",
                "tokens",
                *(() if "--rate-limit" in options else ("--rate-limit", "off")),
            )
            home = {"DITTYBAG_HOME": str(self.folder), "TWIG_DATA_DIR": str(self.folder / "twig")}
            begin = () if module == "dittybag" else ("serve", "--http", "127.0.0.1:0")
            host = HttpServerProcess(*begin, *arguments, *options, module=module, env=home)
            self._hosts[key] = self._stack.enter_context(host)
        return self._hosts[key]


def auth_headers(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def post_message(
    host: HttpServerProcess, token: str | None, endpoint: EndpointPath, method: str, params: Json
) -> ReceivedResponse:
    """Post a message outside of sessions and return the response."""
    message: Json = {"method": method, "params": params}
    if endpoint == "/mcp":
        message |= {"jsonrpc": "2.0", "id": 1}
    connection = host.connect()
    try:
        headers = {"Content-Type": JSON, "Accept": BOTH, **auth_headers(token)}
        return send_request(connection, "POST", endpoint, msgspec.json.encode(message), headers)
    finally:
        connection.close()


class CallOutcome(msgspec.Struct, frozen=True):
    """The result or error of a request."""

    kind: Literal["ok", "tool error", "error"]
    text: str


def parse_outcome(response: ReceivedResponse, endpoint: EndpointPath) -> CallOutcome:
    """Return the outcome of a response, with or without JSON-RPC envelope."""
    body = response.json()
    if "error" in body:
        return CallOutcome("error", msgspec.json.encode(body["error"]).decode())
    result = body["result"] if endpoint == "/mcp" else body
    kind: Literal["ok", "tool error"] = "tool error" if result.get("isError") else "ok"
    return CallOutcome(kind, msgspec.json.encode(result).decode())
