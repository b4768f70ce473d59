"""Error formats: how each contract's tools report errors.

The format belongs to the tool, not to the profile that shows it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Final, ParamSpec, TypeAlias, TypeVar

from dittybag.domain.errors import (
    AlreadyDone,
    ChangePurged,
    Conflict,
    DittybagError,
    Invalid,
    KeyReused,
    NameTaken,
    NotAllowed,
    NotFound,
    Problem,
    ProjectGone,
    ProjectNotFound,
    PromptNotFound,
    PromptUnusable,
    StorageError,
    TitleTaken,
    UriTaken,
)
from dittybag.protocol import InternalError, InvalidParams, ToolResult, Violation
from dittybag.protocol.jsonrpc import encode

#: Converts an error to a tool result.
ErrorFormat: TypeAlias = Callable[[DittybagError], ToolResult]

P = ParamSpec("P")
T = TypeVar("T")


def problem_of(violation: Violation) -> Problem:
    """Describe a schema violation in a sentence that names the argument as the caller typed it."""
    return Problem(top_level_argument(violation.path), f"{violation.path or 'arguments'} {violation.problem}")


def top_level_argument(path: str) -> str:
    """Return the argument that `path` belongs to: `tags` for `tags[2]`."""
    return path.partition("[")[0].partition(".")[0]


def prose_error(error: DittybagError) -> ToolResult:
    """Format an error of the mcpkg tools: sentences after `Error: `."""
    return ToolResult.from_text(f"Error: {error}", is_error=True)


def plain_text_error(error: DittybagError) -> ToolResult:
    """Format an error of the task tools: sentences, after `Validation error: ` for invalid arguments."""
    text = f"Validation error: {error}" if isinstance(error, Invalid) else str(error)
    return ToolResult.from_text(text, is_error=True)


def json_error(error: DittybagError) -> ToolResult:
    """Format an error of the prompt-store tools: JSON with a code."""
    code, message = _code_and_message(error)
    return ToolResult.from_text(encode({"error": {"code": code, "message": message}}).decode(), is_error=True)


def _code_and_message(error: DittybagError) -> tuple[str, str]:
    if isinstance(error, Invalid):
        return _code_of_problems(error.problems), str(error)
    for kind, code, message in _CODES:
        if isinstance(error, kind):
            return code, message or str(error)
    return "ERROR", str(error)


_PROBLEM_CODES: Final = {"title": "INVALID_TITLE", "tags": "INVALID_TAG"}

_CODES: Final[tuple[tuple[type[DittybagError], str, str | None], ...]] = (
    (PromptNotFound, "NOT_FOUND", "Prompt not found"),
    (ProjectNotFound, "PROJECT_NOT_FOUND", None),
    (ProjectGone, "PROJECT_NOT_FOUND", None),
    (ChangePurged, "PURGED", None),
    (NotFound, "NOT_FOUND", None),
    (PromptUnusable, "INVALID_INPUT", None),
    (TitleTaken, "DUPLICATE_TITLE", "A prompt with this title already exists"),
    (NameTaken, "DUPLICATE_NAME", None),
    (UriTaken, "DUPLICATE_URI", None),
    (KeyReused, "KEY_REUSED", None),
    (AlreadyDone, "ALREADY_DONE", None),
    (Conflict, "CONFLICT", None),
    (NotAllowed, "NOT_ALLOWED", None),
    (StorageError, "STORAGE_ERROR", None),
)


def _code_of_problems(problems: Sequence[Problem]) -> str:
    codes = {_PROBLEM_CODES.get(problem.field, "INVALID_INPUT") for problem in problems}
    return codes.pop() if len(codes) == 1 else "INVALID_INPUT"


def as_protocol_errors(method: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Decorate a method outside tools so that it raises our errors as protocol errors."""

    @wraps(method)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await method(*args, **kwargs)
        except (NotFound, NotAllowed) as error:
            raise InvalidParams(str(error)) from error
        except PromptUnusable as error:
            raise InvalidParams(data={"details": str(error)}) from error
        except DittybagError as error:
            raise InternalError(str(error)) from error

    return wrapper
