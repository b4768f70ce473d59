"""`dittybag copy`: move a workspace between SQLite and PostgreSQL, with its history."""

from __future__ import annotations

import os

import click

from dittybag.cli.error_output import ExitStatus, report
from dittybag.cli.output import format_count, json_option, print_json, progress
from dittybag.cli.read_input import text
from dittybag.config import parse_database


@click.command("copy")
@click.option("--from", "source", metavar="URL", type=text, required=True, help="The database to copy.")
@click.option("--to", "target", metavar="URL", type=text, required=True, help="Where it is to go.")
@json_option
def command(source: str, target: str, *, as_json: bool) -> int:
    """Copy a workspace with its history into another database, and compare the two.

    Both are files or URLs like postgresql://user@host/database. The other one must be empty, or hold a copy
    of the same workspace that was stopped: then it is gone on with. Users, tokens and members are copied
    too. Stop the servers on the first database before, so that nothing is written there any more.

    \b
    Example:
      dittybag copy --from notes.db --to postgresql://dittybag@db.example.org/notes
    """
    from dittybag.assembly.database_copy import copy
    from dittybag.assembly.store_factory import is_file

    first, second = parse_database(source), parse_database(target)
    if is_file(first) and not os.path.exists(first):  # noqa: PTH110  # pathlib is slow to import
        report(f"there is no database {first}", "check the name", code="NOT_FOUND")
        return ExitStatus.NOT_FOUND
    if first == second or (
        is_file(first) and is_file(second) and os.path.exists(second) and os.path.samefile(first, second)  # noqa: PTH110, PTH121
    ):
        report("both are the same database", "--to needs another one", code="REFUSED")
        return ExitStatus.REFUSED
    with progress() as tell:
        copied = copy(first, second, tell or (lambda words: None))
    if as_json:
        print_json({"changes": copied.changes, "copied": copied.copied, "things": copied.things})
        return ExitStatus.OK
    things = ", ".join(format_count(count, kind) for kind, count in copied.things.items())
    click.echo(
        f"Copied {format_count(copied.copied, 'change')} of {copied.changes:,}; both are equal: {things}"
    )
    return ExitStatus.OK
