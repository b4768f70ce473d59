"""Which parameters of commands complete to stored names, and to which."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import click
from click.shell_completion import CompletionItem

from dittybag.cli.strict_options import shared_values
from dittybag.domain.tasks import DEFAULT_USER

if TYPE_CHECKING:
    from dittybag.assembly.completed_names import NameAbout, NameLookup
    from dittybag.config import Settings
    from dittybag.domain.prompts import Argument

#: Where a context has the maximum number of names, if it is not the one for completion.
LIMIT: Final = "dittybag.name_completion.limit"

#: Returns the completions of a word. Takes the same arguments as `click.Parameter.shell_complete`.
Completer: TypeAlias = Callable[[click.Context, str], list[CompletionItem]]
_Names: TypeAlias = Callable[["NameLookup", "Settings", str], Awaitable[Sequence["NameAbout"]]]
_NamesInProject: TypeAlias = Callable[["NameLookup", int, str], Awaitable[Sequence["NameAbout"]]]


def completer_for(command: str, parameter: str) -> Completer | None:
    """Return what completes a parameter of a command, such as `prompt show`; `None` for nothing stored."""
    return _PARAMETERS.get(f"{command} {parameter}") or _EVERYWHERE.get(parameter)


def items(names: Iterable[str | NameAbout]) -> list[CompletionItem]:
    """Return names, or pairs of a name and what to say about it, as completions."""
    pairs = ((name, "") if isinstance(name, str) else name for name in names)
    # Shells read one name per line.
    return [CompletionItem(name, help=about or None) for name, about in pairs if name.isprintable()]


def _settings(ctx: click.Context) -> Settings:
    """Return the settings of the options before the word."""
    from dittybag.config import settings_from_process

    given = {**ctx.params, **shared_values(ctx)}
    return settings_from_process(**{name: given.get(name) for name in ("workspace", "db", "project")})


def _stored(names: _Names) -> Completer:
    def complete(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from dittybag.assembly.completed_names import MAX_NAMES, read_names

        settings = _settings(ctx)
        limit = ctx.meta.get(LIMIT, MAX_NAMES)
        return items(read_names(settings, lambda lookup: names(lookup, settings, incomplete), limit))

    return complete


def _in_project(names: _NamesInProject) -> Completer:
    async def read(lookup: NameLookup, settings: Settings, incomplete: str) -> Sequence[NameAbout]:
        from dittybag.assembly.completed_names import selected_project

        project = await selected_project(lookup, settings)
        return [] if project is None else await names(lookup, project, incomplete)

    return _stored(read)


async def _read_tasks(lookup: NameLookup, incomplete: str, *, ended: bool | None) -> Sequence[NameAbout]:
    """Return numbers of tasks, or titles of open tasks if the word is not the start of a number."""
    if incomplete and not incomplete.isdigit() and not ended:
        return await lookup.task_titles(DEFAULT_USER, incomplete)
    return await lookup.tasks(DEFAULT_USER, incomplete, ended=ended)


async def _read_items(lookup: NameLookup, project: int, incomplete: str) -> Sequence[NameAbout]:
    prompts = [] if ":" in incomplete else await lookup.prompts(project, incomplete)
    return [*prompts, *await lookup.resources(project, incomplete)]


_projects: Final = _stored(lambda lookup, settings, incomplete: lookup.projects(incomplete))
_users: Final = _stored(lambda lookup, settings, incomplete: lookup.users(incomplete))
_actors: Final = _stored(lambda lookup, settings, incomplete: lookup.actors(incomplete))
_labels: Final = _stored(lambda lookup, settings, incomplete: lookup.labels(DEFAULT_USER, incomplete))
_tasks: Final = _stored(lambda lookup, settings, incomplete: _read_tasks(lookup, incomplete, ended=None))
_open_tasks: Final = _stored(
    lambda lookup, settings, incomplete: _read_tasks(lookup, incomplete, ended=False)
)
_prompts: Final = _in_project(lambda lookup, project, incomplete: lookup.prompts(project, incomplete))
_tags: Final = _in_project(lambda lookup, project, incomplete: lookup.tags(project, incomplete))
_resources: Final = _in_project(lambda lookup, project, incomplete: lookup.resources(project, incomplete))
_items: Final = _in_project(_read_items)


def _workspaces(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    from dittybag.config import home, workspace_names

    return items(name for name in workspace_names(home(os.environ)) if name.startswith(incomplete))


def _libraries(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    from dittybag.assembly.completed_names import library_names

    return items(name for name in library_names(_settings(ctx)) if name.startswith(incomplete))


def _all_prompts(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete stored prompts and libraries, and after the colon the prompts of one library."""
    if ":" not in incomplete:
        libraries = (f"{item.value}:" for item in _libraries(ctx, incomplete))
        return [*_prompts(ctx, incomplete), *items(libraries)]
    from dittybag.assembly.completed_names import library_prompts

    prompts = library_prompts(_settings(ctx), incomplete.partition(":")[0])
    return items(about for about, _ in prompts if about[0].startswith(incomplete))


