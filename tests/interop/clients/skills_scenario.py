"""What the official Python clients read of the skills of a server, checked as hosts check it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

Json = dict[str, Any]


class AnyRequest(BaseModel):
    """A request of an extension, which the SDK has no type for."""

    #: The member of the parameters that SDK 2 repeats in a header; none.
    name_param: ClassVar[str | None] = None

    method: str
    params: Json


class AnyResult(BaseModel):
    model_config = ConfigDict(extra="allow")


def content_of(result: Any) -> bytes:
    """Return the bytes of a resource."""
    (contents,) = result.contents
    text = getattr(contents, "text", None)
    return text.encode() if text is not None else base64.b64decode(contents.blob)


async def read_skills(
    capabilities: Json | None,
    send: Callable[[str, Json], Awaitable[Json]],
    read: Callable[[str], Awaitable[bytes]],
) -> Json:
    """List the skills, get each again, and read all their files and root folders."""
    entries: list[Json] = []
    cursor: Json = {}
    while True:
        page = await send("skills/list", cursor)
        entries += page["skills"]
        if page.get("nextCursor") is None:
            break
        cursor = {"cursor": page["nextCursor"]}
    files: dict[str, str] = {}
    folders: Json = {}
    for entry in entries:
        assert (await send("skills/get", {"uri": entry["uri"]}))["skill"] == entry
        for file in entry["resources"]:
            content = await read(file["uri"])
            assert file["size"] == len(content), file
            assert file["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}", file
            files[file["uri"]] = file["digest"]
        root = entry["uri"].removesuffix("/SKILL.md")
        children = await send("resources/directory/read", {"uri": root})
        folders[root] = [child["uri"] for child in children["resources"]]
    extensions = None if capabilities is None else capabilities.get("extensions")
    return {"extensions": extensions, "entries": entries, "files": files, "folders": folders}
