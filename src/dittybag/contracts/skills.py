"""Agent Skills for clients: the skills of libraries, and stored prompts as skills."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dittybag.contracts.error_formats import as_protocol_errors
from dittybag.contracts.paging import MAX_PAGE_CHARACTERS, take_page
from dittybag.contracts.prompt_skills import PromptSkills
from dittybag.contracts.skill_extension import STORED_PROMPTS
from dittybag.contracts.skill_uris import path_of, uri_of
from dittybag.contracts.stored_prompts import StoredPrompts
from dittybag.contracts.stored_resources import modified_at
from dittybag.contracts.tool_specs import ServerScope
from dittybag.domain.errors import clip
from dittybag.domain.skills import SKILL_FILE, Skill, SkillFile
from dittybag.protocol.cursors import Position
from dittybag.protocol.features import PAGE_SIZE, Page, slice_page, to_read_result
from dittybag.protocol.method_handlers import list_page, required_string
from dittybag.protocol.request_context import Context
from dittybag.protocol.types import JsonObject, ReadResult, ResourceInfo, ResourceList, Result, WireStruct
from dittybag.protocol.wire_errors import InvalidParams

_DIRECTORY: Final = "inode/directory"
#: Characters of a manifest entry, apart from its URI.
_FILE_CHARACTERS: Final = 120


class SkillResource(WireStruct, frozen=True, kw_only=True):
    """A file in the manifest of a skill."""

    uri: str
    digest: str
    size: int


class SkillEntry(WireStruct, frozen=True, kw_only=True):
    """A skill: its front matter, and a manifest of all its files."""

    uri: str
    frontmatter: JsonObject
    resources: tuple[SkillResource, ...]


class SkillList(Result, frozen=True, kw_only=True):
    skills: tuple[SkillEntry, ...]
    next_cursor: str | None = None


class SkillResult(Result, frozen=True, kw_only=True):
    skill: SkillEntry


class Skills:
    """Lists skills, and reads their files. Paths of libraries begin with the name of a library."""

    def __init__(self, scope: ServerScope) -> None:
        self._libraries = scope.libraries
        self._prompts = PromptSkills(scope)
        self._stored_prompts = StoredPrompts(scope)

    def uri(self, path: str) -> str:
        return uri_of(path)

    # Methods of the extension

    def list(self, ctx: Context) -> Any:
        """Handle `skills/list`."""
        prompts = self._stored_prompts.stamp(ctx)
        stamp = None if prompts is None else (prompts, self._libraries.skills_stamp())
        return list_page(ctx, stamp, self._page, SkillList, "skills")

    @as_protocol_errors
    async def get(self, ctx: Context) -> SkillResult:
        """Handle `skills/get`."""
        uri = required_string(ctx, "uri")
        folder, _, file = (path_of(uri) or "").rpartition("/")
        skill = await self._around(folder, ctx) if file == SKILL_FILE else None
        if skill is None or skill.path != folder:
            raise InvalidParams(f"No skill is served at {clip(uri)}", data={"uri": clip(uri)})
        return SkillResult(skill=_entry(skill))

    @as_protocol_errors
    async def read_directory(self, ctx: Context) -> bytes:
        """Handle `resources/directory/read`."""
        uri = required_string(ctx, "uri")
        path = path_of(uri)
        skill = None if path is None else await self._around(path, ctx)
        children = () if skill is None or path is None else _children(skill, path)
        if not children:
            raise InvalidParams(f"{clip(uri)} is not a directory of a skill", data={"uri": clip(uri)})
        found = list_page(
            ctx,
            None,
            lambda position, _: slice_page(children, position, PAGE_SIZE),
            ResourceList,
            "resources",
        )
        return found if isinstance(found, bytes) else await found

    # Resources

    @as_protocol_errors
    async def read(self, uri: str, ctx: Context) -> ReadResult | None:
        """Return the content of a file of a skill; `None` if there is none at this URI."""
        path = path_of(uri)
        if path is None:
            return None
        if not _is_stored_prompt(path):
            found = await self._libraries.read_skill_file(path)
            return None if found is None else _contents(uri, *found)
        folder, _, file = path.rpartition("/")
        stored = await self._prompts.read(folder, ctx) if file == SKILL_FILE else None
        return None if stored is None else _contents(uri, *stored)

    @as_protocol_errors
    async def heads(self, after: str, limit: int, max_characters: int) -> Page[ResourceInfo]:
        """Return the `SKILL.md` of each library skill after the path `after` as resources."""
        if limit <= 0:
            return Page((), "")
        skills, more = await self._libraries.skills(after, limit)
        page, cut = take_page(skills, _head_length, limit=limit, max_characters=max_characters)
        infos = tuple(_info(skill, skill.head) for skill in page)
        return Page(infos, (page[-1].path if page else after) if more or cut else None)

    # The skills of libraries and of the store

    @as_protocol_errors
    async def _page(self, position: Position | None, ctx: Context) -> Page[SkillEntry]:
        entries: tuple[SkillEntry, ...] = ()
        used = 0
        if not isinstance(position, int):
            skills, more = await self._libraries.skills(position or "", PAGE_SIZE)
            page, cut = take_page(skills, _length)
            entries = tuple(map(_entry, page))
            used = sum(map(_length, page))
            if more or cut:
                return Page(entries, page[-1].path)
            position = 0
        room = PAGE_SIZE - len(entries)
        if room == 0 or used > MAX_PAGE_CHARACTERS // 2:
            return Page(entries, position)
        stored, after = await self._prompts.page(position, room, ctx)
        return Page((*entries, *map(_entry, stored)), after)

    async def _around(self, path: str, ctx: Context) -> Skill | None:
        """Return the innermost skill at a path or around it."""
        if not _is_stored_prompt(path):
            return await self._libraries.skill_around(path)
        return await self._prompts.find(path, ctx)


def _is_stored_prompt(path: str) -> bool:
    return path.partition("/")[0] == STORED_PROMPTS


def _entry(skill: Skill) -> SkillEntry:
    files = (
        SkillResource(uri=uri_of(f"{skill.path}/{file.path}"), digest=f"sha256:{file.sha256}", size=file.size)
        for file in skill.files
    )
    return SkillEntry(
        uri=uri_of(f"{skill.path}/{SKILL_FILE}"), frontmatter=skill.front_matter, resources=tuple(files)
    )


def _children(skill: Skill, path: str) -> tuple[ResourceInfo, ...]:
    """Return the direct children of a directory of a skill; empty if there is no such directory."""
    inside = path[len(skill.path) + 1 :]
    prefix = f"{inside}/" if inside else ""
    files = [file for file in skill.files if file.path.startswith(prefix)]
    names = dict.fromkeys(file.path[len(prefix) :].partition("/")[0] for file in files)
    known = {file.path: file for file in files}
    return tuple(
        _info(skill, known[prefix + name])
        if prefix + name in known
        else ResourceInfo(uri=uri_of(f"{path}/{name}"), name=name, mime_type=_DIRECTORY)
        for name in names
    )


def _info(skill: Skill, file: SkillFile) -> ResourceInfo:
    is_head = file.path == SKILL_FILE
    return ResourceInfo(
        uri=uri_of(f"{skill.path}/{file.path}"),
        name=skill.name if is_head else file.path.rpartition("/")[2],
        description=skill.description if is_head else None,
        mime_type=file.mime_type,
        size=file.size,
        annotations=modified_at(file.modified_at),
    )


def _contents(uri: str, file: SkillFile, content: bytes) -> ReadResult:
    """Return the content of a file, so that the client gets exactly its bytes."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return to_read_result(content, uri, file.mime_type)
    return to_read_result(content if "\0" in text else text, uri, file.mime_type)


def _length(skill: Skill) -> int:
    files = sum(len(skill.path) + len(file.path) + _FILE_CHARACTERS for file in skill.files)
    return files + _text_length(skill.front_matter) + 100


def _text_length(value: Any) -> int:
    """Return about how many characters a value has in JSON."""
    if isinstance(value, str):
        return len(value) + 4
    if isinstance(value, dict):
        return sum(len(name) + 6 + _text_length(item) for name, item in value.items())
    if isinstance(value, Sequence):
        return sum(map(_text_length, value)) + 4
    return 20


def _head_length(skill: Skill) -> int:
    return len(skill.path) + len(skill.description) + 300
