"""The forms to create and edit prompts, including edit conflicts."""

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
from dittybag.services.template_arguments import describe_found
from dittybag.web.browser_requests import LONG_FORM_BYTES, Route, WebRequest, WebResponse, redirect
from dittybag.web.pages.prompt_history import differences, find_prompt, prompt_changes
from dittybag.web.pages.prompt_tags import tags_in_use
from dittybag.web.template_rendering import render_page

#: Longer texts are not rendered as Markdown.
MAX_RENDERED_LENGTH: Final = 20_000
#: Maximum number of suggested tags.
_MAX_TAGS: Final = 50
#: The number of versions searched for the one that an edit started from.
_SEARCHED_VERSIONS: Final = 20
_FIELDS: Final = ("title", "name", "description", "tags", "content", "arguments")
#: Browsers remove line breaks from a field of one line.
_LINE_BREAK: Final = re.compile(r"[\r\n]")
_ARGUMENT_FIELD: Final = re.compile(r"argument-([0-9]{1,4})-(name|description|required|choices)")
_STATUS_CODES: Final[tuple[tuple[type[DittybagError], int], ...]] = (
    (Invalid, 422),
    (Conflict, 409),
    (NotAllowed, 403),
    (StorageError, 503),
)


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of a text: four bytes each."""
    return -(-len(text.encode("utf-8", "replace")) // 4)


class ArgumentRow(Struct, frozen=True, kw_only=True):
    """The form fields of an argument."""

    name: str = ""
    description: str = ""
    required: bool = False
    #: One per line.
    choices: str = ""
    problems: tuple[str, ...] = ()

    @classmethod
    def from_argument(cls, argument: Argument) -> ArgumentRow:
        return cls(
            name=argument.name,
            description=_normalise_newlines(argument.description or ""),
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
    """The form fields of a prompt, which may be invalid."""

    title: str = ""
    name: str = ""
    description: str = ""
    tags: str = ""
    content: str = ""
    rows: tuple[ArgumentRow, ...] = ()
    #: Whether variables in the content are kept as text.
    verbatim: bool = False
    #: The version that the edit started from; 0 for a new prompt.
    version: int = 0

    @classmethod
    def from_prompt(cls, prompt: Prompt) -> PromptDraft:
        return cls(
            title=prompt.title,
            name=prompt.name,
            description=prompt.description or "",
            tags=", ".join(prompt.tags),
            content=prompt.content,
            rows=tuple(map(ArgumentRow.from_argument, prompt.arguments)),
            version=prompt.version,
        )

    @classmethod
    def from_form(cls, fields: Iterable[tuple[str, str]]) -> PromptDraft:
        values_by_name: dict[str, str] = {}
        rows: dict[int, dict[str, Any]] = {}
        for name, value in fields:
            if found := _ARGUMENT_FIELD.fullmatch(name):
                is_required = found[2] == "required"
                rows.setdefault(int(found[1]), {})[found[2]] = True if is_required else value
            else:
                values_by_name[name] = value
        argument_rows = (ArgumentRow(**rows[number]) for number in sorted(rows))
        version = values_by_name.get("version", "")
        return cls(
            title=values_by_name.get("title", ""),
            name=values_by_name.get("name", ""),
            description=values_by_name.get("description", ""),
            tags=values_by_name.get("tags", ""),
            content=values_by_name.get("content", ""),
            rows=tuple(row for row in argument_rows if not row.is_empty),
            verbatim="verbatim" in values_by_name,
            version=int(version) if version.isdecimal() and len(version) < 18 else 0,
        )

    def tag_names(self) -> list[str]:
        return list(dict.fromkeys(tag.lower() for tag in re.split(r"[,\s]+", self.tags) if tag))

    def arguments(self) -> tuple[Argument, ...]:
        return tuple(row.argument() for row in self.rows)

    def apply_to(self, prompt: Prompt) -> Prompt:
        """Return the prompt with the values of the form; differences in line breaks alone are ignored."""
        unchanged = {ArgumentRow.from_argument(item): item for item in prompt.arguments}
        return replace(
            prompt,
            title=_keep_if_equal(_LINE_BREAK.sub("", prompt.title), self.title, prompt.title),
            name=self.name.strip(),
            description=_keep_if_equal(prompt.description or "", self.description) or None,
            tags=tuple(self.tag_names()),
            content=prompt.content if _normalise_newlines(prompt.content) == self.content else self.content,
            arguments=()
            if self.verbatim
            else tuple(unchanged.get(row) or row.argument() for row in self.rows),
        )

    def with_row_problems(self) -> PromptDraft:
        """Return the draft with the problems of each argument."""
        return replace(
            self,
            rows=tuple(
                replace(row, problems=tuple(found.message for found in problems(arguments=[row.argument()])))
                for row in self.rows
            ),
        )


def _normalise_newlines(text: str) -> str:
    """Return the text as a browser sends it back: with line feeds only."""
    return re.sub(r"\r\n?", "\n", text)


def _keep_if_equal(shown: str, typed: str, stored: str | None = None) -> str:
    """Return the stored text if the typed text differs from the shown one only in surrounding whitespace.

    `stored`: by default, the text is shown as it is stored.
    """
    if _normalise_newlines(shown).strip() != typed.strip():
        return typed.strip()
    return shown if stored is None else stored


# New prompts


async def show_new_form(request: WebRequest) -> WebResponse:
    _require_write_access(request)
    return await _render_form(request, PromptDraft())


async def create_prompt(request: WebRequest) -> WebResponse:
    draft = PromptDraft.from_form(request.fields)
    found = await _found_arguments(request, draft, draft.content)
    try:
        prompt, _ = await request.workspace.prompts.create(
            request.caller,
            content=draft.content,
            name=draft.name.strip() or None,
            title=draft.title.strip(),
            description=draft.description.strip(),
            tags=draft.tag_names(),
            arguments=() if draft.verbatim else draft.arguments() or found,
        )
    except DittybagError as error:
        return await _render_errors(request, draft, error)
    return redirect(request.link(f"/prompts/{prompt.id}", saved="new"), _saved_note("Prompt saved", found))


async def _found_arguments(request: WebRequest, draft: PromptDraft, content: str) -> tuple[Argument, ...]:
    """Return the variables of the content as arguments, unless the form has arguments or keeps the text."""
    if draft.rows or draft.verbatim:
        return ()
    return await request.context.templates.find_arguments(content)


def _saved_note(message: str, found: Sequence[Argument]) -> str:
    return f"{message}; {describe_found(found)}" if found else message


# Editing


async def show_edit_form(request: WebRequest) -> WebResponse:
    _require_write_access(request)
    prompt = await find_prompt(request)
    draft = PromptDraft.from_prompt(prompt)
    draft = replace(draft, verbatim=bool(await _found_arguments(request, draft, prompt.content)))
    return await _render_form(request, draft, prompt=prompt)


async def save_prompt(request: WebRequest) -> WebResponse:
    """Save a prompt, unless someone else changed it in the meantime."""
    draft = PromptDraft.from_form(request.fields)
    try:
        current = await find_prompt(request)
    except PromptNotFound:
        message = (
            "This prompt was deleted while you were editing it; if you save now, it becomes a new prompt"
        )
        deleted = [Problem("", message)]
        return await _render_form(request, replace(draft, version=0), status=409, found=deleted)
    link = request.link(f"/prompts/{current.id}", saved="edit")
    mine = draft.apply_to(current)
    if draft.version != current.version:
        return await _render_conflict(request, draft, current)
    mine = replace(mine, arguments=await _new_arguments(request, draft, mine, current))
    found = mine.arguments if mine.arguments not in (draft.arguments(), current.arguments) else ()
    if mine == current:
        return redirect(link, "No changes to save")
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
        return await _render_conflict(request, draft, await find_prompt(request))
    except DittybagError as error:
        return await _render_errors(request, draft, error, prompt=current)
    return redirect(link, _saved_note("Changes saved", found))


async def _new_arguments(
    request: WebRequest, draft: PromptDraft, mine: Prompt, current: Prompt
) -> tuple[Argument, ...]:
    """Return the arguments to save: those in the form, or the variables of the content."""
    if draft.rows and not draft.verbatim and mine.arguments == current.arguments:
        return await request.context.templates.updated_arguments(current, mine.content)
    return mine.arguments or await _found_arguments(request, draft, mine.content)


async def _render_conflict(request: WebRequest, draft: PromptDraft, theirs: Prompt) -> WebResponse:
    """Show both versions side by side, and the form to overwrite the saved version."""
    mine = draft.apply_to(theirs)
    if mine == theirs:
        link = request.link(f"/prompts/{theirs.id}", saved="edit")
        return redirect(link, "Someone else already saved the same changes")
    changes = await prompt_changes(request, theirs.id, limit=_SEARCHED_VERSIONS)
    states = (change.after for change in changes)
    original = next(
        (state for state in states if isinstance(state, Prompt) and state.version == draft.version), None
    )
    return await _render_form(
        request,
        replace(draft, version=theirs.version),
        status=409,
        prompt=theirs,
        conflict={
            "actor": changes[0].actor if changes else "Someone",
            "at": theirs.updated_at,
            "between": differences(theirs, mine),
            "theirs": None if original is None else differences(original, theirs),
        },
    )


async def show_change_warning(request: WebRequest) -> WebResponse:
    """Return a warning for an open form if someone else changed the prompt."""
    version = request.int_parameter("version", 0, 0, 2**62)
    changes = await prompt_changes(request, request.parameters["id"], limit=1)
    latest = changes[0] if changes else None
    after = None if latest is None else latest.after
    is_same = isinstance(after, Prompt) and after.version == version
    return render_page(request, "prompts/prompt_changed.html", latest=None if is_same else latest)


# Rendering forms


async def preview_draft(request: WebRequest) -> WebResponse:
    """Return the rendered content and template errors as a fragment."""
    draft = PromptDraft.from_form(request.fields)
    problem = None
    try:
        if draft.rows and not draft.verbatim:
            # Any values reveal errors in the template.
            values = {item.name: item.name for item in draft.arguments()}
            await request.context.templates.render_prompt(_unsaved(draft), values, client=request.client_key)
    except PromptUnusable as error:
        problem = str(error)
    return render_page(
        request,
        "prompts/draft_preview.html",
        content=draft.content,
        is_long=len(draft.content) > MAX_RENDERED_LENGTH,
        tokens=estimate_tokens(draft.content),
        problem=problem,
        found=[item.name for item in await _found_arguments(request, draft, draft.content)],
    )


def _unsaved(draft: PromptDraft) -> Prompt:
    empty = Prompt(number=0, id="", project=0, name="", title="", content="", created_at=0, updated_at=0)
    return draft.apply_to(empty)


async def _render_errors(
    request: WebRequest, draft: PromptDraft, error: DittybagError, prompt: Prompt | None = None
) -> WebResponse:
    """Show the form with its input and the errors. Raises errors that a form cannot fix."""
    status = next((status for kind, status in _STATUS_CODES if isinstance(error, kind)), None)
    if status is None:
        raise error
    if isinstance(error, Invalid):
        found = list(error.problems)
    elif isinstance(error, NameTaken | TitleTaken):
        found = [Problem("name" if isinstance(error, NameTaken) else "title", str(error))]
    else:
        found = [Problem("", str(error))]
    return await _render_form(request, draft.with_row_problems(), status=status, prompt=prompt, found=found)


async def _render_form(
    request: WebRequest,
    draft: PromptDraft,
    *,
    status: int = 200,
    prompt: Prompt | None = None,
    found: Sequence[Problem] = (),
    conflict: dict[str, Any] | None = None,
) -> WebResponse:
    in_use = await tags_in_use(request)
    row_messages = {message for row in draft.rows for message in row.problems}
    return render_page(
        request,
        "prompts/prompt_form.html",
        status=status,
        draft=draft,
        prompt=prompt,
        problems=list(found),
        # The problems of an argument are shown at its row.
        field_problems={
            name: [item.message for item in found if item.field == name and item.message not in row_messages]
            for name in _FIELDS
        },
        conflict=conflict,
        tag_names=[tag.name for tag in in_use[:_MAX_TAGS]],
        is_long=len(draft.content) > MAX_RENDERED_LENGTH,
        tokens=estimate_tokens(draft.content),
    )


def _require_write_access(request: WebRequest) -> None:
    if not request.can_write:
        raise NotAllowed("You can read this project, but not change it")


routes: Final = (
    Route("GET", "/prompts/new", show_new_form),
    Route("POST", "/prompts", create_prompt, form_bytes=LONG_FORM_BYTES),
    Route("POST", "/prompts/preview", preview_draft, form_bytes=LONG_FORM_BYTES),
    Route("GET", "/prompts/{id}/edit", show_edit_form),
    Route("POST", "/prompts/{id}/edit", save_prompt, form_bytes=LONG_FORM_BYTES),
    Route("GET", "/prompts/{id}/changed", show_change_warning),
)
