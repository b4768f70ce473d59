"""Questions to the users of a fleet: any server may receive the answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fleet.fleet_clients import HANDSHAKE, STATELESS, FleetClient
from tests.fleet.server_fleet import Fleet

FORMS: dict[str, Any] = {"elicitation": {"form": {}}}


@pytest.fixture(scope="module")
def prompt(fleet: Fleet, token: str) -> str:
    """The name of a prompt with two required arguments."""
    arguments = [{"name": name, "description": name.upper(), "required": True} for name in ("who", "mood")]
    content = "{{ who }} is {{ mood }}"
    writer = FleetClient(token, STATELESS)
    writer.call(fleet.servers[0], "create_prompt", name="asked", content=content, arguments=arguments)
    return "asked"


def test_an_answer_can_be_sent_to_another_server(fleet: Fleet, token: str, prompt: str) -> None:
    client = FleetClient(token, STATELESS, FORMS)
    first, second, third = fleet.servers
    question = client.request(first, "prompts/get", {"name": prompt}).message()["result"]
    assert question["resultType"] == "input_required"
    answer = {"action": "accept", "content": {"who": "Ann", "mood": "glad"}}
    for server in (second, third):
        params = {
            "name": prompt,
            "inputResponses": {"arguments": answer},
            "requestState": question["requestState"],
        }
        (message,) = client.request(server, "prompts/get", params).message()["result"]["messages"]
        assert message["content"]["text"] == "Ann is glad"


def test_a_question_whose_answer_may_reach_another_server_is_not_asked(
    fleet: Fleet, token: str, prompt: str
) -> None:
    client = FleetClient(token, HANDSHAKE, FORMS)
    client.initialize(fleet.servers[0])
    error = client.request(fleet.servers[1], "prompts/get", {"name": prompt}).message()["error"]
    assert error["message"] == "Missing required arguments: who (WHO), mood (MOOD)"
