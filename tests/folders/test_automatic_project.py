"""`--project auto`: the project of the folder that a client works in, on real folders and a real server."""

from __future__ import annotations

import os
import unicodedata
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier, Thread
from urllib.parse import quote

import msgspec
import pytest

from tests.cli.cli_runner import data
from tests.folders.folder_client import FolderClient, Machine

LISTS_CHANGED = ("notifications/prompts/list_changed", "notifications/resources/list_changed")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def uri(folder: Path | str) -> str:
    return f"file://{quote(os.fsencode(folder))}"


# Repositories


def test_a_folder_inside_a_repository_has_the_project_of_its_top(machine: Machine) -> None:
    top = machine.repository("src", "website")
    assert machine.write(machine.folder("src", "website", "pages", "home")) == "website"
    assert machine.write(top, "other") == "website"
    assert machine.projects() == {"website": [str(top)]}


def test_a_nested_repository_has_a_project_of_its_own(machine: Machine) -> None:
    machine.repository("outer")
    machine.repository("outer", "vendor", "inner")
    assert machine.write(machine.folder("outer", "vendor", "inner", "lib")) == "inner"
    assert machine.write(machine.folder("outer", "vendor")) == "outer"
    assert machine.read(machine.path / "outer") == machine.read(machine.path / "outer" / "vendor") == ["note"]


def test_a_worktree_belongs_to_its_repository(machine: Machine) -> None:
    top = machine.checkout("src", "website")
    machine.git(top, "worktree", "add", "-q", "../fix-a-bug")
    assert machine.write(machine.path / "src" / "fix-a-bug") == "website"
    assert machine.read(top) == ["note"]
    assert machine.projects() == {"website": [str(top)]}


def test_worktrees_of_a_bare_repository_share_a_project(machine: Machine) -> None:
    origin = machine.checkout("origin")
    machine.git(machine.path, "clone", "-q", "--bare", str(origin), "website.git")
    for name in ("one", "two"):
        machine.git(machine.path / "website.git", "worktree", "add", "-q", "-b", name, f"../{name}")
    assert machine.write(machine.path / "one") == "website"
    assert machine.read(machine.path / "two") == ["note"]


def test_worktrees_beside_a_hidden_repository_belong_to_the_folder_around_it(machine: Machine) -> None:
    origin = machine.checkout("origin")
    top = machine.folder("website")
    machine.git(top, "clone", "-q", "--bare", str(origin), ".bare")
    (top / ".git").write_text("gitdir: ./.bare\n")
    machine.git(top, "worktree", "add", "-q", "-b", "one", "one")
    assert machine.write(top / "one") == "website"
    assert machine.read(top) == ["note"]


def test_a_submodule_is_a_repository_of_its_own(machine: Machine) -> None:
    library, top = machine.checkout("upstream"), machine.checkout("website")
    machine.git(top, "submodule", "--quiet", "add", str(library), "lib")
    assert machine.write(top / "lib") == "lib"
    assert machine.write(top) == "website"
    # A worktree of the submodule belongs to the submodule.
    machine.git(top / "lib", "worktree", "add", "-q", str(machine.path / "lib-fix"))
    assert machine.read(machine.path / "lib-fix") == ["note"]
    assert machine.projects() == {"lib": [str(top / "lib")], "website": [str(top)]}


def test_a_repository_with_its_data_elsewhere_is_its_own_top(machine: Machine) -> None:
    machine.folder("data", "of-git")
    top = machine.folder("website")
    machine.git(top, "init", "-q", "--separate-git-dir", "../data/of-git/website")
    assert machine.write(machine.folder("website", "pages")) == "website"
    assert machine.projects() == {"website": [str(top)]}


def test_a_link_leads_to_the_same_project(machine: Machine) -> None:
    top = machine.repository("real", "website")
    (machine.path / "shortcut").symlink_to(top)
    assert machine.write(machine.path / "shortcut") == "website"
    assert machine.read(top) == ["note"]
    with machine.connect(machine.home, roots=[uri(machine.path / "shortcut")]) as client:
        assert client.prompts() == ["note"]
    assert machine.projects() == {"website": [str(top)]}


def test_folders_that_cannot_be_read_are_passed_over(machine: Machine) -> None:
    top = machine.repository("website")
    inner = machine.folder("website", "inner")
    (inner / ".git").symlink_to(".git")
    assert machine.write(inner) == "website"
    secret = machine.folder("secret")
    (secret / ".git").write_text(f"gitdir: {top / '.git' / 'worktrees' / 'x'}")
    (secret / ".git").chmod(0)
    assert machine.write(secret) == "secret"


