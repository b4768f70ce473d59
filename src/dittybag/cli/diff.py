"""`dittybag diff`: show the differences that a change made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dittybag.cli.change_output import change_data
from dittybag.cli.error_output import ExitStatus, report, wants_json
from dittybag.cli.history import project_names
from dittybag.cli.output import clip_line, format_time, print_diff, print_result
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.whole_numbers import POSITIVE
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.services.change_diffs import changed_texts, diff_lines

if TYPE_CHECKING:
    from dittybag.services.history_service import Comparison
    from dittybag.services.workspace import WorkspaceSession


@click.command("diff", StrictCommand)
@click.argument("change", type=POSITIVE)
@click.argument("other", type=POSITIVE, required=False)
@in_workspace
def command(change: int, other: int | None, options: WorkspaceOptions) -> int:
    """Show what CHANGE modified, or how an item differs between CHANGE and OTHER.

    CHANGE and OTHER are numbers from `dittybag history`.

    \b
    Examples:
      dittybag diff 42
      dittybag diff 17 42
    """
    found, projects = options.run(lambda session: _read(session, change, other))
    first, last = found.first, found.last
    if last is not None and (first.kind, first.entity) != (last.kind, last.entity):
        report(
            f"Changes {first.seq} and {last.seq} are to different items",
            f"for the changes to the first item, run: dittybag history {first.entity}",
            code="DIFFERENT_THINGS",
        )
        return ExitStatus.REFUSED
    shown = last or first
    texts = changed_texts(found)
    if wants_json():
        fields = {name: {"before": old, "after": new} for name, (old, new) in texts.items()}
        print_result({"change": change_data(shown, projects), "fields": fields})
        return ExitStatus.OK
    click.secho(f"{shown.kind} {clip_line(shown.label)}", bold=True)
    click.secho(f"{shown.verb} by {clip_line(shown.actor)}, {format_time(shown.at)}", dim=True)
    print_diff(diff_lines(texts))
    if not texts:
        click.echo("No visible differences", err=True)
    return ExitStatus.OK


async def _read(
    session: WorkspaceSession, change: int, other: int | None
) -> tuple[Comparison, dict[int, str]]:
    return await session.workspace.history.compare(session.caller, change, other), await project_names(
        session
    )
