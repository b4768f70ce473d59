"""The pages of prompt libraries: how they are doing, and what is in them. They are read-only."""

from __future__ import annotations

import logging
import os
from collections.abc import Hashable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from msgspec import Struct

from dittybag.domain.errors import LibraryNotFound, LibraryPromptNotFound, PromptUnusable
from dittybag.domain.libraries import FileProblem, LibraryPrompt, LibraryReport
from dittybag.domain.ports import Libraries
from dittybag.protocol.lazy_tls import asyncio
from dittybag.web.browser_requests import WebResponse, WebRequest, Route
from dittybag.web.pages.prompt_preview import preview_prompt, argument_values
from dittybag.web.resource_previews import excerpt_of, markdown_of
from dittybag.web.template_rendering import render_page

_log = logging.getLogger("dittybag")

_PER_PAGE: Final = 50
#: So many libraries, and problems of each, are shown; `dittybag library check` has them all.
_MAX_LIBRARIES: Final = 200
_MAX_PROBLEMS: Final = 50
_MAX_SKIPPED: Final = 100
#: Whoever opens a page waits so long for the closer look; it goes on without them.
_PATIENCE_SECONDS: Final = 0.05
#: Larger collections are not looked at closely here: that would keep others waiting.
_CLOSELY: Final = 2000


class LibraryHealth(Struct, frozen=True):
    """How a library is doing, for people."""

    report: LibraryReport
    problems: list[FileProblem]
    errors: int
    warnings: int

    @classmethod
    def of(cls, report: LibraryReport) -> LibraryHealth:
        # What costs a prompt comes first.
        ordered = sorted(report.problems, key=lambda problem: problem.level != "error")
        errors = sum(problem.level == "error" for problem in ordered)
        return cls(report, ordered, errors, len(ordered) - errors)


class _Looks:
    """Closer looks at the libraries: one at a time, and one for each state of them."""

    def __init__(self, libraries: Libraries) -> None:
        self._libraries = libraries
        self._seen: tuple[Hashable, list[LibraryReport]] | None = None
        self._looking: asyncio.Task[None] | None = None

    async def reports(self) -> tuple[list[LibraryReport], bool]:
        """The reports, and whether they are those of a closer look at what is there now."""
        reports = await self._libraries.reports()
        if not 0 < sum(report.prompts for report in reports) <= _CLOSELY:
            return reports, True
        if not self._is_fresh():
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            await asyncio.wait((self._looking,), timeout=_PATIENCE_SECONDS)
        if self._seen is not None and self._is_fresh():
            return self._seen[1], True
        return reports, False

    def _is_fresh(self) -> bool:
        return self._seen is not None and self._seen[0] == self._libraries.stamp()

    async def _look(self) -> None:
        stamp = self._libraries.stamp()
        try:
            reports = await self._libraries.check()
        except Exception:  # noqa: BLE001  # the edge of this task: whoever waits for it sees the plain reports
            _log.exception("the libraries could not be looked at closely")
            reports = await self._libraries.reports()
        self._seen = stamp, reports


_looks: WeakKeyDictionary[Libraries, _Looks] = WeakKeyDictionary()


async def _reports(request: WebRequest) -> tuple[list[LibraryReport], bool]:
    libraries = request.context.libraries
    looks = _looks.get(libraries)
    if looks is None:
        looks = _looks[libraries] = _Looks(libraries)
    return await looks.reports()


async def listed(request: WebRequest) -> WebResponse:
    """All libraries at a glance."""
    reports, is_close = await _reports(request)
    healths = [LibraryHealth.of(report) for report in reports]
    return render_page(
        request,
        "libraries/library_list.html",
        libraries=healths[:_MAX_LIBRARIES],
        total=len(healths),
        prompts=sum(health.report.prompts for health in healths),
        errors=sum(health.errors for health in healths),
        warnings=sum(health.warnings for health in healths),
        is_close=is_close,
        most=_MAX_PROBLEMS,
        place=_Places(request, await request.context.libraries.origins()),
    )


