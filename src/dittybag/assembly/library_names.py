"""Names of libraries and of their prompts for shell completion, read without loading all libraries."""

from __future__ import annotations

from typing import Final

from dittybag.config import Settings

#: At most this many prompts are offered.
_MAX_NAMES: Final = 200


def library_names(settings: Settings) -> list[str]:
    """Return the names of the folders that may be libraries, without reading their files."""
    from dittybag.library.library_folders import Directories

    folders = Directories(settings.home, settings.known_libraries).scan().all
    return sorted({folder.name for folder in folders if folder.name})


def library_prompts(settings: Settings, library: str) -> list[tuple[str, str]]:
    """Return the prompts of a library, and what to say about each. Only its own files are read."""
    from dittybag.library.library_folders import Directories
    from dittybag.protocol.lazy_asyncio import asyncio

    folders = Directories(settings.home, settings.known_libraries).scan().all
    folder = next((folder.root.path for folder in folders if folder.name == library), None)

    async def read() -> list[tuple[str, str]]:
        from dittybag.assembly.workspace_session import open_libraries

        extra = settings.known_libraries
        async with open_libraries(settings.home, extra, alone=folder, cached=True) as (libraries, _):
            prompts = await libraries.page("", _MAX_NAMES)
        return [(f"{library}:{prompt.key}", prompt.title or prompt.description or "") for prompt in prompts]

    return [] if folder is None else asyncio.run(read())
