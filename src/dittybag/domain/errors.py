"""Dittybag's errors, each with a stable code and its facts as attributes; each face words them in its way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar, dataclass_transform

from msgspec import Struct

from dittybag import __version__
from dittybag.domain.times import iso

if TYPE_CHECKING:
    from dittybag.domain.prompts import Argument

T = TypeVar("T")

#: Maximum number of characters of user input in an error message. No valid name is longer.
CLIPPED_LENGTH: Final = 300


def clip(text: str, max_length: int = CLIPPED_LENGTH) -> str:
    """Return `text`, truncated to what fits into an error message."""
    return text if len(text) <= max_length else text[:max_length] + "..."


class Problem(Struct, frozen=True):
    """One rule that the input breaks, as a sentence."""

    #: The name of the field as in the API; empty if the problem concerns the whole input.
    field: str
    message: str
    #: Whether the field is missing, of another type, or has too few or too many items.
    is_shape: bool = False


class _Fact:
    """A fact of an error in its message. Besides the usual formats, it has `clip`, `iso` and `capitalize`."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __format__(self, form: str) -> str:
        if form == "clip":
            return clip(self._value)
        if form == "iso":
            return iso(self._value)
        return str(self._value).capitalize() if form == "capitalize" else format(self._value, form)


@dataclass_transform(eq_default=False)
class DittybagError(Exception):
    """Base class of all errors that Dittybag raises on purpose.

    The annotated attributes of a subclass are its facts, and the arguments of its constructor.
    """

    #: Stable identifier for programs.
    code: ClassVar[str] = "ERROR"
    #: The message, a format string with the facts as fields.
    message: ClassVar[str] = ""
    _facts: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        own = [name for name, hint in cls.__annotations__.items() if not hint.startswith("ClassVar")]
        cls._facts = (*cls._facts, *own)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.message:
            super().__init__(*args)
            return
        facts = dict(zip(self._facts, args, strict=False)) | kwargs
        vars(self).update(facts)
        super().__init__(self.message.format_map({name: _Fact(value) for name, value in facts.items()}))


class Invalid(DittybagError):
    """The input breaks at least one rule; `problems` lists all of them."""

    code = "INVALID"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.message for problem in problems))


class UnknownFormat(Invalid):
    """The format of an import source is not known."""

    def __init__(self, source: str, problem: str) -> None:
        super().__init__([Problem("source", f"{source} cannot be imported: {problem}")])


def require(problems: Iterable[Problem]) -> None:
    """Raise `Invalid` if there are any problems."""
    if found := tuple(problems):
        raise Invalid(found)


def checked(field: str, value: T, problem: str | None) -> T:
    """Return the value of a field. Raises `Invalid` if it has a problem."""
    if problem is not None:
        raise Invalid([Problem(field, problem)])
    return value


#: Returns the problem with a value, or all problems; `None` or nothing if it is valid.
Check = Callable[[Any], str | Iterable[Problem] | None]


def field_problems(checks: Mapping[str, Check], fields: Mapping[str, Any]) -> list[Problem]:
    """Return all problems with the given fields, in the order of the checks. `None` is valid."""
    problems: list[Problem] = []
    for name, check in checks.items():
        value = fields.get(name)
        if value is None or (found := check(value)) is None:
            continue
        problems += [Problem(name, found)] if isinstance(found, str) else found
    return problems


class NotFound(DittybagError):
    """The requested entity does not exist."""

    code = "NOT_FOUND"


class WorkspaceNotFound(NotFound):
    """The database does not exist, or holds no workspace."""

    code = "WORKSPACE_NOT_FOUND"
    message = "There is no Dittybag database at {where}"
    where: str


class ProjectNotFound(NotFound):
    """The project does not exist."""

    code = "PROJECT_NOT_FOUND"

    def __init__(self, project: str, near: Sequence[str] = ()) -> None:
        """`near`: names that are similar and exist."""
        self.project = project
        self.near = tuple(near)
        hint = f". Did you mean {' or '.join(self.near)}?" if near else ""
        super().__init__(f"Project '{clip(project)}' does not exist{hint}")


