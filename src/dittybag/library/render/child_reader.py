"""Files of a library read in a child process."""

from __future__ import annotations

import msgspec

from dittybag.domain.libraries import FileProblem
from dittybag.library.formats.parsed_prompt import ParsedFile
from dittybag.library.render.resource_limits import DEADLINE_SECONDS
from dittybag.library.render.worker_pool import WorkerCrashed, WorkerPool


class _Answer(ParsedFile, frozen=True, kw_only=True):
    seconds: float


_answer = msgspec.json.Decoder(_Answer)


class FileReader:
    """Reads what files say; its child is started when it is first needed."""

    def __init__(self) -> None:
        # A second one would take longer to start than it saves.
        self._crew = WorkerPool("files", 1)

    async def read(self, format: str, file: str, content: str) -> tuple[ParsedFile, float]:
        """What a file says, and the seconds it took to find out.

        A file that is too much for the child is a problem like any other.
        """
        job = {"format": format, "file": file, "content": content}
        try:
            answer = _answer.decode(await self._crew.ask(job))
        except WorkerCrashed as death:
            problem = FileProblem(file, f"cannot be read: {death.problem}")
            return ParsedFile(problems=(problem,)), DEADLINE_SECONDS
        return answer, answer.seconds

    def close(self) -> None:
        """End the child."""
        self._crew.close()
