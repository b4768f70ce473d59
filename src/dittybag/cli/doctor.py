"""`dittybag doctor`: check for problems and suggest fixes."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from dittybag.cli.error_output import ExitStatus, wants_json
from dittybag.cli.output import pad, print_json, progress
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.display import format_count
from dittybag.domain.text import one_line

if TYPE_CHECKING:
    from dittybag.assembly.doctor_checks import DoctorReport
    from dittybag.clients.connector import ConfigTarget
    from dittybag.domain.health import Finding, Level

_COLOURS: Final[dict[Level, str]] = {"ok": "green", "note": "cyan", "warning": "yellow", "error": "red"}
#: Maximum length of a message, which may contain a path.
_MAX_MESSAGE: Final = 5000


@click.command("doctor", StrictCommand)
@click.option(
    "--fix",
    is_flag=True,
    help="Rebuild the search index and the lists that follow from prompts and tasks. No data is changed.",
)
@in_workspace
def command(options: WorkspaceOptions, *, fix: bool) -> int:
    """Check for problems and suggest fixes.

    Checks the database and its search index, its backups and disk, the libraries and the entries of MCP
    clients, and reports the size of the tool definitions. Of a PostgreSQL database, only the server and the
    schema are checked. Nothing is changed without --fix. The exit status is 1 if there are errors.

    \b
    Examples:
      dittybag doctor
      dittybag doctor --db notes.db --json
    """
    from dittybag.assembly.doctor_checks import rebuild_search_index, run_checks

    # Only the indexes of a file can be rebuilt.
    settings = options.file_settings if fix else options.settings
    with progress() as show:
        health = run_checks(settings, show)
        fixed, more = False, []
        errors = {item.topic for item in health.findings if item.level == "error"}
        if fix and "search index" in (item.topic for item in health.findings) and errors <= {"search index"}:
            show("Rebuilding the search index")
            more = rebuild_search_index(settings)
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


def _client_findings() -> list[Finding]:
    """Return findings about the connected MCP clients."""
    from dittybag.cli.connect import client_statuses
    from dittybag.domain.health import Finding

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
        for target, status in statuses
        for name, problem in status.broken.items()
    ]
    connected = sorted({target.client.name for target, status in statuses if status.state == "connected"})
    if connected:
        findings.append(Finding("ok", "clients", f"Connected: {', '.join(connected)}"))
    elif not findings:
        message = "No MCP client on this machine is connected to Dittybag"
        fix = "dittybag connect CLIENT (dittybag connect lists the clients)"
        findings.append(Finding("note", "clients", message, fix))
    return findings


def _entry_fix(target: ConfigTarget, name: str) -> str:
    """Return the command that replaces an entry, and the one that removes it."""
    command = f"dittybag connect {target.client.name}"
    command += "" if target.scope == "user" else f" --scope {target.scope}"
    command += "" if name == "dittybag" else f" --name {shlex.quote(name)}"
    return f"{command} replaces it, {command} --remove removes it"


def _count(health: DoctorReport, level: Level) -> int:
    return sum(finding.level == level for finding in health.findings)


def _data(health: DoctorReport, *, fixed: bool) -> dict[str, Any]:
    from dittybag.domain.health import fixes_of

    return {
        "database": click.format_filename(health.database),
        "findings": [
            {"level": item.level, "topic": item.topic, "message": item.message, "fix": item.fix}
            for item in health.findings
        ],
        "fixes": [
            {"fix": fix.text, "level": fix.level, "topics": fix.topics} for fix in fixes_of(health.findings)
        ],
        "errors": _count(health, "error"),
        "warnings": _count(health, "warning"),
        "fixed": ["search index"] if fixed else [],
    }


def _print(health: DoctorReport, *, fixed: bool) -> None:
    from dittybag.domain.health import fixes_of

    topics = max(len(finding.topic) for finding in health.findings)
    room = max(map(len, _COLOURS))
    for finding in health.findings:
        level = click.style(pad(finding.level, room), fg=_COLOURS[finding.level])
        click.echo(f"{level}  {pad(finding.topic, topics)}  {one_line(finding.message, _MAX_MESSAGE)}")
    if fixed:
        click.echo("Rebuilt the search index")
    if fixes := fixes_of(health.findings):
        click.echo("\nWhat to do, the most important first:")
        for number, fix in enumerate(fixes, 1):
            click.echo(f"{number:>3}. {one_line(fix.text, _MAX_MESSAGE)}")
            click.secho(f"     {fix.level}: {', '.join(fix.topics)}", fg=_COLOURS[fix.level])
    click.echo()
    errors, warnings = _count(health, "error"), _count(health, "warning")
    colour = "red" if errors else "yellow" if warnings else "green"
    click.secho(f"{format_count(errors, 'error')}, {format_count(warnings, 'warning')}", fg=colour)
