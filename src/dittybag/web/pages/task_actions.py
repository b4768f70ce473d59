"""The actions on tasks: quick add, complete, reopen, move, claim, take away and delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dittybag.domain.display import format_count
from dittybag.domain.errors import Conflict, Invalid, Outdated, Problem, ProjectNotFound, require
from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.domain.quick_add import task_fields
from dittybag.domain.tasks import DEFAULT_PRIORITY, problems
from dittybag.services.task_queue import ClaimRequest
from dittybag.web.browser_requests import WebRequest, WebResponse, parse_number, redirect
from dittybag.web.task_display import KEYS, PRIORITY_NAMES, describe_change, describe_due, local_now
from dittybag.web.template_rendering import render_page, render_toast

#: Maximum length of a quick-add line.
_MAX_LINE_LENGTH: Final = 2000
#: Seconds that a person holds a task: nobody renews the claim in a browser.
_PERSONAL_LEASE: Final = 8 * 3600
#: Refreshes the tasks of the page even if no event arrives.
_REFRESH_TASKS: Final = ((b"hx-trigger", b"live:task"),)


async def add(request: WebRequest) -> WebResponse:
    text = request.form.get("text", "")
    is_too_long = len(text) > _MAX_LINE_LENGTH
    try:
        require([Problem("text", f"The text must be at most {_MAX_LINE_LENGTH} characters")] * is_too_long)
        task = await request.workspace.tasks.create(request.caller, **task_fields(text, local_now().date()))
    except Invalid as error:
        if request.is_fragment:
            return await _render_preview(request, text[:_MAX_LINE_LENGTH], error)
        raise
    return await respond_with_notice(request, task.id)


async def preview_quick_add(request: WebRequest) -> WebResponse:
    """Return the parsed fields of a quick-add line as a fragment."""
    return await _render_preview(request, request.query.get("text", "")[:_MAX_LINE_LENGTH], None)


async def _render_preview(request: WebRequest, text: str, error: Invalid | None) -> WebResponse:
    now = local_now()
    fields: dict[str, Any] = {}
    found: Sequence[Problem] = ()
    try:
        fields = task_fields(text, now.date()) if text.strip() else {}
    except Invalid as refused:
        found = refused.problems
    due = fields.get("due_date")
    shown_fields = {"priority": DEFAULT_PRIORITY, **fields}
    if error is None and fields.get("title"):
        found = problems(**fields)
    project, is_shared = await _project_of_new_task(request, fields.get("project"))
    return render_page(
        request,
        "tasks/quick_add_preview.html",
        status=200 if error is None else 422,
        headers=() if error is None else ((b"hx-retarget", b"#quick-add-preview"),),
        fields=shown_fields if fields else None,
        priority_name=PRIORITY_NAMES[shown_fields["priority"]],
        project_name=project,
        is_shared=is_shared,
        due=None if due is None else describe_due(due, now),
        problems=[problem.message for problem in (found if error is None else error.problems)],
    )


async def _project_of_new_task(request: WebRequest, name: str | None) -> tuple[str, bool]:
    """Return the project that a new task will have, and whether it will be shared with its members.

    A name that is not that of a project stays as text.
    """
    if name is None:
        is_own = request.project.name == DEFAULT_PROJECT or not request.can_write
        return ("", False) if is_own else (request.project.name, True)
    try:
        await request.workspace.projects.find_visible(request.caller, name)
    except ProjectNotFound:
        return name, False
    return name, True


async def complete(request: WebRequest) -> WebResponse:
    task = await request.workspace.tasks.complete(request.caller, request.number_in_path("id"))
    return await respond_with_notice(request, task.id)


async def reopen(request: WebRequest) -> WebResponse:
    [reopened] = await request.workspace.tasks.reopen_all(request.caller, [request.number_in_path("id")])
    return await respond_with_notice(request, reopened.task.id)


async def move(request: WebRequest) -> WebResponse:
    """Move a task to another column: change its status, priority or project.

    Raises `Outdated` if `version` is given and the task was changed since.
    """
    # Buttons of cards have everything but the value in their URLs.
    fields = {**request.query, **request.form}
    by, value = fields.get("by", ""), fields.get("value", "")
    if by not in KEYS:
        raise Invalid([Problem("by", f"by must be one of {', '.join(KEYS)}")])
    change: dict[str, Any] = {by: value}
    if by == "priority":
        # 0 is not a valid priority.
        change = {by: parse_number(value) or 0}
    number, tasks = request.number_in_path("id"), request.workspace.tasks
    version = parse_number(fields.get("version", "")) or None
    if change == {"status": "todo"} and (message := await _waiting_message(request, number)):
        return _respond_with_message(request, 409, message)
    try:
        task = await tasks.update(request.caller, number, version=version, **change)
    except Outdated:
        latest = await tasks.latest_change(request.caller, number)
        message = f"{latest.actor} changed ‘{latest.label}’ in the meantime, so it was not moved. Try again."
        return _respond_with_message(request, 409, message)
    return await respond_with_notice(request, task.id)


async def _waiting_message(request: WebRequest, number: int) -> str:
    """Return why a task that is to do cannot be made ready; empty if it can."""
    details = await request.workspace.tasks.details(request.caller, number)
    if details.task.status != "todo" or not details.waits_for:
        return ""
    waits = format_count(details.waits_for, "open task")
    return f"‘{details.task.title}’ waits for {waits}. It becomes ready when they are done or dropped."


def _respond_with_message(request: WebRequest, status: int, message: str) -> WebResponse:
    """Respond with an error that is shown over the board, which is refreshed."""
    if not request.is_fragment:
        return render_page(request, "error_page.html", status=status, message=message, hint="", code=status)
    return render_page(request, "refusal.html", status=status, headers=_REFRESH_TASKS, message=message)


async def claim(request: WebRequest) -> WebResponse:
    """Claim a task for the person at the browser, unless somebody else holds it."""
    number, wanted = request.number_in_path("id"), ClaimRequest(lease_seconds=_PERSONAL_LEASE)
    try:
        await request.workspace.task_queue.claim(request.caller, number, wanted)
    except Conflict as error:
        return _respond_with_message(request, 409, str(error))
    return await respond_with_notice(request, number)


async def take_away(request: WebRequest) -> WebResponse:
    """Take a task away from its holder: it is to do again."""
    task = await request.workspace.task_queue.release(request.caller, request.number_in_path("id"))
    return await respond_with_notice(request, task.id)


async def delete(request: WebRequest) -> WebResponse:
    task = await request.workspace.tasks.delete(request.caller, request.number_in_path("id"))
    return await respond_with_notice(request, task.id)


async def respond_with_notice(request: WebRequest, id: int) -> WebResponse:
    """Respond with a toast that offers undo: as a fragment, or on the next page."""
    change = await request.workspace.tasks.latest_change(request.caller, id)
    text, is_redo = describe_change(change), change.action == "restore"
    if request.is_fragment:
        return render_toast(request, text, change.seq, is_redo=is_redo, headers=_REFRESH_TASKS)
    return redirect(request.return_link("/tasks"), text, undo=change.seq, is_redo=is_redo)
