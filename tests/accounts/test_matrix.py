"""Who may do what: every operation, for everybody, both ways over HTTP."""

from __future__ import annotations

import re

import msgspec
import pytest

from dittybag.contracts.profiles import PROFILES
from dittybag.protocol.method_handlers import HANDLERS
from tests.accounts.rows import ELSEWHERE, METHODS, TOOLS, Row
from tests.accounts.world import (
    SECRET,
    STRANGER,
    TEAM_WORD,
    Json,
    Somebody,
    Told,
    Way,
    World,
    headers_of,
    sent,
    told,
    word_of,
)
from tests.contracts.http_server_process import (
    BOTH,
    JSON,
    HttpServerProcess,
    ReceivedResponse,
    routing_headers,
)
from tests.contracts.library_fixtures import ENVELOPE

WAYS: tuple[Way, ...] = ("/mcp", "/")
GONE = "The selected project was deleted"


def test_every_tool_of_every_profile_has_a_row() -> None:
    tools = {(profile.name, tool.name) for profile in PROFILES.values() for tool in profile.tools}
    assert TOOLS.keys() == tools


def test_a_row_says_whether_its_tool_writes() -> None:
    writers = {
        (profile.name, tool.name)
        for profile in PROFILES.values()
        for tool in profile.tools
        if tool.effect.writes
    }
    assert {key for key, row in TOOLS.items() if row.writes} == writers


def test_every_method_has_a_row() -> None:
    assert {name.partition(" ")[0] for name in METHODS} | ELSEWHERE.keys() == HANDLERS.keys()


# Those who are not known


def is_refused(answer: ReceivedResponse, name: str) -> None:
    """Whatever is wrong with a token, the answer is the same; none at all is no error yet."""
    problem = "" if name == "none" else ', error="invalid_token"'
    assert answer.status == 401, (name, answer)
    assert answer.headers.get_all("www-authenticate") == [f'Bearer realm="dittybag"{problem}'], name
    assert answer.json() == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {
            "code": -32600,
            "message": "This server requires a valid token: Authorization: Bearer TOKEN",
        },
    }
    assert set(answer.headers) - {"date"} == {
        "content-type",
        "content-length",
        "www-authenticate",
        "x-request-id",
    }


@pytest.mark.parametrize(("profile", "tool"), TOOLS)
def test_nobody_calls_a_tool_without_a_valid_token(world: World, profile: str, tool: str) -> None:
    arguments = TOOLS[profile, tool].ask(world, world.known[0])
    before = world.last_change()
    for name, token in world.unknown.items():
        for way in WAYS:
            params = {"name": tool, "arguments": arguments}
            is_refused(sent(world.host(profile), token, way, "tools/call", params), name)
    assert world.last_change() == before


@pytest.mark.parametrize("operation", METHODS)
def test_nobody_asks_anything_without_a_valid_token(world: World, operation: str) -> None:
    params = METHODS[operation].ask(world, world.known[0])
    for name, token in world.unknown.items():
        for way in WAYS:
            answer = sent(world.host("all"), token, way, operation.partition(" ")[0], params)
            is_refused(answer, name)


@pytest.mark.parametrize(
    "path", ["/", "/mcp", "/metrics", "/nothing", "/healthz/", "//healthz", "/mcp?x=/healthz"]
)
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "POST"])
def test_no_address_opens_without_a_valid_token(world: World, method: str, path: str) -> None:
    for name, token in world.unknown.items():
        answer = world.host("all").ask(method, path, b"{}", headers_of(token))
        if (method, path) == ("GET", "/"):
            # People are led to where they can sign in, and see nothing else.
            assert (answer.status, answer.headers["location"], answer.body) == (303, "/sign-in", b"")
        else:
            is_refused(answer, name)


def test_only_the_status_of_the_server_is_for_everybody(world: World) -> None:
    host = world.host("all")
    for token in world.unknown.values():
        assert host.ask("GET", "/healthz", headers=headers_of(token)).status == 200
        assert host.ask("GET", "/readyz", headers=headers_of(token)).json() == {"status": "ready"}


def test_metrics_are_for_admins(world: World) -> None:
    host = world.host("all")
    for who in world.known:
        answer = host.ask("GET", "/metrics", headers=headers_of(who.token))
        if who.scope == "admin":
            assert answer.status == 200
            assert b"dittybag_requests_total" in answer.body
            continue
        assert answer.status == 403, who
        assert answer.headers["www-authenticate"] == (
            'Bearer realm="dittybag", error="insufficient_scope", scope="admin"'
        )
        assert b"dittybag_requests_total" not in answer.body


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen", "tools/list"])
def test_stateless_requests_need_a_token_too(world: World, method: str) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        "params": {"notifications": {"promptsListChanged": True}, "_meta": ENVELOPE},
    }
    frame = msgspec.json.encode(body)
    for name, token in world.unknown.items():
        headers = {"Content-Type": JSON, "Accept": BOTH, **routing_headers(frame), **headers_of(token)}
        is_refused(world.host("all").ask("POST", "/mcp", frame, headers), name)


