"""HTTP clients of a fleet, and a write load that checks the result of every write."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPException, IncompleteRead
from itertools import count
from typing import Any, Final

import msgspec

from dittybag.protocol.request_meta import CLIENT_CAPABILITIES
from tests.contracts.http_server_process import (
    BOTH,
    EVENTS,
    JSON,
    EventStreamReader,
    ReceivedResponse,
    routing_headers,
    send_request,
)
from tests.contracts.library_fixtures import ENVELOPE
from tests.fleet.server_fleet import TIMEOUT_SECONDS, Fleet, ServerEndpoint, wait_until

Json = dict[str, Any]

HANDSHAKE: Final = "2025-11-25"
STATELESS: Final = "2026-07-28"
ERAS: Final = (HANDSHAKE, STATELESS)

#: Parts of error messages: nothing was written, or that is unknown.
NOTHING_CHANGED: Final = "nothing was changed"
MAY_BE_CHANGED: Final = ("may have been", "may or may not have been")

_request_ids = count(1)


class FleetClient:
    """A client of either era with a token, for requests to any endpoint."""

    def __init__(self, token: str, era: str, capabilities: Json | None = None) -> None:
        self.era = era
        self._capabilities = capabilities or {}
        self._token = token
        self._session: str | None = None

    def initialize(self, endpoint: ServerEndpoint) -> None:
        """Start a session, if the era has sessions."""
        if self.era == HANDSHAKE:
            hello: Json = {"protocolVersion": HANDSHAKE, "capabilities": self._capabilities}
            hello["clientInfo"] = {"name": "fleet-client", "version": "1"}
            response = self.request(endpoint, "initialize", hello)
            assert response.status == 200, response
            self._session = response.headers["mcp-session-id"]

    def headers(self) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": JSON, "Accept": BOTH}
        if self._session is not None:
            headers |= {"Mcp-Session-Id": self._session, "MCP-Protocol-Version": HANDSHAKE}
        return headers

    def frame(self, method: str, params: Json) -> bytes:
        if self.era == STATELESS:
            params = {**params, "_meta": ENVELOPE | {CLIENT_CAPABILITIES: self._capabilities}}
        message = {"jsonrpc": "2.0", "id": next(_request_ids), "method": method, "params": params}
        return msgspec.json.encode(message)

    def request(
        self, endpoint: ServerEndpoint, method: str, params: Json, accept: str = BOTH
    ) -> ReceivedResponse:
        """Send a request on a new connection. Returns the response."""
        frame = self.frame(method, params)
        headers = {**self.headers(), **routing_headers(frame), "Accept": accept}
        with closing(endpoint.connect()) as connection:
            return send_request(connection, "POST", "/mcp", frame, headers)

    def call(self, endpoint: ServerEndpoint, tool: str, **arguments: Any) -> Json:
        """Call a tool, which must succeed. Returns its result."""
        response = self.request(endpoint, "tools/call", {"name": tool, "arguments": arguments})
        result: Json = response.message()["result"]
        assert not result.get("isError"), result
        return result

    @contextmanager
    def listen(
        self, endpoint: ServerEndpoint, *uris: str, last_event_id: str | None = None
    ) -> Iterator[EventStreamReader]:
        """Open a stream of change notifications. `last_event_id`: resume after this event."""
        headers, frame = {**self.headers(), "Accept": EVENTS}, None
        if self.era == STATELESS:
            filters = {"promptsListChanged": True, "resourceSubscriptions": list(uris)}
            frame = self.frame("subscriptions/listen", {"notifications": filters})
            headers |= routing_headers(frame)
        elif last_event_id is not None:
            headers["Last-Event-ID"] = last_event_id
        with closing(endpoint.connect()) as connection:
            connection.request("GET" if frame is None else "POST", "/mcp", frame, headers)
            sock = connection.sock
            response = connection.getresponse()
            assert (response.status, response.headers["content-type"]) == (200, EVENTS), response.read()
            stream = EventStreamReader(response, sock)
            if self.era == STATELESS:
                assert stream.message()["method"] == "notifications/subscriptions/acknowledged"
            yield stream


class TaskWriter:
    """Creates one task after the other through nginx, and records the result of each."""

    def __init__(self, fleet: Fleet, token: str, era: str, name: str) -> None:
        self.acknowledged: list[str] = []
        #: Failed writes: the error says that nothing was changed, or that this is unknown.
        self.unchanged: list[str] = []
        self.unsure: list[str] = []
        #: The messages of these errors.
        self.messages: Counter[str] = Counter()
        #: Other failures, which must not occur.
        self.unexpected: list[str] = []
        #: The time of the last acknowledged write, and the longest time between two.
        self.last_acknowledged = time.monotonic()
        self.longest_wait = 0.0
        self._endpoint = fleet.proxy
        self._client = FleetClient(token, era)
        self._name = name

    def run(self, stop: threading.Event) -> None:
        """Create tasks until `stop` is set."""
        self._client.initialize(self._endpoint)
        self.last_acknowledged = time.monotonic()
        with closing(self._endpoint.connect()) as connection:
            for number in count(1):
                if stop.is_set():
                    return
                title = f"{self._name}-{number}"
                frame = self._client.frame(
                    "tools/call", {"name": "task_create", "arguments": {"title": title}}
                )
                headers = {**self._client.headers(), **routing_headers(frame)}
                try:
                    self._record(title, send_request(connection, "POST", "/mcp", frame, headers))
                except IncompleteRead:
                    # A server was killed after nginx had forwarded the header of its response.
                    self.unsure.append(title)
                    self.messages["a truncated response"] += 1
                    connection.close()
                except (OSError, HTTPException) as error:
                    # nginx keeps running and always answers.
                    self.unexpected.append(f"{title}: {error!r}")
                    connection.close()

    def _record(self, title: str, response: ReceivedResponse) -> None:
        body = response.message()
        failed = "error" in body or body["result"].get("isError", False)
        if response.status == 200 and not failed:
            now = time.monotonic()
            self.longest_wait = max(self.longest_wait, now - self.last_acknowledged)
            self.last_acknowledged = now
            self.acknowledged.append(title)
            return
        message = body["error"]["message"] if "error" in body else body["result"]["content"][0]["text"]
        self.messages[f"{response.status} {message}"] += 1
        is_unsure = any(phrase in message for phrase in MAY_BE_CHANGED)
        can_retry = response.status == 200 or "retry-after" in response.headers
        if can_retry and NOTHING_CHANGED in message and response.status in (200, 502, 503):
            self.unchanged.append(title)
        elif can_retry and is_unsure and response.status in (200, 502):
            self.unsure.append(title)
        else:
            self.unexpected.append(f"{title}: {response.status} {message}")

    def check(self, titles: Counter[str]) -> None:
        """Check that acknowledged tasks exist once, unchanged ones do not, and unsure ones at most once."""
        assert self.unexpected == [], self.unexpected
        assert [title for title in self.acknowledged if titles[title] != 1] == []
        assert [title for title in self.unchanged if titles[title] != 0] == []
        assert [title for title in self.unsure if titles[title] > 1] == []


class WriteLoad:
    """Several concurrent writers."""

    def __init__(self, writers: Sequence[TaskWriter]) -> None:
        self.writers = writers

    def wait_for_more(self, each: int, seconds: float = TIMEOUT_SECONDS) -> float:
        """Wait until each writer has `each` more acknowledged writes. Returns the elapsed seconds."""
        targets = [(writer, len(writer.acknowledged) + each) for writer in self.writers]
        return wait_until(
            lambda: all(len(writer.acknowledged) >= number for writer, number in targets),
            f"each writer has {each} more acknowledged writes; errors: {self.messages}",
            seconds,
        )

    @property
    def acknowledged(self) -> int:
        return sum(len(writer.acknowledged) for writer in self.writers)

    @property
    def longest_wait(self) -> float:
        """The longest time that a writer was without an acknowledged write."""
        return max(writer.longest_wait for writer in self.writers)

    @property
    def messages(self) -> Counter[str]:
        """The error messages of all writers."""
        return sum((writer.messages for writer in self.writers), Counter())

    def check(self, fleet: Fleet) -> None:
        """Compare the results with the stored tasks, and check that the change log has no gap."""
        rows = fleet.database.sql("SELECT title, count(*) FROM tasks GROUP BY title")
        titles = Counter({title: int(number) for title, number in (row.split("|") for row in rows)})
        for writer in self.writers:
            writer.check(titles)
        log = "SELECT count(*) = max(seq), count(*) FILTER (WHERE kind = 'task') FROM changes"
        assert fleet.database.sql(log) == [f"t|{titles.total()}"]


@contextmanager
def run_load(fleet: Fleet, tokens: Sequence[str], name: str) -> Iterator[WriteLoad]:
    """Run one writer per token, of both eras in turns, until the end of the block."""
    writers = [
        TaskWriter(fleet, token, ERAS[number % len(ERAS)], f"{name}-{number}")
        for number, token in enumerate(tokens)
    ]
    stop = threading.Event()
    threads = [threading.Thread(target=writer.run, args=(stop,)) for writer in writers]
    for thread in threads:
        thread.start()
    try:
        yield WriteLoad(writers)
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert not any(thread.is_alive() for thread in threads), "a writer is still waiting for a response"
