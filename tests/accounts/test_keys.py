"""Idempotency keys belong to whoever sends them."""

from __future__ import annotations

import msgspec
import pytest

from tests.accounts.world import Json, Somebody, World, sent, told


def create(world: World, who: Somebody, title: str, key: str) -> str:
    """What is said to a call with a key."""
    params: Json = {
        "name": "task_create",
        "arguments": {"title": title},
        "_meta": {"dittybag/idempotencyKey": key},
    }
    answer = told(sent(world.host("all"), who.token, "/mcp", "tools/call", params), "/mcp")
    result = msgspec.json.decode(answer.text)
    text: str = result["content"][0]["text"]
    return text


@pytest.mark.parametrize("name", ["world", "guarded_world"])
def test_the_same_key_of_two_users_is_two_keys(request: pytest.FixtureRequest, name: str) -> None:
    world: World = request.getfixturevalue(name)
    alice, bob = world.known[0], world.known[1]
    assert (alice.user, bob.user) == ("alice", "bob")
    hers, his = create(world, alice, "same", "k"), create(world, bob, "same", "k")
    assert msgspec.json.decode(hers)["user_id"] == "alice"
    assert msgspec.json.decode(his)["user_id"] == "bob"
    before = world.last_change()
    assert create(world, alice, "same", "k") == hers
    assert create(world, bob, "same", "k") == his
    # Nor does anybody learn which keys others have.
    create(world, alice, "hers only", "k2")
    assert "another request" in create(world, alice, "other", "k2")
    assert "another request" not in create(world, bob, "other", "k2")
    assert world.last_change() == before + 2


@pytest.mark.parametrize("name", ["world", "guarded_world"])
def test_another_token_of_the_same_user_has_the_same_keys(request: pytest.FixtureRequest, name: str) -> None:
    world: World = request.getfixturevalue(name)
    alice = world.known[0]
    made = world.run(world.workspace.accounts.create_token("alice", "write", actor="tests"))
    other = Somebody("member again", "alice", "write", "write", made.text)
    first = create(world, alice, "t", "shared")
    assert create(world, other, "t", "shared") == first
