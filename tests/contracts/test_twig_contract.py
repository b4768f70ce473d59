"""Every example of the twig contract, replayed in its own profile and in the default one,
over every transport and on both databases."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.contracts.contract_replay import (
    HANDSHAKE_VERSIONS,
    REQUESTED_VERSIONS,
    VARIANTS,
    Contract,
    Json,
    ServerUnderTest,
    ServerVariant,
    WorkspaceLocation,
    initialize,
)
from tests.contracts.library_fixtures import (
    DISCOVER,
    ENVELOPE,
    STATELESS,
    Machine,
    twig_manifest,
    write_files,
)

CONTRACT = Contract("twig-prompts.md")
PROFILE = "twig"
NAME = "my_coding_lib:code_review"

LIST = "Methods > 1. prompts/list"
GET = "Methods > 2. prompts/get"
TYPES = "Data Types"
ARGUMENTS = "Argument Handling"
TOML = f"{ARGUMENTS} > String Arguments > Example twig.toml"
FILE = f"{ARGUMENTS} > Template Substitution > File my_coding_lib/prompts/code_review.md"

#: What makes the text of the successful example out of its arguments.
TEMPLATE = """Please review the following {{ language|title }} code for quality and best practices:

```{{ language }}
{{ code_snippet }}
```

Focus on:
- Code clarity and readability
- Performance considerations
- Adherence to {{ language|title }} best practices"""


# Libraries are not in the database, so this takes one of the ways to PostgreSQL only.
@pytest.fixture(
    params=[variant for variant in VARIANTS if variant != ServerVariant("stdio", "postgres")], ids=str
)
def variant(request: pytest.FixtureRequest) -> ServerVariant:
    chosen: ServerVariant = request.param
    return chosen


@pytest.fixture
def machine(tmp_path: Path, variant: ServerVariant, location: WorkspaceLocation) -> Machine:
    return Machine(tmp_path, transport=variant.transport, location=location)


@pytest.fixture(params=[PROFILE, "all"])
def server(request: pytest.FixtureRequest, machine: Machine) -> Iterator[ServerUnderTest]:
    """A server that has not been asked anything yet: its libraries can still be written."""
    machine.libraries_of(request.param).mkdir(parents=True)
    with opened(machine, request.param) as started:
        yield started


def library(machine: Machine, profile: str, toml: str, **files: str) -> Path:
    """The contract's library where the profile looks for it, under a name that has to be normalised."""
    folder = machine.libraries_of(profile) / "My-Coding Lib"
    return write_files(
        folder, {"twig.toml": toml} | {f"prompts/{key}.md": text for key, text in files.items()}
    )


def opened(machine: Machine, profile: str, first_request: Json | None = None) -> ServerUnderTest:
    return ServerUnderTest(
        machine.location, profile, first_request=first_request, env=machine.env, transport=machine.transport
    )


def without_nulls(value: Any) -> Any:
    """Settled: optional fields without a value are left out, because the official clients refuse null."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def expected(key: str, profile: str) -> Any:
    """The document's answer, with what the settled points say otherwise."""
    answer = without_nulls(CONTRACT[key])
    for prompt in answer.get("result", {}).get("prompts", []):
        # Settled: a listed prompt always says its arguments; the schema beside them is twig's own.
        schema = prompt["inputSchema"] if profile == PROFILE else prompt.pop("inputSchema")
        prompt["arguments"] = [
            {"name": name, **about, "required": name in schema["required"]}
            for name, about in schema["properties"].items()
        ]
        for argument in prompt["arguments"]:
            assert argument.pop("type") == "string"
    if key == f"{GET} > Prompt not found" and profile != PROFILE:
        answer["error"] = {"code": -32602, "message": f"Prompt '{NAME}' not found"}
    return answer


def listed_toml() -> str:
    """The manifest of a library that is listed as in the document."""
    lines = []
    for prompt in CONTRACT[f"{LIST} > Response (Success)"]["result"]["prompts"]:
        key = prompt["name"].partition(":")[2]
        lines += [f"[prompts.{key}]", f"description = {quoted(prompt['description'])}"]
        for name, about in prompt["inputSchema"]["properties"].items():
            lines += [f"[[prompts.{key}.arguments]]", f"name = {quoted(name)}"]
            lines += [f"description = {quoted(about['description'])}"]
            if name in prompt["inputSchema"]["required"]:
                lines += ["required = true"]
    return "\n".join(lines)


def quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def required(toml: str, argument: str) -> str:
    return toml.replace(f'name = "{argument}"', f'name = "{argument}"\nrequired = true')


#: A manifest without a description: the document shows an answer whose description is null.
UNDESCRIBED = required(twig_manifest("code_review", arguments="code_snippet language"), "code_snippet")


