"""The handlers of all request methods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from types import CoroutineType
from typing import Any, Final

import msgspec

from dittybag.protocol import cursors
from dittybag.protocol.argument_schemas import convert, find_violations, surrogate_violations, without_nulls
from dittybag.protocol.cursors import Position
from dittybag.protocol.eras.field_table import downgrade
from dittybag.protocol.eras.revisions import REVISIONS
from dittybag.protocol.eras.versions import HANDSHAKE_VERSIONS, STATELESS_VERSIONS
from dittybag.protocol.features import (
    MAX_COMPLETIONS,
    CompletionRequest,
    CompletionReturn,
    MaybeAwaitable,
    Page,
    PromptReturn,
    ResourceReturn,
    ToolDefinition,
    await_if_needed,
    slice_page,
    to_read_result,
)
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.request_context import LOG_LEVELS, Context
from dittybag.protocol.result_encoding import encode_result
from dittybag.protocol.types import (
    CompleteResult,
    Completion,
    Content,
    DiscoverResult,
    InitializeResult,
    JsonObject,
    PromptList,
    PromptMessage,
    PromptResult,
    ReadResult,
    ResourceList,
    ResourceTemplateList,
    Result,
    Text,
    ToolInfo,
    ToolList,
    ToolResult,
)
from dittybag.protocol.wire_errors import (
    InputRejected,
    InvalidArguments,
    InvalidParams,
    ProtocolError,
    ToolError,
    Violation,
    as_tool_error,
)

#: A result, an encoded result, or a coroutine that returns one. `None`: the response is sent later.
Outcome = Result | bytes | Coroutine[Any, Any, Result | bytes | None] | None

#: The maximum number of encoded pages in the cache.
MAX_ENCODED_LISTS: Final = 256


def initialize(ctx: Context) -> Result:
    server = ctx.session.server
    requested = ctx.params.get("protocolVersion")
    known = requested if isinstance(requested, str) and requested in HANDSHAKE_VERSIONS else None
    revision = REVISIONS[known] if known else server.default_revision
    capabilities = ctx.params.get("capabilities", {})
    client = ctx.params.get("clientInfo", {})
    if not isinstance(capabilities, dict) or not isinstance(client, dict):
        raise InvalidParams("Invalid params: `capabilities` and `clientInfo` must be objects")
    ctx.session.apply_handshake(revision, capabilities, client)
    # This response already uses the negotiated revision.
    ctx.revision = revision
    return InitializeResult(
        protocol_version=revision.version,
        capabilities=downgrade(server.capabilities, revision.version),
        server_info=downgrade(server.info, revision.version),
        instructions=server.instructions,
    )


def ping(ctx: Context) -> Result:
    return Result()


def discover(ctx: Context) -> Result:
    server = ctx.session.server
    return DiscoverResult(
        supported_versions=STATELESS_VERSIONS,
        capabilities=server.capabilities,
        instructions=server.instructions,
    )


def listen(ctx: Context) -> None:
    wanted = ctx.params.get("notifications")
    if not isinstance(wanted, dict):
        raise InvalidParams("Invalid params: `notifications` must be an object that lists what to listen for")
    uris = wanted.get("resourceSubscriptions", [])
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        raise InvalidParams("Invalid params: `resourceSubscriptions` must be an array of URIs")
    for name in ("toolsListChanged", "promptsListChanged", "resourcesListChanged"):
        if not isinstance(wanted.get(name, False), bool):
            raise InvalidParams(f"Invalid params: `{name}` must be true or false")
    ctx.session.subscriptions.listen(ctx, wanted, uris)


def set_level(ctx: Context) -> Result:
    level = ctx.params.get("level")
    if not isinstance(level, str) or level not in LOG_LEVELS:
        raise InvalidParams(f"Invalid params: `level` must be one of {', '.join(LOG_LEVELS)}")
    ctx.session.log_level = level
    return Result()


def subscribe(ctx: Context) -> Result:
    ctx.session.subscriptions.subscribe(required_string(ctx, "uri"))
    return Result()


def unsubscribe(ctx: Context) -> Result:
    ctx.session.subscriptions.unsubscribe(required_string(ctx, "uri"))
    return Result()


# Lists


def list_tools(ctx: Context) -> Outcome:
    return list_page(ctx, ctx.session.server.tools_stamp, _tool_page, ToolList, "tools")


def _tool_page(position: Position | None, ctx: Context) -> Page[ToolInfo]:
    server = ctx.session.server
    page = slice_page(tuple(server.tools.values()), position, server.page_size)
    return Page(tuple(server.tool_info(tool, ctx.revision) for tool in page.items), page.next)


def list_prompts(ctx: Context) -> Outcome:
    source = ctx.session.server.prompts
    return list_page(ctx, source.stamp(ctx), source.list, PromptList, "prompts")


def list_resources(ctx: Context) -> Outcome:
    source = ctx.session.server.resources
    return list_page(ctx, source.stamp(ctx), source.list, ResourceList, "resources")


def list_templates(ctx: Context) -> Outcome:
    source = ctx.session.server.resources
    return list_page(ctx, source.stamp(ctx), source.templates, ResourceTemplateList, "resource_templates")


def list_page(
    ctx: Context,
    stamp: Hashable,
    fetch: Callable[[Position | None, Context], MaybeAwaitable[Page[Any]]],
    kind: type[Result],
    field: str,
) -> bytes | Coroutine[Any, Any, bytes]:
    """Return a page of a list as the result of a request, from the cache if the stamp is known.

    `kind`: the type of the result, which has the items in `field`.
    """
    selection = ctx.session.selection
    # A position in one part of the data means nothing in another.
    owner = ctx.method if selection is None else f"{ctx.method} {selection}"
    position = cursors.read(owner, ctx.params.get("cursor"))
    key = (owner, ctx.revision.version, position, stamp)
    if stamp is not None and (known := ctx.session.server.encoded_lists.get(key)) is not None:
        return known

    def encode_page(page: Page[Any]) -> bytes:
        cursor = None if page.next is None else cursors.write(owner, page.next)
        members: JsonObject = {field: page.items, "next_cursor": cursor}
        body = encode_result(kind(**members), ctx)
        if stamp is not None:
            cache = ctx.session.server.encoded_lists
            if len(cache) >= MAX_ENCODED_LISTS:
                cache.clear()
            cache[key] = body
        return body

    async def await_page(page: Awaitable[Page[Any]]) -> bytes:
        return encode_page(await page)

    page = fetch(position, ctx)
    return await_page(page) if isinstance(page, Awaitable) else encode_page(page)


# Tools


def call_tool(ctx: Context) -> Outcome:
    name = required_string(ctx, "name")
    server = ctx.session.server
    tool = server.tools.get(name)
    if tool is None:
        raise InvalidParams(f"Unknown tool: {name}")
    try:
        value = tool.run(_convert_arguments(tool, ctx), ctx)
    except _REPORTABLE_ERRORS as error:
        return _error_result(tool, error, ctx)
    # The check against the abstract class is slow, and nearly all are coroutines.
    if type(value) is CoroutineType or isinstance(value, Awaitable):
        return _finish_tool(tool, value, ctx)
    return _tool_result(tool, value, ctx)


#: Errors that may be reported to the model as a tool result.
_REPORTABLE_ERRORS: Final = (ToolError, InputRejected, ProtocolError)


def _convert_arguments(tool: ToolDefinition[Any], ctx: Context) -> Any:
    """Convert the arguments of a call to the tool's struct. Raises `InvalidArguments`."""
    arguments = ctx.params.get("arguments")
    if arguments is None:
        arguments = {}
    elif type(arguments) is not dict:
        raise InvalidArguments(tool.name, find_violations(arguments, {"type": "object"}))
    invalid_text = list(surrogate_violations(arguments)) if ctx.may_have_surrogates else []
    if not invalid_text:
        try:
            return convert(arguments, tool.arguments)
        except msgspec.ValidationError:
            # The schema check below finds all violations.
            pass
    schema, _ = ctx.session.server.tool_schemas(tool)
    arguments = without_nulls(arguments, schema)
    reported = {violation.path for violation in invalid_text}
    others = (item for item in find_violations(arguments, schema) if item.path not in reported)
    found = [*invalid_text, *others]
    if not found:
        try:
            return convert(arguments, tool.arguments)
        except msgspec.ValidationError as problem:
            found = [Violation("", "schema", str(problem))]
    raise InvalidArguments(tool.name, found, arguments)


