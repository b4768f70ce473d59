"""How tools word their failures. The wording goes with the tool, whatever the profile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Final, ParamSpec, TypeAlias, TypeVar

from dittybag.domain.errors import (
    AlreadyDone,
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

#: An error as the result of a tool.
ErrorFormat: TypeAlias = Callable[[DittybagError], ToolResult]

P = ParamSpec("P")
T = TypeVar("T")

_LABELS: Final = {"uri": "URI", "mime_type": "MIME type"}


def argument_label(path: str) -> str:
    """What a person calls the argument at `path`: `task_id` is the task id."""
    if path in _LABELS:
        return _LABELS[path]
    return (path[:1].upper() + path[1:]).replace("_", " ") or "The input"


def problem_of(violation: Violation) -> Problem:
    """A broken rule of a schema, as a sentence."""
    return Problem(
        top_level_argument(violation.path), f"{argument_label(violation.path)} {violation.problem}"
    )


def top_level_argument(path: str) -> str:
    """The argument that a path leads into: `tags[2]` is a part of `tags`."""
    return path.partition("[")[0].partition(".")[0]


def prose_error(error: DittybagError) -> ToolResult:
    """The mcpkg tools: sentences."""
    return ToolResult.of(f"Error: {error}", is_error=True)


def plain_text_error(error: DittybagError) -> ToolResult:
    """The task tools: sentences, and a word before those that say what is wrong with the arguments."""
    text = f"Validation error: {error}" if isinstance(error, Invalid) else str(error)
    return ToolResult.of(text, is_error=True)


def json_error(error: DittybagError) -> ToolResult:
    """The prompt-store tools: JSON with a code."""
    code, message = _code_and_message(error)
    return ToolResult.of(encode({"error": {"code": code, "message": message}}).decode(), is_error=True)


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
    """What goes wrong outside tools is an error of the protocol, in our words."""

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
