"""The data types of MCP messages, as in the newest revision.

Bytes are base64 on the wire. Unset fields are omitted. `eras.field_table` lists the revision that introduced
each field.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Raw, Struct, field

Role = Literal["user", "assistant"]
LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
RequestId = str | int
Meta = dict[str, Any]
JsonObject = dict[str, Any]


class WireStruct(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of the data types: camel case names, no nulls."""


class Icon(WireStruct, frozen=True, kw_only=True):
    src: str
    mime_type: str | None = None
    sizes: tuple[str, ...] | None = None
    theme: Literal["light", "dark"] | None = None


class Annotations(WireStruct, frozen=True, kw_only=True):
    audience: tuple[Role, ...] | None = None
    priority: float | None = None
    last_modified: str | None = None


class Implementation(WireStruct, frozen=True, kw_only=True):
    """The name and description of a client or server."""

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: tuple[Icon, ...] | None = None


class TextContents(WireStruct, frozen=True, kw_only=True):
    """The text content of a resource or a part of it."""

    uri: str
    text: str
    mime_type: str | None = None
    meta: Meta | None = field(name="_meta", default=None)


class BlobContents(WireStruct, frozen=True, kw_only=True):
    """The binary content of a resource or a part of it."""

    uri: str
    blob: bytes
    mime_type: str | None = None
    meta: Meta | None = field(name="_meta", default=None)


class Text(WireStruct, frozen=True, kw_only=True, tag_field="type", tag="text"):
    text: str
    annotations: Annotations | None = None
    meta: Meta | None = field(name="_meta", default=None)


class Image(WireStruct, frozen=True, kw_only=True, tag_field="type", tag="image"):
    data: bytes
    mime_type: str
    annotations: Annotations | None = None
    meta: Meta | None = field(name="_meta", default=None)


class Audio(WireStruct, frozen=True, kw_only=True, tag_field="type", tag="audio"):
    data: bytes
    mime_type: str
    annotations: Annotations | None = None
    meta: Meta | None = field(name="_meta", default=None)


class EmbeddedResource(WireStruct, frozen=True, kw_only=True, tag_field="type", tag="resource"):
    resource: TextContents | BlobContents
    annotations: Annotations | None = None
    meta: Meta | None = field(name="_meta", default=None)


class ResourceInfo(WireStruct, frozen=True, kw_only=True):
    """A resource as `resources/list` shows it."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    icons: tuple[Icon, ...] | None = None
    meta: Meta | None = field(name="_meta", default=None)


class ResourceLink(ResourceInfo, frozen=True, kw_only=True, tag_field="type", tag="resource_link"):
    """A reference to a resource that is not included."""


Content = Text | Image | Audio | EmbeddedResource | ResourceLink


class ToolAnnotations(WireStruct, frozen=True, kw_only=True):
    """Hints about the behaviour of a tool."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class ToolInfo(WireStruct, frozen=True, kw_only=True):
    """A tool as `tools/list` shows it."""

    name: str
    title: str | None = None
    description: str | None = None
    input_schema: JsonObject | Raw
    output_schema: JsonObject | None = None
    annotations: ToolAnnotations | None = None
    icons: tuple[Icon, ...] | None = None
    meta: Meta | None = field(name="_meta", default=None)


class PromptArgument(WireStruct, frozen=True, kw_only=True):
    name: str
    title: str | None = None
    description: str | None = None
    required: bool | None = None


class PromptInfo(WireStruct, frozen=True, kw_only=True):
    """A prompt as `prompts/list` shows it. `arguments` is present even if empty."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[PromptArgument, ...]
    icons: tuple[Icon, ...] | None = None
    meta: Meta | None = field(name="_meta", default=None)


class PromptMessage(WireStruct, frozen=True, kw_only=True):
    role: Role
    content: Content


class ResourceTemplateInfo(WireStruct, frozen=True, kw_only=True):
    """A resource template as `resources/templates/list` shows it."""

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    icons: tuple[Icon, ...] | None = None
    meta: Meta | None = field(name="_meta", default=None)


class Result(WireStruct, frozen=True, kw_only=True):
    """A result without further fields."""

    meta: Meta | None = field(name="_meta", default=None)


class ToolResult(Result, frozen=True, kw_only=True):
    """The result of a tool call. With `is_error`, the content is an error message for the model."""

    content: tuple[Content, ...]
    structured_content: Any = None
    is_error: bool

    @classmethod
    def from_text(cls, text: str, *, structured: Any = None, is_error: bool = False) -> ToolResult:
        """Return a result with one text block."""
        return cls(content=(Text(text=text),), structured_content=structured, is_error=is_error)


class PromptResult(Result, frozen=True, kw_only=True):
    description: str | None = None
    messages: tuple[PromptMessage, ...]


class ReadResult(Result, frozen=True, kw_only=True):
    contents: tuple[TextContents | BlobContents, ...]


class ToolList(Result, frozen=True, kw_only=True):
    tools: tuple[ToolInfo, ...]
    next_cursor: str | None = None


class PromptList(Result, frozen=True, kw_only=True):
    prompts: tuple[PromptInfo, ...]
    next_cursor: str | None = None


class ResourceList(Result, frozen=True, kw_only=True):
    resources: tuple[ResourceInfo, ...]
    next_cursor: str | None = None


class ResourceTemplateList(Result, frozen=True, kw_only=True):
    resource_templates: tuple[ResourceTemplateInfo, ...]
    next_cursor: str | None = None


class Completion(WireStruct, frozen=True, kw_only=True):
    """Completion values for an argument, best match first."""

    values: tuple[str, ...]
    total: int | None = None
    has_more: bool | None = None


class CompleteResult(Result, frozen=True, kw_only=True):
    completion: Completion


class ListFeature(WireStruct, frozen=True, kw_only=True):
    #: Omitted if `None`.
    list_changed: bool | None = None


class ResourceFeature(WireStruct, frozen=True, kw_only=True):
    subscribe: bool | None = None
    list_changed: bool | None = None


class Capabilities(WireStruct, frozen=True, kw_only=True):
    """The capabilities of a server."""

    tools: ListFeature | None = None
    resources: ResourceFeature | None = None
    prompts: ListFeature | None = None
    completions: JsonObject | None = None
    logging: JsonObject | None = None
    experimental: JsonObject | None = None
    extensions: JsonObject | None = None


class InitializeResult(Result, frozen=True, kw_only=True):
    protocol_version: str
    capabilities: Capabilities
    server_info: Implementation
    instructions: str | None = None


class DiscoverResult(Result, frozen=True, kw_only=True):
    supported_versions: tuple[str, ...]
    capabilities: Capabilities
    instructions: str | None = None


class InputRequest(WireStruct, frozen=True, kw_only=True):
    """A question to the client inside an `input_required` result."""

    method: str
    params: JsonObject


class InputRequiredResult(Result, frozen=True, kw_only=True):
    input_requests: dict[str, InputRequest]
    request_state: str
