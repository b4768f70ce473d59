"""Actions on the selected rows of a list: tag, move, complete, set a priority, delete and export."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from msgspec import Struct

from dittybag.domain.display import format_count
from dittybag.domain.entities import Kind
from dittybag.domain.errors import DittybagError, Invalid, Problem
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.services.prompt_service import PromptAddress
from dittybag.web.browser_requests import WebRequest, WebResponse, parse_number, redirect, status_of
from dittybag.web.pages.entity_history import latest_change
from dittybag.web.task_display import PRIORITY_NAMES
from dittybag.web.template_rendering import render_page, render_toast

MAX_SELECTED: Final = 500
#: An export is built in memory.
_MAX_EXPORT_BYTES: Final = 64 * 1024 * 1024


class BulkResult(Struct, frozen=True):
    """What an action did."""

    #: The number of entities that changed.
    count: int
    #: What happened to them, as in `tagged “x”`.
    verb: str
    #: The id of one that changed, whose latest change is undone with all others; empty if none changed.
    changed: str


#: Does something with the entities of these ids.
BulkAction: TypeAlias = Callable[[WebRequest, Sequence[str]], Awaitable[BulkResult]]


async def change_selected(kind: Kind, request: WebRequest) -> WebResponse:
    """Do what the form says with all selected entities of a kind, or with none of them."""
    try:
        ids = _selected_ids(request)
        action = request.form.get("action", "")
        if action == "export":
            return await _export(request, kind, ids)
        if (run := _ACTIONS[kind].get(action)) is None:
            raise Invalid([Problem("action", f"action must be one of {', '.join(_ACTIONS[kind])}, export")])
        result = await run(request, ids)
    except DittybagError as error:
        return _refuse(request, str(error), status_of(error))
    if not result.changed:
        return _report(request, kind, f"Nothing to change: already {result.verb}")
    change = await latest_change(request, kind, result.changed)
    text = f"{format_count(result.count, kind)} {result.verb}"
    return _report(request, kind, text, 0 if change is None else change.seq)


def _selected_ids(request: WebRequest) -> list[str]:
    ids = list(dict.fromkeys(value for name, value in request.fields if name == "id"))
    if not ids:
        raise Invalid([Problem("id", "Nothing is selected; select at least one row")])
    if len(ids) > MAX_SELECTED:
        raise Invalid([Problem("id", f"{len(ids)} rows are selected; select at most {MAX_SELECTED}")])
    return ids


# Prompts


def _addresses(ids: Sequence[str]) -> list[PromptAddress]:
    return [PromptAddress(id=key) for key in ids]


async def _tag_prompts(request: WebRequest, ids: Sequence[str]) -> BulkResult:
    tags = _typed_tags(request)
    marks = await request.workspace.prompts.retag_all(request.caller, _addresses(ids), add=tags)
    return _tag_result(marks, f"tagged {_quoted(tags)}")


async def _untag_prompts(request: WebRequest, ids: Sequence[str]) -> BulkResult:
    tags = _typed_tags(request)
    marks = await request.workspace.prompts.retag_all(request.caller, _addresses(ids), remove=tags)
    return _tag_result(marks, f"without {_quoted(tags)}")


def _typed_tags(request: WebRequest) -> list[str]:
    tags = [tag for tag in request.form.get("tag", "").replace(",", " ").split() if tag]
    if not tags:
        raise Invalid([Problem("tag", "Tag is empty; type a tag")])
    return tags


def _quoted(tags: Sequence[str]) -> str:
    return ", ".join(f"“{tag}”" for tag in tags)


def _tag_result(marks: Sequence[tuple[Prompt, bool]], verb: str) -> BulkResult:
    changed = [prompt.id for prompt, is_changed in marks if is_changed]
    return BulkResult(len(changed), verb, next(iter(changed), ""))


async def _move_prompts(request: WebRequest, ids: Sequence[str]) -> BulkResult:
    project = _typed_project(request)
    moved = await request.workspace.prompts.move_all(request.caller, _addresses(ids), project)
    return BulkResult(len(moved), f"moved to {project}", ids[0])


async def _delete_prompts(request: WebRequest, ids: Sequence[str]) -> BulkResult:
    deleted = await request.workspace.prompts.delete_all(request.caller, _addresses(ids))
    return BulkResult(len(deleted), "deleted", ids[0])


def _typed_project(request: WebRequest) -> str:
    name = request.form.get("project", "").strip()
    if not name:
        raise Invalid([Problem("project", "Project is empty; choose one")])
    return name


# Resources


async def _resource_names(request: WebRequest, ids: Sequence[str]) -> list[str]:
    """Return the names of resources, by which they are changed. Raises `ResourceNotFound`."""
    return [(await request.workspace.resources.by_id(request.caller, key)).name for key in ids]


async def _move_resources(request: WebRequest, ids: Sequence[str]) -> BulkResult:
    project = _typed_project(request)
    names = await _resource_names(request, ids)
    moved = await request.workspace.resources.move_all(request.caller, names, project)
    return BulkResult(len(moved), f"moved to {project}", ids[0])


async def _delete_resources(request: WebRequest, ids: Sequence[str]) -> BulkResult:
    names = await _resource_names(request, ids)
    deleted = await request.workspace.resources.delete_all(request.caller, names)
    return BulkResult(len(deleted), "deleted", ids[0])


# Tasks


def _numbers(ids: Sequence[str]) -> list[int]:
    # No task has the number 0.
    return [parse_number(key) or 0 for key in ids]


async def _complete_tasks(request: WebRequest, ids: Sequence[str]) -> BulkResult:
    marks = await request.workspace.tasks.complete_all(request.caller, _numbers(ids))
    changed = [str(mark.task.id) for mark in marks if mark.changed]
    return BulkResult(len(changed), "completed", next(iter(changed), ""))


async def _set_priority(priority: int, request: WebRequest, ids: Sequence[str]) -> BulkResult:
    return await _update_tasks(request, ids, f"with priority {priority}", priority=priority)


async def _move_tasks(request: WebRequest, ids: Sequence[str]) -> BulkResult:
    project = _typed_project(request)
    await request.workspace.projects.find_visible(request.caller, project)
    return await _update_tasks(request, ids, f"moved to {project}", project=project)


async def _update_tasks(
    request: WebRequest, ids: Sequence[str], verb: str, **fields: str | int
) -> BulkResult:
    marks = await request.workspace.tasks.update_all(request.caller, _numbers(ids), **fields)
    changed = [str(mark.task.id) for mark in marks if mark.changed]
    return BulkResult(len(changed), verb, next(iter(changed), ""))


async def _delete_tasks(request: WebRequest, ids: Sequence[str]) -> BulkResult:
    deleted = await request.workspace.tasks.delete_all(request.caller, _numbers(ids))
    return BulkResult(len(deleted), "deleted", str(deleted[0].id))


_ACTIONS: Final[Mapping[Kind, Mapping[str, BulkAction]]] = {
    "prompt": {
        "tag": _tag_prompts,
        "untag": _untag_prompts,
        "move": _move_prompts,
        "delete": _delete_prompts,
    },
    "resource": {"move": _move_resources, "delete": _delete_resources},
    "task": {
        "complete": _complete_tasks,
        **{f"priority-{number}": partial(_set_priority, number) for number in PRIORITY_NAMES},
        "move": _move_tasks,
        "delete": _delete_tasks,
    },
}


# Export


async def _export(request: WebRequest, kind: Kind, ids: Sequence[str]) -> WebResponse:
    """Return the selected entities as a file that `dittybag import` reads."""
    # Imported here because few requests export anything.
    from dittybag.exchange.json_file import export_selected

    entities = [await _load(request, kind, key) for key in ids]
    size = sum(len(content or b"") for _, content in entities)
    if size > _MAX_EXPORT_BYTES:
        limit = _MAX_EXPORT_BYTES // 1024**2
        raise Invalid(
            [Problem("id", f"They have more than {limit} MiB; select fewer, or run dittybag export")]
        )
    body = export_selected(await _projects(request, kind), entities)
    headers = (
        (b"content-disposition", f'attachment; filename="{kind}s.json"'.encode()),
        (b"cache-control", b"no-store"),
    )
    return WebResponse(200, body, b"application/json", headers)


async def _load(request: WebRequest, kind: Kind, id: str) -> tuple[Prompt | Resource | Task, bytes | None]:
    workspace, caller = request.workspace, request.caller
    if kind == "prompt":
        return await workspace.prompts.get(caller, PromptAddress(id=id)), None
    if kind == "task":
        task = await workspace.tasks.get(caller, parse_number(id) or 0)
        return await workspace.task_queue.unclaimed(caller, task), None
    resource = await workspace.resources.by_id(caller, id)
    [content] = await workspace.resources.contents(caller, [resource])
    return resource, content


async def _projects(request: WebRequest, kind: Kind) -> list[Project]:
    if kind != "task":
        return [request.project]
    return [size.project for size in await request.workspace.projects.all(request.caller)]


# Responses


def _report(request: WebRequest, kind: Kind, text: str, seq: int = 0) -> WebResponse:
    """Respond with a toast that offers undo: as a fragment, or on the list.

    `seq`: a change of the batch to undo; 0 if nothing changed.
    """
    if not request.is_fragment:
        return redirect(request.return_link(f"/{kind}s"), text, undo=seq)
    # Refreshes the list even if no event arrives.
    trigger = (b"hx-trigger", f"live:{kind}, selection:clear".encode())
    return render_toast(request, text, seq, headers=(trigger,))


def _refuse(request: WebRequest, message: str, status: int) -> WebResponse:
    if request.is_fragment:
        return render_page(request, "refusal.html", status=status, message=message)
    return render_page(request, "error_page.html", status=status, message=message, hint="", code=status)
