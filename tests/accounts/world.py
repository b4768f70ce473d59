"""A workspace with users, tokens and projects that are not everybody's, and servers that ask who comes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar

import msgspec

from dittybag.assembly.store_factory import is_file
from dittybag.domain.accounts import Scope
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.storage.postgres.store import PostgresStore
from dittybag.storage.sqlite.store import SqliteStore, now_microseconds
from tests.contracts.http_server_process import BOTH, JSON, HttpServerProcess, ReceivedResponse, send_request

T = TypeVar("T")
Json = dict[str, Any]
Way = Literal["/mcp", "/"]

#: The project that the servers work in, and one that is none of its members' business.
TEAM: Final = "team"
SECRET: Final = "hideout"
OPEN: Final = "commons"

#: Words that stand in everything that is in the project, or that belongs to a user.
TEAM_WORD: Final = "teamword"
#: Somebody who never asks for anything, but has a project and tasks.
STRANGER: Final = "zoe"

HOUR: Final = 3600 * 1_000_000


def word_of(user: str) -> str:
    """A word that stands in all tasks of a user."""
    return f"word-of-{user}"


class Somebody(msgspec.Struct, frozen=True):
    """A principal of the matrix."""

    name: str
    user: str
    scope: Scope
    #: What the user may do in the project: nothing, if they are no member.
    role: Literal["read", "write"] | None
    token: str

    @property
    def changes_project(self) -> bool:
        return self.scope != "read" and self.role == "write"


class World:
    """The workspace, from inside and from outside."""

    def __init__(self, folder: Path, database: str | None = None) -> None:
        """`database`: a URL, or nothing for a file in the folder."""
        self.folder = folder
        self.file = folder / "dittybag.db"
        self.database = database or str(self.file)
        self._stack = ExitStack()
        self._hosts: dict[tuple[str, ...], HttpServerProcess] = {}
        self._numbers = count(1)

    def __enter__(self) -> Self:
        self._runner = self._stack.enter_context(asyncio.Runner())
        self.workspace = self._runner.run(self._opened())
        self._stack.callback(lambda: self._runner.run(self.workspace.store.close()))
        self.run(self._fill())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    async def _opened(self, clock: Callable[[], int] = now_microseconds) -> Workspace:
        if is_file(self.database):
            return Workspace(SqliteStore(self.database, clock))
        return Workspace(await PostgresStore.open(self.database, clock))

    def run(self, work: Awaitable[T]) -> T:
        async def wait() -> T:
            return await work

        return self._runner.run(wait())

    def number(self) -> int:
        """One that nothing else has."""
        return next(self._numbers)

    # What there is

    async def _fill(self) -> None:
        workspace, accounts = self.workspace, self.workspace.accounts
        for name in ("alice", "rita", "bob", "mallory", "gone", "root", STRANGER):
            await accounts.add_user(name, actor="tests")
        self.projects = {
            name: (await workspace.projects.create(name, actor="tests")).id for name in (TEAM, SECRET, OPEN)
        }
        for user in ("alice", "bob", "root", "gone"):
            await accounts.share(TEAM, user, "write", actor="tests")
        await accounts.share(TEAM, "rita", "read", actor="tests")
        await accounts.share(SECRET, STRANGER, "write", actor="tests")
        self.known = [
            await self._somebody("member", "alice", "write", "write"),
            await self._somebody("other user", "bob", "write", "write"),
            await self._somebody("admin", "root", "admin", "write"),
            await self._somebody("read scope", "alice", "read", "write"),
            await self._somebody("read role", "rita", "write", "read"),
            await self._somebody("no member", "mallory", "write", None),
            await self._somebody("no member, read scope", "mallory", "read", None),
            await self._somebody("no member, admin scope", "mallory", "admin", None),
        ]
        self.unknown = await self._unknown()
        for user in ("alice", "rita", "bob", "mallory", "root", STRANGER):
            await self._task(user)
        self.prompt = (await self._prompt(TEAM))[1]
        self.hidden_prompt = (await self._prompt(SECRET))[1]
        await self._resource(TEAM, "notes", TEAM_WORD)
        await self._resource(SECRET, "plans", word_of(STRANGER))

    async def _somebody(
        self, name: str, user: str, scope: Scope, role: Literal["read", "write"] | None
    ) -> Somebody:
        made = await self.workspace.accounts.create_token(user, scope, actor="tests")
        return Somebody(name, user, scope, role, made.text)

    async def _unknown(self) -> dict[str, str | None]:
        """Tokens that are good for nothing."""
        accounts = self.workspace.accounts
        revoked = await accounts.create_token("alice", "write", actor="tests")
        await accounts.revoke([revoked.token.id], actor="tests")
        disabled = await accounts.create_token("gone", "write", actor="tests")
        await accounts.disable("gone", actor="tests")
        # Disabling has revoked it; even one that somehow was not is good for nothing.
        early = await self._opened(lambda: now_microseconds() - 2 * HOUR)
        try:
            expired = await early.accounts.create_token(
                "alice", "write", actor="tests", expires_at=now_microseconds() - HOUR
            )
        finally:
            await early.store.close()
        valid = self.known[0].token
        return {
            "none": None,
            "bad": valid[:10] + ("A" if valid[10] != "A" else "B") + valid[11:],
            "expired": expired.text,
            "revoked": revoked.text,
            "disabled user": disabled.text,
        }

    def caller(self, user: str, project: str = TEAM) -> Caller:
        return Caller(self.projects[project], user, user)

    # New things, for requests that change or take away something

    async def _prompt(self, project: str) -> tuple[str, str]:
        word = TEAM_WORD if project == TEAM else word_of(STRANGER)
        name = f"p{self.number()}-{word}"
        made, _ = await self.workspace.prompts.create(
            self.caller("tests", project), name=name, content=f"{word} {name}", tags=[word]
        )
        return made.name, made.id

    async def _resource(self, project: str, name: str, word: str) -> None:
        await self.workspace.resources.create(
            self.caller("tests", project), name=name, uri=f"file:///{name}", content=word, description=word
        )

    async def _task(self, user: str) -> int:
        task = await self.workspace.tasks.create(
            self.caller(user), title=f"{word_of(user)} {self.number()}", notes=word_of(user), project=TEAM
        )
        return task.id

    def new_prompt(self, project: str = TEAM) -> tuple[str, str]:
        """The name and the id of a new prompt."""
        return self.run(self._prompt(project))

    def new_resource(self, project: str = TEAM) -> str:
        name = f"r{self.number()}"
        self.run(self._resource(project, name, TEAM_WORD if project == TEAM else word_of(STRANGER)))
        return name

    def new_task(self, user: str) -> int:
        return self.run(self._task(user))

    def last_change(self) -> int:
        """The number of the newest change."""
        return self.run(self.workspace.history.page_all(None, limit=1))[0].seq

    # From outside

    def host(self, profile: str, *options: str, module: str = "dittybag") -> HttpServerProcess:
        """A server that asks who comes; one for all who want the same."""
        key = (profile, module, *options)
        if key not in self._hosts:
            arguments = ("--profile", profile, "--project", TEAM, "--db", self.database, "--auth", "tokens")
            home = {"DITTYBAG_HOME": str(self.folder), "TWIG_DATA_DIR": str(self.folder / "twig")}
            begin = () if module == "dittybag" else ("serve", "--http", "127.0.0.1:0")
            host = HttpServerProcess(*begin, *arguments, *options, module=module, env=home)
            self._hosts[key] = self._stack.enter_context(host)
        return self._hosts[key]


def headers_of(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def sent(host: HttpServerProcess, token: str | None, way: Way, method: str, params: Json) -> ReceivedResponse:
    """The answer to a request outside of sessions."""
    message: Json = {"method": method, "params": params}
    if way == "/mcp":
        message |= {"jsonrpc": "2.0", "id": 1}
    connection = host.connect()
    try:
        headers = {"Content-Type": JSON, "Accept": BOTH, **headers_of(token)}
        return send_request(connection, "POST", way, msgspec.json.encode(message), headers)
    finally:
        connection.close()


class Told(msgspec.Struct, frozen=True):
    """What came of a request."""

    kind: Literal["ok", "tool error", "error"]
    text: str


def told(answer: ReceivedResponse, way: Way) -> Told:
    """What an answer says, whichever way it came."""
    body = answer.json()
    if "error" in body:
        return Told("error", msgspec.json.encode(body["error"]).decode())
    result = body["result"] if way == "/mcp" else body
    kind: Literal["ok", "tool error"] = "tool error" if result.get("isError") else "ok"
    return Told(kind, msgspec.json.encode(result).decode())
