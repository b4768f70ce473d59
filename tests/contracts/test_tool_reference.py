"""The reference pages of tools and the snapshots of their schemas are up to date."""

from __future__ import annotations

import re

import pytest

from dittybag.contracts import error_formats
from dittybag.contracts.profiles import PROFILES
from dittybag.contracts.tool_specs import TOOLSETS
from dittybag.protocol.argument_schemas import schema_of
from tests.contracts.tool_reference import (
    ENCODED,
    PAGE,
    SNAPSHOTS,
    definition_tokens,
    encoded_schemas,
    page,
    snapshot,
)

AGENT_PAGE = PAGE.with_name("agent-tools.md")


@pytest.mark.parametrize("profile", PROFILES)
def test_the_tools_match_the_snapshot(profile: str) -> None:
    assert snapshot(PROFILES[profile]) == (SNAPSHOTS / f"{profile}.json").read_text()


def test_the_reference_page_is_up_to_date() -> None:
    assert page() == PAGE.read_text()


def test_the_encoded_schemas_are_up_to_date() -> None:
    assert encoded_schemas() == ENCODED.read_text(), (
        "after changing the arguments of a tool, run: python -m tests.contracts.tool_reference"
    )


def test_the_page_of_the_profile_agent_lists_every_code() -> None:
    by_error = {code for _, code, _ in error_formats._CODES}
    own = {"INVALID_INPUT", "INVALID_TITLE", "INVALID_TAG", "ERROR", "AMBIGUOUS"}
    section = AGENT_PAGE.read_text().partition("\n## Errors\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", section, re.MULTILINE)) == by_error | own


def test_the_page_of_the_profile_agent_describes_every_tool_and_argument() -> None:
    text = AGENT_PAGE.read_text()
    assert re.findall(r"^## `(\w+)`$", text, re.MULTILINE) == [tool.name for tool in PROFILES["agent"].tools]
    for tool in PROFILES["agent"].tools:
        section = text.partition(f"\n## `{tool.name}`\n")[2].partition("\n## `")[0]
        assert tool.description in " ".join(section.split())
        listed = re.findall(r"^\| `(\w+)` \| ", section.partition("\nAnswer")[0], re.MULTILINE)
        assert listed == list(schema_of(tool.arguments)["properties"])
        assert not re.search(r"^\| `\w+` \|[^|]+\| *(?:required)? *\|$", section, re.MULTILINE), tool.name


#: Tokens of names, descriptions and input schemas, estimated at four characters each.
DEFINITION_TOKENS = {
    "all": 3_005,
    "agent": 2_031,
    "mcpkg": 478,
    "twig": 0,
    "tasks": 737,
    "prompt-store": 581,
}


def test_the_definitions_of_tools_cost_few_tokens() -> None:
    assert {name: definition_tokens(profile) for name, profile in PROFILES.items()} == DEFINITION_TOKENS
    # Three tools and ten arguments are for tasks that several agents work on.
    assert DEFINITION_TOKENS["agent"] <= 2_050
    assert len(PROFILES["agent"].tools) <= 16
    for name, tokens in DEFINITION_TOKENS.items():
        assert f"| `{name}` | {len(PROFILES[name].tools)} | {tokens:,} |" in PAGE.read_text()


def test_every_tool_of_the_profile_agent_says_first_when_to_use_it() -> None:
    for tool in PROFILES["agent"].tools:
        assert re.match(r"Use (?:when|to|before) ", tool.description), tool.name


def test_clients_that_defer_tools_are_asked_to_load_three() -> None:
    metas = {tool.name: tool.meta or {} for tool in PROFILES["agent"].tools}
    assert {name for name, meta in metas.items() if meta.get("anthropic/alwaysLoad")} == ALWAYS_LOADED
    assert {name for name, meta in metas.items() if "anthropic/maxResultSizeChars" in meta} == {
        "read",
        "use_prompt",
    }


ALWAYS_LOADED = {"search", "read", "task_add"}


def test_every_toolset_has_a_tool_and_every_tool_a_toolset() -> None:
    tools = PROFILES["all"].tools
    assert {tool.toolset for tool in tools} == set(TOOLSETS)


def test_the_default_profile_has_every_tool_of_every_profile() -> None:
    everything = {tool.name for tool in PROFILES["all"].tools}
    for profile in PROFILES.values():
        # The profile `agent` has other tools for the same things.
        if profile.name != "agent":
            assert {tool.name for tool in profile.tools} <= everything


def test_no_schema_has_keywords_that_clients_reject() -> None:
    for profile in PROFILES:
        text = (SNAPSHOTS / f"{profile}.json").read_text()
        for keyword in ('"anyOf"', '"oneOf"', '"allOf"', '"$ref"', '"$defs"'):
            assert keyword not in text