class ProjectGone(NotFound):
    """The project was deleted while a server used it."""

    code = "PROJECT_GONE"
    message = "The selected project was deleted. Select another project, or undo the deletion."


class PromptNotFound(NotFound):
    """The prompt does not exist."""

    code = "PROMPT_NOT_FOUND"
    message = "Prompt '{reference:clip}' does not exist in project '{project}'"
    reference: str
    project: str


class LibraryPromptNotFound(NotFound):
    """No library contains the prompt."""

    code = "LIBRARY_PROMPT_NOT_FOUND"
    message = "Prompt not found: {name:clip}"
    name: str


class LibraryNotFound(NotFound):
    """The library does not exist."""

    code = "LIBRARY_NOT_FOUND"
    message = "Library '{name:clip}' does not exist"
    name: str


class SourceNotFound(NotFound):
    """The source of a library does not exist."""

    code = "SOURCE_NOT_FOUND"

    def __init__(self, source: str, problem: str) -> None:
        self.source = source
        super().__init__(f"{clip(source)}: {problem}")


class ResourceNotFound(NotFound):
    """The resource does not exist."""

    code = "RESOURCE_NOT_FOUND"
    message = "Resource '{reference:clip}' does not exist in project '{project}'"
    reference: str
    project: str


class ReferenceNotFound(NotFound):
    """Nothing has the name, URI or id."""

    code = "REFERENCE_NOT_FOUND"

    def __init__(self, reference: str, near: Sequence[str] = ()) -> None:
        """`near`: references that are similar and exist."""
        self.reference = reference
        self.near = tuple(near)
        advice = f"Did you mean {' or '.join(self.near)}?" if near else "Search for it to find its ref."
        super().__init__(f"There is nothing called '{clip(reference)}'. {advice}")


class TaskNotFound(NotFound):
    """The task does not exist."""

    code = "TASK_NOT_FOUND"
    message = "Task {id} not found"
    id: int


class ChangeNotFound(NotFound):
    """The change does not exist."""

    code = "CHANGE_NOT_FOUND"
    message = "Change {seq} not found"
    seq: int


class ChangePurged(NotFound):
    """The content of a change was purged."""

    code = "PURGED"
    message = "The content of change {seq} was purged by {by:clip} at {at:iso}; it cannot be brought back"
    seq: int
    by: str
    at: int


class NothingToPurge(NotFound):
    """Neither an entity nor the change log has what a reference names."""

    code = "NOTHING_TO_PURGE"
    message = "Nothing to purge: no current or deleted item matches '{reference:clip}'"
    reference: str


class UserNotFound(NotFound):
    """The user does not exist."""

    code = "USER_NOT_FOUND"
    message = "User '{user:clip}' does not exist"
    user: str


class TokenNotFound(NotFound):
    """The token does not exist."""

    code = "TOKEN_NOT_FOUND"
    message = "Token {id} does not exist"
    id: int


class MemberNotFound(NotFound):
    """The user is not a member of the project."""

    code = "MEMBER_NOT_FOUND"
    message = "User '{user:clip}' is not a member of project '{project}'"
    user: str
    project: str


class Conflict(DittybagError):
    """The request conflicts with the current state."""

    code = "CONFLICT"

    if TYPE_CHECKING:

        def __init__(self, problem: str = "") -> None: ...


class NameTaken(Conflict):
    """The name is in use."""

    code = "NAME_TAKEN"

    def __init__(self, kind: str, name: str, project: str | None = None) -> None:
        self.kind = kind
        self.name = name
        self.project = project
        place = f" in project '{project}'" if project is not None else ""
        super().__init__(f"{kind.capitalize()} '{name}' already exists{place}")


class TitleTaken(Conflict):
    """The title is in use."""

    code = "TITLE_TAKEN"
    message = "A prompt with the title '{title}' already exists in project '{project}'"
    title: str
    project: str


