"""Missing arguments of prompts, which the user is asked for with a form."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.contracts.contract_replay import Json
from tests.contracts.library_fixtures import ENVELOPE, Machine, write_files
from tests.stdio_server_process import StdioServerProcess

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
FORMS: Json = {"elicitation": {"form": {}}}
FRONT_MATTER = "description: Greets\narguments:\n  - {name: who, description: Whom, required: true}\n"
FILES = {
    "greet.md": f"---\n{FRONT_MATTER}  - {{name: mood, required: true, choices: [glad, sad]}}\n"
    "  - {name: more}\n---\n{{ who }}, {{ mood }}{{ more }}",
}
NAME = "lib:greet"
MISSING = "Missing required arguments: who (Whom), mood (one of: glad, sad)"
SCHEMA = {
    "type": "object",
    "properties": {
        "who": {"type": "string", "description": "Whom", "minLength": 1},
        "mood": {"type": "string", "enum": ["glad", "sad"]},
    },
    "required": ["who", "mood"],
}


class FormClient:
    """A client that receives forms for its user."""

    def __init__(self, wire: StdioServerProcess) -> None:
        self._wire = wire
        self._ids = count(1)

    def send(self, method: str, params: Json) -> int:
        identity = next(self._ids)
        frame = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
        self._wire.send(msgspec.json.encode(frame))
        return identity

    def receive(self) -> Any:
        """Return the next message that is not about changed lists."""
        while (message := self._wire.message()).get("method", "").endswith("/list_changed"):
            pass
        return message

    def respond(self, question: Json, **body: Any) -> None:
        self._wire.send(msgspec.json.encode({"jsonrpc": "2.0", "id": question["id"], **body}))

    def notify(self, method: str, params: Json) -> None:
        self._wire.send(msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def get_prompt(self, **params: Any) -> Any:
        """Request the prompt in the stateless revision and return the response."""
        self.send("prompts/get", {"name": NAME, "_meta": ENVELOPE | {CAPABILITIES: FORMS}, **params})
        return self.receive()


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[StdioServerProcess]:
    machine = Machine(tmp_path)
    write_files(machine.libraries / "lib", FILES)
    arguments = ("serve", "--db", str(tmp_path / "dittybag.db"))
    with StdioServerProcess("dittybag", *arguments, env=machine.env) as wire:
        yield wire


@pytest.fixture
def client(wire: StdioServerProcess) -> FormClient:
    wire.handshake(capabilities=FORMS)
    return FormClient(wire)


@pytest.fixture
def stateless_client(wire: StdioServerProcess) -> FormClient:
    return FormClient(wire)


def text(response: Json) -> str:
    (message,) = response["result"]["messages"]
    found: str = message["content"]["text"]
    return found


def ask(client: FormClient, arguments: Json | None = None) -> tuple[int, Any]:
    """Request the prompt in a handshake revision; return the id of the request and the question."""
    identity = client.send("prompts/get", {"name": NAME, "arguments": arguments or {}})
    question = client.receive()
    assert question["method"] == "elicitation/create", question
    return identity, question


def accept(**content: Any) -> Json:
    return {"action": "accept", "content": content}


def test_the_user_is_asked_for_each_missing_argument(client: FormClient) -> None:
    # Null counts as absent, and optional arguments are not asked for.
    identity, question = ask(client, {"who": None})
    message = f"The prompt '{NAME}' needs some values."
    assert question["params"] == {"message": message, "requestedSchema": SCHEMA}
    client.respond(question, result=accept(who="Ann", mood="glad"))
    response = client.receive()
    assert (response["id"], text(response)) == (identity, "Ann, glad")


def test_given_arguments_are_not_asked_for_and_not_overwritten(client: FormClient) -> None:
    _, question = ask(client, {"who": "Bob", "more": "!"})
    assert question["params"]["message"] == f"The prompt '{NAME}' needs a value."
    assert question["params"]["requestedSchema"]["required"] == ["mood"]
    client.respond(question, result=accept(mood="sad", who="Eve", more="?", other="x"))
    assert text(client.receive()) == "Bob, sad!"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"result": {"action": "decline"}}, "the user declined to enter the missing values"),
        ({"result": {"action": "cancel"}}, "the user closed the form for the missing values"),
        ({"error": {"code": -1, "message": "busy"}}, "the client could not ask for the values: busy"),
    ],
)
def test_without_values_the_error_says_why(client: FormClient, body: Json, reason: str) -> None:
    _, question = ask(client)
    client.respond(question, **body)
    message = f"{MISSING}; {reason}"
    assert client.receive()["error"] == {"code": -32602, "message": message, "data": {"details": message}}


INVALID = [
    accept(who="Ann"),
    accept(who="Ann", mood="bad"),
    accept(who="", mood="sad"),
    accept(who=None, mood="sad"),
    accept(who=7, mood="sad"),
    accept(who=["Ann"], mood="sad"),
    {"action": "accept"},
    {"action": "maybe"},
]


@pytest.mark.parametrize("answer", INVALID)
def test_an_invalid_answer_is_refused(client: FormClient, answer: Json) -> None:
    _, question = ask(client)
    client.respond(question, result=answer)
    error = client.receive()["error"]
    assert error["code"] == -32602
    assert error["message"].startswith(f"{MISSING}; the client could not ask for the values: ")


def test_a_form_does_not_delay_later_writes(client: FormClient) -> None:
    identity, question = ask(client)
    write = client.send("tools/call", {"name": "task_create", "arguments": {"title": "Later"}})
    read = client.send("tools/call", {"name": "task_list", "arguments": {}})
    assert client.receive()["id"] == write
    listed = client.receive()
    assert listed["id"] == read
    assert "Later" in listed["result"]["content"][0]["text"]
    client.respond(question, result=accept(who="Ann", mood="sad"))
    assert client.receive()["id"] == identity


def test_a_cancelled_request_withdraws_its_form(client: FormClient) -> None:
    identity, question = ask(client)
    client.notify("notifications/cancelled", {"requestId": identity})
    withdrawn = client.receive()
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"]["requestId"] == question["id"]


def test_a_stateless_request_is_repeated_with_the_values(stateless_client: FormClient) -> None:
    first = stateless_client.get_prompt(arguments={"more": "!"})["result"]
    assert first["resultType"] == "input_required"
    assert first["inputRequests"]["arguments"]["params"]["requestedSchema"] == SCHEMA
    again = {"requestState": first["requestState"], "arguments": {"more": "!"}}
    answered = {"arguments": accept(who="Ann", mood="glad")}
    assert text(stateless_client.get_prompt(inputResponses=answered, **again)) == "Ann, glad!"
    declined = stateless_client.get_prompt(inputResponses={"arguments": {"action": "decline"}}, **again)
    assert declined["error"]["message"] == f"{MISSING}; the user declined to enter the missing values"


@pytest.mark.parametrize("answer", INVALID)
def test_an_invalid_answer_to_a_stateless_request_is_refused(
    stateless_client: FormClient, answer: Json
) -> None:
    error = stateless_client.get_prompt(inputResponses={"arguments": answer})["error"]
    assert error["code"] == -32602
    assert error["message"].startswith("The client's answer to elicitation/create is not valid: ")


def test_a_stateless_client_without_forms_gets_an_error(stateless_client: FormClient) -> None:
    error = stateless_client.get_prompt(_meta=ENVELOPE)["error"]
    assert (error["code"], error["message"]) == (-32602, MISSING)
