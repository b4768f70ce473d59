"""Library folders for tests, and a client that watches them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from tests import forked_processes
from tests.contracts.contract_replay import HANDSHAKE_VERSIONS, Json, Transport, WorkspaceLocation, database
from tests.contracts.http_server_process import StderrLines
from tests.stdio_server_process import StdioServerProcess

STATELESS = "2026-07-28"
#: One protocol version of each era.
ERAS = (HANDSHAKE_VERSIONS[-1], STATELESS)
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
}
#: The first request of a stateless client.
DISCOVER: Json = {"method": "server/discover", "params": {"_meta": ENVELOPE}}
LIST_CHANGED = "notifications/prompts/list_changed"


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files into a folder, without changing line breaks, and return the folder."""
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def write_twig_library(folder: Path, texts: Mapping[str, str | bytes], arguments: str = "") -> Path:
    """Write a library whose manifest lists these prompts, each with the same optional arguments."""
    manifest = twig_manifest(*texts, arguments=arguments)
    return write_files(
        folder, {f"prompts/{key}.md": text for key, text in texts.items()} | {"twig.toml": manifest}
    )


def twig_manifest(*keys: str, arguments: str = "") -> str:
    """Return a `twig.toml` that lists prompts with these keys."""
    return "".join(
        f'[prompts."{key}"]\n'
        + "".join(f'[[prompts."{key}".arguments]]\nname = "{name}"\n' for name in arguments.split())
        for key in keys
    )


class TooLate(AssertionError):
    """A notification did not arrive in time. The machine may be busy."""


class Machine:
    """The home folder of a test, with the folders in which a server finds libraries."""

    def __init__(
        self, root: Path, *, transport: Transport = "stdio", location: WorkspaceLocation | None = None
    ) -> None:
        self.root = root
        self.location = root if location is None else location
        self.transport = transport
        self.home = root / "dittybag"
        #: Dittybag's own libraries, in every profile.
        self.libraries = self.home / "libraries"
        #: The libraries of Twig, in its profile.
        self.twig_libraries = root / "twig"

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.root),
            "DITTYBAG_HOME": str(self.home),
            "TWIG_DATA_DIR": str(self.twig_libraries),
        }

    def link(self, folder: Path, name: str) -> None:
        """Link a folder as a library."""
        self.run("library", "add", str(folder), "--link", "--name", name)

    def run(self, *arguments: str) -> None:
        """Run a command with this home folder."""
        forked_processes.run("dittybag", *arguments, env={**os.environ, **self.env}).check_returncode()

    def libraries_of(self, profile: str) -> Path:
        """Return the library folder of a profile."""
        return self.twig_libraries if profile == "twig" else self.libraries


class LibraryClient:
    """A client of either era that receives notifications about the list of prompts."""

    def __init__(
        self,
        machine: Machine,
        profile: str = "twig",
        *,
        version: str = ERAS[0],
        prefix: Sequence[str] = (),
    ) -> None:
        self.version = version
        #: When each notification arrived.
        self.notification_times: list[float] = []
        options = ("--profile", profile, *database(machine.location))
        self._wire = StdioServerProcess("dittybag", "serve", *options, env=machine.env, prefix=prefix)
        self._ids = count(1)
        assert self._wire.process.stderr is not None
        self._stderr = StderrLines(self._wire.process.stderr)

    def __enter__(self) -> Self:
        if self.version != STATELESS:
            self._wire.handshake(self.version)
            return self
        wanted = {"notifications": {"promptsListChanged": True}, "_meta": ENVELOPE}
        request = {"jsonrpc": "2.0", "id": "listening", "method": "subscriptions/listen", "params": wanted}
        self._wire.send(msgspec.json.encode(request))
        assert self._wire.message()["method"] == "notifications/subscriptions/acknowledged"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wire.__exit__(kind, error, trace)

    def ask(self, method: str, params: Json | None = None, *, seconds: float = 10.0) -> Any:
        """Send a request and return the response. Fails if it does not arrive in time."""
        meta = {"_meta": ENVELOPE} if self.version == STATELESS else {}
        identity = next(self._ids)
        request = {"jsonrpc": "2.0", "id": identity, "method": method, "params": (params or {}) | meta}
        self._wire.send(msgspec.json.encode(request))
        deadline = time.monotonic() + seconds
        while (response := self._wire.message(deadline - time.monotonic())).get("id") != identity:
            self._record_notification(response)
        return response

    def names(self) -> list[str]:
        """Return the names of the prompts on the first page, in order."""
        return [prompt["name"] for prompt in self.ask("prompts/list")["result"]["prompts"]]

    def get(self, name: str, *, seconds: float = 10.0) -> Any:
        """Request a prompt and return the response."""
        return self.ask("prompts/get", {"name": name}, seconds=seconds)

    def text(self, name: str, *, seconds: float = 10.0) -> str:
        response = self.get(name, seconds=seconds)
        assert "result" in response, response
        (message,) = response["result"]["messages"]
        text: str = message["content"]["text"]
        return text

    def details(self, name: str) -> str:
        """Request a prompt that fails and return the details of the error."""
        error = self.get(name)["error"]
        details: str = error.get("data", {}).get("details", error["message"])
        return details

    def wait_for_notification(self, seconds: float) -> float:
        """Wait for the next notification and return its time. Raises `TooLate` after `seconds`."""
        known = len(self.notification_times)
        deadline = time.monotonic() + seconds
        while len(self.notification_times) == known:
            try:
                message = self._wire.message(deadline - time.monotonic())
            except AssertionError as error:
                if self._wire.process.poll() is not None:
                    raise
                raise TooLate(f"no notification within {seconds} s") from error
            self._record_notification(message)
        return self.notification_times[-1]

    def texts(self) -> dict[str, str | None]:
        """Return the texts of all prompts by name, `None` for prompts that fail."""
        responses = {name: self.get(name) for name in self.names()}
        return {
            name: response["result"]["messages"][0]["content"]["text"] if "result" in response else None
            for name, response in responses.items()
        }

    def wait_for_stderr(self, *words: str, seconds: float = 2.0) -> str:
        """Return the first line on standard error with all of these words. Fails if none arrives in time."""
        return self._stderr.wait_for(*words, seconds=seconds)

    def _record_notification(self, message: Json) -> None:
        assert message["method"] == LIST_CHANGED, message
        self.notification_times.append(time.monotonic())
        if self.version == STATELESS:
            subscription = {"io.modelcontextprotocol/subscriptionId": "listening"}
            assert message["params"] == {"_meta": subscription}
