"""The form to view and edit a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dittybag.domain.due_dates import EXAMPLES, NotADate, parse_optional_due_date
from dittybag.domain.errors import Invalid, Outdated, Problem, TaskNotFound
from dittybag.domain.tasks import NOTES_LENGTH, PROJECT_LENGTH, TIME_ESTIMATE_LENGTH, TITLE_LENGTH, Task
from dittybag.web.browser_requests import LONG_FORM_BYTES, Route, WebRequest, WebResponse
from dittybag.web.pages.task_actions import notice_for, respond_with_notice
from dittybag.web.task_display import ENERGY_NAMES, due_of, local_now, priorities, task_id
from dittybag.web.template_rendering import render_page

_FIELDS: Final = {
    "title": "Title",
    "project": "Project",
    "priority": "Priority",
    "energy": "Energy",
    "time_estimate": "Time estimate",
    "due_date": "Due",
    "notes": "Notes",
}
#: Longer notes are cut when they are rendered; the form has all of them.
_MAX_RENDERED_NOTES: Final = 20_000
#: Longer values are cut in the comparison of versions.
_MAX_COMPARED_LENGTH: Final = 300


async def show_form(request: WebRequest) -> WebResponse:
    """Show a task and its form."""
    task = await request.workspace.tasks.get(request.caller, task_id(request))
    return _render_form(request, task, _form_values(task))


async def save_task(request: WebRequest) -> WebResponse:
    """Save a task, unless someone else changed it in the meantime."""
    number = task_id(request)
    typed = {name: request.form[name] for name in _FIELDS if name in request.form}
    version = request.form.get("version", "")
    try:
        await request.workspace.tasks.update(
            request.caller,
            number,
            version=int(version) if version.isdecimal() and len(version) < 19 else None,
            **_parse_form(typed),
        )
    except Invalid as error:
        task = await request.workspace.tasks.get(request.caller, number)
        return _render_form(
            request, task, _form_values(task) | typed, 422, problems=error.problems, version=version
        )
    except Outdated:
        task = await request.workspace.tasks.get(request.caller, number)
        return _render_form(
            request, task, _form_values(task) | typed, 409, differences=_differences(task, typed)
        )
    except TaskNotFound:
        return await _render_deleted(request, number, typed)
    return await respond_with_notice(request, number)


async def _render_deleted(request: WebRequest, id: int, typed: dict[str, str]) -> WebResponse:
    """Show the form with its input for a deleted task. Raises `TaskNotFound` if it never existed."""
    change = await request.workspace.tasks.latest_change(request.caller, id)
    assert isinstance(change.before, Task)
    task = change.before
    return _render_form(request, task, _form_values(task) | typed, 409, deletion=notice_for(change))


async def show_change_warning(request: WebRequest) -> WebResponse:
    """Return a warning for an open form if the task was changed or deleted."""
    version = request.query.get("version")
    try:
        task = await request.workspace.tasks.get(request.caller, task_id(request))
    except TaskNotFound:
        return render_page(request, "tasks/task_changed.html", state="deleted", id=task_id(request))
    state = "" if str(task.version) == version else "changed"
    return render_page(request, "tasks/task_changed.html", state=state, id=task.id)


def _parse_form(typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of the form. Raises `Invalid`."""
    fields: dict[str, Any] = dict(typed)
    for name in ("title", "project", "time_estimate"):
        if name in fields:
            fields[name] = fields[name].strip()
    if "priority" in fields:
        text = fields["priority"]
        # 0 is not a valid priority.
        fields["priority"] = int(text) if text.isdecimal() and len(text) < 3 else 0
    if "due_date" in fields:
        try:
            fields["due_date"] = parse_optional_due_date(fields["due_date"], local_now().date())
        except NotADate as error:
            message = f"Due must be a date, for example {EXAMPLES}"
            raise Invalid([Problem("due_date", message)]) from error
    return fields


def _form_values(task: Task) -> dict[str, str]:
    """Return the fields of a task as form values."""
    return {name: str(value) if (value := getattr(task, name)) is not None else "" for name in _FIELDS}


def _differences(task: Task, typed: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return the fields that differ, with their stored and typed values."""
    stored = _form_values(task)
    return [
        (label, stored[name][:_MAX_COMPARED_LENGTH], typed[name][:_MAX_COMPARED_LENGTH])
        for name, label in _FIELDS.items()
        if name in typed and typed[name] != stored[name]
    ]


def _render_form(
    request: WebRequest,
    task: Task,
    typed: Mapping[str, str],
    status: int = 200,
    *,
    problems: Sequence[Problem] = (),
    differences: Sequence[tuple[str, str, str]] | None = None,
    deletion: dict[str, Any] | None = None,
    version: str = "",
) -> WebResponse:
    return render_page(
        request,
        "tasks/task_form.html",
        status=status,
        task=task,
        typed=typed,
        problems=problems,
        errors={problem.field: problem.message for problem in problems},
        differences=differences,
        deletion=deletion,
        # After a conflict, saving again overwrites the version that was shown.
        version=version or str(task.version),
        due=due_of(task, local_now()),
        rendered_notes=(task.notes or "")[:_MAX_RENDERED_NOTES],
        priorities=priorities(),
        energies=ENERGY_NAMES,
        lengths={
            "title": TITLE_LENGTH,
            "project": PROJECT_LENGTH,
            "time_estimate": TIME_ESTIMATE_LENGTH,
            "notes": NOTES_LENGTH,
        },
        examples=EXAMPLES,
    )


routes: Final = (
    Route("GET", "/tasks/{id}", show_form),
    Route("POST", "/tasks/{id}", save_task, form_bytes=LONG_FORM_BYTES),
    Route("GET", "/tasks/{id}/state", show_change_warning),
)
