"""Tools as the contracts describe them: data, put to work on a workspace when a server is built."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Generic, Literal, TypeVar

from msgspec import UNSET, Struct
from msgspec.structs import replace

from dittybag.contracts.error_formats import Dialect, problem_of, root
from dittybag.contracts.idempotency_keys import key_of
from dittybag.domain.accounts import Principal
from dittybag.domain.errors import DittybagError, Invalid, Problem, StorageError
from dittybag.domain.ports import Libraries
from dittybag.domain.text import one_line, query_problem
from dittybag.protocol import Context, InvalidArguments, Tool, ToolAnnotations, ToolError, ToolResult
from dittybag.protocol.types import JsonObject
from dittybag.services.caller import Caller
from dittybag.services.template_service import TemplateService
from dittybag.services.workspace import Workspace, WorkspaceSession

Arguments = TypeVar("Arguments", bound=Struct)

_log = logging.getLogger("dittybag")

Toolset = Literal["prompts", "resources", "tasks", "search", "history"]
TOOLSETS: tuple[Toolset, ...] = ("prompts", "resources", "tasks", "search", "history")


class Place(Struct, frozen=True):
    """Where a server works: the workspace, the selected project, and who is to be named in the log."""

    workspace: Workspace
    templates: TemplateService
    libraries: Libraries
    project: int
    #: Named instead of the client.
    actor: str | None = None

    def is_seen(self, ctx: Context) -> bool:
        """Whether whoever makes this request may see the project. All who may see the same."""
        grant = ctx.grant
        return grant is None or (isinstance(grant, Principal) and grant.sees_project)

    def caller(self, ctx: Context) -> Caller:
        """Who makes this request."""
        name = ctx.client.get("name")
        client = name[:1000] if isinstance(name, str) else ""
        if (grant := ctx.grant) is None:
            return Caller(self.project, self.actor or _shown(client))
        assert isinstance(grant, Principal)
        return Caller(self.project, _behind(grant.user, self.actor or client), grant.user, grant)


@lru_cache(maxsize=64)
def _shown(name: str) -> str:
    """What a client calls itself, as the log has it."""
    return one_line(name) or "mcp"


@lru_cache(maxsize=1024)
def _behind(user: str, client: str) -> str:
    """Who acts through a client, as the log has it."""
    shown = one_line(client)
    return f"{user} via {shown}" if shown else user


class Effect(Struct, frozen=True):
    """What calling a tool does to the store."""

    writes: bool
    #: It writes over something or takes it away.
    destroys: bool = False
    #: Calling it twice does the same as calling it once.
    repeatable: bool = False


READS: Final = Effect(writes=False)
ADDS: Final = Effect(writes=True)
MARKS: Final = Effect(writes=True, repeatable=True)
REPLACES: Final = Effect(writes=True, destroys=True, repeatable=True)


class ToolSpec(Struct, Generic[Arguments], frozen=True, kw_only=True):
    """A tool, described once: its argument struct is its schema."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    run: Callable[[WorkspaceSession, Arguments], Awaitable[ToolResult]]
    toolset: Toolset
    dialect: Dialect
    #: The dialect of a call with these arguments, if it depends on them.
    voice: Callable[[Mapping[str, Any]], Dialect] | None = None
    output: JsonObject
    #: What is wrong with values that the schema lets through: called with those that have the right type.
    check: Callable[..., Iterable[Problem]] | None = None
    effect: Effect = READS

    def at(self, place: Place) -> Tool[Arguments]:
        """The tool at work in a place."""

        async def run(arguments: Arguments, ctx: Context) -> ToolResult:
            try:
                caller = place.caller(ctx)
                if self.effect.writes and (key := key_of(ctx)) is not None:
                    return await self._run_once(place, caller, arguments, key, ctx)
                return await self.run(WorkspaceSession(place.workspace, caller), arguments)
            except DittybagError as error:
                if isinstance(error, StorageError):
                    _log.warning("%s failed on %s", self.name, error.where, exc_info=error)
                return self._words(given(arguments))(error)

        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            arguments=self.arguments,
            output_schema=self.output,
            run=run,
            explain=self._explain,
            light=True,
            annotations=ToolAnnotations(
                read_only_hint=not self.effect.writes,
                destructive_hint=self.effect.destroys if self.effect.writes else None,
                idempotent_hint=self.effect.repeatable if self.effect.writes else None,
                open_world_hint=False,
            ),
        )

    async def _run_once(
        self, place: Place, caller: Caller, arguments: Arguments, key: str, ctx: Context
    ) -> ToolResult:
        # Few calls need it, and it takes time to import.
        from dittybag.contracts.idempotent_calls import answered_once, keyed_call

        call = keyed_call(caller.only_user or "", key, ctx, place.project)
        session = WorkspaceSession(place.workspace, replace(caller, call=call))
        return await answered_once(call, place.workspace.repeats, lambda: self.run(session, arguments))

    def _words(self, arguments: Mapping[str, Any]) -> Dialect:
        return self.dialect if self.voice is None else self.voice(arguments)

    def _explain(self, error: ToolError) -> ToolResult:
        if not isinstance(error, InvalidArguments):
            return self.dialect(Invalid([Problem("", str(error))]))
        return self._words(error.arguments)(Invalid(self._problems(error)))

    def _problems(self, error: InvalidArguments) -> list[Problem]:
        """Everything that is wrong, in the order of the arguments. Our own words go before a schema's."""
        unfit = {item.path for item in error.violations if item.rule in ("type", "text", "required")}
        known = self.arguments.__struct_fields__
        fit = {name: _fit(name, error.arguments[name], unfit) for name in known if name in error.arguments}
        fit = {name: value for name, value in fit.items() if value is not None}
        problems = list(self.check(**fit)) if self.check is not None else []
        worded = {problem.field for problem in problems}
        problems += [
            problem_of(item)
            for item in error.violations
            if root(item.path) not in worded or item.path in unfit
        ]
        order = {name: index for index, name in enumerate(known)}
        return sorted(problems, key=lambda problem: order.get(problem.field, len(order)))


