"""Reads issues of beads: its JSONL export, and the output of `bd list --json` and `bd show --json`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from dittybag.domain.errors import SourceFailed
from dittybag.exchange.draft_collector import DraftCollector, ForeignComment, ForeignTask
from dittybag.exchange.task_input import TaskInput

#: The types of dependencies that block.
_BLOCKING: Final = frozenset(("blocks", "waits-for"))
_PARENT: Final = "parent-child"
#: The lowest priority; the highest is 0.
_LOWEST: Final = 4
_NORMAL: Final = 2
#: What beads writes if nobody gave a reason.
_NO_REASON: Final = "Closed"
_SECTIONS: Final = (("design", "Design"), ("acceptance_criteria", "Acceptance criteria"), ("notes", "Notes"))


class _Dependency(Struct):
    """A dependency: of an export with `depends_on_id`, of `bd show` with `id`."""

    depends_on_id: str | None = None
    type: str | None = None
    id: str | None = None
    dependency_type: str | None = None

    @property
    def target(self) -> str:
        return self.depends_on_id or self.id or ""

    @property
    def kind(self) -> str:
        return (self.type if self.depends_on_id else self.dependency_type) or "blocks"


class _Comment(Struct):
    text: str = ""
    author: str | None = None
    created_at: str | None = None


class _Issue(Struct):
    """A line of an export. Some lines are not issues."""

    id: str = ""
    record_type: str = field(name="_type", default="issue")
    title: str | None = None
    description: str | None = None
    design: str | None = None
    acceptance_criteria: str | None = None
    notes: str | None = None
    status: str | None = None
    priority: int | None = None
    issue_type: str | None = None
    assignee: str | None = None
    estimated_minutes: int | None = None
    created_at: str | None = None
    closed_at: str | None = None
    close_reason: str | None = None
    due_at: str | None = None
    external_ref: str | None = None
    labels: list[str] | None = None
    dependencies: list[_Dependency] | None = None
    comments: list[_Comment] | None = None
    parent: str | None = None
    is_template: bool = False


class _Listing(Struct):
    """The output of `bd list --json`, unless it is an array."""

    issues: list[_Issue] | None = None


def read_beads(source: TaskInput, into: DraftCollector) -> None:
    """Collect the issues of a file. Raises `SourceFailed`."""
    listed = source.decode(_Listing).issues if source.is_object else None
    issues = source.items(_Issue) if listed is None else listed
    source.require_count(len(issues))
    for issue in issues:
        if (reason := _left_out(issue)) is not None:
            into.note(f"{reason} were left out", issue.id)
        elif not issue.id:
            raise SourceFailed(source.name, "an issue has no id")
        else:
            into.add(_to_task(issue, into))


def _left_out(issue: _Issue) -> str | None:
    if issue.record_type != "issue":
        return f"records of the type '{issue.record_type[:60]}'"
    if issue.status == "tombstone":
        return "deleted issues"
    return "templates" if issue.is_template else None


def _to_task(issue: _Issue, into: DraftCollector) -> ForeignTask:
    dependencies = issue.dependencies or []
    parents = [item.target for item in dependencies if item.kind == _PARENT]
    if len(parents) > 1:
        into.note("only the first parent was imported", issue.id)
    minutes = issue.estimated_minutes or 0
    return ForeignTask(
        id=issue.id,
        origin="beads:",
        title=issue.title or "",
        notes="\n\n".join(_notes(issue)),
        priority=_LOWEST + 1 - (_NORMAL if issue.priority is None else issue.priority),
        time_estimate=f"{minutes}min" if 0 < minutes < 1_000_000 else "",
        due=issue.due_at or "",
        status=issue.status or "",
        created=issue.created_at or "",
        completed=issue.closed_at or "",
        assignee=issue.assignee or "",
        labels=[
            *(issue.labels or ()),
            *([issue.issue_type] if issue.issue_type not in (None, "task") else ()),
        ],
        links=[issue.external_ref] if issue.external_ref else (),
        comments=list(_comments(issue)),
        parent=next(iter(parents), "") or issue.parent or "",
        blocked_by=[item.target for item in dependencies if item.kind in _BLOCKING],
    )


def _notes(issue: _Issue) -> Iterator[str]:
    if issue.description:
        yield issue.description.strip()
    for name, title in _SECTIONS:
        if text := (getattr(issue, name) or "").strip():
            yield f"## {title}\n\n{text}"
    others = [
        f"- {item.kind}: {item.target}"
        for item in issue.dependencies or ()
        if item.kind != _PARENT and item.kind not in _BLOCKING
    ]
    if others:
        yield "\n".join(["## Related issues\n", *others])


def _comments(issue: _Issue) -> Iterator[ForeignComment]:
    for comment in issue.comments or ():
        yield ForeignComment(comment.text, comment.author or "", comment.created_at or "")
    if issue.close_reason and issue.close_reason != _NO_REASON:
        yield ForeignComment(
            f"Closed: {issue.close_reason}", issue.assignee or "beads", issue.closed_at or ""
        )
