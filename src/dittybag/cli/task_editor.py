"""`dittybag task edit`: a task in the editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from dittybag.cli.editor import EditorFile, read_draft
from dittybag.cli.output import print_result
from dittybag.cli.prompt_edit import draft_option
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.task_document import format_task, task_changes
from dittybag.cli.task_options import fence_option, local_now, run_on_tasks
from dittybag.cli.task_output import print_saved, task_data
from dittybag.cli.task_reference import find_id, task_argument
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.tasks import NOTES_LENGTH, Task

if TYPE_CHECKING:
    from dittybag.services.workspace import WorkspaceSession

#: A character has at most four bytes in UTF-8. The fields are smaller than the notes.
_MAX_BYTES: Final = 2 * 4 * NOTES_LENGTH


@click.command("edit", StrictCommand)
@task_argument
@fence_option
@draft_option
@in_workspace
def edit(task: str, options: WorkspaceOptions, fence: int | None, draft: str | None) -> None:
    """Edit a task in your editor: its fields as front matter, and its notes.

    If the text cannot be stored, the editor opens again with the error at the top. If someone else changes
    the task in the meantime, it is not overwritten: both versions are shown, and your text is kept in a file.

    \b
    Example:
      dittybag task edit 3
    """
    before = _get(options, task)
    file = EditorFile(
        f"task-{before.id}",
        format_task(before) if draft is None else read_draft(draft, _MAX_BYTES),
        is_terminated=(before.notes or "").endswith("\n"),
    )
    saved = file.edit(
        lambda text: _store(options, before, text, fence),
        max_bytes=_MAX_BYTES,
        versions=lambda text: (format_task(_get(options, str(before.id))), text),
        resume=f"dittybag task edit {before.id}",
    )
    if saved is None:
        print_result(task_data(before, local_now()), f"Task {before.id} is unchanged")
    else:
        print_saved(saved[0], "Updated", saved[1])


def _get(options: WorkspaceOptions, task: str) -> Task:
    async def get(session: WorkspaceSession) -> Task:
        return await session.workspace.tasks.get(session.caller, await find_id(session, task))

    return options.run(get)


def _store(
    options: WorkspaceOptions, task: Task, text: str, fence: int | None
) -> tuple[Task, dict[int, str]] | None:
    """Store what a file changes, and return the task and who lost it; `None` if it changes nothing."""
    changes = task_changes(task, text)
    if not changes:
        return None

    async def update(session: WorkspaceSession) -> tuple[Task, dict[int, str]]:
        return await run_on_tasks(
            session,
            [task.id],
            fence,
            lambda: session.workspace.tasks.update(
                session.caller, task.id, version=task.version, fence=fence, **changes
            ),
        )

    return options.run(update)
