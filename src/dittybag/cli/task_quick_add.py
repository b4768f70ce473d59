"""Fields of a task in its title, such as `Buy milk !4 @home due fri`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Self

from msgspec import Struct

from dittybag.cli.output import clip_line, note
from dittybag.cli.read_input import refuse
from dittybag.cli.task_options import local_now
from dittybag.domain.due_dates import format_due_day
from dittybag.domain.errors import Invalid
from dittybag.domain.tasks import Task


class QuickAdd(Struct, frozen=True):
    """A title, and the fields that were found in it."""

    title: str
    fields: Mapping[str, Any]

    @classmethod
    def plain(cls, text: str) -> Self:
        """Take the text as the title."""
        return cls(text, {})

    @classmethod
    def parse(cls, text: str, given: Mapping[str, Any]) -> Self:
        """Find fields in the text. Those that are `given` by options stay as they are."""
        from dittybag.domain.quick_add import task_fields

        try:
            found = task_fields(text, local_now().date())
        except Invalid as error:
            error.add_note("to keep it in the title, use --plain")
            raise
        title = found.pop("title")
        if not found:
            return cls.plain(text)
        if not title:
            refuse(
                "The task has no title",
                "words such as !4, @home and due fri set its fields; to keep them in the title, use --plain",
            )
        return cls(title, {name: value for name, value in found.items() if name not in given})

    def understood(self, task: Task) -> list[str]:
        """Return the fields of the task that were found in the title, in words."""
        due = task.due_date or ""
        texts = {
            "priority": f"priority {task.priority}",
            "project": f"project {clip_line(task.project or '')}",
            "due_date": f"due {format_due_day(due, local_now()) if due and sys.stdout.isatty() else due}",
        }
        return [text for name, text in texts.items() if name in self.fields]

    def report_project(self, task: Task) -> None:
        """Say that a name after @ is not that of a project. As in the web UI, it stays as text."""
        if "project" in self.fields and task.project_id is None:
            name = clip_line(task.project or "")
            note(f"'{name}' is not a project: only you see the task")
            note(f"to keep @{name} in the title, use --plain")
