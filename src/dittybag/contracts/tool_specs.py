"""Tool specifications: tools as data, bound to a workspace when a server is built."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from msgspec import Raw, Struct, field

from dittybag.contracts.connection_claims import ConnectionClaims
from dittybag.contracts.connection_projects import AutomaticProject
from dittybag.contracts.error_formats import ErrorFormat, problem_of, top_level_argument
from dittybag.domain.accounts import Principal
from dittybag.domain.errors import DittybagError, Invalid, Problem, StorageError
from dittybag.domain.ports import Libraries
from dittybag.domain.text import one_line, query_problem
from dittybag.protocol.argument_schemas import schema_of
from dittybag.protocol.features import ToolDefinition
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.request_context import Context
from dittybag.protocol.types import JsonObject, ToolAnnotations, ToolResult
from dittybag.protocol.wire_errors import InvalidArguments, ToolError
from dittybag.services.caller import Caller
from dittybag.services.entity_writes import given_fields
from dittybag.services.template_service import TemplateService
from dittybag.services.workspace import Workspace, WorkspaceSession

if TYPE_CHECKING:
    from dittybag.protocol.dispatch import Session

Arguments = TypeVar("Arguments", bound=Struct)

_log = logging.getLogger("dittybag")

Toolset = Literal["prompts", "resources", "tasks", "search", "history"]
TOOLSETS: tuple[Toolset, ...] = ("prompts", "resources", "tasks", "search", "history")


class ServerScope(Struct, frozen=True):
    """What a server serves: a workspace with its libraries, and the selected project in it."""

    workspace: Workspace
    templates: TemplateService
    libraries: Libraries
    #: The project of clients that have not selected another one.
    project: int
    #: Logged instead of the client's name.
    actor: str | None = None
    #: Whether prompts with roles are several messages, and users are asked for missing arguments.
    has_chat_prompts: bool = False
    #: Whether other servers behind the same address may receive the next message of a client.
    is_one_of_many: bool = False
    #: Selects the project by the client's folder; `None` if the server has one.
    automatic: AutomaticProject | None = None
    read_only: bool = False
    #: The claims of the connections.
    claims: ConnectionClaims = field(default_factory=ConnectionClaims)

    def project_of(self, ctx: Context) -> int:
        """Return the id of the project of a request, `NEW_PROJECT` if it does not exist yet."""
        selection = ctx.session.selection
        return self.project if selection is None else selection

    def can_see_project(self, ctx: Context) -> bool:
        """Whether the principal of a request may see the project. If so, its content is the same for all."""
        principal = ctx.principal
        return principal is None or (isinstance(principal, Principal) and principal.sees_project)

    def caller(self, ctx: Context) -> Caller:
        """Return the caller of a request."""
        return self._caller(ctx, self.project_of(ctx), ctx.fix_order)

    def caller_of_session(self, session: Session) -> Caller:
        """Return the caller of what a server does for a session outside of requests."""
        return self._caller(session, self.project if session.selection is None else session.selection)

    def _caller(
        self, who: Context | Session, project: int, when_queued: Callable[[], None] | None = None
    ) -> Caller:
        name = who.client.get("name")
        client = name[:1000] if isinstance(name, str) else ""
        if (principal := who.principal) is None:
            return Caller(
                project,
                self.actor or _client_actor(client),
                interface="mcp",
                folder=None if self.automatic is None else self.automatic.folder,
                when_queued=when_queued,
            )
        assert isinstance(principal, Principal)
        return Caller(
            project,
            _user_actor(principal.user, self.actor or client),
            principal.user,
            principal,
            interface="mcp",
            when_queued=when_queued,
        )

    def client_key(self, ctx: Context) -> Hashable:
        """Identify the client of a request, to share resources fairly: its user, or else its session."""
        if isinstance(ctx.principal, Principal):
            return ctx.principal.user
        if ctx.session.client:
            return id(ctx.session)
        # A session without a handshake lasts for a single request.
        name = ctx.client.get("name")
        return name if isinstance(name, str) else ""


@lru_cache(maxsize=64)
def _client_actor(name: str) -> str:
    """Return the actor for a client without authentication."""
    return one_line(name) or "mcp"


@lru_cache(maxsize=1024)
def _user_actor(user: str, client: str) -> str:
    """Return the actor for a user who acts through a client."""
    client = one_line(client)
    return f"{user} via {client}" if client else user


class ToolCall(WorkspaceSession, frozen=True):
    """A call of a tool: the workspace, the caller, and what else the server and the request have."""

    scope: ServerScope
    ctx: Context


class Effect(Struct, frozen=True):
    """The effect of a tool on the store."""

    writes: bool
    #: It overwrites or deletes.
    destructive: bool = False
    #: A repeated call changes nothing more.
    idempotent: bool = False
    #: It changes what later calls of the same client see, which is allowed on a read-only server.
    selects: bool = False


READS: Final = Effect(writes=False)
ADDS: Final = Effect(writes=True)
SETS_STATE: Final = Effect(writes=True, idempotent=True)
SELECTS: Final = Effect(writes=False, selects=True)
REPLACES: Final = Effect(writes=True, destructive=True, idempotent=True)


class ToolSpec(Struct, Generic[Arguments], frozen=True, kw_only=True):
    """A tool. Its argument struct is its schema and its documentation."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    run: Callable[[ToolCall, Arguments], Awaitable[ToolResult]]
    toolset: Toolset
    error_format: ErrorFormat
    #: Chooses the error format from the arguments of a call, if it depends on them.
    error_format_for: Callable[[Mapping[str, Any]], ErrorFormat] | None = None
    #: The schema of `structuredContent`; `None` if results have none.
    output: JsonObject | None = None
    #: Returns problems that the schema cannot express. It is called with the arguments of the right type.
    check: Callable[..., Iterable[Problem]] | None = None
    effect: Effect = READS
    #: Other toolsets that the tool belongs to, because it handles several kinds of entities.
    more_toolsets: tuple[Toolset, ...] = ()
    #: Hints for particular clients.
    meta: JsonObject | None = None

    @property
    def toolsets(self) -> tuple[Toolset, ...]:
        return (self.toolset, *self.more_toolsets)

    def bind(self, scope: ServerScope) -> ToolDefinition[Arguments]:
        """Return the tool bound to a scope."""

        async def run(arguments: Arguments, ctx: Context) -> ToolResult:
            try:
                caller = scope.caller(ctx)
                if scope.claims:
                    await scope.claims.renew(scope.workspace, caller, ctx.session.connection)
                return await self.run(ToolCall(scope.workspace, caller, scope, ctx), arguments)
            except DittybagError as error:
                if isinstance(error, StorageError):
                    _log.warning("%s failed: %s", self.name, error.report)
                return self._error_format_for_call(given_fields(arguments))(error)

        changes = self.effect.writes or self.effect.selects
        return ToolDefinition(
            name=self.name,
            title=self.title,
            description=self.description,
            arguments=self.arguments,
            output_schema=self.output,
            run=run,
            format_error=self._format_error,
            effect="writes" if changes else "reads",
            meta=self.meta,
            annotations=ToolAnnotations(
                read_only_hint=not changes,
                destructive_hint=self.effect.destructive if changes else None,
                idempotent_hint=self.effect.idempotent if changes else None,
                open_world_hint=False,
            ),
        )

    def _error_format_for_call(self, arguments: Mapping[str, Any]) -> ErrorFormat:
        return self.error_format if self.error_format_for is None else self.error_format_for(arguments)

    def _format_error(self, error: ToolError) -> ToolResult:
        if not isinstance(error, InvalidArguments):
            return self.error_format(Invalid([Problem("", str(error))]))
        return self._error_format_for_call(error.arguments)(Invalid(self._problems(error)))

    def _problems(self, error: InvalidArguments) -> list[Problem]:
        """Return all problems in the order of the arguments.

        A problem that `check` finds replaces the schema violations of the same argument.
        """
        mistyped = {item.path for item in error.violations if item.rule in ("type", "text", "required")}
        known = self.arguments.__struct_fields__
        well_typed = {
            name: _well_typed_part(name, error.arguments[name], mistyped)
            for name in known
            if name in error.arguments
        }
        well_typed = {name: value for name, value in well_typed.items() if value is not None}
        problems = list(self.check(**well_typed)) if self.check is not None else []
        reported = {problem.field for problem in problems}
        problems += [
            problem_of(item, known)
            for item in error.violations
            if top_level_argument(item.path) not in reported or item.path in mistyped
        ]
        order = {name: index for index, name in enumerate(known)}
        return sorted(problems, key=lambda problem: order.get(problem.field, len(order)))


