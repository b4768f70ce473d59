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

#: A template that renders the text of the successful example.
TEMPLATE = """Please review the following {{ language|title }} code for quality and best practices:

```{{ language }}
{{ code_snippet }}
```

Focus on:
- Code clarity and readability
- Performance considerations
- Adherence to {{ language|title }} best practices"""


# Libraries are not in the database, so one variant with PostgreSQL is enough.
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
    """A server that has not loaded any libraries yet."""
    machine.libraries_of(request.param).mkdir(parents=True)
    with open_server(machine, request.param) as started:
        yield started


def library(machine: Machine, profile: str, toml: str, **files: str) -> Path:
    """Write the contract's library where the profile finds it, under a name that must be normalised."""
    folder = machine.libraries_of(profile) / "My-Coding Lib"
    return write_files(
        folder, {"twig.toml": toml} | {f"prompts/{key}.md": text for key, text in files.items()}
    )


def open_server(machine: Machine, profile: str, first_request: Json | None = None) -> ServerUnderTest:
    return ServerUnderTest(
        machine.location, profile, first_request=first_request, env=machine.env, transport=machine.transport
    )


def without_nulls(value: Any) -> Any:
    """Remove nulls. Agreed: optional fields without a value are left out, as official clients reject null."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def expected(key: str, profile: str) -> Any:
    """Return the response in the document, with the agreed deviations."""
    response = without_nulls(CONTRACT[key])
    for prompt in response.get("result", {}).get("prompts", []):
        # Agreed: a listed prompt always has `arguments`. Only the profile twig has `inputSchema` too.
        schema = prompt["inputSchema"] if profile == PROFILE else prompt.pop("inputSchema")
        prompt["arguments"] = [
            {"name": name, **property_schema, "required": name in schema["required"]}
            for name, property_schema in schema["properties"].items()
        ]
        for argument in prompt["arguments"]:
            assert argument.pop("type") == "string"
    if key == f"{GET} > Prompt not found" and profile != PROFILE:
        response["error"] = {"code": -32602, "message": f"Prompt '{NAME}' not found"}
    elif "error" in response and profile != PROFILE:
        # Agreed: elsewhere the message itself says what is wrong.
        response["error"]["message"] = response["error"]["data"]["details"]
    return response


def listed_toml() -> str:
    """Return the manifest of a library whose list entries are those in the document."""
    lines = []
    for prompt in CONTRACT[f"{LIST} > Response (Success)"]["result"]["prompts"]:
        key = prompt["name"].partition(":")[2]
        lines += [f"[prompts.{key}]", f"description = {quoted(prompt['description'])}"]
        for name, property_schema in prompt["inputSchema"]["properties"].items():
            lines += [f"[[prompts.{key}.arguments]]", f"name = {quoted(name)}"]
            lines += [f"description = {quoted(property_schema['description'])}"]
            if name in prompt["inputSchema"]["required"]:
                lines += ["required = true"]
    return "\n".join(lines)


def quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def with_required(toml: str, argument: str) -> str:
    return toml.replace(f'name = "{argument}"', f'name = "{argument}"\nrequired = true')


#: A manifest without a description: in the document, the description is null.
MANIFEST_WITHOUT_DESCRIPTION = with_required(
    twig_manifest("code_review", arguments="code_snippet language"), "code_snippet"
)


@CONTRACT.replays("Overview > Capabilities Declared")
def test_the_capabilities_match_the_contract(server: ServerUnderTest) -> None:
    documented = CONTRACT["Overview > Capabilities Declared"]
    declared = server.first_response["result"]["capabilities"]
    assert declared == (documented if server.profile == PROFILE else declared | documented)


@pytest.mark.parametrize("profile", [PROFILE, "all"])
@CONTRACT.replays(f"{LIST} > Request", f"{LIST} > Response (Success)")
def test_prompts_are_listed_as_in_the_contract(machine: Machine, profile: str) -> None:
    library(machine, profile, listed_toml())
    request = CONTRACT[f"{LIST} > Request"]
    with open_server(machine, profile) as server:
        for variation in (without_nulls(request), request):
            assert server.ask(variation) == expected(f"{LIST} > Response (Success)", profile)


@CONTRACT.replays(f"{LIST} > No prompts installed")
def test_without_installed_prompts_the_list_is_empty(server: ServerUnderTest) -> None:
    response = server.ask(without_nulls(CONTRACT[f"{LIST} > Request"]))
    assert response == expected(f"{LIST} > No prompts installed", server.profile)


INACCESSIBLE = f"{LIST} > Data directory not accessible (logged, but list still returns empty)"


def _make_file(directory: Path) -> None:
    directory.write_text("not a directory")


def _make_link_to_itself(directory: Path) -> None:
    directory.symlink_to(directory)


def _make_unreadable(directory: Path) -> None:
    directory.mkdir(mode=0)


@CONTRACT.replays(INACCESSIBLE)
@pytest.mark.parametrize("make_directory", [_make_file, _make_link_to_itself, _make_unreadable])
def test_an_inaccessible_data_directory_is_logged_and_the_list_is_empty(
    machine: Machine, make_directory: Callable[[Path], None]
) -> None:
    if make_directory is _make_unreadable and os.geteuid() == 0:
        pytest.skip("root can read every directory")
    make_directory(machine.twig_libraries)
    with open_server(machine, PROFILE) as server:
        assert server.request("prompts/list") == expected(INACCESSIBLE, PROFILE)["result"]
        server.wait_for_stderr("~/twig")


def test_a_missing_data_directory_is_an_empty_list_and_is_not_logged(machine: Machine) -> None:
    with open_server(machine, PROFILE) as server:
        assert server.request("prompts/list") == {"prompts": []}
        assert server.end() == ""


@pytest.mark.parametrize("profile", [PROFILE, "all"])
@CONTRACT.replays(f"{GET} > Request", f"{GET} > Response (Success)")
def test_the_rendered_prompt_matches_the_contract(machine: Machine, profile: str) -> None:
    library(machine, profile, MANIFEST_WITHOUT_DESCRIPTION, code_review=TEMPLATE)
    with open_server(machine, profile) as server:
        response = server.ask(CONTRACT[f"{GET} > Request"])
        assert response == expected(f"{GET} > Response (Success)", profile)


@pytest.mark.parametrize("profile", [PROFILE, "all"])
def test_a_rendered_prompt_has_its_description(machine: Machine, profile: str) -> None:
    library(machine, profile, listed_toml(), code_review=TEMPLATE)
    with open_server(machine, profile) as server:
        response = server.ask(CONTRACT[f"{GET} > Request"])
    assert response["result"]["description"] == "Review code for quality and best practices"


@CONTRACT.replays(f"{GET} > Prompt not found")
def test_the_error_for_an_unknown_prompt_matches_the_contract(server: ServerUnderTest) -> None:
    response = server.ask(CONTRACT[f"{GET} > Request"])
    assert response == expected(f"{GET} > Prompt not found", server.profile)


@pytest.mark.parametrize("profile", [PROFILE, "all"])
@CONTRACT.replays(f"{GET} > Missing required argument")
def test_the_error_for_a_missing_required_argument_matches_the_contract(
    machine: Machine, profile: str
) -> None:
    library(machine, profile, MANIFEST_WITHOUT_DESCRIPTION, code_review=TEMPLATE)
    request = CONTRACT[f"{GET} > Request"]
    del request["params"]["arguments"]["code_snippet"]
    with open_server(machine, profile) as server:
        assert server.ask(request) == expected(f"{GET} > Missing required argument", profile)
        del request["params"]["arguments"]
        assert server.ask(request) == expected(f"{GET} > Missing required argument", profile)


@CONTRACT.replays(f"{GET} > Content file missing")
def test_the_error_for_a_missing_content_file_matches_the_contract(machine: Machine) -> None:
    machine.twig_libraries = machine.root / ".local/share/twig/prompts"
    write_files(machine.twig_libraries / "my_coding_lib", {"twig.toml": MANIFEST_WITHOUT_DESCRIPTION})
    # With only HOME set, libraries are found in Twig's default data directory.
    env = machine.env | {"TWIG_DATA_DIR": "", "XDG_DATA_HOME": ""}
    with ServerUnderTest(machine.location, PROFILE, env=env, transport=machine.transport) as server:
        response = server.ask(CONTRACT[f"{GET} > Request"])
    assert response == expected(f"{GET} > Content file missing", PROFILE)


def test_a_missing_content_file_is_the_same_error_in_the_default_profile(machine: Machine) -> None:
    library(machine, "all", MANIFEST_WITHOUT_DESCRIPTION)
    with open_server(machine, "all") as server:
        error = server.ask(CONTRACT[f"{GET} > Request"])["error"]
    details = error["data"].pop("details")
    assert details == (
        "Prompt content file not found: ~/dittybag/libraries/My-Coding Lib/prompts/code_review.md"
    )
    # Agreed: outside of the profile twig the message itself says what is wrong.
    documented = CONTRACT[f"{GET} > Content file missing"]["error"]
    assert error == {"code": documented["code"], "message": details, "data": {}}


@pytest.mark.parametrize("profile", [PROFILE, "all"])
@CONTRACT.replays(f"{GET} > Template rendering error")
def test_the_error_for_a_broken_template_matches_the_contract(machine: Machine, profile: str) -> None:
    # Agreed: an undefined variable is empty, so it is only an error where a value is needed.
    broken = "1\n2\n3\n4\n{{ required_arg + 1 }}\n"
    library(machine, profile, MANIFEST_WITHOUT_DESCRIPTION, code_review=broken)
    with open_server(machine, profile) as server:
        response = server.ask(CONTRACT[f"{GET} > Request"])
    assert response == expected(f"{GET} > Template rendering error", profile)


@pytest.mark.parametrize("profile", [PROFILE, "all"])
@CONTRACT.replays(
    TOML,
    f"{ARGUMENTS} > String Arguments > Request with arguments",
    FILE,
    f"{ARGUMENTS} > Template Substitution > Rendered output",
)
def test_argument_substitution_matches_the_contract(machine: Machine, profile: str) -> None:
    library(machine, profile, CONTRACT.examples[TOML], code_review=CONTRACT.examples[FILE] + "\n")
    arguments = CONTRACT[f"{ARGUMENTS} > String Arguments > Request with arguments"]
    with open_server(machine, profile) as server:
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
    with open_server(machine, profile) as server:
        for rendered, text in (({}, "<|>"), ({"arguments": {"language": "Go"}}, "<Language: Go|>")):
            (message,) = server.request("prompts/get", {"name": NAME, **rendered})["messages"]
            assert message["content"]["text"] == text


def members(interface: str) -> tuple[set[str], set[str]]:
    """Return the required members of an interface in the document, and all members."""
    found = re.findall(r"^ {2,4}(\w+)(\??):", CONTRACT.examples[f"{TYPES} > {interface}"], re.MULTILINE)
    return {name for name, optional in found if not optional}, {name for name, _ in found}


@CONTRACT.replays(
    f"{TYPES} > Prompt (List Item)",
    f"{TYPES} > ToolInputSchema",
    f"{TYPES} > PromptMessage",
    f"{TYPES} > GetPromptResult",
)
def test_results_have_the_members_of_the_types_in_the_contract(machine: Machine) -> None:
    library(machine, PROFILE, listed_toml() + "\n[prompts.bare]\n", code_review="x", bare="x")
    with open_server(machine, PROFILE) as server:
        bare, *others = server.request("prompts/list")["prompts"]
        response = server.request("prompts/get", {"name": NAME, "arguments": {"code_snippet": ""}})
    for prompt in (bare, *others):
        mandatory, known = members("Prompt (List Item)")
        # Agreed: `arguments` is present besides the schema.
        assert mandatory <= prompt.keys() <= known | {"arguments"}
        mandatory, known = members("ToolInputSchema")
        assert mandatory - {"description"} <= prompt["inputSchema"].keys() <= known
        assert prompt["inputSchema"]["type"] == "object"
        for property_schema in prompt["inputSchema"]["properties"].values():
            assert property_schema["type"] == "string"
    assert bare == {
        "name": "my_coding_lib:bare",
        "arguments": [],
        "inputSchema": {"type": "object", "properties": {}},
    }
    mandatory, known = members("GetPromptResult")
    assert mandatory <= response.keys() <= known
    (message,) = response["messages"]
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


def test_error_codes_have_the_meaning_in_the_contract(machine: Machine) -> None:
    library(machine, PROFILE, MANIFEST_WITHOUT_DESCRIPTION, code_review=TEMPLATE)
    with open_server(machine, PROFILE) as server:
        for frame, code in CODES.items():
            # Agreed: input that is not JSON has the code of JSON-RPC.
            assert code == -32700 or f"| {code} |" in CONTRACT.text
            assert server.raw(frame)["error"]["code"] == code, frame
        assert len(server.request("prompts/list")["prompts"]) == 1


@pytest.mark.parametrize("requested", REQUESTED_VERSIONS)
def test_every_handshake_version_matches_the_contract(machine: Machine, requested: str | None) -> None:
    library(machine, PROFILE, MANIFEST_WITHOUT_DESCRIPTION, code_review=TEMPLATE)
    with open_server(machine, PROFILE, initialize(requested)) as server:
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
        response = expected(f"{GET} > Prompt not found", PROFILE)
        response["error"]["data"]["details"] = "Prompt not found: my_coding_lib:nope"
        assert server.ask(request) == response


@pytest.mark.parametrize("profile", [PROFILE, "all"])
def test_the_stateless_version_matches_the_contract(machine: Machine, profile: str) -> None:
    library(machine, profile, listed_toml(), code_review=TEMPLATE)
    request = CONTRACT[f"{GET} > Request"]["params"] | {"_meta": ENVELOPE}
    with open_server(machine, profile, DISCOVER) as server:
        assert server.first_response["result"]["supportedVersions"] == [STATELESS]
        listed = server.request("prompts/list", {"_meta": ENVELOPE})
        assert listed["prompts"] == expected(f"{LIST} > Response (Success)", profile)["result"]["prompts"]
        rendered = server.request("prompts/get", request)
        assert rendered["messages"] == CONTRACT[f"{GET} > Response (Success)"]["result"]["messages"]
        del request["arguments"]["code_snippet"]
        missing = expected(f"{GET} > Missing required argument", profile)["error"]
        assert server.error("prompts/get", request) == missing
        request["name"] = "my_coding_lib:nope"
        error = server.error("prompts/get", request)
    if profile == PROFILE:
        documented = expected(f"{GET} > Prompt not found", profile)["error"]
        assert error == documented | {"data": {"details": "Prompt not found: my_coding_lib:nope"}}
    else:
        assert error == {"code": -32602, "message": "Prompt 'my_coding_lib:nope' not found"}


def test_the_twig_profile_has_prompts_only(machine: Machine) -> None:
    library(machine, PROFILE, MANIFEST_WITHOUT_DESCRIPTION, code_review=TEMPLATE)
    with open_server(machine, PROFILE) as server:
        for method in ("tools/list", "resources/list", "resources/templates/list", "completion/complete"):
            assert server.error(method)["code"] == -32601


def test_every_example_is_replayed() -> None:
    assert CONTRACT.unreplayed() == []
