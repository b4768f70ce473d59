"""Inside the child: what a template makes of its values, and which values it asks for."""

from __future__ import annotations

import os
import re
from typing import Any, Final

import minijinja

from dittybag.library.render.includes import resolve_include

#: See `dittybag.domain.libraries`, which is too slow to import here.
_OUTPUT_BYTES: Final = 1024 * 1024

#: How deep to look for the error in a file that is included in one that is included.
_MAX_INCLUDES: Final = 10
_INCLUDED: Final = re.compile(r'error in "(.+)"')


#: So many are ready at a time, with at most 64 KiB each.
_MAX_TEMPLATES: Final = 64
#: Between the file's name and what makes the name unique. No file has it in its name, and no template can
#: guess it: otherwise it could include those of other libraries.
_NUMBER: Final = f"\0{os.urandom(16).hex()}"


class _Wanted(Exception):
    """The template includes a file that did not come with the job."""

    def __init__(self, file: str) -> None:
        self.file = file


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """The answer to a job of `dittybag.library.render.template_renderer`."""
    files: dict[str, str | None] = job.get("files", {})
    source, file = job["source"], job["file"]
    # The engine has a `self` of its own, and takes no value for it.
    values = {name: value for name, value in job.get("values", {}).items() if name != "self"}
    # One that has loaded files would remember them.
    environment = _environment(files) if files else _BARE
    try:
        if "values" not in job:
            free = environment.undeclared_variables_in_str(source)
            return {"variables": sorted(free - _BARE.globals.keys())}
        if files:
            text = environment.render_str(source, file, **values)
        else:
            text = environment.render_template(_compiled(source, file), **values)
    except minijinja.TemplateError as error:
        return _broken(_innermost(error, environment, values), file)
    except _Wanted as wanted:
        return {"wanted": wanted.file}
    if len(text) > _OUTPUT_BYTES or len(text.encode()) > _OUTPUT_BYTES:
        return {"problem": "the result is larger than 1 MiB"}
    return {"text": text}


def _compiled(source: str, file: str) -> str:
    """The name under which the engine has a template ready. Raises `TemplateError`."""
    if (name := _names.get((source, file))) is not None:
        return name
    if len(_names) == _MAX_TEMPLATES:
        _BARE.clear_templates()
        _names.clear()
    # Files of different libraries may have the same name.
    name = f"{file}{_NUMBER}{len(_names)}"
    _BARE.add_template(name, source)
    _names[source, file] = name
    return name


def _environment(files: dict[str, str | None]) -> minijinja.Environment:
    def load(file: str) -> str | None:
        if file not in files:
            raise _Wanted(file)
        return files[file]

    environment = minijinja.Environment(
        loader=load,
        debug=False,
        undefined_behavior="chainable",
        keep_trailing_newline=True,
        auto_escape_callback=lambda name: False,
        path_join_callback=lambda name, parent: resolve_include(name, parent.partition(_NUMBER)[0]),
    )
    # It shows what is inside the engine.
    environment.remove_global("debug")
    return environment


_BARE: Final = _environment({})
#: The templates that it has ready.
_names: dict[tuple[str, str], str] = {}


def _innermost(
    error: minijinja.TemplateError, environment: minijinja.Environment, values: dict[str, str]
) -> minijinja.TemplateError:
    """The error in an included file, which the engine hides behind that of the file that includes it."""
    for _ in range(_MAX_INCLUDES):
        found = _INCLUDED.fullmatch(error.detail or "") if error.kind == "BadInclude" else None
        if found is None:
            break
        try:
            environment.render_template(found[1], **values)
        except minijinja.TemplateError as inner:
            error = inner
        else:
            # It fails only with what the including file has set.
            break
    return error


def _broken(error: minijinja.TemplateError, file: str) -> dict[str, Any]:
    words = _in_words(error.kind) if error.kind != "Unknown" else "it cannot be rendered"
    return {
        "problem": error.detail or words,
        "line": error.line,
        "file": (error.name or file).partition(_NUMBER)[0],
    }


def _in_words(kind: str) -> str:
    """`UndefinedError` is "undefined error"."""
    return "".join(f" {c.lower()}" if c.isupper() else c for c in kind).strip()


# What the engine imports when it first fails cannot be imported later.
answer({"source": "{% if %}", "file": "", "values": {}})