def test_without_a_repository_a_folder_is_its_own_project(machine: Machine) -> None:
    machine.write(machine.folder("notes"))
    assert machine.write(machine.folder("notes", "recipes")) == "recipes"
    assert machine.read(machine.path / "notes" / "recipes") == ["note"]


# Names


def test_two_checkouts_of_one_name_do_not_share_a_project(machine: Machine) -> None:
    folders = [machine.repository(parent, "website") for parent in ("one", "two")]
    third = machine.repository("deep", "two", "website")
    assert [machine.write(folder) for folder in (*folders, third)] == [
        "website",
        "two-website",
        "two-website-2",
    ]
    assert [machine.read(folder) for folder in folders] == [["note"], ["note"]]


def test_a_project_that_exists_is_not_adopted_until_it_is_linked(machine: Machine) -> None:
    top = machine.repository("src", "website")
    machine.command(machine.path, "project", "create", "website")
    machine.command(machine.path, "prompt", "add", "old", "x", "--project", "website")
    assert machine.read(top) == []
    with machine.connect(top) as client:
        why = client.call("project")["why"]
        assert "Project 'website' exists, but is not linked to it" in why
        machine.command(top, "project", "link")
        assert client.prompts() == ["old"]
        assert client.save("new") == "website"


@pytest.mark.parametrize(
    ("name", "project"),
    [
        ("web site", "web site"),
        (" padded ", "padded"),
        ("two\nlines", "two lines"),
        ("日本語", "日本語"),
        (unicodedata.normalize("NFD", "café"), "café"),
        ("x" * 255, "x" * 100),
        ("auto", "parent-auto"),
        ("default", "parent-default"),
        ("   ", "project"),
        ("\x07", "project"),
        ("-p", "-p"),
        ("'; DROP TABLE projects", "'; DROP TABLE projects"),
        (os.fsdecode(b"caf\xe9"), "caf\\xe9"),
    ],
)
def test_the_name_of_a_folder_becomes_a_valid_name_of_a_project(
    machine: Machine, name: str, project: str
) -> None:
    folder = machine.folder("parent", name)
    assert machine.write(folder) == project
    assert machine.read(folder) == ["note"]


def test_long_names_with_the_same_start_stay_apart(machine: Machine) -> None:
    names = [machine.write(machine.folder("parent", "x" * 150 + end)) for end in "abc"]
    assert len(set(names)) == 3
    assert all(len(name) <= 100 for name in names)


# Which folder


def test_the_home_folder_and_the_root_have_the_default_project(machine: Machine) -> None:
    assert machine.write(machine.home) == "default"
    assert machine.read("/") == ["note"]
    assert machine.projects() == {}


def test_a_repository_in_the_home_folder_does_not_hold_what_is_below(machine: Machine) -> None:
    (machine.home / ".git").mkdir()
    assert machine.write(machine.home) == "default"
    assert machine.write(machine.folder("home", "recipes")) == "recipes"


def test_claude_codes_folder_comes_before_roots_and_the_working_folder(machine: Machine) -> None:
    named, rooted, started = (machine.repository(name) for name in ("named", "rooted", "started"))
    env = {"CLAUDE_PROJECT_DIR": str(machine.folder("named", "sub"))}
    with machine.connect(started, roots=[uri(rooted)], env=env) as client:
        assert client.save("note") == "named"
        assert client.questions == 0
    assert machine.read(named) == ["note"]


@pytest.mark.parametrize("missing", ["nowhere", "file"])
def test_a_missing_folder_of_claude_code_is_ignored(machine: Machine, missing: str) -> None:
    (machine.path / "file").write_text("x")
    top = machine.repository("website")
    assert machine.write(top, env={"CLAUDE_PROJECT_DIR": str(machine.path / missing)}) == "website"


@pytest.mark.parametrize("stateless", [False, True], ids=["handshake", "stateless"])
def test_the_roots_of_a_client_come_before_the_working_folder(machine: Machine, stateless: bool) -> None:
    rooted = machine.repository("rooted")
    with machine.connect(machine.folder("started"), roots=[uri(rooted)], stateless=stateless) as client:
        assert client.save("one") == client.save("two") == "rooted"
        assert client.prompts() == ["one", "two"]
        assert client.questions == 1


def test_lists_that_cannot_ask_for_roots_follow_them_later(machine: Machine) -> None:
    """In the stateless revision, only some requests can ask the client."""
    started, rooted = machine.repository("started"), machine.repository("rooted")
    machine.write(started, "of-started")
    machine.write(rooted, "of-rooted")
    with machine.connect(started, roots=[uri(rooted)], stateless=True) as client:
        client.listen()
        assert client.prompts() == ["of-started"]
        assert client.save("new") == "rooted"
        client.wait_for(*LISTS_CHANGED)
        assert client.prompts() == ["of-rooted", "new"]


