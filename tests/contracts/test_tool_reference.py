"""The tool reference page and the snapshots of tool schemas are up to date."""

from __future__ import annotations

import pytest

from dittybag.contracts.profiles import PROFILES
from dittybag.contracts.tool_specs import TOOLSETS
from tests.contracts.tool_reference import PAGE, SNAPSHOTS, page, snapshot


@pytest.mark.parametrize("profile", PROFILES)
def test_the_tools_match_the_snapshot(profile: str) -> None:
    assert snapshot(PROFILES[profile]) == (SNAPSHOTS / f"{profile}.json").read_text()


def test_the_reference_page_is_up_to_date() -> None:
    assert page() == PAGE.read_text()


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
