"""The reference pages of tools and the snapshots of their schemas are up to date."""

from __future__ import annotations

import pytest

from dittybag.contracts import error_formats
from dittybag.contracts.profiles import PROFILES
from dittybag.contracts.tool_specs import TOOLSETS
from dittybag.protocol.argument_schemas import schema_of
from tests.contracts import tool_results
from tests.contracts.tool_reference import PAGE, SNAPSHOTS, page, snapshot


@pytest.mark.parametrize("profile", PROFILES)
def test_the_tools_match_the_snapshot(profile: str) -> None:
    assert snapshot(PROFILES[profile]) == (SNAPSHOTS / f"{profile}.json").read_text()


def test_the_reference_page_is_up_to_date() -> None:
    assert page() == PAGE.read_text()


def test_the_page_of_results_is_up_to_date() -> None:
    assert tool_results.page() == tool_results.PAGE.read_text(), (
        "after changing a result, run: python -m tests.contracts.tool_reference"
    )


def test_the_page_of_results_shows_results_and_errors_of_every_tool() -> None:
    text = tool_results.PAGE.read_text()
    for tool in PROFILES["all"].tools:
        section = text.partition(f"### `{tool.name}`\n")[2].partition("\n### ")[0]
        assert "Success" in section, tool.name
        assert "(`isError`)" in section or not schema_of(tool.arguments)["properties"], tool.name


def test_the_page_of_results_lists_every_code() -> None:
    by_error = {code for _, code, _ in error_formats._CODES}
    assert tool_results.CODES.keys() == by_error | {"INVALID_INPUT", "INVALID_TITLE", "INVALID_TAG", "ERROR"}


def test_every_toolset_has_a_tool_and_every_tool_a_toolset() -> None:
    tools = PROFILES["all"].tools
    assert {tool.toolset for tool in tools} == set(TOOLSETS)


def test_the_default_profile_has_every_tool_of_every_profile() -> None:
    everything = {tool.name for tool in PROFILES["all"].tools}
    for profile in PROFILES.values():
        assert {tool.name for tool in profile.tools} <= everything


def test_no_schema_has_keywords_that_clients_reject() -> None:
    for profile in PROFILES:
        text = (SNAPSHOTS / f"{profile}.json").read_text()
        for keyword in ('"anyOf"', '"oneOf"', '"allOf"', '"$ref"', '"$defs"'):
            assert keyword not in text
