"""Clients of a fleet in raw HTTP, and a journal of what became of everything that they wrote."""

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
from tests.fleet.fleet import SECONDS, Door, Fleet, until

Json = dict[str, Any]

HANDSHAKE: Final = "2025-11-25"
STATELESS: Final = "2026-07-28"
ERAS: Final = (HANDSHAKE, STATELESS)

#: How an error says that nothing has happened, and that nobody knows.
NOTHING_DONE: Final = "nothing was changed"
UNSURE: Final = "may have been"

_numbers = count(1)


class Caller:
    """Somebody with a token, of either era, who may ask at any door."""

    def __init__(self, token: str, era: str) -> None:
        self.era = era
        self._token = token
        self._session: str | None = None

    def greet(self, door: Door) -> None:
        """Begin a session, if the era has any."""
        if self.era == HANDSHAKE:
            hello = {"protocolVersion": HANDSHAKE, "capabilities": {}}
            hello["clientInfo"] = {"name": "caller", "version": "1"}
            answer = self.ask(door, "initialize", hello)
            assert answer.status == 200, answer
            self._session = answer.headers["mcp-session-id"]

    def headers(self) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": JSON, "Accept": BOTH}
        if self._session is not None:
            headers |= {"Mcp-Session-Id": self._session, "MCP-Protocol-Version": HANDSHAKE}
        return headers

    def frame(self, method: str, params: Json) -> bytes:
        if self.era == STATELESS:
            params = {**params, "_meta": ENVELOPE}
        message = {"jsonrpc": "2.0", "id": next(_numbers), "method": method, "params": params}
        return msgspec.json.encode(message)

    def ask(self, door: Door, method: str, params: Json, accept: str = BOTH) -> ReceivedResponse:
        """The answer to a request, on a connection of its own."""
        frame = self.frame(method, params)
        headers = {**self.headers(), **routing_headers(frame), "Accept": accept}
        with closing(door.connect()) as connection:
            return send_request(connection, "POST", "/mcp", frame, headers)

    def call(self, door: Door, tool: str, **arguments: Any) -> Json:
        """What a tool answers, which succeeds."""
        answer = self.ask(door, "tools/call", {"name": tool, "arguments": arguments})
        result: Json = answer.message()["result"]
        assert not result.get("isError"), result
        return result

    @contextmanager
    def listening(self, door: Door, *uris: str, last: str | None = None) -> Iterator[EventStreamReader]:
        """What is said of changes at a door. `last`: the event after which it goes on."""
        headers, frame = {**self.headers(), "Accept": EVENTS}, None
        if self.era == STATELESS:
            wanted = {"promptsListChanged": True, "resourceSubscriptions": list(uris)}
            frame = self.frame("subscriptions/listen", {"notifications": wanted})
            headers |= routing_headers(frame)
        elif last is not None:
            headers["Last-Event-ID"] = last
        with closing(door.connect()) as connection:
            connection.request("GET" if frame is None else "POST", "/mcp", frame, headers)
            taken = connection.sock
            answer = connection.getresponse()
            assert (answer.status, answer.headers["content-type"]) == (200, EVENTS), answer.read()
            stream = EventStreamReader(answer, taken)
            if self.era == STATELESS:
                assert stream.message()["method"] == "notifications/subscriptions/acknowledged"
            yield stream


