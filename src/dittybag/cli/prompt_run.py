"""`dittybag prompt run`: give a rendered prompt to a program."""

from __future__ import annotations

import os
import sys
from typing import Final, NoReturn

import click

from dittybag.cli.error_output import report, wants_json
from dittybag.cli.output import note, print_result, write_text
from dittybag.cli.prompt_read_commands import arguments_option, render_prompt
from dittybag.cli.read_input import label, text, usage_error
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_project

#: Where the context keeps the program and its arguments.
PROGRAM: Final = "dittybag.prompt_run.program"
#: The exit statuses of shells for a program that cannot be started, and for one that does not exist.
_NOT_EXECUTABLE: Final = 126
_NOT_FOUND: Final = 127


class _RunCommand(StrictCommand):
    """A command whose arguments after `--` are those of a program."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            args, ctx.meta[PROGRAM] = args[:at], args[at + 1 :]
        return super().parse_args(ctx, args)


@click.command("run", _RunCommand)
@click.argument("name", type=text)
@click.argument("values", metavar="[KEY=VALUE]... -- COMMAND [ARGS]...", type=text, nargs=-1)
@arguments_option
@click.option("--dry-run", is_flag=True, help="Print the text, and run nothing.")
@in_project
@click.pass_context
def run(
    ctx: click.Context,
    name: str,
    options: WorkspaceOptions,
    values: tuple[str, ...],
    args_json: str | None,
    *,
    dry_run: bool,
) -> None:
    """Render a prompt and run COMMAND with the text on its standard input.

    The text is the one that `dittybag prompt render` prints. COMMAND is run without a shell; its output and
    its exit status are those of this command. On a terminal, the command asks for missing arguments.

    \b
    Examples:
      dittybag prompt run explain-error error="no such table" -- llm
      dittybag prompt run team:commit -- claude -p --model sonnet
      dittybag prompt run team:commit --dry-run
    """
    program: list[str] = ctx.meta.get(PROGRAM, [])
    if not (program or dry_run):
        usage_error("No command was given", f"put it after --, as in: dittybag prompt run {name} -- llm")
    path = _find(program[0]) if program and not dry_run else ""
    rendered, _ = render_prompt(options, name, values, args_json)
    if not dry_run:
        _execute(path, program, rendered)
    if wants_json():
        print_result({"name": name, "text": rendered, "command": program})
        return
    write_text(rendered)
    if program:
        from shlex import join

        note(f"would run: {join(program)}")


def _find(program: str) -> str:
    """Return the path of a program, or exit."""
    from shutil import which

    path = which(program)
    if path is None:
        _fail(
            f"The command '{label(program)}' was not found",
            "give a program on your PATH, or the path of one; aliases of your shell are not known here",
            status=_NOT_FOUND,
        )
    return path


def _fail(message: str, *hints: str, status: int) -> NoReturn:
    report(message, *hints, code="COMMAND_NOT_FOUND" if status == _NOT_FOUND else "COMMAND_NOT_EXECUTABLE")
    raise click.exceptions.Exit(status)


def _execute(path: str, program: list[str], rendered: str) -> NoReturn:
    """Replace this process by the program, so that its output, signals and exit status need no forwarding."""
    import signal
    from tempfile import TemporaryFile

    # A file, not a pipe: the program may read none of it, or only after it has written.
    with TemporaryFile() as stream:
        stream.write(rendered.encode())
        stream.seek(0)
        os.dup2(stream.fileno(), sys.__stdin__.fileno() if sys.__stdin__ is not None else 0)
    sys.stdout.flush()
    # Python ignores it, and a program inherits that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execv(path, program)  # noqa: S606  # without a shell
    except OSError as error:
        _fail(f"The command '{label(program[0])}' could not be run: {error.strerror}", status=_NOT_EXECUTABLE)
