"""Completion suggests choices, tags, projects and values of template variables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.contract_replay import Json, ServerUnderTest, create_project


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerUnderTest]:
    create_project(tmp_path, "auth-module")
    create_project(tmp_path, "Default-2")
    with ServerUnderTest(tmp_path) as opened:
        yield opened


def complete(server: ServerUnderTest, ref: Json, argument: str, typed: str, **others: str) -> list[str]:
    params = {"ref": ref, "argument": {"name": argument, "value": typed}, "context": {"arguments": others}}
    completion = server.request("completion/complete", params)["completion"]
    values: list[str] = completion["values"]
    assert completion["total"] == len(values)
    assert completion["hasMore"] is False
    return values


def prompt(server: ServerUnderTest, **argument: object) -> Json:
    server.text("create_prompt", name="p", content="{{ x }}", arguments=[argument])
    return {"type": "ref/prompt", "name": "p"}


def test_choices_are_suggested_for_an_argument_that_declares_them(server: ServerUnderTest) -> None:
    ref = prompt(server, name="language", choices=["Python", "PHP", "Go"])
    assert complete(server, ref, "language", "p") == ["Python", "PHP"]
    assert complete(server, ref, "language", "") == ["Python", "PHP", "Go"]
    assert complete(server, ref, "language", "rust") == []


def test_projects_are_suggested_for_an_argument_called_project(server: ServerUnderTest) -> None:
    ref = prompt(server, name="project")
    assert complete(server, ref, "project", "d") == ["Default-2", "default"]
    assert complete(server, ref, "project", "%") == []


@pytest.mark.parametrize("name", ["tag", "tags"])
def test_tags_are_suggested_for_an_argument_called_tag(server: ServerUnderTest, name: str) -> None:
    server.text("add_prompt", title="One", content="x", tags=["review", "rust", "go"])
    server.text("add_prompt", title="Two", content="x", tags=["rust"])
    ref = prompt(server, name=name)
    # The most frequently used tag comes first.
    assert complete(server, ref, name, "R") == ["rust", "review"]


def test_nothing_is_suggested_for_any_other_argument(server: ServerUnderTest) -> None:
    assert complete(server, prompt(server, name="code"), "code", "x") == []


def test_values_in_stored_uris_are_suggested_for_a_template_variable(server: ServerUnderTest) -> None:
    table = "db://tables/{table}/{part}"
    server.text("create_resource", name="t", uri=table, content="{{ table }}")
    for uri in (
        "db://tables/users/schema",
        "db://tables/users/rows",
        "db://tables/uploads/schema",
        "db://x/y",
    ):
        server.text("create_resource", name=uri.replace("/", "-").replace(":", ""), uri=uri, content="x")
    ref = {"type": "ref/resource", "uri": table}
    assert complete(server, ref, "table", "u") == ["uploads", "users"]
    assert complete(server, ref, "part", "", table="users") == ["rows", "schema"]


def test_tags_and_projects_are_suggested_for_dittybag_s_own_templates(server: ServerUnderTest) -> None:
    server.text("add_prompt", title="One", content="x", tags=["review"])
    tags = {"type": "ref/resource", "uri": "dittybag://tags/{tag}"}
    projects = {"type": "ref/resource", "uri": "dittybag://projects/{project}"}
    assert complete(server, tags, "tag", "re") == ["review"]
    assert complete(server, projects, "project", "AUTH") == ["auth-module"]


@pytest.mark.parametrize(
    ("ref", "argument", "problem"),
    [
        ({"type": "ref/prompt", "name": "nope"}, "x", "Prompt 'nope' not found in project 'default'"),
        ({"type": "ref/prompt", "name": "p"}, "y", "Prompt 'p' has no argument 'y'"),
        ({"type": "ref/resource", "uri": "a://{b}"}, "b", "Unknown resource template: a://{b}"),
        (
            {"type": "ref/resource", "uri": "dittybag://tags/{tag}"},
            "y",
            "The template dittybag://tags/{tag} has no variable y",
        ),
    ],
)
def test_completing_an_unknown_reference_or_argument_is_an_error(
    server: ServerUnderTest, ref: Json, argument: str, problem: str
) -> None:
    prompt(server, name="x")
    params = {"ref": ref, "argument": {"name": argument, "value": ""}}
    assert server.error("completion/complete", params) == {"code": -32602, "message": problem}
