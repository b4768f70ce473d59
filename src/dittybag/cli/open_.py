"""`dittybag open`: open the web UI in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

import click

from dittybag.cli.browser import open_browser
from dittybag.cli.output import hint, note, print_aside, print_result
from dittybag.cli.read_input import refuse, suggestion, text, usage_error
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.errors import WorkspaceNotFound
from dittybag.services.prompt_service import PromptAddress

if TYPE_CHECKING:
    from dittybag.config import Settings
    from dittybag.services.workspace import WorkspaceSession

#: The pages that can be named. Those with items take the name of one after a slash.
PAGES: Final = (
    "home",
    "prompts",
    "libraries",
    "resources",
    "tasks",
    "context",
    "activity",
    "connect",
    "settings",
    "search",
)


@click.command("open", StrictCommand)
@click.argument("page", required=False, type=text)
@click.option("--no-browser", is_flag=True, help="Only print the link.")
@click.option("--stop", is_flag=True, help="Stop the server that this command has started.")
@in_project
def command(page: str | None, options: WorkspaceOptions, *, no_browser: bool, stop: bool) -> None:
    """Open the web UI of the workspace in your browser.

    PAGE is home (default), prompts, libraries, resources, tasks, context, activity, connect, settings
    or search; a prompt, library or resource, as in prompts/NAME; or the number of a task.

    If no server runs for the workspace, one is started in the background. It listens on 127.0.0.1 only, and
    exits after an hour without visits. The link signs in one browser. Over SSH, it is only printed.

    \b
    Examples:
      dittybag open
      dittybag open tasks -p website
      dittybag open prompts/code-review
      dittybag open 12 --no-browser
      dittybag open --stop
    """
    if stop:
        if page is not None or no_browser:
            usage_error("--stop cannot be used with PAGE or --no-browser")
        _stop(options.settings)
        return
    from dittybag.assembly.background_server import ServerNotStarted, find_server, start_server
    from dittybag.assembly.run_files import log_file

    path = _path(options, page)
    settings = options.settings
    found = find_server(settings, path)
    try:
        server, link = found or start_server(settings, path)
    except ServerNotStarted as error:
        refuse(f"The server could not be started: {error}", f"its log is {log_file(settings)}")
    opened = not no_browser and open_browser(link)
    print_result(
        {
            "link": link,
            "address": server.origin,
            "pid": server.pid,
            "started": found is None,
            "opened": opened,
            "needs_token": server.needs_token,
        },
        link,
    )
    if server.needs_token:
        note("this server requires a token to sign in")
    elif not opened:
        hint("the link works once, in a browser on this machine")
    if found is None:
        print_aside("Started a server; it ends after an hour without visits (or dittybag open --stop)")


def _stop(settings: Settings) -> None:
    from dittybag.assembly.background_server import stop_servers

    stopped, others = stop_servers(settings)
    addresses = [server.origin for server in stopped]
    print_result({"stopped": addresses}, *(f"Stopped the server at {address}" for address in addresses))
    if not stopped:
        note("no server runs in the background for this workspace")
    for server in others:
        note(f"the server at {server.origin} was started by dittybag serve; stop it there")


def _path(options: WorkspaceOptions, page: str | None) -> str:
    """Return the path of a page. Raises `NotFound` for a workspace or an item that does not exist."""
    from dittybag.assembly.store_factory import is_missing

    settings = options.settings
    if is_missing(settings.database) and not settings.is_default_database:
        # Names the workspaces that exist.
        with options.existing_settings():
            raise WorkspaceNotFound(settings.database)
    kind, _, name = (page or "home").partition("/")
    if kind.isdecimal() and not name:
        kind, name = "tasks", kind
    if kind not in PAGES:
        usage_error(
            f"There is no page '{kind}'", suggestion(kind, PAGES, f"the pages are {', '.join(PAGES)}")
        )
    top = f"/p/{quote(options.project_name, safe='')}"
    if kind == "home":
        return top
    if not name:
        return f"{top}/prompts?tab=libraries" if kind == "libraries" else f"{top}/{kind}"
    if kind == "libraries":
        return f"{top}/libraries/view?{urlencode({'name': name})}"
    return top + options.run(lambda session: _item_path(session, kind, name))


async def _item_path(session: WorkspaceSession, kind: str, name: str) -> str:
    if kind == "prompts":
        prompt = await session.workspace.prompts.get(session.caller, PromptAddress(any=name))
        return f"/prompts/{prompt.id}"
    if kind == "resources":
        resource = await session.workspace.resources.get(session.caller, name)
        return f"/resources/view?{urlencode({'uri': resource.uri})}"
    if kind != "tasks" or not name.isdecimal():
        usage_error(f"There is no page '{kind}/{name}'", "see dittybag open --help")
    details = await session.workspace.tasks.details(session.caller, int(name))
    return f"/tasks/{details.task.id}"
