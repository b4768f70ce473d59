"""Runs in the child process: render a template, or find its variables."""

from __future__ import annotations

import os
import re
from typing import Any, Final

import minijinja

from dittybag.domain.role_marks import MAX_MESSAGES, ROLES, TOO_MANY_MESSAGES, Message, without_empty
from dittybag.library.render.includes import resolve_include

#: The value of `dittybag.domain.libraries.OUTPUT_BYTES`, which is too slow to import here.
_OUTPUT_BYTES: Final = 2 * 1024 * 1024
_TOO_LARGE: Final = "the result is larger than 2 MiB"

#: Maximum depth of nested includes when searching for the origin of an error.
_MAX_INCLUDE_DEPTH: Final = 10
_ERROR_IN_FILE: Final = re.compile(r'error in "(.+)"')
_UNDEFINED: Final = re.compile(r"`([^`]+)` is undefined")
#: The kinds of errors about a name that the engine looks up when it renders.
_UNKNOWN_NAMES: Final = ("UnknownFilter", "UnknownFunction", "UnknownTest")
#: The variables of larger templates are not searched for the cause of an error: it takes too long.
_MAX_SEARCHED: Final = 128 * 1024

#: Maximum number of compiled templates that are kept, and of their characters.
_MAX_TEMPLATES: Final = 64
_MAX_CHARACTERS: Final = 4 * 1024 * 1024
#: Separates the file name from the number that makes a template name unique. It is random and contains NUL,
#: so no template can include a template of another library by guessing its name.
_NAME_SEPARATOR: Final = f"\0{os.urandom(16).hex()}"


class _IncludeNeeded(Exception):
    """The template includes a file that is not part of the job."""

    def __init__(self, file: str) -> None:
        self.file = file


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """Run a job of `dittybag.library.render.template_renderer`."""
    files: dict[str, str | None] = job.get("files", {})
    source, file = job["source"], job["file"]
    # The engine reserves the name `self`.
    values = {name: value for name, value in job.get("values", {}).items() if name != "self"}
    # An environment caches the files it has loaded, so it cannot be shared.
    environment = _environment(files) if files else _SHARED
    try:
        if "values" not in job:
            free = environment.undeclared_variables_in_str(source)
            return {"variables": sorted(free - _SHARED.globals.keys())}
        if "roles" in job:
            marked, boundary = _mark_roles(source, job["roles"])
            text = environment.render_str(marked, file, **values)
            return _split_messages(text, boundary)
        if files:
            text = environment.render_str(source, file, **values)
        else:
            text = environment.render_template(_compile(source, file), **values)
    except minijinja.TemplateError as error:
        return _failure(_innermost_error(error, environment, values), file, {**files, file: source}, values)
    except _IncludeNeeded as needed:
        return {"needed_file": needed.file}
    return {"problem": _TOO_LARGE} if _is_too_large(text) else {"text": text}


def _is_too_large(text: str) -> bool:
    return len(text) > _OUTPUT_BYTES or len(text.encode()) > _OUTPUT_BYTES


def _mark_roles(source: str, marks: list[tuple[int, int, str]]) -> tuple[str, str]:
    """Return a template that shows where messages begin, and the boundary that shows it.

    The boundary is random, so no value can contain it, and it has no letters, so filters keep it. The marked
    parts of the template stay between boundaries, so that errors name the right lines.
    """
    boundary = f"\0{int.from_bytes(os.urandom(16), 'big')}\0"
    pieces: list[str] = []
    at = 0
    for start, end, role in marks:
        pieces += (source[at:start], boundary, str(ROLES.index(role)), source[start:end], boundary)
        at = end
    return "".join((*pieces, source[at:])), boundary


