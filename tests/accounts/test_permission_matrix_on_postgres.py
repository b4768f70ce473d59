"""Permissions are the same on PostgreSQL, where row-level security backs the checks in Python."""

from __future__ import annotations

import pytest

from tests.accounts.accounts_world import World
from tests.accounts.permission_matrix import METHODS, TOOLS
from tests.accounts.test_permission_matrix import ENDPOINTS, check


@pytest.mark.parametrize(("profile", "tool"), TOOLS)
def test_a_tool_respects_the_permissions_on_postgres(rls_world: World, profile: str, tool: str) -> None:
    host, row = rls_world.host(profile), TOOLS[profile, tool]
    for number, who in enumerate(rls_world.holders):
        check(rls_world, host, row, who, ENDPOINTS[number % 2], method="tools/call", tool=tool)


@pytest.mark.parametrize("operation", METHODS)
def test_a_method_respects_the_permissions_on_postgres(rls_world: World, operation: str) -> None:
    host, method = rls_world.host("all"), operation.partition(" ")[0]
    for number, who in enumerate(rls_world.holders):
        check(rls_world, host, METHODS[operation], who, ENDPOINTS[number % 2], method=method)
