"""What can go wrong in Dittybag, with the facts; each face puts them into its own words.

DittybagError
├── Invalid                  problems: every rule that the input breaks
├── NotFound
│   ├── ProjectNotFound      project
│   ├── ProjectGone          deleted while it was being served
│   ├── PromptNotFound       reference, project
│   ├── LibraryPromptNotFound  name
│   ├── LibraryNotFound      name
│   ├── SourceNotFound       source: of a library
│   ├── ResourceNotFound     reference, project
│   ├── TaskNotFound         id
│   ├── ChangeNotFound       seq
│   ├── UserNotFound         user
│   ├── TokenNotFound        id
│   └── MemberNotFound       user, project
├── Conflict
│   ├── NameTaken            kind, name, project
│   ├── TitleTaken           title, project
│   ├── UriTaken             uri, project
│   ├── SeveralConflicts     conflicts
│   ├── Outdated             kind, name: someone else was faster
│   ├── ChangedMeanwhile     what is to be undone was changed again
│   ├── KeyReused            key: it came with another request before
│   ├── AlreadyDone          at, first, last: it was carried out, and the answer is not known any more
│   ├── LibraryExists        name
│   ├── LibraryEdited        name, files: work that would be lost
│   ├── LibrariesBusy        another process is changing them
│   ├── UserDisabled         user
│   ├── LastMember           user, project: without members, a project is everybody's
│   └── ProjectProtected     project: the default project stays
├── PromptUnusable           the prompt is there, but cannot be given like this
│   ├── ArgumentMissing      argument
│   ├── ContentFileMissing   file
│   └── RenderingFailed      problem, line, file
├── NotAllowed               problem: somebody may not do this
├── LibraryRefused           source, problem: it breaks a rule
├── CopyRefused              problem: of where a workspace should go
├── SourceFailed             source, problem: it could not be read
└── StorageError             where
    ├── StorageBusy
    ├── StorageFull
    ├── StorageReadOnly
    ├── StorageDamaged
    ├── StorageForeign       not a database of Dittybag's
    ├── StorageTooNew        found, known: schema versions
    ├── StorageClosed
    └── StorageFailed        problem
        ├── LibraryUnwritable
        ├── StorageUnreachable  a server is away
        └── StorageUnsure    it may have been saved or not
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from msgspec import Struct

from dittybag.domain.times import iso

#: As much of a foreign value as a message shows. No valid name is longer.
SHOWN_LENGTH: Final = 300


def clip(text: str, most: int = SHOWN_LENGTH) -> str:
    """As much of a value as an error message can show."""
    return text if len(text) <= most else text[:most] + "..."


class Problem(Struct, frozen=True):
    """One rule that an input breaks, as a sentence."""

    #: The field, as callers name it; empty for the input as a whole.
    field: str
    message: str


class DittybagError(Exception):
    """Dittybag could not do this."""

    #: Stable, for machines.
    code: ClassVar[str] = "ERROR"


class Invalid(DittybagError):
    """The input breaks at least one rule; all of them are named."""

    code = "INVALID"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.message for problem in problems))


def require(problems: Iterable[Problem]) -> None:
    """Raises `Invalid` if there are any problems."""
    if found := tuple(problems):
        raise Invalid(found)


class NotFound(DittybagError):
    """There is no such thing."""

    code = "NOT_FOUND"


class ProjectNotFound(NotFound):
    """There is no such project."""

    code = "PROJECT_NOT_FOUND"

    def __init__(self, project: str) -> None:
        self.project = project
        super().__init__(f"Project '{clip(project)}' does not exist")


class ProjectGone(NotFound):
    """The project that was selected here has been deleted. Select another, or undo its deletion."""

    code = "PROJECT_GONE"

    def __init__(self) -> None:
        super().__init__((type(self).__doc__ or "").strip())


class PromptNotFound(NotFound):
    """There is no such prompt."""

    code = "PROMPT_NOT_FOUND"

    def __init__(self, reference: str, project: str) -> None:
        self.reference = reference
        self.project = project
        super().__init__(f"Prompt '{clip(reference)}' does not exist in project '{project}'")


class LibraryPromptNotFound(NotFound):
    """No library has such a prompt."""

    code = "LIBRARY_PROMPT_NOT_FOUND"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"Prompt not found: {clip(name)}")


class LibraryNotFound(NotFound):
    """There is no such library."""

    code = "LIBRARY_NOT_FOUND"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"Library '{clip(name)}' does not exist")


class SourceNotFound(NotFound):
    """There is nothing to make a library of."""

    code = "SOURCE_NOT_FOUND"

    def __init__(self, source: str, problem: str) -> None:
        self.source = source
        super().__init__(f"{clip(source)}: {problem}")


class ResourceNotFound(NotFound):
    """There is no such resource."""

    code = "RESOURCE_NOT_FOUND"

    def __init__(self, reference: str, project: str) -> None:
        self.reference = reference
        self.project = project
        super().__init__(f"Resource '{clip(reference)}' does not exist in project '{project}'")


class TaskNotFound(NotFound):
    """There is no such task."""

    code = "TASK_NOT_FOUND"

    def __init__(self, id: int) -> None:
        self.id = id
        super().__init__(f"Task {id} not found")


class ChangeNotFound(NotFound):
    """There is no such change."""

    code = "CHANGE_NOT_FOUND"

    def __init__(self, seq: int) -> None:
        self.seq = seq
        super().__init__(f"Change {seq} not found")


class UserNotFound(NotFound):
    """There is no such user."""

    code = "USER_NOT_FOUND"

    def __init__(self, user: str) -> None:
        self.user = user
        super().__init__(f"User '{clip(user)}' does not exist")


class TokenNotFound(NotFound):
    """There is no such token."""

    code = "TOKEN_NOT_FOUND"

    def __init__(self, id: int) -> None:
        self.id = id
        super().__init__(f"Token {id} does not exist")


class MemberNotFound(NotFound):
    """The user is no member of the project."""

    code = "MEMBER_NOT_FOUND"

    def __init__(self, user: str, project: str) -> None:
        self.user = user
        self.project = project
        super().__init__(f"User '{clip(user)}' is no member of project '{project}'")


class Conflict(DittybagError):
    """Something that is already there stands in the way."""

    code = "CONFLICT"


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

    def __init__(self, title: str, project: str) -> None:
        self.title = title
        self.project = project
        super().__init__(f"A prompt with the title '{title}' already exists in project '{project}'")


class UriTaken(Conflict):
    """The URI is in use."""

    code = "URI_TAKEN"

    def __init__(self, uri: str, project: str) -> None:
        self.uri = uri
        self.project = project
        super().__init__(f"A resource with the URI '{uri}' already exists in project '{project}'")


class SeveralConflicts(Conflict):
    """Several things stand in the way; all of them are named."""

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        self.conflicts = tuple(conflicts)
        super().__init__("; ".join(str(conflict) for conflict in conflicts))


class Outdated(Conflict):
    """Someone else changed it meanwhile."""

    code = "OUTDATED"

    def __init__(self, kind: str, name: str) -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"{kind.capitalize()} '{name}' was changed by someone else meanwhile; read it again")


class ChangedMeanwhile(Conflict):
    """What is to be undone was changed again."""

    code = "CHANGED_MEANWHILE"

    def __init__(self) -> None:
        super().__init__("Something of it was changed again meanwhile; look at it once more")


class KeyReused(Conflict):
    """An idempotency key came with another request before."""

    code = "KEY_REUSED"

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(
            f"The idempotency key '{key}' came with another request before; use a new key for every request"
        )


class AlreadyDone(Conflict):
    """The request was carried out before, and the answer is not known any more."""

    code = "ALREADY_DONE"

    def __init__(self, at: int, first: int | None, last: int | None) -> None:
        """`at`: when. `first`, `last`: the numbers of its changes, if there are any."""
        self.at = at
        self.first = first
        self.last = last
        changes = f"as change {first}" if first == last else f"as changes {first} to {last}"
        done = "and changed nothing" if first is None else changes
        super().__init__(
            f"This request was carried out already, at {iso(at)}, {done}; its answer is not known any more."
            " Read what is there instead of repeating it"
        )


class LibraryExists(Conflict):
    """The name of a library is in use."""

    code = "LIBRARY_EXISTS"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"Library '{name}' already exists")


class LibraryEdited(Conflict):
    """A library holds work that is nowhere else."""

    code = "LIBRARY_EDITED"

    def __init__(self, name: str, files: Sequence[str]) -> None:
        """`files`: those that were edited here; none if nothing is known about where the library is from."""
        self.name = name
        self.files = tuple(files)
        edited = f"holds edits of yours: {', '.join(self.files[:3])}"
        if len(self.files) > 3:
            edited += f" and {len(self.files) - 3} more"
        super().__init__(
            f"Library '{name}' {edited if self.files else 'was put there by hand, and may be the only copy'}"
        )


class LibrariesBusy(Conflict):
    """Another process is changing the libraries, and takes its time."""

    code = "LIBRARIES_BUSY"

    def __init__(self) -> None:
        super().__init__("Another process is changing the libraries; try again in a moment")


class UserDisabled(Conflict):
    """The user is disabled."""

    code = "USER_DISABLED"

    def __init__(self, user: str) -> None:
        self.user = user
        super().__init__(f"User '{user}' is disabled")


class LastMember(Conflict):
    """Without its last member the project would be everybody's."""

    code = "LAST_MEMBER"

    def __init__(self, user: str, project: str) -> None:
        self.user = user
        self.project = project
        super().__init__(
            f"'{user}' is the last member of project '{project}': without members, everybody sees it"
        )