class UriTaken(Conflict):
    """The URI is in use."""

    code = "URI_TAKEN"
    message = "A resource with the URI '{uri}' already exists in project '{project}'"
    uri: str
    project: str


class SeveralConflicts(Conflict):
    """There is more than one conflict; `conflicts` lists all of them."""

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        self.conflicts = tuple(conflicts)
        super().__init__("; ".join(str(conflict) for conflict in conflicts))


class Outdated(Conflict):
    """Someone else changed the entity in the meantime."""

    code = "OUTDATED"
    message = "{kind:capitalize} '{name}' was changed by someone else; read it again"
    kind: str
    name: str
    #: The current version, if it is known.
    version: int | None = None


class ChangedMeanwhile(Conflict):
    """An entity to undo was changed again."""

    code = "CHANGED_MEANWHILE"
    message = "Some of it was changed again in the meantime; review it and try again"


class TooManyChanges(Conflict):
    """There are more changes to undo than can be undone together."""

    code = "TOO_MANY_CHANGES"
    message = (
        "{count:,} changes would be undone, but at most {maximum:,} can be undone together;"
        " select those since a later time, of one actor or of one project, or restore a backup"
    )
    count: int
    maximum: int


class TaskClaimed(Conflict):
    """Somebody else holds the task."""

    code = "TASK_CLAIMED"
    message = (
        "Task {id} is held by '{holder:clip}' (since {since:iso}, until {until:iso} unless renewed);"
        " take another one, or name the fence if it is yours"
    )
    id: int
    holder: str
    since: int
    until: int


class ClaimLost(Conflict):
    """The caller named a fence that is no longer valid."""

    code = "CLAIM_LOST"

    def __init__(self, id: int, fence: int, *, holder: str | None = None, since: int | None = None) -> None:
        self.id = id
        self.fence = fence
        #: Who holds the task now, and since when.
        self.holder = holder
        self.since = since
        if holder is not None and since is not None:
            now = f"'{clip(holder)}' has held it since {iso(since)}. Stop working on it"
        else:
            now = "nobody holds it: claim it again before you go on"
        super().__init__(f"Fence {fence} of task {id} is no longer valid: {now}")


class TaskNotReady(Conflict):
    """The task cannot be claimed, or be given back."""

    code = "TASK_NOT_READY"

    def __init__(self, id: int, problem: str, *, action: str = "claimed") -> None:
        self.id = id
        self.problem = problem
        super().__init__(f"Task {id} cannot be {action}: it {problem}")


class TaskCycle(Conflict):
    """A task would wait for itself."""

    code = "TASK_CYCLE"

    def __init__(self, tasks: Sequence[str]) -> None:
        #: Each would wait for the next, and the last for the first.
        self.tasks = tuple(tasks)
        path = " → ".join((*self.tasks, self.tasks[0]))
        super().__init__(f"These tasks would wait for each other: {clip(path, 2000)}")


class AmbiguousReference(Conflict):
    """A reference matches several entities."""

    code = "AMBIGUOUS"

    def __init__(self, reference: str, candidates: Sequence[str]) -> None:
        self.reference = reference
        self.candidates = tuple(candidates)
        super().__init__(f"'{clip(reference)}' matches several items: {', '.join(self.candidates)}")


class LibraryExists(Conflict):
    """The name of a library is in use."""

    code = "LIBRARY_EXISTS"
    message = "Library '{name}' already exists"
    name: str


class LibraryEdited(Conflict):
    """A library contains work that may not exist elsewhere."""

    code = "LIBRARY_EDITED"

    def __init__(self, name: str, *, by_hand: bool = False) -> None:
        """`by_hand`: it was not installed from a source."""
        self.name = name
        edited = "was added by hand and may be the only copy" if by_hand else "was edited by hand"
        super().__init__(f"Library '{name}' {edited}")


class LibrariesBusy(Conflict):
    """Another process holds the lock of the libraries."""

    code = "LIBRARIES_BUSY"
    message = "Another process is changing the libraries; try again in a moment"


