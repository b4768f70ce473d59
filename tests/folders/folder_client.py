"""A client of a stdio server that was started in a folder, and folders to start it in."""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from tests.cli.cli_runner import data
from tests.folders.project_server import PROFILE
from tests.forked_processes import run
from tests.programs import GIT
from tests.stdio_server_process import StdioServerProcess

Json = dict[str, Any]

ROOTS_CHANGED = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
META = "io.modelcontextprotocol/"


class Machine:
    """A data folder and a home folder for folders, servers and commands."""

    def __init__(self, path: Path) -> None:
        # The temporary folder may be a link itself.
        self.path = path.resolve()
        self.data = self.path / "data"
        self.home = self.folder("home")

    def folder(self, *parts: str) -> Path:
        """Return a folder, created if it is missing."""
        folder = self.path.joinpath(*parts)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def repository(self, *parts: str) -> Path:
        """Return a folder that looks like the top of a repository."""
        folder = self.folder(*parts)
        (folder / ".git").mkdir()
        return folder

    @property
    def environment(self) -> dict[str, str]:
        return {"DITTYBAG_HOME": str(self.data), "HOME": str(self.home), "CLAUDE_PROJECT_DIR": ""}

    def connect(self, folder: Path | str, *options: str, **more: Any) -> FolderClient:
        """Start a server with `--project auto` in a folder, and connect to it."""
        return FolderClient(self, Path(folder), "--project", "auto", *options, **more)

    def write(self, folder: Path | str, name: str = "note", *options: str, **more: Any) -> str:
        """Save a prompt from a folder, and return the project that it was saved in."""
        with self.connect(folder, *options, **more) as client:
            return client.save(name)

    def read(self, folder: Path | str, *options: str, **more: Any) -> list[str]:
        """Return the names of the prompts that a client in a folder sees."""
        with self.connect(folder, *options, **more) as client:
            return client.prompts()

    def command(self, folder: Path, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command in a folder."""
        environment = {**self.environment, "NO_COLOR": "1", "PATH": "/usr/bin:/bin"}
        result = run("dittybag", *arguments, env=environment, cwd=folder)
        assert result.returncode == status, result
        return result

    def projects(self) -> dict[str, list[str]]:
        """Return the folders of every project except the default one."""
        listed = data(self.command(self.path, "project", "list", "--json"))["projects"]
        return {row["name"]: row["folders"] for row in listed if row["name"] != "default"}

    def git(self, folder: Path, *arguments: str) -> None:
        """Run Git without the settings of the user. Without Git, the test is skipped."""
        options = ("-c", "user.name=x", "-c", "user.email=x@y", "-c", "protocol.file.allow=always")
        command = (GIT.require(), *options, *arguments)
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)

    def checkout(self, *parts: str) -> Path:
        """Return a repository that Git has made, with a commit."""
        folder = self.folder(*parts)
        self.git(folder, "init", "-q")
        (folder / "file").write_text("x")
        self.git(folder, "add", "file")
        self.git(folder, "commit", "-q", "-m", "x")
        return folder


class McpCalls(ABC):
    """What a client asks a server for."""

    @abstractmethod
    def ask(self, method: str, params: Json | None = None) -> Json:
        """Return the result of a request."""

    def call(self, tool: str, **arguments: Any) -> Json:
        """Return the data of a successful call."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result["isError"], result
        structured: Json = result["structuredContent"]
        return structured

    def refusal(self, tool: str, **arguments: Any) -> str:
        """Return the text of a call that fails."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert result["isError"], result
        return str(result["content"][0]["text"])

    def save(self, name: str) -> str:
        """Save a prompt, and return the name of its project."""
        return str(self.call("create_prompt", name=name, content="x")["project"])

    def prompts(self) -> list[str]:
        return [item["name"] for item in self.ask("prompts/list")["prompts"]]


class FolderClient(McpCalls):
    """A client that answers the server's questions about its roots, in either era."""

    def __init__(
        self,
        machine: Machine,
        folder: Path,
        *options: str,
        roots: Sequence[str] | None = None,
        roots_error: bool = False,
        is_silent: bool = False,
        stateless: bool = False,
        env: dict[str, str] | None = None,
    ) -> None:
        """`roots`: the URIs of its roots; `None` if it has no such capability.

        `roots_error`: it answers with an error. `is_silent`: it does not answer.
        """
        self.roots = roots
        self.notifications: deque[str] = deque()
        #: How often the server has asked for the roots.
        self.questions = 0
        self._roots_error = roots_error
        self._is_silent = is_silent
        self._stateless = stateless
        self._capabilities: Json = {} if roots is None else {"roots": {"listChanged": True}}
        self._wire = StdioServerProcess(
            "tests.folders.project_server",
            "serve",
            "--profile",
            PROFILE,
            *options,
            env={**machine.environment, **(env or {})},
            cwd=folder,
        )
        self._last = 0
        if not stateless:
            self._wire.handshake(capabilities=self._capabilities)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wire.__exit__(kind, error, trace)

    def send(self, message: Json) -> None:
        self._wire.send(msgspec.json.encode(message))

    def change_roots(self, *uris: str) -> None:
        self.roots = uris
        self.send(ROOTS_CHANGED)

    def request(self, method: str, params: Json) -> int:
        """Send a request and return its id."""
        self._last += 1
        if self._stateless:
            meta = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": self._capabilities}
            params = {**params, "_meta": meta}
        self.send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        return self._last

    def response(self, request_id: int) -> Json:
        """Return the response to a request. Questions on the way are answered, notifications collected."""
        while True:
            message: Json = self._wire.message()
            if "method" not in message:
                assert message["id"] == request_id, message
                return message
            if "id" not in message:
                self.notifications.append(message["method"])
                continue
            assert message["method"] == "roots/list"
            self.questions += 1
            if self._is_silent:
                continue
            error = {"error": {"code": -32603, "message": "no roots"}}
            answer = error if self._roots_error else {"result": self._answer()}
            self.send({"jsonrpc": "2.0", "id": message["id"], **answer})

    def _answer(self) -> Json:
        assert self.roots is not None, "the client declares no roots"
        return {"roots": [{"uri": uri} for uri in self.roots]}

    def ask(self, method: str, params: Json | None = None) -> Json:
        params = params or {}
        message = self.response(self.request(method, params))
        assert "error" not in message, message
        result: Json = message["result"]
        if result.get("resultType") == "input_required":
            assert {item["method"] for item in result["inputRequests"].values()} == {"roots/list"}
            self.questions += 1
            answers = {key: self._answer() for key in result["inputRequests"]}
            more = {"inputResponses": answers, "requestState": result["requestState"]}
            return self.ask(method, {**params, **more})
        return result

    def listen(self) -> None:
        """Subscribe to changes of lists, as clients of the stateless revision do."""
        wanted = {"promptsListChanged": True, "resourcesListChanged": True}
        self.request("subscriptions/listen", {"notifications": wanted})
        assert self._wire.message()["method"] == "notifications/subscriptions/acknowledged"

    def wait_for(self, *methods: str) -> None:
        """Wait for these notifications."""
        missing = set(methods) - set(self.notifications)
        while missing:
            message = self._wire.message()
            assert "id" not in message, message
            missing.discard(message["method"])
        self.notifications.clear()