class Journal:
    """Somebody who creates one task after the other at one door, and notes what was said to each."""

    def __init__(self, fleet: Fleet, token: str, era: str, name: str) -> None:
        self.acknowledged: list[str] = []
        #: What was not acknowledged, by whether that was said to have done nothing; and in which words.
        self.undone: list[str] = []
        self.unsure: list[str] = []
        self.words: Counter[str] = Counter()
        #: What is neither: there must be none of it.
        self.others: list[str] = []
        #: When the last one was acknowledged, and the longest time between two.
        self.last = time.monotonic()
        self.longest = 0.0
        self._door = fleet.front
        self._caller = Caller(token, era)
        self._name = name

    def keep(self, stop: threading.Event) -> None:
        """Go on until told to stop."""
        self._caller.greet(self._door)
        self.last = time.monotonic()
        with closing(self._door.connect()) as connection:
            for number in count(1):
                if stop.is_set():
                    return
                title = f"{self._name}-{number}"
                frame = self._caller.frame(
                    "tools/call", {"name": "task_create", "arguments": {"title": title}}
                )
                headers = {**self._caller.headers(), **routing_headers(frame)}
                try:
                    self._note(title, send_request(connection, "POST", "/mcp", frame, headers))
                except IncompleteRead:
                    # A server was killed between the head of its answer, which nginx passed on, and its body.
                    self.unsure.append(title)
                    self.words["an answer that ends in the middle"] += 1
                    connection.close()
                except (OSError, HTTPException) as error:
                    # nginx is there all the time, and answers in any case.
                    self.others.append(f"{title}: {error!r}")
                    connection.close()

    def _note(self, title: str, answer: ReceivedResponse) -> None:
        told = answer.message()
        failed = "error" in told or told["result"].get("isError", False)
        if answer.status == 200 and not failed:
            now = time.monotonic()
            self.longest, self.last = max(self.longest, now - self.last), now
            self.acknowledged.append(title)
            return
        words = told["error"]["message"] if "error" in told else told["result"]["content"][0]["text"]
        self.words[f"{answer.status} {words}"] += 1
        may_come_back = answer.status == 200 or "retry-after" in answer.headers
        if may_come_back and NOTHING_DONE in words and answer.status in (200, 502, 503):
            self.undone.append(title)
        elif may_come_back and UNSURE in words and answer.status in (200, 502):
            self.unsure.append(title)
        else:
            self.others.append(f"{title}: {answer.status} {words}")

    def check(self, titles: Counter[str]) -> None:
        """What was acknowledged is there once, and what was not is not, or at most once if nobody knew."""
        assert self.others == [], self.others
        assert [title for title in self.acknowledged if titles[title] != 1] == []
        assert [title for title in self.undone if titles[title] != 0] == []
        assert [title for title in self.unsure if titles[title] > 1] == []


class Load:
    """Several who write at once."""

    def __init__(self, journals: Sequence[Journal]) -> None:
        self.journals = journals

    def until_more(self, each: int, seconds: float = SECONDS) -> float:
        """Wait until everybody has so many further acknowledgements; how long that took."""
        enough = [(journal, len(journal.acknowledged) + each) for journal in self.journals]
        return until(
            lambda: all(len(journal.acknowledged) >= number for journal, number in enough),
            f"everybody has {each} more acknowledgements, beside {self.words}",
            seconds,
        )

    @property
    def acknowledged(self) -> int:
        return sum(len(journal.acknowledged) for journal in self.journals)

    @property
    def longest(self) -> float:
        """The longest that anybody was without an acknowledgement."""
        return max(journal.longest for journal in self.journals)

    @property
    def words(self) -> Counter[str]:
        """What was said instead of an acknowledgement."""
        return sum((journal.words for journal in self.journals), Counter())

    def check(self, fleet: Fleet) -> None:
        """Compare what was said with what is there: the rows, and the change log without a gap."""
        rows = fleet.database.sql("SELECT title, count(*) FROM tasks GROUP BY title")
        titles = Counter({title: int(number) for title, number in (row.split("|") for row in rows)})
        for journal in self.journals:
            journal.check(titles)
        log = "SELECT count(*) = max(seq), count(*) FILTER (WHERE kind = 'task') FROM changes"
        assert fleet.database.sql(log) == [f"t|{titles.total()}"]


@contextmanager
def load(fleet: Fleet, tokens: Sequence[str], name: str) -> Iterator[Load]:
    """As many who write as there are tokens, of both eras in turns, until the end of the block."""
    journals = [
        Journal(fleet, token, ERAS[number % len(ERAS)], f"{name}-{number}")
        for number, token in enumerate(tokens)
    ]
    stop = threading.Event()
    threads = [threading.Thread(target=journal.keep, args=(stop,)) for journal in journals]
    for thread in threads:
        thread.start()
    try:
        yield Load(journals)
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert not any(thread.is_alive() for thread in threads), "somebody still waits for an answer"
