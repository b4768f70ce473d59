"""Skills over MCP: entries, manifests and files of library skills, in every era and over every transport."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec
import pytest

from tests.contracts.contract_replay import ServerUnderTest, Transport
from tests.contracts.library_fixtures import ERAS, STATELESS, Machine, write_files
from tests.contracts.skill_client import EXTENSION, SkillClient
from tests.skill_samples import FIELDS, FORMS, LIBRARY, skill_md

FORMS_ROOT = "skill://acme/skills/pdf-forms"
CONTRACT_PROFILES = ("mcpkg", "twig", "tasks", "prompt-store")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    write_files(machine.libraries / "acme", LIBRARY)
    return machine


@pytest.fixture(scope="module", params=ERAS)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SkillClient]:
    """A client that many tests share, because none of them writes."""
    machine = Machine(tmp_path_factory.mktemp("skills"))
    write_files(machine.libraries / "acme", LIBRARY)
    with SkillClient(machine, version=request.param) as client:
        yield client


@pytest.fixture(params=ERAS)
def writing_client(request: pytest.FixtureRequest, machine: Machine) -> Iterator[SkillClient]:
    with SkillClient(machine, version=request.param) as client:
        yield client


# Entries


def test_the_extension_is_declared(client: SkillClient) -> None:
    assert client.hello["capabilities"]["extensions"] == {EXTENSION: {"directoryRead": True}}
    assert "resources" in client.hello["capabilities"]


def test_every_skill_is_listed_with_its_front_matter_and_a_manifest_of_all_files(client: SkillClient) -> None:
    skills = client.skills()
    assert list(skills) == [
        f"{FORMS_ROOT}/SKILL.md",
        "skill://acme/skills/review/SKILL.md",
        "skill://acme/skills/review/deep/SKILL.md",
    ]
    entry = skills[f"{FORMS_ROOT}/SKILL.md"]
    assert entry.keys() == {"uri", "frontmatter", "resources"}
    assert entry["frontmatter"] == FIELDS
    assert list(entry["frontmatter"]) == list(FIELDS)
    files = {
        unquote(uri.removeprefix(f"{FORMS_ROOT}/")): data for uri, data in client.verified(entry).items()
    }
    assert files == {path: _bytes(content) for path, content in FORMS.items()}


def test_a_list_and_an_entry_carry_what_the_revision_adds_to_results(client: SkillClient) -> None:
    added = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    for result in (
        client.request("skills/list"),
        client.request("skills/get", uri=f"{FORMS_ROOT}/SKILL.md"),
        client.request("resources/directory/read", uri=FORMS_ROOT),
    ):
        found = {name: value for name, value in result.items() if name in added}
        assert found == (added if client.version == STATELESS else {})


def test_an_entry_is_the_same_alone_as_in_the_list(client: SkillClient) -> None:
    for uri, entry in client.skills().items():
        assert client.skill(uri) == entry


def test_a_skill_inside_another_is_listed_on_its_own_and_belongs_to_the_outer_one(
    client: SkillClient,
) -> None:
    outer = client.skill("skill://acme/skills/review/SKILL.md")
    inner = client.skill("skill://acme/skills/review/deep/SKILL.md")
    assert [file["uri"] for file in inner["resources"]] == [
        "skill://acme/skills/review/deep/SKILL.md",
        "skill://acme/skills/review/deep/steps.md",
    ]
    assert [file for file in outer["resources"] if "/deep/" in file["uri"]] == inner["resources"]


def test_text_is_read_as_text_and_other_content_as_a_blob(client: SkillClient) -> None:
    kinds = {}
    for path in FORMS:
        uri = f"{FORMS_ROOT}/{quote(path)}"
        (contents,) = client.request("resources/read", uri=uri)["contents"]
        kinds[path] = ("text" if "text" in contents else "blob", contents["mimeType"])
    assert kinds["SKILL.md"] == ("text", "text/markdown")
    assert kinds["scripts/fill.py"] == ("text", "text/x-python")
    assert kinds["assets/logo.png"] == ("blob", "image/png")
    assert kinds["assets/latin.txt"] == ("blob", "application/octet-stream")
    assert kinds["assets/zeros.bin"][0] == "blob"
    assert kinds["assets/empty"][0] == "text"


@pytest.mark.parametrize(
    "uri",
    [
        "skill://acme/skills/unknown/SKILL.md",
        "skill://nobody/skills/pdf-forms/SKILL.md",
        FORMS_ROOT,
        f"{FORMS_ROOT}/",
        f"{FORMS_ROOT}/SKILL.md/",
        f"{FORMS_ROOT}/skill.md",
        f"{FORMS_ROOT}/LICENSE.txt",
        f"{FORMS_ROOT}/templates/SKILL.md",
        f"{FORMS_ROOT}/SKILL.md?x=1",
        f"{FORMS_ROOT}/SKILL.md#x",
        f"{FORMS_ROOT}//SKILL.md",
        f"{FORMS_ROOT}/./SKILL.md",
        f"{FORMS_ROOT}/../review/SKILL.md",
        f"{FORMS_ROOT}/%2e%2e/review/SKILL.md",
        "skill://acme/skills%2Fpdf-forms/SKILL.md",
        "skill://acme/skills%5Cpdf-forms/SKILL.md",
        f"{FORMS_ROOT}%00/SKILL.md",
        f"{FORMS_ROOT}/%ff/SKILL.md",
        "skill:///SKILL.md",
        "skill://",
        "skill://index.json",
        "file:///skills/pdf-forms/SKILL.md",
        "",
        "skill://" + "a/" * 20_000 + "SKILL.md",
    ],
)
def test_a_uri_that_is_not_a_skill_is_refused(client: SkillClient, uri: str) -> None:
    code, message = client.error("skills/get", uri=uri)
    assert code == -32602
    assert "No skill is served at" in message
    if not uri.endswith("/LICENSE.txt"):
        unknown = -32602 if client.version == STATELESS else -32002
        assert client.error("resources/read", uri=uri)[0] == unknown
    if uri != FORMS_ROOT:
        assert client.error("resources/directory/read", uri=uri)[0] == -32602


@pytest.mark.parametrize("method", ["skills/get", "resources/directory/read"])
@pytest.mark.parametrize("params", [{}, {"uri": None}, {"uri": 7}, {"uri": ["skill://acme"]}])
def test_a_missing_or_wrong_uri_is_refused(client: SkillClient, method: str, params: dict[str, Any]) -> None:
    code, message = client.error(method, **params)
    assert code == -32602
    assert "`uri`" in message


# Directories


def test_a_directory_lists_its_direct_children(client: SkillClient) -> None:
    (root,) = client.pages("resources/directory/read", "resources", uri=FORMS_ROOT)
    described = {child["uri"].removeprefix(f"{FORMS_ROOT}/"): child for child in root}
    assert described.keys() == {"SKILL.md", "LICENSE.txt", "templates", "assets", "scripts"}
    folder = described["templates"]
    assert (folder["name"], folder["mimeType"]) == ("templates", "inode/directory")
    head = described["SKILL.md"]
    assert (head["name"], head["description"]) == (FIELDS["name"], FIELDS["description"])
    assert (head["mimeType"], head["size"]) == ("text/markdown", len(_bytes(FORMS["SKILL.md"])))
    (inner,) = client.pages("resources/directory/read", "resources", uri=f"{FORMS_ROOT}/templates")
    assert {unquote(child["uri"]).rpartition("/")[2] for child in inner} == {
        "invoice.md",
        "regional",
        "with spaces & 100%.md",
        "größe-日本.md",
        "a#b?c.md",
    }
    (deep,) = client.pages("resources/directory/read", "resources", uri="skill://acme/skills/review/deep")
    assert [child["name"] for child in deep] == ["deep", "steps.md"]


def test_directories_lead_to_every_file(client: SkillClient) -> None:
    found, waiting = [], [FORMS_ROOT]
    while waiting:
        for page in client.pages("resources/directory/read", "resources", uri=waiting.pop()):
            waiting += [child["uri"] for child in page if child["mimeType"] == "inode/directory"]
            found += [child["uri"] for child in page if child["mimeType"] != "inode/directory"]
    entry = client.skill(f"{FORMS_ROOT}/SKILL.md")
    assert sorted(found) == sorted(file["uri"] for file in entry["resources"])


@pytest.mark.parametrize("path", ["SKILL.md", "templates/invoice.md", "templates/", "template", "nowhere/x"])
def test_what_is_not_a_directory_is_refused(client: SkillClient, path: str) -> None:
    code, message = client.error("resources/directory/read", uri=f"{FORMS_ROOT}/{path}")
    assert code == -32602
    assert "is not a directory" in message


# Resources


def test_the_head_of_each_skill_is_listed_as_a_resource(writing_client: SkillClient) -> None:
    writing_client.call("create_resource", name="own", uri="memo://own", content="x")
    (listed,) = writing_client.pages("resources/list", "resources")
    own, *heads = listed
    assert own["uri"] == "memo://own"
    assert [head["uri"] for head in heads] == list(writing_client.skills())
    assert (heads[0]["name"], heads[0]["description"]) == (FIELDS["name"], FIELDS["description"])
    assert heads[0]["mimeType"] == "text/markdown"
    assert heads[0]["annotations"]["lastModified"].endswith("Z")


def test_a_stored_resource_with_another_skill_uri_is_still_read(writing_client: SkillClient) -> None:
    uri = "skill://mine/SKILL.md"
    writing_client.call("create_resource", name="own", uri=uri, content="stored")
    assert writing_client.content(uri) == b"stored"
    assert writing_client.error("skills/get", uri=uri)[0] == -32602


# Names and paths


def test_a_skill_is_served_under_its_name(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    files = {
        "SKILL.md": skill_md("whole-library"),
        "guide.md": "Guide",
        "part/SKILL.md": skill_md("part"),
        "other/SKILL.md": skill_md("not-its-folder"),
    }
    write_files(machine.libraries / "My Tools", files)
    renamed = {
        "a/SKILL.md": skill_md("b"),
        "a/more.md": "more",
        "c/SKILL.md": skill_md("d"),
        "d/inner/SKILL.md": skill_md("inner"),
        "e/SKILL.md": skill_md("f"),
        "f/SKILL.md": skill_md("f"),
        "g/SKILL.md": skill_md("h"),
        "i/SKILL.md": skill_md("h"),
    }
    write_files(machine.libraries / "renamed", renamed)
    with SkillClient(machine) as client:
        skills = client.skills()
        for entry in skills.values():
            client.verified(entry)
    root = "skill://my_tools/whole-library"
    whole = skills[f"{root}/SKILL.md"]
    assert [file["uri"] for file in whole["resources"]] == [
        f"{root}/{path}" for path in ("SKILL.md", "guide.md", "other/SKILL.md", "part/SKILL.md")
    ]
    assert list(skills) == [
        f"{root}/SKILL.md",
        f"{root}/part/SKILL.md",
        "skill://renamed/b/SKILL.md",
        "skill://renamed/d/inner/SKILL.md",
        "skill://renamed/f/SKILL.md",
        "skill://renamed/h/SKILL.md",
    ]


def test_a_library_with_a_name_in_another_script_has_valid_uris(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    write_files(machine.libraries / "Größe", {"x/SKILL.md": skill_md("x")})
    with SkillClient(machine) as client:
        (uri,) = client.skills()
        assert uri == "skill://gr%C3%B6%C3%9Fe/x/SKILL.md"
        client.verified(client.skill(uri))
        # Clients may write the same URI differently.
        assert client.content("skill://gr%c3%b6%c3%9fe/x/SKILL.md")


@pytest.mark.parametrize("version", ERAS)
def test_a_library_added_later_is_served_and_its_skills_are_notified(tmp_path: Path, version: str) -> None:
    machine = Machine(tmp_path)
    with SkillClient(machine, version=version) as client:
        assert client.skills() == {}
        write_files(machine.libraries / "acme", LIBRARY)
        client.wait_until(lambda: ("resources/list_changed", None) in client.notifications)
        assert len(client.skills()) == 3


def test_a_second_start_serves_the_same_skills(machine: Machine) -> None:
    """The parsed prompts of libraries are then in a cache."""
    with SkillClient(machine) as client:
        first = client.skills()
        cached = machine.home / "cache"
        client.wait_until(lambda: client.ask("ping") != {} and any(cached.glob("libraries-*.cache")))
    with SkillClient(machine) as client:
        assert client.skills() == first


# Pages


def test_pages_hold_every_skill_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    files = {f"s{number:04}/SKILL.md": skill_md(f"s{number:04}") for number in range(1100)}
    write_files(machine.libraries / "many", files)
    with SkillClient(machine) as client:
        pages = client.pages("skills/list", "skills")
        assert [len(page) for page in pages] == [1000, 100]
        uris = [entry["uri"] for page in pages for entry in page]
        assert uris == [f"skill://many/{file}" for file in sorted(files)]
        heads = client.pages("resources/list", "resources")
        assert [head["uri"] for page in heads for head in page] == uris
        assert client.error("skills/list", cursor="x")[0] == -32602


# Changes


@pytest.mark.parametrize("version", ERAS)
def test_clients_are_notified_of_changed_files(machine: Machine, version: str) -> None:
    head, file, other = (f"{FORMS_ROOT}/{path}" for path in ("SKILL.md", "scripts/fill.py", "LICENSE.txt"))
    folder = machine.libraries / "acme" / "skills" / "pdf-forms"
    with SkillClient(machine, version=version, watched=(head, file, other)) as client:
        before = client.skill(head)
        (folder / "scripts" / "fill.py").write_text("print('changed')\n")
        wanted = {("resources/updated", file), ("resources/list_changed", None)}
        client.wait_until(lambda: wanted <= set(client.notifications))
        assert ("prompts/list_changed", None) not in client.notifications
        after = client.skill(head)
        assert client.verified(after)[file] == b"print('changed')\n"
        assert [
            old["uri"] for old, new in zip(before["resources"], after["resources"], strict=True) if old != new
        ] == [file]
        (folder / "scripts" / "new.py").write_text("print('new')\n")
        client.wait_until(lambda: len(client.skill(head)["resources"]) == len(before["resources"]) + 1)
        assert {uri for method, uri in client.notifications if method == "resources/updated"} == {file}
        (folder / "SKILL.md").rename(folder / "old.md")
        client.wait_until(
            lambda: {("resources/updated", uri) for uri in (head, other)} <= set(client.notifications)
        )
        assert client.error("skills/get", uri=head)[0] == -32602
        assert client.error("resources/read", uri=file)[0] in (-32002, -32602)


# Who is offered skills


@pytest.mark.parametrize("profile", CONTRACT_PROFILES)
def test_contract_profiles_have_no_skills(machine: Machine, profile: str) -> None:
    with ServerUnderTest(machine.root, profile, env=machine.env) as server:
        assert "extensions" not in server.first_response["result"]["capabilities"]
        params = {"uri": f"{FORMS_ROOT}/SKILL.md"}
        for method in ("skills/list", "skills/get", "resources/directory/read"):
            assert server.error(method, params)["code"] == -32601
        assert server.error("resources/read", params)["code"] in (-32602, -32601)


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_read_only_server_offers_skills_on_every_transport(tmp_path: Path, transport: Transport) -> None:
    machine = Machine(tmp_path)
    write_files(machine.libraries / "acme", {"x/SKILL.md": skill_md("x")})
    options = ("all", "--read-only")
    with ServerUnderTest(machine.root, *options, env=machine.env, transport=transport) as server:
        (entry,) = server.request("skills/list", {})["skills"]
        assert server.request("skills/get", {"uri": entry["uri"]})["skill"] == entry
        assert len(server.request("resources/directory/read", {"uri": "skill://acme/x"})["resources"]) == 1
        assert server.request("resources/read", {"uri": entry["uri"]})["contents"][0]["text"] == skill_md("x")


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


# Tools


def test_a_client_with_tools_only_finds_a_skill_and_reads_its_other_files(client: SkillClient) -> None:
    found = client.call("search", query="pdf forms", kinds=["library_prompt"])["structuredContent"]["hits"]
    ref = next(hit["ref"] for hit in found if "pdf-forms" in hit["ref"])
    files = described(client, ref)["files"]
    others = {item["uri"] for item in client.skill(f"{FORMS_ROOT}/SKILL.md")["resources"]}
    assert set(files) == others - {f"{FORMS_ROOT}/SKILL.md"}
    for uri in files:
        assert described(client, uri)["ref"] == uri


def described(client: SkillClient, ref: str) -> Any:
    """Read something and return its description."""
    result = client.request("tools/call", name="read", arguments={"ref": ref})
    assert not result["isError"], result
    return msgspec.json.decode(result["content"][-1]["text"])
