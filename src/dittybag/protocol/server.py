"""The server: its description, its tools, prompts and resources, and its change notifications."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from msgspec import Raw, Struct
from msgspec.structs import replace

from dittybag.protocol.argument_schemas import NoArguments, schema_of
from dittybag.protocol.eras.method_table import METHODS, Method
from dittybag.protocol.eras.revisions import REVISIONS, Revision
from dittybag.protocol.eras.versions import NEWEST_HANDSHAKE
from dittybag.protocol.extensions import Extension, ExtensionRegistry
from dittybag.protocol.features import (
    PAGE_SIZE,
    MaybeAwaitable,
    PromptDefinition,
    PromptRegistry,
    PromptSource,
    ResourceDefinition,
    ResourceRegistry,
    ResourceSource,
    ResourceTemplateDefinition,
    ToolDefinition,
    ToolReturn,
)
from dittybag.protocol.request_context import Context
from dittybag.protocol.request_state import StateSealer
from dittybag.protocol.types import (
    Capabilities,
    Icon,
    Implementation,
    JsonObject,
    ListFeature,
    ResourceFeature,
    ToolInfo,
)

if TYPE_CHECKING:
    from dittybag.protocol.dispatch import Session
    from dittybag.protocol.subscriptions import Subscriptions

ListKind = Literal["tools", "prompts", "resources"]

#: Called with a request, its outcome ("ok", "error" or "cancelled") and its duration in seconds.
Observer = Callable[[Context, str, float], object]

#: Called with a request; see `Server`.
Preparation = Callable[[Context], Awaitable[None] | None]

Arguments = TypeVar("Arguments")

_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def _do_nothing(session: Session) -> None:
    pass


def _output_schema(tool: ToolDefinition[Any]) -> JsonObject | None:
    if tool.output_schema is None and tool.output is not None:
        return schema_of(tool.output)
    return tool.output_schema


async def _do_nothing_at_end(session: Session) -> None:
    pass


class ServerLimits(Struct, frozen=True, kw_only=True):
    """Limits per client."""

    #: Longer messages are refused.
    message_bytes: int = 4 * 1024 * 1024
    #: Longer responses are replaced by an error: common clients drop lines over 10 MiB.
    response_bytes: int = 10 * 1024 * 1024
    requests_in_flight: int = 1024
    batch_messages: int = 1000
    listen_streams: int = 64
    subscribed_uris: int = 10_000


class CacheHints(Struct, frozen=True, kw_only=True):
    """How long a client of a stateless revision may cache a result, in milliseconds."""

    discover_ms: int = 3_600_000
    lists_ms: int = 0
    resources_ms: int = 0
    #: `private` unless every caller gets the same lists and resources.
    scope: Literal["private", "public"] = "private"


class Server:
    """An MCP server. It can have any number of sessions."""

    def __init__(
        self,
        name: str,
        version: str,
        *,
        title: str | None = None,
        description: str | None = None,
        website_url: str | None = None,
        icons: tuple[Icon, ...] | None = None,
        instructions: str | None = None,
        prompts: PromptSource | None = None,
        resources: ResourceSource | None = None,
        capabilities: Capabilities | None = None,
        logging: bool = False,
        default_version: str = NEWEST_HANDSHAKE,
        limits: ServerLimits | None = None,
        cache: CacheHints | None = None,
        page_size: int = PAGE_SIZE,
        state_key: bytes | None = None,
        lifespan: Callable[[], AbstractAsyncContextManager[object]] = nullcontext,
        observe: Observer | None = None,
        prepare: Preparation | None = None,
        listed_schema: Callable[[type], JsonObject | Raw] = schema_of,
        on_roots_changed: Callable[[Session], object] = _do_nothing,
        on_end: Callable[[Session], Awaitable[None]] = _do_nothing_at_end,
    ) -> None:
        """Create a server. Only `name` and `version` are required.

        `prompts`, `resources`: custom sources, used instead of the registries.
        `capabilities`: the capabilities to declare, instead of those derived from the registered features.
        `logging`: whether `Context.log` sends messages to the client.
        `default_version`: the revision for clients that request an unknown handshake revision.
        `state_key`: the secret key for request states, shared by all processes behind one address.
        `lifespan`: a context manager that is active while the server runs.
        `observe`: called after every request.
        `prepare`: called before the handler of every request, which waits for what it returns.
        `listed_schema`: returns the schema of an argument struct for `tools/list`, encoded if it is known.
        `on_roots_changed`: called when a client reports that its root folders have changed.
        `on_end`: called when the connection of a session has ended for good, after its last request.
        """
        self.info = Implementation(
            name=name,
            version=version,
            title=title,
            description=description,
            website_url=website_url,
            icons=icons,
        )
        self.instructions = instructions
        self.default_revision: Revision = REVISIONS[default_version]
        self.limits = limits or ServerLimits()
        self.cache = cache or CacheHints()
        self.sealer = StateSealer(state_key)
        self.page_size = page_size
        self.lifespan = lifespan
        self.observe = observe
        self.prepare = prepare
        self._listed_schema = listed_schema
        self.on_roots_changed = on_roots_changed
        self.on_end = on_end
        self.tools: dict[str, ToolDefinition[Any]] = {}
        self.prompts: PromptSource = PromptRegistry(page_size) if prompts is None else prompts
        self.resources: ResourceSource = ResourceRegistry(page_size) if resources is None else resources
        self.extensions = ExtensionRegistry()
        #: Encoded pages, by method, version, position and stamp.
        self.encoded_lists: dict[tuple[Any, ...], bytes] = {}
        #: The encoded first members of stateless results, by method and result type.
        self.encoded_prefixes: dict[tuple[str, str], bytes] = {}
        self._tools_stamp = 0
        self._header_arguments: dict[str, Mapping[str, str]] = {}
        self._schemas: dict[str, tuple[JsonObject, JsonObject | None]] = {}
        self._declared = capabilities
        #: The current capabilities; `None` until they are derived again.
        self._capabilities: Capabilities | None = None
        self._wants_logging = logging
        self._listeners: set[Subscriptions] = set()

    # Features

    def tool(
        self,
        name: str,
        arguments: type[Arguments] = NoArguments,  # type: ignore[assignment]  # fits tools without arguments
        **fields: Any,
    ) -> Callable[
        [Callable[[Arguments, Context], MaybeAwaitable[ToolReturn]]],
        Callable[[Arguments, Context], MaybeAwaitable[ToolReturn]],
    ]:
        """Register the decorated function as a tool. `fields` are further fields of `ToolDefinition`."""

        def register(
            run: Callable[[Arguments, Context], MaybeAwaitable[ToolReturn]],
        ) -> Callable[[Arguments, Context], MaybeAwaitable[ToolReturn]]:
            self.add(ToolDefinition(name=name, run=run, arguments=arguments, **fields))
            return run

        return register

    def add(
        self,
        feature: ToolDefinition[Any] | PromptDefinition | ResourceDefinition | ResourceTemplateDefinition,
    ) -> None:
        """Add a tool, prompt, resource or template, or replace the one with the same name.

        Open sessions are notified.
        """
        if isinstance(feature, ToolDefinition):
            if not _TOOL_NAME.fullmatch(feature.name):
                raise ValueError(
                    f"a tool name has 1 to 128 characters of A-Z a-z 0-9 _ . -: {feature.name!r}"
                )
            self.tools[feature.name] = feature
            self._on_tool_changed(feature.name)
        elif isinstance(feature, PromptDefinition):
            self._prompt_registry().add(feature)
            self._on_list_changed("prompts")
        else:
            self._resource_registry().add(feature)
            self._on_list_changed("resources")

    def add_extension(self, extension: Extension) -> None:
        """Offer the methods of an extension, and declare it."""
        self.extensions.add(extension)
        self._capabilities = None

    def find_method(self, name: str, version: str) -> Method | None:
        """Return a method of a revision or of an extension, or `None`."""
        return METHODS.get((name, version)) or self.extensions.method(name, version)

    def remove_tool(self, name: str) -> None:
        del self.tools[name]
        self._on_tool_changed(name)

    def remove_prompt(self, name: str) -> None:
        self._prompt_registry().remove(name)
        self._on_list_changed("prompts")

    def remove_resource(self, uri: str) -> None:
        """Remove a resource by its URI, or a template by its URI template."""
        self._resource_registry().remove(uri)
        self._on_list_changed("resources")

    def _prompt_registry(self) -> PromptRegistry:
        if not isinstance(self.prompts, PromptRegistry):
            raise TypeError("this server has a custom prompt source")
        return self.prompts

    def _resource_registry(self) -> ResourceRegistry:
        if not isinstance(self.resources, ResourceRegistry):
            raise TypeError("this server has a custom resource source")
        return self.resources

    def _on_tool_changed(self, name: str) -> None:
        self._schemas.pop(name, None)
        self._header_arguments.pop(name, None)
        self._tools_stamp += 1
        self._on_list_changed("tools")

    def _on_list_changed(self, kind: ListKind) -> None:
        self._capabilities = None
        self._notify(kind)

    @property
    def tools_stamp(self) -> int:
        """Increases with every change of the tools."""
        return self._tools_stamp

    @property
    def capabilities(self) -> Capabilities:
        """The declared capabilities."""
        if self._capabilities is None:
            self._capabilities = self._declared or self._derive_capabilities()
            if extensions := self.extensions.settings:
                declared = {**(self._capabilities.extensions or {}), **extensions}
                self._capabilities = replace(self._capabilities, extensions=declared)
        return self._capabilities

    def _derive_capabilities(self) -> Capabilities:
        prompts = not isinstance(self.prompts, PromptRegistry) or len(self.prompts) > 0
        resources = not isinstance(self.resources, ResourceRegistry) or len(self.resources) > 0
        return Capabilities(
            tools=ListFeature(list_changed=True) if self.tools else None,
            prompts=ListFeature(list_changed=True) if prompts else None,
            resources=ResourceFeature(subscribe=True, list_changed=True) if resources else None,
            completions={} if prompts or resources else None,
            logging={} if self._wants_logging else None,
        )

    @property
    def logging(self) -> bool:
        """Whether log messages may be sent to clients."""
        return self.capabilities.logging is not None

    def tool_info(self, tool: ToolDefinition[Any], revision: Revision) -> ToolInfo:
        """Return a tool as `tools/list` shows it in `revision`."""
        output_schema = _output_schema(tool)
        if output_schema and revision.structured_objects_only and output_schema.get("type") != "object":
            output_schema = None
        return ToolInfo(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=tool.input_schema or self._listed_schema(tool.arguments),
            output_schema=output_schema,
            annotations=tool.annotations,
            icons=tool.icons,
            meta=tool.meta,
        )

    def tool_schemas(self, tool: ToolDefinition[Any]) -> tuple[JsonObject, JsonObject | None]:
        """Return a tool's input and output schema. Created on first use, because that is slow."""
        schemas = self._schemas.get(tool.name)
        if schemas is None:
            input_schema = tool.input_schema or schema_of(tool.arguments)
            schemas = self._schemas[tool.name] = (input_schema, _output_schema(tool))
        return schemas

    def header_arguments(self, tool: ToolDefinition[Any]) -> Mapping[str, str]:
        """Return the arguments that HTTP requests repeat in headers, with the header names."""
        found = self._header_arguments.get(tool.name)
        if found is None:
            properties = self.tool_schemas(tool)[0].get("properties", {})
            found = self._header_arguments[tool.name] = {
                name: f"mcp-param-{schema['x-mcp-header'].lower()}"
                for name, schema in properties.items()
                if isinstance(schema, dict) and isinstance(schema.get("x-mcp-header"), str)
            }
        return found

    # Change notifications. Call these methods from the event loop.

    def tools_changed(self) -> None:
        self._notify("tools")

    # `selections`: only the clients with one of these selections; `None` for all clients.

    def prompts_changed(self, selections: Collection[int | None] | None = None) -> None:
        self._notify("prompts", selections)

    def resources_changed(self, selections: Collection[int | None] | None = None) -> None:
        self._notify("resources", selections)

    def resource_updated(self, uri: str, selections: Collection[int | None] | None = None) -> None:
        """Notify the clients that are subscribed to this resource."""
        for subscriptions in tuple(self._listeners):
            if selections is None or subscriptions.selection in selections:
                subscriptions.resource_updated(uri)

    def subscribed_uris(self) -> set[str]:
        """Return the URIs of all resources that clients are subscribed to."""
        return {uri for subscriptions in self._listeners for uri in subscriptions.subscribed_uris()}

    def _notify(self, kind: ListKind, selections: Collection[int | None] | None = None) -> None:
        for subscriptions in tuple(self._listeners):
            if selections is None or subscriptions.selection in selections:
                subscriptions.list_changed(kind)

    def add_listener(self, subscriptions: Subscriptions) -> None:
        """Notify these subscriptions of changes from now on."""
        self._listeners.add(subscriptions)

    def remove_listener(self, subscriptions: Subscriptions) -> None:
        self._listeners.discard(subscriptions)
