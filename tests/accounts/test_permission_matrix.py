"""Permissions: every operation, for every kind of token, at both HTTP endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import pytest

from dittybag.contracts.profiles import PROFILES
from dittybag.contracts.skill_extension import SKILL_METHODS
from dittybag.protocol.method_handlers import HANDLERS
from tests.accounts.accounts_world import (
    HIDDEN_PROJECT,
    STRANGER,
    TEAM_WORD,
    CallOutcome,
    EndpointPath,
    Json,
    TokenHolder,
    World,
    auth_headers,
    parse_outcome,
    post_message,
    word_of,
)
from tests.accounts.permission_matrix import ELSEWHERE, METHODS, TOOLS, MatrixRow
from tests.contracts.http_server_process import (
    BOTH,
    JSON,
    HttpServerProcess,
    ReceivedResponse,
    routing_headers,
)
from tests.contracts.library_fixtures import ENVELOPE

ENDPOINTS: tuple[EndpointPath, ...] = ("/mcp", "/")
GONE = "The selected project was deleted"


def test_every_tool_of_every_profile_has_a_row() -> None:
    tools = {(profile.name, tool.name) for profile in PROFILES.values() for tool in profile.tools}
    assert TOOLS.keys() == tools


def test_a_row_states_correctly_whether_its_tool_writes() -> None:
    writers = {
        (profile.name, tool.name)
        for profile in PROFILES.values()
        for tool in profile.tools
        if tool.effect.writes
    }
    assert {key for key, row in TOOLS.items() if row.writes} == writers


def test_every_method_has_a_row() -> None:
    methods = HANDLERS.keys() | set(SKILL_METHODS)
    assert {name.partition(" ")[0] for name in METHODS} | ELSEWHERE.keys() == methods


# Without a valid token


def assert_refused(response: ReceivedResponse, name: str) -> None:
    """The response is the same for every invalid token. A missing token is not reported as an error."""
    problem = "" if name == "none" else ', error="invalid_token"'
    assert response.status == 401, (name, response)
    assert response.headers.get_all("www-authenticate") == [f'Bearer realm="dittybag"{problem}'], name
    assert response.json() == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {
            "code": -32600,
            "message": "This server requires a valid token: Authorization: Bearer TOKEN",
        },
    }
    assert set(response.headers) - {"date"} == {
        "content-type",
        "content-length",
        "www-authenticate",
        "x-request-id",
    }


@pytest.mark.parametrize(("profile", "tool"), TOOLS)
def test_a_tool_call_needs_a_valid_token(world: World, profile: str, tool: str) -> None:
    arguments = TOOLS[profile, tool].ask(world, world.holders[0])
    before = world.last_change()
    for name, token in world.invalid_tokens.items():
        for endpoint in ENDPOINTS:
            params = {"name": tool, "arguments": arguments}
            assert_refused(post_message(world.host(profile), token, endpoint, "tools/call", params), name)
    assert world.last_change() == before


@pytest.mark.parametrize("operation", METHODS)
def test_every_method_needs_a_valid_token(world: World, operation: str) -> None:
    params = METHODS[operation].ask(world, world.holders[0])
    for name, token in world.invalid_tokens.items():
        for endpoint in ENDPOINTS:
            response = post_message(world.host("all"), token, endpoint, operation.partition(" ")[0], params)
            assert_refused(response, name)


@pytest.mark.parametrize(
    "path", ["/", "/mcp", "/metrics", "/nothing", "/healthz/", "//healthz", "/mcp?x=/healthz"]
)
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "POST"])
def test_every_path_needs_a_valid_token(world: World, method: str, path: str) -> None:
    for name, token in world.invalid_tokens.items():
        response = world.host("all").ask(method, path, b"{}", auth_headers(token))
        if (method, path) == ("GET", "/"):
            # Browsers are redirected to the sign-in page.
            assert (response.status, response.headers["location"], response.body) == (303, "/sign-in", b"")
        else:
            assert_refused(response, name)


def test_only_the_status_endpoints_need_no_token(world: World) -> None:
    host = world.host("all")
    for token in world.invalid_tokens.values():
        assert host.ask("GET", "/healthz", headers=auth_headers(token)).status == 200
        assert host.ask("GET", "/readyz", headers=auth_headers(token)).json() == {"status": "ready"}


@pytest.mark.parametrize(("profile", "version"), [("tasks", "2025-06-18"), ("all", "2025-11-25")])
def test_the_version_is_advertised_without_a_token(world: World, profile: str, version: str) -> None:
    for token in world.invalid_tokens.values():
        response = world.host(profile).ask("HEAD", "/", headers=auth_headers(token))
        assert (response.status, response.body) == (200, b"")
        assert response.headers["mcp-protocol-version"] == version
    assert world.host(profile).ask("HEAD", "/metrics").status == 401


def test_metrics_need_the_admin_scope(world: World) -> None:
    host = world.host("all")
    for who in world.holders:
        response = host.ask("GET", "/metrics", headers=auth_headers(who.token))
        if who.scope == "admin":
            assert response.status == 200
            assert b"dittybag_requests_total" in response.body
            continue
        assert response.status == 403, who
        assert response.headers["www-authenticate"] == (
            'Bearer realm="dittybag", error="insufficient_scope", scope="admin"'
        )
        assert b"dittybag_requests_total" not in response.body


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen", "tools/list"])
def test_stateless_requests_need_a_valid_token(world: World, method: str) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        "params": {"notifications": {"promptsListChanged": True}, "_meta": ENVELOPE},
    }
    frame = msgspec.json.encode(body)
    for name, token in world.invalid_tokens.items():
        headers = {"Content-Type": JSON, "Accept": BOTH, **routing_headers(frame), **auth_headers(token)}
        assert_refused(world.host("all").ask("POST", "/mcp", frame, headers), name)


# With a valid token


def expected_outcome(who: TokenHolder, row: MatrixRow) -> str:
    """Return the expected outcome of an operation."""
    if row.writes and (who.scope == "read" or (row.touches == "project" and not who.changes_project)):
        return "unknown tool"
    return "gone" if row.touches == "project" and who.role is None else "ok"


def assert_nothing_foreign(who: TokenHolder, outcome: CallOutcome) -> None:
    """The outcome has nothing of other users' tasks or of projects that the user cannot see."""
    foreign = {word_of(user) for user in ("alice", "bob", "rita", "root", "mallory", STRANGER)}
    foreign = (foreign - {word_of(who.user)}) | {HIDDEN_PROJECT, STRANGER}
    if who.role is None:
        foreign.add(TEAM_WORD)
    for word in foreign:
        assert word not in outcome.text, (who.name, word, outcome)