class UserDisabled(Conflict):
    """The user is disabled."""

    code = "USER_DISABLED"
    message = "User '{user}' is disabled"
    user: str


class LastMember(Conflict):
    """Without its last member, the project would be visible to everyone."""

    code = "LAST_MEMBER"
    message = "'{user}' is the last member of project '{project}'; without members, everyone can see it"
    user: str
    project: str


class ProjectProtected(Conflict):
    """The default project cannot be renamed or deleted."""

    code = "PROJECT_PROTECTED"
    message = "Project '{project}' cannot be renamed or deleted"
    project: str


class PromptUnusable(DittybagError):
    """The prompt exists but cannot be rendered."""

    code = "PROMPT_UNUSABLE"


#: Maximum number of characters of the descriptions in an error about arguments.
_DESCRIPTIONS_LENGTH: Final = 1200


class ArgumentMissing(PromptUnusable):
    """Required arguments have no values; the message names all of them, with their descriptions."""

    code = "ARGUMENT_MISSING"

    def __init__(self, *names: str, descriptions: Mapping[str, str] | None = None, reason: str = "") -> None:
        """`reason`: why the values could not be asked for, as the end of a sentence."""
        self.names = names
        self.reason = reason
        room = _DESCRIPTIONS_LENGTH // len(names)
        described = ((name, clip((descriptions or {}).get(name, ""), room)) for name in names)
        listed = ", ".join(f"{name} ({about})" if about else name for name, about in described)
        lead = f"Missing required argument{'s' if len(names) > 1 else ''}: {listed}"
        super().__init__(f"{lead}; {reason}" if reason else lead)

    @classmethod
    def of(cls, arguments: Iterable[Argument], reason: str = "") -> Self:
        """Return the error for these arguments."""
        descriptions = {argument.name: argument.summary for argument in arguments}
        return cls(*descriptions, descriptions=descriptions, reason=reason)


class ArgumentInvalid(PromptUnusable):
    """An argument does not exist, or its value is not among its choices."""

    code = "ARGUMENT_INVALID"
    message = "{problem}"
    problem: str


class ContentFileMissing(PromptUnusable):
    """A library lists a prompt whose file is missing."""

    code = "CONTENT_FILE_MISSING"
    message = "Prompt content file not found: {file}"
    file: str


class RenderingFailed(PromptUnusable):
    """A template could not be rendered."""

    code = "RENDERING_FAILED"

    def __init__(
        self,
        problem: str,
        *,
        line: int | None = None,
        file: str | None = None,
        kind: str = "prompt",
        is_unknown_name: bool = False,
    ) -> None:
        """`file`: the file with the error, if it is not the prompt's own. `kind`: what was rendered.

        `is_unknown_name`: the template uses a filter, function or test that does not exist.
        """
        self.problem = problem
        self.is_unknown_name = is_unknown_name
        self.line = line
        self.file = file
        place = "" if line is None else f" at line {line}"
        inside = "" if file is None else f" of {file}"
        super().__init__(f"Error rendering {kind} template{place}{inside}: {clip(problem)}")


class PurgeUnfinished(DittybagError):
    """A purge removed content from all tables, but perhaps not from the free pages of the database."""

    code = "PURGE_UNFINISHED"
    message = (
        "The content was removed from all tables, but it may still be in free pages of the database"
        " until the purge is finished: {problem}"
    )
    problem: str


class NotAllowed(DittybagError):
    """The caller does not have the permission."""

    code = "NOT_ALLOWED"
    message = "{problem}"
    problem: str


class LibraryRefused(DittybagError):
    """The source of a library breaks a rule; nothing was changed."""

    code = "LIBRARY_REFUSED"
    message = "{source:clip}: {problem}"
    source: str
    problem: str


class LibraryTooLarge(LibraryRefused):
    """The source of a library has too many files or bytes; nothing was changed."""

    code = "LIBRARY_TOO_LARGE"