def _library_or_prompt(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    return _all_prompts(ctx, incomplete) if ":" in incomplete else _libraries(ctx, incomplete)


def _arguments(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete `KEY=` of the arguments that are not given yet, and the choices after it."""
    arguments = _arguments_of(_settings(ctx), ctx.params.get("name") or "")
    key, equals, start = incomplete.partition("=")
    if equals:
        choices = (argument.choices for argument in arguments if argument.name == key)
        return items(f"{key}={choice}" for values in choices for choice in values if choice.startswith(start))
    given = {value.partition("=")[0] for value in ctx.params.get("values") or ()}
    return items(
        (f"{argument.name}=", argument.summary)
        for argument in arguments
        if argument.name not in given and argument.name.startswith(key)
    )


def _arguments_of(settings: Settings, prompt: str) -> tuple[Argument, ...]:
    from dittybag.assembly.completed_names import library_prompts, read_names, selected_project

    if ":" in prompt:
        found = library_prompts(settings, prompt.partition(":")[0])
        return next((arguments for (name, _), arguments in found if name == prompt), ())

    async def read(lookup: NameLookup) -> tuple[Argument, ...]:
        project = await selected_project(lookup, settings)
        return () if project is None else await lookup.prompt_arguments(project, prompt)

    return read_names(settings, read)


def _pages(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    from dittybag.cli.open_ import PAGES

    return items(page for page in PAGES if page.startswith(incomplete))


def _files(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


#: Parameters that mean the same in all commands.
_EVERYWHERE: Final[dict[str, Completer]] = {
    "workspace": _workspaces,
    "db": _files,
    "project": _projects,
    "actor": _actors,
    "assignee": _actors,
    "labels": _labels,
    "args_json": _files,
    "draft": _files,
}
#: A command and one of its parameters.
_PARAMETERS: Final[dict[str, Completer]] = {
    "prompt list tags": _tags,
    "prompt show name": _prompts,
    "prompt render name": _all_prompts,
    "prompt render values": _arguments,
    "prompt add tags": _tags,
    "prompt add file": _files,
    "prompt edit name": _prompts,
    "prompt edit tags": _tags,
    "prompt edit file": _files,
    "prompt delete names": _prompts,
    "tag rename old": _tags,
    "tag rename new": _tags,
    "resource add sources": _files,
    "resource show name": _resources,
    "resource show output": _files,
    "resource edit reference": _resources,
    "resource edit file": _files,
    "resource delete names": _resources,
    "task add parent": _open_tasks,
    "task add blocked_by": _open_tasks,
    "task add links": _items,
    "task next task": _open_tasks,
    "task delete tasks": _tasks,
    "task done tasks": _open_tasks,
    "task edit task": _tasks,
    "task graph task": _tasks,
    "task import source": _files,
    "task release task": _open_tasks,
    "task renew task": _open_tasks,
    "task show task": _tasks,
    "task edit parent": _open_tasks,
    "task edit blocked_by": _open_tasks,
    "task edit links": _items,
    "pin ref": _items,
    "unpin ref": _items,
    "library add source": _files,
    "library show name": _library_or_prompt,
    "library check name": _libraries,
    "library update name": _libraries,
    "library remove name": _libraries,
    "project show name": _projects,
    "project rename name": _projects,
    "project delete name": _projects,
    "project share name": _projects,
    "project share user": _users,
    "project unshare name": _projects,
    "project unshare user": _users,
    "project members name": _projects,
    "user enable name": _users,
    "user disable name": _users,
    "token create name": _users,
    "history item": _items,
    "purge ref": _items,
    "restore what": _items,
    "open page": _pages,
    "import source": _files,
    "export target": _files,
}


def completed_parameters() -> Iterable[str]:
    """Return the keys of the parameters that complete: a command and one of its parameters."""
    return _PARAMETERS
