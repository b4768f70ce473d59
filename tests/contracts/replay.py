"""What the replays of the contracts share: a document's examples, and servers to send them to."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final, Literal, NamedTuple, Protocol, Self, TypeVar

import msgspec

from tests.contracts.over_http import Complaints, Host, HttpClient
from tests.wire import ROOT, Wire

Json = dict[str, Any]
Test = TypeVar("Test", bound=Callable[..., object])

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
#: Versions to ask for in `initialize`: all that are known, one that is not, none at all.
REQUESTED_VERSIONS = (*HANDSHAKE_VERSIONS, "1999-12-31", None)

#: What a listed tool may have beside what its contract says.
TOOL_ADDITIONS = {"title", "annotations", "outputSchema"}

#: Members with words of their own: a task's nulls are kept, and a schema may speak of null.
FOREIGN = {"structuredContent", "inputSchema", "outputSchema"}

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Contract:
    """A contract's document: its fenced examples by heading and label, and which test replays each."""

    def __init__(self, file: str) -> None:
        self.text = Path(__file__).with_name(file).read_text()
        self.examples = dict(_examples(self.text))
        self.manifest: dict[str, str] = {}

    def __getitem__(self, key: str) -> Any:
        """The JSON value of an example; of an HTTP message, its body."""
        return msgspec.json.decode(_unabridged(self.examples[key]))

    def replays(self, *keys: str) -> Callable[[Test], Test]:
        """Enter a test into the manifest as the one that replays these examples."""

        def entered(test: Test) -> Test:
            self.set_aside(test.__name__, *keys)
            return test

        return entered

    def set_aside(self, instead: str, *keys: str) -> None:
        """Enter into the manifest what stands for these examples, or why nothing does."""
        assert self.examples.keys() >= set(keys), set(keys) - self.examples.keys()
        self.manifest |= dict.fromkeys(keys, instead)

    def unclaimed(self) -> list[str]:
        return [key for key in self.examples if key not in self.manifest]


def _examples(document: str) -> Iterator[tuple[str, str]]:
    """Every fenced block under `heading > subheading > label`; several values are split at their comments."""
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
            place = [*headings, re.sub(r"[*:]+", "", label)] if label else headings
            for comment, text in _parts(block):
                key = " > ".join([*place, comment] if comment else place)
                seen[key] = seen.get(key, 0) + 1
                yield key if seen[key] == 1 else f"{key} ({seen[key]})", text


def _parts(block: str) -> Iterator[tuple[str, str]]:
    """A block's values: each with the comment above it, or the whole block without one."""
    first, *rest = re.split(r"^// (\w+)\n", block, flags=re.MULTILINE)
    if first.strip():
        yield "", block
    else:
        yield from zip(rest[::2], rest[1::2], strict=True)


def _unabridged(text: str) -> str:
    """The JSON of an example without HTTP's head and without the places where it leaves something out."""
    body = text.rpartition("\n\n")[2] if "HTTP/1.1" in text else text
    return re.sub(r",\s*\.\.\. \(\d+ more tools\)", "", body.replace("{ ... }", "{}"))


def compact(value: Any) -> str:
    """JSON as `JSON.stringify` writes it."""
    return msgspec.json.encode(value).decode()


def contracted(tool: Json) -> Json:
    """A listed tool without what its contract knows nothing of."""
    return {key: value for key, value in tool.items() if key not in TOOL_ADDITIONS}


def timeless(text: str) -> str:
    """The text with every time replaced by the same word."""
    return TIME.sub("<time>", text)


