"""The revision that introduced each field, and the conversion of values to older revisions."""

from __future__ import annotations

from typing import Any, Final, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from dittybag.protocol.eras.versions import (
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    VERSIONS,
)
from dittybag.protocol.types import (
    Annotations,
    Audio,
    BlobContents,
    Capabilities,
    Content,
    EmbeddedResource,
    Image,
    Implementation,
    PromptArgument,
    PromptInfo,
    PromptList,
    PromptMessage,
    PromptResult,
    ReadResult,
    ResourceInfo,
    ResourceLink,
    ResourceList,
    ResourceTemplateInfo,
    ResourceTemplateList,
    Text,
    TextContents,
    ToolInfo,
    ToolList,
    ToolResult,
)

_METADATA: Final = {"title": V2025_06_18, "meta": V2025_06_18, "icons": V2025_11_25}

#: Fields introduced after the first revision, all optional. Fields not listed exist in every revision.
SINCE: Final[dict[type[Struct], dict[str, str]]] = {
    Annotations: {"last_modified": V2025_06_18},
    Audio: {"meta": V2025_06_18},
    BlobContents: {"meta": V2025_06_18},
    # Extensions are negotiated in older revisions, too: capabilities were never a closed set.
    Capabilities: {"completions": V2025_03_26},
    EmbeddedResource: {"meta": V2025_06_18},
    Image: {"meta": V2025_06_18},
    Implementation: {
        "title": V2025_06_18,
        "description": V2025_11_25,
        "website_url": V2025_11_25,
        "icons": V2025_11_25,
    },
    PromptArgument: {"title": V2025_06_18},
    PromptInfo: _METADATA,
    ResourceInfo: _METADATA,
    ResourceLink: {"icons": V2025_11_25},
    ResourceTemplateInfo: _METADATA,
    Text: {"meta": V2025_06_18},
    TextContents: {"meta": V2025_06_18},
    ToolInfo: {**_METADATA, "annotations": V2025_03_26, "output_schema": V2025_06_18},
    ToolResult: {"structured_content": V2025_06_18},
}

#: Content types introduced later. Clients of older revisions get them as text.
_CONTENT_SINCE: Final[dict[type[Struct], str]] = {Audio: V2025_03_26, ResourceLink: V2025_06_18}

#: Fields whose values may also need conversion.
_NESTED: Final[dict[type[Struct], tuple[str, ...]]] = {
    EmbeddedResource: ("resource", "annotations"),
    Audio: ("annotations",),
    Image: ("annotations",),
    Text: ("annotations",),
    ResourceLink: ("annotations",),
    ResourceInfo: ("annotations",),
    ResourceTemplateInfo: ("annotations",),
    PromptInfo: ("arguments",),
    PromptList: ("prompts",),
    ReadResult: ("contents",),
    ResourceList: ("resources",),
    ResourceTemplateList: ("resource_templates",),
    ToolList: ("tools",),
    PromptMessage: ("content",),
    PromptResult: ("messages",),
    ToolResult: ("content",),
}

#: Per revision: the fields to remove from each type.
_REMOVED: Final[dict[str, dict[type[Struct], tuple[str, ...]]]] = {
    version: {
        kind: removed
        for kind, since in SINCE.items()
        if (removed := tuple(name for name, first in since.items() if first > version))
    }
    for version in VERSIONS
}

_NO_ANNOTATIONS: Final = Annotations()

#: Types that describe a server and do not nest other types.
_SERVER_DESCRIPTIONS: Final = frozenset({Capabilities, Implementation})


def _changed_types(version: str) -> frozenset[type[Struct]]:
    removed = frozenset(_REMOVED[version])
    return removed | frozenset(_NESTED) if removed - _SERVER_DESCRIPTIONS else removed


#: Per revision: the types that may need conversion.
_CHANGED_TYPES: Final = {version: _changed_types(version) for version in VERSIONS}

T = TypeVar("T")


def downgrade(value: T, version: str) -> T:
    """Return `value` without the fields and content types that `version` does not have."""
    return cast("T", _downgrade(value, version)) if type(value) in _CHANGED_TYPES[version] else value


def _downgrade(value: Any, version: str) -> Any:
    kind = type(value)
    if kind is tuple:
        return tuple(_downgrade(item, version) for item in value)
    if _CONTENT_SINCE.get(kind, version) > version:
        return _as_text(value)
    changes: dict[str, Any] = {}
    for name in _NESTED.get(kind, ()):
        inner = getattr(value, name)
        if inner is not None and (fitted := _downgrade(inner, version)) is not inner:
            # Without the annotations that the revision does not have, there may be none.
            changes[name] = None if fitted == _NO_ANNOTATIONS else fitted
    for name in _REMOVED[version].get(kind, ()):
        if getattr(value, name) is not None:
            changes[name] = None
    return replace(value, **changes) if changes else value


def _as_text(content: Content) -> Text:
    if isinstance(content, ResourceLink):
        label = content.title or content.name
        return Text(text=f"{label}: {content.uri}")
    assert isinstance(content, Audio)
    return Text(text=f"[{content.mime_type} audio, {len(content.data)} bytes]")
