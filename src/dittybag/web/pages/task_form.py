"""The form to view and edit a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from dittybag.domain.changes import Change
from dittybag.domain.due_dates import EXAMPLES, NotADate, parse_optional_due_date
from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.errors import Invalid, Outdated, Problem, TaskNotFound
from dittybag.domain.tasks import Task
from dittybag.web.browser_requests import (
    WebRequest,
    WebResponse,
    parse_number,
    status_of,
)
from dittybag.web.pages.entity_forms import FORM_ERRORS, EntityForm
from dittybag.web.pages.task_actions import respond_with_notice
from dittybag.web.task_display import ENERGY_NAMES, PRIORITY_TITLES, due_of, local_now
from dittybag.web.template_rendering import render_page

#: Longer notes are cut when they are rendered; the form has all of them.
_MAX_RENDERED_NOTES: Final = 20_000


async def show_form(request: WebRequest) -> WebResponse:
    task = await request.workspace.tasks.get(request.caller, request.number_in_path("id"))
    return _render_form(request, task, EntityForm.stored("task", task))


async def save_task(request: WebRequest) -> WebResponse:
    """Save a task, unless someone else changed it in the meantime."""
    number, tasks = request.number_in_path("id"), request.workspace.tasks
    form = EntityForm.typed("task", request)
    try:
        fields = _parse_values(form.values)
        # A form without a version overwrites: the task was deleted and restored in the meantime.
        await tasks.update(request.caller, number, version=form.version or None, **fields)
    except Outdated:
        task = await tasks.get(request.caller, number)
        mine = replace(task, **ENTITY_TYPES["task"].normalise(fields))
        return _render_form(request, task, await form.with_conflict(request, task, mine), 409)
    except TaskNotFound:
        # Raises again if the task never existed.
        deletion = await tasks.latest_change(request.caller, number)
        assert isinstance(deletion.before, Task)
        return _render_form(request, deletion.before, form, 409, deletion=deletion)
    except FORM_ERRORS as error:
        task = await tasks.get(request.caller, number)
        return _render_form(request, task, form.with_error(error), status_of(error))
    return await respond_with_notice(request, number)


def _parse_values(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of the form. Raises `Invalid`."""
    fields: dict[str, Any] = {
        name: value if name == "notes" else value.strip() for name, value in values.items()
    }
    if "priority" in fields:
        # 0 is not a valid priority.
        fields["priority"] = parse_number(fields["priority"]) or 0
    if "due_date" in fields:
        try:
            fields["due_date"] = parse_optional_due_date(fields["due_date"], local_now().date())
        except NotADate as error:
            message = f"Due must be a date, for example {EXAMPLES}"
            raise Invalid([Problem("due_date", message)]) from error
    return fields


def _render_form(
    request: WebRequest, task: Task, form: EntityForm, status: int = 200, *, deletion: Change | None = None
) -> WebResponse:
    return render_page(
        request,
        "tasks/task_form.html",
        status=status,
        task=task,
        form=replace(form, values={**EntityForm.stored("task", task).values, **form.values}),
        deletion=deletion,
        due=due_of(task, local_now()),
        rendered_notes=(task.notes or "")[:_MAX_RENDERED_NOTES],
        priorities=PRIORITY_TITLES,
        energies=ENERGY_NAMES,
        examples=EXAMPLES,
    )
