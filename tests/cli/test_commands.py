"""All commands: help, the reference page, JSON errors and start-up time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dittybag.cli.commands import dittybag as group
from dittybag.cli.serve_command import serve_command
from dittybag.cli.strict_options import PROJECT
from tests.cli.cli_runner import data, dittybag, failure
from tests.cli.command_reference import REFERENCE, help_text, iterate_commands, render_page, root_context
from tests.stdio_server_process import ROOT

ALL_COMMANDS = [
    (command, ctx) for command, ctx in iterate_commands(group, root_context()) if command.name != "serve"
]
LEAF_COMMANDS = [(command, ctx) for command, ctx in ALL_COMMANDS if not isinstance(command, click.Group)]


def command_path_of(pair: object) -> str:
    return pair[1].command_path if isinstance(pair, tuple) else str(pair)


def test_the_reference_page_is_current() -> None:
    assert REFERENCE.read_text() == render_page(), "run python -m tests.cli.command_reference"


def test_the_list_of_commands_is_complete() -> None:
    assert sorted(group.list_commands(root_context())) == sorted(
        {ctx.command_path.split()[1] for _, ctx in ALL_COMMANDS} | {"serve"}
    )


@pytest.mark.parametrize("pair", LEAF_COMMANDS, ids=command_path_of)
def test_every_command_has_an_example_and_explains_its_options(
    pair: tuple[click.Command, click.Context],
) -> None:
    command, ctx = pair
    text = help_text(command, ctx)
    assert re.search(rf"Examples?:\n\s+{re.escape(ctx.command_path)}", text), text
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, (ctx.command_path, parameter.name)
            assert parameter.help.endswith("."), parameter.help


TESTS = "".join(file.read_text() for file in (ROOT / "tests" / "cli").glob("test_*.py"))


@pytest.mark.parametrize("pair", LEAF_COMMANDS, ids=command_path_of)
def test_every_option_of_every_command_is_tested(pair: tuple[click.Command, click.Context]) -> None:
    command, ctx = pair
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            names = [*parameter.opts, *parameter.secondary_opts]
            assert any(f'"{name}"' in TESTS or f"{name} " in TESTS for name in names), names
    words = ctx.command_path.split()[1:]
    quoted = '", "'.join(words)
    assert f'"{quoted}"' in TESTS or f'"{words[-1]}"' in TESTS, ctx.command_path


@pytest.mark.parametrize("words", [(), ("task",), ("task", "next")], ids=" ".join)
def test_help_is_that_of_the_reference_page(tmp_path: Path, words: tuple[str, ...]) -> None:
    printed = dittybag(tmp_path, *words, "--help", variables={"COLUMNS": "120"}).stdout
    pairs = [(group, root_context()), *ALL_COMMANDS]
    [(command, ctx)] = [pair for pair in pairs if pair[1].command_path.split()[1:] == [*words]]
    assert printed.rstrip() == help_text(command, ctx).rstrip()


def test_dittybag_without_arguments_says_what_to_do_next(tmp_path: Path) -> None:
    new = dittybag(tmp_path / "home").stdout
    assert "dittybag demo" in new
    assert "dittybag connect" in new
    assert not (tmp_path / "home").exists()
    dittybag(tmp_path / "home", "task", "add", "One")
    known = dittybag(tmp_path / "home").stdout
    assert "0 prompts, 0 resources, 1 open task, 1 project in " in known
    assert "dittybag search" in known


def test_json_errors_have_an_envelope(tmp_path: Path) -> None:
    error = failure(dittybag(tmp_path, "prompt", "show", "none", "--json", status=3))
    assert error["code"] == "PROMPT_NOT_FOUND"
    assert failure(dittybag(tmp_path, "prompt", "dance", "--json", status=2))["code"] == "USAGE"
    assert failure(dittybag(tmp_path, "project", "list", "--db", "", "--json", status=2))["code"] == "USAGE"
    folder = tmp_path / "folder"
    folder.mkdir()
    result = dittybag(tmp_path, "project", "list", "--db", str(folder), "--json", status=5)
    assert failure(result)["code"].startswith("STORAGE")
    assert result.stdout == ""
    assert data(dittybag(tmp_path, "project", "list", "--json"))["projects"][0]["name"] == "default"


def test_the_command_line_stays_small() -> None:
    parameters = {id(parameter): parameter for command, _ in ALL_COMMANDS for parameter in command.params} | {
        id(parameter): parameter for parameter in (*group.params, *serve_command.params)
    }
    # With `dittybag serve`.
    assert len(LEAF_COMMANDS) + 1 <= 68
    assert len(parameters) <= 260


def test_what_agents_use_has_a_section_of_its_own() -> None:
    listed = group.get_help(root_context()).partition("For agents and scripts:\n")[2].partition("\n\n")[0]
    names = [re.split(r"  +", line.strip())[0] for line in listed.splitlines()]
    assert names == ["prime", "pin", "unpin", "task next", "task renew", "task release"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--db", "{db}", "--json", "prompt", "list"),
        ("prompt", "--db", "{db}", "--json", "list"),
        ("prompt", "list", "--db", "{db}", "--json"),
        ("--json", "prompt", "list", "--db", "{db}"),
    ],
    ids=" ".join,
)
def test_shared_options_stand_before_or_after_a_command(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    database = str(tmp_path / "x.db")
    dittybag(tmp_path, "prompt", "add", "a", "Hello", "--db", database)
    [prompt] = data(dittybag(tmp_path, *(word.format(db=database) for word in arguments)))["prompts"]
    assert prompt["name"] == "a"


def test_a_command_refuses_the_shared_options_that_do_not_apply_to_it(tmp_path: Path) -> None:
    for arguments in (("-p", "x", "user", "list"), ("user", "list", "--project", "x")):
        refused = dittybag(tmp_path, *arguments, status=2).stderr
        assert refused.startswith("error: --project does not apply to `dittybag user list`\n")
    assert "--db does not apply" in dittybag(tmp_path, "--db", "x.db", "library", "list", status=2).stderr
    error = failure(dittybag(tmp_path, "--json", "serve", status=2))
    assert error["message"] == "--json does not apply to `dittybag serve`"
    assert "requires a command" in dittybag(tmp_path, "-p", "x", status=2).stderr
    assert list(tmp_path.iterdir()) == []


def required_arguments(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        if parameter.required and isinstance(parameter, click.Option):
            yield parameter.opts[0]
        if parameter.required:
            yield parameter.type.choices[0] if isinstance(parameter.type, click.Choice) else "1"


@pytest.mark.parametrize("pair", LEAF_COMMANDS, ids=command_path_of)
def test_every_command_without_a_project_refuses_one(pair: tuple[click.Command, click.Context]) -> None:
    command, ctx = pair
    words = ctx.command_path.split()[1:]
    if PROJECT not in command.params:
        with pytest.raises(click.UsageError, match=f"--project does not apply to `{ctx.command_path}`"):
            group.main(["-p", "x", *words, *required_arguments(command)], "dittybag", standalone_mode=False)


def test_a_server_takes_the_shared_options_before_the_command(tmp_path: Path) -> None:
    message = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
    served = dittybag(tmp_path, "--db", str(tmp_path / "x.db"), "serve", "--profile", "mcpkg", stdin=message)
    assert '"name":"mcpkg"' in served.stdout


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("task", "list", "-p", "a", "-p", "b"), "--project"),
        (("history", "--kind", "task", "--kind=prompt"), "--kind"),
        (("prompt", "list", "--search", "a", "--search", "b"), "--search"),
        (("export", "x.json", "-p", "a", "--project", "b"), "--project"),
        (("search", "x", "--workspace", "a", "--workspace", "b"), "--workspace"),
        (("--db", "a", "search", "x", "--db", "b"), "--db"),
        (("purge", "x", "--kind", "task", "--kind", "task"), "--kind"),
        (("serve", "--profile", "all", "--profile=agent"), "--profile"),
        (("serve", "--project", "a", "-p", "b"), "--project"),
        (("serve", "--read-only", "--read-only"), "--read-only"),
    ],
)
def test_a_repeated_option_is_refused_instead_of_ignored(
    tmp_path: Path, arguments: tuple[str, ...], option: str
) -> None:
    refused = dittybag(tmp_path, *arguments, status=2)
    assert f"error: {option} can be given only once" in refused.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [("history", "--before", "-5"), ("task", "list", "--parent", "-1")])
def test_a_number_out_of_bounds_is_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert "must be an integer, 1 or more" in dittybag(tmp_path, *arguments, status=2).stderr


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("promt", "dittybag prompt or dittybag project or dittybag prime"),
        ("ls", "dittybag prompt list or dittybag resource list or dittybag task list"),
        ("done", "dittybag task done"),
        ("log", "dittybag history"),
        ("ui", "dittybag open"),
        ("prompt lsit", "dittybag prompt list"),
        ("project new x", "dittybag project create"),
        ("prompt list --serch x", "--search"),
    ],
)
def test_an_unknown_word_is_reported_with_what_may_have_been_meant(
    tmp_path: Path, typed: str, meant: str
) -> None:
    refused = dittybag(tmp_path, *typed.split(), status=2).stderr.splitlines()
    assert re.fullmatch(r"error: Unknown (command '\w+'|option --serch)", refused[0])
    assert refused[1] == f"hint: did you mean {meant}?"
    assert re.fullmatch(r"hint: for help, run: dittybag( prompt| prompt list| project)? --help", refused[2])


def test_an_incorrect_command_line_is_reported_as_other_errors_are(tmp_path: Path) -> None:
    missing = dittybag(tmp_path, "prompt", "show", status=2)
    assert missing.stderr == (
        "error: NAME is required\n"
        "hint: usage: dittybag prompt show [OPTIONS] NAME\n"
        "hint: for help, run: dittybag prompt show --help\n"
    )


@pytest.mark.parametrize("pair", ALL_COMMANDS, ids=command_path_of)
def test_help_fits_into_80_columns_and_cuts_nothing(pair: tuple[click.Command, click.Context]) -> None:
    command, ctx = pair
    text = help_text(command, ctx)
    if isinstance(command, click.Group):
        assert "..." not in text.partition("Commands:\n")[2]
    assert max(len(line) for line in text.partition("Options:\n")[2].splitlines()) <= 80
    assert "  -h, --help " in text
