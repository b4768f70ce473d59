"""Write the data and configuration of a release into `releases/`: `python -m tests.upgrades.make_release`.

Run this with the version that is to be released. The folder is named after the version, and is never changed
after the release. `--source` and `--name` make the folder of an older source tree.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.request import Request, urlopen

import apsw
import msgspec

from tests.postgres_servers import PostgresServer, free_port, run_postgres
from tests.upgrades.client_snapshot import create_root, take_snapshot
from tests.upgrades.golden_release import RELEASES, ClientFiles, Expected, KnownSettings
from tests.upgrades.release_content import (
    CALLS,
    CLIENT_FILES,
    COMMANDS,
    CONNECT_COMMANDS,
    FILES,
    HOOK_FILES,
    KEPT_TOKEN,
    PROJECT_FILES,
    PUBLISH_COMMANDS,
)

ROOT: Final = Path(__file__).resolve().parents[2]
#: The exit status for an unknown command or option.
_USAGE: Final = 2
_START_SECONDS: Final = 30.0
#: The role and the schema of the PostgreSQL dump. The role may not install pg_trgm.
_ROLE: Final = "golden"
_INITIALIZE: Final[dict[str, Any]] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "golden-client", "version": "1"},
    },
}
#: Lines of a dump that only psql understands, or only a newer server.
_NOT_PORTABLE: Final = re.compile(r"^(--.*|\\.*|SET transaction_timeout.*|)$")


class OldProgram:
    """The `dittybag` of a source tree, started by a script in a home folder of its own."""

    def __init__(self, source: Path, root: Path, *, is_older: bool) -> None:
        """`is_older`: leave out commands that it does not know."""
        self.root, self._is_older = root, is_older
        self.left_out: list[str] = []
        for name in ("home", "project", "data", "bin"):
            (root / name).mkdir()
        self.script = write_program(root, source)

    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.root / "home"),
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
            "DITTYBAG_HOME": str(self.root / "data"),
            "DITTYBAG_AUTO_BACKUP": "off",
            "DITTYBAG_ACTOR": "golden",
        }

    def run(self, *arguments: str) -> str | None:
        """Run a command in the project folder. Return its output; `None` for an unknown command."""
        result = subprocess.run(
            [self.script, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.root / "project",
            env=self.environment(),
        )
        if result.returncode == _USAGE and self._is_older:
            self.left_out.append(shlex.join(arguments))
            return None
        assert result.returncode == 0, (arguments, result)
        return result.stdout

    def data(self, *arguments: str) -> Any:
        """Return what a command prints with --json."""
        output = self.run(*arguments, "--json")
        return None if output is None else msgspec.json.decode(output)["data"]


def write_program(root: Path, source: Path) -> Path:
    """Write a script that starts the `dittybag` of a source tree, as installers do."""
    script = root / "bin" / "dittybag"
    script.parent.mkdir(exist_ok=True)
    script.write_text(
        f"#!/bin/sh\n"
        f"PYTHONPATH={shlex.quote(str(source / 'src'))} exec {shlex.quote(sys.executable)} -c '"
        f'import sys; sys.argv[0] = "{script}"; from dittybag.__main__ import main; sys.exit(main())'
        f'\' "$@"\n'
    )
    script.chmod(0o755)
    return script


def fill_workspace(program: OldProgram, database: str) -> Expected:
    """Write one of everything into a database, and return what must be found in it."""
    for name, content in FILES.items():
        (program.root / "project" / name).write_bytes(content)
    where = ("--db", database)
    token = ""
    for command in COMMANDS:
        output = program.run(*command, *where)
        if KEPT_TOKEN in command and output is not None:
            token = output.split()[0]
    _call_over_stdio(program, where)
    _open_http_session(program, where, token)
    exported = program.run("export", "-", *where)
    assert exported is not None
    tokens = program.data("token", "list", "--include-revoked", *where)
    if tokens is None:
        tokens = program.data("token", "list", "--all", *where)
    return Expected(
        export=msgspec.json.decode(exported),
        users=program.data("user", "list", *where),
        tokens=tokens,
        token=token,
    )


def _call_over_stdio(program: OldProgram, where: Sequence[str]) -> None:
    command = [str(program.script), "serve", "--profile", "all", *where]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=program.environment(), cwd=program.root / "project", stdin=pipe, stdout=pipe
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        requests = [_INITIALIZE, *({"jsonrpc": "2.0", "id": n, **call} for n, call in enumerate(CALLS, 1))]
        for request in requests:
            server.stdin.write(msgspec.json.encode(request) + b"\n")
            server.stdin.flush()
            answer: dict[str, Any] = {}
            while answer.get("id") != request["id"]:
                answer = msgspec.json.decode(server.stdout.readline())
            assert "result" in answer, answer
            assert not answer["result"].get("isError"), answer
            if request is _INITIALIZE:
                server.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')


def _open_http_session(program: OldProgram, where: Sequence[str], token: str) -> None:
    """Start an HTTP session, and leave it open."""
    port = free_port()
    command = [str(program.script), "serve", "--http", f"127.0.0.1:{port}", "--auth", "tokens", *where]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        command, env=program.environment(), cwd=program.root / "project", stdout=quiet, stderr=quiet
    ) as server:
        try:
            _initialize(f"http://127.0.0.1:{port}/mcp", token)
        finally:
            server.terminate()
            server.wait(_START_SECONDS)


def _initialize(url: str, token: str) -> None:
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    request = Request(url, msgspec.json.encode(_INITIALIZE), headers)
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            with urlopen(request, timeout=_START_SECONDS) as response:
                assert response.headers["Mcp-Session-Id"]
                return
        except URLError as error:
            refused = isinstance(error.reason, ConnectionRefusedError)
            if not refused or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def count_sqlite_rows(database: Path) -> dict[str, int]:
    """Return the number of rows in each table that is no index."""
    with closing(apsw.Connection(str(database))) as connection:
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")
        names = [str(name) for (name,) in tables]
        return {
            name: int(str(connection.execute(f'SELECT count(*) FROM "{name}"').get))
            for name in names
            if "_index" not in name and not name.startswith("sqlite_")
        }


def count_postgres_rows(server: PostgresServer, database: str) -> dict[str, int]:
    """Return the number of rows in each table."""
    tables = server.sql(f"SELECT tablename FROM pg_tables WHERE schemaname = '{_ROLE}' ORDER BY 1", database)
    return {name: int(server.sql(f'SELECT count(*) FROM {_ROLE}."{name}"', database)[0]) for name in tables}


def make_sqlite(program: OldProgram, folder: Path) -> None:
    """Write `sqlite.db.gz`, and what must be found in it."""
    database = program.root / "data" / "default.db"
    expected = fill_workspace(program, str(database))
    with closing(apsw.Connection(str(database))) as connection:
        connection.pragma("wal_checkpoint(truncate)")
        schema = int(connection.pragma("user_version"))
    expected = msgspec.structs.replace(expected, schema=schema, rows=count_sqlite_rows(database))
    (folder / "sqlite.db.gz").write_bytes(gzip.compress(database.read_bytes(), mtime=0))
    _write_json(folder / "sqlite.json", expected)


def make_postgres(program: OldProgram, folder: Path) -> None:
    """Write `postgres.sql.gz`, and what must be found in it."""
    with run_postgres("installed") as server:
        server.sql(f"CREATE ROLE {_ROLE} LOGIN")
        server.sql(f"CREATE DATABASE {_ROLE}")
        server.sql(f"CREATE SCHEMA {_ROLE} AUTHORIZATION {_ROLE}", _ROLE)
        expected = fill_workspace(program, server.url(_ROLE, user=_ROLE, schema=_ROLE))
        schema = int(server.sql(f"SELECT max(number) FROM {_ROLE}.migrations", _ROLE)[0])
        expected = msgspec.structs.replace(expected, schema=schema, rows=count_postgres_rows(server, _ROLE))
        dump = subprocess.run(
            [server.programs / "pg_dump", "--schema", _ROLE, "--inserts", "--no-owner", server.url(_ROLE)],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    lines = [line for line in dump.splitlines() if not _NOT_PORTABLE.match(line)]
    (folder / "postgres.sql.gz").write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))
    _write_json(folder / "postgres.json", expected)


def make_clients(program: OldProgram, folder: Path) -> None:
    """Write `clients.json`: the files before and after `connect` and `publish`."""
    home, project = program.root / "home", program.root / "project"
    given = {home / path: text for path, text in (*CLIENT_FILES.values(), *HOOK_FILES.items())}
    given |= {project / path: text for path, text in PROJECT_FILES.items()}
    for path, text in given.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    folders = ("home", "project", "data/connect", "data/publish")
    ignored = r"/backups/|/lock$"
    before = take_snapshot(program.root, folders, ignored=ignored)
    for command in (*CONNECT_COMMANDS, *PUBLISH_COMMANDS):
        program.run(*command)
    after = take_snapshot(program.root, folders, ignored=ignored, sections=("review", "greet"))
    _write_json(folder / "clients.json", ClientFiles(before=before, after=after))


def make_settings(program: OldProgram, folder: Path) -> None:
    """Write `settings.json`: the options of `dittybag serve` and the variables that its help names."""
    shown = program.run("serve", "--help")
    assert shown is not None
    options = sorted(set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", shown, re.MULTILINE)))
    variables = sorted(set(re.findall(r"\b[A-Z]+_[A-Z_]+\b", shown)))
    _write_json(folder / "settings.json", KnownSettings(options=options, variables=variables))


def _write_json(file: Path, value: Any) -> None:
    text = msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=1)
    file.write_bytes(text + b"\n")


def write_release(source: Path, folder: Path, *, is_older: bool) -> set[str]:
    """Write all files of a release. Return the commands that it did not know."""
    left_out: set[str] = set()
    # PostgreSQL first: the files of clients belong to the SQLite database.
    for steps in ((make_postgres,), (make_sqlite, make_clients, make_settings)):
        with tempfile.TemporaryDirectory() as temporary:
            program = OldProgram(source, create_root(Path(temporary)), is_older=is_older)
            for step in steps:
                step(program, folder)
            left_out |= {line.partition(" --db ")[0] for line in program.left_out}
    return left_out


def main() -> None:
    """Write the folder of a release."""
    from dittybag import __version__

    parser = argparse.ArgumentParser(prog="python -m tests.upgrades.make_release", description=__doc__)
    parser.add_argument("--source", type=Path, default=ROOT, help="an older source tree")
    parser.add_argument("--name", default=__version__, help="the name of the folder (default: the version)")
    parser.add_argument("--force", action="store_true", help="replace the folder; only before the release")
    options = parser.parse_args()
    folder = RELEASES / options.name
    if folder.exists() and not options.force:
        parser.error(f"{folder} exists; --force replaces it")
    with tempfile.TemporaryDirectory() as temporary:
        made = Path(temporary, options.name)
        made.mkdir()
        left_out = write_release(options.source.resolve(), made, is_older=options.source != ROOT)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(made, folder)
    for line in sorted(left_out):
        sys.stdout.write(f"left out: {line}\n")
    for file in sorted(folder.iterdir()):
        sys.stdout.write(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
