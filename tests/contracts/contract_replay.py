"""The examples in a contract document, and servers to replay them on."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final, Literal, NamedTuple, Protocol, Self, TypeVar

import msgspec

from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.contracts.http_server_process import HttpServerProcess, McpHttpClient, StderrLines
from tests.forked_processes import run
from tests.stdio_server_process import StdioServerProcess

Json = dict[str, Any]
Test = TypeVar("Test", bound=Callable[..., object])

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
#: Versions to request in `initialize`: all known ones, an unknown one and none.
REQUESTED_VERSIONS = (*HANDSHAKE_VERSIONS, "1999-12-31", None)

#: Members that a listed tool may have in addition to those in its contract.
TOOL_ADDITIONS = {"title", "annotations", "outputSchema"}

#: Members that may contain null: tasks have nulls, and schemas allow null.
NULLS_ALLOWED = {"structuredContent", "inputSchema", "outputSchema"}

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Contract:
    """A contract document: its fenced examples by heading and label, and the test that replays each."""

    def __init__(self, file: str) -> None:
        self.text = Path(__file__).with_name(file).read_text()
        self.examples = dict(_examples(self.text))
        self.manifest: dict[str, str] = {}

    def __getitem__(self, key: str) -> Any:
        """Return the JSON value of an example; for an HTTP message, of its body."""
        return msgspec.json.decode(_without_ellipses(self.examples[key]))

    def replays(self, *keys: str) -> Callable[[Test], Test]:
        """Decorate a test that replays these examples."""

        def decorate(test: Test) -> Test:
            self.record(test.__name__, *keys)
            return test

        return decorate

    def record(self, replayed_by: str, *keys: str) -> None:
        """Record what replays these examples, or why nothing does."""
        assert self.examples.keys() >= set(keys), set(keys) - self.examples.keys()
        self.manifest |= dict.fromkeys(keys, replayed_by)

    def unreplayed(self) -> list[str]:
        return [key for key in self.examples if key not in self.manifest]


def _examples(document: str) -> Iterator[tuple[str, str]]:
    """Yield every fenced block with its key, `heading > subheading > label`; comments separate values."""
    seen: dict[str, int] = {}
    headings: list[str] = []
    label = ""
    lines = iter(document.splitlines())
    for line in lines:
        if heading := re.match(r"(##+) (.*)", line):
            headings = [*headings[: len(heading[1]) - 2], heading[2].replace("`", "")]
            label = ""
        elif not line.startswith("```"):
            label = line.strip() or label
            continue
        else:
            block = "\n".join(iter(lambda: next(lines), "```"))
            path = [*headings, re.sub(r"[*:]+", "", label)] if label else headings
            for comment, text in _parts(block):
                key = " > ".join([*path, comment] if comment else path)
                seen[key] = seen.get(key, 0) + 1
                yield key if seen[key] == 1 else f"{key} ({seen[key]})", text


def _parts(block: str) -> Iterator[tuple[str, str]]:
    """Yield the values of a block, each with the comment above it; without comments, the whole block."""
    first, *rest = re.split(r"^// (\w+)\n", block, flags=re.MULTILINE)
    if first.strip():
        yield "", block
    else:
        yield from zip(rest[::2], rest[1::2], strict=True)


def _without_ellipses(text: str) -> str:
    """Return the JSON of an example without HTTP headers and without ellipses."""
    body = text.rpartition("\n\n")[2] if "HTTP/1.1" in text else text
    return re.sub(r",\s*\.\.\. \(\d+ more tools\)", "", body.replace("{ ... }", "{}"))


def compact(value: Any) -> str:
    """Encode a value as `JSON.stringify` does."""
    return msgspec.json.encode(value).decode()


def without_additions(tool: Json) -> Json:
    """Return a listed tool without members that are not in its contract."""
    return {key: value for key, value in tool.items() if key not in TOOL_ADDITIONS}


def mask_times(text: str) -> str:
    """Replace every time in a text with `<time>`."""
    return TIME.sub("<time>", text)


def dittybag(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command and check its exit status."""
    done = run("dittybag", *arguments)
    assert done.returncode == status, done
    return done


#: The directory of a database file, or a database URL.
WorkspaceLocation = Path | str


