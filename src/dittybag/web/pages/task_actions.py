"""What is done to tasks with one click: add, complete, reopen, move, delete, and take that back."""

from __future__ import annotations

from typing import Any, Final

from dittybag.domain.changes import Change
from dittybag.domain.errors import Invalid, Problem, require
from dittybag.domain.quick_add import task_fields
from dittybag.domain.tasks import DEFAULT_ENERGY, DEFAULT_PRIORITY, Task, problems
from dittybag.web.browser_requests import WebResponse, WebRequest, Route, redirect
from dittybag.web.task_display import KEYS, PRIORITY_NAMES, describe_due, describe_change, local_now, task_id
from dittybag.web.template_rendering import render_page

#: Nobody types a longer line.
_LINE: Final = 2000


async def add(request: WebRequest) -> WebResponse:
    """Add a task that is said in one line."""
    words = request.form.get("words", "")
    too_long = [Problem("words", f"The line must be at most {_LINE} characters")] * (len(words) > _LINE)
    try:
        require(too_long)
        task = await request.workspace.tasks.create(request.caller, **task_fields(words, local_now().date()))
    except Invalid as error:
        if request.is_fragment:
            part = _understood(request, words[:_LINE], error)
            return WebResponse(422, part.body, headers=(*part.headers, (b"hx-retarget", b"#understood")))
        raise
    return await acted(request, task.id)


async def understood(request: WebRequest) -> WebResponse:
    """How a line is understood, before it is sent."""
    return _understood(request, request.query.get("words", "")[:_LINE], None)


def _understood(request: WebRequest, words: str, error: Invalid | None) -> WebResponse:
    now = local_now()
    fields = task_fields(words, now.date()) if words.strip() else {}
    due = fields.get("due_date")
    given = {"priority": DEFAULT_PRIORITY, "energy": DEFAULT_ENERGY, **fields}
    found = list(problems(**fields)) if error is None and fields.get("title") else []
    return render_page(
        request,
        "tasks/quick_add_preview.html",
        fields=given if fields else None,
        priority_name=PRIORITY_NAMES[given["priority"]],
        due=None if due is None else describe_due(due, now),
        problems=[problem.message for problem in (found if error is None else error.problems)],
    )


async def complete(request: WebRequest) -> WebResponse:
    """Mark a task as done."""
    task = await request.workspace.tasks.complete(request.caller, task_id(request))
    return await acted(request, task.id)


async def reopen(request: WebRequest) -> WebResponse:
    """Mark a task as not done after all."""
    [mark] = await request.workspace.tasks.reopen_all(request.caller, [task_id(request)])
    return await acted(request, mark.task.id)


async def move(request: WebRequest) -> WebResponse:
    """Put a task into another column."""
    by, value = request.form.get("by", ""), request.form.get("value", "")
    if by not in KEYS:
        raise Invalid([Problem("by", f"Tasks are moved by {', '.join(KEYS)}")])
    change: dict[str, Any] = {by: value}
    if by == "priority":
        # Anything that is no number is no priority either.
        change = {by: int(value) if value.isdecimal() and len(value) < 3 else 0}
    task = await request.workspace.tasks.update(request.caller, task_id(request), **change)
    return await acted(request, task.id)


async def delete(request: WebRequest) -> WebResponse:
    """Delete a task."""
    task = await request.workspace.tasks.delete(request.caller, task_id(request))
    return await acted(request, task.id)


async def undo(request: WebRequest) -> WebResponse:
    """Take back what was done last to a task, if it still is that."""
    task, seq = task_id(request), request.form.get("seq", "")
    number = int(seq) if seq.isdecimal() and len(seq) < 19 else 0
    await request.workspace.tasks.undo_latest(request.caller, task, number)
    return await acted(request, task)


async def acted(request: WebRequest, id: int) -> WebResponse:
    """Say what was done just now, and offer to take it back: in the page that is open, or in the next one."""
    change = await request.workspace.tasks.latest_change(request.caller, id)
    if request.is_fragment:
        part = render_page(request, "tasks/task_notice.html", said=said(change))
        # Whatever shows tasks shows this one as it is now, also if no news come through.
        return WebResponse(200, part.body, headers=(*part.headers, (b"hx-trigger", b"live:task")))
    back = _back(request)
    return redirect(f"{back}{'&' if '?' in back else '?'}said={id}.{change.seq}")


def _back(request: WebRequest) -> str:
    """Where somebody came from; a page of tasks, whatever the form says."""
    tasks, back = request.link("/tasks"), request.form.get("back", "")
    is_ours = back == tasks or back.startswith(tasks + "?")
    return back if is_ours and back.isascii() and back.isprintable() else tasks


def said(change: Change) -> dict[str, Any]:
    """What the template that says it wants to know."""
    task = change.after if change.after is not None else change.before
    assert isinstance(task, Task)
    return {
        "words": describe_change(change),
        "id": task.id,
        "seq": change.seq,
        "again": change.action == "restore",
    }


routes: Final = (
    Route("POST", "/tasks", add),
    Route("GET", "/tasks/understood", understood),
    Route("POST", "/tasks/{id}/done", complete),
    Route("POST", "/tasks/{id}/reopen", reopen),
    Route("POST", "/tasks/{id}/move", move),
    Route("POST", "/tasks/{id}/delete", delete),
    Route("POST", "/tasks/{id}/undo", undo),
)
