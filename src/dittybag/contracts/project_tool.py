"""The tool `project`: lists and creates projects, and switches the project of a connection."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from dittybag.contracts.connection_projects import apply_role, notify_of_switch
from dittybag.contracts.error_formats import bounded_json_error
from dittybag.contracts.tool_specs import (
    SELECTS,
    ServerScope,
    ToolCall,
    array_schema,
    json_result,
    object_schema,
    tool,
)
from dittybag.domain.accounts import Principal
from dittybag.domain.errors import Invalid, NotAllowed, Problem, ProjectGone, ProjectNotFound
from dittybag.domain.projects import NEW_PROJECT, Project, ProjectSize
from dittybag.protocol.request_context import Context
from dittybag.protocol.types import JsonObject, ToolResult

#: At most this many projects are listed.
_MAX_LISTED: Final = 50


class UseProject(Struct, kw_only=True, forbid_unknown_fields=True):
    action: Literal["list", "create", "switch"] = "list"
    name: (
        Annotated[str, Meta(description="Project to create or switch to; without it, switch goes back")]
        | UnsetType
    ) = UNSET


@tool(
    title="Projects",
    description=(
        "Use to see which project you work in and why, to list or create projects, "
        "or to switch this connection to another one"
    ),
    arguments=UseProject,
    toolset="search",
    error_format=bounded_json_error,
    output={
        **object_schema(
            current="string",
            why="string",
            projects=array_schema(
                object_schema(name="string", prompts="integer", resources="integer", tasks="integer")
            ),
            more="string",
            created="string",
        ),
        "required": ["current", "why"],
    },
    effect=SELECTS,
)
async def project(call: ToolCall, arguments: UseProject) -> ToolResult:
    name = None if arguments.name is UNSET else arguments.name
    if arguments.action == "create":
        return json_result({**await _current(call), "created": await _create(call, name)})
    if arguments.action == "switch":
        await _switch(call, name)
        return json_result(await _current(call))
    return json_result({**await _current(call), **await _list(call, name or "")})


async def _create(call: ToolCall, name: str | None) -> str:
    if name is None:
        raise Invalid([Problem("name", "name is required to create a project")])
    if call.scope.read_only:
        raise NotAllowed("This server is read-only: it creates no projects")
    return (await call.workspace.projects.create_for(call.caller, name)).name


async def _switch(call: ToolCall, name: str | None) -> None:
    session = call.ctx.session
    if session.is_temporary:
        raise NotAllowed(
            "This request belongs to no session, so no project can be remembered for it. Connect to a server "
            "that was started with `dittybag serve --project NAME`, or use a client that opens sessions"
        )
    automatic = call.scope.automatic
    if name is None and automatic is not None:
        await automatic.switch_back(session)
        return
    before, session.selection = session.selection, None if name is None else (await _find(call, name)).id
    if automatic is not None:
        automatic.is_switched = True
    await apply_role(call.workspace, call.ctx, call.scope.project_of(call.ctx))
    if session.selection != before:
        _notify(call.ctx)


def _notify(ctx: Context) -> None:
    """Notify the client of its switch. Later changes are for users whose membership need not be checked."""
    session, principal = ctx.session, ctx.principal
    if isinstance(principal, Principal):
        session.set_principal(session.principal, receives_notifications=principal.sees_project)
        notify_of_switch(session)
        receives = principal.sees_project and session.selection is None
        session.set_principal(session.principal, receives_notifications=receives)
    else:
        notify_of_switch(session)


async def _find(call: ToolCall, name: str) -> Project:
    try:
        return await call.workspace.projects.find_visible(call.caller, name)
    except ProjectNotFound as error:
        raise Invalid(
            [Problem("name", f"{error}. Use the action list to see all, create to create it")]
        ) from error


async def _list(call: ToolCall, prefix: str) -> JsonObject:
    sizes = await call.workspace.projects.all(call.caller)
    found = [size for size in sizes if size.project.name.casefold().startswith(prefix.casefold())]
    listed: JsonObject = {"projects": [_summary(size) for size in found[:_MAX_LISTED]]}
    if len(found) > _MAX_LISTED:
        listed["more"] = f"{len(found) - _MAX_LISTED} more; give name to list those that begin with it"
    return listed


def _summary(size: ProjectSize) -> dict[str, Any]:
    return {
        "name": size.project.name,
        "prompts": size.prompts,
        "resources": size.resources,
        "tasks": size.tasks,
    }


async def _current(call: ToolCall) -> JsonObject:
    """Return the name of the connection's project, and why it is that one."""
    # The call itself may have switched.
    caller = call.scope.caller(call.ctx)
    try:
        selected = await call.workspace.projects.of_caller(caller)
    except ProjectGone:
        return {
            "current": "",
            "why": "the selected project was deleted, or you cannot see it: switch to another",
        }
    return {"current": selected.name, "why": await _reason(call.scope, call.ctx, selected)}


async def _reason(scope: ServerScope, ctx: Context, selected: Project) -> str:
    automatic = scope.automatic
    if automatic is None or automatic.is_switched:
        return (
            "the project of this server"
            if ctx.session.selection is None
            else "switched to by this connection"
        )
    if automatic.chosen is None or (folder := automatic.folder) is None:
        return "you work in no folder that has a project of its own"
    where = f"the folder {folder.path} (from {automatic.chosen.source})"
    if selected.id != NEW_PROJECT:
        return f"linked to {where}"
    wanted = next(folder.names())
    if wanted == selected.name:
        return f"created by the first write, for {where}"
    return (
        f"created by the first write, for {where}. Project '{wanted}' exists, but is not linked to it: "
        "it here, switch to it, or link it with `dittybag project link`"
    )
