"""Profiles: which tools, prompts and capabilities a client sees. Each profile is a row in a table."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any, Final, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from dittybag import __version__
from dittybag.contracts.connection_projects import SwitchedProjects
from dittybag.contracts.error_formats import unusable_prompt, unusable_prompt_of_contracts
from dittybag.contracts.library_prompts import (
    CombinedPrompts,
    LibraryPrompts,
    MissingPromptFormatter,
    PromptFormatter,
    prompt_info,
    twig_prompt_info,
)
from dittybag.contracts.server_icon import ICONS
from dittybag.contracts.skill_extension import ResourcesWithSkills, SkillExtension
from dittybag.contracts.stored_prompts import StoredPrompts, UnusablePromptFormatter
from dittybag.contracts.stored_resources import MissingResourceFormatter, ReadyListing, StoredResources
from dittybag.contracts.tool_specs import SELECTS, ServerScope, ToolSpec, listed_schema
from dittybag.domain import resources
from dittybag.domain.accounts import Principal
from dittybag.domain.changes import ChangeNotification
from dittybag.domain.errors import clip
from dittybag.protocol.eras.versions import NEWEST_HANDSHAKE, V2024_11_05, V2025_06_18
from dittybag.protocol.features import PromptSource
from dittybag.protocol.server import Observer, Preparation, Server, ServerLimits
from dittybag.protocol.types import Capabilities, Icon, ListFeature, ResourceFeature
from dittybag.protocol.wire_errors import InvalidParams, MethodNotFound, UnknownResource

#: Large enough for the largest resource as base64 or with every line break escaped, so that the tool, not the
#: transport, rejects content that is too large.
MESSAGE_BYTES: Final = 12 * 1024 * 1024
#: Large enough for the largest resource with every character escaped (`\u0001` has 6 bytes), so that
#: whatever is stored can be read.
RESPONSE_BYTES: Final = 6 * resources.CONTENT_BYTES + 1024 * 1024

#: Server instructions: sentences, each shown only if the tools that it mentions are visible. Clients that
#: load tools on demand decide by the first words whether to look at this server at all.
_WHEN: Final = (
    (),
    (
        "Use Dittybag when the user mentions a saved prompt, note, document, decision or task, wants to keep "
        "something for later or for other agents, or asks what was done before: it stores prompts, prompt "
        "libraries, resources and tasks that people and agents share."
    ),
)
_AGENT_INSTRUCTIONS: Final = (
    _WHEN,
    (("search",), "Start with `search`: it finds all kinds by words in any order."),
    (("read",), "`read` returns the content of any ref, long ones in pieces."),
    (("use_prompt",), "`use_prompt` fills in the arguments of a prompt; follow the text that it returns."),
    (
        ("save_prompt", "save_resource"),
        (
            "Keep reusable instructions with `save_prompt`, and documents, notes or files with "
            "`save_resource`; both create or update in one call."
        ),
    ),
    (("task_add", "task_list"), "Plan with `task_add` and `task_list`."),
    (
        ("task_next", "task_done"),
        "Claim work with `task_next`, name its fence in later calls, and finish it with `task_done`.",
    ),
    (
        (),
        "Every tool takes the same refs: a name, library:prompt, URI, task:12, UUID or change:15.",
    ),
    (
        ("history", "undo"),
        "Every change is logged: `history` shows who changed what, and `undo` takes a change back.",
    ),
)
_INSTRUCTIONS: Final = (
    _WHEN,
    (("read",), "`read` returns the content of anything by its name, URI or id, long ones in pieces."),
    (("use_prompt",), "`use_prompt` fills in the arguments of a prompt, also of a library."),
    (("search",), "`search` finds all of them by words in any order; use it before you create something."),
    (
        ("task_next", "task_done"),
        "Claim shared tasks with `task_next`, name the fence, and finish them with `task_done`.",
    ),
    (
        ("list_changes", "undo_change"),
        "Every change is logged: `list_changes` lists changes, `undo_change` undoes one.",
    ),
)


class Profile(Struct, frozen=True, kw_only=True):
    """A face of the store: its tools, capabilities, server name and error formats."""

    name: str
    server_name: str
    server_version: str
    #: The revision offered to clients that request an unknown one.
    default_version: str
    #: The revision in the response to `HEAD /`.
    advertised_version: str = NEWEST_HANDSHAKE
    #: The module with its tools.
    tool_module: str | None = None
    capabilities: Capabilities
    #: Which prompts are listed: those of the project, those of the libraries, or both.
    prompts: Literal["stored", "library", "both"] = "stored"
    library_prompt: PromptFormatter = prompt_info
    missing_prompt: MissingPromptFormatter = lambda error: InvalidParams(
        f"Prompt '{clip(error.name)}' not found"
    )
    unusable_prompt: UnusablePromptFormatter = unusable_prompt
    missing_resource: MissingResourceFormatter = lambda uri, project: UnknownResource(
        uri, _not_found(uri, project)
    )
    own_templates: bool = False
    #: Whether prompts with roles are several messages, and users are asked for missing arguments.
    chat_prompts: bool = False
    #: Whether `resources/list` also has the resource templates.
    templates_in_list: bool = False
    #: Whether `resources/list` says when a resource was changed last.
    last_modified: bool = False
    #: Where the ready tasks are listed, if clients can claim tasks. The profile `all` has the list of
    #: resources of the mcpkg contract, so that they are among its templates.
    ready_tasks: ReadyListing | None = None
    #: Whether skills are offered, by the extension of the protocol.
    skills: bool = False
    #: The name and the description for people, and the icon.
    title: str | None = None
    description: str | None = None
    icons: tuple[Icon, ...] | None = None
    #: Sentences, each with the tools that it mentions.
    instructions: tuple[tuple[tuple[str, ...], str], ...] = ()

    @property
    def uses_libraries(self) -> bool:
        return self.prompts != "stored" or self.skills

    @property
    def tools(self) -> tuple[ToolSpec[Any], ...]:
        """Its tools, imported on first use because a server has one profile."""
        if self.tool_module is None:
            return ()
        tools: tuple[ToolSpec[Any], ...] = import_module(self.tool_module).TOOLS
        return tools

    @property
    def notifies(self) -> bool:
        """Whether clients are notified of changes."""
        lists = (self.capabilities.prompts, self.capabilities.resources)
        return any(feature is not None and feature.list_changed for feature in lists)


def _not_found(uri: str, project: str) -> str:
    return f"Resource '{uri}' not found in project '{project}'"


_LIST_CHANGED_FALSE: Final = ListFeature(list_changed=False)
_LIST_CHANGED_TRUE: Final = ListFeature(list_changed=True)
_ALL: Final = Profile(
    name="all",
    server_name="dittybag",
    server_version=__version__,
    default_version=NEWEST_HANDSHAKE,
    tool_module="dittybag.contracts.native",
    prompts="both",
    capabilities=Capabilities(
        tools=_LIST_CHANGED_TRUE,
        prompts=_LIST_CHANGED_TRUE,
        resources=ResourceFeature(subscribe=True, list_changed=True),
        completions={},
    ),
    own_templates=True,
    chat_prompts=True,
    unusable_prompt=unusable_prompt_of_contracts,
    last_modified=True,
    ready_tasks="template",
    skills=True,
    title="Dittybag",
    description="Prompts, prompt libraries, resources, skills and tasks that people and agents share",
    icons=ICONS,
    instructions=_INSTRUCTIONS,
)

PROFILES: Final = {
    profile.name: profile
    for profile in (
        _ALL,
        replace(
            _ALL,
            name="agent",
            tool_module="dittybag.contracts.agent",
            unusable_prompt=unusable_prompt,
            ready_tasks="resource",
            instructions=_AGENT_INSTRUCTIONS,
        ),
        Profile(
            name="mcpkg",
            server_name="mcpkg",
            server_version="0.1.0",
            default_version=V2024_11_05,
            tool_module="dittybag.contracts.mcpkg",
            capabilities=Capabilities(
                prompts=_LIST_CHANGED_FALSE,
                resources=ResourceFeature(list_changed=False),
                tools=_LIST_CHANGED_FALSE,
            ),
            missing_resource=lambda uri, project: InvalidParams(_not_found(uri, project)),
            templates_in_list=True,
        ),
        Profile(
            name="twig",
            server_name="twig",
            server_version="0.1.0",
            default_version=V2024_11_05,
            capabilities=Capabilities(prompts=_LIST_CHANGED_TRUE),
            prompts="library",
            library_prompt=twig_prompt_info,
            missing_prompt=lambda error: MethodNotFound(data={"details": str(error)}),
            unusable_prompt=lambda error: InvalidParams(data={"details": str(error)}),
        ),
        Profile(
            name="tasks",
            server_name="Task Manager MCP",
            server_version="0.1.0",
            default_version=V2025_06_18,
            advertised_version=V2025_06_18,
            tool_module="dittybag.contracts.task_manager",
            capabilities=Capabilities(tools=ListFeature()),
        ),
        Profile(
            name="prompt-store",
            server_name="prompt-store",
            server_version="0.1.0",
            default_version=NEWEST_HANDSHAKE,
            tool_module="dittybag.contracts.prompt_store",
            capabilities=Capabilities(tools=_LIST_CHANGED_TRUE),
        ),
    )
}


#: What the clients of a server may change: everything, only their own tasks, or nothing.
Access = Literal["write", "own", "read"]
ACCESSES: Final[tuple[Access, ...]] = get_args(Access)


def access_of(principal: Principal | None) -> Access:
    """Return what a principal may change. Without authentication (`None`), that is everything."""
    if principal is None or principal.changes_project:
        return "write"
    return "own" if principal.changes_own else "read"


def visible_tools(
    profile: Profile, *, read_only: bool, toolsets: Collection[str], access: Access = "write"
) -> list[ToolSpec[Any]]:
    """Return the tools of a profile that the given restrictions leave visible."""
    access = "read" if read_only else access
    toolsets = frozenset(toolsets)
    return [
        tool
        for tool in profile.tools
        if (
            not tool.effect.writes
            or access == "write"
            or (access == "own" and _USER_TOOLSET in tool.toolsets)
        )
        and (not toolsets or not toolsets.isdisjoint(tool.toolsets))
    ]


#: Tasks belong to users, not to projects.
_USER_TOOLSET: Final = "tasks"


def build_server(
    profile: Profile,
    scope: ServerScope,
    *,
    read_only: bool = False,
    toolsets: Collection[str] = (),
    access: Access = "write",
    observe: Observer | None = None,
    state_key: bytes | None = None,
) -> Server:
    """Build a server that serves a scope through a profile, and closes the scope when it stops.

    `state_key`: the key for request states that all servers behind one address share.
    """
    scope = replace(scope, has_chat_prompts=profile.chat_prompts)
    tools = visible_tools(profile, read_only=read_only, toolsets=toolsets, access=access)
    visible = {tool.name for tool in tools}
    instructions = [sentence for needed, sentence in profile.instructions if visible.issuperset(needed)]
    stored = StoredResources(
        scope,
        profile.missing_resource,
        own_templates=profile.own_templates,
        templates_in_list=profile.templates_in_list,
        last_modified=profile.last_modified,
        ready_tasks=profile.ready_tasks if "task_list" in visible else None,
        task_packs="context" in visible,
    )
    skills = SkillExtension(scope) if profile.skills else None
    server = Server(
        profile.server_name,
        profile.server_version,
        title=profile.title,
        description=profile.description,
        icons=profile.icons,
        instructions=" ".join(instructions) or None,
        prompts=_prompts(profile, scope),
        resources=stored if skills is None else ResourcesWithSkills(stored, scope, skills),
        capabilities=profile.capabilities,
        default_version=profile.default_version,
        limits=ServerLimits(message_bytes=MESSAGE_BYTES, response_bytes=RESPONSE_BYTES),
        lifespan=lambda: _lifespan(profile, scope, server),
        observe=observe,
        state_key=state_key,
        prepare=_project_selection(profile, scope),
        listed_schema=listed_schema,
    )
    if scope.automatic is not None:
        server.on_roots_changed = scope.automatic.on_roots_changed
    for tool in tools:
        server.add(tool.bind(scope))
    if profile.ready_tasks is not None:
        server.on_end = lambda session: scope.claims.release(
            scope.workspace,
            scope.caller_of_session(session),
            session.connection,
            is_shared=session.is_shared,
        )
    if skills is not None:
        server.add_extension(skills.extension())
    return server


def _project_selection(profile: Profile, scope: ServerScope) -> Preparation | None:
    """Return what selects the project of each request; `None` if the server has one project."""
    if scope.automatic is not None:
        return scope.automatic.prepare
    return (
        SwitchedProjects(scope.workspace).prepare
        if any(tool.effect is SELECTS for tool in profile.tools)
        else None
    )


def _prompts(profile: Profile, scope: ServerScope) -> PromptSource:
    stored = StoredPrompts(scope, profile.unusable_prompt)
    if profile.prompts == "stored":
        return stored
    library = LibraryPrompts(scope, profile.library_prompt, profile.missing_prompt, profile.unusable_prompt)
    return library if profile.prompts == "library" else CombinedPrompts(stored, library)


@asynccontextmanager
async def _lifespan(profile: Profile, scope: ServerScope, server: Server) -> AsyncIterator[None]:
    store = scope.workspace.store
    notify_on_changes(profile, scope, server)
    if profile.uses_libraries:
        scope.libraries.start()
    try:
        yield
    finally:
        await scope.libraries.close()
        scope.templates.close()
        await store.close()


def notify_on_changes(profile: Profile, scope: ServerScope, server: Server) -> None:
    """Make a server notify its clients of every change in its scope from now on."""
    if scope.automatic is not None:
        scope.workspace.store.subscribe(scope.automatic.on_changes)
    if profile.notifies:
        scope.workspace.store.subscribe(lambda changes: notify_clients(server, scope, changes))
    if profile.prompts != "stored":
        scope.libraries.subscribe(server.prompts_changed)
    if profile.skills:
        SkillExtension(scope).notify_on_changes(server)


def notify_clients(server: Server, scope: ServerScope, changes: Sequence[ChangeNotification]) -> None:
    """Notify a server's clients of changes in the projects that they have selected."""
    for selected, here in _by_project(changes).items():
        selections = (selected, None) if selected == scope.project else (selected,)
        if any(item.kind == "prompt" for item in here):
            server.prompts_changed(selections)
        resources = [item for item in here if item.kind == "resource"]
        if any(item.listed for item in resources):
            server.resources_changed(selections)
        for uri in dict.fromkeys(uri for item in resources for uri in item.uris):
            server.resource_updated(uri, selections)


def _by_project(changes: Sequence[ChangeNotification]) -> dict[int, list[ChangeNotification]]:
    found: dict[int, list[ChangeNotification]] = {}
    for item in changes:
        if item.project is not None:
            found.setdefault(item.project, []).append(item)
    return found
