"""A client that writes without waiting, and keeps a journal of what was acknowledged."""

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

from dittybag.domain.changes import Kind
from tests.torture.books import Key
from tests.wire import Wire

#: What is not there.
ABSENT = None

#: So many bytes take a moment to be written, and the servers are killed in such moments.
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


class Write(Struct, frozen=True):
    """A request on its way: what it is about, and what it leads to."""

    key: Key
    after: Any


class Writer:
    """Speaks to one server process at a time, about things that nobody else touches."""

    def __init__(self, database: Path, name: str, seed: int) -> None:
        self._database = database
        self._name = name
        self._random = random.Random(seed)
        self._wire: Wire | None = None
        self._buffer = bytearray()
        self._count = 0
        #: What is there according to the answers; `ABSENT` for what was deleted.
        self.journal: dict[Key, Any] = {}
        self.in_flight: dict[int, Write] = {}
        self.acknowledged = 0
        self._task_ids: dict[str, int] = {}

    # A server's life

    def start(self) -> None:
        """Start a server; `greet` waits for it."""
        self._wire = Wire("dittybag", "serve", "--db", str(self._database))

    def greet(self) -> None:
        assert self._wire is not None
        try:
            self._wire.handshake()
        except AssertionError:
            self._wire.process.kill()
            pytest.fail(f"the server did not start: {self._wire.process.communicate()[1].decode()}")
        self._buffer = bytearray(self._wire._unread)

    def kill(self) -> None:
        """End the server at once. What it has answered until now counts."""
        assert self._wire is not None
        self._wire.process.kill()
        while chunk := os.read(self._wire.from_server, 1 << 20):
            self._buffer += chunk
        self._take_answers()
        self._wire.process.communicate()
        self._wire = None

    def stop(self) -> None:
        if self._wire is not None:
            self._wire.__exit__(None, None, None)

    # Writing

    def fill(self, most: int) -> None:
        """Send requests until so many are on their way."""
        assert self._wire is not None
        frames = []
        while len(self.in_flight) < most:
            self._count += 1
            frames.append(self._request(*self._invented()))
        if frames:
            self._wire.send(*frames)

    def fill_with_something_big(self, most: int) -> None:
        """Likewise, but the first request takes its time to be written."""
        assert self._wire is not None
        self.settle()
        key: Key = ("resource", f"{self._name}-big")
        data = self._random.randbytes(BIG_BYTES)
        tool = "create_resource" if self.journal.get(key) is ABSENT else "update_resource"
        arguments = {"name": key[1], "content": b64encode(data).decode(), "mime_type": "image/png"}
        if tool == "create_resource":
            arguments["uri"] = f"x:{key[1]}"
        self._count += 1
        self._wire.send(self._request(key, tool, arguments, data))
        self.fill(most)

    def _request(self, key: Key, tool: str, arguments: dict[str, Any], after: Any) -> bytes:
        self.in_flight[self._count] = Write(key, after)
        params = {"name": tool, "arguments": arguments}
        return msgspec.json.encode(
            {"jsonrpc": "2.0", "id": self._count, "method": "tools/call", "params": params}
        )

    def await_answer(self, seconds: float = 10.0) -> None:
        """Wait until the server begins to answer."""
        assert self._wire is not None
        assert select.select([self._wire.from_server], [], [], seconds)[0], f"no answer within {seconds} s"

    def receive(self, seconds: float) -> None:
        """Take the answers that come within a time; return as soon as there are some."""
        assert self._wire is not None
        if select.select([self._wire.from_server], [], [], seconds)[0]:
            chunk = os.read(self._wire.from_server, 1 << 20)
            assert chunk, "the server closed its output"
            self._buffer += chunk
            self._take_answers()

    def settle(self, seconds: float = 30.0) -> None:
        """Wait until everything is answered."""
        deadline = time.monotonic() + seconds
        while self.in_flight:
            assert time.monotonic() < deadline, f"{len(self.in_flight)} requests without an answer"
            self.receive(deadline - time.monotonic())

    def _take_answers(self) -> None:
        lines = self._buffer.split(b"\n")
        self._buffer = lines.pop()
        for line in lines:
            answer = msgspec.json.decode(line)
            if "id" in answer:
                self._acknowledge(answer)

    def _acknowledge(self, answer: Any) -> None:
        assert "error" not in answer, answer
        assert answer["result"]["isError"] is False, answer
        write = self.in_flight.pop(answer["id"])
        if write.key[0] == "task" and self.journal.get(write.key) is ABSENT and write.after is not ABSENT:
            self._task_ids[write.key[1]] = msgspec.json.decode(answer["result"]["content"][0]["text"])["id"]
        self.journal[write.key] = write.after
        self.acknowledged += 1

    def find_out(self, things: dict[Key, Any], task_ids: dict[str, int]) -> None:
        """Learn what became of the requests that a killed server left without an answer."""
        for write in self.in_flight.values():
            found = things.get(write.key, ABSENT)
            before = self.journal.get(write.key, ABSENT)
            assert found in (before, write.after), (
                f"{write.key} is neither what was acknowledged nor what it was to become: {str(found)[:200]}"
            )
            self.journal[write.key] = found
        self.in_flight.clear()
        self._task_ids = {title: number for title, number in task_ids.items() if self._owns(title)}

    def check(self, things: dict[Key, Any]) -> None:
        """Everything that was acknowledged must be there, and nothing else of ours."""
        lost = [key for key, thing in self.journal.items() if things.get(key, ABSENT) != thing]
        assert not lost, f"acknowledged, but not there: {lost}"
        extra = [key for key in things if self._owns(key[1]) and key not in self.journal]
        assert not extra, f"there, but never asked for: {extra}"

    def _owns(self, label: str) -> bool:
        return label.startswith(f"{self._name}-")

    # Inventing things to write

    def _invented(self) -> tuple[Key, str, dict[str, Any], Any]:
        """A write to something that no other request on its way is about."""
        busy = {write.key for write in self.in_flight.values()}
        there = [
            key
            for key, thing in self.journal.items()
            if thing is not ABSENT and key not in busy and not key[1].endswith("-big")
        ]
        action = self._random.choices(["create", "update", "delete"], [5, 3, 3])[0]
        if action == "create" or not there:
            kinds: list[Kind] = ["prompt", "task", "resource"]
            return self._created((self._random.choice(kinds), f"{self._name}-{self._count}"))
        key = self._random.choice(there)
        return self._updated(key) if action == "update" else self._deleted(key)

    def _text(self) -> str:
        return " ".join(self._random.choices(_WORDS, k=self._random.randint(1, 20)))

    def _tags(self) -> tuple[str, ...]:
        return tuple(self._random.sample(_TAGS, self._random.randint(0, 3)))

    def _created(self, key: Key) -> tuple[Key, str, dict[str, Any], Any]:
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

    def _updated(self, key: Key) -> tuple[Key, str, dict[str, Any], Any]:
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

    def _deleted(self, key: Key) -> tuple[Key, str, dict[str, Any], Any]:
        kind, label = key
        if kind == "task":
            return key, "task_delete", {"task_id": self._task_ids[label]}, ABSENT
        return key, f"delete_{kind}", {"name": label}, ABSENT

    def _bytes(self) -> tuple[str, str, bytes]:
        """A content as it is sent, its MIME type, and the bytes it means."""
        if self._random.random() < 0.5:
            text = self._text()
            return text, "text/plain", text.encode()
        data = self._random.randbytes(self._random.randint(0, 300))
        return b64encode(data).decode(), "application/octet-stream", data