async def shown(request: WebRequest) -> WebResponse:
    """One library: its prompts, and what is wrong with it."""
    name = request.query.get("name", "")
    reports, is_close = await _reports(request)
    report = next((item for item in reports if item.name == name and name), None)
    if report is None:
        raise LibraryNotFound(name)
    prompts = await request.context.libraries.prompts(name)
    text = request.query.get("q", "").strip()[:200].casefold()
    fitting = [prompt for prompt in prompts if text in _about(prompt)] if text else prompts
    last = max(1, -(-len(fitting) // _PER_PAGE))
    current = request.int_parameter("page", 1, 1, last)
    return render_page(
        request,
        "libraries/library_view.html",
        health=LibraryHealth.of(report),
        prompts=fitting[(current - 1) * _PER_PAGE : current * _PER_PAGE],
        total=len(fitting),
        text=text,
        current=current,
        last=last,
        to=lambda number: request.with_query(page=number if number > 1 else None),
        skipped=list(report.skipped.items())[:_MAX_SKIPPED],
        is_close=is_close,
        most=_MAX_PROBLEMS,
        place=_Places(request, await request.context.libraries.origins()),
    )


def _about(prompt: LibraryPrompt) -> str:
    return "\n".join((prompt.name, prompt.title or "", prompt.description or "")).casefold()


_ORIGINS: Final = {
    "folder": "copied from the folder",
    "git": "from the Git repository",
    "zip": "from the zip file",
    "new": "made here",
    "link": "linked folder",
}


class _Places:
    """Where files are, in words: paths of this machine are for those who own it."""

    def __init__(self, request: WebRequest, origins: Mapping[str, tuple[str, str]]) -> None:
        self._is_owner = request.session.principal is None
        self._origins = origins

    def origin(self, report: LibraryReport) -> str:
        """Where a library is from."""
        kind, location = self._origins.get(report.name, ("", ""))
        words = _ORIGINS.get(kind, "put there by hand")
        return f"{words} {location}" if location and (kind == "git" or self._is_owner) else words

    def folder(self, report: LibraryReport) -> str:
        """The folder of a library."""
        own = os.path.expanduser("~")  # noqa: PTH111  # pathlib would not keep a path as it is written
        path = report.folder
        if not self._is_owner:
            return f"…/{path.rstrip('/').rpartition('/')[2]}"
        return f"~{path[len(own) :]}" if own != "/" and path.startswith(own + "/") else path

    def file(self, report: LibraryReport, problem: FileProblem) -> str:
        """A file of a library, with the line if it is known."""
        line = "" if problem.line is None else f":{problem.line}"
        return f"{problem.file or self.folder(report)}{line}"


# One prompt


async def prompt(request: WebRequest) -> WebResponse:
    """A prompt of a library: its text, and a form to try it out."""
    found = await _found(request)
    file, text, problem = "", "", ""
    try:
        _, file, text = await request.context.libraries.source(found.name)
    except PromptUnusable as error:
        problem = str(error)
    report = await _report_of(request, found.library)
    inside = "" if report is None else file.removeprefix(report.folder).lstrip("/")
    values, excerpt = argument_values(request, found.arguments), excerpt_of(text)
    return render_page(
        request,
        "libraries/library_prompt.html",
        prompt=found,
        file=inside,
        excerpt=excerpt,
        html=await markdown_of(excerpt),
        problem=problem,
        problems=[item for item in (report.problems if report else ()) if item.file == inside],
        values=values,
        trial=await _trial(request, found, values),
        tab="source" if request.query.get("tab") == "source" else "text",
    )


async def attempt(request: WebRequest) -> WebResponse:
    """What a prompt says with the values that are being typed: a part of its page."""
    found = await _found(request)
    trial = await _trial(request, found, argument_values(request, found.arguments))
    return render_page(request, "libraries/library_prompt_result.html", trial=trial)


async def _found(request: WebRequest) -> LibraryPrompt:
    name = request.query.get("name", "")
    found = await request.context.libraries.find(name)
    if found is None:
        raise LibraryPromptNotFound(name)
    return found


async def _report_of(request: WebRequest, library: str) -> LibraryReport | None:
    reports, _ = await _reports(request)
    return next((report for report in reports if report.name == library), None)


async def _trial(request: WebRequest, found: LibraryPrompt, values: Mapping[str, str]) -> Any:
    async def render(values: Mapping[str, str]) -> str:
        _, text = await request.context.templates.render_library_prompt(found.name, values)
        return text

    return await preview_prompt(found.arguments, values, render)


routes: Final = (
    Route("GET", "/libraries", listed),
    Route("GET", "/libraries/view", shown),
    Route("GET", "/libraries/prompt", prompt),
    # A server that only shows things takes nothing else; there, long values do not fit.
    Route("GET", "/libraries/try", attempt),
    Route("POST", "/libraries/try", attempt),
)
