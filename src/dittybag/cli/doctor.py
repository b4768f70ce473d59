"""`dittybag doctor`: check for problems and suggest fixes."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from dittybag.cli.error_output import ExitStatus, wants_json
from dittybag.cli.output import pad, print_json, progress
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.table import print_table
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.config import home
from dittybag.domain.display import format_count
from dittybag.domain.text import one_line

if TYPE_CHECKING:
    from dittybag.assembly.doctor_checks import DoctorReport, Finding, LargeEntity, Level
    from dittybag.clients.connector import ConfigTarget
    from dittybag.config import Settings

#: The sign, word and colour of each level; the word is used where the sign cannot be displayed.
_MARKS: Final[dict[Level, tuple[str, str, str]]] = {
    "ok": ("✓", "ok", "green"),
    "note": ("·", "note", "cyan"),
    "warning": ("!", "warning", "yellow"),
    "error": ("✗", "error", "red"),
}
#: Maximum length of a message, which may contain a path.
_MAX_MESSAGE: Final = 5000


@click.command("doctor", StrictCommand)
@click.option(
    "--fix",
    is_flag=True,
    help="Rebuild the search index and the lists of edges and open tasks if they are wrong, and remove "
    "claims of tasks that nobody works on. Nothing else is changed.",
)
@in_workspace
def command(options: WorkspaceOptions, *, fix: bool) -> int:
    """Check for problems and suggest fixes.

    Checks the database, its search index and change log, the libraries and the MCP clients, and reports the
    size of the tool definitions. Of a PostgreSQL database, only the server and the schema are checked.
    Nothing is changed without --fix. The exit status is 1 if there are errors.

    \b
    Examples:
      dittybag doctor
      dittybag doctor --db notes.db --json
    """
    from dittybag.assembly.doctor_checks import run_checks

    # Only the indexes of a file can be rebuilt.
    settings = options.file_settings if fix else options.settings
    with progress() as show:
        health = run_checks(settings, show)
        fixed, more = False, []
        if fix and any(finding.can_fix for finding in health.findings):
            show("Rebuilding the search index")
            more = _rebuild_index(settings)
            fixed = not more
            health = run_checks(settings, show)
        more += _client_findings()
    health = msgspec.structs.replace(
        health, findings=[_printable(item) for item in (*health.findings, *more)]
    )
    if wants_json():
        print_json(_data(health, fixed=fixed))
    else:
        _print(health, fixed=fixed)
    return ExitStatus.REFUSED if _count(health, "error") else ExitStatus.OK


def _printable(finding: Finding) -> Finding:
    """Return the finding with undecodable file names replaced."""
    fix = None if finding.fix is None else click.format_filename(finding.fix)
    return msgspec.structs.replace(finding, message=click.format_filename(finding.message), fix=fix)


def _rebuild_index(settings: Settings) -> list[Finding]:
    """Rebuild the search index; return a finding if that fails."""
    from dittybag.assembly.doctor_checks import finding_from_error, rebuild_search_index

    try:
        rebuild_search_index(settings)
    except Exception as error:  # noqa: BLE001  # a row may hold anything: reported as a finding
        return [finding_from_error("search index", error)]
    return []


def _client_findings() -> list[Finding]:
    """Return findings about the connected MCP clients."""
    from dittybag.assembly.doctor_checks import Finding
    from dittybag.assembly.outdated_entries import update_command
    from dittybag.cli.connect import client_statuses

    ours = home(os.environ)
    try:
        statuses = client_statuses()
    except Exception as error:  # noqa: BLE001  # files of other programs may hold anything
        return [Finding("note", "clients", f"Cannot check the MCP clients: {error}", "dittybag connect")]
    findings = [
        Finding(
            "warning",
            "clients",
            f"{target.client.title}: the entry '{name}' in {target.file} is broken: {problem}",
            _entry_fix(target, name),
        )
        for target, status, _ in statuses
        for name, problem in status.broken.items()
    ]
    findings += [
        Finding(
            "warning",
            "clients",
            f"{target.client.title}: the hooks are broken: {hooks.problem}",
            _fix(target, " --hooks"),
        )
        for target, _, hooks in statuses
        if hooks is not None and hooks.state == "broken"
    ]
    findings += [
        Finding(
            "note",
            "clients",
            f"{target.client.title}: the entry '{name}' in {target.file} is outdated: {reason}",
            f"{update_command(target, name, ours)} updates it",
        )
        for target, status, _ in statuses
        for name, reason in status.outdated.items()
    ]
    findings += [
        Finding(
            "note",
            "clients",
            f"{target.client.title}: an older version of Dittybag wrote the hooks",
            f"{_command(target)} --hooks updates them",
        )
        for target, _, hooks in statuses
        if hooks is not None and hooks.state == "outdated"
    ]
    connected = sorted({target.client.name for target, status, _ in statuses if status.state == "connected"})
    if connected:
        findings.append(Finding("ok", "clients", f"Connected: {', '.join(connected)}"))
    elif not findings:
        message = "No MCP client on this machine is connected to Dittybag"
        fix = "dittybag connect CLIENT (dittybag connect lists the clients)"
        findings.append(Finding("note", "clients", message, fix))
    return findings


def _entry_fix(target: ConfigTarget, name: str) -> str:
    """Return the command that replaces an entry, and the one that removes it."""
    return _fix(target, "" if name == "dittybag" else f" --name {shlex.quote(name)}")


def _command(target: ConfigTarget) -> str:
    scope = "" if target.scope == "user" else f" --scope {target.scope}"
    return f"dittybag connect {target.client.name}{scope}"


def _fix(target: ConfigTarget, options: str) -> str:
    command = f"{_command(target)}{options}"
    return f"{command} replaces it, {command} --remove removes it"


def _count(health: DoctorReport, level: Level) -> int:
    return sum(finding.level == level for finding in health.findings)


def _data(health: DoctorReport, *, fixed: bool) -> dict[str, Any]:
    return {
        "database": click.format_filename(health.database),
        "findings": [
            {"level": item.level, "topic": item.topic, "message": item.message, "fix": item.fix}
            for item in health.findings
        ],
        "fixes": [{"fix": fix.text, "level": fix.level, "topics": fix.topics} for fix in health.fixes],
        "errors": _count(health, "error"),
        "warnings": _count(health, "warning"),
        "fixed": ["search index"] if fixed else [],
        "profiles": msgspec.to_builtins(health.costs),
        "largest": {
            "prompts": msgspec.to_builtins(health.prompts),
            "resources": msgspec.to_builtins(health.resources),
        },
    }


def _print(health: DoctorReport, *, fixed: bool) -> None:
    topics = max(len(finding.topic) for finding in health.findings)
    marks = _marks()
    room = max(len(mark) for mark in marks.values())
    for finding in health.findings:
        mark = click.style(pad(marks[finding.level], room), fg=_MARKS[finding.level][2])
        click.echo(f"{mark}  {pad(finding.topic, topics)}  {one_line(finding.message, _MAX_MESSAGE)}")
    if fixed:
        click.echo("Rebuilt the search index")
    if fixes := health.fixes:
        click.echo("\nWhat to do, the most important first:")
        for number, fix in enumerate(fixes, 1):
            click.echo(f"{number:>3}. {one_line(fix.text, _MAX_MESSAGE)}")
            click.secho(f"     {fix.level}: {', '.join(fix.topics)}", fg=_MARKS[fix.level][2])
    click.echo()
    print_table(
        ("profile", "tools", "bytes", "~tokens"),
        [(cost.profile, *(f"{n:,}" for n in (cost.tools, cost.bytes, cost.tokens))) for cost in health.costs],
        right=(1, 2, 3),
    )
    click.echo("Size of the tool definitions of each profile; tokens are estimated at four bytes each")
    largest = [*_rows("prompt", health.prompts), *_rows("resource", health.resources)]
    if largest:
        click.echo()
        print_table(("largest", "project", "name", "bytes"), largest, right=(3,), shrinkable=(1,))
    errors, warnings = _count(health, "error"), _count(health, "warning")
    click.echo()
    colour = "red" if errors else "yellow" if warnings else "green"
    click.secho(f"{format_count(errors, 'error')}, {format_count(warnings, 'warning')}", fg=colour)


def _rows(kind: str, entities: list[LargeEntity]) -> Iterator[tuple[str, str, str, str]]:
    for entity in entities:
        yield kind, one_line(entity.project), one_line(entity.name), f"{entity.bytes:,}"


def _marks() -> dict[Level, str]:
    """Return signs for a terminal that can display them, otherwise words."""
    try:
        "✓·✗".encode(sys.stdout.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        signs = False
    else:
        signs = sys.stdout.isatty()
    return {level: sign if signs else word for level, (sign, word, _) in _MARKS.items()}
