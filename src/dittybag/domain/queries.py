"""Queries of the repositories as values. Every condition narrows the result, in every combination."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from dittybag.domain.entities import Kind
from dittybag.domain.prompts import PromptOrder

#: Most recently updated first; by name; largest first; by MIME type, then by name.
ResourceOrder = Literal["updated", "name", "size", "type"]


class ChangeQuery(Struct, frozen=True, kw_only=True):
    """Selects changes of the log, newest first. `None` is no condition."""

    #: Changes of this project, and of tasks.
    project: int | None = None
    kind: Kind | None = None
    #: No changes of this kind.
    except_kind: Kind | None = None
    #: The id of an entity.
    entity: str | None = None
    #: Changes of entities that ever had this name, title or URI.
    name: str | None = None
    #: Text in the name, title or URI before or after the change, ignoring case.
    text: str | None = None
    actor: str | None = None
    #: No changes of this actor.
    except_actor: str | None = None
    #: A time: this or later.
    since: int | None = None
    #: Of the changes of tasks without a project, only those of this user.
    user: str | None = None
    #: Only changes with a `seq` between these two, exclusive.
    after: int = 0
    before: int | None = None
    limit: int | None = None
    oldest_first: bool = False


#: Skipping more rows than this takes about a millisecond.
DEEP_OFFSET: Final = 2000


class PromptQuery(Struct, frozen=True, kw_only=True):
    """Selects prompts of a project. Empty texts and tags are no condition."""

    project: int
    #: Text in title or content, ignoring case.
    text: str = ""
    #: At least one of these tags.
    any_tag: tuple[str, ...] = ()
    #: Each of these tags.
    all_tags: tuple[str, ...] = ()
    order: PromptOrder = "updated"
    limit: int
    offset: int = 0
    #: With a text or tags, count and return only the first of all matches, which is faster.
    max_matches: int | None = None


class ResourceQuery(Struct, frozen=True, kw_only=True):
    """Selects resources of a project. An empty text is no condition."""

    project: int
    text: str = ""
    mime_type: str | None = None
    order: ResourceOrder = "updated"
    limit: int
    offset: int = 0


class TaskView(Struct, frozen=True):
    """Which tasks a user can see beside those that are the user's alone."""

    #: Whether the tasks of projects are seen; otherwise only those of them that the user created.
    shared: bool = False
    #: Projects that are hidden from the user.
    hidden: tuple[int, ...] = ()


#: Only the tasks that the user created.
OWN_TASKS: Final = TaskView()


#: Highest priority first, then as created, as the task contract lists tasks; highest priority first, then
#: earliest due date, as the queue hands tasks out; earliest due date first; latest created first; latest
#: updated first; by title; shortest title first.
TaskSort = Literal["priority", "queue", "due", "created", "updated", "title", "shortest"]


class TaskQuery(Struct, frozen=True, kw_only=True):
    """Selects tasks of a user. `None` is no condition."""

    user: str
    view: TaskView = OWN_TASKS
    project: str | None = None
    #: One of these priorities.
    priorities: tuple[int, ...] = ()
    #: Only completed or only open tasks.
    completed: bool | None = None
    #: One of these statuses.
    statuses: tuple[str, ...] = ()
    assignee: str | None = None
    #: Each of these labels.
    labels: tuple[str, ...] = ()
    #: Only parts of this task.
    parent: int | None = None
    #: Due on or before this day.
    due_by: str | None = None
    #: Every word of this text, ignoring case and accents, in the title or the notes.
    text: str = ""
    in_title: bool = True
    in_notes: bool = True
    order: TaskSort = "priority"
    #: In the opposite order; tasks without a due date stay behind those that have one.
    is_reversed: bool = False
    limit: int | None = None
    offset: int = 0
    #: The maximum size of the texts of the returned tasks.
    max_bytes: int | None = None


#: The budget of a context pack, in tokens.
MIN_BUDGET: Final = 200
MAX_BUDGET: Final = 50_000
DEFAULT_BUDGET: Final = 2_000


class PackRequest(Struct, frozen=True, kw_only=True):
    """What a pack is about: a task, a question, files, several of them, or only the project."""

    task: int | None = None
    query: str = ""
    files: tuple[str, ...] = ()
    #: In tokens, as `dittybag.domain.token_estimate` counts them.
    budget: int = DEFAULT_BUDGET
