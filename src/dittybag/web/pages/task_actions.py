"""The actions on tasks: quick add, complete, reopen, move, delete and undo."""

from __future__ import annotations

from typing import Any, Final

from dittybag.domain.errors import Invalid, Problem, require
from dittybag.domain.quick_add import task_fields
from dittybag.domain.tasks import DEFAULT_ENERGY, DEFAULT_PRIORITY, problems
from dittybag.web.browser_requests import WebRequest, WebResponse, redirect
from dittybag.web.task_display import KEYS, PRIORITY_NAMES, describe_change, describe_due, local_now
from dittybag.web.template_rendering import render_page

#: Maximum length of a quick-add line.
_MAX_LINE_LENGTH: Final = 2000


async def add(request: WebRequest) -> WebResponse:
    text = request.form.get("text", "")
    is_too_long = len(text) > _MAX_LINE_LENGTH
    try:
        require([Problem("text", f"The text must be at most {_MAX_LINE_LENGTH} characters")] * is_too_long)
        task = await request.workspace.tasks.create(request.caller, **task_fields(text, local_now().date()))
    except Invalid as error:
        if request.is_fragment:
            return _render_preview(request, text[:_MAX_LINE_LENGTH], error)
        raise
    return await respond_with_notice(request, task.id)


async def preview_quick_add(request: WebRequest) -> WebResponse:
    """Return the parsed fields of a quick-add line as a fragment."""
    return _render_preview(request, request.query.get("text", "")[:_MAX_LINE_LENGTH], None)


def _render_preview(request: WebRequest, text: str, error: Invalid | None) -> WebResponse:
    now = local_now()
    fields = task_fields(text, now.date()) if text.strip() else {}
    due = fields.get("due_date")
    shown_fields = {"priority": DEFAULT_PRIORITY, "energy": DEFAULT_ENERGY, **fields}
    found = list(problems(**fields)) if error is None and fields.get("title") else []
    return render_page(
        request,
        "tasks/quick_add_preview.html",
        status=200 if error is None else 422,
        headers=() if error is None else ((b"hx-retarget", b"#quick-add-preview"),),
        fields=shown_fields if fields else None,
        priority_name=PRIORITY_NAMES[shown_fields["priority"]],
        due=None if due is None else describe_due(due, now),
        problems=[problem.message for problem in (found if error is None else error.problems)],
    )


async def complete(request: WebRequest) -> WebResponse:
    task = await request.workspace.tasks.complete(request.caller, request.number_in_path("id"))
    return await respond_with_notice(request, task.id)


async def reopen(request: WebRequest) -> WebResponse:
    [reopened] = await request.workspace.tasks.reopen_all(request.caller, [request.number_in_path("id")])
    return await respond_with_notice(request, reopened.task.id)


async def move(request: WebRequest) -> WebResponse:
    by, value = request.form.get("by", ""), request.form.get("value", "")
    if by not in KEYS:
        raise Invalid([Problem("by", f"by must be one of {', '.join(KEYS)}")])
    change: dict[str, Any] = {by: value}
    if by == "priority":
        # 0 is not a valid priority.
        change = {by: request.number_in_form("value")}
    task = await request.workspace.tasks.update(request.caller, request.number_in_path("id"), **change)
    return await respond_with_notice(request, task.id)


async def delete(request: WebRequest) -> WebResponse:
    task = await request.workspace.tasks.delete(request.caller, request.number_in_path("id"))
    return await respond_with_notice(request, task.id)


async def undo(request: WebRequest) -> WebResponse:
    """Undo the latest change of a task, unless it was changed again."""
    number = request.number_in_path("id")
    await request.workspace.tasks.undo_latest(request.caller, number, request.number_in_form("seq"))
    return await respond_with_notice(request, number)


async def respond_with_notice(request: WebRequest, id: int) -> WebResponse:
    """Respond with a notice that offers undo: as a fragment, or on the next page."""
    change = await request.workspace.tasks.latest_change(request.caller, id)
    if request.is_fragment:
        # Refresh the tasks of the page even if no event arrives.
        refresh = ((b"hx-trigger", b"live:task"),)
        return render_page(
            request, "tasks/task_notice.html", headers=refresh, change=change, text=describe_change(change)
        )
    back = _return_link(request)
    return redirect(f"{back}{'&' if '?' in back else '?'}notice={id}.{change.seq}")


def _return_link(request: WebRequest) -> str:
    """Return the task page to go back to; any other URL in the form is ignored."""
    tasks, back = request.link("/tasks"), request.form.get("back", "")
    is_task_page = back == tasks or back.startswith(tasks + "?")
    return back if is_task_page and back.isascii() and back.isprintable() else tasks
