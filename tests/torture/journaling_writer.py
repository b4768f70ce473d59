"""A client that pipelines writes and keeps a journal of the acknowledged ones."""

from __future__ import annotations

import os
import random
import select
import time
from base64 import b64encode
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from dittybag.domain.entities import Kind
from tests.stdio_server_process import StdioServerProcess
from tests.torture.sqlite_audit import EntityKey

#: The journal's value for a deleted entity.
ABSENT = None

#: Large enough that a server can be killed while it writes them.
BIG_BYTES = 512 * 1024

_WORDS = [
    "alpha",
    "BETA",
    "Straße",
    "İzmir",
    "Σίσυφος",
    "naïve",
    "100%",
    "a_b",
    "👩‍👩‍👧",
    "漢字",
    "\n",
    '"q"',
    "don't",
]
_TAGS = ["red", "green", "blue"]


class PendingWrite(Struct, frozen=True):
    """An unanswered request: the entity and its value after the write."""

    key: EntityKey
    after: Any


class JournalingWriter:
    """A client of one server process at a time. No other client writes its entities."""

    def __init__(self, database: Path, name: str, seed: int) -> None:
        self._database = database
        self._name = name
        self._random = random.Random(seed)
        self._server: StdioServerProcess | None = None
        self._buffer = bytearray()
        self._count = 0
        #: The acknowledged value of each entity; `ABSENT` if it was deleted.
        self.journal: dict[EntityKey, Any] = {}
        self.in_flight: dict[int, PendingWrite] = {}
        self.acknowledged = 0
        self._task_ids: dict[str, int] = {}

    # Starting and stopping the server

    def start(self) -> None:
        """Start a server. `handshake` waits for it."""
        self._server = StdioServerProcess("dittybag", "serve", "--db", str(self._database))

    def handshake(self) -> None:
        assert self._server is not None
        try:
            self._server.handshake()
        except AssertionError:
            self._server.process.kill()
            pytest.fail(f"the server did not start: {self._server.process.communicate()[1].decode()}")
        self._buffer = bytearray(self._server._unread)

    def kill(self) -> None:
        """Kill the server. Responses that it has already written count as acknowledged."""
        assert self._server is not None
        self._server.process.kill()
        while chunk := os.read(self._server.from_server, 1 << 20):
            self._buffer += chunk
        self._process_responses()
        self._server.process.communicate()
        self._server = None

    def stop(self) -> None:
        if self._server is not None:
            self._server.__exit__(None, None, None)

    # Writing

    def send_writes(self, limit: int) -> None:
        """Send requests until `limit` requests are unanswered."""
        assert self._server is not None
        frames = []
        while len(self.in_flight) < limit:
            self._count += 1
            frames.append(self._request(*self._random_write()))
        if frames:
            self._server.send(*frames)

    def send_large_write(self, limit: int) -> None:
        """Like `send_writes`, but the first request is a large one."""
        assert self._server is not None
        self.wait_for_all()
        key: EntityKey = ("resource", f"{self._name}-big")
        data = self._random.randbytes(BIG_BYTES)
        tool = "create_resource" if self.journal.get(key) is ABSENT else "update_resource"
        arguments = {"name": key[1], "content": b64encode(data).decode(), "mime_type": "image/png"}
        if tool == "create_resource":
            arguments["uri"] = f"x:{key[1]}"
        self._count += 1
        self._server.send(self._request(key, tool, arguments, data))
        self.send_writes(limit)

    def _request(self, key: EntityKey, tool: str, arguments: dict[str, Any], after: Any) -> bytes:
        self.in_flight[self._count] = PendingWrite(key, after)
        params = {"name": tool, "arguments": arguments}
        return msgspec.json.encode(
            {"jsonrpc": "2.0", "id": self._count, "method": "tools/call", "params": params}
        )

    def wait_for_response(self, seconds: float = 10.0) -> None:
        """Wait until the server starts to send a response."""
        assert self._server is not None
        assert select.select([self._server.from_server], [], [], seconds)[0], (
            f"no response within {seconds} s"
        )

    def receive(self, seconds: float) -> None:
        """Process the responses that arrive within `seconds`. Returns after the first ones."""
        assert self._server is not None
        if select.select([self._server.from_server], [], [], seconds)[0]:
            chunk = os.read(self._server.from_server, 1 << 20)
            assert chunk, "the server closed its output"
            self._buffer += chunk
            self._process_responses()

    def wait_for_all(self, seconds: float = 30.0) -> None:
        """Wait until every request is answered."""
        deadline = time.monotonic() + seconds
        while self.in_flight:
            assert time.monotonic() < deadline, f"{len(self.in_flight)} unanswered requests"
            self.receive(deadline - time.monotonic())

    def _process_responses(self) -> None:
        lines = self._buffer.split(b"\n")
        self._buffer = lines.pop()
        for line in lines:
            message = msgspec.json.decode(line)
            if "id" in message:
                self._acknowledge(message)

    def _acknowledge(self, response: Any) -> None:
        assert "error" not in response, response
        assert response["result"]["isError"] is False, response
        write = self.in_flight.pop(response["id"])
        if write.key[0] == "task" and self.journal.get(write.key) is ABSENT and write.after is not ABSENT:
            self._task_ids[write.key[1]] = msgspec.json.decode(response["result"]["content"][0]["text"])["id"]
        self.journal[write.key] = write.after
        self.acknowledged += 1

    def reconcile(self, stored: dict[EntityKey, Any], task_ids: dict[str, int]) -> None:
        """Update the journal with the outcome of the requests that a killed server did not answer."""
        for write in self.in_flight.values():
            found = stored.get(write.key, ABSENT)
            before = self.journal.get(write.key, ABSENT)
            assert found in (before, write.after), (
                f"{write.key} has neither its old nor its new value: {str(found)[:200]}"
            )
            self.journal[write.key] = found
        self.in_flight.clear()
        self._task_ids = {title: number for title, number in task_ids.items() if self._owns(title)}

    def check(self, stored: dict[EntityKey, Any]) -> None:
        """Check that every acknowledged write is stored, and no other entity of this writer."""
        lost = [key for key, value in self.journal.items() if stored.get(key, ABSENT) != value]
        assert not lost, f"acknowledged, but not stored: {lost}"
        extra = [key for key in stored if self._owns(key[1]) and key not in self.journal]
        assert not extra, f"stored, but never requested: {extra}"

    def _owns(self, label: str) -> bool:
        return label.startswith(f"{self._name}-")

    # Generating writes

    def _random_write(self) -> tuple[EntityKey, str, dict[str, Any], Any]:
        """Return a random write to an entity without an unanswered request."""
        busy = {write.key for write in self.in_flight.values()}
        available = [
            key
            for key, value in self.journal.items()
            if value is not ABSENT and key not in busy and not key[1].endswith("-big")
        ]
        action = self._random.choices(["create", "update", "delete"], [5, 3, 3])[0]
        if action == "create" or not available:
            kinds: list[Kind] = ["prompt", "task", "resource"]
            return self._create((self._random.choice(kinds), f"{self._name}-{self._count}"))
        key = self._random.choice(available)
        return self._update(key) if action == "update" else self._delete(key)

    def _text(self) -> str:
        return " ".join(self._random.choices(_WORDS, k=self._random.randint(1, 20)))

    def _tags(self) -> tuple[str, ...]:
        return tuple(self._random.sample(_TAGS, self._random.randint(0, 3)))

    def _create(self, key: EntityKey) -> tuple[EntityKey, str, dict[str, Any], Any]:
        kind, label = key
        text = self._text()
        if kind == "prompt":
            tags = self._tags()
            return key, "add_prompt", {"title": label, "content": text, "tags": tags}, (text, tags)
        if kind == "task":
            return key, "task_create", {"title": label, "notes": text}, (text, False)
        content, mime_type, data = self._bytes()
        arguments = {"name": label, "uri": f"x:{label}", "content": content, "mime_type": mime_type}
        return key, "create_resource", arguments, data

    def _update(self, key: EntityKey) -> tuple[EntityKey, str, dict[str, Any], Any]:
        kind, label = key
        text = self._text()
        if kind == "prompt":
            tags = self._tags()
            return key, "update_prompt", {"name": label, "content": text, "tags": tags}, (text, tags)
        if kind == "task":
            number = self._task_ids[label]
            notes, completed = self.journal[key]
            if not completed and self._random.random() < 0.3:
                return key, "task_complete", {"task_id": number}, (notes, True)
            return key, "task_update", {"task_id": number, "notes": text}, (text, completed)
        content, mime_type, data = self._bytes()
        return key, "update_resource", {"name": label, "content": content, "mime_type": mime_type}, data

    def _delete(self, key: EntityKey) -> tuple[EntityKey, str, dict[str, Any], Any]:
        kind, label = key
        if kind == "task":
            return key, "task_delete", {"task_id": self._task_ids[label]}, ABSENT
        return key, f"delete_{kind}", {"name": label}, ABSENT

    def _bytes(self) -> tuple[str, str, bytes]:
        """Return content as it is sent, its MIME type, and the bytes that it encodes."""
        if self._random.random() < 0.5:
            text = self._text()
            return text, "text/plain", text.encode()
        data = self._random.randbytes(self._random.randint(0, 300))
        return b64encode(data).decode(), "application/octet-stream", data
