"""Files of a library read in a child process."""

from __future__ import annotations

import msgspec

from satchel.domain.libraries import FileProblem
from satchel.library.formats.drafts import Reading
from satchel.library.render.workers import Crew, WorkerDied

_reading = msgspec.json.Decoder(Reading)


class FileReader:
    """Reads what files say; its child is started when it is first needed."""

    def __init__(self) -> None:
        # A second one would take longer to start than it saves.
        self._crew = Crew("files", 1)

    async def read(self, format: str, file: str, content: str) -> Reading:
        """What a file says. A file that is too much for the child is a problem like any other."""
        job = {"format": format, "file": file, "content": content}
        try:
            return _reading.decode(await self._crew.ask(job))
        except WorkerDied as death:
            return Reading(problems=(FileProblem(file, f"cannot be read: {death.problem}"),))

    def close(self) -> None:
        """End the child."""
        self._crew.close()
