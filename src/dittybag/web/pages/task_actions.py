"""The actions on tasks: quick add, complete, reopen, move, delete and undo."""

from __future__ import annotations

from typing import Any, Final

from dittybag.domain.changes import Change
from dittybag.domain.errors import Invalid, Problem, require
from dittybag.domain.quick_add import task_fields
from dittybag.domain.tasks import DEFAULT_ENERGY, DEFAULT_PRIORITY, Task, problems
from dittybag.web.browser_requests import Route, WebRequest, WebResponse, redirect
from dittybag.web.task_display import KEYS, PRIORITY_NAMES, describe_change, describe_due, local_now, task_id
from dittybag.web.template_rendering import render_page

#: Maximum length of a quick-add line.
_MAX_LINE_LENGTH: Final = 2000


async def add(request: WebRequest) -> WebResponse:
    """Add a task from a quick-add line."""
    text = request.form.get("text", "")
    too_long = [Problem("text", f"The text must be at most {_MAX_LINE_LENGTH} characters")] * (
        len(text) > _MAX_LINE_LENGTH
    )
    try:
        require(too_long)
        task = await request.workspace.tasks.create(request.caller, **task_fields(text, local_now().date()))
    except Invalid as error:
        if request.is_fragment:
            fragment = _render_preview(request, text[:_MAX_LINE_LENGTH], error)
            return WebResponse(
                422, fragment.body, headers=(*fragment.headers, (b"hx-retarget", b"#quick-add-preview"))
            )
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
        fields=shown_fields if fields else None,
        priority_name=PRIORITY_NAMES[shown_fields["priority"]],
        due=None if due is None else describe_due(due, now),
        problems=[problem.message for problem in (found if error is None else error.problems)],
    )


async def complete(request: WebRequest) -> WebResponse:
    """Complete a task."""
    task = await request.workspace.tasks.complete(request.caller, task_id(request))
    return await respond_with_notice(request, task.id)


async def reopen(request: WebRequest) -> WebResponse:
    """Reopen a task."""
    [reopened] = await request.workspace.tasks.reopen_all(request.caller, [task_id(request)])
    return await respond_with_notice(request, reopened.task.id)


async def move(request: WebRequest) -> WebResponse:
    """Move a task to another column."""
    by, value = request.form.get("by", ""), request.form.get("value", "")
    if by not in KEYS:
        raise Invalid([Problem("by", f"by must be one of {', '.join(KEYS)}")])
    change: dict[str, Any] = {by: value}
    if by == "priority":
        # 0 is not a valid priority.
        change = {by: int(value) if value.isdecimal() and len(value) < 3 else 0}
    task = await request.workspace.tasks.update(request.caller, task_id(request), **change)
    return await respond_with_notice(request, task.id)


async def delete(request: WebRequest) -> WebResponse:
    """Delete a task."""
    task = await request.workspace.tasks.delete(request.caller, task_id(request))
    return await respond_with_notice(request, task.id)


async def undo(request: WebRequest) -> WebResponse:
    """Undo the latest change of a task, unless it was changed again."""
    task, seq = task_id(request), request.form.get("seq", "")
    number = int(seq) if seq.isdecimal() and len(seq) < 19 else 0
    await request.workspace.tasks.undo_latest(request.caller, task, number)
    return await respond_with_notice(request, task)


async def respond_with_notice(request: WebRequest, id: int) -> WebResponse:
    """Respond with a notice that offers undo: as a fragment, or on the next page."""
    change = await request.workspace.tasks.latest_change(request.caller, id)
    if request.is_fragment:
        fragment = render_page(request, "tasks/task_notice.html", notice=notice_for(change))
        # Refresh the tasks of the page even if no event arrives.
        return WebResponse(200, fragment.body, headers=(*fragment.headers, (b"hx-trigger", b"live:task")))
    back = _return_link(request)
    return redirect(f"{back}{'&' if '?' in back else '?'}notice={id}.{change.seq}")


def _return_link(request: WebRequest) -> str:
    """Return the task page to go back to; any other URL in the form is ignored."""
    tasks, back = request.link("/tasks"), request.form.get("back", "")
    is_task_page = back == tasks or back.startswith(tasks + "?")
    return back if is_task_page and back.isascii() and back.isprintable() else tasks


def notice_for(change: Change) -> dict[str, Any]:
    """Return the values for the notice about a change."""
    task = change.after if change.after is not None else change.before
    assert isinstance(task, Task)
    return {
        "text": describe_change(change),
        "id": task.id,
        "seq": change.seq,
        "is_undo": change.action == "restore",
    }


routes: Final = (
    Route("POST", "/tasks", add),
    Route("GET", "/tasks/quick-add", preview_quick_add),
    Route("POST", "/tasks/{id}/done", complete),
    Route("POST", "/tasks/{id}/reopen", reopen),
    Route("POST", "/tasks/{id}/move", move),
    Route("POST", "/tasks/{id}/delete", delete),
    Route("POST", "/tasks/{id}/undo", undo),
)
