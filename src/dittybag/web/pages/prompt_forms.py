"""The forms to create and edit prompts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.entities import ENTITY_TYPES, Kind
from dittybag.domain.errors import (
    DittybagError,
    NotAllowed,
    Outdated,
    Problem,
    PromptNotFound,
    PromptUnusable,
)
from dittybag.domain.prompts import Argument, Prompt, problems
from dittybag.domain.role_marks import Message, find_role_lines, split_at_marks
from dittybag.domain.token_estimate import estimate_tokens
from dittybag.services.prompt_service import PromptAddress, PromptChange
from dittybag.services.template_arguments import describe_found
from dittybag.web.browser_requests import WebRequest, WebResponse, redirect, status_of
from dittybag.web.pages.entity_forms import FORM_ERRORS, EntityForm, problems_of
from dittybag.web.pages.entity_history import seq_to_undo
from dittybag.web.pages.prompt_history import find_prompt
from dittybag.web.template_rendering import render_page

#: Longer texts are not rendered as Markdown.
MAX_RENDERED_LENGTH: Final = 20_000
#: Maximum number of suggested tags.
_MAX_TAGS: Final = 50
#: Browsers remove line breaks from a field of one line.
_LINE_BREAK: Final = re.compile(r"[\r\n]")
_ARGUMENT_FIELD: Final = re.compile(r"argument-([0-9]{1,4})-(name|description|required|choices)")
_NO_PROMPT: Final = Prompt(
    number=0, id="", project=0, name="", title="", content="", created_at=0, updated_at=0
)


def message_sources(content: str) -> list[Message]:
    """Return the parts of a content with `--role` lines before rendering; empty if it has none."""
    roles = find_role_lines(content) if len(content) <= MAX_RENDERED_LENGTH else ()
    return split_at_marks(content, roles) if roles else []


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


class PromptForm(EntityForm, frozen=True, kw_only=True):
    """The form of a prompt."""

    kind: Kind = "prompt"
    rows: tuple[ArgumentRow, ...] = ()
    #: Whether variables in the content are kept as text.
    verbatim: bool = False

    @classmethod
    def from_prompt(cls, prompt: Prompt) -> PromptForm:
        rows = tuple(map(ArgumentRow.from_argument, prompt.arguments))
        return replace(cls.stored("prompt", prompt), rows=rows)

    @classmethod
    def from_request(cls, request: WebRequest) -> PromptForm:
        rows: dict[int, dict[str, Any]] = {}
        for name, value in request.fields:
            if found := _ARGUMENT_FIELD.fullmatch(name):
                is_required = found[2] == "required"
                rows.setdefault(int(found[1]), {})[found[2]] = True if is_required else value
        argument_rows = (ArgumentRow(**rows[number]) for number in sorted(rows))
        return replace(
            cls.typed("prompt", request),
            rows=tuple(row for row in argument_rows if not row.is_empty),
            verbatim="verbatim" in request.form,
        )

    @property
    def content(self) -> str:
        return self.value("content")

    def tag_names(self) -> list[str]:
        return list(dict.fromkeys(tag.lower() for tag in re.split(r"[,\s]+", self.value("tags")) if tag))

    def arguments(self) -> tuple[Argument, ...]:
        return tuple(row.argument() for row in self.rows)

    def messages(self, name: str) -> list[str]:
        """Return the problems with a field, without those that are shown at the row of an argument."""
        at_rows = {message for row in self.rows for message in row.problems}
        return [message for message in EntityForm.messages(self, name) if message not in at_rows]

    def apply_to(self, prompt: Prompt) -> Prompt:
        """Return the prompt with the values of the form; differences in line breaks alone are ignored."""
        unchanged = {ArgumentRow.from_argument(item): item for item in prompt.arguments}
        is_same_content = _normalise_newlines(prompt.content) == self.content
        rows = () if self.verbatim else self.rows
        return replace(
            prompt,
            title=_keep_if_equal(_LINE_BREAK.sub("", prompt.title), self.value("title"), prompt.title),
            name=self.value("name").strip(),
            description=_keep_if_equal(prompt.description or "", self.value("description")) or None,
            tags=tuple(self.tag_names()),
            content=prompt.content if is_same_content else self.content,
            arguments=tuple(unchanged.get(row) or row.argument() for row in rows),
        )

    def with_error(self, error: DittybagError) -> PromptForm:
        """Return the form with the problems of an error, and those of each argument."""
        rows = tuple(
            replace(row, problems=tuple(item.message for item in problems(arguments=[row.argument()])))
            for row in self.rows
        )
        return replace(self, problems=problems_of(error), rows=rows)


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
    return await _render_form(request, PromptForm(values={}))


async def create_prompt(request: WebRequest) -> WebResponse:
    form = PromptForm.from_request(request)
    found = await _found_arguments(request, form, form.content)
    try:
        prompt, _ = await request.workspace.prompts.create(
            request.caller,
            content=form.content,
            name=form.value("name").strip() or None,
            title=form.value("title").strip(),
            description=form.value("description").strip(),
            tags=form.tag_names(),
            arguments=() if form.verbatim else form.arguments() or found,
        )
    except FORM_ERRORS as error:
        return await _render_form(request, form.with_error(error), status=status_of(error))
    return redirect(request.link(f"/prompts/{prompt.id}", saved="new"), _saved_note("Prompt saved", found))


async def _found_arguments(request: WebRequest, form: PromptForm, content: str) -> tuple[Argument, ...]:
    """Return the variables of the content as arguments, unless the form has arguments or keeps the text."""
    if form.rows or form.verbatim:
        return ()
    return await request.context.templates.find_arguments(content)


def _saved_note(message: str, found: Sequence[Argument]) -> str:
    return f"{message}; {describe_found(found)}" if found else message


# Editing


async def show_edit_form(request: WebRequest) -> WebResponse:
    _require_write_access(request)
    prompt = await find_prompt(request)
    form = PromptForm.from_prompt(prompt)
    form = replace(form, verbatim=bool(await _found_arguments(request, form, prompt.content)))
    return await _render_form(request, form, prompt=prompt)


async def save_prompt(request: WebRequest) -> WebResponse:
    """Save a prompt, unless someone else changed it in the meantime."""
    form = PromptForm.from_request(request)
    try:
        current = await find_prompt(request)
    except PromptNotFound:
        message = (
            "This prompt was deleted while you were editing it; if you save now, it becomes a new prompt"
        )
        deleted = replace(form, version=0, problems=[Problem("", message)])
        return await _render_form(request, deleted, status=409)
    link = request.link(f"/prompts/{current.id}", saved="edit")
    mine = form.apply_to(current)
    if form.version != current.version:
        return await _render_conflict(request, form, current)
    mine = replace(mine, arguments=await _new_arguments(request, form, mine, current))
    found = mine.arguments if mine.arguments not in (form.arguments(), current.arguments) else ()
    if mine == current:
        return redirect(link, "No changes to save")
    changed = ENTITY_TYPES["prompt"].changed_fields(current, mine)
    # An empty description removes it.
    change: dict[str, Any] = {field.name: getattr(mine, field.name) or "" for field in changed}
    try:
        saved, _ = await request.workspace.prompts.update(
            request.caller, PromptAddress(id=current.id), PromptChange(**change), version=current.version
        )
    except Outdated:
        return await _render_conflict(request, form, await find_prompt(request))
    except FORM_ERRORS as error:
        return await _render_form(request, form.with_error(error), status=status_of(error), prompt=current)
    undo = await seq_to_undo(request, "prompt", saved.id, saved.version)
    return redirect(link, _saved_note("Changes saved", found), undo=undo)


async def _new_arguments(
    request: WebRequest, form: PromptForm, mine: Prompt, current: Prompt
) -> tuple[Argument, ...]:
    """Return the arguments to save: those in the form, or the variables of the content."""
    if form.rows and not form.verbatim and mine.arguments == current.arguments:
        return await request.context.templates.updated_arguments(current, mine.content)
    return mine.arguments or await _found_arguments(request, form, mine.content)


async def _render_conflict(request: WebRequest, form: PromptForm, theirs: Prompt) -> WebResponse:
    """Show how both versions differ, and the form to overwrite the saved version."""
    mine = form.apply_to(theirs)
    if mine == theirs:
        link = request.link(f"/prompts/{theirs.id}", saved="edit")
        return redirect(link, "Someone else already saved the same changes")
    form = await form.with_conflict(request, theirs, mine)
    return await _render_form(request, form, status=409, prompt=theirs)


# Rendering forms


async def preview_draft(request: WebRequest) -> WebResponse:
    """Return the rendered content and template errors as a fragment."""
    form = PromptForm.from_request(request)
    problem = None
    try:
        if form.rows and not form.verbatim:
            # Any values reveal errors in the template.
            values = {item.name: next(iter(item.choices), item.name) for item in form.arguments()}
            unsaved = form.apply_to(_NO_PROMPT)
            await request.context.templates.render_prompt(unsaved, values, client=request.client_key)
    except PromptUnusable as error:
        problem = str(error)
    found = await _found_arguments(request, form, form.content)
    return render_page(request, "prompts/draft_preview.html", **_preview_values(form, problem, found))


def _preview_values(
    form: PromptForm, problem: str | None = None, found: Sequence[Argument] = ()
) -> dict[str, Any]:
    return {
        "content": form.content,
        "messages": message_sources(form.content),
        "is_long": len(form.content) > MAX_RENDERED_LENGTH,
        "tokens": estimate_tokens(form.content),
        "problem": problem,
        "found": [item.name for item in found],
    }


async def _render_form(
    request: WebRequest, form: PromptForm, *, status: int = 200, prompt: Prompt | None = None
) -> WebResponse:
    in_use = await request.context.tags.find(request.caller)
    return render_page(
        request,
        "prompts/prompt_form.html",
        status=status,
        form=form,
        prompt=prompt,
        tag_names=[tag.name for tag in in_use[:_MAX_TAGS]],
        **_preview_values(form),
    )


def _require_write_access(request: WebRequest) -> None:
    if not request.can_write:
        raise NotAllowed("You can read this project, but not change it")