class ProjectProtected(Conflict):
    """The default project can be neither renamed nor deleted."""

    code = "PROJECT_PROTECTED"

    def __init__(self, project: str) -> None:
        self.project = project
        super().__init__(f"Project '{project}' is always there: it can be neither renamed nor deleted")


class PromptUnusable(DittybagError):
    """The prompt is there, but cannot be given like this."""

    code = "PROMPT_UNUSABLE"


class ArgumentMissing(PromptUnusable):
    """A required argument has no value."""

    code = "ARGUMENT_MISSING"

    def __init__(self, argument: str) -> None:
        self.argument = argument
        super().__init__(f"Missing required argument: {argument}")


class ContentFileMissing(PromptUnusable):
    """A library lists a prompt whose file is not there."""

    code = "CONTENT_FILE_MISSING"

    def __init__(self, file: str) -> None:
        self.file = file
        super().__init__(f"Prompt content file not found: {file}")


class RenderingFailed(PromptUnusable):
    """A template could not be rendered."""

    code = "RENDERING_FAILED"

    def __init__(self, problem: str, *, line: int | None = None, file: str | None = None) -> None:
        """`file`: which one, if it is not the prompt's own."""
        self.problem = problem
        self.line = line
        self.file = file
        place = "" if line is None else f" at line {line}"
        inside = "" if file is None else f" of {file}"
        super().__init__(f"Error rendering prompt template{place}{inside}: {clip(problem)}")


