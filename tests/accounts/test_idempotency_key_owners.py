"""Idempotency keys are separate for each user."""

from __future__ import annotations

import msgspec
import pytest

from tests.accounts.accounts_world import Json, TokenHolder, World, parse_outcome, post_message


def create(world: World, who: TokenHolder, title: str, key: str) -> str:
    """Create a task with a key. Return the text of the result."""
    params: Json = {
        "name": "task_create",
        "arguments": {"title": title},
        "_meta": {"dittybag/idempotencyKey": key},
    }
    outcome = parse_outcome(post_message(world.host("all"), who.token, "/mcp", "tools/call", params), "/mcp")
    result = msgspec.json.decode(outcome.text)
    text: str = result["content"][0]["text"]
    return text


@pytest.mark.parametrize("name", ["world", "rls_world"])
def test_two_users_can_use_the_same_key(request: pytest.FixtureRequest, name: str) -> None:
    world: World = request.getfixturevalue(name)
    alice, bob = world.holders[0], world.holders[1]
    assert (alice.user, bob.user) == ("alice", "bob")
    hers, his = create(world, alice, "same", "k"), create(world, bob, "same", "k")
    assert msgspec.json.decode(hers)["user_id"] == "alice"
    assert msgspec.json.decode(his)["user_id"] == "bob"
    before = world.last_change()
    assert create(world, alice, "same", "k") == hers
    assert create(world, bob, "same", "k") == his
    # A user cannot find out which keys others use.
    create(world, alice, "hers only", "k2")
    assert "another request" in create(world, alice, "other", "k2")
    assert "another request" not in create(world, bob, "other", "k2")
    assert world.last_change() == before + 2


@pytest.mark.parametrize("name", ["world", "rls_world"])
def test_tokens_of_one_user_share_their_keys(request: pytest.FixtureRequest, name: str) -> None:
    world: World = request.getfixturevalue(name)
    alice = world.holders[0]
    created = world.run(world.workspace.accounts.create_token("alice", "write", actor="tests"))
    other = TokenHolder("member again", "alice", "write", "write", created.text)
    first = create(world, alice, "t", "shared")
    assert create(world, other, "t", "shared") == first
