"""The tab Context of a task: the pack that an agent would get for it now."""

from __future__ import annotations

from dittybag.domain.errors import TaskNotFound
from dittybag.domain.queries import PackRequest
from dittybag.web.browser_requests import WebRequest, WebResponse
from dittybag.web.pages.pack_preview import pack_text, show_pack
from dittybag.web.pages.task_form import task_tabs
from dittybag.web.task_display import STATUS_NAMES
from dittybag.web.template_rendering import render_page


async def show_context(request: WebRequest) -> WebResponse:
    number = request.number_in_path("id")
    try:
        task = await request.workspace.tasks.get(request.caller, number)
    except TaskNotFound:
        if not request.is_fragment:
            raise
        # An open page: the task has just been deleted.
        return render_page(request, "tasks/task_gone.html", number=number)
    return await show_pack(
        request,
        "tasks/task_pack.html",
        f"/tasks/{number}/context",
        # As `dittybag://packs/task/{id}` makes it.
        PackRequest(task=number),
        task=task,
        statuses=STATUS_NAMES,
        tabs=task_tabs(request, number),
    )


async def show_text(request: WebRequest) -> WebResponse:
    return await pack_text(request, PackRequest(task=request.number_in_path("id")))
