"""Renders templates, which may be hostile, in child processes."""

from __future__ import annotations

from asyncio import TimerHandle, get_running_loop
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.display import format_size
from dittybag.domain.errors import RenderingFailed
from dittybag.domain.libraries import INPUT_BYTES, SOURCE_BYTES
from dittybag.domain.ports import Partials
from dittybag.domain.role_marks import Message, RoleMark
from dittybag.library.render.resource_limits import DEADLINE_SECONDS, TOO_LONG

if TYPE_CHECKING:
    from dittybag.library.render.worker_pool import WorkerPool

#: Maximum number of files that a template can include.
_MAX_FILES: Final = 50

#: A client can use two child processes, so that its slow template does not block its others;
#: a third one is left for other clients.
_POOL_SIZE: Final = 3
_PER_CLIENT: Final = 2
_TOO_MANY: Final = "too many renderings of this client are waiting; wait for some of them, then try again"


#: Starting a child takes 10 ms. A client that lists prompts has other requests first.
_START_DELAY_SECONDS: Final = 1.0

_FAILED: Final = "the template could not be rendered"

#: A text without these is the same as a template.
_MARKS: Final = ("{{", "{%", "{#")


class _VariablesJob(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A template whose variables are wanted."""

    source: str
    file: str


class _RenderJob(_VariablesJob, frozen=True, kw_only=True, omit_defaults=True):
    """A template to render."""

    values: Mapping[str, str]
    #: Where messages begin; None if the result is one text.
    roles: Sequence[RoleMark] | None = None
    #: The included files that are known so far; None for a file that does not exist.
    files: Mapping[str, str | None] = {}


class _RenderResult(Struct):
    """The result of a job. Which fields are set depends on the kind of result."""

    text: str | None = None
    messages: tuple[Message, ...] = ()
    needed_file: str | None = None
    variables: tuple[str, ...] = ()
    problem: str | None = None
    line: int | None = None
    file: str = ""
    is_unknown_name: bool = False
    seconds: float = 0.0


@cache
def _result_decoder() -> msgspec.json.Decoder[_RenderResult]:
    return msgspec.json.Decoder(_RenderResult)


class TemplateRenderer:
    """Renders templates in child processes. One stays until the end; others stop when they are idle."""

    def __init__(self) -> None:
        self._pool: WorkerPool | None = None
        self._start_timer: TimerHandle | None = None

    def start_soon(self) -> None:
        """Start a child process in a while, if no rendering has started one by then."""
        if self._pool is None and self._start_timer is None:
            self._start_timer = get_running_loop().call_later(_START_DELAY_SECONDS, self._start)

    def _start(self) -> None:
        self._workers().start()

    async def render(
        self,
        source: str,
        values: Mapping[str, str],
        *,
        file: str = "",
        partials: Partials | None = None,
        client: Hashable = None,
    ) -> str:
        """Render the template `source`. `values` are data, never templates. Raises `RenderingFailed`.

        `client`: who wants it; clients take turns. `None` is Dittybag itself.
        """
        job = _RenderJob(source=source, file=file, values=values)
        result = await self._render(job, partials, client)
        if result.text is None:
            raise RenderingFailed(_FAILED)
        return result.text

    async def render_messages(
        self,
        source: str,
        roles: Sequence[RoleMark],
        values: Mapping[str, str],
        *,
        file: str = "",
        partials: Partials | None = None,
        client: Hashable = None,
    ) -> tuple[Message, ...]:
        """Render a template with roles. Only its own text begins messages, never a value."""
        job = _RenderJob(source=source, file=file, values=values, roles=roles)
        return (await self._render(job, partials, client)).messages

    async def _render(self, job: _RenderJob, partials: Partials | None, client: Hashable) -> _RenderResult:
        """Run a job, and run it again with each file that it includes."""
        _check_size(job.source, "it is", SOURCE_BYTES)
        _check_size("".join(job.values.values()), "its arguments are", INPUT_BYTES)
        files: dict[str, str | None] = {}
        spent = 0.0
        while True:
            result = await self._submit(replace(job, files=files), job.file, client)
            if result.text is not None or result.messages:
                return result
            needed_file = result.needed_file
            if needed_file is None or needed_file in files:
                raise RenderingFailed(_FAILED)
            spent += result.seconds
            if spent > DEADLINE_SECONDS:
                raise RenderingFailed(TOO_LONG)
            if len(files) == _MAX_FILES:
                raise RenderingFailed(f"it includes more than {_MAX_FILES} files")
            files[needed_file] = None if partials is None else await partials(needed_file)
            _check_size("".join(filter(None, files.values())), "its includes are", INPUT_BYTES)

    async def variables(self, source: str, *, file: str = "") -> tuple[str, ...]:
        """Return the variables that the template `source` uses, sorted. Raises `RenderingFailed`."""
        _check_size(source, "it is", SOURCE_BYTES)
        return (await self._submit(_VariablesJob(source=source, file=file), file)).variables

    async def syntax_error(self, source: str, *, client: Hashable = None) -> tuple[int, str] | None:
        """The line and the problem of a template that cannot be parsed; None if it can."""
        if not any(mark in source for mark in _MARKS):
            return None
        try:
            await self._submit(_VariablesJob(source=source, file=""), "", client)
        except RenderingFailed as error:
            # Without a line, a limit was exceeded or no child could be started.
            return None if error.line is None else (error.line, error.problem)
        return None

    async def _submit(self, job: _VariablesJob, file: str, client: Hashable = None) -> _RenderResult:
        from dittybag.library.render.worker_pool import TooManyJobs, WorkerCrashed

        try:
            result = _result_decoder().decode(await self._workers().submit(job, client))
        except WorkerCrashed as crash:
            raise RenderingFailed(crash.problem) from crash
        except TooManyJobs as refused:
            raise RenderingFailed(_TOO_MANY) from refused
        if result.problem is not None:
            elsewhere = result.file if result.file != file else None
            raise RenderingFailed(
                result.problem, line=result.line, file=elsewhere, is_unknown_name=result.is_unknown_name
            )
        return result

    def _workers(self) -> WorkerPool:
        if self._pool is None:
            # Imported on first use: most servers never render a template.
            from dittybag.library.render.worker_pool import WorkerPool

            self._pool = WorkerPool("templates", _POOL_SIZE, per_client=_PER_CLIENT, keeps_child=True)
        return self._pool

    @property
    def restarts(self) -> int:
        """The number of worker processes that a template has crashed."""
        return self._pool.crashes if self._pool is not None else 0

    def close(self) -> None:
        """Stop the child processes."""
        if self._start_timer is not None:
            self._start_timer.cancel()
        if self._pool is not None:
            self._pool.close()


def _check_size(text: str, what: str, max_bytes: int) -> None:
    # A character has at most four bytes, so short texts need not be encoded.
    if len(text) * 4 > max_bytes and len(text.encode(errors="replace")) > max_bytes:
        raise RenderingFailed(f"{what} larger than {format_size(max_bytes)}")