def dittybag(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, which must have this exit status."""
    command = [sys.executable, "-m", "dittybag", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == status, done
    return done


#: Where a workspace is: a directory with a file in it, or a URL.
Place = Path | str


def database(place: Place) -> tuple[str, str]:
    """The option that names the database in a place."""
    return "--db", place if isinstance(place, str) else str(place / "dittybag.db")


def create_project(place: Place, name: str) -> None:
    dittybag("project", "create", name, *database(place))


def initialize(version: str | None) -> Json:
    """The request that opens a session and asks for this version of the protocol, or for none."""
    return {"method": "initialize", "params": {} if version is None else {"protocolVersion": version}}


Transport = Literal["stdio", "http"]
Backend = Literal["sqlite", "postgres"]


class Way(NamedTuple):
    """How a server is spoken to, and where it keeps things."""

    transport: Transport = "stdio"
    backend: Backend = "sqlite"

    def __str__(self) -> str:
        return self.transport if self.backend == "sqlite" else f"{self.transport}-{self.backend}"


#: Those that contracts are replayed on.
WAYS: Final = (Way("stdio"), Way("http"), Way("stdio", "postgres"), Way("http", "postgres"))


class Line(Protocol):
    """A way to a server, which is there until it is closed."""

    def exchange(self, frame: bytes) -> Any:
        """Send a frame; the next message."""
        ...

    def message(self) -> Any:
        """One more message."""
        ...

    def notify(self, frame: bytes) -> None:
        """Send a frame that has no answer."""
        ...

    def complaint(self, *words: str) -> str:
        """What the server says on standard error, as soon as it is something with these words."""
        ...

    def end(self) -> str:
        """End the server in the usual way; what it has said on standard error."""
        ...

    def close(self) -> None: ...


class StdioLine:
    """To a server of one's own."""

    def __init__(self, *arguments: str, env: Mapping[str, str]) -> None:
        self._wire = Wire("dittybag", "serve", *arguments, env=dict(env))
        assert self._wire.process.stderr is not None
        self._complaints = Complaints(self._wire.process.stderr)

    def exchange(self, frame: bytes) -> Any:
        self._wire.send(frame)
        return self._wire.message()

    def message(self) -> Any:
        return self._wire.message()

    def notify(self, frame: bytes) -> None:
        self._wire.send(frame)

    def complaint(self, *words: str) -> str:
        return self._complaints.line(*words)

    def end(self) -> str:
        self._wire.hang_up()
        return self._complaints.whole(self._wire.rest()[1].encode())

    def close(self) -> None:
        self._wire.__exit__(None, None, None)


class HttpLine:
    """To a host that other clients may use as well."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._client = HttpClient(host)
        self.exchange = self._client.exchange
        self.notify = self._client.notify
        self.complaint = host.complaints.line

    def message(self) -> Any:
        raise AssertionError("an answer over HTTP has nothing but the answer")

    def end(self) -> str:
        _, out, err = self._host.end()
        assert out == ""
        listens, pages, *rest = err.splitlines(keepends=True)
        assert listens.startswith("Dittybag listens at "), err
        assert pages.startswith("Its pages for people: "), err
        return "".join(rest)

    def close(self) -> None:
        self._client.close()


class Hosts:
    """Hosts that are shared by all who would start them with the same words, until they are closed."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._started: dict[tuple[object, ...], Host] = {}

    def host(self, *arguments: str, env: Mapping[str, str]) -> Host:
        key = (arguments, *env.items())
        if key not in self._started:
            self._started[key] = self._stack.enter_context(Host(*arguments, env=env))
        return self._started[key]

    def close(self) -> None:
        self._stack.close()


class Server:
    """`dittybag serve` on the database in a place, with a session opened."""

    def __init__(
        self,
        place: Place,
        profile: str = "all",
        *options: str,
        hello: Json | None = None,
        env: Mapping[str, str] = MappingProxyType({}),
        transport: Transport = "stdio",
        hosts: Hosts | None = None,
    ) -> None:
        """`hosts`: over HTTP, take the server from there, and leave it running."""
        self.profile = profile
        self.introduction: Json = {}
        self._arguments = ("--profile", profile, *database(place), *options)
        self._env = env
        self._transport = transport
        self._hosts = hosts
        self._stack = ExitStack()
        self._hello = hello or initialize(HANDSHAKE_VERSIONS[-1])
        self._ids = count(1)

    def __enter__(self) -> Self:
        with self._stack:
            self._line = self._opened()
            self._stack.callback(self._line.close)
            self.introduction = self.ask(self._hello)
            if self._hello["method"] == "initialize":
                self._line.notify(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _opened(self) -> Line:
        if self._transport == "stdio":
            return StdioLine(*self._arguments, env=self._env)
        if self._hosts is not None:
            return HttpLine(self._hosts.host(*self._arguments, env=self._env))
        return HttpLine(self._stack.enter_context(Host(*self._arguments, env=self._env)))

    def complaint(self, *words: str) -> str:
        """What it says on standard error, as soon as it is something with these words."""
        return self._line.complaint(*words)

    def end(self) -> str:
        """End it in the usual way; what it has said on standard error."""
        return self._line.end()

    def ask(self, message: Json) -> Any:
        """The answer to a request, in an envelope if the request has none. No answer holds a null."""
        request = {"jsonrpc": "2.0", "id": next(self._ids), **message}
        answer = self.raw(msgspec.json.encode(request))
        while str(answer.get("method")).endswith("/list_changed"):
            # None of the contracts replayed here has notifications.
            assert self.profile == "all", answer
            answer = self._line.message()
        assert answer.get("id") == request["id"], answer
        assert not _has_null(answer), answer
        return answer

    def raw(self, frame: bytes) -> Any:
        """The answer to a frame of any kind."""
        return self._line.exchange(frame)

    def request(self, method: str, params: Json | None = None) -> Any:
        answer = self.ask({"method": method, "params": params or {}})
        assert "result" in answer, answer
        return answer["result"]

    def error(self, method: str, params: Json | None = None) -> Any:
        return self.ask({"method": method, "params": params or {}})["error"]

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """The result of a tool."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def text(self, tool: str, /, **arguments: Any) -> str:
        """What a tool says when it succeeds."""
        return _text(self.call(tool, **arguments), is_error=False)

    def data(self, tool: str, /, **arguments: Any) -> Any:
        """The JSON that a tool answers with."""
        return msgspec.json.decode(self.text(tool, **arguments))

    def refusal(self, tool: str, /, **arguments: Any) -> str:
        """What a tool says when it fails."""
        return _text(self.call(tool, **arguments), is_error=True)

    def tools(self) -> dict[str, Json]:
        """The tools by name, in the order they are listed in."""
        listed = self.request("tools/list")["tools"]
        assert len({tool["name"] for tool in listed}) == len(listed)
        return {tool["name"]: tool for tool in listed}


#: Starts a server; it ends with the test.
Serve = Callable[..., Server]


def add(server: Server, title: str, content: str = "Words", tags: list[str] | None = None) -> str:
    """Store a prompt as the store's contract has it; its id."""
    identity: str = server.data("add_prompt", title=title, content=content, tags=tags)["id"]
    return identity


def titles(answer: Json) -> list[str]:
    return [prompt["title"] for prompt in answer["prompts"]]


def contents(server: Server) -> list[str]:
    """The contents of all prompts there are, as MCP hands them out."""
    names = [prompt["name"] for prompt in server.request("prompts/list")["prompts"]]
    prompts = [server.request("prompts/get", {"name": name}) for name in names]
    return [prompt["messages"][0]["content"]["text"] for prompt in prompts]


def failure(text: str) -> tuple[str, str]:
    """The code and the message of an error in the store's dialect."""
    error = msgspec.json.decode(text)["error"]
    return error["code"], error["message"]


def _text(result: Json, *, is_error: bool) -> str:
    assert result["isError"] is is_error, result
    (content,) = result["content"]
    assert content["type"] == "text"
    text: str = content["text"]
    return text


def _has_null(value: Any) -> bool:
    """Whether there is a null where the protocol has the say."""
    if isinstance(value, dict):
        return any(_has_null(item) for key, item in value.items() if key not in FOREIGN)
    return any(map(_has_null, value)) if isinstance(value, list) else value is None
