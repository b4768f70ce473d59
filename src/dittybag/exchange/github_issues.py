"""Reads issues of GitHub: the output of `gh issue list --json`, and of the REST API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from dittybag.exchange.draft_collector import DraftCollector, ForeignComment, ForeignTask
from dittybag.exchange.task_input import TaskInput

#: Reasons for which an issue was closed without being done.
_DROPPED: Final = frozenset(("not_planned", "duplicate"))
_API_URL: Final = re.compile(r"https://(?:api\.github\.com|([^/]+)/api/v3)/repos/(.+)")


class _Named(Struct):
    """A label, a milestone or a type: `name`, or `title`."""

    name: str | None = None
    title: str | None = None

    @property
    def label(self) -> str:
        return self.name or self.title or ""


class _User(Struct):
    login: str = ""


class _Comment(Struct, rename="camel"):
    body: str | None = None
    author: _User | None = None
    created_at: str | None = None


class _Reference(Struct):
    """Another issue."""

    number: int | None = None
    url: str | None = None
    html_url: str | None = None


class _References(Struct):
    nodes: list[_Reference] | None = None


class _DependencyCounts(Struct):
    blocked_by: int = 0


_ReferenceList = list[_Reference] | _References | None


class _Issue(Struct):
    """An issue, with the names of `gh` and of the REST API."""

    number: int
    title: str | None = None
    body: str | None = None
    state: str | None = None
    stateReason: str | None = None  # noqa: N815  # the names of gh
    state_reason: str | None = None
    createdAt: str | None = None  # noqa: N815
    created_at: str | None = None
    closedAt: str | None = None  # noqa: N815
    closed_at: str | None = None
    url: str | None = None
    html_url: str | None = None
    labels: list[_Named | str] | None = None
    assignees: list[_User] | None = None
    assignee: _User | None = None
    comments: list[_Comment] | int | None = None
    milestone: _Named | None = None
    issueType: _Named | None = None  # noqa: N815
    type: _Named | None = None
    parent: _Reference | None = None
    parent_issue_url: str | None = None
    blockedBy: _ReferenceList = None  # noqa: N815
    blocked_by: _ReferenceList = None
    subIssues: _ReferenceList = None  # noqa: N815
    sub_issues: _ReferenceList = None
    issue_dependencies_summary: _DependencyCounts | None = None
    pull_request: _Reference | None = None

    @property
    def address(self) -> str:
        """The URL, or the number if it is not in the file."""
        return _web_url(self.html_url or self.url or "") or f"github:{self.number}"

    def address_of(self, other: _Reference | None) -> str:
        """The URL of another issue, which is in the same repository if only its number is known."""
        if other is None:
            return ""
        if url := _web_url(other.html_url or other.url or ""):
            return url
        separator = "/" if "/" in self.address else ":"
        start = self.address.rpartition(separator)[0]
        return "" if other.number is None else f"{start}{separator}{other.number}"


def _web_url(url: str) -> str:
    """Return the address of an issue in the web, given that or its address in the REST API."""
    api = _API_URL.fullmatch(url)
    return url if api is None else f"https://{api[1] or 'github.com'}/{api[2]}"


def read_github(source: TaskInput, into: DraftCollector) -> None:
    """Collect the issues of a file. Raises `SourceFailed`."""
    issues = source.items(_Issue)
    wholes = {
        issue.address_of(part): issue.address
        for issue in issues
        for part in _listed(issue.subIssues) + _listed(issue.sub_issues)
    }
    # The newest is first, and a task is to have a higher number than those before it.
    for issue in sorted(issues, key=lambda issue: issue.number):
        if issue.pull_request is not None:
            into.note("pull requests were left out", f"#{issue.number}")
        else:
            _note_missing(issue, into)
            into.add(_to_task(issue, wholes.get(issue.address, ""), into))


def _listed(references: _ReferenceList) -> list[_Reference]:
    if isinstance(references, _References):
        return references.nodes or []
    return references or []


def _note_missing(issue: _Issue, into: DraftCollector) -> None:
    if isinstance(issue.comments, int) and issue.comments > 0:
        into.note("the file has only the number of comments, not the comments", f"#{issue.number}")
    counts = issue.issue_dependencies_summary
    if counts is not None and counts.blocked_by and not _listed(issue.blocked_by):
        into.note(
            "the file has only the number of dependencies; gh issue list --json has them", f"#{issue.number}"
        )


def _to_task(issue: _Issue, whole: str, into: DraftCollector) -> ForeignTask:
    assignees = [user.login for user in issue.assignees or ([issue.assignee] if issue.assignee else [])]
    if len(assignees) > 1:
        into.note("only the first assignee was imported", f"#{issue.number}")
    blockers = _listed(issue.blockedBy) + _listed(issue.blocked_by)
    parent = _Reference(url=issue.parent_issue_url) if issue.parent_issue_url else issue.parent
    return ForeignTask(
        id=issue.address,
        origin="",
        title=issue.title or "",
        notes=issue.body or "",
        status=_status(issue),
        created=issue.createdAt or issue.created_at or "",
        completed=issue.closedAt or issue.closed_at or "",
        assignee=assignees[0] if assignees else "",
        labels=list(_labels(issue)),
        comments=list(_comments(issue)),
        parent=issue.address_of(parent) or whole,
        blocked_by=[issue.address_of(blocker) for blocker in blockers],
    )


def _status(issue: _Issue) -> str:
    is_closed = (issue.state or "").lower() == "closed"
    reason = (issue.stateReason or issue.state_reason or "").lower()
    if not is_closed:
        return "todo"
    return "dropped" if reason in _DROPPED else "done"


def _labels(issue: _Issue) -> Iterator[str]:
    for label in issue.labels or ():
        yield label if isinstance(label, str) else label.label
    for named in (issue.issueType or issue.type, issue.milestone):
        if named is not None:
            yield named.label


def _comments(issue: _Issue) -> Iterator[ForeignComment]:
    for comment in issue.comments if isinstance(issue.comments, list) else ():
        author = comment.author.login if comment.author is not None else ""
        yield ForeignComment(comment.body or "", author, comment.created_at or "")
