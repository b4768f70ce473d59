"""`dittybag prompt edit`, and new prompts written in the editor."""

from __future__ import annotations

from typing import Any, Final

import click

from dittybag.cli.output import print_result
from dittybag.cli.prompt_read_commands import get_prompt
from dittybag.cli.prompt_saving import SavedPrompt, create_prompt, print_saved, update_prompt
from dittybag.cli.read_input import refuse, text
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.entities import to_data
from dittybag.domain.errors import NameTaken, PromptNotFound, require
from dittybag.domain.prompts import CONTENT_BYTES, Argument, Prompt, problems
from dittybag.services.prompt_service import PromptAddress, PromptChange

#: The content, and fields of the largest allowed sizes.
_MAX_BYTES: Final = CONTENT_BYTES + 512 * 1024

verbatim_option: Final = click.option(
    "--verbatim", is_flag=True, help="Keep {{ variables }} as text instead of making them arguments."
)
draft_option: Final = click.option(
    "--draft", metavar="FILE", help="Start with a text that was kept when it could not be stored."
)


@click.command("edit", StrictCommand)
@click.argument("name", type=text)
@verbatim_option
@draft_option
@in_project
def edit(name: str, options: WorkspaceOptions, *, verbatim: bool, draft: str | None) -> None:
    """Edit a prompt in your editor: its fields as front matter, and its content.

    If the text cannot be stored, the editor opens again with the error at the top. If someone else changes
    the prompt in the meantime, it is not overwritten: both versions are shown, and your text is kept in a
    file.

    \b
    Example:
      dittybag prompt edit code-review
    """
    from dittybag.cli.editor import EditorFile, read_draft
    from dittybag.cli.prompt_document import document_of

    prompt = get_prompt(options, name)
    document = document_of(prompt)
    file = EditorFile(
        prompt.name,
        document.format() if draft is None else read_draft(draft, _MAX_BYTES),
        is_terminated=prompt.content.endswith("\n"),
    )

    def store(text: str) -> SavedPrompt | None:
        change = _change(prompt, text, verbatim=verbatim)
        if change == PromptChange():
            return None
        return update_prompt(options, PromptAddress(id=prompt.id), change, version=prompt.version)

    saved = file.edit(
        store,
        max_bytes=_MAX_BYTES,
        versions=lambda text: (
            document_of(get_prompt(options, prompt.id)).format(),
            document.parse(text).format(),
        ),
        resume=f"dittybag prompt edit {prompt.name}",
    )
    if saved is None:
        print_result(to_data(prompt), f"Prompt '{prompt.name}' is unchanged")
    else:
        print_saved(saved, "Updated")


def _change(prompt: Prompt, text: str, *, verbatim: bool) -> PromptChange:
    """Return what an edited file changes in a prompt. Raises `Invalid`."""
    from dittybag.cli.prompt_document import document_of

    document = document_of(prompt).parse(text)
    title = document.title or document.name
    given: dict[str, Any] = {
        "name": (document.name, prompt.name),
        "title": (title, prompt.title),
        "description": (document.description, prompt.description or ""),
        "tags": (document.tags, prompt.tags),
        "arguments": (() if verbatim else document.arguments, prompt.arguments),
        "content": (document.content, prompt.content),
    }
    change = {field: new for field, (new, old) in given.items() if new != old}
    if verbatim and "content" in change:
        change["arguments"] = ()
    return PromptChange(**change)


def create_in_editor(
    options: WorkspaceOptions,
    *,
    name: str | None,
    arguments: tuple[Argument, ...] | None,
    tags: tuple[str, ...],
    title: str | None = None,
    description: str | None = None,
) -> SavedPrompt:
    """Create a prompt that is written in the editor. Fields that were given are validated first.

    `arguments`: `None` for the variables of the content, unless the file declares others.
    """
    from dittybag.cli.editor import EditorFile
    from dittybag.cli.prompt_document import PromptDocument

    given = {"name": name, "title": title, "description": description}
    require(problems(**{field: value for field, value in given.items() if value is not None}, tags=tags))
    if name is not None:
        _require_unused(options, name)
    template = PromptDocument(name or "", title, description or "", tags, arguments or (), "")
    file = EditorFile(
        name or "prompt",
        is_terminated=False,
        text=template.format(
            "Write the prompt below the second ---, then save and close. An empty text adds nothing.",
            *(("{{ variables }} in the text become its arguments.",) if arguments is None else ()),
        ),
    )

    def store(text: str) -> SavedPrompt:
        document = template.parse(text)
        if not document.content.strip():
            refuse("The text is empty; the prompt was not added")
        return create_prompt(
            options,
            document.content,
            name=document.name or None,
            title=document.title,
            description=document.description or None,
            tags=document.tags,
            arguments=document.arguments or arguments,
        )

    return file.edit(store, max_bytes=_MAX_BYTES)


def _require_unused(options: WorkspaceOptions, name: str) -> None:
    try:
        options.run(
            lambda session: session.workspace.prompts.get(session.caller, PromptAddress(name=name)),
            create=True,
        )
    except PromptNotFound:
        return
    raise NameTaken("prompt", name, options.project_name)
