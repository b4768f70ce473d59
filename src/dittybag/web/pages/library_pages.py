"""The pages of prompt libraries: their state and their prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from minijinja import Markup
from msgspec import Struct

from dittybag.domain.errors import LibraryNotFound, LibraryPromptNotFound, PromptUnusable
from dittybag.domain.libraries import FileProblem, LibraryPrompt, LibraryReport
from dittybag.domain.role_marks import Message
from dittybag.domain.text import fold
from dittybag.files import display_path
from dittybag.web.browser_requests import PER_PAGE, WebRequest, WebResponse, redirect
from dittybag.web.filter_chips import filter_chips, without_filters
from dittybag.web.library_checks import matching_prompts, search_prompts
from dittybag.web.pages.prompt_head import Tab, library_head
from dittybag.web.pages.prompt_preview import argument_values, preview_prompt, result_values
from dittybag.web.pages.settings_sections import may_administer, require_admin
from dittybag.web.resource_previews import excerpt_of, markdown_of
from dittybag.web.shell_commands import render_command
from dittybag.web.template_rendering import render_page
from dittybag.web.variable_marks import mark_variables
from dittybag.web.web_context import MaintenanceFailed

#: Limits of what a page shows; `dittybag library check` lists everything.
_MAX_LIBRARIES: Final = 200
_MAX_PROBLEMS: Final = 50
_MAX_SKIPPED: Final = 100
_MAX_PROMPTS: Final = 10_000


class LibraryHealth(Struct, frozen=True):
    """The report of a library, with its problems sorted and counted."""

    report: LibraryReport

    @property
    def problems(self) -> list[FileProblem]:
        return sorted(self.report.problems, key=lambda problem: problem.level != "error")

    @property
    def errors(self) -> int:
        return sum(problem.level == "error" for problem in self.report.problems)

    @property
    def warnings(self) -> int:
        return len(self.report.problems) - self.errors


async def show_libraries(request: WebRequest) -> WebResponse:
    """Show the libraries with their problems, and the prompts of all of them: a tab of Prompts."""
    reports, is_checked = await request.context.library_checks.reports()
    text = request.query.get("q", "").strip()[:200]
    locations = _FileLocations(request, await request.context.libraries.origins())
    healths = [
        health
        for health in map(LibraryHealth, reports)
        if fold(text) in fold(f"{health.report.name} {locations.origin(health.report)}")
    ]
    prompts = await search_prompts(request.context.libraries, text, _MAX_PROMPTS)
    return render_page(
        request,
        "libraries/library_tab.html",
        libraries=healths[:_MAX_LIBRARIES],
        found=len(healths),
        total=len(reports),
        prompts=prompts[request.offset : request.offset + PER_PAGE],
        prompt_count=len(prompts),
        pages=request.pages(len(prompts)),
        is_checked=is_checked,
        locations=locations,
        can_update=_may_update(request) and any(map(locations.has_source, reports)),
        text=text,
        chips=filter_chips(request, [("q", "Text", text)]),
        clear=without_filters(request, ["q"]),
    )


def _may_update(request: WebRequest) -> bool:
    return may_administer(request) and not request.context.read_only


async def update_libraries(request: WebRequest) -> WebResponse:
    """Update a library from its source, or without a name all of them, like `dittybag library update`."""
    require_admin(request)
    name = request.form.get("name", "")
    page = request.link("/libraries/view", name=name) if name else request.link("/prompts", tab="libraries")
    try:
        note = await request.context.maintenance.update_libraries(name)
    except MaintenanceFailed as failed:
        note = str(failed)
    return redirect(page, note)


async def show_library(request: WebRequest) -> WebResponse:
    name = request.query.get("name", "")
    reports, is_checked = await request.context.library_checks.reports()
    report = next((item for item in reports if item.name == name and name), None)
    if report is None:
        raise LibraryNotFound(name)
    prompts = await request.context.libraries.prompts(name)
    text = request.query.get("q", "").strip()[:200]
    matching = matching_prompts(prompts, text)
    locations = _FileLocations(request, await request.context.libraries.origins())
    return render_page(
        request,
        "libraries/library_view.html",
        health=LibraryHealth(report),
        prompts=matching[request.offset : request.offset + PER_PAGE],
        text=text,
        chips=filter_chips(request, [("q", "Text", text)]),
        clear=without_filters(request, ["q"]),
        total=len(matching),
        pages=request.pages(len(matching)),
        skipped=list(report.skipped.items())[:_MAX_SKIPPED],
        is_checked=is_checked,
        max_problems=_MAX_PROBLEMS,
        locations=locations,
        can_update=_may_update(request) and locations.has_source(report),
    )


_ORIGINS: Final = {
    "folder": "copied from the folder",
    "git": "from the Git repository",
    "new": "created here",
    "link": "linked folder",
}


#: The kinds of origins that a library is updated from.
_UPDATABLE: Final = ("folder", "git")


class _FileLocations:
    """Describes file locations; only the owner of the machine sees full paths."""

    def __init__(self, request: WebRequest, origins: Mapping[str, tuple[str, str]]) -> None:
        self._is_owner = request.session.principal is None
        self._origins = origins

    def origin(self, report: LibraryReport) -> str:
        kind, location = self._origins.get(report.name, ("", ""))
        label = _ORIGINS.get(kind, "added manually")
        return f"{label} {location}" if location and (kind == "git" or self._is_owner) else label

    def has_source(self, report: LibraryReport) -> bool:
        """Return whether the library can be updated from where it came."""
        return self._origins.get(report.name, ("", ""))[0] in _UPDATABLE

    def folder(self, report: LibraryReport) -> str:
        if not self._is_owner:
            return f"…/{report.folder.rstrip('/').rpartition('/')[2]}"
        return display_path(report.folder)

    def file(self, report: LibraryReport, problem: FileProblem) -> str:
        """Return the file of a problem, with the line if it is known."""
        line = "" if problem.line is None else f":{problem.line}"
        return f"{problem.file or self.folder(report)}{line}"


# One prompt


async def show_prompt(request: WebRequest) -> WebResponse:
    """Show a library prompt: a form for its arguments and the result, or its template."""
    found = await _find_prompt(request)
    file, text, problem = await _source(request, found)
    reports, _ = await request.context.library_checks.reports()
    report = next((item for item in reports if item.name == found.library), None)
    relative_file = "" if report is None else file.removeprefix(report.folder).lstrip("/")
    shown_file = "" if report is None else f"{_FileLocations(request, {}).folder(report)}/{relative_file}"
    tab: Tab = "template" if request.query.get("tab") == "template" else "use"
    view = "rendered" if request.query.get("view") == "rendered" else "source"
    values, excerpt = argument_values(request, found.arguments), excerpt_of(text)
    return render_page(
        request,
        "libraries/library_prompt.html",
        prompt=found,
        head=await library_head(request, found, tab, shown_file),
        source=excerpt.text,
        marked=Markup(mark_variables(excerpt.text, found.arguments)) if tab == "template" else "",
        excerpt=excerpt,
        view=view,
        html=await markdown_of(excerpt) if tab == "template" and view == "rendered" else "",
        problem=problem,
        problems=[item for item in (report.problems if report else ()) if item.file == relative_file],
        values=values,
        **(await _result(request, found, values, excerpt.text) if tab == "use" else {}),
    )


async def preview_library_prompt(request: WebRequest) -> WebResponse:
    """Return the rendered prompt as a fragment while its arguments are being typed."""
    found = await _find_prompt(request)
    _, text, _ = await _source(request, found)
    values = argument_values(request, found.arguments)
    result = await _result(request, found, values, excerpt_of(text).text)
    return render_page(request, "libraries/library_prompt_result.html", prompt=found, **result)


async def _find_prompt(request: WebRequest) -> LibraryPrompt:
    name = request.query.get("name", "")
    found = await request.context.libraries.find(name)
    if found is None:
        raise LibraryPromptNotFound(name)
    return found


async def _source(request: WebRequest, found: LibraryPrompt) -> tuple[str, str, str]:
    """Return the file of a prompt, its template, and the problem that it has instead."""
    try:
        _, file, text = await request.context.libraries.source(found.name)
    except PromptUnusable as error:
        return "", "", str(error)
    return file, text, ""


async def _result(
    request: WebRequest, found: LibraryPrompt, values: Mapping[str, str], source: str
) -> dict[str, Any]:
    """Return the prompt rendered with argument values, the MCP message as JSON, and the shell command."""

    async def render(values: Mapping[str, str]) -> tuple[Message, ...]:
        return await request.context.templates.render_library_messages(
            found.name, values, client=request.client_key
        )

    preview = await preview_prompt(found.arguments, values, render)
    command = render_command(found.name, found.arguments, values)
    return result_values(preview, found, source, command)
