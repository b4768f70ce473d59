"""Libraries for tests: on disk, and as a client sees them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from tests.contracts.over_http import Complaints
from tests.contracts.replay import HANDSHAKE_VERSIONS, Json, Place, Transport, database
from tests.wire import ROOT, Wire

STATELESS = "2026-07-28"
#: One version of each way to speak.
ERAS = (HANDSHAKE_VERSIONS[-1], STATELESS)
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
}
#: Where nothing is agreed on, this is how a client begins.
DISCOVER: Json = {"method": "server/discover", "params": {"_meta": ENVELOPE}}
LIST_CHANGED = "notifications/prompts/list_changed"


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Put files into a folder; line breaks stay as they are."""
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def twig(folder: Path, texts: Mapping[str, str | bytes], arguments: str = "") -> Path:
    """A library whose manifest lists these prompts, each with the same optional arguments."""
    lists = manifest(*texts, arguments=arguments)
    return write(folder, {f"prompts/{key}.md": text for key, text in texts.items()} | {"twig.toml": lists})


def manifest(*keys: str, arguments: str = "") -> str:
    """A `twig.toml` that lists prompts with these keys."""
    return "".join(
        f'[prompts."{key}"]\n'
        + "".join(f'[[prompts."{key}".arguments]]\nname = "{name}"\n' for name in arguments.split())
        for key in keys
    )


class Late(AssertionError):
    """What was promised has not come in time. The machine may have been busy."""


class Machine:
    """Where a server finds its libraries: a home of its own for every test."""

    def __init__(self, root: Path, *, transport: Transport = "stdio", place: Place | None = None) -> None:
        self.root = root
        #: Where its workspace is.
        self.place = root if place is None else place
        #: How its servers are spoken to.
        self.transport = transport
        self.home = root / "dittybag"
        #: Dittybag's own libraries, in every profile.
        self.libraries = self.home / "libraries"
        #: Those of Twig, in its profile.
        self.foreign = root / "twig"

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.root),
            "DITTYBAG_HOME": str(self.home),
            "TWIG_DATA_DIR": str(self.foreign),
        }

    def link(self, folder: Path, name: str) -> None:
        """Have a folder served where it is."""
        self.run("library", "add", str(folder), "--link", "--name", name)

    def run(self, *arguments: str) -> None:
        """Run a command on this machine."""
        command = [sys.executable, "-m", "dittybag", *arguments]
        env = {**os.environ, **self.env}
        subprocess.run(command, env=env, cwd=ROOT, capture_output=True, timeout=30, check=True)

    def serves_in(self, profile: str) -> Path:
        """Where the users of a profile keep their libraries."""
        return self.foreign if profile == "twig" else self.libraries


class Client:
    """A client that also hears when the list of prompts changes, in either of the two ways there are."""

    def __init__(self, machine: Machine, profile: str = "twig", *, version: str = ERAS[0]) -> None:
        self.version = version
        #: When it was told that the list has changed.
        self.news: list[float] = []
        options = ("--profile", profile, *database(machine.place))
        self._wire = Wire("dittybag", "serve", *options, env=machine.env)
        self._ids = count(1)
        assert self._wire.process.stderr is not None
        self._complaints = Complaints(self._wire.process.stderr)

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
        """The answer to a request, which comes in time."""
        meta = {"_meta": ENVELOPE} if self.version == STATELESS else {}
        identity = next(self._ids)
        request = {"jsonrpc": "2.0", "id": identity, "method": method, "params": (params or {}) | meta}
        self._wire.send(msgspec.json.encode(request))
        deadline = time.monotonic() + seconds
        while (answer := self._wire.message(deadline - time.monotonic())).get("id") != identity:
            self._note(answer)
        return answer

    def names(self) -> list[str]:
        """The names of the prompts on the first page, in order."""
        return [prompt["name"] for prompt in self.ask("prompts/list")["result"]["prompts"]]

    def get(self, name: str, *, seconds: float = 10.0) -> Any:
        """The answer to a request for a prompt."""
        return self.ask("prompts/get", {"name": name}, seconds=seconds)

    def text(self, name: str, *, seconds: float = 10.0) -> str:
        answer = self.get(name, seconds=seconds)
        assert "result" in answer, answer
        (message,) = answer["result"]["messages"]
        text: str = message["content"]["text"]
        return text

    def details(self, name: str) -> str:
        """Why a prompt cannot be given."""
        error = self.get(name)["error"]
        details: str = error.get("data", {}).get("details", error["message"])
        return details

    def told(self, seconds: float) -> float:
        """When it is told of the next change, which is within so many seconds."""
        heard = len(self.news)
        deadline = time.monotonic() + seconds
        while len(self.news) == heard:
            try:
                message = self._wire.message(deadline - time.monotonic())
            except AssertionError as error:
                if self._wire.process.poll() is not None:
                    raise
                raise Late(f"not told within {seconds} s") from error
            self._note(message)
        return self.news[-1]

    def shown(self) -> dict[str, str | None]:
        """The texts of all prompts by their names; nothing for one that cannot be given."""
        answers = {name: self.get(name) for name in self.names()}
        return {
            name: answer["result"]["messages"][0]["content"]["text"] if "result" in answer else None
            for name, answer in answers.items()
        }

    def complains(self, *words: str, seconds: float = 2.0) -> str:
        """A line of standard error with all of these words, which comes in time."""
        return self._complaints.line(*words, seconds=seconds)

    def _note(self, message: Json) -> None:
        assert message["method"] == LIST_CHANGED, message
        self.news.append(time.monotonic())
        if self.version == STATELESS:
            subscription = {"io.modelcontextprotocol/subscriptionId": "listening"}
            assert message["params"] == {"_meta": subscription}
