"""Error formats: how each contract's tools report errors.

The format belongs to the tool, not to the profile that shows it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Final, ParamSpec, TypeAlias, TypeVar

from dittybag.domain.errors import (
    AmbiguousReference,
    ArgumentMissing,
    ChangePurged,
    ClaimLost,
    Conflict,
    DittybagError,
    Invalid,
    NameTaken,
    NotAllowed,
    NotFound,
    Outdated,
    Problem,
    ProjectGone,
    ProjectNotFound,
    PromptNotFound,
    PromptUnusable,
    StorageError,
    TaskClaimed,
    TaskCycle,
    TaskNotReady,
    TitleTaken,
    UriTaken,
    clip,
)
from dittybag.domain.text import near_matches
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.types import ToolResult
from dittybag.protocol.wire_errors import InternalError, InvalidParams, Violation

#: Converts an error to a tool result.
_log = logging.getLogger("dittybag")

ErrorFormat: TypeAlias = Callable[[DittybagError], ToolResult]

P = ParamSpec("P")
T = TypeVar("T")


def problem_of(violation: Violation, known: Sequence[str] = ()) -> Problem:
    """Describe a schema violation in a sentence that names the argument as the caller typed it.

    `known`: the arguments that exist.
    """
    if violation.rule == "additionalProperties":
        return Problem("", unknown_argument(violation.path, known))
    return Problem(
        top_level_argument(violation.path),
        f"{violation.path or 'arguments'} {violation.problem}",
        is_shape=violation.rule in _SHAPE_RULES,
    )


_SHAPE_RULES: Final = frozenset({"required", "type", "minItems", "maxItems"})


def top_level_argument(path: str) -> str:
    """Return the argument that `path` belongs to: `tags` for `tags[2]`."""
    return path.partition("[")[0].partition(".")[0]


def unknown_argument(path: str, known: Sequence[str]) -> str:
    """Say that an argument does not exist, and which one may be meant."""
    near = near_matches(path.rpartition(".")[2], known, 1)
    hint = f"did you mean {near[0]}?" if near else f"known arguments: {', '.join(known) or 'none'}"
    return f"{path} is not an argument; {hint}"


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


#: The code of errors of our own tools about a reference that names several things.
AMBIGUOUS: Final = "AMBIGUOUS"
#: Maximum length of an error message of our own tools.
_MAX_MESSAGE: Final = 4000


def bounded_json_error(error: DittybagError) -> ToolResult:
    """Format an error of our own tools: as `json_error`, but never long, and with the current version."""
    code, message = _code_and_message(error)
    if isinstance(error, AmbiguousReference):
        code = AMBIGUOUS
    if isinstance(error, PromptNotFound):
        message = str(error)
    if isinstance(error, Outdated) and error.version is not None:
        message = _version_message(error.kind, error.name, error.version)
    encoded = encode({"error": {"code": code, "message": clip(message, _MAX_MESSAGE)}})
    return ToolResult.from_text(encoded.decode(), is_error=True)


def _version_message(kind: str, name: str, version: int) -> str:
    if version == 0:
        return f"{kind.capitalize()} '{name}' does not exist; use if_version 0 to create it"
    return (
        f"{kind.capitalize()} '{name}' has version {version}, not the one that you gave: someone changed it. "
        f"Read it again, then save with if_version {version}"
    )


def _code_and_message(error: DittybagError) -> tuple[str, str]:
    if isinstance(error, Invalid):
        return _code_of_problems(error.problems), str(error)
    for kind, code, message in _CODES:
        if isinstance(error, kind):
            return code, message or str(error)
    return "ERROR", str(error)


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
    (TaskClaimed, "TASK_CLAIMED", None),
    (ClaimLost, "CLAIM_LOST", None),
    (TaskNotReady, "TASK_NOT_READY", None),
    (TaskCycle, "TASK_CYCLE", None),
    (Conflict, "CONFLICT", None),
    (NotAllowed, "NOT_ALLOWED", None),
    (StorageError, "STORAGE_ERROR", None),
)


def _code_of_problems(problems: Sequence[Problem]) -> str:
    codes = set(map(_code_of_problem, problems))
    return codes.pop() if len(codes) == 1 else "INVALID_INPUT"


def unusable_prompt(error: PromptUnusable) -> InvalidParams:
    """Return the protocol error for a template that cannot be rendered; its message says why."""
    return InvalidParams(str(error), data={"details": str(error)})


def unusable_prompt_of_contracts(error: PromptUnusable) -> InvalidParams:
    """Return the same error, but in the exact words of the contracts if a single argument is missing."""
    if isinstance(error, ArgumentMissing) and len(error.names) == 1 and not error.reason:
        error = ArgumentMissing(*error.names)
    return unusable_prompt(error)


def _code_of_problem(problem: Problem) -> str:
    if problem.field == "title":
        return "INVALID_TITLE"
    return "INVALID_TAG" if problem.field == "tags" and not problem.is_shape else "INVALID_INPUT"


def as_protocol_errors(method: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Decorate a method outside tools so that it raises our errors as protocol errors."""

    @wraps(method)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await method(*args, **kwargs)
        except (NotFound, NotAllowed) as error:
            raise InvalidParams(str(error)) from error
        except PromptUnusable as error:
            raise unusable_prompt(error) from error
        except DittybagError as error:
            if isinstance(error, StorageError):
                _log.warning("a request failed: %s", error.report)
            raise InternalError(str(error)) from error

    return wrapper