class SourceFailed(DittybagError):
    """The source of a library could not be read; nothing was changed."""

    code = "SOURCE_FAILED"
    message = "{source:clip} could not be read: {problem}"
    source: str
    problem: str


class StorageError(DittybagError):
    """The database operation failed; nothing was changed."""

    code = "STORAGE_ERROR"
    advice: ClassVar[str] = "Try again; the log has the details"

    def __init__(self, where: str) -> None:
        self.where = where
        #: What happened, without the advice.
        self.summary = (type(self).__doc__ or "").strip().rstrip(".")
        super().__init__(f"{self.summary}. {self.advice}")

    @property
    def report(self) -> str:
        """One line for the operator, with facts that clients do not get."""
        return f"{self.where}: {self}"


class StorageBusy(StorageError):
    """The database was locked by other programs for too long; nothing was changed."""

    code = "STORAGE_BUSY"
    advice = "Try again in a moment"


class StorageFull(StorageError):
    """The disk is full; nothing was changed."""

    code = "STORAGE_FULL"
    advice = "Free some disk space and try again"


class StorageReadOnly(StorageError):
    """The database is read-only; nothing was changed."""

    code = "STORAGE_READ_ONLY"
    advice = "Check the permissions of the database file and its folder"


class StorageDamaged(StorageError):
    """The database is damaged; nothing was changed."""

    code = "STORAGE_DAMAGED"
    advice = "Move it aside and restore a backup"


class StorageForeign(StorageError):
    """This file is not a Dittybag database; nothing was changed."""

    code = "STORAGE_FOREIGN"
    advice = "Choose another file"


class StorageTooNew(StorageError):
    """The database was written by a newer version of Dittybag; nothing was changed."""

    code = "STORAGE_TOO_NEW"
    advice = "Upgrade Dittybag to open it"

    def __init__(self, where: str, *, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(where)
        self.summary += f". It has schema {found}, and Dittybag {__version__} knows up to {known}"
        self.args = (f"{self.summary}. {self.advice}",)


class StorageUnreleased(StorageError):
    """The database has the tables of an unreleased version of Dittybag; nothing was changed."""

    code = "STORAGE_UNRELEASED"
    advice = "Export it with the version that wrote it, and import the export into a new database"


class StorageClosed(StorageError):
    """The workspace is closed; nothing was changed."""

    code = "STORAGE_CLOSED"
    advice = "Open it again"


class StorageFailed(StorageError):
    """The database could not be read or written; nothing was changed."""

    code = "STORAGE_FAILED"
    advice = "Check the disk, then try again"

    def __init__(self, where: str, problem: str = "") -> None:
        self.problem = problem
        super().__init__(where)

    @property
    def report(self) -> str:
        return f"{super().report} ({self.problem})" if self.problem else super().report


class LibraryUnwritable(StorageFailed):
    """The libraries folder could not be read or written; nothing was changed."""

    code = "LIBRARY_UNWRITABLE"
    advice = "Check the disk and the permissions of this folder, then try again"


class LinksUnusable(StorageFailed):
    """The file with the links from folders to projects cannot be read or written; nothing was changed."""

    code = "LINKS_UNUSABLE"
    advice = "Repair it, or delete it and link the folders again; the log names it"


class StorageReplaced(StorageFailed):
    """A file of the database was moved, deleted or replaced while it was in use; nothing was changed."""

    code = "STORAGE_REPLACED"
    advice = "Restart Dittybag, check the last changes, and restore a backup if some are missing"


class StorageUnreachable(StorageFailed):
    """The database server cannot be reached; nothing was changed."""

    code = "STORAGE_UNREACHABLE"
    advice = "Check that it is running and that its address is correct, then try again"


class StorageUnsure(StorageFailed):
    """The commit was interrupted by an error; the change may or may not have been saved."""

    code = "STORAGE_UNSURE"
    advice = "Check the current state before you try again"


class CopyRefused(DittybagError):
    """A workspace could not be copied."""

    code = "COPY_REFUSED"
    message = "The workspace cannot be copied to the target: {problem}"
    problem: str
