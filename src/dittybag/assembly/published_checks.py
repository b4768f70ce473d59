"""Checks whether published files still follow their prompts, for `dittybag doctor`."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator
from pathlib import Path

from dittybag.protocol.lazy_asyncio import asyncio  # isort: skip  # first: it imports asyncio without TLS

from msgspec import Struct
from msgspec.structs import replace

from dittybag.assembly.automatic_backups import database_option
from dittybag.assembly.publishing import PublishingPlace, find_item
from dittybag.assembly.store_factory import database_name
from dittybag.assembly.workspace_session import LibrarySession, open_libraries, open_workspace
from dittybag.clients.client_errors import ClientFileError
from dittybag.clients.native_text import NotPublishable
from dittybag.clients.publishing import FileOutcome
from dittybag.clients.publishing_records import PublishingRecords, PublishingSource
from dittybag.clients.publishing_targets import TARGETS
from dittybag.config import Settings
from dittybag.domain.errors import DittybagError, NotFound
from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.domain.text import one_line
from dittybag.services.caller import Caller
from dittybag.services.template_service import TemplateService
from dittybag.services.workspace import WorkspaceSession


class PublishedItem(Struct, frozen=True):
    """A prompt or skill that was published, with its files."""

    target: str
    name: str
    source: PublishingSource
    files: tuple[str, ...]


class FileProblem(Struct, frozen=True):
    """Why a published file no longer follows its prompt, and what to do."""

    message: str
    fix: str
    #: Whether somebody's edit and a change of the prompt wait for a decision.
    is_conflict: bool = False


def published_items(settings: Settings) -> list[PublishedItem]:
    """Return what was published from the database of the settings."""
    found: dict[tuple[str, str, PublishingSource], list[str]] = {}
    for record in PublishingRecords(settings.home).of_database(database_name(settings.database)):
        if record.source is not None and record.target in TARGETS:
            found.setdefault((record.target, record.item, record.source), []).append(record.file)
    return [PublishedItem(*key, tuple(files)) for key, files in found.items()]


def file_problems(settings: Settings, items: list[PublishedItem]) -> list[FileProblem]:
    """Compare the files of items with their prompts. Changes nothing."""

    async def run() -> list[FileProblem]:
        workspace = await open_workspace(replace(settings, read_only=True), create=False)
        try:
            async with open_libraries(settings.home, settings.known_libraries) as (libraries, renderer):
                templates = TemplateService(renderer, libraries)
                found: list[FileProblem] = []
                for item in items:
                    caller = Caller(item.source.project, "dittybag")
                    session = LibrarySession(WorkspaceSession(workspace, caller), templates, libraries)
                    found += [problem async for problem in _problems(settings, item, session)]
                return found
        finally:
            await workspace.store.close()

    return asyncio.run(run())


async def _problems(
    settings: Settings, item: PublishedItem, session: LibrarySession
) -> AsyncIterator[FileProblem]:
    place = PublishingPlace(TARGETS[item.target], Path(item.source.root), settings.home, item.source.is_user)
    name, records = one_line(item.name), PublishingRecords(settings.home)
    remove = f"{_command(item)} --remove"
    try:
        project = await session.session.workspace.projects.of_caller(session.session.caller)
        found = await find_item(session, item.name)
        outcomes = place.follow(found, item.source, records, dry_run=True)
    except NotFound:
        for file in item.files:
            yield FileProblem(f"{file} stays as it is: the prompt '{name}' no longer exists", remove)
        return
    except (NotPublishable, ClientFileError, DittybagError) as error:
        message = f"'{name}' can no longer be published for {place.target.title}: {one_line(str(error), 500)}"
        yield FileProblem(message, remove)
        return
    again = f"{_command(item)}{_workspace_options(settings, project.name)}"
    for outcome in outcomes:
        if outcome.state == "absent":
            message = f"{outcome.file} was deleted and no longer follows the prompt '{name}'"
            yield FileProblem(message, f"{remove} forgets it, {again} writes it again")
        elif outcome.state == "conflict":
            message = f"{outcome.file} was edited, and the prompt '{name}' has changed too"
            yield FileProblem(message, _resolution(outcome, again), is_conflict=True)


def _resolution(outcome: FileOutcome, again: str) -> str:
    part = f"the section {outcome.section} of " if outcome.section else ""
    return (
        f"To take the stored version, delete {part}{shlex.quote(outcome.file)} and run {again}; to keep "
        f"yours, save it with dittybag prompt edit and run {again}"
    )


def _command(item: PublishedItem) -> str:
    where = "--user" if item.source.is_user else f"-C {shlex.quote(item.source.root)}"
    return f"dittybag publish {shlex.quote(item.name)} --to {item.target} {where}"


def _workspace_options(settings: Settings, project: str) -> str:
    chosen = "" if project == DEFAULT_PROJECT else f" --project {shlex.quote(project)}"
    return f"{database_option(settings)}{chosen}"
