"""Stored prompts as skills of one file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # has no type hints

from tests.contracts.contract_replay import Json, ServerUnderTest
from tests.contracts.library_fixtures import ERAS, STATELESS, Machine, write_files
from tests.contracts.skill_client import SkillClient
from tests.skill_samples import skill_md

ROOT = "skill://stored-prompts"
REVIEW = f"{ROOT}/code-review/SKILL.md"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture(params=ERAS)
def client(request: pytest.FixtureRequest, machine: Machine) -> Iterator[SkillClient]:
    with SkillClient(machine, version=request.param, watched=(REVIEW,)) as client:
        yield client


def front_matter(text: bytes) -> Json:
    """Return the front matter of a `SKILL.md` as a host parses it."""
    _, fields, _ = text.decode().split("---\n", 2)
    found: Json = yaml.safe_load(fields)
    return found


def test_a_prompt_is_a_skill_of_one_file(client: SkillClient) -> None:
    client.call("create_prompt", name="code-review", description="Reviews code.", content="Review this.\n")
    entry = client.skills()[REVIEW]
    assert entry == client.skill(REVIEW)
    assert entry["frontmatter"] == {"name": "code-review", "description": "Reviews code."}
    (text,) = client.verified(entry).values()
    assert text == b'---\nname: "code-review"\ndescription: "Reviews code."\n---\n\nReview this.\n'
    (child,) = client.request("resources/directory/read", uri=f"{ROOT}/code-review")["resources"]
    assert (child["uri"], child["name"], child["mimeType"]) == (REVIEW, "code-review", "text/markdown")
    assert (child["description"], child["size"]) == ("Reviews code.", len(text))


def test_prompts_are_not_listed_as_resources(client: SkillClient) -> None:
    client.call("create_prompt", name="code-review", content="x")
    assert client.request("resources/list")["resources"] == []


@pytest.mark.parametrize("name", ["Code_Review.v2", "a--b", "...", "..", "-", "UPPER", "x" * 200, "b_"])
def test_a_prompt_with_any_name_is_a_skill(client: SkillClient, name: str) -> None:
    client.call("create_prompt", name=name, description="Any name", content=f"Content of {name}")
    ((uri, entry),) = client.skills().items()
    assert client.skill(uri) == entry
    assert entry["frontmatter"]["name"] == uri.split("/")[-2]
    assert len(entry["frontmatter"]["name"]) <= 64
    (text,) = client.verified(entry).values()
    assert text.endswith(f"Content of {name}".encode())
    assert front_matter(text) == entry["frontmatter"]


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ('"quoted": \\ # not a comment', '"quoted": \\ # not a comment'),
        ("two\nlines\tand tabs", "two lines and tabs"),
        ("---\nname: other", "--- name: other"),
        ("control \x01 \x7f \x85 \u2028 \ufeff \uffff \U0001f9f7 é", None),
        ("x" * 3000, "x" * 1024),
        (" ", "code-review"),
    ],
)
def test_a_description_is_safe_in_the_front_matter(
    client: SkillClient, description: str, expected: str | None
) -> None:
    client.call("create_prompt", name="code-review", description=description, content="x")
    entry = client.skill(REVIEW)
    (text,) = client.verified(entry).values()
    assert front_matter(text) == entry["frontmatter"]
    assert entry["frontmatter"]["name"] == "code-review"
    if expected is not None:
        assert entry["frontmatter"]["description"] == expected


def test_a_prompt_without_a_description_is_described_by_its_title(client: SkillClient) -> None:
    client.call("add_prompt", title="Code Review", content="x", tags=[])
    assert client.skill(REVIEW)["frontmatter"] == {"name": "code-review", "description": "Code Review"}


def test_a_template_says_which_variables_to_replace(client: SkillClient) -> None:
    arguments = [
        {"name": "language", "required": True, "description": "The\nlanguage"},
        {"name": "style"},
    ]
    client.call("create_prompt", name="code-review", content="Use {{ language }}.", arguments=arguments)
    text = client.content(REVIEW).decode()
    assert "`{{ language }}`" in text
    assert "- `language`: The language\n- `style` (optional)\n" in text
    assert text.endswith("\n\nUse {{ language }}.")


def test_a_change_gives_a_new_digest_and_a_notification(client: SkillClient) -> None:
    client.call("create_prompt", name="code-review", content="First")
    before = client.skill(REVIEW)
    client.notifications.clear()
    client.call("update_prompt", name="code-review", content="Second")
    client.wait_until(lambda: ("resources/updated", REVIEW) in client.notifications)
    after = client.skill(REVIEW)
    assert before["resources"] != after["resources"]
    assert client.verified(after)[REVIEW].endswith(b"Second")
    client.call("delete_prompt", name="code-review")
    assert client.skills() == {}
    assert client.error("skills/get", uri=REVIEW)[0] == -32602
    assert client.error("resources/directory/read", uri=f"{ROOT}/code-review")[0] == -32602
    assert client.error("resources/read", uri=REVIEW)[0] == (
        -32602 if client.version == STATELESS else -32002
    )


@pytest.mark.parametrize(
    "path",
    [
        "code-review",
        "code-review/",
        "code-review/x/SKILL.md",
        "code-review/other.md",
        "Code-Review/SKILL.md",
        "",
    ],
)
def test_other_uris_are_not_skills(client: SkillClient, path: str) -> None:
    client.call("create_prompt", name="code-review", content="x")
    assert client.error("skills/get", uri=f"{ROOT}/{path}")[0] == -32602
    assert client.error("resources/read", uri=f"{ROOT}/{path}")[0] in (-32002, -32602)


def test_every_transport_and_database_serves_prompts_as_skills(server: ServerUnderTest) -> None:
    for name in ("code-review", "Second_Prompt"):
        server.text("create_prompt", name=name, description=f"About {name}", content=f"Content of {name}")
    entries = server.request("skills/list", {})["skills"]
    assert [entry["frontmatter"]["name"] for entry in entries] == ["code-review", "second-prompt"]
    for entry in entries:
        assert server.request("skills/get", {"uri": entry["uri"]})["skill"] == entry
        (contents,) = server.request("resources/read", {"uri": entry["uri"]})["contents"]
        (file,) = entry["resources"]
        assert file["digest"] == f"sha256:{hashlib.sha256(contents['text'].encode()).hexdigest()}"


def test_prompts_of_another_project_are_not_offered(machine: Machine) -> None:
    machine.root.mkdir(exist_ok=True)
    with SkillClient(machine) as client:
        client.call("create_prompt", name="code-review", content="x")
    machine.run("project", "create", "other", "--db", str(machine.root / "dittybag.db"))
    with SkillClient(machine, "--project", "other") as client:
        assert client.skills() == {}
        assert client.error("skills/get", uri=REVIEW)[0] == -32602
        assert client.error("resources/read", uri=REVIEW)[0] == -32002


def test_pages_hold_library_skills_first_and_every_prompt_once(machine: Machine) -> None:
    write_files(machine.libraries / "acme", {"x/SKILL.md": skill_md("x")})
    with SkillClient(machine) as client:
        names = [f"prompt-{number:03}" for number in range(520)]
        for name in names:
            client.call("create_prompt", name=name, content=f"Content of {name}")
        pages = client.pages("skills/list", "skills")
        assert [entry["uri"] for page in pages for entry in page] == [
            "skill://acme/x/SKILL.md",
            *(f"{ROOT}/{name}/SKILL.md" for name in names),
        ]
        assert len(pages) == 3
