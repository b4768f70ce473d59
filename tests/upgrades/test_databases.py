"""Databases of every release: they open, and have their contents."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec
import pytest

from dittybag.assembly.store_factory import opened_store
from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.services.workspace import Workspace
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA
from tests.cli.cli_runner import data, dittybag
from tests.forked_processes import ROOT, ForkedProcess
from tests.postgres_servers import PostgresServer
from tests.repetitions import SEED, repetitions
from tests.upgrades.golden_release import RELEASES, Expected, GoldenRelease, golden_releases
from tests.upgrades.make_release import count_postgres_rows, count_sqlite_rows

KILLS: Final = repetitions(4, 200)
OLDEST: Final = GoldenRelease(RELEASES / "0.1.0-schema-4")

#: Tables whose rows follow from others; upgrades fill them.
DERIVED: Final = {"migrations", "word_frequencies", "open_tasks", "open_labels", "task_edges", "writers"}

#: Values that records leave out, besides empty ones.
DEFAULTS: Final = {"version": 1, "priority": 3, "energy": "medium", "time_estimate": "1hr"}

numbers = count(1)


def each_release(file: str) -> pytest.MarkDecorator:
    """Run a test with every release that has a file."""
    releases = golden_releases(file)
    return pytest.mark.parametrize("release", releases, ids=lambda release: release.name)


@pytest.fixture
def postgres_url(release: GoldenRelease, shared_postgres: PostgresServer) -> Iterator[tuple[str, str]]:
    """The name of a database with the dump of the release, and the URL of its workspace."""
    name = f"release_{next(numbers)}"
    shared_postgres.sql(f"CREATE DATABASE {name}")
    shared_postgres.sql(release.postgres_dump(), name)
    yield name, shared_postgres.url(name, schema="golden")
    shared_postgres.sql(f"DROP DATABASE {name} WITH (FORCE)")


def schema_of(database: Path) -> int:
    with closing(apsw.Connection(str(database))) as connection:
        return int(connection.pragma("user_version"))


def require_contents(expected: Any, found: Any, path: str = "") -> None:
    """Check that everything expected is found. Records may have new fields, and leave out defaults."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            if key in found or (value and value != DEFAULTS.get(key)):
                assert key in found, f"{path}/{key}"
                require_contents(value, found[key], f"{path}/{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for number, pair in enumerate(zip(expected, found, strict=True)):
            require_contents(*pair, f"{path}/{number}")
    else:
        assert found == expected, path


async def check_workspace(home: Path, database: str, expected: Expected) -> None:
    """Check an opened workspace: contents, history, accounts, search and undo."""

    def run(*arguments: str) -> Any:
        return data(dittybag(home, *arguments, "--db", database, "--json"))

    exported = msgspec.json.decode(dittybag(home, "export", "-", "--db", database).stdout)
    require_contents(expected.export, exported)
    require_contents(expected.users, run("user", "list"))
    require_contents(expected.tokens, run("token", "list", "--include-revoked"))
    async with opened_store(database) as store:
        workspace = Workspace(store)
        project = await workspace.projects.find(DEFAULT_PROJECT)
        assert await workspace.accounts.authenticate(expected.token, project.id) is not None
    for query, name in {
        "hello": "greet",
        "deployments": "notes",
        "cafe reserver": "Réserver un café",
    }.items():
        assert name in str(run("search", query)), query
    (created,) = [task for task in exported["tasks"] if task["title"] == "Created by a client"]
    run("undo", "--yes")
    assert created["id"] not in [task["id"] for task in run("task", "list")["tasks"]]


@each_release("sqlite.db.gz")
async def test_a_sqlite_database_of_a_release_opens_with_all_its_contents(
    release: GoldenRelease, tmp_path: Path
) -> None:
    database = tmp_path / "default.db"
    release.write_database(database)
    expected, before = release.expected("sqlite"), database.read_bytes()

    found = data(dittybag(tmp_path, "doctor", "--json"))
    assert found["errors"] == 0
    (schema,) = [finding for finding in found["findings"] if finding["topic"] == "schema"][:1]
    assert schema["message"].split()[:5] in (
        ["The", "database", "has", "schema", f"{expected.schema};"],
        ["Schema", f"{NEWEST_SCHEMA},", "the", "newest"],
    )
    dittybag(tmp_path, "backup", str(tmp_path / "copy.db"))
    assert schema_of(tmp_path / "copy.db") == expected.schema
    assert database.read_bytes() == before

    assert data(dittybag(tmp_path, "prompt", "list", "--json"))["total"] == 2
    assert schema_of(database) == NEWEST_SCHEMA
    rows = count_sqlite_rows(database)
    kept = expected.rows.keys() - DERIVED
    assert {name: rows[name] for name in kept} == {name: expected.rows[name] for name in kept}
    await check_workspace(tmp_path, str(database), expected)
    found = data(dittybag(tmp_path, "doctor", "--json"))
    assert (found["errors"], found["warnings"]) == (0, 0)
    checked = {finding["topic"] for finding in found["findings"] if finding["level"] == "ok"}
    assert {"integrity", "references", "contents", "change log", "search index"} <= checked


@each_release("postgres.sql.gz")
async def test_a_postgresql_database_of_a_release_opens_with_all_its_contents(
    release: GoldenRelease, tmp_path: Path, postgres_url: tuple[str, str], shared_postgres: PostgresServer
) -> None:
    name, url = postgres_url
    expected = release.expected("postgres")
    number = "SELECT max(number) FROM golden.migrations"
    found = data(dittybag(tmp_path, "doctor", "--db", url, "--json"))
    assert (found["errors"], found["warnings"]) == (0, 0)
    assert shared_postgres.sql(number, name) == [str(expected.schema)]

    assert data(dittybag(tmp_path, "prompt", "list", "--db", url, "--json"))["total"] == 2
    assert shared_postgres.sql(number, name) == [str(NEWEST_SCHEMA)]
    rows = count_postgres_rows(shared_postgres, name)
    kept = expected.rows.keys() - DERIVED
    assert {name: rows[name] for name in kept} == {name: expected.rows[name] for name in kept}
    await check_workspace(tmp_path, url, expected)


@pytest.mark.parametrize("number", range(KILLS))
def test_an_upgrade_that_is_killed_is_resumed_by_the_next_command(tmp_path: Path, number: int) -> None:
    database = tmp_path / "default.db"
    OLDEST.write_database(database)
    expected = OLDEST.expected("sqlite")
    last = random.Random(SEED + number).randrange(expected.schema, NEWEST_SCHEMA)
    environment = {"DITTYBAG_HOME": str(tmp_path), "DITTYBAG_AUTO_BACKUP": "off"}
    with (
        closing(apsw.Connection(str(database))) as connection,
        ForkedProcess("dittybag", "prompt", "list", env=environment) as process,
    ):
        while process.poll() is None and int(connection.pragma("user_version")) <= last:
            pass
        process.kill()
    assert schema_of(database) > last
    exported = msgspec.json.decode(dittybag(tmp_path, "export", "-").stdout)
    require_contents(expected.export, exported)
    assert schema_of(database) == NEWEST_SCHEMA


def missing_folders(changelog: str) -> list[str]:
    """The released versions without a folder."""
    released = re.findall(r"^## \[?(\d+\.\d+\.\d+)\b", changelog, re.MULTILINE)
    folders = {release.name for release in golden_releases()}
    return [version for version in released if version not in folders]


def test_every_released_version_has_a_folder() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    advice = "before a release, run: python -m tests.upgrades.make_release"
    assert missing_folders(changelog) == [], advice
    assert missing_folders("# Changelog\n\n## 99.0.0 (2099-01-01)\n\n## 0.1.0\n") == ["99.0.0"]
