"""Templates rendered in a child process. See `dittybag.domain.ports.Renderer`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from dittybag.domain.errors import RenderingFailed
from dittybag.domain.libraries import OUTPUT_BYTES, SOURCE_BYTES
from dittybag.domain.ports import Partials
from dittybag.library.render.resource_limits import DEADLINE_SECONDS, TOO_LONG

if TYPE_CHECKING:
    from dittybag.library.render.worker_pool import WorkerPool

#: A template and what it includes are at most so many files.
_MAX_FILES: Final = 50

#: Two, so that a template that is stuck does not keep the others waiting.
_CHILDREN: Final = 2


class _Answer(Struct):
    """What the child answers; which fields there are says what it is."""

    text: str | None = None
    wanted: str | None = None
    variables: tuple[str, ...] = ()
    problem: str | None = None
    line: int | None = None
    file: str = ""
    seconds: float = 0.0


_answer = msgspec.json.Decoder(_Answer)


class TemplateRenderer:
    """Renders templates; its children are started when they are first needed."""

    def __init__(self) -> None:
        self._crew: WorkerPool | None = None

    async def render(
        self, source: str, values: Mapping[str, str], *, file: str = "", partials: Partials | None = None
    ) -> str:
        _check_size(source, "it", SOURCE_BYTES)
        _check_size("".join(values.values()), "its arguments", OUTPUT_BYTES)
        files: dict[str, str | None] = {}
        spent = 0.0
        while True:
            answer = await self._ask(
                {"source": source, "file": file, "values": dict(values), "files": files}, file
            )
            if answer.text is not None:
                return answer.text
            wanted = answer.wanted
            if wanted is None or wanted in files:
                raise RenderingFailed("the template could not be rendered")
            spent += answer.seconds
            if spent > DEADLINE_SECONDS:
                raise RenderingFailed(TOO_LONG)
            if len(files) == _MAX_FILES:
                raise RenderingFailed(f"it includes more than {_MAX_FILES} files")
            files[wanted] = None if partials is None else await partials(wanted)
            _check_size("".join(filter(None, files.values())), "what it includes", OUTPUT_BYTES)

    async def variables(self, source: str, *, file: str = "") -> tuple[str, ...]:
        _check_size(source, "it", SOURCE_BYTES)
        return (await self._ask({"source": source, "file": file}, file)).variables

    async def _ask(self, job: dict[str, object], file: str) -> _Answer:
        # Most servers never render anything, and all of them should start in a blink.
        from dittybag.library.render.worker_pool import WorkerCrashed, WorkerPool

        if self._crew is None:
            self._crew = WorkerPool("templates", _CHILDREN)
        try:
            answer = _answer.decode(await self._crew.ask(job))
        except WorkerCrashed as death:
            raise RenderingFailed(death.problem) from death
        if answer.problem is not None:
            elsewhere = answer.file if answer.file != file else None
            raise RenderingFailed(answer.problem, line=answer.line, file=elsewhere)
        return answer

    @property
    def restarts(self) -> int:
        return self._crew.deaths if self._crew is not None else 0

    def close(self) -> None:
        """End the children."""
        if self._crew is not None:
            self._crew.close()


def _check_size(text: str, what: str, most: int) -> None:
    # A character has at most four bytes: most texts need not be encoded to know that they fit.
    if len(text) * 4 > most and len(text.encode(errors="replace")) > most:
        kib = most // 1024
        verb = "are" if what.endswith("s") else "is"
        raise RenderingFailed(f"{what} {verb} larger than {kib} KiB")
