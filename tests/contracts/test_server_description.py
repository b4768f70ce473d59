"""How servers describe themselves, and when resources were changed: in our own profile only."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.contract_replay import HANDSHAKE_VERSIONS, ServerUnderTest, initialize
from tests.contracts.library_fixtures import DISCOVER
from tests.stdio_server_process import ROOT

SERVER_INFO = "io.modelcontextprotocol/serverInfo"


def described(location: Path, profile: str, first_request: Any) -> Any:
    with ServerUnderTest(location, profile, first_request=first_request) as server:
        result = server.first_response["result"]
    return result["serverInfo"] if "serverInfo" in result else result["_meta"][SERVER_INFO]


@pytest.mark.parametrize("version", [*HANDSHAKE_VERSIONS, None])
def test_a_server_describes_itself_with_the_fields_of_the_revision(
    tmp_path: Path, version: str | None
) -> None:
    info = described(tmp_path, "all", DISCOVER if version is None else initialize(version))
    newest = version is None or version >= "2025-11-25"
    assert ("title" in info) == (version is None or version >= "2025-06-18")
    assert ("description" in info, "icons" in info) == (newest, newest)
    if newest:
        assert info["title"] == "Dittybag"
        assert "skills" in info["description"]


def test_the_icon_is_that_of_the_web_ui(tmp_path: Path) -> None:
    (icon,) = described(tmp_path, "all", initialize("2025-11-25"))["icons"]
    kind, _, data = icon["src"].partition(",")
    assert (kind, icon["mimeType"], icon["sizes"]) == (
        "data:image/svg+xml;base64",
        "image/svg+xml",
        ["any"],
    )
    own = ROOT / "src" / "dittybag" / "web" / "static" / "icon.svg"
    assert base64.b64decode(data) == own.read_bytes().strip()


@pytest.mark.parametrize("profile", ["mcpkg", "twig", "tasks", "prompt-store"])
def test_contract_profiles_have_only_the_name_and_version_of_the_contract(
    tmp_path: Path, profile: str
) -> None:
    for request in (initialize("2025-11-25"), DISCOVER):
        assert described(tmp_path, profile, request).keys() == {"name", "version"}


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_a_listed_resource_says_when_it_was_changed(tmp_path: Path, version: str) -> None:
    with ServerUnderTest(tmp_path, "all", first_request=initialize(version)) as server:
        server.text("create_resource", name="notes", uri="memo://notes", content="x")
        (listed,) = server.request("resources/list", {})["resources"]
    if version < "2025-06-18":
        assert "annotations" not in listed
    else:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", listed["annotations"]["lastModified"])


def test_a_contract_profile_does_not_say_when_a_resource_was_changed(tmp_path: Path) -> None:
    with ServerUnderTest(tmp_path, "mcpkg", first_request=initialize("2025-11-25")) as server:
        server.text("create_resource", name="notes", uri="memo://notes", content="x")
        (listed,) = server.request("resources/list", {})["resources"]
    assert "annotations" not in listed