def database(location: WorkspaceLocation) -> tuple[str, str]:
    """Return the `--db` option for a location."""
    return "--db", location if isinstance(location, str) else str(location / "dittybag.db")


def create_workspace(folder: Path) -> None:
    """Create a database with nothing but the default project."""
    asyncio.run(SqliteStore(database(folder)[1]).close())


def create_project(location: WorkspaceLocation, name: str) -> None:
    dittybag("project", "create", name, *database(location))


def initialize(version: str | None) -> Json:
    """Return an `initialize` request for this protocol version, or without a version."""
    return {"method": "initialize", "params": {} if version is None else {"protocolVersion": version}}


Transport = Literal["stdio", "http"]
Backend = Literal["sqlite", "postgres"]


class ServerVariant(NamedTuple):
    """The transport and the database of a server."""

    transport: Transport = "stdio"
    backend: Backend = "sqlite"

    def __str__(self) -> str:
        return self.transport if self.backend == "sqlite" else f"{self.transport}-{self.backend}"


#: The variants that contracts are replayed on.
VARIANTS: Final = (
    ServerVariant("stdio"),
    ServerVariant("http"),
    ServerVariant("stdio", "postgres"),
    ServerVariant("http", "postgres"),
)


class ServerConnection(Protocol):
    """A connection to a server."""

    def exchange(self, frame: bytes) -> Any:
        """Send a frame and return the next message."""
        ...

    def message(self) -> Any:
        """Return the next message."""
        ...

    def notify(self, frame: bytes) -> None:
        """Send a frame that has no response."""
        ...

    def wait_for_stderr(self, *words: str) -> str:
        """Return the first line on standard error with all of these words."""
        ...

    def end(self) -> str:
        """Stop the server and return its standard error."""
        ...

    def close(self) -> None: ...


class StdioConnection:
    """A connection to a server process of its own."""

    def __init__(self, *arguments: str, env: Mapping[str, str]) -> None:
        self._wire = StdioServerProcess("dittybag", "serve", *arguments, env=dict(env))
        assert self._wire.process.stderr is not None
        self._stderr = StderrLines(self._wire.process.stderr)

    def exchange(self, frame: bytes) -> Any:
        self._wire.send(frame)
        return self._wire.message()

    def message(self) -> Any:
        return self._wire.message()

    def notify(self, frame: bytes) -> None:
        self._wire.send(frame)

    def wait_for_stderr(self, *words: str) -> str:
        return self._stderr.wait_for(*words)

    def end(self) -> str:
        self._wire.hang_up()
        return self._stderr.all_output(self._wire.rest()[1].encode())

    def close(self) -> None:
        self._wire.__exit__(None, None, None)


class HttpConnection:
    """A connection to an HTTP server that other clients may use too."""

    def __init__(self, host: HttpServerProcess) -> None:
        self._host = host
        self._client = McpHttpClient(host)
        self.exchange = self._client.exchange
        self.notify = self._client.notify
        self.wait_for_stderr = host.stderr.wait_for

    def message(self) -> Any:
        raise AssertionError("a response over HTTP has one message only")

    def end(self) -> str:
        _, out, err = self._host.end()
        assert out == ""
        listens, pages, *rest = err.splitlines(keepends=True)
        assert listens.startswith("Dittybag is listening on "), err
        assert pages.startswith("Web UI: "), err
        return "".join(rest)

    def close(self) -> None:
        self._client.close()