@CONTRACT.replays("Overview > Capabilities Declared")
def test_capabilities_are_declared_as_in_the_contract(server: ServerUnderTest) -> None:
    shown = CONTRACT["Overview > Capabilities Declared"]
    declared = server.first_response["result"]["capabilities"]
    assert declared == (shown if server.profile == PROFILE else declared | shown)


@pytest.mark.parametrize("profile", [PROFILE, "all"])
@CONTRACT.replays(f"{LIST} > Request", f"{LIST} > Response (Success)")
def test_prompts_are_listed_as_in_the_contract(machine: Machine, profile: str) -> None:
    library(machine, profile, listed_toml())
    request = CONTRACT[f"{LIST} > Request"]
    with opened(machine, profile) as server:
        for send_request in (without_nulls(request), request):
            assert server.ask(send_request) == expected(f"{LIST} > Response (Success)", profile)


@CONTRACT.replays(f"{LIST} > No prompts installed")
def test_where_no_prompts_are_installed_the_list_is_empty(server: ServerUnderTest) -> None:
    answer = server.ask(without_nulls(CONTRACT[f"{LIST} > Request"]))
    assert answer == expected(f"{LIST} > No prompts installed", server.profile)


INACCESSIBLE = f"{LIST} > Data directory not accessible (logged, but list still returns empty)"


def _a_file(directory: Path) -> None:
    directory.write_text("no directory")


def _a_link_to_itself(directory: Path) -> None:
    directory.symlink_to(directory)


def _closed(directory: Path) -> None:
    directory.mkdir(mode=0)


@CONTRACT.replays(INACCESSIBLE)
@pytest.mark.parametrize("made", [_a_file, _a_link_to_itself, _closed])
def test_a_data_directory_that_is_not_accessible_is_reported_and_the_list_is_empty(
    machine: Machine, made: Callable[[Path], None]
) -> None:
    if made is _closed and os.geteuid() == 0:
        pytest.skip("nothing is closed to root")
    made(machine.twig_libraries)
    with opened(machine, PROFILE) as server:
        assert server.request("prompts/list") == expected(INACCESSIBLE, PROFILE)["result"]
        server.wait_for_stderr("~/twig")


def test_a_data_directory_that_is_not_there_is_an_empty_list_without_a_word(machine: Machine) -> None:
    with opened(machine, PROFILE) as server:
        assert server.request("prompts/list") == {"prompts": []}
        assert server.end() == ""


@pytest.mark.parametrize("profile", [PROFILE, "all"])
@CONTRACT.replays(f"{GET} > Request", f"{GET} > Response (Success)")
def test_a_prompt_is_given_as_in_the_contract(machine: Machine, profile: str) -> None:
    library(machine, profile, UNDESCRIBED, code_review=TEMPLATE)
    with opened(machine, profile) as server:
        answer = server.ask(CONTRACT[f"{GET} > Request"])
        assert answer == expected(f"{GET} > Response (Success)", profile)


@pytest.mark.parametrize("profile", [PROFILE, "all"])
def test_a_prompt_is_given_with_its_description_when_it_has_one(machine: Machine, profile: str) -> None:
    library(machine, profile, listed_toml(), code_review=TEMPLATE)
    with opened(machine, profile) as server:
        answer = server.ask(CONTRACT[f"{GET} > Request"])
    assert answer["result"]["description"] == "Review code for quality and best practices"


@CONTRACT.replays(f"{GET} > Prompt not found")
def test_a_prompt_that_is_not_there_is_answered_as_in_the_contract(server: ServerUnderTest) -> None:
    answer = server.ask(CONTRACT[f"{GET} > Request"])
    assert answer == expected(f"{GET} > Prompt not found", server.profile)


@pytest.mark.parametrize("profile", [PROFILE, "all"])
@CONTRACT.replays(f"{GET} > Missing required argument")
def test_a_missing_required_argument_is_answered_as_in_the_contract(machine: Machine, profile: str) -> None:
    library(machine, profile, UNDESCRIBED, code_review=TEMPLATE)
    request = CONTRACT[f"{GET} > Request"]
    del request["params"]["arguments"]["code_snippet"]
    with opened(machine, profile) as server:
        assert server.ask(request) == expected(f"{GET} > Missing required argument", profile)
        del request["params"]["arguments"]
        assert server.ask(request) == expected(f"{GET} > Missing required argument", profile)


@CONTRACT.replays(f"{GET} > Content file missing")
def test_a_missing_content_file_is_answered_as_in_the_contract(machine: Machine) -> None:
    machine.twig_libraries = machine.root / ".local/share/twig/prompts"
    write_files(machine.twig_libraries / "my_coding_lib", {"twig.toml": UNDESCRIBED})
    # With no more said than where the user is at home: it is found where Twig keeps its data.
    env = machine.env | {"TWIG_DATA_DIR": "", "XDG_DATA_HOME": ""}
    with ServerUnderTest(machine.location, PROFILE, env=env, transport=machine.transport) as server:
        answer = server.ask(CONTRACT[f"{GET} > Request"])
    assert answer == expected(f"{GET} > Content file missing", PROFILE)


