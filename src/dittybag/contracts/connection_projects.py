"""The project of a connection: fixed, that of the client's folder, or the one that it has switched to."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from dittybag.contracts.error_formats import as_protocol_errors
from dittybag.domain.accounts import Principal
from dittybag.domain.changes import ChangeNotification
from dittybag.domain.errors import DittybagError, StorageError
from dittybag.domain.ports import ChosenFolder, ClientFolders, ProjectFolder
from dittybag.domain.projects import NEW_PROJECT
from dittybag.protocol.client_input import ListRoots
from dittybag.protocol.eras.method_table import READING_METHODS
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.protocol.request_context import Context
from dittybag.protocol.wire_errors import InputRejected, InvalidParams
from dittybag.services.workspace import Workspace

if TYPE_CHECKING:
    from dittybag.protocol.dispatch import Session

#: How long a client may take to list its roots; then it has none.
ROOTS_SECONDS: Final = 5.0
#: At most this many roots are looked at.
_MAX_ROOTS: Final = 100

#: The requests whose results depend on the project.
_DEPENDENT: Final = frozenset({*READING_METHODS, "tools/call", "resources/subscribe"})

_log = logging.getLogger("dittybag")


class AutomaticProject:
    """Selects the project of the folder that the client works in, for the one client of a stdio server.

    It is found before the first request that depends on it, and again when links, roots or projects change.
    """

    def __init__(self, workspace: Workspace, folders: ClientFolders, default: int) -> None:
        """`default`: the project for folders that belong to none, such as the home folder."""
        self._workspace = workspace
        self._folders = folders
        self._default = default
        #: Those that the client has listed last.
        self._roots: Sequence[str] = ()
        self._knows_roots = False
        self._asking = asyncio.Lock()
        self._session: Session | None = None
        self._seen: object = None
        self._is_outdated = True
        self._refreshing: set[asyncio.Future[None]] = set()
        #: Whether the client has switched to another project.
        self.is_switched = False
        #: What the project was selected by.
        self.chosen: ChosenFolder | None = None

    @property
    def folder(self) -> ProjectFolder | None:
        """The folder whose project is selected."""
        return None if self.is_switched or self.chosen is None else self.chosen.folder

    def prepare(self, ctx: Context) -> Awaitable[None] | None:
        """Select the project of a request, if it depends on one. See `Server`."""
        self._session = ctx.session
        if self.is_switched:
            return None
        if ctx.method == "subscriptions/listen" and self._is_outdated:
            self._refresh_soon()
        if not _depends_on_project(ctx) or (self._is_current() and not self._needs_roots(ctx)):
            return None
        return self._select(ctx)

    def on_roots_changed(self, session: Session) -> None:
        """Ask for the roots again, when the next request depends on them."""
        if self._knows_roots:
            self._knows_roots = False
            if not self.is_switched:
                notify_of_switch(session)

    def on_changes(self, changes: Sequence[ChangeNotification]) -> None:
        """Select the project again if it may have been created or deleted."""
        self._is_outdated = self._is_outdated or any(item.kind == "project" for item in changes)
        if not self.is_switched and not self._is_current():
            self._refresh_soon()

    async def switch_back(self, session: Session) -> None:
        """Select the project of the folder again."""
        self.is_switched = False
        await self._refresh(session)

    def _is_current(self) -> bool:
        try:
            return not self._is_outdated and self._seen == self._folders.signature()
        except StorageError:
            # Selecting the project reports it.
            return False

    def _needs_roots(self, ctx: Context) -> bool:
        method = ctx.session.server.find_method(ctx.method, ctx.revision.version)
        return (
            not self._knows_roots
            and ctx.can_ask(ListRoots)
            and (not ctx.revision.stateless or (method is not None and method.may_ask))
            and self._folders.from_environment() is None
        )

    @as_protocol_errors
    async def _select(self, ctx: Context) -> None:
        if self._needs_roots(ctx):
            async with self._asking:
                if not self._knows_roots:
                    self._roots = await _ask_for_roots(ctx)
                    self._knows_roots = True
        await self._refresh(ctx.session)

    async def _refresh(self, session: Session) -> None:
        # Before the first read: what changes in the meantime is read the next time.
        self._is_outdated = False
        try:
            seen = self._folders.signature()
            chosen = (
                self._folders.from_environment()
                or self._folders.from_roots(self._roots)
                or self._folders.from_working_folder()
            )
            project = await self._project_of(chosen)
        except BaseException:
            self._is_outdated = True
            raise
        if self.is_switched:
            return
        self.chosen, self._seen = chosen, seen
        before, session.selection = session.selection, project
        if before not in (None, project):
            notify_of_switch(session)

    async def _project_of(self, chosen: ChosenFolder) -> int:
        if chosen.folder is None:
            return self._default
        found = await self._workspace.projects.of_folder(chosen.folder)
        if found is not None:
            return found.id
        # A link is written before its project is committed.
        self._is_outdated |= chosen.folder.linked() is not None
        return NEW_PROJECT

    def _refresh_soon(self) -> None:
        if self._session is not None and not self._refreshing:
            refreshing = asyncio.ensure_future(self._refresh_quietly(self._session))
            self._refreshing.add(refreshing)
            refreshing.add_done_callback(self._refreshing.discard)

    async def _refresh_quietly(self, session: Session) -> None:
        try:
            await self._refresh(session)
        except DittybagError as error:
            _log.warning("the project of the folder could not be found: %s", error)


def _depends_on_project(ctx: Context) -> bool:
    return ctx.method in _DEPENDENT or ctx.session.server.extensions.reads(ctx.method)


async def _ask_for_roots(ctx: Context) -> Sequence[str]:
    """Ask the client for the URIs of its root folders. A client that does not answer has none."""
    try:
        async with asyncio.timeout(ROOTS_SECONDS):
            # With a key of its own, so that the keys of a tool's questions stay the same.
            listed = (await ctx.ask({"roots": ListRoots()}))["roots"]
    except (TimeoutError, InputRejected, InvalidParams):
        return ()
    return tuple(root.uri for root in listed.roots[:_MAX_ROOTS])


class SwitchedProjects:
    """Applies the rights of a user in the project that their session has switched to."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def prepare(self, ctx: Context) -> Awaitable[None] | None:
        """Give a request the role of its user in the selected project. See `Server`."""
        selection = ctx.session.selection
        if selection is None or ctx.principal is None or not _depends_on_project(ctx):
            return None
        return apply_role(self._workspace, ctx, selection)


@as_protocol_errors
async def apply_role(workspace: Workspace, ctx: Context, project: int) -> None:
    """Give a request the role of its user in a project."""
    principal = ctx.principal
    if isinstance(principal, Principal):
        ctx.principal = replace(principal, role=await workspace.accounts.role(principal.user, project))


def notify_of_switch(session: Session) -> None:
    """Notify a client that its lists are those of another project."""
    session.subscriptions.list_changed("prompts")
    session.subscriptions.list_changed("resources")
