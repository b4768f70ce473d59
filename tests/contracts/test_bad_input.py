"""Every tool refuses bad input in its error format and writes nothing; unusual input is stored unchanged."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.contracts.bad_input import (
    ALL,
    MCPKG,
    PROFILES,
    SEEDS,
    STORE,
    TASKS,
    TOOLS,
    Bad,
    RefusedCall,
    refusals,
)
from tests.stdio_server_process import StdioServerProcess

#: What is written without a change in the log.
UNLOGGED = ("account_events", "claims", "contents", "sessions", "tokens", "users")


class ProfileServer:
    """A server of one profile, and a connection to its database that is not its own."""

    def __init__(self, profile: str, database: Path, stack: ExitStack) -> None:
        self.database = database
        serve = StdioServerProcess("dittybag", "serve", "--profile", profile, "--db", str(database))
        self._wire = stack.enter_context(serve)
        self._wire.handshake()
        listed = self.ask("tools/list", {})["result"]["tools"]
        self.tools: dict[str, Any] = {tool["name"]: tool for tool in listed}
        self._ids: dict[str, str] = {}
        for tool, arguments in [*SEEDS, *UPDATED_ENTITIES]:
            if tool in self.tools:
                created = self.call(tool, arguments)
                assert created["isError"] is False, created
                if tool == "add_prompt":
                    self._ids[f"id of {arguments['title']}"] = json.loads(created["content"][0]["text"])["id"]
        self._reader = stack.enter_context(closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)))

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        # A lone surrogate cannot be encoded in UTF-8, but Python's escape for it is valid in JSON.
        self._wire.send(json.dumps(request, ensure_ascii=False).encode(errors="backslashreplace"))
        while "id" not in (response := self._wire.message()):
            assert response["method"].endswith("/list_changed"), response
        return response

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        if isinstance(named := arguments.get("id"), str):
            arguments = {**arguments, "id": self._ids.get(named, named)}
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]

    def footprint(self) -> tuple[int, int]:
        """Return the seq of the last change, and the number of rows of the tables outside of the log."""
        (seq,) = self._reader.execute("SELECT max(seq) FROM changes").fetchone()
        counts = " + ".join(f"(SELECT count(*) FROM {table})" for table in UNLOGGED)
        (rows,) = self._reader.execute(f"SELECT {counts}").fetchone()
        return seq, rows


#: Calls that create the entities to update, separate from the seeds of the refused calls.
UPDATED_ENTITIES: list[tuple[str, dict[str, Any]]] = [
    ("create_prompt", {"name": "sheet", "content": "Blank"}),
    ("add_prompt", {"title": "Canvas", "content": "Blank"}),
    ("create_resource", {"name": "sheet", "uri": "file:///sheet", "content": "Blank"}),
    ("task_create", {"title": "Canvas"}),
]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ProfileServer]]:
    folder = tmp_path_factory.mktemp("servers")
    with ExitStack() as stack:
        yield {profile: ProfileServer(profile, folder / f"{profile}.db", stack) for profile in PROFILES}


@pytest.mark.parametrize("profile", PROFILES)
def test_every_tool_and_argument_has_bad_values_in_the_table(
    profile: str, servers: dict[str, ProfileServer]
) -> None:
    table: dict[str, tuple[set[str], set[str]]] = {}
    for tool in TOOLS:
        if profile in tool.profiles:
            arguments, required = table.setdefault(tool.name, (set(), set()))
            arguments |= {argument for argument, bad in tool.bad.items() if bad}
            required |= set(tool.required)
    listed = {name: tool["inputSchema"] for name, tool in servers[profile].tools.items()}
    assert table == {
        name: (set(schema.get("properties", {})), set(schema.get("required", ())))
        for name, schema in listed.items()
    }


#: The calls by profile and tool: a test for each of the thousands of calls would take longer than the calls.
REFUSALS: dict[tuple[str, str], list[RefusedCall]] = {}
for refused in refusals():
    REFUSALS.setdefault((refused.profile, refused.tool), []).append(refused)


@pytest.mark.parametrize(("profile", "tool"), REFUSALS)
def test_a_refused_call_names_every_violation_and_writes_nothing(
    profile: str, tool: str, servers: dict[str, ProfileServer]
) -> None:
    server = servers[profile]
    before = server.footprint()
    wrong: dict[str, Any] = {}
    for call in REFUSALS[profile, tool]:
        result = server.call(tool, call.arguments)
        if result != {"content": [{"type": "text", "text": call.message}], "isError": True}:
            wrong[call.case] = (result, call.message)
        assert server.footprint() == before, call.case
    assert wrong == {}


#: Arguments that are not an object, and what the error calls them.
NOT_OBJECTS: dict[str, Any] = {
    "a string": "x",
    "the number 7": 7,
    "true": True,
    "an array": [{"name": "x"}],
}


@pytest.mark.parametrize("profile", PROFILES)
def test_arguments_that_are_not_an_object_are_refused_in_the_tools_error_format_and_write_nothing(
    profile: str, servers: dict[str, ProfileServer]
) -> None:
    server = servers[profile]
    before = server.footprint()
    for tool in server.tools:
        formats = {case.error_format for case in TOOLS if case.name == tool and profile in case.profiles}
        for kind, arguments in NOT_OBJECTS.items():
            result = server.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
            (block,) = result["content"]
            problem = Bad(kind, arguments, f"arguments must be an object, not {kind}", "INVALID_INPUT")
            expected = {error_format({"": problem}) for error_format in formats}
            assert result["isError"] is True
            assert block["text"] in expected
    assert server.footprint() == before


@pytest.mark.parametrize("profile", PROFILES)
def test_an_unknown_project_is_refused_and_writes_nothing(
    profile: str, servers: dict[str, ProfileServer]
) -> None:
    server = servers[profile]
    before = server.footprint()
    for project in ("unknown", "🎒", "a\nb", "x" * 5000):
        database = str(server.database)
        with StdioServerProcess(
            "dittybag", "serve", "--profile", profile, "--project", project, "--db", database
        ) as wire:
            wire.hang_up()
            lines, stderr, status = wire.rest()
        assert (lines, status) == ([], 3), (project, stderr)
        assert stderr.startswith("error: Project '")
        assert "\nhint: " in stderr
    assert server.footprint() == before


LINES = {
    "emoji": "👩‍👩‍👧‍👦 🎒 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "right-to-left": "שלום \u202eمرحبا\u202c עולם",
    "combining": "e\u0301 \u00e9 Z\u0351\u036b\u0343",
    "invisible": "a\u200b\u2060\ufeffb\u00a0c",
    "edges": "\U0010ffff\ufffe\uffff\ufdd0",
    "markup": "<b>&amp;{{ 7*7 }}{% x %}</b> ' OR 1=1 -- \\u0041 \"%_",
}
TEXTS = {
    **LINES,
    "control characters": "".join(map(chr, [*range(1, 32), *range(127, 160)])),
    "line breaks": "\r\n\n\r\u2028\u2029\u0085 \t",
    "surrounding whitespace": " \t x \n ",
}


class AcceptedCall(NamedTuple):
    """A call that must be accepted, with values that must be read back unchanged."""

    profile: str
    tool: str
    case: str
    arguments: dict[str, Any]


def _accepted_by_prompt_store() -> Iterator[tuple[str, str, dict[str, Any]]]:
    canvas = {"id": "id of Canvas"}
    for case, text in TEXTS.items():
        yield "add_prompt", case, {"title": f"New {text}", "content": text}
        yield "update_prompt", case, canvas | {"title": f"Changed {text}", "content": text}
    for character in " \t\n\r\x1b\x7f\u2028":
        yield "add_prompt", f"title {character!r}", {"title": character, "content": "x"}
    longest = {"content": "é" * 524288, "tags": [f"{n:02}{'x' * 48}" for n in range(50)]}
    yield "add_prompt", "longest", {"title": "🎒" * 200, **longest}
    yield "update_prompt", "longest", canvas | {"title": "ש" * 200, **longest}
    yield "add_prompt", "shortest", {"title": "a", "content": "a", "tags": ["a"]}


def _accepted_by_mcpkg() -> Iterator[tuple[str, str, dict[str, Any]]]:
    sheet = {"name": "sheet"}
    for number, (case, text) in enumerate(TEXTS.items()):
        fresh = {"name": f"kept-{number}", "content": text, "description": text}
        yield "create_prompt", case, fresh
        yield "create_resource", case, {"uri": f"file:///kept-{number}", **fresh}
        yield "update_prompt", f"by name {case}", fresh | sheet
        yield "update_resource", case, fresh | sheet
    longest = {"name": "x" * 255, "content": "🎒" * 262144, "description": "🎒" * 4000}
    yield "create_prompt", "longest", longest
    yield "update_prompt", "longest by name", longest | sheet
    longest = longest | {"content": "é" * 2097152}
    yield "create_resource", "longest", {"uri": "file:///" + "x" * 2040, **longest}
    yield "update_resource", "longest", longest | sheet
    yield "create_prompt", "shortest", {"name": ".", "content": "a", "description": "a"}
    yield "create_resource", "shortest", {"name": ".", "uri": "a:b", "content": ""}
    yield "create_resource", "URI", {"name": "-", "uri": "file:///🎒/e\u0301/שלום.md", "content": "x"}
    data = base64.b64encode(bytes(range(256)) * 16384).decode()
    picture = {"name": "_", "uri": "file:///_.png", "content": data, "mime_type": "image/png"}
    yield "create_resource", "every byte", picture
    yield "update_resource", "every byte", sheet | {"content": data, "mime_type": "image/png"}
    yield "update_resource", "text again", sheet | {"content": "Text", "mime_type": "text/plain"}


def _accepted_by_tasks() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for tool, address in (("task_create", {}), ("task_update", {"task_id": 2})):
        for case, text in TEXTS.items():
            line = LINES.get(case, case)
            sent = {"title": line, "project": line, "time_estimate": line[:50], "notes": text}
            yield tool, case, {**address, **sent}
        longest = {
            "title": "🎒" * 500,
            "project": "ש" * 100,
            "time_estimate": "🎒" * 50,
            "notes": "🎒" * 100000,
        }
        yield tool, "longest", {**address, **longest}
        yield tool, "shortest", {**address, "title": "a", "project": "a", "time_estimate": "a", "notes": "a"}
        for due in ("2026-03-01", "2026-03-01T17:00:00Z", "2028-02-29"):
            yield tool, f"due {due}", {**address, "title": "Due", "due_date": due}


ACCEPTED = [
    AcceptedCall(profile, tool, case, arguments)
    for own, rows in (
        (STORE, _accepted_by_prompt_store),
        (MCPKG, _accepted_by_mcpkg),
        (TASKS, _accepted_by_tasks),
    )
    for profile in (own, ALL)
    for tool, case, arguments in rows()
]


def read_back(server: ProfileServer, call: AcceptedCall, response: dict[str, Any]) -> dict[str, Any]:
    """Return the stored values after a call, by the names of its arguments."""
    sent = call.arguments
    if call.tool.startswith("task_"):
        number = json.loads(response["content"][0]["text"])["id"]
        stored: dict[str, Any] = json.loads(
            server.call("task_get", {"task_id": number})["content"][0]["text"]
        )
        return {**stored, "task_id": stored["id"]}
    if call.tool.endswith("_resource"):
        listed = server.ask("resources/list", {})["result"]["resources"]
        (entry,) = [entry for entry in listed if entry["name"] == sent["name"]]
        (part,) = server.ask("resources/read", {"uri": entry["uri"]})["result"]["contents"]
        assert ("blob" in part) is (part["mimeType"] == "image/png")
        return {**entry, "content": part.get("text", part.get("blob")), "mime_type": part["mimeType"]}
    if "name" in sent:
        prompt = server.ask("prompts/get", {"name": sent["name"]})["result"]
        (message,) = prompt["messages"]
        return {**prompt, "name": sent["name"], "content": message["content"]["text"]}
    own = json.loads(response["content"][0]["text"])["id"]
    stored = json.loads(server.call("get_prompt", {"id": own})["content"][0]["text"])
    return {**stored, "id": sent.get("id", own)}


@pytest.mark.parametrize(
    "call", ACCEPTED, ids=[f"{call.profile}-{call.tool}-{call.case}" for call in ACCEPTED]
)
def test_an_unusual_value_is_returned_unchanged(
    call: AcceptedCall, servers: dict[str, ProfileServer]
) -> None:
    server = servers[call.profile]
    response = server.call(call.tool, call.arguments)
    assert response["isError"] is False, response["content"][0]["text"][:500]
    stored = read_back(server, call, response)
    assert {argument: stored[argument] for argument in call.arguments} == call.arguments


QUERIES = [
    *(
        (tool, f"query {case}", {"query": text})
        for tool in ("search_prompts", "task_search", "search")
        for case, text in {**TEXTS, "longest": "🎒" * 1000, "syntax": '"NEAR(* AND -x^:'}.items()
    ),
    ("search_prompts", "query empty", {"query": ""}),
    ("task_search", "query empty", {"query": ""}),
    *(
        (tool, f"offset {offset}", {**needed, "offset": offset})
        for tool, needed in (
            ("list_prompts", {}),
            ("search_prompts", {"query": ""}),
            ("filter_by_tags", {"tags": ["x"]}),
            ("task_list", {}),
        )
        for offset in (2**31, 2**63, 10**30)
    ),
    ("list_changes", "before a huge number", {"before": 10**30}),
    ("list_changes", "before a negative number", {"before": -(2**63) - 1}),
    *(
        query
        for case, text in {**TEXTS, "empty": "", "NUL": "a\0b", "over-long": "x" * 5000}.items()
        for query in (
            ("list_changes", f"of an unknown id: {case}", {"id": text}),
            ("task_list", f"of an unknown project: {case}", {"project": text}),
            ("filter_by_tags", f"by an unknown tag: {case}", {"tags": [text]}),
        )
    ),
    ("list_tags", "unknown arguments", {"x": "\x07", "y": [None]}),
]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [(tool, arguments) for tool, _, arguments in QUERIES],
    ids=[f"{tool}-{case}" for tool, case, _ in QUERIES],
)
def test_an_unusual_query_succeeds_and_writes_nothing(
    tool: str, arguments: dict[str, Any], servers: dict[str, ProfileServer]
) -> None:
    for server in servers.values():
        if tool in server.tools:
            before = server.footprint()
            result = server.call(tool, arguments)
            assert result["isError"] is False, result
            response = json.loads(result["content"][0]["text"])
            if tool == "search_prompts":
                assert response["query"] == arguments["query"]
            assert server.footprint() == before
