"""`dittybag diff`: show the differences that a change made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from msgspec import Struct

from dittybag.cli.change_output import change_data
from dittybag.cli.error_output import ExitStatus, report
from dittybag.cli.history import project_names
from dittybag.cli.output import clip_line, json_option, print_json, terminal_safe
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.changes import Change, Purged
from dittybag.domain.entities import Entity
from dittybag.domain.errors import ChangePurged
from dittybag.domain.resources import Resource, is_text
from dittybag.domain.times import iso

if TYPE_CHECKING:
    from dittybag.assembly.workspace_session import WorkspaceSession

#: Fields that are not compared: identifiers, and values derived from other fields.
_HIDDEN_FIELDS: Final = frozenset(
    ("id", "number", "project", "user", "created_at", "updated_at", "version", "sha256", "size")
)
_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}


class _EntityState(Struct, frozen=True):
    """An entity at one point in time, with its content if it is a resource."""

    entity: Entity | None
    content: bytes | None

    def fields(self) -> dict[str, str]:
        """Return the fields to compare, as text."""
        if self.entity is None:
            return {}
        found = {}
        for name, value in msgspec.to_builtins(self.entity).items():
            if name not in _HIDDEN_FIELDS and value not in (None, [], ()):
                found[name] = iso(value) if name == "completed_at" else _format_value(value)
        if self.content is not None and isinstance(self.entity, Resource):
            found["content"] = self._content(self.entity)
        return found

    def _content(self, resource: Resource) -> str:
        assert self.content is not None
        try:
            if is_text(resource.mime_type):
                return self.content.decode()
        except UnicodeDecodeError:
            pass
        return f"({len(self.content):,} bytes, SHA-256 {resource.sha256})"


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return msgspec.json.encode(value).decode()


@click.command("diff", StrictCommand)
@click.argument("change", type=click.IntRange(1))
@click.argument("other", type=click.IntRange(1), required=False)
@in_workspace
@json_option
def command(change: int, other: int | None, options: WorkspaceOptions, *, as_json: bool) -> int:
    """Show what CHANGE modified, or how an item differs between CHANGE and OTHER.

    CHANGE and OTHER are numbers from `dittybag history`.

    \b
    Examples:
      dittybag diff 42
      dittybag diff 17 42
    """

    async def work(
        session: WorkspaceSession,
    ) -> tuple[Change, Change | None, _EntityState, _EntityState, dict[int, str]]:
        found = await session.workspace.history.compare(session.caller, change, other)
        for shown, state in ((found.first, found.before), (found.last or found.first, found.after)):
            if isinstance(state, Purged):
                raise ChangePurged(shown.seq, state.by, state.at)
        assert not isinstance(found.before, Purged)
        assert not isinstance(found.after, Purged)
        states = _EntityState(found.before, found.old), _EntityState(found.after, found.new)
        return found.first, found.last, *states, await project_names(session)

    first, last, before, after, projects = options.run(work)
    if last is not None and (first.kind, first.entity) != (last.kind, last.entity):
        report(
            f"Changes {first.seq} and {last.seq} are to different items",
            f"for the changes to the first item, run: dittybag history {first.entity}",
            code="DIFFERENT_THINGS",
        )
        return ExitStatus.REFUSED
    old, new = before.fields(), after.fields()
    names = [name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name)]
    if as_json:
        fields = {name: {"before": old.get(name), "after": new.get(name)} for name in names}
        print_json({"change": change_data(last or first, projects), "fields": fields})
        return ExitStatus.OK
    shown_change = last or first
    name = clip_line(shown_change.label)
    click.secho(f"{shown_change.kind} {name}", bold=True)
    click.secho(f"{shown_change.action} by {clip_line(shown_change.actor)}, {iso(shown_change.at)}", dim=True)
    for name in names:
        for line in _diff_lines(name, old.get(name), new.get(name)):
            click.secho(terminal_safe(line), fg=_COLOURS.get(line[:1]))
    if not names:
        click.echo("No visible differences", err=True)
    return ExitStatus.OK


def _diff_lines(name: str, old: str | None, new: str | None) -> Iterator[str]:
    if "\n" not in (old or "") + (new or ""):
        if old is not None:
            yield f"-{name}: {old}"
        if new is not None:
            yield f"+{name}: {new}"
        return
    from difflib import unified_diff

    yield f"@@ {name} @@"
    lines = unified_diff((old or "").splitlines(), (new or "").splitlines(), lineterm="", n=3)
    for line in lines:
        if not line.startswith(("---", "+++")):
            yield line