def test_a_missing_content_file_has_the_same_answer_in_the_default_profile(machine: Machine) -> None:
    library(machine, "all", UNDESCRIBED)
    with opened(machine, "all") as server:
        error = server.ask(CONTRACT[f"{GET} > Request"])["error"]
    details = error["data"].pop("details")
    assert details == (
        "Prompt content file not found: ~/dittybag/libraries/My-Coding Lib/prompts/code_review.md"
    )
    shown = CONTRACT[f"{GET} > Content file missing"]["error"]
    assert error == {"code": shown["code"], "message": shown["message"], "data": {}}


@pytest.mark.parametrize("profile", [PROFILE, "all"])
@CONTRACT.replays(f"{GET} > Template rendering error")
def test_a_template_that_cannot_be_rendered_is_answered_as_in_the_contract(
    machine: Machine, profile: str
) -> None:
    # Settled: an undefined variable is empty, so the error shown cannot occur; this one is on its line.
    broken = "1\n2\n3\n4\n{{ code_snippet|required_arg }}\n"
    library(machine, profile, UNDESCRIBED, code_review=broken)
    shown = expected(f"{GET} > Template rendering error", profile)
    problem = "undefined variable 'required_arg'"
    assert shown["error"]["data"]["details"].endswith(problem)
    with opened(machine, profile) as server:
        answer = server.ask(CONTRACT[f"{GET} > Request"])
    assert "required_arg" in answer["error"]["data"]["details"].partition(": ")[2]
    answer["error"]["data"]["details"] = re.sub(": .*", f": {problem}", answer["error"]["data"]["details"])
    assert answer == shown


@pytest.mark.parametrize("profile", [PROFILE, "all"])
@CONTRACT.replays(
    TOML,
    f"{ARGUMENTS} > String Arguments > Request with arguments",
    FILE,
    f"{ARGUMENTS} > Template Substitution > Rendered output",
)
def test_arguments_are_substituted_as_in_the_contract(machine: Machine, profile: str) -> None:
    library(machine, profile, CONTRACT.examples[TOML], code_review=CONTRACT.examples[FILE] + "\n")
    arguments = CONTRACT[f"{ARGUMENTS} > String Arguments > Request with arguments"]
    with opened(machine, profile) as server:
        result = server.request("prompts/get", {"name": NAME, **arguments})
    text = CONTRACT.examples[f"{ARGUMENTS} > Template Substitution > Rendered output"] + "\n"
    message = {"role": "user", "content": {"type": "text", "text": text}}
    assert result == {"description": "Review code", "messages": [message]}


@pytest.mark.parametrize("profile", [PROFILE, "all"])
@CONTRACT.replays(
    f"{ARGUMENTS} > Optional Arguments > Arguments not provided are handled by Jinja2 Chainable mode"
)
def test_the_block_of_an_optional_argument_is_omitted_as_in_the_contract(
    machine: Machine, profile: str
) -> None:
    block = CONTRACT.examples[
        f"{ARGUMENTS} > Optional Arguments > Arguments not provided are handled by Jinja2 Chainable mode"
    ]
    toml = CONTRACT.examples[TOML].replace("required = true", "")
    library(machine, profile, toml, code_review=f"<{block}|{{{{ language.nothing.at.all }}}}>")
    with opened(machine, profile) as server:
        for given, text in (({}, "<|>"), ({"arguments": {"language": "Go"}}, "<Language: Go|>")):
            (message,) = server.request("prompts/get", {"name": NAME, **given})["messages"]
            assert message["content"]["text"] == text


def members(interface: str) -> tuple[set[str], set[str]]:
    """The members that an interface of the document needs, and all that it has."""
    found = re.findall(r"^ {2,4}(\w+)(\??):", CONTRACT.examples[f"{TYPES} > {interface}"], re.MULTILINE)
    return {name for name, optional in found if not optional}, {name for name, _ in found}


