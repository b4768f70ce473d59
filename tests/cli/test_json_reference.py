"""The reference page of JSON output is up to date and complete."""

from __future__ import annotations

import click
import pytest

from dittybag.cli.commands import dittybag as group
from dittybag.cli.error_output import ExitStatus
from dittybag.cli.strict_options import JSON
from dittybag.domain.entities import ENTITY_TYPES
from tests.cli.command_reference import iterate_commands, root_context
from tests.cli.json_reference import REFERENCE, SCRIPT, STATUS_MEANINGS, command_name, render_page


def test_the_page_of_json_output_is_current() -> None:
    assert REFERENCE.read_text() == render_page(), "run python -m tests.cli.json_reference"


def test_the_page_has_every_command_that_prints_json() -> None:
    shown = {" ".join(command_name(line).split(" --")[:1]) for line in SCRIPT.strip().splitlines()}
    with_json = {
        ctx.command_path.partition(" ")[2]
        for command, ctx in iterate_commands(group, root_context())
        if not isinstance(command, click.Group) and JSON in command.params
    }
    assert shown == with_json


@pytest.mark.parametrize("kind", ["prompt", "resource", "task"])
def test_the_page_has_every_field_of_an_entity(kind: str) -> None:
    described = next(described for name, described in ENTITY_TYPES.items() if name == kind)
    section = REFERENCE.read_text().partition(f"\n### {kind.capitalize()}\n")[2].partition("\n###")[0]
    for field in {*described.columns} - described.hidden:
        assert f"| `{field}` |" in section, field


def test_the_page_has_every_exit_status() -> None:
    assert STATUS_MEANINGS.keys() == set(ExitStatus)
