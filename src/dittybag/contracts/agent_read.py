"""The tool `read`: the content of anything that has a reference, in pieces if it is long.

It answers with content blocks and without `structuredContent`: clients that find structured content show the
model nothing else, so that an image would be lost.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Sequence
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from dittybag.contracts.error_formats import bounded_json_error
from dittybag.contracts.references import (
    ChangeNumber,
    Item,
    Ref,
    checked_ref,
    kind_of_item,
    look_up_item,
    missing_item,
    ref_of,
)
from dittybag.contracts.result_size import (
    LONGEST_RESULT,
    TokenLimit,
    json_fits,
    json_tokens,
    piece_members,
    require_offset,
    take_fitting,
    text_piece,
)
from dittybag.contracts.skill_extension import SCHEME
from dittybag.contracts.skill_uris import uri_of
from dittybag.contracts.task_rows import brief, comment_rows, details_members, task_fields
from dittybag.contracts.tool_specs import ToolCall, tool
from dittybag.domain.errors import ChangeNotFound, ReferenceNotFound, clip
from dittybag.domain.libraries import LibraryPrompt
from dittybag.domain.mime_types import BINARY
from dittybag.domain.prompts import Argument, Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.domain.text import one_line
from dittybag.domain.times import iso
from dittybag.domain.token_estimate import estimate_tokens, fits_into
from dittybag.protocol.features import MaybeAwaitable, ResourceReturn, await_if_needed, to_read_result
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.types import (
    Audio,
    BlobContents,
    Content,
    EmbeddedResource,
    Image,
    JsonObject,
    ResourceLink,
    Text,
    ToolResult,
)
from dittybag.protocol.wire_errors import ProtocolError, ToolError, UnknownResource

#: Several clients and models refuse larger images.
_IMAGE_BYTES: Final = 3_750_000
_AUDIO_BYTES: Final = 1024 * 1024
#: The types of images that models accept, and how their content begins.
_IMAGE_BEGINNINGS: Final = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
#: Maximum number of characters of a description beside the content.
_DESCRIPTION: Final = 300
#: Maximum number of characters of a text beside the content if there is little room.
_SHORT: Final = 60
#: The bytes of a character, at most; no text has more tokens than bytes.
_BYTES: Final = 4
#: The tokens of a description around the content.
_ROOM_AROUND_CONTENT: Final = 150


class Read(Struct, kw_only=True, forbid_unknown_fields=True):
    ref: Ref
    offset: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    max_tokens: TokenLimit = 6_000


@tool(
    title="Read anything",
    description=(
        "Use to get the content of a ref from search: prompt, resource, task or change. A ref is a name, "
        "library:prompt, URI, task:12, UUID or change:15. Long texts come in pieces; go on with next_offset"
    ),
    arguments=Read,
    toolset="search",
    more_toolsets=("prompts", "resources", "tasks", "history"),
    error_format=bounded_json_error,
    meta={"anthropic/alwaysLoad": True, "anthropic/maxResultSizeChars": LONGEST_RESULT},
)
async def read(call: ToolCall, arguments: Read) -> ToolResult:
    room = arguments.max_tokens
    ref = checked_ref(arguments.ref)
    # A file of a skill comes before a stored resource with its URI, as in `resources/read`.
    item = None if ref[: len(SCHEME)].lower() == SCHEME else await look_up_item(call, ref)
    if item is None:
        return _content_result(await _read_by_uri(call, ref), ref, arguments)
    if isinstance(item, ChangeNumber):
        return await _read_change(call, item.seq, arguments)
    described = _description(item, room // 2)
    if isinstance(item, Task):
        described |= await _task_members(call, item, room // 2)
    if isinstance(item, Resource):
        return await _read_resource(call, item, arguments, described)
    if isinstance(item, LibraryPrompt):
        described |= await _skill_files(call, item, room // 8)
    return _text_result(await _text_of(call, item), arguments, described)


async def _task_members(call: ToolCall, task: Task, room: int) -> JsonObject:
    """Return what is around a task: who holds it, parent, blockers, links and the last comments."""
    details = await call.workspace.tasks.details(call.caller, task.id)
    members = details_members(details)
    for name, items, part in (
        ("labels", task.labels, room // 8),
        ("blocked_by", [brief(blocker) for blocker in details.blockers], room // 6),
        ("links", task.links, room // 6),
    ):
        members |= _fitting_list(name, items, part) if items else {}
    if task.comments:
        # The last comments matter most.
        last = take_fitting(comment_rows(task.comments)[::-1], room // 4)[::-1]
        members["comments"] = last
        if len(last) < len(task.comments):
            members["more_comments"] = len(task.comments) - len(last)
    return members


async def _skill_files(call: ToolCall, prompt: LibraryPrompt, room: int) -> JsonObject:
    """Return the URIs of the other files of a skill, if the prompt is one."""
    skill = await call.scope.libraries.skill_of(prompt.name)
    if skill is None or len(skill.files) == 1:
        return {}
    others = [uri_of(f"{skill.path}/{file.path}") for file in skill.files if file.path != skill.head.path]
    return _fitting_list("files", others, room)


async def _text_of(call: ToolCall, item: Prompt | LibraryPrompt | Task) -> str:
    if isinstance(item, LibraryPrompt):
        _, _, template = await call.scope.libraries.source(item.name)
        return template
    return item.content if isinstance(item, Prompt) else item.notes or ""


async def _read_resource(
    call: ToolCall, resource: Resource, arguments: Read, described: JsonObject
) -> ToolResult:
    (content,) = await call.workspace.resources.contents(call.caller, [resource])
    if resource.is_text:
        return _text_result(content.decode(), arguments, described)
    return _binary_result(resource, content, arguments, described)


async def _read_by_uri(call: ToolCall, uri: str) -> tuple[str | None, str | bytes]:
    """Return the type and content of a resource that the server generates for a URI.

    Raises `ReferenceNotFound`.
    """
    if ":" not in uri:
        raise await missing_item(call, uri)
    try:
        reading: MaybeAwaitable[ResourceReturn] = call.ctx.session.server.resources.read(uri, call.ctx)
        returned: ResourceReturn = await await_if_needed(reading)
    except UnknownResource:
        raise await missing_item(call, uri) from None
    except ProtocolError as error:
        raise ToolError(error.message) from error
    (contents, *_) = to_read_result(returned, uri, None).contents
    content = contents.blob if isinstance(contents, BlobContents) else contents.text
    return contents.mime_type, content


def _content_result(contents: tuple[str | None, str | bytes], uri: str, arguments: Read) -> ToolResult:
    mime_type, content = contents
    described: JsonObject = {"ref": clip(uri), "kind": "resource"}
    described |= {} if mime_type is None else {"mime_type": mime_type}
    if isinstance(content, str):
        return _text_result(content, arguments, described)
    generated = _Binary(uri=uri, name=one_line(uri, 60), mime_type=mime_type or BINARY)
    return _binary_result(generated, content, arguments, described)


class _Binary(Struct, frozen=True, kw_only=True):
    """What a binary content belongs to."""

    uri: str
    name: str
    mime_type: str


async def _read_change(call: ToolCall, seq: int, arguments: Read) -> ToolResult:
    # Imported here because few calls compare.
    from dittybag.services.change_diffs import changed_texts, diff_lines

    try:
        comparison = await call.workspace.history.compare(call.caller, seq)
    except ChangeNotFound:
        raise ReferenceNotFound(arguments.ref) from None
    change = comparison.first
    if change.project not in (None, call.caller.project):
        raise ReferenceNotFound(arguments.ref)
    described = {
        "ref": f"change:{seq}",
        "kind": "change",
        "at": iso(change.at),
        "actor": clip(change.actor, 200),
        "action": f"{change.verb} {change.kind} {clip(change.label, 200)}",
    }
    described = _shortened(described, arguments.max_tokens)
    return _text_result("\n".join(diff_lines(changed_texts(comparison))), arguments, described)


def _description(item: Item, room: int) -> JsonObject:
    """Return what is known about an item beside its content, in at most about `room` tokens."""
    described: JsonObject = {"ref": ref_of(item), "kind": kind_of_item(item)}
    title = item.label if isinstance(item, Prompt) else item.title
    described |= {} if title is None else {"title": title}
    if isinstance(item, Task):
        described |= task_fields(item)
    elif item.description is not None:
        described["description"] = clip(item.description, _DESCRIPTION)
    if isinstance(item, Resource):
        described |= {"name": item.name, "mime_type": item.mime_type}
    if not isinstance(item, LibraryPrompt):
        described |= {"updated_at": iso(item.updated_at), "version": item.version}
    described = _shortened(described, room // 2)
    if isinstance(item, Prompt) and item.tags:
        described["tags"] = take_fitting(item.tags, room // 8)
    if isinstance(item, Prompt | LibraryPrompt) and item.arguments:
        described |= _fitting_list("arguments", list(map(_argument, item.arguments)), room // 4)
    return described


def _shortened(described: JsonObject, room: int) -> JsonObject:
    """Return a description whose longest texts are cut if it has more than `room` tokens."""
    for name in ("description", "title", "name", "actor", "action", "assignee"):
        if json_fits(described, room):
            break
        if name in described:
            described = described | {name: clip(one_line(described[name]), _SHORT)}
    return described


def _fitting_list(name: str, items: Sequence[Any], room: int) -> JsonObject:
    """Return the first items that fit, and the number of the others."""
    shown = take_fitting(items, room)
    rest = len(items) - len(shown)
    return {name: shown} | ({f"more_{name}": rest} if rest else {})


def _argument(argument: Argument) -> JsonObject:
    listed: JsonObject = {"name": argument.name, "required": argument.required}
    if argument.description is not None:
        listed["description"] = clip(argument.description, _DESCRIPTION)
    if argument.choices:
        listed["choices"] = argument.choices
    return listed


def _text_result(text: str, arguments: Read, described: JsonObject) -> ToolResult:
    """Return a piece of a text, and in a second block what is known about it."""
    offset = 0 if arguments.offset is UNSET else arguments.offset
    room = arguments.max_tokens - _ROOM_AROUND_CONTENT
    require_offset(offset, len(text))
    rest = text[offset:]
    is_short = len(rest) * _BYTES + len(encode(described)) <= room
    piece = rest if is_short else text_piece(text, offset, room - json_tokens(described), fits_into)
    blocks = [Text(text=piece)] if text or described["kind"] != "task" else []
    where = piece_members(offset, offset + len(piece), len(text))
    return _result(*blocks, described=described | where)


def _result(*blocks: Content, described: JsonObject) -> ToolResult:
    return ToolResult(content=(*blocks, Text(text=encode(described).decode())), is_error=False)


def _binary_result(
    resource: Resource | _Binary, content: bytes, arguments: Read, described: JsonObject
) -> ToolResult:
    mime_type = resource.mime_type.partition(";")[0].strip().lower()
    described = described | {"bytes": len(content)}
    if arguments.offset is not UNSET:
        return _binary_piece(content, arguments.offset, arguments, described)
    if _is_image(mime_type, content):
        return _result(Image(data=content, mime_type=mime_type), described=described)
    if mime_type.startswith("audio/") and len(content) <= _AUDIO_BYTES:
        return _result(Audio(data=content, mime_type=mime_type), described=described)
    if len(content) <= _bytes_in(resource.uri, arguments, described):
        blob = BlobContents(uri=resource.uri, mime_type=resource.mime_type, blob=content)
        return _result(EmbeddedResource(resource=blob), described=described)
    link = ResourceLink(
        uri=resource.uri,
        name=resource.name,
        mime_type=resource.mime_type,
        size=len(content),
    )
    return _result(link, described=described | {"more": "read with offset=0 to get it as base64 in pieces"})


def _is_image(mime_type: str, content: bytes) -> bool:
    """Whether a content is an image that models accept, and not only called one."""
    beginnings = _IMAGE_BEGINNINGS.get(mime_type)
    if beginnings is None or len(content) > _IMAGE_BYTES or not content.startswith(beginnings):
        return False
    return mime_type != "image/webp" or content[8:12] == b"WEBP"


def _bytes_in(uri: str, arguments: Read, described: JsonObject) -> int:
    """Return how many bytes fit into the result as base64: a multiple of three, which needs no padding.

    A character of base64 is hardly less than a token.
    """
    room = arguments.max_tokens - _ROOM_AROUND_CONTENT
    return (room - json_tokens(described) - estimate_tokens(uri)) // 4 * 3


def _binary_piece(content: bytes, offset: int, arguments: Read, described: JsonObject) -> ToolResult:
    require_offset(offset, len(content))
    end = min(offset + _bytes_in("", arguments, described), len(content))
    described = described | {"encoding": "base64"} | piece_members(offset, end, len(content), "bytes")
    data = b2a_base64(content[offset:end], newline=False).decode()
    return _result(Text(text=data), described=described)