def mask_arguments(outcome: CallOutcome, request: Json, other: Json) -> CallOutcome:
    """Return an outcome without the arguments of the request."""
    text = outcome.text
    kept = set(leaves(other))
    for name in leaves(request):
        if name not in kept:
            # Whole words only: a number may be part of another one.
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?!\w)", "THAT", text)
    return CallOutcome(outcome.kind, text)


def leaves(value: object) -> Iterator[str]:
    """Yield the texts and numbers inside a value; of `task:12`, the number, too."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves(item)
    else:
        yield str(value)
        if str(value).startswith("task:"):
            yield str(value).removeprefix("task:")


def check(
    world: World,
    host: HttpServerProcess,
    row: MatrixRow,
    who: TokenHolder,
    endpoint: EndpointPath,
    *,
    method: str,
    tool: str = "",
) -> None:
    """Run an operation on allowed and on hidden entities."""

    def ask(arguments: Json) -> CallOutcome:
        params = {"name": tool, "arguments": arguments} if tool else arguments
        return parse_outcome(post_message(host, who.token, endpoint, method, params), endpoint)

    before = world.last_change()
    arguments = row.ask(world, who)
    prepared = world.last_change()
    outcome = ask(arguments)
    assert_nothing_foreign(who, outcome)
    expectation = expected_outcome(who, row)
    if expectation == "ok":
        assert outcome.kind == "ok", (who.name, endpoint, outcome)
        assert row.shows(who) in outcome.text, (who.name, endpoint, outcome)
        assert (world.last_change() > prepared) == row.writes, (who.name, endpoint)
    else:
        message = f"Unknown tool: {tool}" if expectation == "unknown tool" else GONE
        if method == "resources/subscribe":
            message = "not found"
        assert outcome.kind != "ok", (who.name, endpoint, outcome)
        assert message in outcome.text, (who.name, endpoint, outcome)
        assert world.last_change() == prepared >= before, (who.name, endpoint)
    for pair in row.pairs:
        foreign = pair.foreign(world, who)
        before_pair = world.last_change()
        hidden, missing = ask(foreign), ask(pair.missing)
        assert mask_arguments(hidden, foreign, pair.missing) == mask_arguments(
            missing, pair.missing, foreign
        ), (
            who.name,
            endpoint,
        )
        assert world.last_change() == before_pair, (who.name, endpoint)


@pytest.mark.parametrize(("profile", "tool"), TOOLS)
def test_a_tool_respects_the_permissions_of_every_token(world: World, profile: str, tool: str) -> None:
    for who in world.holders:
        for endpoint in ENDPOINTS:
            check(
                world,
                world.host(profile),
                TOOLS[profile, tool],
                who,
                endpoint,
                method="tools/call",
                tool=tool,
            )


@pytest.mark.parametrize("operation", METHODS)
def test_a_method_respects_the_permissions_of_every_token(world: World, operation: str) -> None:
    for who in world.holders:
        for endpoint in ENDPOINTS:
            method = operation.partition(" ")[0]
            check(world, world.host("all"), METHODS[operation], who, endpoint, method=method)


@pytest.mark.parametrize("profile", ["all", "agent", "mcpkg", "prompt-store", "tasks"])
def test_the_tool_list_shows_only_usable_tools(world: World, profile: str) -> None:
    for who in world.holders:
        outcome = parse_outcome(post_message(world.host(profile), who.token, "/", "tools/list", {}), "/")
        listed = {tool["name"] for tool in msgspec.json.decode(outcome.text)["tools"]}
        usable = {
            tool
            for (of, tool), row in TOOLS.items()
            if of == profile and expected_outcome(who, row) != "unknown tool"
        }
        assert listed == usable, who.name


def test_cached_lists_of_members_are_not_shown_to_outsiders(world: World) -> None:
    host = world.host("all")
    member, outsider = world.holders[0], next(who for who in world.holders if who.role is None)
    for method in ("prompts/list", "resources/list", "resources/templates/list"):
        for who in (member, outsider, member, outsider):
            outcome = parse_outcome(post_message(host, who.token, "/mcp", method, {}), "/mcp")
            assert (outcome.kind == "ok") == (who is member), (method, who.name)
