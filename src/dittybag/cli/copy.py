"""`dittybag copy`: copy a workspace between SQLite and PostgreSQL, with its history."""

from __future__ import annotations

import os

import click

from dittybag.cli.error_output import ExitStatus, report
from dittybag.cli.output import json_option, print_result, progress
from dittybag.cli.read_input import text
from dittybag.cli.strict_options import StrictCommand
from dittybag.config import parse_database
from dittybag.domain.display import format_count


@click.command("copy", StrictCommand)
@click.option("--from", "source", metavar="URL", type=text, required=True, help="Source database.")
@click.option("--to", "target", metavar="URL", type=text, required=True, help="Target database.")
@json_option
def command(source: str, target: str) -> int:
    """Copy a workspace with its history to another database, and verify the copy.

    Each database is a file or a URL like postgresql://user@host/database. The target must be empty or hold an
    interrupted copy of the same workspace, which is then resumed. Users, tokens and members are copied too.
    Stop all servers on the source database first.

    \b
    Example:
      dittybag copy --from notes.db --to postgresql://dittybag@db.example.org/notes
    """
    from dittybag.assembly.database_copy import copy
    from dittybag.assembly.store_factory import is_file

    first, second = parse_database(source), parse_database(target)
    if is_file(first) and not os.path.exists(first):  # noqa: PTH110  # pathlib is slow to import
        report(f"Database {first} does not exist", "check the name", code="NOT_FOUND")
        return ExitStatus.NOT_FOUND
    if first == second or (
        is_file(first) and is_file(second) and os.path.exists(second) and os.path.samefile(first, second)  # noqa: PTH110, PTH121
    ):
        report("Source and target are the same database", "choose another target with --to", code="REFUSED")
        return ExitStatus.REFUSED
    with progress() as show_progress:
        copied = copy(first, second, show_progress)
    entities = ", ".join(format_count(count, kind) for kind, count in copied.entities.items())
    print_result(
        {"changes": copied.changes, "copied": copied.copied, "entities": copied.entities},
        f"Copied {format_count(copied.copied, 'change')} of {copied.changes:,}; verified: {entities}",
    )
    return ExitStatus.OK