class SharedServers:
    """HTTP servers that tests with the same arguments share."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._started: dict[tuple[object, ...], HttpServerProcess] = {}

    def get_or_start(self, *arguments: str, env: Mapping[str, str]) -> HttpServerProcess:
        key = (arguments, *env.items())
        if key not in self._started:
            self._started[key] = self._stack.enter_context(HttpServerProcess(*arguments, env=env))
        return self._started[key]

    def close(self) -> None:
        self._stack.close()


class ServerUnderTest:
    """A client session with `dittybag serve` on the database at a location."""

    def __init__(
        self,
        location: WorkspaceLocation,
        profile: str = "all",
        *options: str,
        first_request: Json | None = None,
        env: Mapping[str, str] = MappingProxyType({}),
        transport: Transport = "stdio",
        hosts: SharedServers | None = None,
    ) -> None:
        """`hosts`: over HTTP, use a server from there and leave it running."""
        self.profile = profile
        self.first_response: Json = {}
        self._arguments = ("--profile", profile, *database(location), *options)
        self._env = env
        self._transport = transport
        self._hosts = hosts
        self._stack = ExitStack()
        self._hello = first_request or initialize(HANDSHAKE_VERSIONS[-1])
        self._ids = count(1)

    def __enter__(self) -> Self:
        with self._stack:
            self._connection = self._connect()
            self._stack.callback(self._connection.close)
            self.first_response = self.ask(self._hello)
            if self._hello["method"] == "initialize":
                self._connection.notify(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _connect(self) -> ServerConnection:
        if self._transport == "stdio":
            return StdioConnection(*self._arguments, env=self._env)
        if self._hosts is not None:
            return HttpConnection(self._hosts.get_or_start(*self._arguments, env=self._env))
        return HttpConnection(self._stack.enter_context(HttpServerProcess(*self._arguments, env=self._env)))

    def wait_for_stderr(self, *words: str) -> str:
        """Return the first line on standard error with all of these words."""
        return self._connection.wait_for_stderr(*words)

    def end(self) -> str:
        """Stop the server and return its standard error."""
        return self._connection.end()

    def ask(self, message: Json) -> Any:
        """Send a request, with an envelope if it has none; return the response, which must have no nulls."""
        request = {"jsonrpc": "2.0", "id": next(self._ids), **message}
        response = self.raw(msgspec.json.encode(request))
        while str(response.get("method")).endswith("/list_changed"):
            # None of the contracts replayed here has notifications.
            assert self.profile in ("all", "agent"), response
            response = self._connection.message()
        assert response.get("id") == request["id"], response
        assert not _has_null(response), response
        return response

    def raw(self, frame: bytes) -> Any:
        """Send any frame and return the response."""
        return self._connection.exchange(frame)

    def request(self, method: str, params: Json | None = None) -> Any:
        response = self.ask({"method": method, "params": params or {}})
        assert "result" in response, response
        return response["result"]

    def error(self, method: str, params: Json | None = None) -> Any:
        return self.ask({"method": method, "params": params or {}})["error"]

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool and return the result."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def text(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool that succeeds and return its text."""
        return _text(self.call(tool, **arguments), is_error=False)

    def data(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool that succeeds and return its JSON."""
        return msgspec.json.decode(self.text(tool, **arguments))

    def refusal(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool that fails and return its error text."""
        return _text(self.call(tool, **arguments), is_error=True)

    def tools(self) -> dict[str, Json]:
        """Return the tools by name, in list order."""
        listed = self.request("tools/list")["tools"]
        assert len({tool["name"] for tool in listed}) == len(listed)
        return {tool["name"]: tool for tool in listed}


#: Starts a server that runs until the test ends.
StartServer = Callable[..., ServerUnderTest]


def add_prompt(
    server: ServerUnderTest, title: str, content: str = "Words", tags: list[str] | None = None
) -> str:
    """Store a prompt with the prompt-store tool and return its id."""
    identity: str = server.data("add_prompt", title=title, content=content, tags=tags)["id"]
    return identity


def titles(response: Json) -> list[str]:
    return [prompt["title"] for prompt in response["prompts"]]


def contents(server: ServerUnderTest) -> list[str]:
    """Return the contents of all prompts from `prompts/get`."""
    names = [prompt["name"] for prompt in server.request("prompts/list")["prompts"]]
    prompts = [server.request("prompts/get", {"name": name}) for name in names]
    return [prompt["messages"][0]["content"]["text"] for prompt in prompts]


def failure(text: str) -> tuple[str, str]:
    """Return the code and the message of a JSON error."""
    error = msgspec.json.decode(text)["error"]
    return error["code"], error["message"]


def _text(result: Json, *, is_error: bool) -> str:
    assert result["isError"] is is_error, result
    (content,) = result["content"]
    assert content["type"] == "text"
    text: str = content["text"]
    return text


def _has_null(value: Any) -> bool:
    """Whether a value contains a null where the protocol allows none."""
    if isinstance(value, dict):
        return any(_has_null(item) for key, item in value.items() if key not in NULLS_ALLOWED)
    return any(map(_has_null, value)) if isinstance(value, list) else value is None
