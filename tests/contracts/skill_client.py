"""A client of either era that reads skills, and receives notifications about them."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable
from itertools import count
from types import TracebackType
from typing import Any, Self

import msgspec

from tests.contracts.contract_replay import Json, database
from tests.contracts.library_fixtures import ENVELOPE, ERAS, STATELESS, Machine
from tests.stdio_server_process import StdioServerProcess

EXTENSION = "io.modelcontextprotocol/skills"


class SkillClient:
    """A session with `dittybag serve` on standard input and output."""

    def __init__(
        self, machine: Machine, *options: str, version: str = ERAS[0], watched: tuple[str, ...] = ()
    ) -> None:
        """`watched`: the URIs of resources to subscribe to."""
        self.version = version
        self._watched = watched
        machine.root.mkdir(parents=True, exist_ok=True)
        self._wire = StdioServerProcess(
            "dittybag", "serve", *database(machine.location), *options, env=machine.env
        )
        self._ids = count(1)
        #: The method of each notification, and the URI if it has one.
        self.notifications: list[tuple[str, str | None]] = []
        #: The response that opened the session.
        self.hello: Json = {}

    def __enter__(self) -> Self:
        if self.version != STATELESS:
            self.hello = self._wire.handshake(self.version)
            for uri in self._watched:
                self.request("resources/subscribe", uri=uri)
            return self
        self.hello = self.request("server/discover")
        wanted = {"resourcesListChanged": True, "resourceSubscriptions": list(self._watched)}
        params = {"notifications": wanted, "_meta": ENVELOPE}
        request = {"jsonrpc": "2.0", "id": "listening", "method": "subscriptions/listen", "params": params}
        self._wire.send(msgspec.json.encode(request))
        assert self._wire.message()["method"] == "notifications/subscriptions/acknowledged"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wire.__exit__(kind, error, trace)

    def ask(self, method: str, **params: Any) -> Json:
        """Send a request and return the response."""
        meta = {"_meta": ENVELOPE} if self.version == STATELESS else {}
        identity = next(self._ids)
        request = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params | meta}
        self._wire.send(msgspec.json.encode(request))
        while (response := self._wire.message(30)).get("id") != identity:
            self._record(response)
        found: Json = response
        return found

    def request(self, method: str, **params: Any) -> Json:
        response = self.ask(method, **params)
        assert "result" in response, response
        result: Json = response["result"]
        return result

    def error(self, method: str, **params: Any) -> tuple[int, str]:
        error = self.ask(method, **params)["error"]
        return error["code"], error["message"]

    def call(self, tool: str, **arguments: Any) -> Json:
        """Call a tool and return its result."""
        result = self.request("tools/call", name=tool, arguments=arguments)
        assert result["isError"] is False, result
        return result

    def pages(self, method: str, items: str, **params: Any) -> list[list[Any]]:
        """Return the items on every page."""
        found: list[list[Any]] = []
        cursor: Json = {}
        while True:
            page = self.request(method, **params, **cursor)
            found.append(page[items])
            if "nextCursor" not in page:
                return found
            cursor = {"cursor": page["nextCursor"]}

    def skills(self) -> dict[str, Json]:
        """Return all entries by URI."""
        entries = [entry for page in self.pages("skills/list", "skills") for entry in page]
        assert len({entry["uri"] for entry in entries}) == len(entries)
        return {entry["uri"]: entry for entry in entries}

    def skill(self, uri: str) -> Json:
        entry: Json = self.request("skills/get", uri=uri)["skill"]
        return entry

    def content(self, uri: str) -> bytes:
        """Return the bytes of a resource."""
        (contents,) = self.request("resources/read", uri=uri)["contents"]
        assert contents["uri"] == uri
        return contents["text"].encode() if "text" in contents else base64.b64decode(contents["blob"])

    def verified(self, entry: Json) -> dict[str, bytes]:
        """Read all files of an entry, check them as hosts do, and return them by URI."""
        found = {file["uri"]: self.content(file["uri"]) for file in entry["resources"]}
        assert len(found) == len(entry["resources"])
        assert entry["uri"] in found
        for file in entry["resources"]:
            assert file.keys() == {"uri", "digest", "size"}
            content = found[file["uri"]]
            assert file["size"] == len(content)
            assert file["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        return found

    def wait_until(self, condition: Callable[[], bool], seconds: float = 10.0) -> None:
        """Wait for notifications until a condition holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            self._record(self._wire.message(deadline - time.monotonic()))

    def _record(self, message: Json) -> None:
        params = message.get("params") or {}
        self.notifications.append((message["method"].removeprefix("notifications/"), params.get("uri")))