def _fit(name: str, value: Any, unfit: Collection[str]) -> Any:
    """As much of an argument as has the right type; nothing, if none of it has."""
    bad = {path for path in unfit if root(path) == name}
    if not bad:
        return value
    if not isinstance(value, list) or not all(path.endswith("]") for path in bad):
        return None
    return [item for index, item in enumerate(value) if f"{name}[{index}]" not in bad] or None


def object_schema(**fields: str | JsonObject) -> JsonObject:
    """The schema of an answer: a type per field, `string?` for one that may be null."""
    properties = {name: _field_schema(kind) for name, kind in fields.items()}
    return {"type": "object", "properties": properties, "required": list(fields)}


def _field_schema(kind: str | JsonObject) -> JsonObject:
    if not isinstance(kind, str):
        return kind
    return {"type": [kind[:-1], "null"]} if kind.endswith("?") else {"type": kind}


def list_of(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}


def given(arguments: Struct, *without: str) -> dict[str, Any]:
    """The arguments of a call that were given."""
    return {
        name: value
        for name in arguments.__struct_fields__
        if name not in without and (value := getattr(arguments, name)) is not UNSET
    }


def one_of(field: str, value: str, choices: Iterable[str], name: str) -> list[Problem]:
    """What is wrong with a value that should be one of a few, if anything."""
    allowed = tuple(choices)
    return [] if value in allowed else [Problem(field, f"{name} must be one of {', '.join(allowed)}")]


def query_problems(query: str = "", **others: Any) -> list[Problem]:
    """What is wrong with the query of a search, if anything."""
    problem = query_problem(query)
    return [Problem("query", problem)] if problem else []