# Those who are


def expected(who: Somebody, row: Row) -> str:
    """What comes of an operation for somebody."""
    if row.writes and (who.scope == "read" or (row.touches == "project" and not who.changes_project)):
        return "unknown tool"
    return "gone" if row.touches == "project" and who.role is None else "ok"


def hears_only_what_is_theirs(who: Somebody, said: Told) -> None:
    """Nothing of anybody else's tasks, nor of other projects, nor of the project if it is not theirs."""
    foreign = {word_of(user) for user in ("alice", "bob", "rita", "root", "mallory", STRANGER)}
    foreign = (foreign - {word_of(who.user)}) | {SECRET, STRANGER}
    if who.role is None:
        foreign.add(TEAM_WORD)
    for word in foreign:
        assert word not in said.text, (who.name, word, said)


def masked(said: Told, send_request: Json, other: Json) -> Told:
    """What was said, without the names by which it was asked for."""
    text = said.text
    for key, value in send_request.items():
        if value != other[key]:
            for name in value if isinstance(value, list) else [value]:
                # A number may be a part of another one.
                text = re.sub(rf"(?<![\w-]){re.escape(str(name))}(?!\w)", "THAT", text)
    return Told(said.kind, text)


def check(
    world: World, host: HttpServerProcess, row: Row, who: Somebody, way: Way, *, method: str, tool: str = ""
) -> None:
    """Ask as somebody, for what they may see and for what they may not."""

    def ask(arguments: Json) -> Told:
        params = {"name": tool, "arguments": arguments} if tool else arguments
        return told(sent(host, who.token, way, method, params), way)

    before = world.last_change()
    arguments = row.ask(world, who)
    prepared = world.last_change()
    said = ask(arguments)
    hears_only_what_is_theirs(who, said)
    wanted = expected(who, row)
    if wanted == "ok":
        assert said.kind == "ok", (who.name, way, said)
        assert row.shows(who) in said.text, (who.name, way, said)
        assert (world.last_change() > prepared) == row.writes, (who.name, way)
    else:
        words = f"Unknown tool: {tool}" if wanted == "unknown tool" else GONE
        if method == "resources/subscribe":
            words = "not found"
        assert said.kind != "ok", (who.name, way, said)
        assert words in said.text, (who.name, way, said)
        assert world.last_change() == prepared >= before, (who.name, way)
    for pair in row.pairs:
        foreign = pair.foreign(world, who)
        made = world.last_change()
        there, missing = ask(foreign), ask(pair.missing)
        assert masked(there, foreign, pair.missing) == masked(missing, pair.missing, foreign), (who.name, way)
        assert world.last_change() == made, (who.name, way)


@pytest.mark.parametrize(("profile", "tool"), TOOLS)
def test_a_tool_does_for_everybody_what_they_may(world: World, profile: str, tool: str) -> None:
    for who in world.known:
        for way in WAYS:
            check(world, world.host(profile), TOOLS[profile, tool], who, way, method="tools/call", tool=tool)


@pytest.mark.parametrize("operation", METHODS)
def test_a_method_answers_everybody_what_they_may_know(world: World, operation: str) -> None:
    for who in world.known:
        for way in WAYS:
            method = operation.partition(" ")[0]
            check(world, world.host("all"), METHODS[operation], who, way, method=method)


@pytest.mark.parametrize("profile", ["all", "mcpkg", "prompt-store", "tasks"])
def test_everybody_is_shown_the_tools_that_they_may_use(world: World, profile: str) -> None:
    for who in world.known:
        said = told(sent(world.host(profile), who.token, "/", "tools/list", {}), "/")
        listed = {tool["name"] for tool in msgspec.json.decode(said.text)["tools"]}
        usable = {
            tool
            for (of, tool), row in TOOLS.items()
            if of == profile and expected(who, row) != "unknown tool"
        }
        assert listed == usable, who.name


def test_lists_that_were_shown_to_members_are_not_shown_to_others(world: World) -> None:
    host = world.host("all")
    member, outsider = world.known[0], next(who for who in world.known if who.role is None)
    for method in ("prompts/list", "resources/list", "resources/templates/list"):
        for who in (member, outsider, member, outsider):
            said = told(sent(host, who.token, "/mcp", method, {}), "/mcp")
            assert (said.kind == "ok") == (who is member), (method, who.name)
