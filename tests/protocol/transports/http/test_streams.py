"""Streams of a session: what belongs to no request, coming back for what was missed, questions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.transports.http.client import EVENTS, META, Client, Reply, Session, notification
from tests.protocol.transports.http.runner import Running

FORM: Any = {"elicitation": {"form": {}}}


def changed(session: Session, noun: str = "tool") -> None:
    assert session.use(f"test_trigger_{noun}_change").status == 200


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_changes_are_told_on_the_stream_of_a_get(client: Client, version: str) -> None:
    session, other = client.session(version), client.session()
    stream = session.listen()
    assert (stream.status, stream.kind) == (200, "text/event-stream")
    assert stream.headers["X-Accel-Buffering"] == "no"
    for noun in ("tool", "prompt", "resource"):
        changed(other, noun)
        assert stream.message()["method"] == f"notifications/{noun}s/list_changed"


def test_only_watched_resources_are_told_of(client: Client) -> None:
    watching, other = client.session(), client.session()
    uri = "test://watched-resource"
    subscribe = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": uri}}
    assert watching.post(subscribe).result() == {}
    streams = watching.listen(), other.listen()
    assert client.use("test_trigger_resource_update").status == 200
    changed(other)
    told = streams[0].message()
    assert (told["method"], told["params"]["uri"]) == ("notifications/resources/updated", uri)
    assert streams[1].message()["method"] == "notifications/tools/list_changed"


def test_what_was_said_before_the_stream_is_told_on_it(client: Client) -> None:
    session = client.session()
    changed(session)
    assert session.listen().message()["method"] == "notifications/tools/list_changed"


def test_a_message_is_said_on_one_stream_only(client: Client) -> None:
    session, other = client.session(), client.session()
    stream = session.listen()
    held = session.use("hold", progressToken="t")
    assert held.message()["method"] == "notifications/progress"
    changed(other)
    assert stream.message()["method"] == "notifications/tools/list_changed"
    client.use("release")
    # Neither the change on the stream of the request, nor progress on the other.
    assert [one.get("method", "answer") for one in held.messages()] == ["notifications/progress", "answer"]
    changed(other, "prompt")
    assert stream.message()["method"] == "notifications/prompts/list_changed"


def test_of_two_streams_of_a_session_the_one_that_is_left_is_served(client: Client) -> None:
    session = client.session()
    first, second = session.listen(), session.listen()
    assert client.counts(streams=2)["streams"] == 2
    changed(session)
    assert second.message()["method"] == "notifications/tools/list_changed"
    second.close()
    assert client.counts(streams=1)["streams"] == 1
    changed(session, "prompt")
    first.be_patient(3)
    assert first.message()["method"] == "notifications/prompts/list_changed"


def test_a_get_resumes_after_the_last_event_that_was_seen(client: Client) -> None:
    session = client.session()
    stream = session.listen()
    for noun in ("tool", "prompt", "resource"):
        changed(session, noun)
    events = [stream.event() for _ in range(3)]
    stream.close()
    assert events[0] is not None
    assert events[0].id is not None
    again = session.listen(events[0].id)
    assert [again.event() for _ in range(2)] == events[1:]


def lost_in_progress(session: Session, tool: str = "hold") -> tuple[str, list[Any]]:
    """A call whose stream is lost after its first progress: the last event that was seen, and all events."""
    reply = session.use(tool, id="lost", progressToken="t")
    events: list[Any] = []
    while not events or not events[-1].data:
        event = reply.event()
        assert event is not None
        events.append(event)
    reply.close()
    assert events[-1].id is not None
    return events[-1].id, events


def come_back(session: Session, last: str) -> Reply:
    """Resume a stream, whether or not the server has noticed that it was lost."""
    resumed = session.listen(last)
    assert resumed.status == 200
    return resumed


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_lost_stream_of_a_request_is_resumed_with_its_rest(client: Client, version: str) -> None:
    session = client.session(version)
    last, events = lost_in_progress(session)
    # Streams begin with an event that holds only an id, in the revision that has such.
    assert (events[0].data == "") == (version == "2025-11-25")
    assert client.counts(held=1, streams=0)["held"] == 1
    resumed = come_back(session, last)
    client.use("release")
    progress, answer = resumed.messages()
    assert (progress["params"]["progress"], answer["id"]) == (2, "lost")
    assert answer["result"]["content"][0]["text"] == "released"


def test_what_was_answered_while_the_client_was_away_waits_for_it(client: Client) -> None:
    session = client.session()
    last, _ = lost_in_progress(session)
    # Nobody counts connections that the server has not seen go.
    assert client.counts(held=1)["held"] == 1
    client.use("release")
    assert client.counts(held=0)["held"] == 0
    assert [one.get("id") for one in come_back(session, last).messages()] == [None, "lost"]
    # And again, for who loses it again.
    assert [one.get("id") for one in come_back(session, last).messages()] == [None, "lost"]


def test_other_streams_are_not_replayed_on_it(client: Client) -> None:
    session = client.session()
    last, _ = lost_in_progress(session)
    changed(session)
    client.use("release")
    assert all(
        one.get("method") != "notifications/tools/list_changed" for one in session.listen(last).messages()
    )


def test_a_server_may_close_a_stream_and_be_polled(client: Client) -> None:
    session = client.session()
    reply = session.use("test_reconnection", id="poll")
    first = reply.event()
    assert first is not None
    assert (first.data, first.retry) == ("", 500)
    assert first.id is not None
    assert reply.event() is None, "the stream should end before the answer"
    answer = come_back(session, first.id).messages()[-1]
    assert answer["id"] == "poll"
    assert answer["result"]["content"][0]["text"] == "Reconnection test completed"


@pytest.mark.parametrize("last", ["99-1", "x", "", "-", "1-", "-1", "1", "1-1-1", "9" * 5000 + "-1", "0x1-1"])
def test_an_unknown_event_is_not_found(client: Client, last: str) -> None:
    reply = client.session().listen(last)
    assert (reply.status, reply.json()["error"]["code"]) == (404, -32600)


def test_an_event_with_odd_digits_is_not_found() -> None:
    with Running.fixture() as running, Client(running.port) as client:
        odd = ("Last-Event-ID", b"\xb2-0")
        assert client.send("GET", (EVENTS, *client.session().headers, odd)).status == 404


def test_an_event_of_another_session_is_not_found(client: Client) -> None:
    session, other = client.session(), client.session()
    last, _ = lost_in_progress(session)
    assert other.listen(last).status == 404
    client.use("release")


def test_a_stream_is_resumed_before_the_server_notices_that_it_was_lost(client: Client) -> None:
    session = client.session()
    reply = session.use("hold", id="lost", progressToken="t")
    events = [reply.event(), reply.event()]
    assert events[-1] is not None
    try:
        resumed = session.listen(events[-1].id)
        assert resumed.status == 200
    finally:
        client.use("release")
    assert resumed.messages()[-1]["id"] == "lost"


def test_an_answer_that_was_on_its_way_when_the_connection_broke_can_be_come_back_for(client: Client) -> None:
    session = client.session()
    reply = session.use("hold", id="lost", progressToken="t")
    events = [reply.event(), reply.event()]
    assert events[-1] is not None
    client.use("release")
    assert client.counts(held=0)["held"] == 0
    reply.close()
    resumed = session.listen(events[-1].id)
    assert resumed.status == 200
    assert resumed.messages()[-1]["id"] == "lost"


def test_going_away_does_not_cancel_a_request_of_a_session(client: Client) -> None:
    before = cancellations(client)["cancelled"]
    session = client.session()
    reply = session.use("wait_until_cancelled", id="w", progressToken="t")
    assert reply.message()["method"] == "notifications/progress"
    reply.close()
    # The session is no longer connected, which only a request that goes on can tell from a cancelled one.
    refused = session.use("echo", {"text": "x"}, id="w").error()
    assert refused == (400, -32600, "w"), "the id should still be in use"
    assert cancellations(client)["cancelled"] == before
    cancel = notification("notifications/cancelled", {"requestId": "w"})
    assert session.post(cancel).status == 202
    assert cancellations(client, at_least=before + 1)["cancelled"] == before + 1
    assert session.use("echo", {"text": "x"}, id="w").status == 200


def cancellations(client: Client, at_least: int = 0) -> dict[str, int]:
    found: dict[str, int] = client.use("cancelled_count", {"at_least": at_least}).result()[
        "structuredContent"
    ]
    return found


def test_a_cancelled_request_ends_its_stream_without_an_answer(client: Client) -> None:
    session = client.session()
    reply = session.use("wait_until_cancelled", id="w", progressToken="t")
    assert reply.message()["method"] == "notifications/progress"
    session.post(notification("notifications/cancelled", {"requestId": "w"}))
    assert reply.messages() == []


def test_a_request_is_not_cancelled_by_another_session(client: Client) -> None:
    session, other = client.session(), client.session()
    reply = session.use("hold", id="w", progressToken="t")
    assert reply.message()["method"] == "notifications/progress"
    assert other.post(notification("notifications/cancelled", {"requestId": "w"})).status == 202
    assert client.counts(held=1)["held"] == 1
    client.use("release")
    assert reply.messages()[-1]["result"]["content"][0]["text"] == "released"


def test_questions_are_asked_on_the_stream_and_answered_by_another_post(client: Client) -> None:
    session = client.session(elicitation={"form": {}}, sampling={})
    reply = session.use("test_elicitation", {"message": "Who?"}, id="e")
    question = reply.message()
    assert question["method"] == "elicitation/create"
    content = {"username": "ann", "email": "ann@example.org"}
    assert answered(session, question, {"action": "accept", "content": content}).status == 202
    assert '"username": "ann"' in reply.messages()[-1]["result"]["content"][0]["text"]
    reply = session.use("test_sampling", {"prompt": "Well?"}, id="s")
    question = reply.message()
    assert question["method"] == "sampling/createMessage"
    sampled = {"role": "assistant", "content": {"type": "text", "text": "Yes"}, "model": "m"}
    assert answered(session, question, sampled).status == 202
    assert reply.messages()[-1]["result"]["content"][0]["text"] == "LLM response: Yes"


def answered(session: Session, question: Any, result: Any) -> Reply:
    return session.post({"jsonrpc": "2.0", "id": question["id"], "result": result})


def test_another_session_cannot_answer_a_question(client: Client) -> None:
    session, other = client.session(**FORM), client.session(**FORM)
    reply = session.use("test_elicitation", {"message": "Who?"}, id="e")
    question = reply.message()
    wrong = {"action": "accept", "content": {"username": "eve", "email": "eve@example.org"}}
    assert answered(other, question, wrong).status == 202
    assert answered(session, question, {"action": "decline"}).status == 202
    assert "action=decline" in reply.messages()[-1]["result"]["content"][0]["text"]


def test_a_question_can_be_come_back_for_and_answered(client: Client) -> None:
    session = client.session(**FORM)
    last, _ = lost_in_progress(session, "test_streaming_elicitation")
    resumed = come_back(session, last)
    question = resumed.message()
    while question["method"] != "elicitation/create":
        question = resumed.message()
    assert answered(session, question, {"action": "cancel"}).status == 202
    assert "action=cancel" in resumed.messages()[-1]["result"]["content"][0]["text"]


def test_who_has_not_declared_it_is_not_asked(client: Client) -> None:
    for session in (client.session(), None):
        told = (session or client).use("test_elicitation", {"message": "Who?"}, id="e")
        assert told.kind == "application/json"
    logs: Any = {f"{META}logLevel": "debug"}
    assert client.use("test_elicitation", {"message": "Who?"}, id="e", **logs).error() == (400, -32021, "e")