@CONTRACT.replays(
    f"{TYPES} > Prompt (List Item)",
    f"{TYPES} > ToolInputSchema",
    f"{TYPES} > PromptMessage",
    f"{TYPES} > GetPromptResult",
)
def test_answers_have_the_members_of_the_contract_s_types(machine: Machine) -> None:
    library(machine, PROFILE, listed_toml() + "\n[prompts.bare]\n", code_review="x", bare="x")
    with opened(machine, PROFILE) as server:
        bare, *others = server.request("prompts/list")["prompts"]
        answer = server.request("prompts/get", {"name": NAME, "arguments": {"code_snippet": ""}})
    for prompt in (bare, *others):
        needed, known = members("Prompt (List Item)")
        # Settled: `arguments` stands beside the schema.
        assert needed <= prompt.keys() <= known | {"arguments"}
        needed, known = members("ToolInputSchema")
        assert needed - {"description"} <= prompt["inputSchema"].keys() <= known
        assert prompt["inputSchema"]["type"] == "object"
        for about in prompt["inputSchema"]["properties"].values():
            assert about["type"] == "string"
    assert bare == {
        "name": "my_coding_lib:bare",
        "arguments": [],
        "inputSchema": {"type": "object", "properties": {}},
    }
    needed, known = members("GetPromptResult")
    assert needed <= answer.keys() <= known
    (message,) = answer["messages"]
    assert message.keys() | message["content"].keys() == members("PromptMessage")[1]


CODES = {
    b"{": -32700,
    b'{"jsonrpc":"2.0","id":1}': -32600,
    b'{"jsonrpc":"2.0","id":1,"method":"no/such"}': -32601,
    b'{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"a:b"}}': -32601,
    b'{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":""}}': -32601,
    b'{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"code_review"}}': -32601,
    b'{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{}}': -32602,
    b'{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":7}}': -32602,
    b'{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"a:b","arguments":7}}': -32602,
    b'{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{"cursor":"no such"}}': -32602,
}


def test_error_codes_are_used_for_what_the_contract_says(machine: Machine) -> None:
    library(machine, PROFILE, UNDESCRIBED, code_review=TEMPLATE)
    with opened(machine, PROFILE) as server:
        for frame, code in CODES.items():
            # Settled: what is not even JSON has the code that JSON-RPC gives it.
            assert code == -32700 or f"| {code} |" in CONTRACT.text
            assert server.raw(frame)["error"]["code"] == code, frame
        assert len(server.request("prompts/list")["prompts"]) == 1


@pytest.mark.parametrize("requested", REQUESTED_VERSIONS)
def test_the_contract_is_kept_in_every_version_with_a_handshake(
    machine: Machine, requested: str | None
) -> None:
    library(machine, PROFILE, UNDESCRIBED, code_review=TEMPLATE)
    with opened(machine, PROFILE, initialize(requested)) as server:
        assert server.first_response["result"] == {
            "protocolVersion": requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[0],
            "capabilities": CONTRACT["Overview > Capabilities Declared"],
            "serverInfo": {"name": "twig", "version": "0.1.0"},
        }
        (listed,) = server.request("prompts/list")["prompts"]
        assert listed["inputSchema"]["required"] == ["code_snippet"]
        assert server.ask(CONTRACT[f"{GET} > Request"]) == expected(f"{GET} > Response (Success)", PROFILE)
        request = CONTRACT[f"{GET} > Request"]
        request["params"]["name"] = "my_coding_lib:nope"
        answer = expected(f"{GET} > Prompt not found", PROFILE)
        answer["error"]["data"]["details"] = "Prompt not found: my_coding_lib:nope"
        assert server.ask(request) == answer


@pytest.mark.parametrize("profile", [PROFILE, "all"])
def test_the_contract_is_kept_in_the_version_without_a_handshake(machine: Machine, profile: str) -> None:
    library(machine, profile, listed_toml(), code_review=TEMPLATE)
    request = CONTRACT[f"{GET} > Request"]["params"] | {"_meta": ENVELOPE}
    with opened(machine, profile, DISCOVER) as server:
        assert server.first_response["result"]["supportedVersions"] == [STATELESS]
        listed = server.request("prompts/list", {"_meta": ENVELOPE})
        assert listed["prompts"] == expected(f"{LIST} > Response (Success)", profile)["result"]["prompts"]
        given = server.request("prompts/get", request)
        assert given["messages"] == CONTRACT[f"{GET} > Response (Success)"]["result"]["messages"]
        del request["arguments"]["code_snippet"]
        missing = expected(f"{GET} > Missing required argument", profile)["error"]
        assert server.error("prompts/get", request) == missing
        request["name"] = "my_coding_lib:nope"
        error = server.error("prompts/get", request)
    if profile == PROFILE:
        shown = expected(f"{GET} > Prompt not found", profile)["error"]
        assert error == shown | {"data": {"details": "Prompt not found: my_coding_lib:nope"}}
    else:
        assert error == {"code": -32602, "message": "Prompt 'my_coding_lib:nope' not found"}


def test_twig_has_nothing_but_prompts(machine: Machine) -> None:
    library(machine, PROFILE, UNDESCRIBED, code_review=TEMPLATE)
    with opened(machine, PROFILE) as server:
        for method in ("tools/list", "resources/list", "resources/templates/list", "completion/complete"):
            assert server.error(method)["code"] == -32601


def test_no_example_is_left_unreplayed() -> None:
    assert CONTRACT.unreplayed() == []
