"""The tools of the profile `agent`: one of each for everything that an agent does."""

from __future__ import annotations

from typing import Any, Final

from dittybag.contracts.agent_context import context
from dittybag.contracts.agent_history import delete, history, undo
from dittybag.contracts.agent_prompts import save_prompt, use_prompt
from dittybag.contracts.agent_read import read
from dittybag.contracts.agent_resources import save_resource
from dittybag.contracts.agent_search import search
from dittybag.contracts.agent_task_queue import task_done, task_next, task_release
from dittybag.contracts.agent_tasks import task_add, task_list, task_update
from dittybag.contracts.project_tool import project
from dittybag.contracts.tool_specs import ToolSpec

TOOLS: Final[tuple[ToolSpec[Any], ...]] = (
    context,
    search,
    read,
    use_prompt,
    save_prompt,
    save_resource,
    delete,
    task_add,
    task_list,
    task_update,
    task_next,
    task_done,
    task_release,
    history,
    undo,
    project,
)
