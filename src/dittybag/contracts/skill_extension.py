"""The MCP extension for Agent Skills: its methods, and `skill://` resources next to stored ones.

The names are those of SEP-2640: https://modelcontextprotocol.io/seps/2640-skills-extension. What the methods
do is imported with the first request, because few clients use them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final

from dittybag.contracts.paging import MAX_PAGE_CHARACTERS
from dittybag.contracts.stored_resources import StoredResources
from dittybag.contracts.tool_specs import ServerScope
from dittybag.domain.changes import ChangeNotification
from dittybag.protocol.extensions import Extension, ExtensionMethod
from dittybag.protocol.features import PAGE_SIZE, CompletionRequest, Page
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server
from dittybag.protocol.types import JsonObject, ReadResult, ResourceInfo, ResourceTemplateInfo

if TYPE_CHECKING:
    from dittybag.contracts.skills import Skills

IDENTIFIER: Final = "io.modelcontextprotocol/skills"
SETTINGS: Final[JsonObject] = {"directoryRead": True}
LIST: Final = "skills/list"
GET: Final = "skills/get"
READ_DIRECTORY: Final = "resources/directory/read"
SKILL_METHODS: Final = frozenset({LIST, GET, READ_DIRECTORY})
SCHEME: Final = "skill://"
#: The first part of the paths of stored prompts. No library has this name, because it has a hyphen.
STORED_PROMPTS: Final = "stored-prompts"


class SkillExtension:
    """Offers skills on a server, and notifies its clients when they change."""

    def __init__(self, scope: ServerScope) -> None:
        self._scope = scope
        self._loaded: Skills | None = None

    @property
    def skills(self) -> Skills:
        if self._loaded is None:
            from dittybag.contracts.skills import Skills

            self._loaded = Skills(self._scope)
        return self._loaded

    def extension(self) -> Extension:
        return Extension(
            identifier=IDENTIFIER,
            settings=SETTINGS,
            methods=(
                _method(LIST, self._list, cacheable=True),
                _method(GET, self._get, cacheable=True),
                _method(READ_DIRECTORY, self._read_directory, cacheable=True),
            ),
        )

    def _list(self, ctx: Context) -> Any:
        return self.skills.list(ctx)

    def _get(self, ctx: Context) -> Any:
        return self.skills.get(ctx)

    def _read_directory(self, ctx: Context) -> Any:
        return self.skills.read_directory(ctx)

    def notify_on_changes(self, server: Server) -> None:
        """Notify the clients of a server of changed skills from now on."""

        def on_files(paths: Collection[str]) -> None:
            server.resources_changed()
            for path in paths:
                server.resource_updated(self.skills.uri(path))

        def on_prompts(changes: Sequence[ChangeNotification]) -> None:
            selections: set[int | None] = {item.project for item in changes if item.kind == "prompt"}
            if not selections:
                return
            if self._scope.project in selections:
                selections.add(None)
            # A notification does not say which prompt has changed.
            for uri in server.subscribed_uris():
                if uri.startswith(f"{SCHEME}{STORED_PROMPTS}/"):
                    server.resource_updated(uri, selections)

        self._scope.libraries.subscribe_to_skills(on_files)
        self._scope.workspace.store.subscribe(on_prompts)


def _method(name: str, handle: Callable[[Context], Any], *, cacheable: bool = False) -> ExtensionMethod:
    return ExtensionMethod(name=name, handle=handle, capability="resources", cacheable=cacheable, reads=True)


class ResourcesWithSkills:
    """Lists the `SKILL.md` of library skills after stored resources. See `dittybag.protocol.ResourceSource`.

    The other files of skills are not listed, but can be read; the entry of a skill has their URIs.
    """

    def __init__(self, stored: StoredResources, scope: ServerScope, extension: SkillExtension) -> None:
        self._stored = stored
        self._scope = scope
        self._extension = extension

    def stamp(self, ctx: Context) -> Hashable:
        stored = self._stored.stamp(ctx)
        return None if stored is None else (stored, self._scope.libraries.skills_stamp())

    async def list(self, position: str | int | None, ctx: Context) -> Page[ResourceInfo]:
        if isinstance(position, str):
            return await self._extension.skills.heads(position, PAGE_SIZE, MAX_PAGE_CHARACTERS)
        stored = await self._stored.list(position, ctx)
        if stored.next is not None:
            return stored
        room = PAGE_SIZE - len(stored.items)
        heads = await self._extension.skills.heads("", room, MAX_PAGE_CHARACTERS // 2)
        return Page(stored.items + heads.items, heads.next)

    def templates(self, position: str | int | None, ctx: Context) -> Awaitable[Page[ResourceTemplateInfo]]:
        return self._stored.templates(position, ctx)

    async def read(self, uri: str, ctx: Context) -> ReadResult:
        if uri[: len(SCHEME)].lower() == SCHEME:
            found = await self._extension.skills.read(uri, ctx)
            if found is not None:
                return found
        return await self._stored.read(uri, ctx)

    def complete(self, request: CompletionRequest, ctx: Context) -> Awaitable[Sequence[str]]:
        return self._stored.complete(request, ctx)