def _split_messages(text: str, boundary: str) -> dict[str, Any]:
    first, *rest = re.split(f"(?s){boundary}([0-2]).*?{boundary}", text)
    found = [Message(ROLES[int(role)], part) for role, part in zip(rest[::2], rest[1::2], strict=True)]
    messages = without_empty([Message("user", first), *found])
    if len(messages) > MAX_MESSAGES:
        return {"problem": TOO_MANY_MESSAGES}
    if _is_too_large("".join(message.text for message in messages)):
        return {"problem": _TOO_LARGE}
    return {"messages": messages}


def _compile(source: str, file: str) -> str:
    """Compile a template unless it is cached; return its name. Raises `TemplateError`."""
    if (name := _names.get((source, file))) is not None:
        return name
    characters = len(source) + sum(len(known) for known, _ in _names)
    if len(_names) == _MAX_TEMPLATES or characters > _MAX_CHARACTERS:
        _SHARED.clear_templates()
        _names.clear()
    # Files in different libraries may have the same name.
    name = f"{file}{_NAME_SEPARATOR}{len(_names)}"
    _SHARED.add_template(name, source)
    _names[source, file] = name
    return name


def _environment(files: dict[str, str | None]) -> minijinja.Environment:
    def load(file: str) -> str | None:
        if file not in files:
            raise _IncludeNeeded(file)
        return files[file]

    environment = minijinja.Environment(
        loader=load,
        # With it, errors name undefined variables.
        debug=True,
        undefined_behavior="chainable",
        keep_trailing_newline=True,
        auto_escape_callback=lambda name: False,
        path_join_callback=lambda name, parent: resolve_include(name, parent.partition(_NAME_SEPARATOR)[0]),
    )
    # It exposes internals of the engine.
    environment.remove_global("debug")
    return environment


_SHARED: Final = _environment({})
#: Names of the compiled templates, by source and file.
_names: dict[tuple[str, str], str] = {}


def _innermost_error(
    error: minijinja.TemplateError, environment: minijinja.Environment, values: dict[str, str]
) -> minijinja.TemplateError:
    """The original error in an included file, which the engine replaces by one in the including file."""
    for _ in range(_MAX_INCLUDE_DEPTH):
        found = _ERROR_IN_FILE.fullmatch(error.detail or "") if error.kind == "BadInclude" else None
        if found is None:
            break
        try:
            environment.render_template(found[1], **values)
        except minijinja.TemplateError as inner:
            error = inner
        else:
            # It only fails with variables that the including file sets.
            break
    return error


def _failure(
    error: minijinja.TemplateError, file: str, sources: dict[str, str | None], values: dict[str, str]
) -> dict[str, Any]:
    words = _kind_in_words(error.kind) if error.kind != "Unknown" else "it cannot be rendered"
    problem = error.detail or words
    where = (error.name or file).partition(_NAME_SEPARATOR)[0]
    if found := _UNDEFINED.search(problem):
        problem = f"undefined variable '{found[1]}'"
    elif error.kind == "InvalidOperation" and (name := _undefined_in(sources.get(where), error.line, values)):
        problem = f"{problem}; undefined variable '{name}'"
    is_unknown_name = error.kind in _UNKNOWN_NAMES
    return {"problem": problem, "line": error.line, "file": where, "is_unknown_name": is_unknown_name}


def _undefined_in(source: str | None, line: int | None, values: dict[str, str]) -> str | None:
    """The first undefined variable on a line; the engine does not name it in every error."""
    if not source or not line or len(source) > _MAX_SEARCHED:
        return None
    text = source.split("\n")[line - 1]
    undefined = _SHARED.undeclared_variables_in_str(source) - _SHARED.globals.keys() - values.keys()
    places = {name: re.search(rf"(?<![\w.'\"]){re.escape(name)}\b", text) for name in undefined}
    found = [(place.start(), name) for name, place in places.items() if place is not None]
    return min(found)[1] if found else None


def _kind_in_words(kind: str) -> str:
    """`UndefinedError` is "undefined error"."""
    return "".join(f" {c.lower()}" if c.isupper() else c for c in kind).strip()


# The engine imports modules on its first error. After `apply_limits` that would be too late.
run_job({"source": "{% if %}", "file": "", "values": {}})
