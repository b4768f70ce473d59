"""The page of a task: all of its fields, to be changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dittybag.domain.due_dates import EXAMPLES, NotADate, parse_optional_due_date
from dittybag.domain.errors import Invalid, Outdated, Problem, TaskNotFound
from dittybag.domain.tasks import NOTES_LENGTH, PROJECT_LENGTH, TIME_ESTIMATE_LENGTH, TITLE_LENGTH, Task
from dittybag.web.browser_requests import WebResponse, WebRequest, Route
from dittybag.web.pages.task_actions import acted, said
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
#: So much of the notes is shown as people read them; all of them are in the form.
_READ_NOTES: Final = 20_000
#: So much of a value that differs is shown.
_COMPARED: Final = 300


async def edit(request: WebRequest) -> WebResponse:
    """A task and its form."""
    task = await request.workspace.tasks.get(request.caller, task_id(request))
    return _form(request, task, _typed(task))


async def save(request: WebRequest) -> WebResponse:
    """Change what somebody has typed, unless somebody else was faster."""
    number = task_id(request)
    typed = {name: request.form[name] for name in _FIELDS if name in request.form}
    version = request.form.get("version", "")
    try:
        await request.workspace.tasks.update(
            request.caller,
            number,
            version=int(version) if version.isdecimal() and len(version) < 19 else None,
            **_meant(typed),
        )
    except Invalid as error:
        task = await request.workspace.tasks.get(request.caller, number)
        return _form(request, task, _typed(task) | typed, 422, problems=error.problems, version=version)
    except Outdated:
        task = await request.workspace.tasks.get(request.caller, number)
        return _form(request, task, _typed(task) | typed, 409, differences=_differences(task, typed))
    except TaskNotFound:
        return await _gone(request, number, typed)
    return await acted(request, number)


async def _gone(request: WebRequest, id: int, typed: dict[str, str]) -> WebResponse:
    """What was typed is not lost with the task. Raises `TaskNotFound` if there never was one."""
    change = await request.workspace.tasks.latest_change(request.caller, id)
    assert isinstance(change.before, Task)
    last = change.before
    return _form(request, last, _typed(last) | typed, 409, gone=said(change))


async def state(request: WebRequest) -> WebResponse:
    """Whether a task has been changed since the page of it was made."""
    version = request.query.get("version")
    try:
        task = await request.workspace.tasks.get(request.caller, task_id(request))
    except TaskNotFound:
        return render_page(request, "tasks/task_changed.html", news="gone", id=task_id(request))
    news = "" if str(task.version) == version else "changed"
    return render_page(request, "tasks/task_changed.html", news=news, id=task.id)


def _meant(typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of the form. Raises `Invalid`."""
    fields: dict[str, Any] = dict(typed)
    for name in ("title", "project", "time_estimate"):
        if name in fields:
            fields[name] = fields[name].strip()
    if "priority" in fields:
        text = fields["priority"]
        # Anything that is no number is no priority either.
        fields["priority"] = int(text) if text.isdecimal() and len(text) < 3 else 0
    if "due_date" in fields:
        try:
            fields["due_date"] = parse_optional_due_date(fields["due_date"], local_now().date())
        except NotADate as error:
            message = f"Due must be a day, written like one of these: {EXAMPLES}"
            raise Invalid([Problem("due_date", message)]) from error
    return fields


def _typed(task: Task) -> dict[str, str]:
    """The fields of a task, as the form has them."""
    return {name: str(value) if (value := getattr(task, name)) is not None else "" for name in _FIELDS}


def _differences(task: Task, typed: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """What is stored now and what was typed, where that differs."""
    stored = _typed(task)
    return [
        (label, stored[name][:_COMPARED], typed[name][:_COMPARED])
        for name, label in _FIELDS.items()
        if name in typed and typed[name] != stored[name]
    ]


def _form(
    request: WebRequest,
    task: Task,
    typed: Mapping[str, str],
    status: int = 200,
    *,
    problems: Sequence[Problem] = (),
    differences: Sequence[tuple[str, str, str]] | None = None,
    gone: dict[str, Any] | None = None,
    version: str = "",
) -> WebResponse:
    return render_page(
        request,
        "tasks/task_form.html",
        status=status,
        task=task,
        typed=typed,
        problems=problems,
        wrong={problem.field: problem.message for problem in problems},
        differences=differences,
        gone=gone,
        # Whoever has seen what others have changed may save over it.
        version=version or str(task.version),
        due=due_of(task, local_now()),
        read_notes=(task.notes or "")[:_READ_NOTES],
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
    Route("GET", "/tasks/{id}", edit),
    Route("POST", "/tasks/{id}", save),
    Route("GET", "/tasks/{id}/state", state),
)
