"""Parse library files, and the front matter of skills, in a child process."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from dittybag.domain.libraries import FileProblem
from dittybag.library.formats.parsed_prompt import ParsedFile
from dittybag.library.formats.skill_header import InvalidHeader, split_header
from dittybag.library.render.resource_limits import DEADLINE_SECONDS
from dittybag.library.render.worker_pool import WorkerCrashed, WorkerPool


class _ParsedFileResult(ParsedFile, frozen=True, kw_only=True):
    seconds: float


class _HeaderResult(Struct, frozen=True):
    fields: dict[str, Any]
    problem: str | None


_result_decoder = msgspec.json.Decoder(_ParsedFileResult)
_header_decoder = msgspec.json.Decoder(_HeaderResult)


class FileReader:
    """Parses library files in a child process, which is started on first use."""

    def __init__(self) -> None:
        # A second child would take longer to start than it saves.
        self._pool = WorkerPool("files", 1)

    async def read(self, format: str, file: str, content: str) -> tuple[ParsedFile, float]:
        """Parse a file; return the result and the seconds it took.

        If the child crashes or exceeds its limits, that is reported as a problem of the file.
        """
        job = {"format": format, "file": file, "content": content}
        try:
            result = _result_decoder.decode(await self._pool.submit(job))
        except WorkerCrashed as crash:
            problem = FileProblem(file, f"cannot be read: {crash.problem}")
            return ParsedFile(problems=(problem,)), DEADLINE_SECONDS
        return result, result.seconds

    async def read_header(self, content: str) -> dict[str, Any]:
        """Return the front matter of a `SKILL.md`. Raises `InvalidHeader`."""
        try:
            result = _header_decoder.decode(await self._pool.submit({"header": split_header(content)}))
        except WorkerCrashed as crash:
            raise InvalidHeader(f"its front matter cannot be read: {crash.problem}") from crash
        if result.problem is not None:
            raise InvalidHeader(result.problem)
        return result.fields

    def close(self) -> None:
        """Stop the child process."""
        self._pool.close()
