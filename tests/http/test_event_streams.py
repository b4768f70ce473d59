"""Event streams of a session: notifications, resumption, cancellation and requests to the client."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.plain_http_client import (
    HttpReply,
    PlainHttpClient,
    PlainHttpSession,
    notification,
)

FORM: Any = {"elicitation": {"form": {}}}


def trigger_change(session: PlainHttpSession, noun: str = "tool") -> None:
    assert session.use(f"test_trigger_{noun}_change").status == 200


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_change_notifications_are_sent_on_the_get_stream(client: PlainHttpClient, version: str) -> None:
    session, other = client.session(version), client.session()
    stream = session.listen()
    assert (stream.status, stream.media_type) == (200, "text/event-stream")
    assert stream.headers["X-Accel-Buffering"] == "no"
    for noun in ("tool", "prompt", "resource"):
        trigger_change(other, noun)
        assert stream.message()["method"] == f"notifications/{noun}s/list_changed"


def test_only_subscribed_resources_are_notified(client: PlainHttpClient) -> None:
    watching, other = client.session(), client.session()
    uri = "test://watched-resource"
    subscribe = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": uri}}
    assert watching.post(subscribe).result() == {}
    streams = watching.listen(), other.listen()
    assert client.use("test_trigger_resource_update").status == 200
    trigger_change(other)
    update = streams[0].message()
    assert (update["method"], update["params"]["uri"]) == ("notifications/resources/updated", uri)
    assert streams[1].message()["method"] == "notifications/tools/list_changed"


def test_earlier_notifications_are_sent_when_the_stream_opens(client: PlainHttpClient) -> None:
    session = client.session()
    trigger_change(session)
    assert session.listen().message()["method"] == "notifications/tools/list_changed"


def test_a_message_is_sent_on_one_stream_only(client: PlainHttpClient) -> None:
    session, other = client.session(), client.session()
    stream = session.listen()
    held = session.use("hold", progressToken="t")
    assert held.message()["method"] == "notifications/progress"
    trigger_change(other)
    assert stream.message()["method"] == "notifications/tools/list_changed"
    client.use("release")
    # The change is not on the request stream, and the progress not on the other.
    assert [message.get("method", "response") for message in held.messages()] == [
        "notifications/progress",
        "response",
    ]
    trigger_change(other, "prompt")
    assert stream.message()["method"] == "notifications/prompts/list_changed"


def test_if_the_newer_of_two_streams_closes_the_older_gets_the_events(client: PlainHttpClient) -> None:
    session = client.session()
    first, second = session.listen(), session.listen()
    assert client.counts(streams=2)["streams"] == 2
    trigger_change(session)
    assert second.message()["method"] == "notifications/tools/list_changed"
    second.close()
    assert client.counts(streams=1)["streams"] == 1
    trigger_change(session, "prompt")
    first.set_timeout(3)
    assert first.message()["method"] == "notifications/prompts/list_changed"


def test_a_get_resumes_after_the_last_event_id(client: PlainHttpClient) -> None:
    session = client.session()
    stream = session.listen()
    for noun in ("tool", "prompt", "resource"):
        trigger_change(session, noun)
    events = [stream.event() for _ in range(3)]
    stream.close()
    assert events[0] is not None
    assert events[0].id is not None
    again = session.listen(events[0].id)
    assert [again.event() for _ in range(2)] == events[1:]


def lose_stream(session: PlainHttpSession, tool: str = "hold") -> tuple[str, list[Any]]:
    """Call a tool and close the stream after its first progress. Return the last event id and all events."""
    reply = session.use(tool, id="lost", progressToken="t")
    events: list[Any] = []
    while not events or not events[-1].data:
        event = reply.event()
        assert event is not None
        events.append(event)
    reply.close()
    assert events[-1].id is not None
    return events[-1].id, events


def resume(session: PlainHttpSession, last: str) -> HttpReply:
    """Resume a stream, whether or not the server has noticed the disconnect."""
    resumed = session.listen(last)
    assert resumed.status == 200
    return resumed


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_lost_request_stream_can_be_resumed(client: PlainHttpClient, version: str) -> None:
    session = client.session(version)
    last, events = lose_stream(session)
    # In 2025-11-25, streams start with an empty event that has only an id.
    assert (events[0].data == "") == (version == "2025-11-25")
    assert client.counts(held=1, streams=0)["held"] == 1
    resumed = resume(session, last)
    client.use("release")
    progress, response = resumed.messages()
    assert (progress["params"]["progress"], response["id"]) == (2, "lost")
    assert response["result"]["content"][0]["text"] == "released"


def test_a_response_is_kept_while_the_client_is_disconnected(client: PlainHttpClient) -> None:
    session = client.session()
    last, _ = lose_stream(session)
    # The server may not have noticed the disconnect, so streams are not counted.
    assert client.counts(held=1)["held"] == 1
    client.use("release")
    assert client.counts(held=0)["held"] == 0
    assert [message.get("id") for message in resume(session, last).messages()] == [None, "lost"]
    # It can be resumed twice.
    assert [message.get("id") for message in resume(session, last).messages()] == [None, "lost"]


def test_events_of_other_streams_are_not_replayed(client: PlainHttpClient) -> None:
    session = client.session()
    last, _ = lose_stream(session)
    trigger_change(session)
    client.use("release")
    assert all(
        message.get("method") != "notifications/tools/list_changed"
        for message in session.listen(last).messages()
    )


def test_a_tool_can_close_its_stream_and_the_client_polls(client: PlainHttpClient) -> None:
    session = client.session()
    reply = session.use("test_reconnection", id="poll")
    first = reply.event()
    assert first is not None
    assert (first.data, first.retry) == ("", 500)
    assert first.id is not None
    assert reply.event() is None, "the stream should end before the response"
    response = resume(session, first.id).messages()[-1]
    assert response["id"] == "poll"
    assert response["result"]["content"][0]["text"] == "Reconnection test completed"


@pytest.mark.parametrize(
    "last", ["99-1", "x", "", "-", "1-", "-1", "1", "1-1-1", "9" * 5000 + "-1", "0x1-1", "\xb2-0"]
)
def test_an_unknown_event_is_not_found(client: PlainHttpClient, last: str) -> None:
    reply = client.session().listen(last)
    assert (reply.status, reply.json()["error"]["code"]) == (404, -32600)


def test_an_event_of_another_session_is_not_found(client: PlainHttpClient) -> None:
    session, other = client.session(), client.session()
    last, _ = lose_stream(session)
    assert other.listen(last).status == 404
    client.use("release")


def test_a_stream_can_be_resumed_before_the_server_notices_the_disconnect(client: PlainHttpClient) -> None:
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


def test_a_response_in_transit_during_a_disconnect_can_be_resumed(client: PlainHttpClient) -> None:
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


def test_a_disconnect_does_not_cancel_a_request_of_a_session(client: PlainHttpClient) -> None:
    before = cancellations(client)["cancelled"]
    session = client.session()
    reply = session.use("wait_until_cancelled", id="w", progressToken="t")
    assert reply.message()["method"] == "notifications/progress"
    reply.close()
    # A running request keeps its id in use; a cancelled one does not.
    refused = session.use("echo", {"text": "x"}, id="w").error()
    assert refused == (400, -32600, "w"), "the id should still be in use"
    assert cancellations(client)["cancelled"] == before
    cancel = notification("notifications/cancelled", {"requestId": "w"})
    assert session.post(cancel).status == 202
    assert cancellations(client, at_least=before + 1)["cancelled"] == before + 1
    assert session.use("echo", {"text": "x"}, id="w").status == 200


def cancellations(client: PlainHttpClient, at_least: int = 0) -> dict[str, int]:
    found: dict[str, int] = client.use("cancelled_count", {"at_least": at_least}).result()[
        "structuredContent"
    ]
    return found


def test_a_cancelled_request_ends_its_stream_without_a_response(client: PlainHttpClient) -> None:
    session = client.session()
    reply = session.use("wait_until_cancelled", id="w", progressToken="t")
    assert reply.message()["method"] == "notifications/progress"
    session.post(notification("notifications/cancelled", {"requestId": "w"}))
    assert reply.messages() == []


def test_a_request_is_not_cancelled_by_another_session(client: PlainHttpClient) -> None:
    session, other = client.session(), client.session()
    reply = session.use("hold", id="w", progressToken="t")
    assert reply.message()["method"] == "notifications/progress"
    assert other.post(notification("notifications/cancelled", {"requestId": "w"})).status == 202
    assert client.counts(held=1)["held"] == 1
    client.use("release")
    assert reply.messages()[-1]["result"]["content"][0]["text"] == "released"


def send_result(session: PlainHttpSession, question: Any, result: Any) -> HttpReply:
    return session.post({"jsonrpc": "2.0", "id": question["id"], "result": result})


def test_another_session_cannot_answer_a_request_to_the_client(client: PlainHttpClient) -> None:
    session, other = client.session(**FORM), client.session(**FORM)
    reply = session.use("test_elicitation", {"message": "Who?"}, id="e")
    question = reply.message()
    wrong = {"action": "accept", "content": {"username": "eve", "email": "eve@example.org"}}
    assert send_result(other, question, wrong).status == 202
    assert send_result(session, question, {"action": "decline"}).status == 202
    assert "action=decline" in reply.messages()[-1]["result"]["content"][0]["text"]


def test_a_request_to_the_client_can_be_answered_after_resuming(client: PlainHttpClient) -> None:
    session = client.session(**FORM)
    last, _ = lose_stream(session, "test_streaming_elicitation")
    resumed = resume(session, last)
    question = resumed.message()
    while question["method"] != "elicitation/create":
        question = resumed.message()
    assert send_result(session, question, {"action": "cancel"}).status == 202
    assert "action=cancel" in resumed.messages()[-1]["result"]["content"][0]["text"]