class NotAllowed(DittybagError):
    """Somebody may not do this."""

    code = "NOT_ALLOWED"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)


class LibraryRefused(DittybagError):
    """What should become a library breaks a rule; nothing was changed."""

    code = "LIBRARY_REFUSED"

    def __init__(self, source: str, problem: str) -> None:
        self.source = source
        self.problem = problem
        super().__init__(f"{clip(source)}: {problem}")


class SourceFailed(DittybagError):
    """What a library is made of could not be read; nothing was changed."""

    code = "SOURCE_FAILED"

    def __init__(self, source: str, problem: str) -> None:
        self.source = source
        self.problem = problem
        super().__init__(f"{clip(source)} could not be read: {problem}")


class StorageError(DittybagError):
    """The database could not do it; nothing was changed."""

    code = "STORAGE_ERROR"
    advice: ClassVar[str] = "Try again; the log has the details"

    def __init__(self, where: str) -> None:
        self.where = where
        message = (type(self).__doc__ or "").strip().rstrip(".")
        super().__init__(f"{message}. {self.advice}")


class StorageBusy(StorageError):
    """Other programs kept the database busy for too long; nothing was changed."""

    code = "STORAGE_BUSY"
    advice = "Try again in a moment"


class StorageFull(StorageError):
    """The disk is full; nothing was changed."""

    code = "STORAGE_FULL"
    advice = "Make room on the disk and try again"


class StorageReadOnly(StorageError):
    """The database may not be written to; nothing was changed."""

    code = "STORAGE_READ_ONLY"
    advice = "Check the permissions of the database file and its folder"


class StorageDamaged(StorageError):
    """The database is damaged; it is left as it is."""

    code = "STORAGE_DAMAGED"
    advice = "Put it aside and restore a backup"


class StorageForeign(StorageError):
    """This file is not a database of Dittybag's; it is left as it is."""

    code = "STORAGE_FOREIGN"
    advice = "Name another file"


class StorageTooNew(StorageError):
    """The database was written by a newer Dittybag; it is left as it is."""

    code = "STORAGE_TOO_NEW"
    advice = "Install the newest Dittybag to use it"

    def __init__(self, where: str, *, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(where)


class StorageClosed(StorageError):
    """The workspace has been closed; nothing was changed."""

    code = "STORAGE_CLOSED"
    advice = "Open it again"


class StorageFailed(StorageError):
    """The database could not be read or written; nothing was changed."""

    code = "STORAGE_FAILED"
    advice = "Check the disk, then try again"

    def __init__(self, where: str, problem: str = "") -> None:
        self.problem = problem
        super().__init__(where)


class LibraryUnwritable(StorageFailed):
    """The folder of the libraries could not be read or written; nothing was changed."""

    code = "LIBRARY_UNWRITABLE"
    advice = "Check the disk and the permissions of this folder, then try again"


class StorageUnreachable(StorageFailed):
    """The database server cannot be reached; nothing was changed."""

    code = "STORAGE_UNREACHABLE"
    advice = "Check that it is running and that its address is right, then try again"


class StorageUnsure(StorageFailed):
    """The database server went away while it was saving this; it may have been saved or not."""

    code = "STORAGE_UNSURE"
    advice = "Look at what is there before you try again"


class CopyRefused(DittybagError):
    """A workspace could not be copied."""

    code = "COPY_REFUSED"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"The workspace cannot be copied to where it should go: {problem}")