def tool(
    *, arguments: type[Arguments], **fields: Any
) -> Callable[[Callable[[ToolCall, Arguments], Awaitable[ToolResult]]], ToolSpec[Arguments]]:
    """Decorate a function, which becomes the tool of its name. `fields`: other fields of `ToolSpec`."""
    return lambda run: ToolSpec(name=run.__name__, arguments=arguments, run=run, **fields)


def listed_schema(arguments: type) -> JsonObject | Raw:
    """Return the schema of an argument struct for `tools/list`, encoded in advance because that is slow."""
    from dittybag.contracts.encoded_schemas import ENCODED_SCHEMAS

    encoded = ENCODED_SCHEMAS.get(schema_key(arguments))
    return schema_of(arguments) if encoded is None else Raw(encoded)


def schema_key(arguments: type) -> str:
    """Return the name of an argument struct among the encoded schemas."""
    return f"{arguments.__module__}.{arguments.__qualname__}"


def _well_typed_part(name: str, value: Any, mistyped: Collection[str]) -> Any:
    """Return the part of an argument that has the right type, or `None` if no part has."""
    bad = {path for path in mistyped if top_level_argument(path) == name}
    if not bad:
        return value
    if not isinstance(value, list) or not all(path.endswith("]") for path in bad):
        return None
    return [item for index, item in enumerate(value) if f"{name}[{index}]" not in bad] or None


def json_result(value: JsonObject) -> ToolResult:
    """Return a result in compact JSON."""
    return ToolResult.from_text(encode(value).decode(), structured=value)


def object_schema(**fields: str | JsonObject) -> JsonObject:
    """Return the schema of a result: a type per field, `string?` for a field that may be null."""
    properties = {name: _field_schema(kind) for name, kind in fields.items()}
    return {"type": "object", "properties": properties, "required": list(fields)}


def _field_schema(kind: str | JsonObject) -> JsonObject:
    if not isinstance(kind, str):
        return kind
    return {"type": [kind[:-1], "null"]} if kind.endswith("?") else {"type": kind}


def array_schema(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}


def choice_problems(field: str, value: str, choices: Iterable[str]) -> list[Problem]:
    """Return a problem if `value` is not among `choices`."""
    allowed = tuple(choices)
    return [] if value in allowed else [Problem(field, f"{field} must be one of {', '.join(allowed)}")]


def query_problems(query: str = "", **others: Any) -> list[Problem]:
    """Return a problem if a search query is invalid."""
    problem = query_problem(query)
    return [Problem("query", problem)] if problem else []
