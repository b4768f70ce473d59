"""What the tools that create or update in one call have in common: versions, retries and their answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Annotated, Final, TypeVar

from msgspec import UNSET, Meta, UnsetType

from dittybag.contracts.tool_specs import array_schema
from dittybag.domain.errors import Conflict, Outdated, PromptNotFound, ResourceNotFound, clip
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.protocol.types import JsonObject

T = TypeVar("T")

#: The version that the caller has read; 0 if the entity must not exist.
IfVersion = Annotated[int, Meta(ge=0)]

#: An entity that others change at the same time is read again this often.
_ATTEMPTS: Final = 10

SAVED: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "ref": {"type": "string"},
        "created": {"type": "boolean"},
        "version": {"type": "integer"},
        "arguments": array_schema({"type": "string"}),
        "note": {"type": "string"},
    },
    "required": ["ref", "created", "version"],
}


def require_if_version(
    kind: str, name: str, entity: Prompt | Resource | None, if_version: int | UnsetType
) -> None:
    """Raise `Outdated` if `if_version` is given and not the current version, which is 0 if there is none."""
    current = 0 if entity is None else entity.version
    if if_version is not UNSET and if_version != current:
        raise Outdated(kind, clip(name), version=current)


async def retry_if_changed(save: Callable[..., Awaitable[T]], if_version: int | UnsetType) -> T:
    """Save again if someone else changed the entity in the meantime, unless a version is required.

    `save` is told by `is_last` that this attempt must not depend on the version that it reads.
    """
    if if_version is not UNSET:
        return await save()
    for _ in range(_ATTEMPTS - 1):
        with suppress(Conflict, PromptNotFound, ResourceNotFound):
            return await save()
    return await save(is_last=True)
