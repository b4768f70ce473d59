"""The table of facts about clients is complete, and the reference page shows it."""

from __future__ import annotations

import re

import msgspec
import pytest

from dittybag.clients.client_facts import CLIENT_FACTS, FEATURES, LIMITS, ClientFacts, Fact, Limit, sources
from dittybag.clients.known_clients import CLIENTS
from dittybag.clients.publishing_targets import TARGETS
from tests.clients.client_reference import REFERENCE, render_page

_DATE = r"20\d\d-\d\d-\d\d"


def test_the_table_has_exactly_the_clients_of_connect() -> None:
    assert {name: facts.title for name, facts in CLIENT_FACTS.items()} == {
        name: client.title for name, client in CLIENTS.items()
    }
    described = {*FEATURES, *LIMITS, "name", "title", "prompt_name", "files"}
    assert described == {field.name for field in msgspec.structs.fields(ClientFacts)}


@pytest.mark.parametrize("facts", CLIENT_FACTS.values(), ids=CLIENT_FACTS.keys())
def test_every_known_fact_has_a_dated_source(facts: ClientFacts) -> None:
    for name in FEATURES:
        fact: Fact = getattr(facts, name)
        assert (fact.value == "unknown") == (fact.source is None), name
    for name in LIMITS:
        limit: Limit = getattr(facts, name)
        assert limit.source is not None or (limit.amount is None and not limit.note), name
    named = facts.prompt_name
    assert (named.source is None) == (named.arguments == "unknown")
    for source in sources(facts):
        assert source.url.startswith("https://")
        assert re.fullmatch(_DATE, source.looked_up)
        assert re.fullmatch(f"({_DATE})?", source.as_of)
        assert source.as_of <= source.looked_up


def test_files_are_published_where_the_table_says() -> None:
    for target in TARGETS.values():
        clients = [CLIENT_FACTS[target.name]] if target.name in CLIENT_FACTS else CLIENT_FACTS.values()
        places = {file.project for facts in clients for file in facts.files}
        assert target.project_file.format("NAME") in places
        assert target.project_skills is None or f"{target.project_skills}/NAME/SKILL.md" in places


def test_the_reference_page_shows_the_table() -> None:
    assert REFERENCE.read_text() == render_page(), "run: python -m tests.clients.client_reference"
