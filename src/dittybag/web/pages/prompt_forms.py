"""The forms that prompts are written with, also when somebody else writes at the same time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import UNSET, Struct
from msgspec.structs import replace

from dittybag.domain.errors import (
    Conflict,
    DittybagError,
    Invalid,
    NameTaken,
    NotAllowed,
    Outdated,
    Problem,
    PromptNotFound,
    PromptUnusable,
    StorageError,
    TitleTaken,
)
from dittybag.domain.prompts import Argument, Prompt, problems
from dittybag.services.prompt_service import PromptAddress, PromptChange
from dittybag.web.browser_requests import WebResponse, WebRequest, Route, redirect
from dittybag.web.pages.prompt_history import changes_of, differences, prompt_of
from dittybag.web.pages.prompt_tags import tags_in_use
from dittybag.web.template_rendering import render_page

#: A longer text is shown as it is.
RENDERED_LENGTH: Final = 20_000
#: So many tags are proposed.
_TAGS_SHOWN: Final = 50
#: How far back it is looked for the version that somebody began with.
_VERSIONS: Final = 20
_FIELDS: Final = ("title", "name", "description", "tags", "content", "arguments")
_ARGUMENT_FIELD: Final = re.compile(r"argument-([0-9]{1,4})-(name|description|required|choices)")
_STATUSES: Final[tuple[tuple[type[DittybagError], int], ...]] = (
    (Invalid, 422),
    (Conflict, 409),
    (NotAllowed, 403),
    (StorageError, 503),
)


def tokens(text: str) -> int:
    """About how many tokens a model reads: four bytes each."""
    return -(-len(text.encode("utf-8", "replace")) // 4)


class ArgumentRow(Struct, frozen=True, kw_only=True):
    """An argument as it is typed."""

    name: str = ""
    description: str = ""
    required: bool = False
    #: One on each line.
    choices: str = ""
    problems: tuple[str, ...] = ()

    @classmethod
    def of(cls, argument: Argument) -> ArgumentRow:
        return cls(
            name=argument.name,
            description=_typed(argument.description or ""),
            required=argument.required,
            choices="\n".join(argument.choices),
        )

    def argument(self) -> Argument:
        return Argument(
            name=self.name.strip(),
            description=self.description.strip() or None,
            required=self.required,
            choices=tuple(line.strip() for line in self.choices.split("\n") if line.strip()),
        )

    @property
    def is_empty(self) -> bool:
        return not (self.name.strip() or self.description.strip() or self.choices.strip())


class PromptDraft(Struct, frozen=True, kw_only=True):
    """What somebody has typed, right or wrong."""

    title: str = ""
    name: str = ""
    description: str = ""
    tags: str = ""
    content: str = ""
    rows: tuple[ArgumentRow, ...] = ()
    #: The version that it was made of; 0 for a new prompt.
    version: int = 0

    @classmethod
    def of(cls, prompt: Prompt) -> PromptDraft:
        return cls(
            title=prompt.title,
            name=prompt.name,
            description=prompt.description or "",
            tags=", ".join(prompt.tags),
            content=prompt.content,
            rows=tuple(map(ArgumentRow.of, prompt.arguments)),
            version=prompt.version,
        )

    @classmethod
    def typed(cls, fields: Iterable[tuple[str, str]]) -> PromptDraft:
        given: dict[str, str] = {}
        rows: dict[int, dict[str, Any]] = {}
        for name, value in fields:
            if found := _ARGUMENT_FIELD.fullmatch(name):
                is_required = found[2] == "required"
                rows.setdefault(int(found[1]), {})[found[2]] = True if is_required else value
            else:
                given[name] = value
        made = (ArgumentRow(**rows[number]) for number in sorted(rows))
        version = given.get("version", "")
        return cls(
            title=given.get("title", ""),
            name=given.get("name", ""),
            description=given.get("description", ""),
            tags=given.get("tags", ""),
            content=given.get("content", ""),
            rows=tuple(row for row in made if not row.is_empty),
            version=int(version) if version.isdecimal() and len(version) < 18 else 0,
        )

    def tag_names(self) -> list[str]:
        return list(dict.fromkeys(tag.lower() for tag in re.split(r"[,\s]+", self.tags) if tag))

    def arguments(self) -> tuple[Argument, ...]:
        return tuple(row.argument() for row in self.rows)

    def on(self, prompt: Prompt) -> Prompt:
        """The prompt with everything as it was typed; what only looks different stays as it is."""
        known = {ArgumentRow.of(item): item for item in prompt.arguments}
        return replace(
            prompt,
            title=_line(prompt.title, self.title),
            name=self.name.strip(),
            description=_line(prompt.description or "", self.description) or None,
            tags=tuple(self.tag_names()),
            content=prompt.content if _typed(prompt.content) == self.content else self.content,
            arguments=tuple(known.get(row) or row.argument() for row in self.rows),
        )

    def checked(self) -> PromptDraft:
        """The same with what is wrong with each argument."""
        return replace(
            self,
            rows=tuple(
                replace(row, problems=tuple(found.message for found in problems(arguments=[row.argument()])))
                for row in self.rows
            ),
        )


def _typed(text: str) -> str:
    """A text as a browser sends it back: it knows only one sort of line ends."""
    return re.sub(r"\r\n?", "\n", text)


def _line(stored: str, typed: str) -> str:
    """What becomes of a text whose ends nobody sees."""
    return stored if _typed(stored).strip() == typed.strip() else typed.strip()


# New prompts


async def new(request: WebRequest) -> WebResponse:
    _require_writer(request)
    return await _form(request, PromptDraft())


async def created(request: WebRequest) -> WebResponse:
    draft = PromptDraft.typed(request.fields)
    try:
        prompt, _ = await request.workspace.prompts.create(
            request.caller,
            content=draft.content,
            name=draft.name.strip() or None,
            title=draft.title.strip(),
            description=draft.description.strip(),
            tags=draft.tag_names(),
            arguments=draft.arguments(),
        )
    except DittybagError as error:
        return await _again(request, draft, error)
    return redirect(request.link(f"/prompts/{prompt.id}", saved="new"), "The prompt is saved")


# Changes


async def edit(request: WebRequest) -> WebResponse:
    _require_writer(request)
    prompt = await prompt_of(request)
    return await _form(request, PromptDraft.of(prompt), prompt=prompt)


async def saved(request: WebRequest) -> WebResponse:
    """Save a changed prompt, unless somebody else was faster."""
    draft = PromptDraft.typed(request.fields)
    try:
        current = await prompt_of(request)
    except PromptNotFound:
        words = "This prompt was deleted meanwhile; if you save it now, it becomes a new one"
        found = [Problem("", words)]
        return await _form(request, replace(draft, version=0), status=409, found=found)
    link = request.link(f"/prompts/{current.id}", saved="edit")
    mine = draft.on(current)
    if draft.version != current.version:
        return await _conflict(request, draft, current)
    if mine == current:
        return redirect(link, "Nothing was changed")
    change = PromptChange(
        **{
            name: value if (value := getattr(mine, name)) != getattr(current, name) else UNSET
            for name in _FIELDS
            if name != "description"
        },
        description=UNSET if mine.description == current.description else mine.description or "",
    )
    try:
        address = PromptAddress(id=current.id)
        await request.workspace.prompts.update(request.caller, address, change, version=current.version)
    except Outdated:
        return await _conflict(request, draft, await prompt_of(request))
    except DittybagError as error:
        return await _again(request, draft, error, prompt=current)
    return redirect(link, "Your changes are saved")


async def _conflict(request: WebRequest, draft: PromptDraft, theirs: Prompt) -> WebResponse:
    """Both versions side by side, and what was typed, to be saved over theirs or not."""
    mine = draft.on(theirs)
    if mine == theirs:
        link = request.link(f"/prompts/{theirs.id}", saved="edit")
        return redirect(link, "Somebody else has just saved the very same")
    changes = await changes_of(request, theirs.id, limit=_VERSIONS)
    states = (change.after for change in changes)
    began = next((one for one in states if isinstance(one, Prompt) and one.version == draft.version), None)
    return await _form(
        request,
        replace(draft, version=theirs.version),
        status=409,
        prompt=theirs,
        conflict={
            "actor": changes[0].actor if changes else "Somebody",
            "at": theirs.updated_at,
            "between": differences(theirs, mine),
            "theirs": None if began is None else differences(began, theirs),
        },
    )


async def news(request: WebRequest) -> WebResponse:
    """For an open form: whether somebody else has changed the prompt meanwhile."""
    version = request.int_parameter("version", 0, 0, 2**62)
    changes = await changes_of(request, request.parameters["id"], limit=1)
    latest = changes[0] if changes else None
    after = None if latest is None else latest.after
    is_same = isinstance(after, Prompt) and after.version == version
    return render_page(request, "prompts/prompt_changed.html", latest=None if is_same else latest)


# What a form shows


async def preview(request: WebRequest) -> WebResponse:
    """What the content looks like, and what is wrong with it."""
    draft = PromptDraft.typed(request.fields)
    problem = None
    try:
        if draft.rows:
            # Whatever the values are, mistakes of the template show.
            values = {item.name: item.name for item in draft.arguments()}
            await request.context.templates.render_prompt(_unsaved(draft), values)
    except PromptUnusable as error:
        problem = str(error)
    return render_page(
        request,
        "prompts/draft_preview.html",
        content=draft.content,
        is_long=len(draft.content) > RENDERED_LENGTH,
        tokens=tokens(draft.content),
        problem=problem,
    )


def _unsaved(draft: PromptDraft) -> Prompt:
    empty = Prompt(number=0, id="", project=0, name="", title="", content="", created_at=0, updated_at=0)
    return draft.on(empty)


async def _again(
    request: WebRequest, draft: PromptDraft, error: DittybagError, prompt: Prompt | None = None
) -> WebResponse:
    """The form with all that was typed, and why it could not be saved. Raises what no form can mend."""
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), None)
    if status is None:
        raise error
    if isinstance(error, Invalid):
        found = list(error.problems)
    elif isinstance(error, NameTaken | TitleTaken):
        found = [Problem("name" if isinstance(error, NameTaken) else "title", str(error))]
    else:
        found = [Problem("", str(error))]
    return await _form(request, draft.checked(), status=status, prompt=prompt, found=found)


async def _form(
    request: WebRequest,
    draft: PromptDraft,
    *,
    status: int = 200,
    prompt: Prompt | None = None,
    found: Sequence[Problem] = (),
    conflict: dict[str, Any] | None = None,
) -> WebResponse:
    in_use = await tags_in_use(request)
    at_rows = {message for row in draft.rows for message in row.problems}
    return render_page(
        request,
        "prompts/prompt_form.html",
        status=status,
        draft=draft,
        prompt=prompt,
        problems=list(found),
        # What is wrong with one argument stands there.
        problems_of={
            name: [item.message for item in found if item.field == name and item.message not in at_rows]
            for name in _FIELDS
        },
        conflict=conflict,
        tag_names=[tag.name for tag in in_use[:_TAGS_SHOWN]],
        is_long=len(draft.content) > RENDERED_LENGTH,
        tokens=tokens(draft.content),
    )


def _require_writer(request: WebRequest) -> None:
    if not request.can_write:
        raise NotAllowed("You can read this project, but not change it")


routes: Final = (
    Route("GET", "/prompts/new", new),
    Route("POST", "/prompts", created),
    Route("POST", "/prompts/preview", preview),
    Route("GET", "/prompts/{id}/edit", edit),
    Route("POST", "/prompts/{id}/edit", saved),
    Route("GET", "/prompts/{id}/news", news),
)