async def _finish_tool(tool: ToolDefinition[Any], returned: Awaitable[Any], ctx: Context) -> Result:
    try:
        value = await returned
    except _REPORTABLE_ERRORS as error:
        return _error_result(tool, error, ctx)
    return _tool_result(tool, value, ctx)


def _error_result(tool: ToolDefinition[Any], error: Exception, ctx: Context) -> ToolResult:
    """Convert an error to a tool result. Raises it again if it is a protocol error."""
    failure = as_tool_error(error, ctx.revision)
    if failure is None:
        raise error
    return (
        tool.format_error(failure) if tool.format_error else ToolResult.from_text(str(failure), is_error=True)
    )


def _tool_result(tool: ToolDefinition[Any], returned: Any, ctx: Context) -> ToolResult:
    if isinstance(returned, ToolResult):
        result = returned
    elif tool.output is not None:
        text = Text(text=encode(returned).decode())
        structured = msgspec.to_builtins(returned)
        result = ToolResult(content=(text,), structured_content=structured, is_error=False)
    elif isinstance(returned, str):
        result = ToolResult(content=(Text(text=returned),), is_error=False)
    else:
        returned = returned if isinstance(returned, list | tuple) else (returned,)
        result = ToolResult(content=tuple(map(_content_block, returned)), is_error=False)
    structured = result.structured_content
    if structured is not None and type(structured) is not dict and ctx.revision.structured_objects_only:
        return msgspec.structs.replace(result, structured_content=None)
    return result


