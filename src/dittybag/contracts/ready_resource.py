"""The resource `dittybag://tasks/ready`: what a client could claim now."""

from __future__ import annotations

from typing import Final

from dittybag.contracts.agent_task_queue import queue_project
from dittybag.contracts.result_size import MAX_TOKENS, take_fitting
from dittybag.contracts.task_rows import task_row
from dittybag.domain.projects import NEW_PROJECT
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.types import ResourceInfo, ResourceTemplateInfo
from dittybag.services.caller import Caller
from dittybag.services.task_queue import ClaimRequest, ReadyTasks
from dittybag.services.workspace import Workspace

URI: Final = "dittybag://tasks/ready"
_NAME, _TITLE, _TYPE = "ready-tasks", "Ready tasks", "application/json"
_DESCRIPTION: Final = "Tasks that task_next can claim now, best first"

INFO: Final = ResourceInfo(uri=URI, name=_NAME, title=_TITLE, description=_DESCRIPTION, mime_type=_TYPE)

#: The same among the templates, where the list of resources is that of a contract.
TEMPLATE: Final = ResourceTemplateInfo(
    uri_template=URI, name=_NAME, title=_TITLE, description=_DESCRIPTION, mime_type=_TYPE
)

#: At most this many tasks are listed.
_MAX_LISTED: Final = 50


async def ready_content(workspace: Workspace, caller: Caller) -> str:
    """Return the content of the resource for a caller."""
    if caller.project == NEW_PROJECT:
        # A folder has no tasks before its first write.
        found = ReadyTasks([], 0)
    else:
        request = ClaimRequest(project=await queue_project(workspace, caller))
        found = await workspace.task_queue.ready(caller, request, limit=_MAX_LISTED)
    rows = take_fitting([task_row(task) for task in found.tasks], MAX_TOKENS)
    return encode({"total": found.total, "tasks": rows}).decode()
