"""The page of a task: a form, its comments, and what it belongs to and waits for."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.changes import Change
from dittybag.domain.due_dates import EXAMPLES, NotADate, parse_optional_due_date
from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.errors import DittybagError, Invalid, Outdated, Problem, TaskCycle, TaskNotFound, require
from dittybag.domain.tasks import COMMENT_LENGTH, DEFAULT_ENERGY, DEFAULT_TIME_ESTIMATE, Task
from dittybag.services.task_details import LinkedEntity, TaskDetails
from dittybag.web.browser_requests import (
    WebRequest,
    WebResponse,
    parse_number,
    status_of,
)
from dittybag.web.pages.change_display import entity_link
from dittybag.web.pages.entity_forms import FORM_ERRORS, EntityForm
from dittybag.web.pages.task_actions import respond_with_notice
from dittybag.web.task_display import (
    ENERGY_NAMES,
    PRIORITY_TITLES,
    STATUS_NAMES,
    due_of,
    effort_of,
    local_now,
)
from dittybag.web.task_holders import holder_of_details
from dittybag.web.template_rendering import render_page

#: Longer notes are cut when they are rendered; the form has all of them.
_MAX_RENDERED_NOTES: Final = 20_000
#: Projects that can be chosen.
_MAX_PROJECTS: Final = 500
#: The fields of the form that are lists of numbers and lists with one line each.
_NUMBERS: Final = "blocked_by"
_LINES: Final = "links"
#: The fields that the browser shows on one line, and that may have several.
_SHOWN_LINES: Final = ("title", "project", "time_estimate")


class TaskLink(Struct, frozen=True):
    """A link of a task. Without an address, it is only text."""

    text: str
    address: str = ""
    #: Whether it leads to another website.
    is_foreign: bool = False


async def show_form(request: WebRequest) -> WebResponse:
    details = await request.workspace.tasks.details(request.caller, request.number_in_path("id"))
    return await _render_form(request, details, _stored(details.task))


async def show_related(request: WebRequest) -> WebResponse:
    """Return what belongs to a task, for an open page: its claim, its edges and its comments."""
    details = await request.workspace.tasks.details(request.caller, request.number_in_path("id"))
    return render_page(request, "tasks/task_related.html", **_related_values(request, details))


async def save_task(request: WebRequest) -> WebResponse:
    """Save a task, unless someone else changed it in the meantime."""
    number, tasks = request.number_in_path("id"), request.workspace.tasks
    form = _typed(request)
    fields: dict[str, Any] = {}
    try:
        fields = _without_unchanged(_parse_values(form.values), await tasks.get(request.caller, number))
        await _require_project(request, number, fields)
        # A form without a version overwrites: the task was deleted and restored in the meantime.
        await tasks.update(request.caller, number, version=form.version or None, **fields)
    except Outdated:
        details = await tasks.details(request.caller, number)
        form = await form.with_conflict(request, details.task, _changed(details.task, fields))
        return await _render_form(request, details, form, 409)
    except TaskNotFound:
        # Raises again if the task never existed.
        deletion = await tasks.latest_change(request.caller, number)
        assert isinstance(deletion.before, Task)
        gone = TaskDetails(task=deletion.before, writable=True)
        return await _render_form(request, gone, form, 409, deletion=deletion)
    except FORM_ERRORS as error:
        details = await tasks.details(request.caller, number)
        form = _with_error(form, error, details.task, fields)
        return await _render_form(request, details, form, status_of(error))
    return await respond_with_notice(request, number)


def _without_unchanged(fields: dict[str, Any], task: Task) -> dict[str, Any]:
    """Leave out lines that are as the browser shows them: it removes line breaks from what is stored."""
    return {
        name: value
        for name, value in fields.items()
        if name not in _SHOWN_LINES or value != re.sub(r"[\r\n]", "", getattr(task, name) or "").strip()
    }


def _changed(task: Task, fields: Mapping[str, Any]) -> Task:
    """Return a task as the form would have saved it."""
    completed_at = (task.completed_at or task.updated_at) if fields.get("status") == "done" else None
    completion = {"completed_at": completed_at} if "status" in fields else {}
    return replace(task, **ENTITY_TYPES["task"].normalise(fields), **completion)


async def add_comment(request: WebRequest) -> WebResponse:
    """Add a comment. An invalid one is shown on the page of the task."""
    number, tasks = request.number_in_path("id"), request.workspace.tasks
    text = request.form.get("comment", "").strip()
    try:
        require([Problem("comment", "A comment must not be empty")] * (not text))
        await tasks.update(request.caller, number, comment=text)
    except Invalid as error:
        details = await tasks.details(request.caller, number)
        form = _stored(details.task)
        form = replace(form, values={**form.values, "comment": text}, problems=tuple(error.problems))
        return await _render_form(request, details, form, 422)
    return await respond_with_notice(request, number)


# Values of the form


def _stored(task: Task) -> EntityForm:
    """Return the form of a task. Lists of links have one line each, because URLs may contain commas."""
    form = EntityForm.stored("task", task)
    numbers = ENTITY_TYPES["task"].field(_NUMBERS).text(task)
    return replace(form, values={**form.values, _NUMBERS: numbers, _LINES: "\n".join(task.links)})


def _typed(request: WebRequest) -> EntityForm:
    form = EntityForm.typed("task", request)
    numbers = {_NUMBERS: request.form[_NUMBERS]} if _NUMBERS in request.form else {}
    return replace(form, values={**form.values, **numbers})


def _parse_values(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of the form. Raises `Invalid`."""
    fields: dict[str, Any] = {
        name: value if name == "notes" else value.strip() for name, value in values.items()
    }
    if "priority" in fields:
        # 0 is not a valid priority.
        fields["priority"] = parse_number(fields["priority"]) or 0
    for name, default in (("energy", DEFAULT_ENERGY), ("time_estimate", DEFAULT_TIME_ESTIMATE)):
        if name in fields:
            fields[name] = fields[name] or default
    if "labels" in fields:
        fields["labels"] = [label.strip() for label in fields["labels"].split(",") if label.strip()]
    if _LINES in fields:
        fields[_LINES] = [line.strip() for line in fields[_LINES].splitlines() if line.strip()]
    if _NUMBERS in fields:
        fields[_NUMBERS] = _parse_tasks(fields[_NUMBERS])
    if "parent" in fields:
        fields["parent"] = _parse_task("parent", fields["parent"]) if fields["parent"] else None
    if "due_date" in fields:
        try:
            fields["due_date"] = parse_optional_due_date(fields["due_date"], local_now().date())
        except NotADate as error:
            message = f"Due must be a date, for example {EXAMPLES}"
            raise Invalid([Problem("due_date", message)]) from error
    return fields