def _content_block(returned: Any) -> Content:
    if isinstance(returned, str):
        return Text(text=returned)
    if isinstance(returned, Content):
        return returned
    raise TypeError(f"a tool must return text or content blocks, not {type(returned).__name__}")


# Prompts, resources and completions


def get_prompt(ctx: Context) -> Outcome:
    returned = ctx.session.server.prompts.get(required_string(ctx, "name"), _arguments(ctx), ctx)
    return _finish_prompt(returned) if isinstance(returned, Awaitable) else _prompt_result(returned)


async def _finish_prompt(returned: Awaitable[PromptReturn]) -> Result:
    return _prompt_result(await returned)


def _prompt_result(returned: PromptReturn) -> PromptResult:
    if isinstance(returned, PromptResult):
        return returned
    returned = returned if isinstance(returned, list | tuple) else (returned,)
    return PromptResult(messages=tuple(map(_prompt_message, returned)))


def _prompt_message(returned: Any) -> PromptMessage:
    if isinstance(returned, PromptMessage):
        return returned
    return PromptMessage(role="user", content=_content_block(returned))


def read_resource(ctx: Context) -> Outcome:
    uri = required_string(ctx, "uri")
    returned = ctx.session.server.resources.read(uri, ctx)
    return (
        _finish_read(returned, uri)
        if isinstance(returned, Awaitable)
        else to_read_result(returned, uri, None)
    )


async def _finish_read(returned: Awaitable[ResourceReturn], uri: str) -> ReadResult:
    return to_read_result(await returned, uri, None)


async def complete(ctx: Context) -> Result:
    request = _completion_request(ctx.params)
    server = ctx.session.server
    source = server.prompts if request.kind == "prompt" else server.resources
    return CompleteResult(completion=_completion(await await_if_needed(source.complete(request, ctx))))


def _completion_request(params: JsonObject) -> CompletionRequest:
    ref, argument = params.get("ref"), params.get("argument")
    if not isinstance(ref, dict) or not isinstance(argument, dict):
        raise InvalidParams("Invalid params: `ref` and `argument` must be objects")
    name, value = argument.get("name"), argument.get("value")
    if not isinstance(name, str) or not isinstance(value, str):
        raise InvalidParams("Invalid params: `argument` must have a `name` and a `value`, both strings")
    others = params.get("context")
    others = others.get("arguments", {}) if isinstance(others, dict) else {}
    if not isinstance(others, dict):
        raise InvalidParams("Invalid params: `context.arguments` must be an object")
    if ref.get("type") == "ref/prompt" and isinstance(ref.get("name"), str):
        return CompletionRequest("prompt", ref["name"], name, value, others)
    if ref.get("type") == "ref/resource" and isinstance(ref.get("uri"), str):
        return CompletionRequest("resource", ref["uri"], name, value, others)
    raise InvalidParams(
        "Invalid params: `ref` must be of type ref/prompt with a `name` or ref/resource with a `uri`"
    )


def _completion(returned: CompletionReturn) -> Completion:
    if not isinstance(returned, Completion):
        values = (returned,) if isinstance(returned, str) else tuple(returned)
        returned = Completion(values=values, total=len(values), has_more=False)
    if not all(isinstance(value, str) for value in returned.values):
        raise TypeError("completions must be strings")
    if len(returned.values) > MAX_COMPLETIONS:
        total = returned.total if returned.total is not None else len(returned.values)
        return Completion(values=returned.values[:MAX_COMPLETIONS], total=total, has_more=True)
    return returned


def required_string(ctx: Context, name: str) -> str:
    """Return a parameter that must be a string. Raises `InvalidParams`."""
    value = ctx.params.get(name)
    if type(value) is not str:
        raise InvalidParams(f"Invalid params: `{name}` is required and must be a string")
    return value


def _arguments(ctx: Context) -> JsonObject:
    value = ctx.params.get("arguments")
    if value is None:
        return {}
    if type(value) is not dict:
        raise InvalidParams("Invalid params: `arguments` must be an object")
    return value


#: The handlers of all methods of all revisions.
HANDLERS: Final[Mapping[str, Callable[[Context], Outcome]]] = {
    "initialize": initialize,
    "ping": ping,
    "server/discover": discover,
    "subscriptions/listen": listen,
    "tools/list": list_tools,
    "tools/call": call_tool,
    "prompts/list": list_prompts,
    "prompts/get": get_prompt,
    "resources/list": list_resources,
    "resources/templates/list": list_templates,
    "resources/read": read_resource,
    "resources/subscribe": subscribe,
    "resources/unsubscribe": unsubscribe,
    "completion/complete": complete,
    "logging/setLevel": set_level,
}