def test_the_first_of_several_roots_that_is_a_folder_decides(machine: Machine) -> None:
    first, second = machine.repository("first"), machine.repository("second")
    roots = [uri(machine.path / "nowhere"), uri(machine.home), uri(second), uri(first)]
    with machine.connect(machine.folder("started"), roots=roots) as client:
        assert client.save("note") == "second"


@pytest.mark.parametrize(
    "form",
    [
        "file://{path}",
        "file://localhost{path}",
        "FILE://{path}/",
        "file:{path}",
        "file://{path}/file.txt",
        "file://{path}?x#y",
    ],
)
def test_escapes_in_the_uris_of_roots_are_decoded(machine: Machine, form: str) -> None:
    folder = machine.folder("rooted", "a b%20#é?")
    (folder / "file.txt").write_text("x")
    path = quote(str(folder)).replace("%C3%A9", "%c3%a9")
    with machine.connect(machine.folder("started"), roots=[form.format(path=path)]) as client:
        assert client.save("note") == "a b%20#é?"


@pytest.mark.parametrize(
    "root",
    [
        "https://example.org/website",
        "file://example.org{path}",
        "file:website",
        "file://",
        "file:///%00",
        "{path}",
        "",
        "file://" + "/x" * 50_000,
    ],
)
def test_other_roots_are_ignored(machine: Machine, root: str) -> None:
    folder = machine.folder("rooted")
    with machine.connect(machine.repository("started"), roots=[root.format(path=folder)]) as client:
        assert client.save("note") == "started"


@pytest.mark.parametrize("client", [{"roots_error": True}, {"is_silent": True}], ids=str)
def test_a_client_that_does_not_list_its_roots_has_none(machine: Machine, client: dict[str, bool]) -> None:
    top, env = machine.repository("started"), {"ROOTS_SECONDS": "0.2"}
    with machine.connect(top, roots=[], env=env, **client) as connected:
        assert connected.save("note") == "started"
        assert connected.prompts() == ["note"]
        assert connected.questions == 1
        assert ("notifications/cancelled" in connected.notifications) == ("is_silent" in client)


def test_when_the_roots_change_the_project_changes(machine: Machine) -> None:
    one, two = machine.repository("one"), machine.repository("two")
    with machine.connect(machine.home, roots=[uri(one)]) as client:
        assert client.save("first") == "one"
        client.change_roots(uri(two))
        client.wait_for(*LISTS_CHANGED)
        assert client.prompts() == []
        assert client.save("second") == "two"
        client.change_roots(uri(one))
        assert client.prompts() == ["first"]
        assert client.questions == 3


# The first write


def test_reading_creates_nothing_and_shows_nothing_of_other_projects(machine: Machine) -> None:
    machine.command(machine.path, "prompt", "add", "of-default", "secret words")
    with machine.connect(machine.repository("website")) as client:
        assert client.prompts() == []
        assert client.ask("resources/list")["resources"] == []
        assert client.call("search", query="secret")["hits"] == []
        assert client.call("list_prompts")["prompts"] == []
        assert client.call("list_tags")["tags"] == []
        assert client.call("list_changes")["changes"] == []
        text = client.refusal("update_prompt", name="of-default", content="y")
        assert text == "Error: Prompt 'of-default' does not exist in project 'website'"
        message = client.response(client.request("prompts/get", {"name": "of-default"}))
        assert message["error"]["message"] == "Prompt 'of-default' not found in project 'website'"
    assert machine.projects() == {}
    assert not (machine.data / "project-links").exists()


def test_a_write_that_fails_creates_nothing(machine: Machine) -> None:
    with machine.connect(machine.repository("website")) as client:
        assert "Error" in client.refusal("create_prompt", name="not valid!", content="x")
        assert "Error" in client.refusal("delete_prompt", name="nothing")
        assert "NOT_FOUND" in client.refusal("undo_change", change=99)
        client.call("task_create", title="Tasks belong to users")
    assert machine.projects() == {}
    assert not (machine.data / "project-links").exists()


def test_a_read_only_server_creates_nothing(machine: Machine) -> None:
    top = machine.repository("website")
    machine.command(machine.path, "prompt", "add", "of-default", "x")
    with machine.connect(top, "--read-only") as client:
        assert client.prompts() == []
        assert client.call("project")["current"] == "website"
        assert "read-only" in client.refusal("project", action="create", name="website")
        assert client.call("project", action="switch", name="default")["current"] == "default"
        assert client.prompts() == ["of-default"]
    assert machine.projects() == {}