def _parse_tasks(text: str) -> list[int]:
    return [_parse_task(_NUMBERS, word) for word in re.split(r"[\s,;]+", text) if word]


def _parse_task(field: str, text: str) -> int:
    """Return the number of a task, as in `12` or `#12`. Raises `Invalid`."""
    number = parse_number(text.removeprefix("#"))
    if not number:
        label = ENTITY_TYPES["task"].field(field).label
        raise Invalid([Problem(field, f"{label}: '{text[:60]}' is not the number of a task")])
    return number


async def _require_project(request: WebRequest, number: int, fields: Mapping[str, Any]) -> None:
    """Raise `Invalid` if the project of a form no longer exists: its task would be the caller's alone."""
    name = fields.get("project")
    if not name or name in await _project_names(request):
        return
    task = await request.workspace.tasks.get(request.caller, number)
    if name != task.project:
        raise Invalid([Problem("project", f"Project '{name[:60]}' does not exist; choose another one")])


async def _project_names(request: WebRequest) -> list[str]:
    return await request.workspace.projects.names("", _MAX_PROJECTS, request.caller)


def _with_error(form: EntityForm, error: DittybagError, task: Task, fields: Mapping[str, Any]) -> EntityForm:
    """Return the form with the problems of an error, next to the field that caused a cycle."""
    if not isinstance(error, TaskCycle):
        return form.with_error(error)
    is_new = set(fields.get(_NUMBERS, ())) - set(task.blocked_by)
    return replace(form, problems=[Problem(_NUMBERS if is_new else "parent", str(error))])


# The page


async def _render_form(
    request: WebRequest,
    details: TaskDetails,
    form: EntityForm,
    status: int = 200,
    *,
    deletion: Change | None = None,
) -> WebResponse:
    task = details.task
    names = await _project_names(request)
    current = form.value("project") or task.project or ""
    # What is not a project stays selectable.
    others = [] if not current or current in names else [current]
    return render_page(
        request,
        "tasks/task_form.html",
        status=status,
        form=replace(form, values={**_stored(task).values, **form.values}),
        deletion=deletion,
        due=due_of(task, local_now()),
        rendered_notes=(task.notes or "")[:_MAX_RENDERED_NOTES],
        priorities=PRIORITY_TITLES,
        energies=ENERGY_NAMES,
        statuses=STATUS_NAMES,
        projects=[("", "None"), *((name, name) for name in [*names, *others])],
        effort=effort_of(task),
        examples=EXAMPLES,
        comment_length=COMMENT_LENGTH,
        tabs=task_tabs(request, task.id),
        **_related_values(request, details),
    )


def task_tabs(request: WebRequest, number: int) -> list[tuple[str, str, str]]:
    """Return the tabs of a task: key, label and URL. Without access to the project, there is no pack."""
    principal = request.caller.principal
    if principal is not None and not principal.sees_project:
        return []
    page = f"/tasks/{number}"
    return [
        ("task", "Task", request.link(page)),
        ("context", "Context", request.link(f"{page}/context")),
    ]


def _related_values(request: WebRequest, details: TaskDetails) -> dict[str, Any]:
    """Return what the part of the page that is refreshed shows."""
    task, now = details.task, time.time_ns() // 1000
    return {
        "task": task,
        "details": details,
        "writable": details.writable and request.can_write_own,
        "holder": holder_of_details(details, now, request.context.person),
        "links": [_task_link(link, details.linked.get(link)) for link in task.links],
        "state_of": lambda other: other.state(now),
        "task_link": lambda number: request.link(f"/tasks/{number}"),
    }


def _task_link(text: str, entity: LinkedEntity | None) -> TaskLink:
    """Return a link that is safe to follow: to an entity, or by HTTP."""
    if entity is not None:
        return TaskLink(text, entity_link(entity.project, entity.kind, entity.address))
    if text.lower().startswith(("http://", "https://")):
        return TaskLink(text, text, is_foreign=True)
    return TaskLink(text)
