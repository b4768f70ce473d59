"""Two people edit the same prompt, resource or task."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec import Struct

from tests.e2e.web_server_process import WebServerProcess
from tests.web.browser_client import BrowserClient

PROJECT = "/p/default"


class Editing(Struct, frozen=True):
    """A form, and what an agent does while it is open."""

    kind: str
    form: str
    #: What was typed: two fields differ from the saved version.
    fields: dict[str, str]
    #: The labels of these fields.
    labels: list[str]
    update: tuple[str, dict[str, Any]]
    delete: tuple[str, dict[str, Any]]
    #: What the form says about a change and a deletion.
    warning: str


def edit_prompt(server: WebServerProcess, name: str) -> Editing:
    saved = server.call("create_prompt", name=name, content="Old")
    typed = {"title": name, "name": name, "description": "Mine", "content": "My text"}
    return Editing(
        "prompt",
        f"{PROJECT}/prompts/{saved['id']}/edit",
        typed,
        ["Description", "Content"],
        ("update_prompt", {"name": name, "content": "Their text"}),
        ("delete_prompt", {"name": name}),
        f"{PROJECT}/prompts/{saved['id']}/changed?version=1",
    )


def edit_resource(server: WebServerProcess, name: str) -> Editing:
    uri = f"note:///{name}"
    server.call("create_resource", name=name, uri=uri, content="Old", mime_type="text/plain")
    page = BrowserClient.sign_in(server).get(f"{PROJECT}/resources/view?uri={uri}").text
    found = re.search(r"edit\?id=([0-9a-f-]+)", page)
    assert found is not None
    typed = {"name": name, "uri": uri, "mime_type": "text/plain", "title": "Mine", "content": "My text"}
    return Editing(
        "resource",
        f"{PROJECT}/resources/edit?id={found[1]}",
        typed,
        ["Title", "Content"],
        ("update_resource", {"name": name, "content": "Their text"}),
        ("delete_resource", {"name": name}),
        f"{PROJECT}/resources/changed?id={found[1]}&version=1",
    )


def edit_task(server: WebServerProcess, name: str) -> Editing:
    task = server.call("task_create", title=name)["id"]
    typed = {"title": name, "priority": "5", "energy": "medium", "time_estimate": "1hr", "notes": "My text"}
    return Editing(
        "task",
        f"{PROJECT}/tasks/{task}",
        typed,
        ["Priority", "Notes"],
        ("task_update", {"task_id": task, "notes": "Their text"}),
        ("task_delete", {"task_id": task}),
        f"{PROJECT}/tasks/{task}/state?version=1",
    )


EDITORS = pytest.mark.parametrize("edit", [edit_prompt, edit_resource, edit_task])


@EDITORS
def test_both_versions_are_shown_before_one_is_overwritten(
    server: WebServerProcess, client: BrowserClient, edit: Any
) -> None:
    editing: Editing = edit(server, "conflict")
    assert client.get(editing.warning).status == 204
    tool, arguments = editing.update
    server.call(tool, client="cursor", **arguments)
    assert f"cursor changed this {editing.kind}" in client.get(editing.warning).text
    typed = {"form_secret": client.secret, **editing.fields}
    shown = client.post(editing.form, {**typed, "version": "1"})
    assert shown.status == 409
    assert "cursor saved first" in shown.text
    assert re.findall(r"<h3>(.*?)</h3>", shown.text)[: len(editing.labels)] == editing.labels
    assert '<td class="removed"><span class="visually-hidden">removed: </span>' in shown.text
    assert "Their" in shown.text
    assert 'name="version" value="2"' in shown.text
    assert client.post(editing.form, {**typed, "version": "2"}).status == 303
    assert client.get(editing.warning.replace("version=1", "version=3")).status == 204


@EDITORS
def test_what_was_typed_survives_a_deletion(
    server: WebServerProcess, client: BrowserClient, edit: Any
) -> None:
    editing: Editing = edit(server, "deleted")
    tool, arguments = editing.delete
    server.call(tool, client="cursor", **arguments)
    assert f"cursor deleted this {editing.kind}" in client.get(editing.warning).text
    shown = client.post(editing.form, {"form_secret": client.secret, **editing.fields, "version": "1"})
    assert shown.status == 409
    assert "was deleted while you were editing it" in shown.text
    assert "My text" in shown.text
