"""What one server of a fleet writes, those hear of who listen at the others; whichever has their session."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import msgspec
import pytest

from tests.contracts.http_server_process import EVENTS, EventStreamReader, event_data
from tests.fleet.callers import ERAS, HANDSHAKE, Caller
from tests.fleet.conftest import USER
from tests.fleet.fleet import Fleet, Member, until

#: Whatever is written is known everywhere by then.
SECONDS = 1.0
#: Whatever is revoked is worthless everywhere by then.
REVOKED_SECONDS = 5.0

CHANGED = "notifications/prompts/list_changed"
UPDATED = "notifications/resources/updated"


@pytest.fixture
def session(fleet: Fleet, token: str) -> Caller:
    """Somebody whose session was opened at the first server."""
    caller = Caller(token, HANDSHAKE)
    caller.greet(fleet.members[0])
    return caller


def resource(fleet: Fleet, token: str, name: str) -> str:
    """The URI of a new resource."""
    uri = f"file:///{name}"
    Caller(token, ERAS[-1]).call(fleet.members[0], "create_resource", name=name, uri=uri, content="one")
    return uri


def heard(stream: EventStreamReader, method: str) -> float:
    """When this is heard, after whatever is heard before."""
    while stream.message(SECONDS)["method"] != method:
        pass
    return time.monotonic()


def test_a_write_at_one_server_is_heard_of_at_all_others_within_a_second(fleet: Fleet, token: str) -> None:
    figures: list[float] = []
    writer = Caller(token, ERAS[-1])
    with ExitStack() as stack:
        streams = []
        for member in fleet.members:
            for era in ERAS:
                caller = Caller(token, era)
                caller.greet(fleet.front)
                streams.append(stack.enter_context(caller.listening(member)))
        for number, member in enumerate(fleet.members * 3):
            begun = time.monotonic()
            writer.call(member, "create_prompt", name=f"news-{number}", content="x")
            with ThreadPoolExecutor(len(streams)) as pool:
                figures += [at - begun for at in pool.map(lambda stream: heard(stream, CHANGED), streams)]
    assert max(figures) < SECONDS
    figures.sort()
    print(
        f"\n{len(figures)} announcements, from any server to any: half of them within"
        f" {1000 * figures[len(figures) // 2]:.0f} ms, all within {1000 * figures[-1]:.0f} ms"
    )


def test_what_a_session_begins_to_watch_at_one_server_it_hears_of_at_another(
    fleet: Fleet, token: str, session: Caller
) -> None:
    stream_at, subscribe_at, write_at = fleet.members
    uri = resource(fleet, token, "watched")
    figures = []
    with session.listening(stream_at) as stream:
        for content in ("two", "three"):
            assert session.ask(subscribe_at, "resources/subscribe", {"uri": uri}).status == 200
            begun = time.monotonic()
            session.call(write_at, "update_resource", name="watched", content=content)
            figures.append(heard(stream, UPDATED) - begun)
    print(f"\nheard of after {1000 * figures[0]:.0f} ms, and then after {1000 * figures[1]:.0f} ms")


def test_a_session_may_begin_to_watch_many_resources_at_once(
    fleet: Fleet, token: str, session: Caller
) -> None:
    uris = [resource(fleet, token, f"many-{number}") for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        answers = pool.map(lambda uri: session.ask(fleet.front, "resources/subscribe", {"uri": uri}), uris)
        assert {answer.status for answer in answers} == {200}
    told: set[str] = set()
    with session.listening(fleet.members[0]) as stream:
        for number in range(12):
            session.call(fleet.front, "update_resource", name=f"many-{number}", content="two")
        while told != set(uris):
            message = stream.message(SECONDS)
            told |= {message["params"]["uri"]} if message["method"] == UPDATED else set()


def test_whoever_comes_back_to_another_server_is_told_to_look_again_and_hears_what_comes_then(
    fleet: Fleet, token: str, session: Caller
) -> None:
    first, second, third = fleet.members
    uri = resource(fleet, token, "moved")
    assert session.ask(first, "resources/subscribe", {"uri": uri}).status == 200
    with session.listening(first) as stream:
        for number in range(3):
            session.call(second, "create_prompt", name=f"before-{number}", content="x")
            last = last_event(stream)
    # Written while nobody listens.
    session.call(third, "update_resource", name="moved", content="two")
    with session.listening(second, last=last) as stream:
        told = [stream.message(SECONDS)["method"] for _ in range(4)]
        lists = [f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")]
        assert sorted(told) == sorted([*lists, UPDATED])
        session.call(third, "create_prompt", name="after", content="x")
        heard(stream, CHANGED)


def last_event(stream: EventStreamReader) -> str:
    """The id of the next event, which is a message."""
    event = ""
    while not event_data(event):
        line = stream._response.readline().decode()
        assert line, "the stream has ended"
        event = line if event.endswith("\n\n") else event + line
    (name,) = [line.removeprefix("id: ") for line in event.splitlines() if line.startswith("id: ")]
    return name


def test_an_answer_of_one_server_is_not_looked_for_at_another(fleet: Fleet, session: Caller) -> None:
    first, second, _ = fleet.members
    # Both have answered one request of the session as a stream: numbers would not tell these apart.
    answers = [session.ask(member, "ping", {}, accept=EVENTS) for member in (first, second)]
    last, other = (re.findall(rb"^id: (.+)$", answer.body, re.MULTILINE)[-1].decode() for answer in answers)
    assert last.split("-")[:2] == other.split("-")[:2]
    with session.listening(second, last=other) as stream:
        assert stream._response.readline().startswith(b"id: ")
    with pytest.raises(AssertionError, match="is no longer known"), session.listening(second, last=last):
        pass


def test_a_revoked_token_is_refused_by_every_server_within_5_seconds(fleet: Fleet) -> None:
    caller = Caller(fleet.token(USER, "--label", "revoked"), ERAS[-1])
    for member in fleet.members:
        assert caller.ask(member, "tools/list", {}).status == 200
    (number,) = [
        token["id"]
        for token in msgspec.json.decode(fleet.command("token", "list", "--json"))["data"]["tokens"]
        if token["label"] == "revoked"
    ]
    begun = time.monotonic()
    fleet.command("token", "revoke", str(number))

    def refused(member: Member) -> float:
        until(lambda: caller.ask(member, "tools/list", {}).status == 401, f"{member.url} refuses the token")
        return time.monotonic() - begun

    with ThreadPoolExecutor(len(fleet.members)) as pool:
        figures = list(pool.map(refused, fleet.members))
    assert max(figures) < REVOKED_SECONDS
    print(f"\nrefused after {', '.join(f'{seconds:.2f}' for seconds in figures)} s")
