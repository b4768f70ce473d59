"""Who may do what is the same on PostgreSQL, where two guards stand one behind the other."""

from __future__ import annotations

import pytest

from tests.accounts.rows import METHODS, TOOLS
from tests.accounts.test_matrix import WAYS, check
from tests.accounts.world import World


@pytest.mark.parametrize(("profile", "tool"), TOOLS)
def test_a_tool_does_for_everybody_what_they_may(guarded_world: World, profile: str, tool: str) -> None:
    host, row = guarded_world.host(profile), TOOLS[profile, tool]
    for number, who in enumerate(guarded_world.known):
        check(guarded_world, host, row, who, WAYS[number % 2], method="tools/call", tool=tool)


@pytest.mark.parametrize("operation", METHODS)
def test_a_method_answers_everybody_what_they_may_know(guarded_world: World, operation: str) -> None:
    host, method = guarded_world.host("all"), operation.partition(" ")[0]
    for number, who in enumerate(guarded_world.known):
        check(guarded_world, host, METHODS[operation], who, WAYS[number % 2], method=method)
