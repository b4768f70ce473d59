"""`dittybag publish`: write prompts and skills as the files of a client."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec.structs import replace

from dittybag.cli.colours import AMBER, GREEN, GREY
from dittybag.cli.error_output import ExitStatus, report, wants_json
from dittybag.cli.output import format_path, hint, note, print_diff, print_json
from dittybag.cli.read_input import text
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.clients.client_errors import ClientFileBusy, ClientFileError, ClientFileUnreachable
from dittybag.clients.native_text import NotPublishable
from dittybag.clients.publishing_targets import TARGETS
from dittybag.config import home
from dittybag.domain.errors import NotFound
from dittybag.domain.text import one_line

if TYPE_CHECKING:
    from dittybag.assembly.publishing import Publication, PublishingPlace
    from dittybag.assembly.workspace_session import LibrarySession
    from dittybag.clients.publishing import FileOutcome

#: Maximum length of a message, which may contain a path.
_MAX_LENGTH: Final = 2000
_STATES: Final = {
    "created": ("Created", GREEN),
    "updated": ("Updated", GREEN),
    "unchanged": ("Unchanged", GREY),
    "kept": ("Kept", AMBER),
    "conflict": ("Conflict", AMBER),
    "removed": ("Removed", GREEN),
    "absent": ("Not published", GREY),
}
_RESOLVE: Final = (
    "to take the stored version, delete the file and publish again; to keep yours, save it with "
    "`dittybag prompt edit` and publish again"
)


@click.command("publish", StrictCommand)
@click.argument("names", metavar="NAME...", type=text, nargs=-1, required=True)
@click.option("--to", "target", required=True, type=click.Choice(tuple(TARGETS)), help="Where to publish.")
@click.option(
    "-C",
    "--project-folder",
    "folder",
    metavar="DIR",
    help="Folder of the project whose files are written (default: the current folder).",
)
@click.option("--user", is_flag=True, help="Write files for all your projects.")
@click.option("--watch", is_flag=True, help="Keep the files in step with the prompts until Ctrl-C.")
@click.option("--dry-run", is_flag=True, help="Show the differences, and change nothing.")
@click.option("--remove", is_flag=True, help="Remove what was published.")
@in_project
def command(
    names: tuple[str, ...],
    target: str,
    folder: str | None,
    options: WorkspaceOptions,
    *,
    user: bool,
    watch: bool,
    dry_run: bool,
    remove: bool,
) -> int:
    """Write prompts and skills as the files of a client: commands, prompt files or skills.

    NAME is the name of a prompt, or LIBRARY:PROMPT; skills of libraries are published with all their files.
    agents-md adds a section to AGENTS.md.

    Each file has a line that says where it comes from. A file that somebody has edited is never overwritten
    or removed: if the prompt has changed too, the command shows both versions and ends with status 4.

    \b
    Examples:
      dittybag publish code-review --to claude-code
      dittybag publish code-review team:commit --to gemini --user
      dittybag publish code-review --to agents-md -C ~/src/website --dry-run
      dittybag publish code-review --to claude-code --watch
      dittybag publish code-review --to claude-code --remove
    """
    if user and folder is not None:
        raise click.UsageError("--user and --project-folder exclude each other")
    if watch and (dry_run or remove):
        raise click.UsageError("--watch cannot be used with --dry-run or --remove")
    if user and TARGETS[target].user_file is None:
        raise click.UsageError(f"{TARGETS[target].title} has no file of the user; omit --user")
    try:
        place = _place(target, folder, user=user)
    except (RuntimeError, OSError) as error:
        report(
            f"Cannot find your home folder or the current folder ({error})", "set HOME, or change the folder"
        )
        return ExitStatus.STORAGE
    try:
        if remove:
            return _print([place.remove(name, dry_run=dry_run) for name in names], place, dry_run=dry_run)
        publish = _Publisher(names, place, options.settings.database, dry_run=dry_run)
        if not watch:
            return options.run_with_libraries(publish.once)
        return options.run_with_libraries(lambda session: _watch(session, publish.once))
    except ClientFileError as error:
        report(one_line(str(error), _MAX_LENGTH), error.advice, code=error.code)
        if isinstance(error, ClientFileUnreachable):
            return ExitStatus.STORAGE
        return ExitStatus.CONFLICT if isinstance(error, ClientFileBusy) else ExitStatus.REFUSED


def _place(target: str, folder: str | None, *, user: bool) -> PublishingPlace:
    from dittybag.assembly.client_connections import local_machine
    from dittybag.assembly.publishing import PublishingPlace

    machine = local_machine()
    if folder is not None:
        path = Path(folder).absolute()
        if not path.is_dir():
            raise click.UsageError(f"'{folder}' is not a folder")
        machine = replace(machine, current_folder=path)
    root = TARGETS[target].root(machine, user=user).resolve()
    return PublishingPlace(TARGETS[target], root, home(os.environ), user)


class _Publisher:
    """Publishes some prompts, and prints what happened."""

    def __init__(self, names: Sequence[str], place: PublishingPlace, database: str, *, dry_run: bool) -> None:
        self._names = names
        self._place = place
        self._database = database
        self._dry_run = dry_run
        self._is_repeated = False

    async def once(self, session: LibrarySession) -> int:
        from dittybag.assembly.publishing import find_item
        from dittybag.assembly.store_factory import database_name

        database, project = database_name(self._database), session.session.caller.project
        publications = []
        status = ExitStatus.OK
        for name in self._names:
            try:
                item = await find_item(session, name)
                publications.append(self._place.publish(item, database, project, dry_run=self._dry_run))
            except NotPublishable as error:
                report(
                    f"'{one_line(name)}' cannot be published for {self._place.target.title}: {error}",
                    "clients that show MCP prompts get it unchanged over MCP",
                    code="NOT_PUBLISHABLE",
                )
                status = ExitStatus.REFUSED
            except NotFound as error:
                if not self._is_repeated:
                    # It ends the command. JSON output is one document.
                    if not wants_json():
                        _print(publications, self._place, dry_run=self._dry_run)
                    raise
                # A prompt was deleted: its file stays until it is removed.
                report(str(error), code=error.code)
        if self._is_repeated:
            publications = [_news(publication) for publication in publications]
        self._is_repeated = True
        return max(status, _print(publications, self._place, dry_run=self._dry_run))


def _news(publication: Publication) -> Publication:
    """Return a publication without what has been said before, or says nothing."""
    changed = tuple(outcome for outcome in publication.outcomes if outcome.state != "unchanged")
    return replace(publication, outcomes=changed, differences=())


async def _watch(session: LibrarySession, publish: Callable[[LibrarySession], Awaitable[int]]) -> int:
    """Publish now, and again whenever a prompt or a library changes, until a signal ends it."""
    import asyncio
    import signal

    woken, ended = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def end() -> None:
        ended.set()
        woken.set()

    def on_changes(changes: Sequence[Any]) -> None:
        if any(change.kind in ("prompt", "project") for change in changes):
            woken.set()

    session.session.workspace.store.subscribe(on_changes)
    session.libraries.subscribe(woken.set)
    session.libraries.subscribe_to_skills(lambda paths: woken.set())
    session.libraries.start()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    status = await publish(session)
    note("watching for changes; Ctrl-C ends it")
    while True:
        await woken.wait()
        woken.clear()
        if ended.is_set():
            return status
        status = await publish(session)


def _print(publications: Sequence[Publication], place: PublishingPlace, *, dry_run: bool) -> int:
    """Print what happened, and return the exit status."""
    outcomes = [outcome for publication in publications for outcome in publication.outcomes]
    is_conflict = any(outcome.state == "conflict" for outcome in outcomes)
    if wants_json():
        print_json({"target": place.target.name, "published": [_data(item) for item in publications]})
    else:
        for publication in publications:
            for outcome in publication.outcomes:
                _print_outcome(outcome, dry_run=dry_run)
            for difference in publication.differences:
                note(f"{publication.name}: {difference}")
        if is_conflict:
            hint(_RESOLVE)
    return ExitStatus.CONFLICT if is_conflict else ExitStatus.OK


def _print_outcome(outcome: FileOutcome, *, dry_run: bool) -> None:
    word, colour = _STATES[outcome.state]
    reasons = {
        "kept": " (edited since it was published)",
        "conflict": " (edited, and the prompt changed too)",
    }
    path = one_line(format_path(outcome.file), _MAX_LENGTH)
    section = f", section {outcome.section}" if outcome.section else ""
    click.echo(f"{click.style(word, fg=colour)} {path}{section}{reasons.get(outcome.state, '')}")
    if outcome.diff and (dry_run or outcome.state == "conflict"):
        print_diff(outcome.diff.split("\n"))


def _data(publication: Publication) -> dict[str, Any]:
    return {
        "name": publication.name,
        "files": [
            {
                "file": outcome.file,
                "section": outcome.section or None,
                "state": outcome.state,
                "diff": outcome.diff or None,
            }
            for outcome in publication.outcomes
        ],
        "differences": list(publication.differences),
    }