def _write_many(client: FolderClient, barrier: Barrier, prefix: str) -> None:
    barrier.wait()
    ids = [
        client.request("tools/call", {"name": "create_prompt", "arguments": {"name": name, "content": "x"}})
        for name in (f"{prefix}-{number}" for number in range(10))
    ]
    for request_id in ids:
        assert not client.response(request_id)["result"]["isError"]


def _write_at_once(clients: list[FolderClient]) -> None:
    barrier = Barrier(len(clients))
    threads = [
        Thread(target=_write_many, args=(client, barrier, f"c{number}"))
        for number, client in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_concurrent_first_writes_in_one_folder_make_one_project(
    machine: Machine, database: str, request: pytest.FixtureRequest
) -> None:
    options = () if database == "sqlite" else ("--db", request.getfixturevalue("postgres_url"))
    top = machine.repository("website")
    with ExitStack() as stack:
        _write_at_once([stack.enter_context(machine.connect(top, *options)) for _ in range(4)])
    assert len(machine.read(top, *options)) == 40
    (file,) = (machine.data / "project-links").glob("*.json")
    links = msgspec.json.decode(file.read_bytes())
    assert [link["name"] for link in links["links"]] == ["website"]
    # The password of the database.
    assert b"hidden" not in file.read_bytes()


def test_concurrent_first_writes_in_folders_of_one_name_make_one_project_each(machine: Machine) -> None:
    tops = [machine.repository(f"parent{number}", "website") for number in range(4)]
    with ExitStack() as stack:
        _write_at_once([stack.enter_context(machine.connect(top)) for top in tops])
    folders = machine.projects()
    assert sorted(folders.values()) == [[str(top)] for top in tops]
    assert [len(machine.read(top)) for top in tops] == [10] * 4


def test_a_client_sees_the_project_that_another_process_makes(machine: Machine) -> None:
    top = machine.repository("website")
    with machine.connect(top) as client:
        assert client.prompts() == []
        machine.command(top, "prompt", "add", "from-shell", "x", "--project", "auto")
        client.wait_for(*LISTS_CHANGED)
        assert client.prompts() == ["from-shell"]


def test_undoing_the_first_write_keeps_the_project_and_what_came_later(machine: Machine) -> None:
    top = machine.repository("website")
    with machine.connect(top) as client:
        client.save("first")
        client.save("second")
        first = client.call("list_changes")["changes"][-2]
        assert (first["kind"], first["title"]) == ("prompt", "first")
        client.call("undo_change", change=first["change"])
        assert client.prompts() == ["second"]


# Later


def test_a_project_that_is_renamed_stays_linked(machine: Machine) -> None:
    top = machine.repository("website")
    with machine.connect(top) as client:
        client.save("first")
        machine.command(machine.path, "project", "rename", "website", "homepage")
        assert client.save("second") == "homepage"
    assert machine.read(top) == ["first", "second"]
    assert machine.projects() == {"homepage": [str(top)]}


def test_after_its_project_is_deleted_a_folder_gets_a_new_one(machine: Machine) -> None:
    top = machine.repository("website")
    with machine.connect(top) as client:
        client.save("first")
        machine.command(machine.path, "project", "delete", "website")
        client.notifications.clear()
        client.wait_for(*LISTS_CHANGED)
        assert client.prompts() == []
        assert client.save("second") == "website"
        assert client.prompts() == ["second"]
    assert machine.projects() == {"website": [str(top)]}


def test_a_deleted_project_that_is_restored_is_linked_again(machine: Machine) -> None:
    top = machine.repository("website")
    machine.write(top)
    machine.command(machine.path, "project", "delete", "website")
    with machine.connect(top) as client:
        assert client.prompts() == []
        machine.command(machine.path, "undo", "--yes")
        assert client.prompts() == ["note"]


def test_a_link_into_another_database_is_not_followed(machine: Machine) -> None:
    """The file of the database is deleted, and the new one gives the same id to another project."""
    one, two = machine.repository("one"), machine.repository("two")
    machine.write(one, "of-one")
    for file in machine.data.glob("default.db*"):
        file.unlink()
    assert machine.write(two, "of-two") == "two"
    assert machine.read(one) == []
    assert machine.read(two) == ["of-two"]


def test_each_database_has_its_own_links(machine: Machine) -> None:
    top = machine.repository("website")
    assert machine.write(top, "note", "--workspace", "work") == "website"
    assert machine.read(top) == []
    assert machine.read(top, "--workspace", "work") == ["note"]


def test_a_damaged_file_of_links_is_reported_and_left_alone(machine: Machine) -> None:
    top = machine.repository("website")
    machine.write(top)
    (file,) = (machine.data / "project-links").glob("*.json")
    file.write_text("{")
    with machine.connect(top) as client:
        message = client.response(client.request("prompts/list", {}))
        assert "delete it and link the folders again" in message["error"]["message"]
    error = machine.command(top, "project", "list", status=5).stderr
    assert str(file) in error
    assert file.read_text() == "{"


# Links


def test_a_link_comes_before_the_name(machine: Machine) -> None:
    top = machine.repository("website")
    machine.command(machine.path, "project", "create", "homepage")
    machine.command(top, "project", "link", "--project", "homepage")
    assert machine.write(machine.folder("website", "pages")) == "homepage"
    assert machine.projects() == {"homepage": [str(top)]}


def test_a_folder_inside_a_repository_can_have_a_link_of_its_own(machine: Machine) -> None:
    machine.repository("monorepo")
    part = machine.folder("monorepo", "packages", "part")
    with machine.connect(part) as client:
        assert client.call("project")["current"] == "monorepo"
        machine.command(machine.path, "project", "link", str(part))
        assert client.call("project")["current"] == "part"
    assert machine.write(machine.folder("monorepo", "packages", "part", "src")) == "part"
    assert machine.write(machine.folder("monorepo", "packages")) == "monorepo"


def test_after_it_is_unlinked_a_folder_has_no_project(machine: Machine) -> None:
    top = machine.repository("src", "website")
    with machine.connect(top) as client:
        client.save("old")
        machine.command(machine.folder("src", "website", "pages"), "project", "unlink")
        assert client.prompts() == []
        assert client.save("new") == "src-website"


# Commands


def test_commands_work_in_the_project_of_their_folder(machine: Machine) -> None:
    top = machine.repository("website")
    pages = machine.folder("website", "pages")
    added = machine.command(pages, "prompt", "add", "a", "x", "--tag", "t", "-p", "auto")
    assert "a" in added.stdout
    assert machine.read(top) == ["a"]
    assert "a" in machine.command(top, "prompt", "list", "-p", "auto").stdout
    assert "a" not in machine.command(top, "prompt", "list").stdout
    again = machine.command(pages, "prompt", "add", "a", "x", "-p", "auto", status=4)
    assert "project 'website'" in again.stderr
    missing = machine.command(top, "tag", "rename", "no", "yes", "-p", "auto", status=3)
    assert "in project 'website'" in missing.stderr
    history = data(machine.command(top, "history", "-p", "auto", "--json"))
    assert [item["kind"] for item in history["changes"]] == ["prompt", "project"]
    machine.command(top, "undo", "-p", "auto", "--yes")
    assert machine.read(top) == []
    machine.command(top, "prompt", "add", "a", "of default")
    machine.command(top, "prompt", "add", "a", "of website", "-p", "auto")
    machine.command(top, "purge", "a", "-p", "auto", "--yes")
    assert machine.read(top) == []
    assert "of default" in machine.command(top, "prompt", "show", "a").stdout


def test_commands_that_read_create_no_project(machine: Machine) -> None:
    top = machine.repository("website")
    for arguments in (("prompt", "list"), ("resource", "list"), ("search", "x"), ("tag", "list")):
        machine.command(top, *arguments, "-p", "auto")
    shown = data(machine.command(top, "project", "show", "--json"))
    assert (shown["name"], shown["exists"], shown["folders"]) == ("website", False, [])
    assert not (machine.data / "project-links").exists()
    assert not (machine.data / "default.db").exists()


def test_an_import_and_an_export_know_the_project_of_the_folder(machine: Machine) -> None:
    top = machine.repository("website")
    file = machine.path / "prompts.csv"
    file.write_text("act,prompt\nFirst,Words\n")
    machine.command(top, "import", str(file), "-p", "auto", "--dry-run", status=3)
    assert machine.projects() == {}
    machine.command(top, "import", str(file), "-p", "auto")
    assert machine.read(top) == ["first"]
    exported = machine.command(top, "export", "-", "-p", "auto").stdout
    assert "First" in exported
    assert machine.projects() == {"website": [str(top)]}


@pytest.mark.parametrize("stateless", [False, True])
def test_the_first_request_may_be_for_skills(machine: Machine, stateless: bool) -> None:
    folder = machine.repository("site")
    machine.write(folder, "note")
    with machine.connect(folder, roots=[folder.as_uri()], stateless=stateless) as client:
        skills = client.ask("skills/list")["skills"]
    assert [skill["uri"] for skill in skills] == ["skill://stored-prompts/note/SKILL.md"]
